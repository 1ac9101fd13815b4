"""Answers as JSON, and problems of requests, as RFC 9457 has them: `application/problem+json`.

An answer names the field and the remedy; it has no traceback, and no path of this machine.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from kgkit.errors import (
    KgkitError,
    MissingExtra,
    NotThere,
    StoreError,
    UnknownEntity,
    UnknownName,
    UsageError,
    abbreviate,
)
from kgkit.home import Home
from kgkit.kb.search import SEARCH_HINT

MEDIA_TYPE: Final = "application/problem+json"

TITLES: Final[Mapping[int, str]] = {
    400: "the request cannot be read",
    401: "a token is needed",
    404: "not there",
    405: "the method does not fit the address",
    408: "the request did not arrive in time",
    413: "the request is too large",
    415: "the media type is not supported",
    422: "the request cannot be answered as it is",
    500: "the service failed",
    503: "the service is busy",
}
"""Titles of problems that have none of their own, by status."""


SEARCH_REMEDY: Final = "search for it: /v1/search?q=TEXT"
"""Advice on a key that nothing resembles, where `SEARCH_HINT` names a function of Python."""


class Problem(Exception):
    """An error that a client gets as `application/problem+json`.

    Args:
        status: HTTP status.
        detail: sentence that says what is wrong.
        title: phrase that names the kind of problem; None: that of the status.
        field: field of the request that is wrong; empty if it is none in particular.
        remedy: advice on what to do next; empty if there is none.
        headers: headers of the answer.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        title: str | None = None,
        field: str = "",
        remedy: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field, self.remedy = status, detail, field, remedy
        self.title = title or TITLES.get(status, "problem")
        self.headers = dict(headers or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the members of the answer, without empty ones."""
        members = {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "field": self.field,
            "remedy": self.remedy,
        }
        return {name: value for name, value in members.items() if value != ""}

    def to_json(self) -> bytes:
        """Return the body of the answer; a lone surrogate in it is written as an escape."""
        members = {
            name: _escape_surrogates(value) if isinstance(value, str) else value
            for name, value in self.to_dict().items()
        }
        return msgspec.json.encode(members)


class Busy(Problem):
    """A request that a busy service does not take; the client is asked to try again.

    Args:
        detail: sentence that says what the service is busy with.
        seconds: seconds after which to ask again.
    """

    def __init__(self, detail: str, seconds: int = 1) -> None:
        super().__init__(
            503, detail, remedy=f"ask again in {seconds} s", headers={"Retry-After": str(seconds)}
        )


def problem_of(error: Exception, home: Home) -> Problem:
    """Return an error as a problem.

    Args:
        error: error of kgkit, of the disk, or any other.
        home: home whose path is left out of the sentence.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, UnknownEntity):
        detail = f"no entity {abbreviate(str(error.entity))!r} in knowledge base {error.kb!r}"
        remedy = SEARCH_REMEDY if error.hint == SEARCH_HINT else error.hint
        return Problem(404, detail, title="no such entity", remedy=remedy)
    if isinstance(error, UnknownName):
        return Problem(422, without_paths(str(error), home), title=f"no such {error.kind}"[:80])
    if isinstance(error, MissingExtra):
        return Problem(501, without_paths(str(error), home), title="not installed")
    if isinstance(error, UsageError):
        return Problem(422, without_paths(str(error), home))
    if isinstance(error, NotThere):
        return Problem(404, without_paths(str(error), home))
    if isinstance(error, StoreError):
        return Problem(503, without_paths(str(error), home), title="the files cannot be used")
    if isinstance(error, KgkitError):
        return Problem(500, without_paths(str(error), home))
    return Problem(500, f"an error of the kind {type(error).__name__}, which the log of the service has")


def without_paths(text: str, home: Home) -> str:
    """Return a sentence without the paths of this machine."""
    folders = {str(home.path), *_machine_folders()}
    longest_first = sorted((folder for folder in folders if len(folder) > 1), key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?:{pattern})(?![\w-])[^\s'\"`,;:)]*", "…", text)


def _machine_folders() -> list[str]:
    """Return folders below which files of this machine lie."""
    package = str(Path(__file__).parents[2])
    return [str(Path.home()), sys.prefix, sys.base_prefix, tempfile.gettempdir(), package]


def _escape_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# -- answers ----------------------------------------------------------------


ErrorPage = Callable[[Request, Problem], Response | None]
"""Returns a problem as a page; None where the request does not ask for one."""

_STATUSES: Final = 401, 404, 408, 413, 422, 503
PROBLEM_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": TITLES[status].capitalize(),
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["title", "status", "detail"],
                    "properties": {
                        "status": {"type": "integer"},
                        **{
                            name: {"type": "string"}
                            for name in ("type", "title", "detail", "field", "remedy")
                        },
                    },
                }
            }
        },
    }
    for status in _STATUSES
}
"""OpenAPI's description of the problems that any operation may answer."""

_encode: Final = msgspec.json.Encoder().encode
_NO_FIELDS: Final = frozenset("query body path header str int float bool list tuple dict".split())


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as an answer in JSON."""
    return Response(_encode(value), status, media_type="application/json")


def problem_response(problem: Problem) -> Response:
    """Return the answer of a problem."""
    return Response(problem.to_json(), problem.status, problem.headers, MEDIA_TYPE)


def add_error_handlers(app: FastAPI, home: Home, error_page: ErrorPage | None = None) -> None:
    """Let an application answer errors as problems.

    Args:
        app: application.
        home: home whose path is left out of sentences.
        error_page: function that returns a problem as a page, where the request asks for HTML; None: all are
            JSON.
    """

    async def answer(request: Request, error: Exception) -> Response:
        """Answer an error."""
        if isinstance(error, HTTPException):
            problem = Problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))
        elif isinstance(error, RequestValidationError):
            problem = validation_problem(error.errors())
        else:
            problem = problem_of(error, home)
        page = None if error_page is None else error_page(request, problem)
        return page or problem_response(problem)

    for kind in (Problem, KgkitError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer)


def validation_problem(errors: Any) -> Problem:
    """Return errors that pydantic has found as a problem that names the field.

    Of a value that fits none of several types, there is an error for each: the deepest is taken.
    """
    paths = [([part for part in each["loc"] if _is_field(part)], str(each["msg"])) for each in errors]
    path, message = max(paths, key=lambda pair: len(pair[0]), default=([], "not valid"))
    field = ".".join(map(str, path))
    return Problem(422, f"{field}: {message}" if field else message, field=field)


def _is_field(part: int | str) -> bool:
    """Say whether a part of a location is a field or an index, not where it is or of which type."""
    return isinstance(part, int) or (part.isidentifier() and part.islower() and part not in _NO_FIELDS)
