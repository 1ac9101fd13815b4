"""`/reconcile` as OpenRefine and its like ask it; every answer is valid under the schemas of version 0.2."""

import json
from pathlib import Path
from urllib.parse import quote

import jsonschema
import pytest
from starlette.testclient import TestClient

from kgkit.building import Entity
from kgkit.home import Home
from kgkit.serving import reconciliation
from kgkit.serving.app import make_app
from kgkit.serving.kb_schema import FIELDS, read_schema
from kgkit.serving.service import Service
from kgkit.serving.settings import Limits, ServiceSettings
from kgkit.text import drawn_text
from tests.city_toys import HTML_KEY, HTML_LABEL, TITLES, PageParser
from tests.serving.conftest import BASE_URL
from tests.small_kb import build

SCHEMAS = {
    path.stem: jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))
    for path in (Path(__file__).parent / "schemas").glob("*.json")
}
OPENREFINE = "http://127.0.0.1:3333"


def check(answer, schema):
    """Return the record of an answer, which is valid."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    record = answer.json()
    SCHEMAS[schema].validate(record)
    return record


def reconcile(client, batch, path="/reconcile/cities", method="POST"):
    SCHEMAS["query_batch"].validate(batch)
    fields = {"queries": json.dumps(batch, ensure_ascii=False)}
    answer = client.get(path, params=fields) if method == "GET" else client.post(path, data=fields)
    record = check(answer, "result_batch")
    assert list(record) == list(batch)
    return {name: result["result"] for name, result in record.items()}


# -- the schemas ------------------------------------------------------------


# -- empty cells ------------------------------------------------------------


@pytest.mark.parametrize(
    "empty",
    [
        {},
        {"query": None},
        {"query": ""},
        {"query": "  "},
        {"properties": None},
        {"properties": []},
        {"query": None, "properties": None, "limit": None, "type": None, "type_strict": None},
        {"query": None, "type": "city"},
        {"query": None, "properties": [{"pid": "nothing", "v": ""}]},
        {"query": None, "properties": [{"pid": "nothing", "v": None}, None]},
        {"query": "\ud83d"},
        {"query": 737, "limit": 0},
        {"query": "Berlin", "limit": -1},
        None,
    ],
)
def test_a_query_for_nothing_has_an_empty_result_and_costs_no_other_one(cities, empty):
    batch = {"q0": {"query": "Berlin"}, "q1": empty, "q2": {"query": "Germany", "properties": None}}
    answer = cities.post("/reconcile/cities", data={"queries": json.dumps(batch)})
    results = [each["result"] for each in check(answer, "result_batch").values()]
    assert [bool(result and result[0]["match"]) for result in results] == [True, False, True]
    assert results[1] == []


# -- the manifest -----------------------------------------------------------


def test_a_request_without_fields_gets_the_manifest(cities):
    manifest = check(cities.get("/reconcile/cities"), "manifest")
    assert manifest["versions"] == ["0.1", "0.2"]
    assert manifest["name"].startswith("cities")
    assert manifest["batchSize"] == 100
    assert [each["id"] for each in manifest["defaultTypes"]][:2] == ["place", "city"]
    assert "authentication" not in manifest


def test_the_default_knowledge_base_needs_no_name(cities):
    assert cities.get("/reconcile").json() == cities.get("/reconcile/cities").json()


def test_fields_that_ask_for_nothing_get_the_manifest(cities):
    manifest = cities.get("/reconcile/cities", params={"callback": "f"})
    assert check(manifest, "manifest") == cities.get("/reconcile/cities").json()


def test_identifiers_are_in_the_space_of_the_url_pattern(cities):
    manifest = check(cities.get("/reconcile/wiki"), "manifest")
    assert manifest["identifierSpace"] == "https://en.wikipedia.org/wiki/"
    assert cities.get("/reconcile/cities").json()["identifierSpace"] == "urn:kgkit:cities:"


def test_every_address_in_the_manifest_answers(cities):
    manifest = cities.get("/reconcile/cities").json()
    for address in (manifest["view"]["url"], manifest["preview"]["url"]):
        assert cities.get(address.replace("{{id}}", quote("Q64", safe=""))).status_code == 200
    for name, metadata in manifest["suggest"].items():
        suggested = metadata["service_url"] + metadata["service_path"]
        assert cities.get(suggested, params={"prefix": "c"}).status_code == 200
        flyout = metadata["flyout_service_url"] + metadata["flyout_service_path"]
        identifier = {"entity": "Q64", "type": "city", "property": "country"}[name]
        assert cities.get(flyout.replace("${id}", identifier)).json()["id"] == identifier
    proposal = manifest["extend"]["propose_properties"]
    assert cities.get(proposal["service_url"] + proposal["service_path"]).status_code == 200


def test_a_service_with_a_token_says_so(cities_home):
    token = "0123456789abcdef0123"
    settings = ServiceSettings(kbs={"cities": ("prior",)}, token=token, limits=Limits(names=7))
    with TestClient(make_app(Service(settings, Home(cities_home))), base_url=BASE_URL) as client:
        answer = client.get("/reconcile/cities", headers={"Authorization": f"Bearer {token}"})
    manifest = check(answer, "manifest")
    assert manifest["authentication"] == {"type": "apiKey", "name": "Authorization", "in": "header"}
    assert manifest["batchSize"] == 7


# -- queries ----------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_batch_is_answered_query_by_query(cities, method):
    batch = {
        "q0": {"query": "Berlin", "limit": 1},
        "q1": {"query": "Pekin", "type": "city", "type_strict": "should"},
        "q2": {"query": "Berlin", "properties": [{"pid": "country", "v": {"id": "Q30", "name": "x"}}]},
        "q3": {"query": "القاهرة"},
        "q4": {"query": "Berlin", "type": "river"},
        "q5": {"properties": [{"pid": "country", "v": ["France", 3]}]},
    }
    results = reconcile(cities, batch, method=method)
    assert [result[0]["id"] if result else None for result in results.values()] == [
        "Q64",
        "Q956",
        "Q614184",
        "Q85",
        None,
        "Q90",
    ]


def test_queries_are_answered_as_if_each_were_alone(cities):
    batch = {name: {"query": name} for name in ("Berlin", "Brlin", "Paris", "xyzzy", "北京")}
    results = reconcile(cities, batch)
    assert results == {name: reconcile(cities, {name: query})[name] for name, query in batch.items()}


def test_html_in_keys_and_labels_is_data(cities):
    (candidate,) = reconcile(cities, {"q": {"query": HTML_KEY}})["q"]
    assert (candidate["id"], candidate["name"]) == (HTML_KEY, HTML_LABEL)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"queries": "{"}, "queries"),
        ({"extend": "[]"}, "extend"),
        ({}, "queries"),
        ({"q": "x"}, "queries"),
    ],
)
def test_a_form_that_cannot_be_answered_is_a_problem_that_names_the_field(cities, fields, field):
    answer = cities.post("/reconcile/cities", data=fields)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_a_batch_that_is_too_large_is_refused(cities, cities_service):
    batch = {str(number): {"query": "x"} for number in range(cities_service.limits.names + 1)}
    answer = cities.post("/reconcile/cities", data={"queries": json.dumps(batch)})
    assert answer.status_code == 413


def test_a_knowledge_base_that_is_not_served_is_a_problem(cities):
    assert cities.get("/reconcile/nowhere").status_code == 422
    assert cities.get("/reconcile/nowhere/preview?id=a").status_code == 422


def test_nothing_is_answered_as_a_script(cities):
    answer = cities.get("/reconcile/cities", params={"queries": "{}", "callback": "alert"})
    assert (answer.headers["content-type"], answer.json()) == ("application/json", {})


# -- pages of other origins -------------------------------------------------


def test_pages_of_an_allowed_origin_may_read_and_frame(cities):
    headers = {"Origin": OPENREFINE}
    answer = cities.get("/reconcile/cities", headers=headers)
    assert answer.headers.get_list("access-control-allow-origin") == [OPENREFINE]
    preview = cities.get("/reconcile/cities/preview?id=Q64", headers=headers)
    policy = preview.headers["content-security-policy"]
    assert f"frame-ancestors 'self' {OPENREFINE}" in policy
    assert "unsafe" not in policy


# -- suggestions, flyouts, previews -----------------------------------------


def suggest(client, suggested, **fields):
    answer = client.get(f"/reconcile/cities/suggest/{suggested}", params=fields)
    return check(answer, f"suggest_{suggested}")["result"]


def test_entities_are_suggested_by_their_names_and_keys(cities):
    assert [each["id"] for each in suggest(cities, "entity", prefix="Berl")][:2] == ["Q64", "Q614184"]
    assert suggest(cities, "entity", prefix="Q614")[0] == {
        "id": "Q614184",
        "name": "Berlin",
        "description": "city in New Hampshire",
        "notable": [{"id": "city", "name": "city"}, {"id": "place", "name": "place"}],
    }


def test_types_and_properties_are_suggested_by_their_beginnings(cities):
    assert [each["id"] for each in suggest(cities, "type", prefix="C")] == ["city", "country", "capital"]
    assert [each["id"] for each in suggest(cities, "property", prefix="ca")] == ["capital_of"]
    assert {each["id"] for each in suggest(cities, "property", prefix="l")} == {"label"}


@pytest.mark.parametrize("suggested", ["entity", "type", "property"])
def test_nothing_is_suggested_for_nothing(cities, suggested):
    assert suggest(cities, suggested, prefix="") == suggest(cities, suggested) == []


def test_a_cursor_skips_suggestions(cities):
    names = [each["id"] for each in suggest(cities, "type", prefix="c")]
    assert [each["id"] for each in suggest(cities, "type", prefix="c", cursor=1)] == names[1:]
    entities = suggest(cities, "entity", prefix="Berlin")
    assert suggest(cities, "entity", prefix="Berlin", cursor=1) == entities[1:]
    assert suggest(cities, "entity", prefix="Berlin", cursor=9_999) == []


@pytest.mark.parametrize("path", ["suggest/thing?prefix=a", "flyout/thing?id=a"])
def test_nothing_else_is_suggested(cities, path):
    assert cities.get(f"/reconcile/cities/{path}").status_code == 404


@pytest.mark.parametrize(
    ("suggested", "identifier", "detail"),
    [
        ("entity", "Q64", "capital of Germany"),
        ("entity", "Q956", "city, place"),
        ("type", "city", "a type of 5 entities"),
        ("type", "river", "no type of an entity"),
        ("property", "country", "a relation to other entities"),
        ("property", "population", "an attribute of 2 entities"),
        ("property", "label", "a field of every entity"),
        ("property", "nonesuch", "no property of an entity"),
    ],
)
def test_a_flyout_says_what_a_suggestion_is(cities, suggested, identifier, detail):
    answer = cities.get(f"/reconcile/cities/flyout/{suggested}", params={"id": identifier})
    record = check(answer, "flyout")
    assert record["id"] == identifier
    assert PageParser(record["html"]).text.endswith(detail)


def test_html_in_a_flyout_is_text(cities):
    for suggested, identifier in (("entity", HTML_KEY), ("type", HTML_LABEL), ("property", HTML_LABEL)):
        answer = cities.get(f"/reconcile/cities/flyout/{suggested}", params={"id": identifier})
        assert set(PageParser(check(answer, "flyout")["html"]).names()) == {"p", "strong"}


def preview(client, identifier, kb="cities"):
    answer = client.get(f"/reconcile/{kb}/preview", params={"id": identifier})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    return PageParser(answer.text)


def test_pages_of_reconciliation_have_no_characters_that_xml_cannot_hold(tmp_path):
    odd = "a\x0bb\x00c\x1fd\uffff"
    entity = Entity(f"k{odd}", f"l{odd}", f"d{odd}", "thing", types=(f"t{odd}",), attributes={"n": [odd]})
    with build(tmp_path, [entity], name="odd") as kb:
        schema = read_schema(kb)
        pages = [reconciliation.preview(kb, entity.key)]
        for suggested, identifier in (("entity", entity.key), ("type", f"t{odd}"), ("property", "n")):
            pages.append(reconciliation.flyout(kb, schema, suggested, identifier)["html"])
    for page in pages:
        assert drawn_text(page) == page
    assert "a\ufffdb" in pages[0]


def test_a_preview_shows_an_entity_with_its_facts(cities):
    page = preview(cities, "Q64")
    for text in ("Berlin", "capital of Germany", "city, capital, place", "population", "3677472", "Germany"):
        assert text in page.text
    assert "empty" not in page.text


def test_a_preview_links_to_the_address_of_the_entity(cities):
    links = [attributes["href"] for tag, attributes in preview(cities, "AC/DC", "wiki").tags if tag == "a"]
    assert links == ["https://en.wikipedia.org/wiki/AC%2FDC"]
    assert "a" not in set(preview(cities, "Q64").names())


def test_a_preview_has_no_style_no_script_and_no_markup_of_the_data(cities):
    page = preview(cities, HTML_KEY)
    assert set(page.names()) == {"html", "head", "meta", "title", "body", "h1", "p", "dl", "dt", "dd"}
    assert not any("style" in attributes for _, attributes in page.tags)
    assert HTML_LABEL in page.text


@pytest.mark.parametrize("path", ["preview", "flyout/entity"])
def test_an_entity_that_is_not_there_is_a_problem(cities, path):
    assert cities.get(f"/reconcile/cities/{path}?id=nowhere").status_code == 404
    answer = cities.get(f"/reconcile/cities/{path}")
    assert (answer.status_code, answer.json()["field"]) == (422, "id")


# -- data extension ---------------------------------------------------------


def extend(client, query, method="POST"):
    SCHEMAS["extend_query"].validate(query)
    fields = {"extend": json.dumps(query)}
    path = "/reconcile/cities"
    answer = client.get(path, params=fields) if method == "GET" else client.post(path, data=fields)
    return check(answer, "extend_response")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_properties_of_entities_are_given_cell_by_cell(cities, method):
    names = ["country", "population", "area", "founded", "official", "twins", "nonesuch", "label"]
    query = {"ids": ["Q64", "Q956", "nowhere"], "properties": [{"id": name} for name in names]}
    record = extend(cities, query, method)
    assert record["meta"] == [{"id": name, "name": name} for name in names]
    assert record["rows"]["Q64"] == {
        "country": [{"id": "Q183", "name": "Germany", "description": "country in Europe"}],
        "population": [{"int": 3677472}],
        "area": [{"float": 891.3}],
        "founded": [{"str": "1237"}],
        "official": [{"str": "true"}],
        "twins": [{"str": "Paris"}, {"str": "Peking"}],
        "nonesuch": [],
        "label": [{"str": "Berlin"}],
    }
    assert record["rows"]["Q956"] == {name: [] for name in names[:-1]} | {"label": [{"str": "北京"}]}
    assert record["rows"]["nowhere"] == {name: [] for name in names}


def test_a_property_may_be_limited(cities):
    query = {"ids": ["Q64"], "properties": [{"id": "twins", "settings": {"limit": "1"}}]}
    assert extend(cities, query)["rows"] == {"Q64": {"twins": [{"str": "Paris"}]}}


def test_an_entity_that_comes_twice_is_one_row(cities):
    assert list(extend(cities, {"ids": ["Q64", "Q64"], "properties": []})["rows"]) == ["Q64"]


def test_properties_of_a_type_are_proposed(cities):
    answer = cities.get("/reconcile/cities/properties", params={"type": "capital", "limit": 2})
    assert check(answer, "property_proposal") == {
        "properties": [{"id": name, "name": name} for name in ("capital_of", "country")],
        "type": "capital",
        "limit": 2,
    }


def test_without_a_type_all_properties_are_proposed(cities):
    record = check(cities.get("/reconcile/cities/properties"), "property_proposal")
    assert {each["id"] for each in record["properties"]} >= {"country", "population", *FIELDS}


def test_what_is_proposed_can_be_had(cities):
    proposed = cities.get("/reconcile/wiki/properties", params={"type": "page"}).json()["properties"]
    query = {"ids": list(TITLES), "properties": [{"id": each["id"]} for each in proposed]}
    answer = cities.post("/reconcile/wiki", data={"extend": json.dumps(query)})
    rows = check(answer, "extend_response")["rows"]
    assert rows["Berlin"]["links_to"] == [{"id": "AC/DC", "name": "AC/DC"}]
    assert rows["New York City"]["url"] == [{"str": "https://en.wikipedia.org/wiki/New_York_City"}]
