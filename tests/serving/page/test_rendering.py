"""How templates become pages, which errors become pages, and whether colors can be read."""

import re

import pytest
from jinja2 import UndefinedError
from starlette.requests import Request

from kgkit.serving.page import error_page
from kgkit.serving.page.rendering import (
    STATIC,
    environment,
    render,
)
from kgkit.serving.problems import Problem
from tests.serving.page.conftest import BROWSER
from tests.serving.page.html_reader import Page


def request(accept=None, path="/nothing", query=b""):
    headers = [] if accept is None else [(b"accept", accept.encode())]
    return Request({"type": "http", "method": "GET", "path": path, "query_string": query, "headers": headers})


def rendered(source, **context):
    return environment().from_string(source).render(**context)


# -- templates --------------------------------------------------------------


def test_everything_in_a_template_is_escaped():
    assert rendered('<a title="{{ x }}">{{ x }}</a>', x="\"<b>&'") == (
        '<a title="&#34;&lt;b&gt;&amp;&#39;">&#34;&lt;b&gt;&amp;&#39;</a>'
    )


def test_a_variable_that_a_view_forgot_is_an_error():
    with pytest.raises(UndefinedError, match="forgotten"):
        rendered("{{ forgotten }}")
    with pytest.raises(UndefinedError):
        render("facts.html", kb="x")


def test_a_share_is_drawn_without_styles():
    bar = rendered('{% import "parts.html" as parts %}{{ parts.share(0.256, "prior") }}')
    assert '<rect width="25.6%"/>' in bar
    assert ">0.26<" in bar.replace("0.26</span>", "0.26<")
    assert "–" in rendered('{% import "parts.html" as parts %}{{ parts.share(none, "prior") }}')


# -- files ------------------------------------------------------------------


# -- errors -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        (BROWSER["Accept"], True),
        ("text/html", True),
        ("text/html;q=0.9, */*", True),
        (None, False),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/html", False),
        ("text/turtle", False),
        ("text/htmlx", False),
    ],
)
def test_an_error_is_a_page_where_html_is_asked_for(accept, is_page):
    answer = error_page(request(accept), Problem(422, "wrong"))
    assert (answer is not None) == is_page


def test_an_unknown_address_is_said_in_a_sentence():
    answer = error_page(request("text/html"), Problem(404, "Not Found"))
    assert "there is no page at this address" in Page(answer.body.decode()).words


# -- colors -----------------------------------------------------------------

STYLE = (STATIC / "style.css").read_text(encoding="utf-8")
LIGHT, DARK = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]


def variables(block):
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{3,6});", block))


def luminance(color):
    """Relative luminance of WCAG 2.2."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("block", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "faint", "accent", "good", "bad"])
@pytest.mark.parametrize("background", ["paper", "card", "soft"])
def test_texts_stand_out_from_what_is_behind_them(block, text, background):
    colors = variables(block)
    assert contrast(colors[text], colors[background]) >= 4.5


@pytest.mark.parametrize("block", [LIGHT, DARK], ids=["light", "dark"])
def test_the_text_of_a_button_stands_out(block):
    colors = variables(block)
    assert contrast(colors["paper"], colors["accent"]) >= 4.5


def test_every_class_of_the_templates_has_a_rule():
    templates = "".join(path.read_text(encoding="utf-8") for path in (STATIC.parent / "templates").iterdir())
    classes = {
        name
        for value in re.findall(r'class="([^"]*)"', templates)
        for name in re.sub(r"\{[{%].*?[}%]\}", " ", value).split()
    }
    unruled = {name for name in classes if not re.search(rf"\.{re.escape(name)}\b", STYLE)}
    # Names that tell a reader of the page what something is, and a color of a direction that is not needed.
    assert unruled <= {"card", "other", "edges", "whole", "path"}
