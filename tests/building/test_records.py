"""What becomes of records: random streams of them beside a slow and obvious twin, and the toy by hand."""

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kgkit
from kgkit.building import Alias, Entity, Form, Record, Redirect, Triple
from kgkit.building.build import build_kb
from kgkit.errors import SourceError, UnknownName, UsageError
from kgkit.store import verify
from kgkit.types import NO_SENSE
from tests.small_kb import fold
from tests.toys import LINKS, PAGES, ToyBuilder, build_toy, source_file

# -- the twin: dictionaries and loops ---------------------------------------------


class Twin:
    """What a KB made of *records* has to answer."""

    def __init__(self, records: Sequence[Record], inverses: Mapping[str, str], smoothing: float) -> None:
        self.inverses, self.smoothing = inverses, smoothing
        self.keys = [record.key for record in records if isinstance(record, Entity)]
        self.redirects: dict[str, str] = {}
        for record in records:
            if isinstance(record, Redirect):
                self.redirects.setdefault(record.source, record.target)
        self.aliases = [
            record for record in records if isinstance(record, Alias) and self.id(record.key) is not None
        ]
        self.facts: list[tuple[int, str, int]] = []
        self.written = list(
            dict.fromkeys(record.relation for record in records if isinstance(record, Triple))
        )
        for record in records:
            if isinstance(record, Triple):
                subject, other = self.id(record.subject), self.id(record.object)
                if (
                    subject is not None
                    and other is not None
                    and (subject, record.relation, other) not in self.facts
                ):
                    self.facts.append((subject, record.relation, other))

    def id(self, key: str) -> int | None:
        passed: set[str] = set()
        while key not in self.keys:
            if key in passed or key not in self.redirects:
                return None
            passed.add(key)
            key = self.redirects[key]
        return self.keys.index(key)

    # -- aliases --

    def id_of(self, alias: Alias) -> int:
        found = self.id(alias.key)
        assert found is not None
        return found

    def rows(self, folded: str) -> list[tuple[int, int, float]]:
        """(entity, sense, prior), best first; of equals, the one seen first."""
        weight: dict[int, float] = {}
        sense: dict[int, int] = {}
        for alias in self.aliases:
            if fold(alias.surface) == folded:
                entity = self.id_of(alias)
                weight[entity] = weight.get(entity, self.smoothing) + alias.count
                found = None if alias.sense is None else self.id(alias.sense)
                if sense.setdefault(entity, NO_SENSE) == NO_SENSE and found is not None:
                    sense[entity] = found
        order = sorted(weight, key=lambda entity: -weight[entity])
        total = sum(weight.values())
        return [
            (entity, sense[entity], weight[entity] / total if total > 0 else 1 / len(weight))
            for entity in order
        ]

    def preferring(self, surface: str) -> dict[int, float]:
        """Priors where half is decided by the spelling, if it tells anything."""
        folded = fold(surface)
        priors = {entity: prior for entity, _, prior in self.rows(folded)}
        spelled: dict[str, dict[int, float]] = defaultdict(dict)
        for alias in self.aliases:
            if fold(alias.surface) == folded:
                seen = spelled[alias.surface]
                entity = self.id_of(alias)
                seen[entity] = seen.get(entity, self.smoothing) + alias.count
        if surface not in spelled or len(spelled) == 1:
            return priors
        share = {}
        for entity, weight in spelled[surface].items():
            others = [seen[entity] for seen in spelled.values() if entity in seen]
            share[entity] = weight / sum(others) if sum(others) > 0 else 1 / len(others)
        weighed = {entity: share[entity] * priors[entity] for entity in share}
        if not any(weighed.values()):
            weighed = share
        if not any(weighed.values()):
            weighed = dict.fromkeys(weighed, 1.0)
        total = sum(weighed.values())
        return {entity: (prior + weighed.get(entity, 0) / total) / 2 for entity, prior in priors.items()}

    # -- facts --

    def pairs(self, relation: str) -> set[tuple[int, int]]:
        return {(subject, other) for subject, name, other in self.facts if name == relation}

    def answered_both_ways(self) -> dict[str, str]:
        """Return the pairs of relations of which one is told by the other."""
        found: dict[str, str] = {}
        for relation, inverse in self.inverses.items():
            if relation in self.written and relation not in found.values():
                turned = {(other, subject) for subject, other in self.pairs(relation)}
                if inverse not in self.written or self.pairs(inverse) == turned:
                    found[relation] = inverse
        return found

    def said(self, relation: str) -> set[tuple[int, int]]:
        """Every pair of which *relation* is answered, whether or not the source says so itself."""
        both = {inverse: stored for stored, inverse in self.answered_both_ways().items()}
        if relation in both:
            return {(other, subject) for subject, other in self.pairs(both[relation])}
        return self.pairs(relation)


