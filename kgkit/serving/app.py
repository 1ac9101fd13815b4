"""The application: routers, middleware before them, and errors as problem+json."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from kgkit import __version__
from kgkit.serving import mcp_http, nif, operations, page, reconciliation, rest, spotlight
from kgkit.serving.answers import add_error_handlers
from kgkit.serving.guard import Guard
from kgkit.serving.metrics import ServiceMetrics
from kgkit.serving.service import Service

log = logging.getLogger(__name__)

ROUTERS: Final[tuple[Callable[[Service], APIRouter], ...]] = (
    rest.router,
    spotlight.router,
    nif.router,
    reconciliation.router,
    mcp_http.router,
    page.router,
)
"""Functions that make the routers of the service, each in a module of its own."""

REFRESH_SECONDS: Final = 1.0
"""Time between two checks for newly published builds."""


def make_app(service: Service) -> FastAPI:
    """Return the application of a service, which it starts and closes.

    Args:
        service: service that has not been started.
    """
    metrics = ServiceMetrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        """Open the knowledge bases, and take new builds until the application ends."""
        if not service.started:
            await asyncio.to_thread(service.start)
        task = asyncio.create_task(_refresh(service, metrics))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.to_thread(service.close)

    app = FastAPI(
        title="kgkit", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/v1/openapi.json", redirect_slashes=False,
    )  # fmt: skip
    for make_router in (*ROUTERS, operations.router(metrics)):
        app.include_router(make_router(service))
    add_error_handlers(app, service, page.error_page)
    app.add_middleware(Guard, service=service, metrics=metrics, error_page=page.error_page)
    settings = service.settings
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=[origin.rstrip("/").lower() for origin in settings.allowed_origins],
            allow_methods=["GET", "POST"], allow_headers=["Authorization", "Content-Type"],
        )  # fmt: skip
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=settings.host_names, www_redirect=False)
    return app


async def _refresh(service: Service, metrics: ServiceMetrics) -> None:
    """Take newly published builds, and bring the gauges up to date, until the task is cancelled."""
    while True:
        operations.observe(service, metrics)
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await asyncio.to_thread(service.resources.refresh)
        except Exception as error:  # noqa: BLE001 - what is open is served on
            log.warning("cannot look for published builds: %s", type(error).__name__)
