"""The manual of the REST interface, from its own description in `openapi.json`.

FastAPI's page of it loads scripts from another host.
"""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from kgkit.serving.page.api_reference import api_reference
from kgkit.serving.page.rendering import render
from kgkit.serving.service import Service


def add_views(routes: APIRouter, _: Service) -> None:
    """Add the view of the REST interface to a router."""

    @routes.get("/docs")
    def show_reference(request: Request) -> Response:
        """Show every operation with its parameters, body and answers."""
        groups = api_reference(request.app.openapi())
        return render(
            "reference.html",
            groups=groups,
            description=request.app.openapi_url,
            base=str(request.base_url),
        )
