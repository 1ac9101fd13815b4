"""Names to entities: which come first, what their scores are, and how kinds restrict them."""

import random

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.errors import DamagedKB, NotThere, UnknownName, UsageError
from kgkit.reconciling.reconciler import NameMatch, ReconcileConfig, Reconciler
from kgkit.store.layout import TRIGRAMS
from tests.old_format import publish_as_format_2
from tests.small_kb import build

RECORDS = [
    Entity("Q64", "Berlin", kind="city", types=("capital",), attributes={"country": "Germany"}),
    Entity("Q821", "Berlin, New Hampshire", kind="city", attributes={"country": ["USA"]}),
    Entity("Q1", "Berlin (band)", kind="band", attributes={"founded": 1978}),
    Entity("Q2", "Bern", kind="city", types=("capital",)),
    Entity("Q3", "New York City", kind="city"),
    Entity("Q4", "Mississippi", kind="river"),
    Alias("Berlin", "Q64", 80),
    Alias("Berlin", "Q821", 15),
    Alias("Berlin", "Q1", 5),
    Alias("Berlin, New Hampshire", "Q821", 5),
    Alias("Bern", "Q2", 10),
    Alias("New York City", "Q3", 10),
    Alias("Mississippi", "Q4", 10),
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("places"), RECORDS, name="places") as kb:
        yield kb


def reconciler(kb, **settings) -> Reconciler:
    return Reconciler(kb, ReconcileConfig(**settings))


def keys(match: NameMatch) -> list[str]:
    return [candidate.key for candidate in match.candidates]


# -- which entity ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, key",
    [
        ("Berlin", "Q64"),
        ("  BERLIN ", "Q64"),
        ("Missisippi", "Q4"),
        ("Mississipi", "Q4"),
        ("York City, New", "Q3"),
        ("City New York", "Q3"),
        ("new yrok city", "Q3"),
        ("Berlin New Hampshire", "Q821"),
    ],
)
def test_a_name_means_its_entity_through_case_errors_and_word_order(kb, name, key):
    match = reconciler(kb)(name)
    assert (match.name, match.key, match.match) == (name, key, True)


def test_a_name_without_an_entity_has_a_low_score_and_is_no_match(kb):
    for name in ("Paris", "Berwick", "Jerusalem Post"):
        match = reconciler(kb)(name)
        assert not match.match
        assert match.score < 0.5


def test_the_name_of_a_knowledge_base_is_refused():
    with pytest.raises(UsageError, match="places"):
        Reconciler("places")


@pytest.mark.parametrize("name", [None, "", "  ", "qqqq", "\0", "\ud800", "😀"])
def test_a_name_that_is_nothing_or_like_nothing_has_no_candidates(kb, name):
    assert reconciler(kb)(name) == NameMatch(name, (), False)
    assert (reconciler(kb)(name).key, reconciler(kb)(name).label, reconciler(kb)(name).score) == (
        None,
        None,
        0,
    )


def test_a_name_that_is_no_string_is_refused(kb):
    with pytest.raises(TypeError, match="a name is a str, not int"):
        reconciler(kb)(7)


def test_many_names_come_in_their_order(kb):
    matches = reconciler(kb).pipe(iter(["Bern", None, "Berlin"]))
    assert [match.key for match in matches] == ["Q2", None, "Q64"]


# -- scores ------------------------------------------------------------------------------


def test_scores_of_a_surface_are_its_priors_and_a_rest_for_none_of_them(kb):
    candidates = reconciler(kb, top=5)("Berlin").candidates
    assert [candidate.key for candidate in candidates] == ["Q64", "Q821", "Q1"]
    assert [candidate.score for candidate in candidates] == pytest.approx([0.784, 0.147, 0.049], abs=1e-3)


def test_scores_descend_and_sum_to_less_than_1(kb):
    for name in ("Berlin", "Berlim", "Bernn", "York"):
        scores = [candidate.score for candidate in reconciler(kb, top=10)(name).candidates]
        assert scores == sorted(scores, reverse=True)
        assert 0 < sum(scores) < 1


