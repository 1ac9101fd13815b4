"""Health and metrics: what those ask who run the service."""

from typing import Any

from fastapi import APIRouter

from kgkit.serving.service import Service


def router(service: Service) -> APIRouter:
    """Return the router of `/health/live` and `/health/ready`."""
    routes = APIRouter(tags=["operations"])

    @routes.get("/health/live")
    async def live() -> dict[str, Any]:
        """Say that the process answers."""
        return {"status": "live"}

    return routes
