"""The application: routers, middleware before them, and errors as problem+json.

/health/live    the process answers
/health/ready   it serves; which builds, which published ones it has not taken, and why; 503 if one is damaged
/metrics        Prometheus
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse, Response

from kgkit import __version__
from kgkit.serving import mcp, nif, page, reconciliation, rest, spotlight
from kgkit.serving.guard import Guard
from kgkit.serving.metrics import CONTENT_TYPE, ServiceMetrics
from kgkit.serving.problems import add_error_handlers, json_response
from kgkit.serving.service import Service

log = logging.getLogger(__name__)

ROUTERS: Final[tuple[Callable[[Service], APIRouter], ...]] = (
    rest.router,
    spotlight.router,
    nif.router,
    reconciliation.router,
    mcp.router,
    page.router,
)
"""Functions that make the routers of the service, each in a module of its own."""

REFRESH_SECONDS: Final = 1.0
"""Time between two checks for newly published builds."""


def _operations_router(service: Service, metrics: ServiceMetrics) -> APIRouter:
    """Return the router of `/health` and `/metrics`."""
    routes = APIRouter(tags=["operations"])

    @routes.get("/health/live")
    async def live() -> Response:
        """Say that the process answers."""
        return json_response({"status": "live"})

    @routes.get("/health/ready")
    async def ready() -> Response:
        """List the knowledge bases that are served, and which published builds are not, and why."""
        record = readiness(service)
        return json_response(record, 200 if record["status"] == "ready" else 503)

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        """Show the metrics of all workers, in Prometheus's text format."""
        observe(service, metrics)
        return Response(await service.call(metrics.exposition), media_type=CONTENT_TYPE)

    return routes


def readiness(service: Service) -> dict[str, Any]:
    """Return the builds that are served, and the reasons why published ones are not, or not whole."""
    resources = service.resources
    return {
        "status": "damaged" if resources.damages else "ready",
        "kbs": {name: resources.served(name).kb.build for name in resources.names()},
        "problems": service.problems(),
    }


def observe(service: Service, metrics: ServiceMetrics) -> None:
    """Bring the gauges of this process up to date."""
    queue = service.queue
    metrics.observe_process(len(queue), queue.batches, queue.documents, len(service.resources.problems))


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
    for make_router in ROUTERS:
        app.include_router(make_router(service))
    app.include_router(_operations_router(service, metrics))
    add_error_handlers(app, service.home, page.error_page)
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
        observe(service, metrics)
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await asyncio.to_thread(service.resources.refresh)
        except Exception as error:  # noqa: BLE001 - what is open is served on
            log.warning("cannot look for published builds: %s", type(error).__name__)
