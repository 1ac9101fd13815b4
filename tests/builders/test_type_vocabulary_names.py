"""Type vocabularies from a knowledge base: who has which type, what a name is, and all of WordNet."""

from collections.abc import Iterator, Sequence

import pytest

import kgkit
from kb_builders.type_vocabulary import TypeVocabularyBuilder
from kb_builders.type_vocabulary_names import name_words
from kgkit.building import (
    Alias,
    Entity,
    Form,
    KBProperties,
    Occurrences,
    Record,
    Redirect,
    SourceInfo,
    Triple,
)
from kgkit.building.records import StoredRecords
from kgkit.errors import NotThere, UnknownName, UsageError
from kgkit.text import folding
from tests.toys import build_toy


class Records:
    """The records of a KB, from a list."""

    name, build, info, folding = "some", "b1", SourceInfo(name="Some"), folding()

    def __init__(self, records: Sequence[Record], smoothing: float = 0.0) -> None:
        self.records, self.properties = records, KBProperties(smoothing=smoothing)

    def entities(self, kind: str | None = None) -> Iterator[Entity]:
        return (one for one in self._all(Entity) if kind in (None, one.kind))

    def aliases(self) -> Iterator[Alias]:
        return self._all(Alias)

    def triples(self, relation: str | None = None) -> Iterator[Triple]:
        if relation is not None and all(one.relation != relation for one in self._all(Triple)):
            raise UnknownName("relation", relation, [])
        return (one for one in self._all(Triple) if relation in (None, one.relation))

    def redirects(self) -> Iterator[Redirect]:
        return iter(())

    def forms(self) -> Iterator[Form]:
        return iter(())

    def occurrences(self) -> Iterator[Occurrences]:
        return iter(())

    def _all(self, kind):
        return (record for record in self.records if isinstance(record, kind))


def vocabulary(*records: Record, smoothing: float = 0.0) -> dict[str, dict[str, float]]:
    """Return the surfaces of each type with their counts."""
    found: dict[str, dict[str, float]] = {}
    for record in TypeVocabularyBuilder().derive(Records(records, smoothing)):
        if isinstance(record, Entity):
            found[record.key] = {}
        elif isinstance(record, Alias):
            found[record.key][record.surface] = record.count
    return found


# -- a hierarchy ----------------------------------------------------------------

HIERARCHY = [
    Triple("physicist.n.01", "hypernym", "person.n.01"),
    Triple("einstein.n.01", "instance_hypernym", "physicist.n.01"),
    Triple("frenchman.n.01", "hypernym", "person.n.01"),
    Triple("capital.n.03", "hypernym", "seat.n.05"),
    Triple("seat.n.05", "hypernym", "location.n.01"),
    Triple("paris.n.01", "instance_hypernym", "capital.n.03"),
    Triple("left_bank.n.01", "instance_hypernym", "paris.n.01"),  # an instance of an instance
    Triple("agency.n.01", "hypernym", "organization.n.01"),
    Triple("cia.n.01", "hypernym", "agency.n.01"),  # a class with a name
    Triple("waterloo.n.02", "instance_hypernym", "battle.n.01"),
    Triple("toilet.n.01", "hypernym", "location.n.01"),
    Entity("french.a.01", kind="synset", pos="a"),
    Entity("old.s.07", kind="synset", pos="s"),
    Alias("Einstein", "einstein.n.01", 3),
    Alias("Albert Einstein", "einstein.n.01"),
    Alias("physicist", "physicist.n.01", 8),
    Alias("Frenchman", "frenchman.n.01", 2),
    Alias("Paris", "paris.n.01", 20),
    Alias("City of Light", "paris.n.01"),
    Alias("capital of France", "paris.n.01"),
    Alias("French capital", "paris.n.01"),
    Alias("Left Bank", "left_bank.n.01"),
    Alias("CIA", "cia.n.01", 4),
    Alias("Central Intelligence Agency", "cia.n.01"),
    Alias("agency", "agency.n.01", 9),
    Alias("Battle of Paris", "waterloo.n.02"),
    Alias("W.C.", "toilet.n.01"),
    Alias("French", "french.a.01", 5),
    Alias("Old", "old.s.07"),
]