def test_more_errors_make_a_score_lower(kb):
    reconcile = reconciler(kb)
    scores = [reconcile(name).score for name in ("Mississippi", "Mississipi", "Misisipi", "Msisipi", "Msspi")]
    assert scores == sorted(scores, reverse=True)


def test_a_surface_among_several_that_are_as_similar_is_less_sure(tmp_path):
    with build(tmp_path / "one", [Entity("b", "Berlinghof"), Alias("Berlinghof", "b")]) as kb:
        alone = reconciler(kb)("Xerlinghof").score
    records = [Entity("b"), Entity("m"), Alias("Berlinghof", "b"), Alias("Merlinghof", "m")]
    with build(tmp_path / "two", records) as kb:
        both = reconciler(kb, top=2)("Xerlinghof")
    assert both.candidates[0].score == both.candidates[1].score < alone
    assert not both.match


def test_a_long_name_with_an_error_is_surer_than_a_short_one(kb):
    assert reconciler(kb)("Mississippy").score > 0.7 > reconciler(kb)("Berm").score


def test_no_name_that_is_no_surface_scores_above_one_that_is(kb):
    reconcile = reconciler(kb)
    for name in (
        "Missisippi",
        "New York Cíty",
        "Mississippi (river)",
        "City New York",
        "berlin, new hampshire",
    ):
        assert 0 < reconcile(name).score <= 0.98
    assert reconcile("Bérlin").score <= reconcile("Berlin").score


@pytest.mark.parametrize("threshold, is_match", [(0, True), (0.7, True), (0.8, False), (1, False)])
def test_a_match_is_what_has_the_least_score(kb, threshold, is_match):
    assert reconciler(kb, threshold=threshold)("Berlin").match is is_match


def test_scores_are_calibrated_on_random_edits(tmp_path):
    """Names of two words with an edit: among those of like scores, so many are correct."""
    choice = random.Random(3)
    words = ["".join(choice.choices("abcdefghijklmnoprstuvw", k=choice.randint(3, 6))) for _ in range(150)]
    surfaces = sorted({" ".join(choice.sample(words, 2)) for _ in range(600)})
    records = [Entity(surface) for surface in surfaces] + [Alias(surface, surface) for surface in surfaces]
    with build(tmp_path, records) as kb:
        reconcile, scores, correct = reconciler(kb), [], []
        for surface in choice.sample(surfaces, 200):
            at = choice.randrange(len(surface) - 1)
            match = reconcile(surface[:at] + choice.choice("xyzq") + surface[at + 1 :])
            scores.append(match.score)
            correct.append(match.key == surface)
    assert sum(correct) / len(correct) == pytest.approx(sum(scores) / len(scores), abs=0.2)


# -- names as people write them ------------------------------------------------------------


PEOPLE = [
    {"key": "dvorak", "label": "Antonín Dvořák"},
    {"key": "thieu", "label": "Nguyễn Văn Thiệu"},
    {"key": "wies", "label": "Łęczyca"},
    {"key": "oers", "label": "Hans Christian Ørsted"},
    {"key": "pidal", "label": "Menéndez Pidal, Ramón"},
    {"key": "muller", "label": "Herta Müller"},
    {"key": "jose", "label": "José Núñez"},
    {"key": "jose2", "label": "Jose Nunez"},
    {"key": "pg", "label": "Procter & Gamble"},
    {"key": "bn", "label": "Barnes and Noble"},
    {"key": "att", "label": "AT&T"},
    {"key": "tv", "label": "LC-60LE830U"},
    {"key": "apollo", "label": "Apollo 11"},
    {"key": "ww", "label": "World War II", "aliases": ["WWII"]},
    {"key": "hep", "label": "Hepatitis B"},
    {"key": "louis", "label": "Louis XIV"},
    {"key": "dakota", "label": "North Dakota"},
    {"key": "m1", "label": "Mercury (planet)"},
    {"key": "m2", "label": "Mercury (element)"},
    {"key": "j1", "label": "Springfield", "description": "city in Illinois"},
    {"key": "n1", "label": "Newport", "description": "city in Rhode Island"},
    {"key": "n2", "label": "Newport", "description": "city in Wales"},
    {"key": "j2", "label": "Springfield", "description": "city in Massachusetts"},
    {"key": "ibm", "label": "International Business Machines Corporation"},
    {"key": "un", "label": "United Nations Children's Fund"},
    {"key": "bach", "label": "Johann Sebastian Bach"},
    {"key": "mich", "label": "University of Michigan"},
    {"key": "nato", "label": "North Atlantic Treaty Organization"},
    {"key": "unesco", "label": "UNESCO"},
    {"key": "beijing", "label": "北京大学"},
    {"key": "gogh", "label": "Vincent van Gogh"},
]