# -- streams of records --------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", "d", "e", "f", "g"])
SURFACES = st.sampled_from(
    ["x", "X", "xy", "Xy", "XY", "x y", "X  y", "ß", "SS", "ss", "", " ", "É", "e\u0301"]
)
RELATIONS = st.sampled_from(["up", "down", "like", "over", "odd"])
RECORDS = st.one_of(
    st.builds(Alias, SURFACES, KEYS, st.integers(0, 3).map(float), st.none() | KEYS),
    st.builds(Triple, KEYS, RELATIONS, KEYS),
    st.builds(Redirect, KEYS, KEYS),
)
INVERSES = st.sampled_from(
    [
        {},
        {"up": "down"},
        {"up": "down", "down": "up"},
        {"like": "like"},
        {"up": "down", "like": "like", "over": "under"},
    ]
)


@st.composite
def streams(draw):
    """Return parts of records: some of the keys are entities, the rest redirects or nothing."""
    entities = [Entity(key) for key in draw(st.lists(KEYS, min_size=1, unique=True))]
    records = draw(st.lists(RECORDS, max_size=40))
    agreeing = [
        Triple(t.object, "down", t.subject) for t in records if isinstance(t, Triple) and t.relation == "up"
    ]
    alike = [
        Triple(t.object, "like", t.subject) for t in records if isinstance(t, Triple) and t.relation == "like"
    ]
    records = records + draw(st.sampled_from([[], agreeing, alike, agreeing + alike]))
    stream = draw(st.permutations([*entities, *records]))
    cut = draw(st.integers(0, len(stream)))
    return stream[:cut], stream[cut:]


def built(parts: Sequence[Sequence[Record]], inverses: Mapping[str, str], smoothing: float, folder: Path):
    builder = ToyBuilder(**{f"part{number}": records for number, records in enumerate(parts)})
    builder.inverses, builder.smoothing = inverses, smoothing  # type: ignore[misc]
    result = build_kb(builder, source_file(folder), name="toy", home=folder / "home")
    assert verify(result.path) == []
    return kgkit.open_kb("toy", home=folder / "home")


@settings(deadline=None, database=None)
@given(streams(), INVERSES, st.sampled_from([0.0, 1.0]))
def test_a_kb_answers_as_its_records_say(parts, inverses, smoothing):
    twin = Twin([*parts[0], *parts[1]], inverses, smoothing)
    with tempfile.TemporaryDirectory() as folder, built(parts, inverses, smoothing, Path(folder)) as kb:
        check_entities(kb, twin)
        check_aliases(kb, twin)
        check_facts(kb, twin)


def check_entities(kb, twin):
    assert [entity.key for entity in kb] == twin.keys
    for key in "abcdefg":
        assert kb.store.id_of(key) == twin.id(key)
    redirects = [key for key in twin.redirects if key not in twin.keys and twin.id(key) is not None]
    assert kb.manifest.counts.redirects == len(redirects)


def check_aliases(kb, twin):
    surfaces = {fold(alias.surface) for alias in twin.aliases} - {""}
    assert set(kb.surfaces()) == surfaces
    assert kb.manifest.aliases == len(surfaces)
    assert kb.manifest.alias_rows == sum(len(twin.rows(surface)) for surface in surfaces)
    for surface in [
        "x",
        "X",
        "xy",
        "Xy",
        "XY",
        "xY",
        "x y",
        "X  y",
        "ß",
        "SS",
        "ss",
        "É",
        "e\u0301",
        "E\u0301",
        "",
    ]:
        rows = twin.rows(fold(surface)) if fold(surface) else []
        alike = kb.candidates(surface, prefer_case=False)
        assert [(entity, sense) for entity, sense, _ in alike] == [
            (entity, sense) for entity, sense, _ in rows
        ]
        assert alike.priors.tolist() == pytest.approx([prior for _, _, prior in rows])
        preferred = kb.candidates(surface)
        wanted = twin.preferring(surface) if rows else {}
        assert dict(zip(preferred.ids.tolist(), preferred.priors.tolist(), strict=True)) == pytest.approx(
            wanted
        )
        assert sorted(preferred.priors.tolist(), reverse=True) == preferred.priors.tolist()


def check_facts(kb, twin):
    everything = {name: twin.said(name) for name in kb.relations}
    both = twin.answered_both_ways()
    told = {name for name in twin.written if twin.pairs(name)} | set(both.values())
    assert {name for name in kb.relations if everything[name]} == {name for name in told if twin.said(name)}
    for name, pairs in everything.items():
        for number in range(len(kb)):
            assert set(kb.neighbors(number, name).tolist()) == {b for a, b in pairs if a == number}
            assert set(kb.neighbors(number, name, "in").tolist()) == {a for a, b in pairs if b == number}
            if name in twin.written:  # in the order of the source
                wanted = [
                    other for subject, relation, other in twin.facts if (subject, relation) == (number, name)
                ]
                assert kb.neighbors(number, name).tolist() == wanted
    symmetric = {name for name, inverse in both.items() if name == inverse}
    counted = {name: twin.pairs(name) for name in twin.written if name not in set(both.values()) - symmetric}
    stored = {
        name: sum(1 for a, b in pairs if name not in symmetric or a <= b) for name, pairs in counted.items()
    }
    found = {name: count for name, count in kb.manifest.counts.relations.items() if count}
    if "down" not in twin.inverses:  # else either may be the one that is stored
        assert found == {name: count for name, count in stored.items() if count}
    assert kb.manifest.triples == sum(found.values())


