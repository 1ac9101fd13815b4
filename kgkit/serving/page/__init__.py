"""The page at `/`: rendered on the server, every view an address, without a script if need be."""

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from kgkit.serving.page import catalog_views, column_views, entity_views, text_views
from kgkit.serving.page.rendering import render, static_file
from kgkit.serving.problems import Problem
from kgkit.serving.service import Service

_MODULES: Final = (text_views, entity_views, column_views, catalog_views)


def router(service: Service) -> APIRouter:
    """Return the router of the page."""
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    for module in _MODULES:
        module.add_views(routes, service)

    @routes.get("/static/{name}")
    def static(name: str) -> Response:
        """Return a style sheet, a script or a picture of the page."""
        return static_file(name)

    return routes


def error_page(request: Request, problem: Problem) -> Response | None:
    """Return a problem as a page; None where the request does not ask for HTML.

    Browsers name `text/html` first; programs accept anything or JSON, and get problem+json.
    """
    accepted = [entry.partition(";")[0].strip() for entry in request.headers.get("accept", "").split(",")]
    if "text/html" not in accepted or "application/json" in accepted:
        return None
    if (problem.status, problem.detail) == (404, "Not Found"):  # of the framework, which says no more
        problem = Problem(404, "there is no page at this address")
    key = request.query_params.get("key", "")[:200]
    answer = render("error.html", error=problem, key=key)
    answer.headers.update(problem.headers)
    return answer
