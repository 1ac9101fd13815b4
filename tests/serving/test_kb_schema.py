"""Types and properties of a knowledge base."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgkit.serving import kb_schema
from kgkit.serving.kb_schema import (
    FIELDS,
    SchemaCache,
    properties_of_type,
    property_values,
    read_schema,
)
from tests.city_toys import CITIES


def test_types_are_counted_largest_first_and_kinds_are_types(cities_kb):
    schema = read_schema(cities_kb)
    assert list(schema.types.items()) == [
        ("place", 8),
        ("city", 5),
        ("country", 3),
        ("capital", 2),
        ("<b>", 1),
        ("thing", 1),
        ("zoo", 1),
    ]
    assert schema.is_complete


def test_attributes_are_counted_by_the_entities_that_have_them(cities_kb):
    attributes = read_schema(cities_kb).attributes
    assert attributes == {
        name: sum(name in entity.attributes for entity in CITIES)
        for name in ("population", "area", "empty", "founded", "nested", "official", "twins")
    }
    assert next(iter(attributes)) == "population"


def test_properties_are_relations_attributes_and_fields_each_once(cities_kb):
    schema = read_schema(cities_kb)
    assert set(schema.relations) == {"country", "capital_of", "has_capital"}
    assert schema.properties == (*schema.relations, *schema.attributes, *FIELDS)
    assert len(set(schema.properties)) == len(schema.properties)


def test_a_large_knowledge_base_is_sampled(cities_kb, monkeypatch):
    monkeypatch.setattr(kb_schema, "_MAX_READ", 5)
    monkeypatch.setattr(kb_schema, "_SAMPLE", 5)
    schema = read_schema(cities_kb)
    assert sum(schema.types[kind] for kind in ("place", "zoo", "thing") if kind in schema.types) == 5
    assert not schema.is_complete
    assert schema.may_have("a type that was not seen")


def test_more_types_than_are_shown_are_no_complete_list(cities_kb, monkeypatch):
    monkeypatch.setattr(kb_schema, "_MAX_NAMES", 2)
    schema = read_schema(cities_kb)
    assert (list(schema.types), schema.is_complete) == (["place", "city"], False)


def test_an_attribute_that_is_not_shown_for_want_of_room_may_be_selected_by(cities_kb, monkeypatch):
    schema = read_schema(cities_kb)
    assert schema.may_select("twins=Rome") and not schema.may_select("river=Rome")
    monkeypatch.setattr(kb_schema, "_MAX_NAMES", len(schema.types) - 1)
    monkeypatch.setattr(kb_schema, "types_of", lambda entity: (entity.kind,))
    shortened = read_schema(cities_kb)
    assert len(shortened.types) < len(schema.attributes) > len(shortened.attributes)
    for name in schema.attributes:
        assert shortened.may_select(f"{name}=1")


def test_properties_of_a_type_are_those_that_its_entities_have(cities_kb):
    schema = read_schema(cities_kb)
    names = properties_of_type(cities_kb, schema, "city")
    assert names[:2] == ["country", "capital_of"]
    assert set(names) == {"country", "capital_of", *schema.attributes, *FIELDS}
    assert properties_of_type(cities_kb, schema, "country")[:1] == ["has_capital"]


@pytest.mark.parametrize("name", ["", "river"])
def test_of_no_type_all_properties_are_proposed(cities_kb, name):
    schema = read_schema(cities_kb)
    assert properties_of_type(cities_kb, schema, name) == list(schema.properties)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("population", [3677472]),
        ("area", [891.3]),
        ("founded", ["1237"]),
        ("official", [True]),
        ("twins", ["Paris", "Peking"]),
        ("nested", [{"a": [1, 2]}]),
        ("empty", []),
        ("label", ["Berlin"]),
        ("description", ["capital of Germany"]),
        ("key", ["Q64"]),
        ("kind", ["place"]),
        ("types", ["city", "capital"]),
        ("surfaces", ["Berlin"]),
        ("url", []),
        ("nonesuch", []),
    ],
)
def test_a_property_has_its_values(cities_kb, name, values):
    assert property_values(cities_kb, cities_kb["Q64"], name, 10) == values


def test_a_relation_has_entities_and_its_inverse_too(cities_kb):
    assert [each.key for each in property_values(cities_kb, cities_kb["Q64"], "country", 10)] == ["Q183"]
    assert [each.key for each in property_values(cities_kb, cities_kb["Q183"], "has_capital", 10)] == ["Q64"]


def test_requests_that_come_at_once_wait_for_one_reading(cities_kb, monkeypatch):
    cache, reads = SchemaCache(), []

    def read_slowly(kb):
        reads.append(kb.name)
        time.sleep(0.05)
        return read_schema(kb)

    monkeypatch.setattr(kb_schema, "read_schema", read_slowly)
    with ThreadPoolExecutor(4) as pool:
        schemas = list(pool.map(cache, [cities_kb] * 8))
    assert reads == ["cities"]
    assert all(schema is schemas[0] for schema in schemas)


def test_only_the_schemas_that_were_asked_for_last_stay(cities_kb, cities_service, monkeypatch):
    monkeypatch.setattr(kb_schema, "_CACHE_BYTES", 10)
    cache = SchemaCache()
    first = cache(cities_kb)
    cache(cities_service.kb("wiki"))
    assert cache(cities_kb) is not first
    assert cache(cities_kb) == first
