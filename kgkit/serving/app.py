"""The application: routers, a guard before them, and errors as problem+json."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from kgkit import __version__
from kgkit.serving import operations, rest
from kgkit.serving.guard import Guard
from kgkit.serving.problems import MEDIA_TYPE, Problem, problem_of
from kgkit.serving.service import Service

log = logging.getLogger(__name__)

ROUTERS: Final[tuple[Callable[[Service], APIRouter], ...]] = (
    rest.router,
    operations.router,
)
"""What makes the routers of the service; each is in a module of its own."""

REFRESH_SECONDS: Final = 1.0
"""Time between two looks at what was published."""


def make_app(service: Service) -> FastAPI:
    """Return the application of a service, which it starts and closes.

    Args:
        service: service that has not been started.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        """Open what is served, and look for what is published."""
        await asyncio.to_thread(service.start)
        task = asyncio.create_task(_refresh(service))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.to_thread(service.close)

    app = FastAPI(
        title="kgkit", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/v1/openapi.json",
    )  # fmt: skip
    for make_router in ROUTERS:
        app.include_router(make_router(service))

    async def answer_error(_: Request, error: Exception) -> Response:
        """Answer an error as a problem."""
        return problem_response(_as_problem(error, service))

    for kind in (Exception, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer_error)
    app.add_middleware(Guard, service=service)
    return app


async def _refresh(service: Service) -> None:
    """Take what is published, for ever."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await asyncio.to_thread(service.resources.refresh)
        except Exception as error:  # noqa: BLE001 - what is open is served on
            log.warning("what is published cannot be looked at: %s", type(error).__name__)


def problem_response(problem: Problem) -> Response:
    """Return the answer of a problem."""
    return Response(problem.to_json(), problem.status, problem.headers, MEDIA_TYPE)


def _as_problem(error: Exception, service: Service) -> Problem:
    if isinstance(error, HTTPException):
        return Problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))
    if isinstance(error, RequestValidationError):
        return validation_problem(error.errors())
    return problem_of(error, service.home)


def validation_problem(errors: Any) -> Problem:
    """Return the first of the errors that pydantic has found, as a problem that names the field."""
    first = next(iter(errors), {})
    path = ".".join(str(part) for part in first.get("loc", ()) if part not in ("query", "body", "path"))
    return Problem(422, f"{path}: {first.get('msg', 'not valid')}".removeprefix(": "), field=path)