# -- the toy, by hand -------------------------------------------------------------------


def keys(entities):
    return [entity.key for entity in entities]


def test_loops_of_redirects_and_redirects_to_nowhere_are_dropped_and_counted(toy):
    for key in ("Ring", "Rong", "Void"):
        assert key not in toy
    dropped = toy.manifest.counts.dropped
    assert (dropped["redirect in a loop"], dropped["redirect to no entity"]) == (2, 1)


def test_what_names_no_entity_is_dropped_and_counted(toy):
    assert len(toy.candidates("ghost")) == len(toy.candidates("loop")) == len(toy.candidates("")) == 0
    dropped = toy.manifest.counts.dropped
    assert dropped["alias of no entity"] == 2
    assert dropped["alias without a character"] == 1
    assert dropped["triple with an unknown end"] == 1
    assert dropped["triple written twice"] == 1


def test_irregular_forms_are_kept(toy):
    assert toy.store.lemmas("geese") == [("goose", "n")]
    assert toy.store.lemmas("goose") == []
    assert toy.manifest.counts.forms == 1


def test_everything_an_entity_says_comes_back(toy):
    apple = next(record for record in PAGES if isinstance(record, Entity))
    assert toy["Apple"].to_dict() == {**apple.to_dict(), "id": 0}


@pytest.mark.parametrize("missing", [Triple, Alias, Redirect, Form], ids=lambda kind: kind.__name__)
def test_a_kb_without_any_record_of_a_kind_is_a_kb(tmp_path, missing):
    records = [record for record in [*LINKS, *PAGES] if not isinstance(record, missing)]
    result = build_toy(tmp_path, all=records)
    assert verify(result.path) == []
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        assert len(kb) == 7


def test_a_kb_of_entities_only_is_a_kb(tmp_path):
    assert verify(build_toy(tmp_path, all=[Entity("alone")]).path) == []
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        assert keys(kb) == ["alone"]
        assert len(kb.candidates("alone")) == 0
        assert kb.neighbors(0).tolist() == []


@pytest.mark.parametrize("records", [[], [Alias("x", "a")], [Redirect("a", "b")]])
def test_a_source_without_an_entity_is_refused(tmp_path, records):
    with pytest.raises(SourceError, match="no entity"):
        build_toy(tmp_path, all=records)


def test_two_entities_of_one_key_are_refused(tmp_path):
    with pytest.raises(SourceError, match="'a'"):
        build_toy(tmp_path, one=[Entity("a")], two=[Entity("a")])


def test_what_is_no_record_is_refused(tmp_path):
    with pytest.raises(TypeError, match="str"):
        build_toy(tmp_path, all=["a"])


@pytest.mark.parametrize("count", [1, 8, 9, 200])
def test_entities_are_told_apart_by_part_of_speech_however_many_there_are(tmp_path, count):
    records = [
        record for n in range(count) for record in (Entity(f"e{n}", pos=f"p{n}"), Alias("x", f"e{n}", 1))
    ]
    assert verify(build_toy(tmp_path, all=records).path) == []
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        for number in {0, count // 2, count - 1}:
            found = kb.candidates("x", pos=f"p{number}")
            assert (found.ids.tolist(), found.priors.tolist()) == ([number], [1.0])


def test_of_more_parts_of_speech_than_fit_a_byte_the_later_ones_cannot_be_asked_for(tmp_path):
    records = [
        record for n in range(300) for record in (Entity(f"e{n}", pos=f"p{n}"), Alias("x", f"e{n}", 1))
    ]
    assert verify(build_toy(tmp_path, all=records).path) == []
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        assert kb["e299"].pos == "p299"
        assert kb.candidates("x", pos="p7").ids.tolist() == [7]
        with pytest.raises(UnknownName, match="p299"):
            kb.candidates("x", pos="p299")


@pytest.mark.parametrize("count", [-1.0, float("nan"), float("inf")])
def test_a_count_that_is_no_count_is_refused(tmp_path, count):
    with pytest.raises(SourceError, match="'pear'"):
        build_toy(tmp_path, all=[Entity("a"), Alias("apple", "a", 1), Alias("pear", "a", count)])


def test_one_relation_cannot_be_the_inverse_of_two(tmp_path):
    class Family(ToyBuilder):
        inverses: ClassVar = {"mother_of": "child_of", "father_of": "child_of"}

    with pytest.raises(UsageError, match=r"'child_of'.*'mother_of'"):
        build_kb(Family(), source_file(tmp_path), home=tmp_path / "home")
