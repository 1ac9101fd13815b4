"""Queries of the Reconciliation Service API, decoded."""

import json

import pytest

from kgkit.serving.problems import Problem
from kgkit.serving.reconciliation import (
    MAX_PROPERTIES,
    MAX_VALUES,
    EntityValue,
    ExtensionProperty,
    ReconciliationQuery,
    read_extension,
    read_queries,
)
from kgkit.serving.settings import Limits

LIMITS = Limits(names=10, characters=100)


def queries(batch):
    return read_queries(json.dumps(batch), LIMITS)


def problem_of(text, read=read_queries):
    with pytest.raises(Problem) as caught:
        read(text if isinstance(text, str) else json.dumps(text), LIMITS)
    return caught.value


def test_a_query_with_every_field_is_read():
    batch = {
        "q0": {
            "query": "Berlin",
            "type": ["city", "capital", "city"],
            "type_strict": "all",
            "limit": 3,
            "properties": [
                {"pid": "country", "v": {"id": "Q183", "name": "Germany"}},
                {"pid": "population", "v": [1, 2.5, True, "3", {"id": "Q1"}]},
            ],
        }
    }
    query = queries(batch)["q0"]
    assert (query.query, query.limit, query.type_strict) == ("Berlin", 3, "all")
    assert query.types == ("city", "capital")
    assert [each.pid for each in query.properties] == ["country", "population"]
    assert query.properties[0].values == [EntityValue("Q183", "Germany")]
    assert query.properties[1].values == [1, 2.5, True, "3", EntityValue("Q1")]


def test_a_type_may_be_one_string_or_none():
    batch = queries(
        {"a": {"query": "x", "type": "city"}, "b": {"query": "x"}, "c": {"query": "x", "type": ""}}
    )
    assert [query.types for query in batch.values()] == [("city",), (), ()]


def test_fields_of_other_versions_are_read_past():
    assert queries({"q": {"query": "x", "conditions": [], "userLang": "de"}}) == {
        "q": ReconciliationQuery("x")
    }


@pytest.mark.parametrize("limit", [0, 1, 5.0, 10**18])
def test_a_limit_is_a_whole_number(limit):
    assert queries({"q": {"query": "x", "limit": limit}})["q"].limit == limit


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(None, id="null"),
        pytest.param("x", id="a text"),
        pytest.param([], id="a list"),
        pytest.param({"query": "x", "limit": -1}, id="less than no candidate"),
        pytest.param({"query": "x", "limit": 1.5}, id="half a candidate"),
        pytest.param({"query": ["x"]}, id="a list of names"),
        pytest.param({"query": "x", "type": {"id": "city"}}, id="a type as an object"),
        pytest.param({"query": "x", "type_strict": "perhaps"}, id="a strictness that is none"),
        pytest.param({"query": "x", "properties": [{"p": "a", "v": 1}]}, id="a property without a pid"),
        pytest.param(
            {"query": "x", "properties": [{"pid": "a", "v": {"name": "b"}}]}, id="a value without id"
        ),
        pytest.param({"query": "x", "properties": [{"pid": "a", "v": [[1]]}]}, id="a list in a list"),
    ],
)
def test_a_query_that_is_none_is_empty_and_costs_no_other_one(query):
    batch = queries({"one": {"query": "x"}, "odd": query, "two": {"query": "y"}})
    assert batch == {
        "one": ReconciliationQuery("x"), "odd": ReconciliationQuery(), "two": ReconciliationQuery("y"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "name"),
    [(737, "737"), (-2.5, "-2.5"), (10**30, "1" + "0" * 30), (" x ", "x"), (None, ""), ("\ud83d", "\ufffd")],
)
def test_a_name_may_be_a_number_nothing_or_half_a_surrogate_pair(query, name):
    assert queries({"q": {"query": query}})["q"].name == name


@pytest.mark.parametrize("properties", [None, [None], [{"pid": "a", "v": None}], [{"pid": "a", "v": [None]}]])
def test_a_property_without_a_value_asks_for_nothing(properties):
    known = {"pid": "b", "v": [1, None, "c"]}
    query = queries({"q": {"query": "x", "limit": 0, "properties": [*(properties or []), known]}})["q"]
    assert [(each.pid, each.values) for each in query.filters] == [("b", [1, "c"])]
    assert queries({"q": {"query": "x", "properties": properties}})["q"].filters == []


@pytest.mark.parametrize(
    "query",
    [
        {"type": [*map(str, range(MAX_PROPERTIES + 1))]},
        {"properties": [{"pid": "a", "v": 1}] * (MAX_PROPERTIES + 1)},
    ],
)
def test_more_types_or_properties_than_a_query_has_are_refused(query):
    problem = problem_of({"ok": {"query": "x"}, "second": query})
    assert (problem.status, problem.field, "'second'" in problem.detail) == (422, "queries", True)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{", '"x"', "[" * 100_000, '{"a":' * 100_000,
        '{"q": {"query": "x", "limit": NaN}}',
    ],
)  # fmt: skip
def test_what_is_no_batch_is_refused(text):
    assert problem_of(text).status == 422


def test_more_queries_or_characters_than_the_limits_are_refused():
    assert len(queries({str(number): {"query": "x"} for number in range(10)})) == 10
    assert problem_of({str(number): {"query": "x"} for number in range(11)}).status == 413
    assert problem_of({"q": {"query": "x" * 101}}).status == 413


def test_the_values_of_a_batch_are_counted_together():
    query = {"query": "x", "properties": [{"pid": "a", "v": ["b"] * (MAX_VALUES // 2)}]}
    assert len(queries({"a": query, "b": query})) == 2
    problem = problem_of({"a": query, "b": query, "c": {"properties": [{"pid": "a", "v": 1}]}})
    assert problem.field == "values"


# -- data extension ---------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "limit"), [(None, 9), (0, 9), ("0", 9), (3, 3), ("3", 3), (3.0, 3), (12, 9), ("99999", 9)]
)
def test_the_limit_of_a_property_is_a_number_or_its_digits(setting, limit):
    assert ExtensionProperty("a", {"limit": setting}).limit(9) == limit


@pytest.mark.parametrize("setting", [-1, 1.5, "x", [], {}, "٣", True, "9" * 5_000])
def test_another_limit_of_a_property_is_refused(setting):
    with pytest.raises(Problem, match="the limit of 'a' is no whole number"):
        ExtensionProperty("a", {"limit": setting}).limit(9)


@pytest.mark.parametrize(
    "query",
    [
        {}, {"ids": ["a"]}, {"ids": "a", "properties": []}, {"ids": [1], "properties": []},
        {"ids": [], "properties": ["a"]}, {"ids": [], "properties": [{"settings": {}}]},
        {"ids": [], "properties": [{"id": str(number)} for number in range(MAX_PROPERTIES + 1)]},
    ],
)  # fmt: skip
def test_what_is_no_extension_is_refused(query):
    assert problem_of(query, read_extension).status == 422


def test_more_entities_than_the_limit_are_refused():
    assert problem_of({"ids": ["a"] * 11, "properties": []}, read_extension).status == 413


def test_more_cells_than_an_answer_has_are_refused():
    query = {"ids": ["a"] * 1_000, "properties": [{"id": str(number)} for number in range(50)]}
    with pytest.raises(Problem) as caught:
        read_extension(json.dumps(query), Limits())
    assert caught.value.status == 413
