"""What was exported and imported again is equal, or differs by the losses that the format lists."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kgkit.building import Alias, Entity, Form, Redirect, Triple
from kgkit.building.build import build_kb
from kgkit.building.records import StoredRecords
from kgkit.exchange import FORMATS
from kgkit.kb import differences
from tests.exchange_helpers import HOWNET_LIKE, odd_records, returned, told, written
from tests.mini_wordnet import mini_wordnet
from tests.small_kb import build, facts_kb, fold, lexicon_kb, surfaces_kb

RICH = [name for name, made in FORMATS.items() if not made.losses]


@pytest.fixture(params=RICH)
def rich(request):
    return FORMATS[request.param]


@pytest.fixture(scope="module")
def wordnet_home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mini")
    build_kb(WordNetBuilder(), mini_wordnet(folder / "source"), name="mini", home=folder)
    return folder


def test_all_formats_but_three_lose_nothing():
    assert [name for name in FORMATS if name not in RICH] == ["graphml", "tsv", "wn-lmf"]


def test_the_toy_with_all_its_oddities_comes_back(rich, toy, tmp_path):
    with returned(toy, rich, tmp_path) as again:
        assert list(differences(toy, again)) == []
        assert told(again) == told(toy)


@pytest.mark.parametrize("make", [facts_kb, lexicon_kb, surfaces_kb])
def test_a_graph_a_lexicon_and_many_surfaces_come_back(rich, make, tmp_path):
    with make(tmp_path / "first") as kb, returned(kb, rich, tmp_path) as again:
        assert list(differences(kb, again)) == []
        assert told(again) == told(kb)


def test_a_wordnet_comes_back_with_its_order_of_senses(rich, wordnet_home, tmp_path):
    with kgkit.open_kb("mini", home=wordnet_home) as kb, returned(kb, rich, tmp_path) as again:
        assert told(again) == told(kb)
        for alias in StoredRecords(kb).aliases():
            assert again.candidates(alias.surface) == kb.candidates(alias.surface)


def test_names_that_break_files_come_back(rich, tmp_path):
    kb = build(tmp_path / "first", odd_records(), inverses={"is_a": "has_kind"}, smoothing=0.5)
    with kb, returned(kb, rich, tmp_path) as again:
        assert list(differences(kb, again)) == []
        assert told(again) == told(kb)


def test_a_second_round_writes_the_same_files(rich, toy, tmp_path):
    with returned(toy, rich, tmp_path) as again:
        (tmp_path / "second").mkdir()
        (tmp_path / "third").mkdir()
        with returned(again, rich, tmp_path / "second") as third:
            one, two = (
                written(again, rich, tmp_path / "third"),
                written(third, rich, tmp_path / "second" / ".."),
            )
            files = sorted(path.name for path in one.iterdir()) if rich.folder else [""]
            for name in files:
                assert (one / name).read_bytes() == (two / name).read_bytes()


TEXT = st.text(
    st.one_of(
        st.sampled_from(list(" \t\n\r\"'\\|;,:%#@&<>{}[]()/_-+.!?*~^=0aA\x01\x7f\u2028é苹")),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=12,
)
KEYS = TEXT.filter(bool)


@st.composite
def knowledge(draw):
    """A few entities of any names, with every kind of record about them."""
    keys = draw(st.lists(KEYS, min_size=1, max_size=4, unique=True))
    key = st.sampled_from(keys)
    plain = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
        max_leaves=4,
    )
    entities = [
        Entity(
            name, draw(TEXT), draw(TEXT), draw(TEXT), draw(TEXT), tuple(draw(st.lists(TEXT, max_size=2))),
            draw(st.dictionaries(TEXT, plain, max_size=2)),
        )
        for name in keys
    ]  # fmt: skip
    aliases = draw(
        st.lists(st.builds(Alias, KEYS, key, st.integers(0, 1000).map(float), st.none() | key), max_size=5)
    )
    triples = draw(st.lists(st.builds(Triple, key, KEYS, key), max_size=5))
    redirects = draw(
        st.lists(st.builds(Redirect, KEYS.filter(lambda name: name not in keys), key), max_size=2)
    )
    forms = draw(st.lists(st.builds(Form, KEYS.filter(fold), KEYS.filter(fold), TEXT), max_size=2))
    return [*entities, *aliases, *triples, *redirects, *forms]


@pytest.mark.parametrize("name", RICH)
@given(records=knowledge())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_anything_comes_back(name, tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("any")
    with build(folder / "first", records, smoothing=1.0) as kb, returned(kb, FORMATS[name], folder) as again:
        assert list(differences(kb, again)) == []
        assert told(again) == told(kb)


# -- the three that lose ----------------------------------------------------


def triples_only(kb):
    """Return what is left of *kb* by the losses of three columns."""
    triples = [(triple.subject, triple.relation, triple.object) for triple in StoredRecords(kb).triples()]
    keys = list(dict.fromkeys(key for subject, _, other in triples for key in (subject, other)))
    return {
        "entities": [Entity(key, key, id=number) for number, key in enumerate(keys)],
        "aliases": sorted((key, key, 0.0, None) for key in keys),
        "triples": sorted(triples),
        "redirects": [],
        "forms": [],
    }


@pytest.mark.parametrize("make", [facts_kb, "toy", "odd"])
def test_three_columns_lose_what_they_list_and_nothing_else(make, toy, tmp_path):
    if make == "odd":
        kb = build(tmp_path / "first", odd_records())
    else:
        kb = toy if make == "toy" else make(tmp_path / "first")
    with returned(kb, FORMATS["tsv"], tmp_path) as again:
        found = told(again)
        found["aliases"] = sorted((one.surface, one.key, one.count, one.sense) for one in found["aliases"])
        assert {name: found[name] for name in triples_only(kb)} == triples_only(kb)
        assert dict(again.relations and StoredRecords(again).properties.inverses) == {}


def test_a_kb_of_nothing_but_triples_comes_back_from_three_columns(tmp_path):
    keys = list(dict.fromkeys(key for subject, _, other in HOWNET_LIKE for key in (subject, other)))
    records = [*(Entity(key, key) for key in keys), *(Alias(key, key) for key in keys)]
    records += [Triple(*triple) for triple in HOWNET_LIKE]
    with build(tmp_path / "first", records, smoothing=1.0) as kb:
        with returned(kb, FORMATS["tsv"], tmp_path) as again:
            assert list(differences(kb, again)) == []
        with (tmp_path / f"{kb.name}-tsv.tsv").open() as lines:
            assert next(lines) == "苹果\t义原\t水果\n"


def test_a_wordnet_comes_back_from_wn_lmf_but_for_the_order_of_entities(wordnet_home, tmp_path):
    with kgkit.open_kb("mini", home=wordnet_home) as kb, returned(kb, FORMATS["wn-lmf"], tmp_path) as again:
        found = [*differences(kb, again)]
        assert {one.what for one in found} <= {"entity", "alias", "form"}
        spellings = [one.old for one in found if one.what == "alias"]  # further ones of a sense
        assert all(again.store.lemmas(fold(alias.surface)) for alias in spellings)
        for old, new in ((one.old, one.new) for one in found if one.what == "entity"):
            lost = {"frames": None, "lemmas": None}
            assert {**old.attributes, **lost} == {**new.attributes, **lost}
            assert (old.key, old.label) == (new.key, new.label)
        assert again.manifest.source.name == kb.manifest.source.name
        assert again.manifest.language == "en"
        words = {(alias.surface.casefold(), kb[alias.key].pos) for alias in StoredRecords(kb).aliases()}
        lost = [one.old for one in found if one.what == "form" and one.old is not None]
        assert all((form.lemma, form.pos) not in words for form in lost)


def test_wn_lmf_loses_what_it_lists_and_nothing_else(toy, tmp_path):
    with returned(toy, FORMATS["wn-lmf"], tmp_path) as again:
        found = {(one.what, one.change) for one in differences(toy, again)}
        assert [entity.key for entity in again] == [entity.key for entity in toy]
        assert [entity.label for entity in again] == [entity.label for entity in toy]
    # Kinds, types and attributes of synsets, redirects, and a form of a word that is no alias.
    assert found == {("entity", "changed"), ("form", "removed"), ("redirect", "removed")}


def test_graphml_loses_what_it_lists_and_nothing_else(toy, tmp_path):
    with returned(toy, FORMATS["graphml"], tmp_path) as again:
        assert [*again] == [*toy]
        assert told(again)["triples"] == told(toy)["triples"]
        assert [alias.surface for alias in StoredRecords(again).aliases()] == sorted(
            (entity.label for entity in toy), key=fold
        )
