"""Templates to pages: what all views of the page have in common.

Everything in a template is escaped, and characters that HTML cannot hold are replaced. Pages have no inline
styles and no inline scripts: colors are classes, lengths are attributes of SVG.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kgkit.errors import NotThere
from kgkit.serving.page.addresses import address
from kgkit.serving.page.colors import hue_class, shade_class
from kgkit.serving.page.widths import shorten, text_width
from kgkit.serving.problems import Problem
from kgkit.text import drawn_text
from kgkit.urls import is_web_address

__all__ = ["NAVIGATION", "render", "static_file"]

NAVIGATION: Final = (
    ("text", "/", "Text"),
    ("search", "/search", "Search"),
    ("nearest", "/nearest", "Nearest"),
    ("path", "/path", "Path"),
    ("column", "/column", "Column"),
    ("kbs", "/kbs", "Knowledge bases"),
    ("models", "/models", "Models"),
    ("runs", "/runs", "Runs"),
    ("scores", "/scores", "Scores"),
)
"""Views of the navigation: name, path and heading of each."""

KB_VIEWS: Final = ("/", "/search", "/nearest", "/path", "/column")
"""Paths of the views that stay with the knowledge base of the view before."""

STATIC: Final = Path(__file__).parent / "static"
MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_YEAR: Final = 365 * 24 * 3600


def _printable(value: Any) -> Any:
    """Return a value as a template shows it: a text without characters that HTML cannot hold."""
    return drawn_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _any_of(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the options of a choice: any of the names, or one of them."""
    return [("", "any"), *((name, name) for name in names)]


@cache
def environment() -> Environment:
    """Return the environment of the templates."""
    templates = Environment(
        loader=PackageLoader("kgkit.serving.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    templates.globals |= {
        "address": address,
        "static": static_address,
        "any_of": _any_of,
        "kb": None,  # unless a view is of one
        "kb_views": KB_VIEWS,
        "navigation": NAVIGATION,
        "version": _version(),
        "hue_class": hue_class,
        "shade_class": shade_class,
        "shorten": shorten,
        "text_width": text_width,
        "is_web_address": is_web_address,
    }
    return templates


def render(template: str, current: str = "", *, error: Problem | None = None, **context: Any) -> HTMLResponse:
    """Return a page.

    Args:
        template: file name of the template.
        current: name of the view that the navigation marks; empty for none.
        error: problem that the page shows, whose status it has; None: 200.
        context: variables of the template.
    """
    content = environment().get_template(template).render(current=current, error=error, **context)
    return HTMLResponse(content, status_code=200 if error is None else error.status)


def static_address(name: str) -> str:
    """Return the address of a file of ours; it changes with the content, so that browsers may store it."""
    return f"/static/{name}?v={_digest(name)}"


def static_file(name: str) -> Response:
    """Return a file of ours.

    Raises:
        NotThere: if there is none of that name.
    """
    if name not in static_names():
        raise NotThere(f"no file {name!r}; there are: {', '.join(static_names())}")
    headers = {"Cache-Control": f"public, max-age={_YEAR}, immutable"}
    return Response((STATIC / name).read_bytes(), media_type=MEDIA_TYPES[Path(name).suffix], headers=headers)


@cache
def static_names() -> tuple[str, ...]:
    """Return the names of the files of ours."""
    return tuple(sorted(path.name for path in STATIC.iterdir() if path.suffix in MEDIA_TYPES))


@cache
def _digest(name: str) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]


@cache
def _version() -> str:
    try:
        return version("kgkit")
    except PackageNotFoundError:  # a checkout that is not installed
        return ""
