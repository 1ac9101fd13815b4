"""Health and metrics, for operators and their monitoring.

/health/live    the process answers
/health/ready   it serves; which builds, which published ones it has not taken, and why; 503 if one is damaged
/metrics        Prometheus
"""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from kgkit.serving.answers import json_response
from kgkit.serving.metrics import CONTENT_TYPE, ServiceMetrics
from kgkit.serving.service import Service


def router(metrics: ServiceMetrics) -> Callable[[Service], APIRouter]:
    """Return the function that makes the router.

    Args:
        metrics: metrics of this process.
    """

    def make_router(service: Service) -> APIRouter:
        """Return the router of `/health` and `/metrics`."""
        routes = APIRouter(tags=["operations"])

        @routes.get("/health/live")
        async def live() -> Response:
            """Say that the process answers."""
            return json_response({"status": "live"})

        @routes.get("/health/ready")
        async def ready() -> Response:
            """Say what is served, and which published builds are not, and why."""
            record = readiness(service)
            return json_response(record, 200 if record["status"] == "ready" else 503)

        @routes.get("/metrics", response_class=PlainTextResponse)
        async def show_metrics() -> Response:
            """Show the metrics of all workers, in Prometheus's text format."""
            observe(service, metrics)
            return Response(await service.call(metrics.exposition), media_type=CONTENT_TYPE)

        return routes

    return make_router


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
