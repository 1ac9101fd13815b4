"""The manual of the REST interface, from its description."""

from kgkit.serving.page.api_reference import api_reference, type_name
from tests.serving.page.html_reader import Page

DESCRIPTION = {
    "paths": {
        "/v1/things/{id}": {
            "get": {
                "tags": ["things"],
                "summary": "Read Thing",
                "description": "Return a thing.\n\nIt says <b>more</b>\nof it.",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                    {"$ref": "#/components/parameters/k"},
                ],
                "responses": {"200": {"description": "a thing"}, "404": {"description": "none"}},
            },
            "post": {
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}
                },
                "responses": {},
            },
        }
    },
    "components": {
        "parameters": {"k": {"name": "k", "in": "query", "schema": {"type": "integer", "default": 5}}},
        "schemas": {
            "Thing": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "description": "its name"},
                    "parts": {
                        "anyOf": [
                            {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
                            {"type": "null"},
                        ]
                    },
                },
            }
        },
    },
}  # fmt: skip


def test_operations_stand_under_their_tags():
    groups = api_reference(DESCRIPTION)
    assert list(groups) == ["things", "other"]
    [operation] = groups["things"]
    assert (operation.method, operation.path, operation.id) == ("GET", "/v1/things/{id}", "get-v1-things-id")
    assert operation.summary == "Return a thing."
    assert operation.description == ["It says <b>more</b>\nof it."]
    assert operation.answers == [("200", "a thing"), ("404", "none")]


def test_parameters_have_types_and_defaults():
    [operation] = api_reference(DESCRIPTION)["things"]
    fields = operation.fields
    assert [(each.name, each.type, each.required, each.source, each.default) for each in fields] == [
        ("id", "integer", True, "path", ""), ("k", "integer", False, "query", "5"),
    ]  # fmt: skip


def test_a_body_is_its_fields_and_ends_where_it_holds_itself():
    [operation] = api_reference(DESCRIPTION)["other"]
    assert operation.media_types == ["application/json"]
    assert [field.name for field in operation.fields] == [
        "name", "parts", "parts.name", "parts.parts", "parts.parts.name", "parts.parts.parts",
    ]  # fmt: skip
    assert [field.required for field in operation.fields][:2] == [True, False]
    assert operation.fields[1].type == "list of object"


def test_types_are_told_in_words():
    assert type_name({}, {"enum": ["a", "b"]}) == '"a" or "b"'
    assert type_name({}, {"const": 1}) == '"1"'
    assert type_name({}, {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}) == "string"
    assert type_name({}, {}) == "any"
    assert type_name({}, {"$ref": "#/nothing/there"}) == "any"


def test_the_manual_names_every_operation(browser, read):
    description = browser.get("/v1/openapi.json").json()
    page = read("/docs")
    for path, item in description["paths"].items():
        assert path in page.text
        assert len(set(item) - {"parameters"}) >= 1
    assert "/v1/openapi.json" in page.links
    assert not any(path in description["paths"] for path in ("/", "/search", "/docs", "/static/{name}"))


def test_the_manual_loads_nothing_from_elsewhere(browser):
    answer = browser.get("/docs")
    assert "cdn" not in answer.text.lower()
    assert all(source.startswith("/static/") for source in Page(answer.text).sources)
