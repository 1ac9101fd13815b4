"""The records of a built KB are what it was built of, and make the same KB again."""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kgkit
from kgkit.building import (
    Alias,
    Builder,
    Entity,
    Files,
    Form,
    KBProperties,
    KBRecords,
    Record,
    Redirect,
    SourceInfo,
    Triple,
)
from kgkit.building.build import build_kb
from kgkit.building.records import StoredRecords
from kgkit.errors import SourceError, UnknownName, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.kb.differences import differences
from tests.small_kb import fold
from tests.toys import LINKS, PAGES, source_file

LONG = "ein sehr langer Name, " * 30
"""660 bytes: more than LMDB takes for a key."""


class Stated(Builder):
    """Yields the records it is given, of a source that states its own properties."""

    def __init__(self, records: Sequence[Record], properties: KBProperties = KBProperties()) -> None:
        self.records, self.stated = records, properties

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="Stated", licence="CC0-1.0"), [source], self.stated)

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        yield from self.records


class Copy(Builder):
    """Makes a KB of another one, out of all that it says of itself."""

    def look(self, source: Path) -> Files:
        raise UsageError("a copy is made of a knowledge base")

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        return iter(())

    def derive(self, kb: KBRecords) -> Iterator[Record]:
        return every(kb)


def every(kb: KBRecords) -> Iterator[Record]:
    return chain(kb.entities(), kb.redirects(), kb.aliases(), kb.triples(), kb.forms())


def built(
    folder: Path, name: str, records: Sequence[Record], properties: KBProperties = KBProperties()
) -> KnowledgeBase:
    build_kb(Stated(records, properties), source_file(folder), name=name, home=folder / "home")
    return kgkit.open_kb(name, folder / "home")


def again(folder: Path, kb: KnowledgeBase) -> KnowledgeBase:
    """Build *kb* again, of its own records."""
    stored = StoredRecords(kb)
    return built(folder, "again", [*every(stored)], stored.properties)


def told(kb: KnowledgeBase) -> dict[str, object]:
    stored = StoredRecords(kb)
    return {
        "entities": [*stored.entities()],
        "aliases": [*stored.aliases()],
        "triples": [*stored.triples()],
        "redirects": [*stored.redirects()],
        "forms": [*stored.forms()],
        "properties": stored.properties,
    }


def counts(records: Sequence[Record]) -> dict[tuple[str, str], float]:
    """Return (surface, key) -> count of the aliases among *records*."""
    found: dict[tuple[str, str], float] = {}
    for record in records:
        if isinstance(record, Alias):
            found[record.surface, record.key] = found.get((record.surface, record.key), 0) + record.count
    return found


def counts_of(kb: KnowledgeBase) -> dict[tuple[str, str], float]:
    aliases = [*StoredRecords(kb).aliases()]
    found = counts(aliases)
    assert len(found) == len(aliases), "a pair is told twice"
    return found


# -- the toy, by hand -----------------------------------------------------------------

INVERSES = {"in_category": "has_member", "part_of": "has_part", "before": "after", "near": "near"}


@pytest.fixture
def toy_again(tmp_path):
    properties = KBProperties(INVERSES, 0.5, "alias", "de")
    with built(tmp_path, "toy", [*LINKS, *PAGES], properties) as kb, again(tmp_path, kb) as other:
        yield kb, other


def test_the_same_records_come_out_of_a_kb_built_of_them(toy_again):
    kb, other = toy_again
    assert told(kb) == told(other)
    assert list(differences(kb, other)) == []


def test_entities_can_be_asked_for_by_kind(toy_again):
    stored = StoredRecords(toy_again[0])
    assert [entity.key for entity in stored.entities("category")] == ["Fruit", "Company"]
    with pytest.raises(UnknownName):
        [*stored.entities("person")]


def test_triples_are_told_once_in_the_stored_direction(toy_again):
    found = [*StoredRecords(toy_again[0]).triples()]
    assert len({*found}) == len(found)
    assert Triple("Apple", "in_category", "Fruit") in found
    assert not [triple for triple in found if triple.relation in ("has_member", "has_part")]
    assert Triple("York", "before", "New_York_City") in found  # both ways differ: both are kept
    assert Triple("New_York_City", "after", "York") in found


def test_forms_and_traits_are_told(toy_again):
    stored = StoredRecords(toy_again[0])
    assert [*stored.forms()] == [Form("geese", "goose", "n")]
    found = stored.properties
    assert (found.smoothing, found.generator, found.language) == (0.5, "alias", "de")
    # `before` and `after` are not told by each other: the source has them differently.
    assert found.inverses == {"in_category": "has_member", "part_of": "has_part", "near": "near"}


def test_it_says_what_it_is_the_records_of(toy_again):
    kb, _ = toy_again
    stored = StoredRecords(kb)
    assert (stored.name, stored.build, stored.info.name) == ("toy", kb.build, "Stated")


