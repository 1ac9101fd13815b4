"""The REST interface, `/v1`."""

from typing import Any

from fastapi import APIRouter

from kgkit.serving.service import Service


def router(service: Service) -> APIRouter:
    """Return the router of `/v1`."""
    routes = APIRouter(prefix="/v1", tags=["kgkit"])

    @routes.get("/kbs")
    async def kbs() -> dict[str, Any]:
        """List the knowledge bases that are served."""
        return {"kbs": service.kb_names()}

    return routes
