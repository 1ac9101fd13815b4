"""Candidates of reconciliation queries, and their scores."""

import pytest

from kgkit.reconciling.reconciler import ReconcileConfig, Reconciler
from kgkit.serving.kb_schema import read_schema
from kgkit.serving.reconciliation import (
    EntityValue,
    PropertyFilter,
    ReconciliationQuery,
    answer_queries,
)
from tests.city_toys import HTML_KEY

ODDS = 9


@pytest.fixture(scope="module")
def answer(cities_service, cities_kb):
    """Answers one query, with all that can be said of it."""
    schema = read_schema(cities_kb)

    def of_query(query=None, properties=(), **fields):
        filters = [PropertyFilter(pid, value) for pid, value in properties]
        batch = {"q": ReconciliationQuery(query, properties=filters, **fields)}
        return answer_queries(cities_service, "cities", schema, batch)["q"]["result"]

    return of_query


def scores(result):
    return {each["id"]: each["score"] for each in result}


def approx(**expected):
    return pytest.approx(expected)


# -- names ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Berlin", "berlin ", "Brelin", "Pekin", "北京", "Untied States", "xyzzy"])
def test_candidates_of_a_name_are_those_of_the_reconciler(answer, cities_kb, name):
    expected = Reconciler(cities_kb, ReconcileConfig(top=5))(name.strip())
    result = answer(name, limit=5)
    assert scores(result) == {each.key: each.score for each in expected.candidates}
    assert [each["match"] for each in result[:1]] == [expected.match for _ in result[:1]]


def test_only_the_first_candidate_can_match(answer):
    assert [(each["id"], each["match"]) for each in answer("Berlin")] == [("Q64", True), ("Q614184", False)]


def test_a_candidate_says_what_it_is(answer):
    first = answer("Berlin")[0]
    assert first == {
        "id": "Q64",
        "name": "Berlin",
        "score": pytest.approx(0.98 * 0.8),
        "match": True,
        "type": [{"id": name, "name": name} for name in ("city", "capital", "place")],
        "features": [{"id": "name_similarity", "value": 1.0}],
        "description": "capital of Germany",
    }


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (2, 2), (None, 2), (0, 2), (10**12, 2)])
def test_no_more_candidates_come_than_were_asked_for(answer, limit, count):
    assert len(answer("Berlin", limit=limit)) == count


def test_the_key_of_an_entity_is_that_entity(answer):
    assert scores(answer("Q614184")) == {"Q614184": 1.0}
    assert answer("Q614184")[0]["match"]
    assert scores(answer(HTML_KEY)) == {HTML_KEY: 1.0}


def test_a_key_that_is_a_name_too_is_a_name(cities_service):
    kb = cities_service.kb("wiki")
    batch = {"q": ReconciliationQuery("Berlin")}
    (result,) = answer_queries(cities_service, "wiki", read_schema(kb), batch).values()
    assert scores(result["result"]) == approx(Berlin=0.98)


# -- types ------------------------------------------------------------------


def test_a_type_leaves_its_probability_to_the_others(answer, cities_kb):
    expected = Reconciler(cities_kb, ReconcileConfig(kind="capital", top=5))("Berlin")
    assert scores(answer("Berlin", type="capital")) == {"Q64": expected.score}
    assert answer("Berlin", type="capital")[0]["features"][1] == {"id": "type_match", "value": True}


def test_of_several_types_a_candidate_has_one(answer):
    types = [{each["id"] for each in row["type"]} for row in answer("Berlin", type=["country", "capital"])]
    assert types and all(each & {"country", "capital"} for each in types)
    assert next(iter(scores(answer("Berlin", type=["country", "capital"])))) == "Q64"


def test_all_types_are_had_where_that_is_asked_for(answer):
    result = answer("Berlin", type=["city", "capital"], type_strict="all")
    assert list(scores(result)) == ["Q64"]


@pytest.mark.parametrize("strict", [None, "any", "all"])
def test_a_type_that_no_entity_has_leaves_no_candidates(answer, strict):
    assert answer("Berlin", type="river", type_strict=strict) == []