def test_a_builder_is_given_them_by_the_source_kb(tmp_path):
    with built(tmp_path, "toy", [*LINKS, *PAGES]) as kb:
        build_kb(Copy(), "kb:toy", name="copy", home=tmp_path / "home")
        with kgkit.open_kb("copy", tmp_path / "home") as copy:
            assert [*StoredRecords(copy).entities()] == [*StoredRecords(kb).entities()]
            assert counts_of(copy) == counts_of(kb)
            assert copy.manifest.source.path == f"kb:toy@{kb.build}"


# -- what is easily lost --------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 1.0, 0.25])
@pytest.mark.parametrize("count", [0, 1, 7, 999_999, 1_000_000])
def test_a_count_comes_back_as_itself_beside_large_and_small_ones(tmp_path, smoothing, count):
    records: list[Record] = [Entity("a"), Entity("b"), Entity("c")]
    records += [
        Alias("x", "a", count),
        Alias("X", "a", 3),
        Alias("x", "b", 1_000_000),
        Alias("X", "c", 0),
    ]
    with built(tmp_path, "one", records, KBProperties(smoothing=smoothing)) as kb:
        assert counts_of(kb) == counts(records)
        with again(tmp_path, kb) as other:
            assert told(other) == told(kb)
            assert other.build == kb.build


def test_a_count_that_no_row_can_hold_is_refused(tmp_path):
    with pytest.raises(SourceError):
        built(tmp_path, "one", [Entity("a"), Alias("x", "a", 1e39)])


def test_long_names_are_told_in_full(tmp_path):
    records = [
        Entity(LONG + "key", LONG + "label", LONG, types=(LONG,), attributes={LONG: LONG}),
        Entity("short"),
        Alias(LONG + "a", LONG + "key", 5),
        Alias((LONG + "b").upper(), "short", 6),
        Alias((LONG + "b").lower(), "short", 7),
        Triple(LONG + "key", LONG + "relation", "short"),
    ]
    with built(tmp_path, "long", records) as kb:
        assert counts_of(kb) == counts(records)
        assert [*StoredRecords(kb).triples()] == [records[-1]]
        assert [entity.key for entity in StoredRecords(kb).entities()] == [LONG + "key", "short"]
        assert [*StoredRecords(kb).redirects()] == []  # a long key is no redirect to itself
        with again(tmp_path, kb) as other:
            assert told(other) == told(kb)


# -- random records -------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", "d", "Straße", LONG + "key", LONG])
SURFACES = st.sampled_from(
    ["x", "X", "x y", "X  y", "ß", "SS", "ss", "É", "e\u0301", "苹果", " x ", LONG, LONG.upper(), "", "  "]
)
WHOLE = st.integers(0, 3) | st.integers(0, 1_000_000)
SMOOTHINGS = st.sampled_from([0.0, 1.0])


def records(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[list[Record]]:
    others: st.SearchStrategy[Record] = st.one_of(
        st.builds(Alias, SURFACES, KEYS, numbers, st.none() | KEYS),
        st.builds(Triple, KEYS, st.sampled_from(["up", "down", "like", LONG]), KEYS),
        st.builds(Redirect, st.sampled_from(["c", "d", "e", "f"]), KEYS),
        st.builds(Form, st.sampled_from(["xs", "Xes", "yy"]), SURFACES, st.sampled_from("nv")),
    )
    entities = st.lists(st.builds(Entity, KEYS, SURFACES, SURFACES), unique_by=lambda entity: entity.key)
    return st.tuples(entities, st.lists(others, max_size=30)).map(
        lambda both: [Entity("first"), *both[0], *both[1]]
    )


def expected_counts(kb: KnowledgeBase, given: Sequence[Record]) -> dict[tuple[str, str], float]:
    """Return the counts of *given* by the key that each leads to, of those that are kept."""
    found: dict[tuple[str, str], float] = {}
    for (surface, key), count in counts(given).items():
        entity = kb.get(key)
        if entity is not None and fold(surface):
            found[surface, entity.key] = found.get((surface, entity.key), 0) + count
    return found


@given(records(WHOLE.map(float)), SMOOTHINGS)
def test_random_records_come_back_and_make_the_same_kb(given_records, smoothing):
    properties = KBProperties({"up": "down", "like": "like"}, smoothing, "lemma", "en")
    with (
        tempfile.TemporaryDirectory() as folder,
        built(Path(folder), "one", given_records, properties) as kb,
        again(Path(folder), kb) as other,
    ):
        assert counts_of(kb) == expected_counts(kb, given_records)
        once, twice = told(kb), told(other)
        del once["properties"], twice["properties"]  # a relation without a triple is not told of
        assert once == twice
        assert [*differences(kb, other)] == []


@pytest.mark.slow
@given(records(st.floats(0, 1_000_000) | st.floats(0, 1)), SMOOTHINGS)
def test_fractional_counts_come_back_nearly(given_records, smoothing):
    properties = KBProperties(smoothing=smoothing)
    with (
        tempfile.TemporaryDirectory() as folder,
        built(Path(folder), "one", given_records, properties) as kb,
        again(Path(folder), kb) as other,
    ):
        wanted = expected_counts(kb, given_records)
        assert counts_of(kb) == pytest.approx(wanted, rel=2e-5, abs=2e-5)
        assert counts_of(other) == pytest.approx(wanted, rel=4e-5, abs=4e-5)
