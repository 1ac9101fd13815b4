"""Answers as JSON, and which field an error of validation names."""

import json

import pytest
from fastapi import FastAPI
from pydantic import ValidationError
from starlette.testclient import TestClient

from kgkit.errors import DamagedKB, UnknownEntity, UsageError
from kgkit.home import Home
from kgkit.serving.answers import add_error_handlers, json_response, validation_problem
from kgkit.serving.problems import Busy, Problem
from kgkit.serving.rest import (
    DocumentRequest,
    LinkRequest,
    MentionRequest,
    ReconcileRequest,
    SearchQuery,
    body_schema,
)
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings


@pytest.mark.parametrize("value", [[], {}, {"a": [1, None, 0.5]}, ["苹果", "👩‍🔬", "\0"], "x", None])
def test_an_answer_is_json(value):
    answer = json_response(value)
    assert json.loads(answer.body) == value
    assert (answer.status_code, answer.media_type) == (200, "application/json")


def test_an_answer_may_have_another_status():
    assert json_response({}, 503).status_code == 503


@pytest.mark.parametrize(
    ("model", "value", "field"),
    [
        (LinkRequest, {}, "text"),
        (LinkRequest, {"text": [{"text": "a", "mentions": [{"start": "x"}]}]}, "text.0.mentions.0.start"),
        (LinkRequest, {"text": ["a", "b", 3]}, "text.2"),
        (LinkRequest, {"text": [{"text": 3}]}, "text.0.text"),
        (LinkRequest, {"text": "a", "kb": [1]}, "kb.0"),
        (LinkRequest, {"text": "a", "nil": "perhaps"}, "nil"),
        (DocumentRequest, {"text": "a", "title": "b"}, "title"),
        (MentionRequest, {"start": 1, "end": -1}, "end"),
        (ReconcileRequest, {"names": [None, 3]}, "names.1"),
        (ReconcileRequest, {"names": [], "threshold": 1.5}, "threshold"),
        (SearchQuery, {"q": "a", "by": "luck"}, "by"),
    ],
)  # fmt: skip
def test_the_deepest_error_names_its_field(model, value, field):
    with pytest.raises(ValidationError) as caught:
        model.model_validate_json(json.dumps(value))
    problem = validation_problem(caught.value.errors())
    assert (problem.status, problem.field) == (422, field)
    assert problem.detail.startswith(f"{field}: ")


def test_no_errors_at_all_are_a_problem_all_the_same():
    assert validation_problem([]).detail == "not valid"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(number):
    with pytest.raises(ValidationError):
        LinkRequest.model_validate_json(f'{{"text": "a", "threshold": {number}}}')


@pytest.mark.parametrize("model", [LinkRequest, ReconcileRequest])
def test_the_schema_of_a_body_is_complete_by_itself(model):
    schema = body_schema(model)["requestBody"]["content"]["application/json"]["schema"]
    assert "$ref" not in json.dumps(schema) and "$defs" not in schema
    assert set(schema["properties"]) == set(model.model_fields)


@pytest.fixture(scope="module")
def failing():
    """A client of an application whose addresses fail."""
    app = FastAPI()
    add_error_handlers(app, Service(ServiceSettings(), Home.find("/srv/home")))
    errors = {
        "problem": Problem(418, "a teapot", headers={"X-Pot": "tea"}),
        "busy": Busy("full", 3),
        "entity": UnknownEntity("x", "toy"),
        "usage": UsageError("k is 0; see /srv/home/kbs"),
        "damaged": DamagedKB("/srv/home/kbs/a/data.mdb is cut"),
    }

    @app.get("/fail/{name}")
    async def fail(name: str):
        raise errors[name]

    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(
    ("name", "status"), [("problem", 418), ("busy", 503), ("entity", 404), ("usage", 422), ("damaged", 503)]
)
def test_errors_of_routers_are_problems_without_paths(failing, name, status):
    answer = failing.get(f"/fail/{name}")
    assert answer.status_code == answer.json()["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert "/srv" not in answer.text


def test_the_headers_of_a_problem_are_those_of_its_answer(failing):
    assert failing.get("/fail/problem").headers["x-pot"] == "tea"
    assert failing.get("/fail/busy").headers["retry-after"] == "3"


def test_an_address_that_is_not_there_and_a_method_that_is_not_taken_are_problems(failing):
    assert failing.get("/nothing").json()["status"] == 404
    answer = failing.post("/fail/problem")
    assert (answer.json()["status"], answer.headers["allow"]) == (405, "GET")
