"""Problems: which status an error has, and what its sentence leaves out."""

import json
import sys
import tempfile
from pathlib import Path

import pytest

from kgkit.errors import (
    BuildFailed,
    DamagedKB,
    MissingExtra,
    NoPath,
    NotThere,
    StaleVectors,
    UnknownEntity,
    UnknownName,
    UsageError,
)
from kgkit.home import Home
from kgkit.serving.problems import Problem, problem_of, without_paths

HOME = Home(Path("/srv/knowledge"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnknownEntity("x", "toy"), 404),
        (NoPath("no path from a to b"), 404),
        (NotThere("no vectors"), 404),
        (UnknownName("kind", "x", ["page"]), 422),
        (UsageError("k is 0"), 422),
        (MissingExtra("faiss", "cpu"), 501),
        (DamagedKB("sizes differ"), 503),
        (StaleVectors("of another build"), 503),
        (BuildFailed("no memory"), 500),
        (OSError(28, "No space left on device"), 500),
        (RuntimeError("a text of a request"), 500),
    ],
)
def test_an_error_has_a_status(error, status):
    problem = problem_of(error, HOME)
    assert problem.status == status
    assert problem.to_dict()["status"] == status
    assert problem.title and problem.detail


def test_a_problem_stays_what_it_is():
    problem = Problem(418, "a teapot", field="pot", remedy="ask a kettle")
    assert problem_of(problem, HOME) is problem
    assert json.loads(problem.to_json()) == {
        "type": "about:blank",
        "title": "problem",
        "status": 418,
        "detail": "a teapot",
        "field": "pot",
        "remedy": "ask a kettle",
    }


def test_an_unknown_entity_has_its_hint_as_remedy_and_a_long_key_is_cut():
    problem = problem_of(UnknownEntity("k" * 5_000, "toy", lambda: "did you mean k?"), HOME)
    assert problem.remedy == "did you mean k?"
    assert problem.title == "no such entity"
    assert len(problem.detail) < 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no model in /srv/knowledge/models/x: it is gone", "no model in …: it is gone"),
        ("'/srv/knowledge' is empty", "'…' is empty"),
        ("/srv/knowledge-old/x stays", "/srv/knowledge-old/x stays"),
        ("https://example.org/srv/x stays", "https://example.org/srv/x stays"),
        (f"{tempfile.gettempdir()}/a.b, and more", "…, and more"),
        (f"in {sys.prefix}/lib/python: no", "in …: no"),
        ("a key a/b/c stays", "a key a/b/c stays"),
    ],
)
def test_paths_of_this_machine_are_left_out(text, expected):
    assert without_paths(text, HOME) == expected


def test_a_home_that_is_the_root_hides_nothing():
    assert without_paths("a/b and /c", Home(Path("/"))) == "a/b and /c"


def test_a_lone_surrogate_is_written_as_an_escape():
    body = Problem(422, "the text \ud800", field="\udc00").to_json()
    assert json.loads(body)["detail"] == "the text \\ud800"


def test_advice_names_an_address_and_no_function_of_python(client):
    for address in ("/v1/entity?key=zzzz", "/v1/neighbours?entity=zzzz", "/v1/path?source=zzzz&target=zzzz"):
        members = client.get(address).json()
        assert (members["status"], members["remedy"]) == (404, "search for it: /v1/search?q=TEXT")
    assert client.get("/v1/search?q=TEXT").status_code == 200
    assert client.get("/v1/entity?key=dgo.n.01").json()["remedy"] == "did you mean dog.n.01?"


def test_advice_on_a_number_of_rows_is_to_ask_for_fewer(client):
    for address in ("/v1/link?text=dog&top_k=1000", "/v1/search?q=dog&limit=1000"):
        members = client.get(address).json()
        assert (members["status"], members["remedy"]) == (422, "ask for 100 at most")