def test_a_type_that_should_be_had_is_left_aside_where_none_has_it(answer):
    result = answer("Berlin", type="river", type_strict="should")
    assert scores(result) == scores(answer("Berlin"))
    assert result[0]["features"][1] == {"id": "type_match", "value": False}
    assert set(scores(answer("Berlin", type="capital", type_strict="should"))) == {"Q64"}


def test_a_filter_of_attributes_is_no_type(answer):
    assert answer("Berlin", type="population=9425") == []


# -- properties -------------------------------------------------------------


def weighed(exponents, prior=(0.98 * 0.8, 0.98 * 0.2)):
    """Return the scores of both Berlins by the formula, from how often each agrees."""
    weights = [score * ODDS**exponent for score, exponent in zip(prior, exponents, strict=True)]
    total = sum(weights) + 1 - sum(prior)
    return approx(Q64=weights[0] / total, Q614184=weights[1] / total)


@pytest.mark.parametrize(
    ("properties", "exponents"),
    [
        pytest.param([("country", "Germany")], (1, -1), id="a relation, by a name"),
        pytest.param([("country", "USA")], (-1, 1), id="by an alias"),
        pytest.param([("country", "Q30")], (-1, 1), id="by a key"),
        pytest.param([("country", EntityValue("Q30"))], (-1, 1), id="by an entity"),
        pytest.param([("country", EntityValue("Q1", "Germany"))], (-1, -1), id="by its key alone"),
        pytest.param([("country", ["France", "Germany"])], (1, -1), id="one of several values"),
        pytest.param([("capital_of", "Germany")], (1, 0), id="no value says nothing"),
        pytest.param([("population", 9425)], (-1, 1), id="a number"),
        pytest.param([("population", "9425")], (-1, 1), id="a number as text"),
        pytest.param([("population", 9425.0)], (-1, 1), id="a float"),
        pytest.param([("area", 891.3)], (1, 0), id="an attribute that one has"),
        pytest.param([("official", True)], (1, 0), id="a truth"),
        pytest.param([("official", "true")], (1, 0), id="a truth as text"),
        pytest.param([("official", False)], (-1, 0), id="the contrary"),
        pytest.param([("twins", "PEKING")], (1, 0), id="one of its values, folded"),
        pytest.param([("description", "city in New Hampshire")], (-1, 1), id="a field"),
        pytest.param([("nonesuch", "x")], (0, 0), id="a property that none has"),
        pytest.param([("country", "USA"), ("population", 9425)], (-2, 2), id="two of them"),
        pytest.param([("country", "USA"), ("population", 3677472)], (0, 0), id="one for and one against"),
    ],
)  # fmt: skip
def test_properties_are_evidence_of_nine_to_one(answer, properties, exponents):
    assert scores(answer("Berlin", properties)) == weighed(exponents)


def test_evidence_may_turn_the_order_and_the_match(answer):
    result = answer("Berlin", [("country", "USA")])
    assert [(each["id"], each["match"]) for each in result] == [("Q614184", True), ("Q64", False)]


def test_the_share_of_properties_that_agree_is_a_feature(answer):
    result = answer("Berlin", [("country", "Germany"), ("population", 1)])
    assert [each["features"][-1] for each in result] == [
        {"id": "property_agreement", "value": share} for share in (0.5, 0.0)
    ]


def test_properties_alone_find_the_subjects_of_a_relation(answer):
    result = answer(None, [("country", "Germany")])
    assert [(each["id"], each["match"]) for each in result] == [("Q64", True)]
    assert answer(None, [("country", "nowhere")]) == []
    assert answer(None, [("population", 9425)]) == []
    assert answer(None, [("country", "Germany")], type="zoo") == []


def test_subjects_share_what_they_have_alike(cities_service, answer):
    result = answer(None, [("country", ["Germany", "USA"])])
    assert scores(result) == approx(Q64=3 * ODDS / (6 * ODDS + 3), Q614184=3 * ODDS / (6 * ODDS + 3))


# -- records ----------------------------------------------------------------