def test_instances_have_the_type_of_their_branch_and_words_the_counts_of_their_names():
    found = vocabulary(*HIERARCHY, smoothing=1.0)
    assert list(found) == ["LOC", "MISC", "ORG", "PER"]
    assert found["PER"] == {"Einstein": 5.0, "Albert Einstein": 1.0, "Albert": 1.0}
    assert found["LOC"] == {
        "Paris": 21.0,
        **dict.fromkeys(("City of Light", "City", "Light", "Left Bank", "Left", "Bank"), 1.0),
    }


def test_other_instances_and_nationalities_are_miscellaneous():
    assert vocabulary(*HIERARCHY, smoothing=1.0)["MISC"] == {
        "Battle of Paris": 1.0,
        "Battle": 1.0,
        "Paris": 1.0,
        "Frenchman": 3.0,
        "French": 6.0,
    }


def test_a_class_is_an_organization_where_it_has_a_name():
    found = vocabulary(*HIERARCHY)["ORG"]
    assert found["CIA"] == 4.0
    assert set(found) == {"CIA", "Central Intelligence Agency", "Central", "Intelligence", "Agency"}


def test_types_count_beside_a_hierarchy_as_in_a_wordnet_that_was_added_to():
    mine = Entity("ada", types=("person",)), Alias("Ada Quill", "ada", 2)
    found = vocabulary(*HIERARCHY, *mine)
    assert found["PER"]["Quill"] == 2.0
    assert found["PER"]["Einstein"] == 3.0


def test_surfaces_that_are_no_names_are_counted_with_the_type():
    told = {
        one.key: one.attributes
        for one in TypeVocabularyBuilder().derive(Records(HIERARCHY))
        if isinstance(one, Entity)
    }
    assert told["LOC"] == {
        "source": "some@b1",
        "things": 2,
        "names": 3,
        "words": 5,
        "cleaned": {"surfaces that are no names": 2},
    }


def test_a_loop_in_a_hierarchy_ends():
    loop = [Triple("a", "hypernym", "person.n.01"), Triple("person.n.01", "hypernym", "a")]
    named = [Triple("x", "instance_hypernym", "a"), Alias("Xenia", "x", 1)]
    assert vocabulary(*loop, *named) == {"PER": {"Xenia": 1.0}}


# -- types that entities state -----------------------------------------------------


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        *(("PER", "PER"), ("person", "PER"), ("People", "PER"), ("Fictional character", "PER")),
        *(("GPE", "LOC"), ("city", "LOC"), ("geo-political entity", "LOC"), ("dbo:PopulatedPlace", "LOC")),
        *(("/location/country", "LOC"), ("http://dbpedia.org/ontology/Company", "ORG")),
        *(("Organisation", "ORG"), ("sports_team", "ORG"), ("EVENT", "MISC"), ("album", "MISC")),
        *(("UNK", None), ("", None), ("owl#Thing", None), ("建筑", "MISC")),
    ],
)
def test_common_names_of_types_are_understood(told, kind):
    known = [Entity("k", types=("person",)), Alias("Known", "k", 1)]
    found = vocabulary(*known, Entity("e", types=(told,)), Alias("Name", "e", 1))
    assert [one for one, surfaces in found.items() if "Name" in surfaces] == ([kind] if kind else [])


def test_an_entity_may_have_two_types_and_one_of_the_four_beats_the_rest():
    found = vocabulary(
        Entity("v", types=("city", "party")), Alias("Vienna", "v", 2),
        Entity("m", types=("celebrity", "person")), Alias("Madonna", "m", 1),
        Entity("n"), Alias("Nobody", "n", 1),
    )  # fmt: skip
    assert found == {"LOC": {"Vienna": 2.0}, "ORG": {"Vienna": 2.0}, "PER": {"Madonna": 1.0}}


