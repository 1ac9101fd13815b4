"""What names an entity outside of its KB: from the builder through the manifest to the handle."""

import msgspec
import pytest

import kgkit
from kgkit.building.records import StoredRecords
from kgkit.errors import DamagedKB, SourceError, UnknownEntity, UsageError
from kgkit.exchange import FORMATS
from kgkit.store import verify

PLANETS = [
    {"key": "Mars", "attributes": {"wikidata": "Q111", "page_id": 3, "radius": 3389}},
    {"key": "Red planet", "attributes": {"wikidata": ["Q1", "Q2"]}},
    {"key": "Pluto"},
]
PATTERN = "https://planets.example/{key:_}"
HEAD = {"kgkit": {"name": "Planets", "url_pattern": PATTERN, "identifiers": ["wikidata", "page_id"]}}


def build(folder, records=(HEAD, *PLANETS), **options):
    return kgkit.build_kb("jsonl", list(records), name="planets", home=folder, **options)


def open_planets(folder):
    return kgkit.open_kb("planets", folder)


def test_a_kb_knows_the_identifiers_and_the_address_of_an_entity(tmp_path):
    built = build(tmp_path)
    assert verify(built.path) == []
    with open_planets(tmp_path) as kb:
        assert kb.identifiers("Mars") == {"wikidata": "Q111", "page_id": 3}
        assert kb.identifiers(kb["Red planet"]) == {"wikidata": ["Q1", "Q2"]}
        assert kb.identifiers(2) == {}
        assert kb.url("Red planet") == "https://planets.example/Red_planet"
        with pytest.raises(UnknownEntity):
            kb.url("Terra")


def test_options_of_a_build_come_before_what_its_source_says(tmp_path):
    build(tmp_path, url_pattern="https://w.example/{wikidata}", identifiers="page_id")
    with open_planets(tmp_path) as kb:
        assert (kb.identifiers("Mars"), kb.url("Mars")) == ({"page_id": 3}, "https://w.example/Q111")
        assert kb.url("Red planet") is None  # two of them
        assert kb.url("Pluto") is None
    build(tmp_path, url_pattern="", identifiers=[])
    with open_planets(tmp_path) as kb:
        assert (kb.identifiers("Mars"), kb.url("Mars")) == ({}, None)


def test_another_pattern_makes_another_build_and_none_makes_none(tmp_path):
    builds = [
        build(tmp_path, url_pattern=pattern).build for pattern in (None, PATTERN, "https://b.example/{key}")
    ]
    assert builds[0] == builds[1] != builds[2]


@pytest.mark.parametrize("pattern", ["javascript:{key}", "https://example.org/"])
def test_a_pattern_that_is_none_is_refused_before_anything_is_read(tmp_path, pattern):
    with pytest.raises(UsageError, match="the URL pattern"):
        build(tmp_path, url_pattern=pattern)
    with pytest.raises(SourceError, match="the URL pattern"):
        build(tmp_path, [{"kgkit": {"url_pattern": pattern}}, *PLANETS])


def test_a_manifest_with_a_pattern_that_is_none_is_refused(tmp_path):
    path = build(tmp_path).path / "manifest.json"
    manifest = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**manifest, "url_pattern": "javascript:alert({key})"}))
    with pytest.raises(DamagedKB, match="does not begin with https"):
        open_planets(tmp_path)


def test_a_key_that_is_an_address_is_that_of_its_entity(tmp_path):
    build(tmp_path, [{"key": "http://e.org/a"}, {"key": "javascript:alert(1)"}])
    with open_planets(tmp_path) as kb:
        assert kb.url("http://e.org/a") == "http://e.org/a"
        assert kb.url("javascript:alert(1)") is None


def test_search_results_have_identifiers_and_an_address(tmp_path):
    build(tmp_path)
    with open_planets(tmp_path) as kb:
        result = kb.search("mars")[0]
        assert (result.ids, result.url) == (kb.identifiers("Mars"), kb.url("Mars"))


@pytest.mark.parametrize("name", sorted({"neo4j", "jsonl", "kgtk", "turtle"} & set(FORMATS)))
def test_patterns_and_identifiers_survive_an_export(tmp_path, name):
    build(tmp_path)
    path = tmp_path / f"planets{(*FORMATS[name].suffixes, '')[0]}"
    with open_planets(tmp_path) as kb:
        kgkit.export_kb(kb, path, format=name)
        expected = StoredRecords(kb).properties
    kgkit.import_kb(path, format=name, name="again", home=tmp_path)
    with kgkit.open_kb("again", tmp_path) as again:
        properties = StoredRecords(again).properties
        assert (properties.url_pattern, list(properties.identifiers)) == (PATTERN, ["wikidata", "page_id"])
        assert properties.url_pattern == expected.url_pattern


def test_what_is_made_of_a_kb_has_its_pattern_and_what_is_added_changes_none(tmp_path):
    build(tmp_path)
    kgkit.add_to_kb("planets", [{"key": "Venus"}], home=tmp_path)
    with open_planets(tmp_path) as kb:
        assert kb.url("Venus") == "https://planets.example/Venus"


def test_the_catalog_has_the_pattern_and_the_identifiers_of_a_build(tmp_path):
    from kgkit.catalog import Catalog
    from kgkit.home import Home

    build(tmp_path)
    with Catalog.open(Home(tmp_path)) as catalog:
        (row,) = catalog.builds()
        assert (row.url_pattern, row.identifiers) == (PATTERN, ["wikidata", "page_id"])