@pytest.fixture(scope="module")
def told_apart(tmp_path_factory):
    labels = {
        "forms": "Lindgren", "jr": "Kim Olsen, Jr.", "sr": "Kim Olsen, Sr.", "hall": "Hall 2.3",
        "half": "Gate 8½", "deck": "Deck −4", "king": "King Crow",
    }  # fmt: skip
    records = [Entity(key, label) for key, label in labels.items()]
    records += [Alias(label, key, 1) for key, label in labels.items()]
    with build(tmp_path_factory.mktemp("apart"), records, name="apart") as kb:
        yield reconciler(kb)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A knowledge base of names of many kinds."""
    home = tmp_path_factory.mktemp("people")
    build(home, [Entity("nobody", "Nobody")], name="people").close()
    kgkit.add_to_kb("people", PEOPLE, home=home)
    with kgkit.open_kb("people", home) as kb:
        yield kb


@pytest.mark.parametrize(
    "name, key",
    [
        ("Antonin Dvorak", "dvorak"),
        ("Dvorak, Antonin", "dvorak"),
        ("Nguyen Van Thieu", "thieu"),
        ("LECZYCA", "wies"),
        ("Hans Christian Orsted", "oers"),
        ("Menendez Pidal Ramon", "pidal"),
        ("Ramón Menéndez Pidal", "pidal"),
        ("Herta Mueller", "muller"),
        ("José Núñez", "jose"),
        ("Jose Nunez", "jose2"),
        ("Procter and Gamble", "pg"),
        ("Procter + Gamble Co.", "pg"),
        ("The Procter & Gamble Company", "pg"),
        ("Barnes & Noble, Inc.", "bn"),
        ("AT & T", "att"),
        ("Apolo 11", "apollo"),
        ("Apollo XI", "apollo"),
        ("World War Two", "ww"),
        ("2nd World War", "ww"),
        ("Mercury, planet", "m1"),
        ("Springfield, Illinois", "j1"),
        ("Springfield (Massachusetts)", "j2"),
        ("Springfield, Ill.", "j1"),
        ("Newport, RI", "n1"),
        ("Newport Wales", "n2"),
        ("International Business Machines", "ibm"),
        ("J. S. Bach", "bach"),
        ("Bach, J.S.", "bach"),
        ("Mr Johann Sebastian Bach", "bach"),
        ("Univ. of Michigan", "mich"),
        ("Michigan, University of", "mich"),
        ("N. Dakota", "dakota"),
        ("NATO", "nato"),
        ("N.A.T.O.", "nato"),
        ("United Nations Educational, Scientific and Cultural Organization", "unesco"),
        ("V. v. Gogh", "gogh"),
    ],
)
def test_a_name_in_another_form_is_matched(people, name, key):
    match = reconciler(people)(name)
    assert (match.key, match.match) == (key, True)


@pytest.mark.parametrize(
    "name, key",
    [
        ("LC-40LE830U", "tv"),
        ("LC-60LE830X", "tv"),
        ("Apollo 12", "apollo"),
        ("Apollo XII", "apollo"),
        ("World War I", "ww"),
        ("World War One", "ww"),
        ("WWI", None),
        ("Hepatitis C", "hep"),
        ("Louis XVI", "louis"),
        ("Louis Quatorze", None),
        ("South Dakota", "dakota"),
        ("Dakota", "dakota"),
        ("University of Minnesota", None),
        ("南京大学", "beijing"),
        ("Springfield", "j1"),
        ("Mercury", "m1"),
    ],
)
def test_a_name_of_another_entity_or_of_several_is_proposed_and_not_matched(people, name, key):
    match = reconciler(people, top=5)(name)
    assert not match.match
    assert key is None or key in keys(match)


def test_a_name_without_its_qualifier_is_as_likely_each_of_its_entities(people):
    match = reconciler(people, top=2)("Mercury")
    assert {*keys(match)} == {"m1", "m2"}
    assert match.candidates[0].score == match.candidates[1].score > 0.2


@pytest.mark.parametrize(
    "name, key",
    [
        ("Lindgren SE", "forms"), ("Lindgren UK", None), ("Olsen, Kim, Sr.", "sr"),
        ("Kim Olsen Jr", "jr"), ("Kim Olsen", None), ("Hall 2.3", "hall"), ("Hall 23", None),
        ("Gate 8 1/2", "half"), ("Gate 8", None), ("Deck -4", "deck"), ("Deck 4", None), ("Crow", None),
        ("Lindgren a.s.", "forms"), ("Hall 2", None),
    ],
)  # fmt: skip
def test_what_tells_names_apart_does_so_in_a_build(told_apart, name, key):
    match = told_apart(name)
    assert (match.key if match.match else None) == key


@pytest.mark.parametrize("name", ["Unknown Thing Entirely", "Atlantis", "of the", "12", "?!"])
def test_where_nothing_is_similar_there_is_no_candidate(people, name):
    assert reconciler(people, top=5)(name).candidates == ()


@pytest.mark.parametrize("name, key", [("Q64", "Q64"), (" Q4 ", "Q4")])
def test_a_key_means_its_entity_unless_it_is_not_of_the_kind(kb, name, key):
    assert reconciler(kb)(name).candidates[0][::2] == (key, 1.0)
    assert not reconciler(kb, kind="band")(name).match


def test_a_surface_means_its_entities_also_where_it_is_the_key_of_another_one(tmp_path):
    records = [
        Entity("Delta", "Delta (list)"), Entity("Q5", "Delta Air Lines"), Entity("Q6", "River delta"),
        Alias("Delta", "Q5", 30), Alias("Delta", "Q6", 10), Alias("Delta (list)", "Delta", 1),
    ]  # fmt: skip
    with build(tmp_path, records, name="deltas") as kb:
        assert keys(reconciler(kb, top=5)("Delta")) == ["Q5", "Q6"]


def test_of_a_long_record_the_beginning_qualifies_a_name(tmp_path):
    records = [
        Entity(
            "v", "Vernal", description="Place in Utah. " + "x " * 5_000 + "Kansas", attributes={"r": "West"}
        ),
        Entity("o", "Other", description="A place"),
        Alias("Vernal", "v", 1),
        Alias("Other", "o", 1),
    ]
    with build(tmp_path, records, name="long") as kb:
        reconcile = reconciler(kb)
        by_name = {name: reconcile(name).score for name in ("Vernal, Utah", "Vernal, Kansas", "Vernal, West")}
    assert by_name["Vernal, Utah"] > by_name["Vernal, Kansas"]
    assert by_name["Vernal, West"] > by_name["Vernal, Kansas"]


# -- kinds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("city", ["Q64", "Q821"]),
        ("band", ["Q1"]),
        ("capital", ["Q64"]),
        ("country=USA", ["Q821"]),
        ("country=Germany", ["Q64"]),
        ("founded=1978", ["Q1"]),
    ],
)
def test_only_entities_of_a_kind_a_type_or_an_attribute_are_candidates(kb, kind, expected):
    assert keys(reconciler(kb, kind=kind, top=5)("Berlin")) == expected


def test_what_is_not_of_the_kind_leaves_its_share_to_the_others(kb):
    of_all, of_kind = reconciler(kb, top=3)("Berlin"), reconciler(kb, kind="band")("Berlin")
    [score] = [each.score for each in of_all.candidates if each.key == "Q1"]
    assert of_kind.score > score


def test_a_name_whose_own_meanings_are_of_another_kind_is_sought_among_similar_ones(kb):
    assert keys(reconciler(kb, kind="river")("Berlin")) in ([], ["Q4"])
    assert keys(reconciler(kb, kind="capital")("Bernn")) == ["Q2"]


def test_a_kind_that_no_entity_has_is_refused_with_the_kinds(kb):
    with pytest.raises(UnknownName, match=r"no kind of entity.*'cities'.*there are: band, city, river"):
        reconciler(kb, kind="cities")
    with pytest.raises(UnknownName, match="'country=Spain'"):
        reconciler(kb, kind="country=Spain")


def test_an_attribute_that_no_entity_has_is_refused_with_the_attributes(kb):
    with pytest.raises(
        UnknownName, match=r"there are: band, city, river.*, country=….*did you mean 'country=…'"
    ):
        reconciler(kb, kind="countri=")


def test_a_value_that_no_entity_has_is_refused_with_the_values(kb):
    with pytest.raises(
        UnknownName, match=r"'country=Germani'; there are: country=.*mean 'country=Germany'\?"
    ):
        reconciler(kb, kind="country=Germani")
    with pytest.raises(UnknownName, match=r"'country'; there are: country=.*Germany"):
        reconciler(kb, kind="country")


# -- what it needs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"top": 0}, "top is 0; it is 1 or more"),
        ({"threshold": 1.5}, "threshold is 1.5; it is from 0 to 1"),
        ({"threshold": -1}, "threshold is -1"),
        ({"kind": " "}, "kind is empty"),
        ({"kind": "k" * 1_001}, "1,001"),
    ],
)
def test_a_setting_that_is_out_of_range_is_refused(kb, settings, message):
    with pytest.raises(UsageError, match=message):
        reconciler(kb, **settings)


def test_a_build_without_an_index_is_refused(kb, tmp_path):
    build = publish_as_format_2(kb.store.folder, tmp_path, "old").build
    with kgkit.open_kb("old", tmp_path) as old, pytest.raises(NotThere, match=f"old@{build}"):
        Reconciler(old)


def test_a_surface_that_the_index_has_and_the_table_has_not_is_no_candidate(kb, monkeypatch):
    candidates = type(kb.store).candidates

    def candidates_but_bern(self, surface, *, prefer_case):
        return None if surface == "bern" else candidates(self, surface, prefer_case=prefer_case)

    monkeypatch.setattr(type(kb.store), "candidates", candidates_but_bern)
    assert "Q2" not in keys(reconciler(kb, top=10)("Bernn"))


def test_what_was_added_to_a_kb_is_a_candidate(tmp_path):
    build(tmp_path, RECORDS, name="places").close()
    kgkit.add_to_kb(
        "places", [{"key": "Q9", "label": "Ouagadougou", "aliases": ["Ouagadougou"]}], home=tmp_path
    )
    assert kgkit.reconcile("Ouagadugu", "places", home=tmp_path).key == "Q9"


def test_a_damaged_index_is_damage_to_the_kb(tmp_path):
    with build(tmp_path, RECORDS, name="places") as kb:
        path = kb.store.folder / TRIGRAMS
    content = bytearray(path.read_bytes())
    content[-416:-16] = b"\xff" * 400  # numbers of surfaces; what stands behind is looked at first
    path.write_bytes(content)
    with kgkit.open_kb("places", tmp_path) as kb:
        for look_up in (
            lambda: Reconciler(kb)("Berlinn"),
            lambda: kb.similar_surfaces("Berlinn"),
            lambda: kb.candidates("Berlinn", fuzzy=True),
        ):
            with pytest.raises(DamagedKB):
                look_up()
        assert kb.store.damage_found