def test_where_nobody_counted_every_name_counts_one():
    found = vocabulary(
        Entity("1", types=("person",)), Alias("John Adams", "1"),
        Entity("2", types=("person",)), Alias("John Quincy Adams", "2"),
        Entity("3", types=("city",)), Alias("Adams", "3"),
    )  # fmt: skip
    assert (found["PER"]["Adams"], found["LOC"]["Adams"], found["PER"]["Quincy"]) == (2.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "records",
    [
        [Entity("a"), Alias("A name", "a")],
        [Entity("a", types=("dairy",)), Alias("Milk", "a")],
        [Entity("a", types=("UNK",)), Alias("Milk", "a")],
        [Triple("a", "instance_hypernym", "b"), Alias("A", "a")],  # a hierarchy of something else
    ],
    ids=["no types", "other types", "unknown types", "another hierarchy"],
)
def test_a_kb_that_tells_no_persons_places_and_organizations_is_refused(records):
    with pytest.raises(UsageError, match="'some'"):
        vocabulary(*records)


# -- a KB on disk -------------------------------------------------------------------


def test_a_published_kb_gives_a_vocabulary_that_answers_with_priors(tmp_path):
    build_toy(
        tmp_path, name="people", home=tmp_path,
        records=[
            Entity("Paris", types=("city",)), Alias("Paris", "Paris", 9), Alias("paris", "Paris", 1),
            Entity("Hilton", types=("person",)), Alias("Paris Hilton", "Hilton", 3),
        ],
    )  # fmt: skip
    kgkit.build_kb(TypeVocabularyBuilder(), "kb:people", name="conll", home=tmp_path)
    with kgkit.open_kb("conll", home=tmp_path) as kb:
        found = {one.entity.key: round(one.prior, 3) for one in kb.decode(kb.candidates("Paris"))}
        assert found == {"LOC": 0.75, "PER": 0.25}  # paris in small letters is no name
        assert kb["PER"].attributes["source"].startswith("people@")


def test_a_kb_that_is_refused_leaves_nothing_behind(tmp_path):
    build_toy(tmp_path, home=tmp_path)
    with pytest.raises(UsageError, match="'toy' does not tell"):
        kgkit.build_kb(TypeVocabularyBuilder(), "kb:toy", name="conll", home=tmp_path)
    with pytest.raises(NotThere):
        kgkit.open_kb("conll", home=tmp_path)


# -- names ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surface", "words"),
    [
        ("Paris", ["Paris"]),
        ("New York City", ["New", "York", "City"]),
        ("the Isle of Man", ["Isle", "Man"]),
        ("The Hague", ["Hague"]),
        ("Leonardo da Vinci", ["Leonardo", "Vinci"]),
        ("Van Gogh", ["Van", "Gogh"]),
        ("George W. Bush", ["George", "Bush"]),  # an initial tells nothing
        ("Washington, D.C.", ["Washington", "D.C."]),
        ("Seward's Folly", ["Seward", "Folly"]),
        ("Louis XIV", ["Louis", "XIV"]),
        ("Apollo 11", ["Apollo"]),
        ("al-Qaeda", ["al-Qaeda"]),
        ("eBay", ["eBay"]),
        ('"Fats" Domino', ["Fats", "Domino"]),
        ("北京", ["北京"]),
        ("capital of France", None),
        ("French capital", None),
        ("dog", None),
        ("9/11", None),
        ("of", None),
        ("", None),
    ],
)
def test_a_name_is_told_by_its_capitals_and_gives_its_words(surface, words):
    assert name_words(surface) == words


# -- WordNet --------------------------------------------------------------------


@pytest.fixture(scope="module")
def conll(wordnet_build):
    """The vocabulary of WordNet: type -> surface -> count."""
    with kgkit.open_kb("wordnet", home=wordnet_build.parents[3]) as kb:
        records = Records([*TypeVocabularyBuilder().derive(StoredRecords(kb))])
    found: dict[str, dict[str, float]] = {one.key: {} for one in records.entities()}
    for alias in records.aliases():
        found[alias.key][alias.surface] = alias.count
    return found
