"""Templates to pages: what all views of the page have in common.

Everything in a template is escaped, and characters that HTML cannot hold are replaced. Pages have no inline
styles and no inline scripts: colors are classes, lengths are attributes of SVG.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final
from unicodedata import east_asian_width

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kgkit import __version__
from kgkit.errors import NotThere
from kgkit.serving.page.addresses import address
from kgkit.serving.problems import Problem
from kgkit.text import drawn_text
from kgkit.urls import is_web_address

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
        "static": _static_address,
        "any_of": _any_of,
        "kb": None,  # unless a view is of one
        "kb_views": KB_VIEWS,
        "navigation": NAVIGATION,
        "version": __version__,
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


def _static_address(name: str) -> str:
    """Return the address of a file of ours; it changes with the content, so that browsers may store it."""
    return f"/static/{name}?v={_digest(name)}"


def static_file(name: str) -> Response:
    """Return a file of ours.

    Raises:
        NotThere: if there is none of that name.
    """
    if name not in _static_names():
        raise NotThere(f"no file {name!r}; there are: {', '.join(_static_names())}")
    headers = {"Cache-Control": f"public, max-age={_YEAR}, immutable"}
    return Response((STATIC / name).read_bytes(), media_type=MEDIA_TYPES[Path(name).suffix], headers=headers)


@cache
def _static_names() -> tuple[str, ...]:
    """Return the names of the files of ours."""
    return tuple(sorted(path.name for path in STATIC.iterdir() if path.suffix in MEDIA_TYPES))


@cache
def _digest(name: str) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]


# -- colors as classes, since pages have no inline styles ---------------------------


HUES: Final = 24
"""Number of hues that the style sheet has, `h0` to `h23`, evenly apart."""

_SHADES: Final = 10


def hue_class(hue: int) -> str:
    """Return the class of the hue that is nearest to one in degrees."""
    return f"h{round(hue * HUES / 360) % HUES}"


def shade_class(score: float) -> str:
    """Return the class of a score in [0, 1], in tenths; of what is no number that of 0."""
    tenths = round(_SHADES * score) if score == score else 0
    return f"s{min(max(tenths, 0), _SHADES)}"


def hue_classes(names: Iterable[str]) -> dict[str, str]:
    """Return a class of a hue for each name, evenly apart; beyond as many as there are hues, they repeat."""
    ordered = list(dict.fromkeys(names))
    return {name: hue_class(360 * number // max(1, len(ordered))) for number, name in enumerate(ordered)}


# -- widths in letters: those of Chinese are as wide as two -------------------------


def text_width(text: str) -> int:
    """Return the width of a text in letters."""
    return sum(_letter_width(letter) for letter in text)


def shorten(text: str, letters: int) -> str:
    """Return a text that is at most so many letters wide, of a longer one its beginning."""
    if text_width(text) <= letters:
        return text
    widths = accumulate(map(_letter_width, text))
    return text[: sum(width < letters for width in widths)].rstrip() + "…"


def _letter_width(letter: str) -> int:
    return 2 if east_asian_width(letter) in "WF" else 1
