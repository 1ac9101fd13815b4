"""The surfaces of an entity: those by which candidates give it, whoever wrote the build."""

from collections import defaultdict

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.building.add import add_to_kb
from kgkit.building.records import StoredRecords
from kgkit.errors import FormatMismatch, UnknownEntity, UsageError
from kgkit.kb import EntitySurface, differences
from kgkit.store import StoreReader, verify
from tests.old_format import publish_as_format_2
from tests.toys import ToyBuilder, build_toy, entities, source_file

LONG = "The " + "long " * 200 + "name"
EXTRA = [
    Entity("Orchard", "orchard"),
    Alias("Orchard", "Orchard", 2),
    Alias(LONG, "Orchard", 1),
    Alias("apple", "Orchard", 7),
    Alias("APPLE", "Apple", 3),
    Alias("a\0b", "Apple"),
    Alias("the big apple", "York"),
]


@pytest.fixture
def more(tmp_path):
    path = tmp_path / "more.txt"
    path.write_text("more")
    return path


def surfaces_by_entity(kb):
    """Return what `surfaces_of` should give, from all aliases."""
    surfaces = defaultdict(set)
    for alias in StoredRecords(kb).aliases():
        rows = {row.id: row.prior for row in kb.candidates(alias.surface)}
        prior = rows[kb.id(alias.key)]
        surfaces[alias.key].add(EntitySurface(alias.surface, prior, alias.count, alias.sense))
    return surfaces


def check(kb):
    expected = surfaces_by_entity(kb)
    for entity in kb:
        surfaces = kb.surfaces_of(entity)
        assert len(surfaces) == len(set(surfaces))
        assert set(surfaces) == expected[entity.key]
    assert verify(kb.store.folder) == []


@pytest.mark.parametrize("engine", ["memory", "local"])
@pytest.mark.parametrize("min_count", [0, 5])
def test_the_surfaces_of_an_entity_are_those_that_can_mean_it(tmp_path, engine, min_count):
    pytest.importorskip("duckdb")
    home, source = tmp_path / "home", source_file(tmp_path)
    kgkit.build_kb(ToyBuilder(), source, home=home, engine=engine, min_count=min_count)
    with kgkit.open_kb("toy", tmp_path / "home") as kb:
        check(kb)


def test_surfaces_come_by_their_counts_then_by_their_priors_then_alphabetically(toy):
    assert [surface.surface for surface in toy.surfaces_of("Apple")] == ["apple", "Apple", "apples", "苹果"]
    assert toy.surfaces_of("Apple", k=1) == [EntitySurface("apple", pytest.approx(0.8333333), 60.0, None)]
    assert toy.surfaces_of(toy["Apple"], k=0) == []
    assert toy.surfaces_of("Apples") == toy.surfaces_of(toy.id("Apple"))  # a redirect, and an id
    assert toy.surfaces_of("Fruit") == []


def test_surfaces_of_nothing_or_a_negative_number_of_them_is_refused(toy):
    with pytest.raises(UnknownEntity, match="no entity 'Aple'"):
        toy.surfaces_of("Aple")
    with pytest.raises(UsageError, match="k is -1"):
        toy.surfaces_of("Apple", k=-1)


def test_a_surface_is_a_dictionary_without_a_sense_that_there_is_not():
    assert EntitySurface("a", 0.5, 1.0).to_dict() == {"surface": "a", "prior": 0.5, "count": 1.0}
    assert EntitySurface("a", 0.5, 1.0, "a%1").to_dict()["sense"] == "a%1"


def test_added_aliases_are_surfaces_too_and_change_the_priors_of_those_of_others(tmp_path, more):
    build_toy(tmp_path)
    home = tmp_path / "home"
    with kgkit.open_kb("toy", home) as kb:
        before = {surface.surface: surface.prior for surface in kb.surfaces_of("Apple")}
    add_to_kb("toy", more, builder=ToyBuilder(all=EXTRA), home=home)
    with kgkit.open_kb("toy", home) as kb:
        check(kb)
        surfaces = {surface.surface: surface.prior for surface in kb.surfaces_of("Apple")}
        assert set(surfaces) == {*before, "APPLE", "a\0b"}
        assert surfaces["apple"] < before["apple"]
        assert [surface.surface for surface in kb.surfaces_of("Orchard")] == ["apple", "Orchard", LONG]


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_a_build_with_odd_surfaces_has_them_in_the_order_of_their_keys(tmp_path, engine):
    pytest.importorskip("duckdb")
    builder = ToyBuilder(all=[*entities(3), *EXTRA, Entity("Apple"), Entity("York")])
    kgkit.build_kb(builder, source_file(tmp_path), home=tmp_path / "home", engine=engine)
    with kgkit.open_kb("toy", tmp_path / "home") as kb:
        check(kb)
        keys = kb.store.alias_keys(kb.id("Orchard"))
        assert keys == sorted(keys) and len(keys) == 3


def test_a_build_of_format_2_is_read_and_says_how_its_surfaces_are_had(tmp_path):
    built = build_toy(tmp_path)
    home = tmp_path / "home"
    old = publish_as_format_2(built.path, home, "old")
    assert verify(old.folder) == []
    with kgkit.open_kb("old", home) as kb, kgkit.open_kb("toy", home) as new:
        assert kb.candidates("apple") == new.candidates("apple")
        assert list(differences(kb, new)) == []
        with pytest.raises(FormatMismatch, match="format 2, which does not list") as error_info:
            kb.surfaces_of("Apple")
        source = built.manifest.source.path
        assert f"run `kgkit build-kb toy --name old {source} --home {home}`" in str(error_info.value)


def test_what_is_added_to_a_build_of_format_2_makes_another_one_of_it(tmp_path, more):
    home = tmp_path / "home"
    publish_as_format_2(build_toy(tmp_path).path, home, "old")
    added = add_to_kb("old", more, builder=ToyBuilder(all=EXTRA), home=home)
    assert (added.manifest.format, verify(added.path)) == (2, [])
    with kgkit.open_kb("old", home) as kb:
        assert kb["Orchard"].label == "orchard"
        assert not kb.store.has_names


def test_a_reader_lists_the_keys_of_aliases(toy_built):
    reader = StoreReader.open(toy_built.path)
    assert reader.alias_keys(0) == [b"apple", b"apples", "苹果".encode()]
    reader.close()
