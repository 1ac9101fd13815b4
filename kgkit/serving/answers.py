"""Answers as JSON, and errors as problem+json."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from kgkit.errors import KgkitError
from kgkit.serving.problems import MEDIA_TYPE, TITLES, Problem, problem_of
from kgkit.serving.service import Service

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
"""What OpenAPI says of the problems that any operation may answer."""

_encode: Final = msgspec.json.Encoder().encode
_NO_FIELDS: Final = frozenset("query body path header str int float bool list tuple dict".split())


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as an answer in JSON."""
    return Response(_encode(value), status, media_type="application/json")


def problem_response(problem: Problem) -> Response:
    """Return the answer of a problem."""
    return Response(problem.to_json(), problem.status, problem.headers, MEDIA_TYPE)


def add_error_handlers(app: FastAPI, service: Service, error_page: ErrorPage | None = None) -> None:
    """Let an application answer errors as problems.

    Args:
        app: application.
        service: service, whose home is left out of sentences.
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
            problem = problem_of(error, service.home)
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
