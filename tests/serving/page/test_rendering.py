"""How templates become pages, which errors become pages, and whether colors can be read."""

import re

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup
from starlette.requests import Request

from kgkit.errors import NotThere
from kgkit.serving.page.rendering import (
    STATIC,
    environment,
    render,
    static_address,
    static_file,
    static_names,
)
from kgkit.serving.page.views import error_page
from kgkit.serving.problems import Problem
from tests.serving.page.conftest import BROWSER, HTML
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


def test_characters_that_html_cannot_hold_are_replaced():
    assert rendered("{{ x }}", x="a\x00b\ud800c\x0bd\n") == "a�b�c�d\n"
    assert rendered("{{ x }}", x=Markup("<b>")) == "<b>"
    assert rendered("{{ x }}", x=12) == "12"


def test_a_variable_that_a_view_forgot_is_an_error():
    with pytest.raises(UndefinedError, match="forgotten"):
        rendered("{{ forgotten }}")
    with pytest.raises(UndefinedError):
        render("facts.html", kb="x")


def test_a_page_has_the_status_of_its_problem():
    page = render("error.html", error=Problem(404, f"no {HTML}"), key="")
    assert page.status_code == 404
    assert f"no {HTML}" in Page(page.body.decode()).text


def test_a_share_is_drawn_without_styles():
    bar = rendered('{% import "parts.html" as parts %}{{ parts.share(0.256, "prior") }}')
    assert '<rect width="25.6%"/>' in bar
    assert ">0.26<" in bar.replace("0.26</span>", "0.26<")
    assert "–" in rendered('{% import "parts.html" as parts %}{{ parts.share(none, "prior") }}')


# -- files ------------------------------------------------------------------


def test_files_of_ours_have_addresses_by_their_content():
    addresses = [static_address(name) for name in static_names()]
    assert static_names() == ("icon.svg", "page.js", "style.css")
    assert len(set(addresses)) == 3
    assert all(re.fullmatch(r"/static/[a-z.]+\?v=[0-9a-f]{12}", address) for address in addresses)
    for name in static_names():
        assert static_file(name).body == (STATIC / name).read_bytes()


@pytest.mark.parametrize("name", ["", "..", "../views.py", "/etc/passwd", "style.css\x00", "STYLE.CSS"])
def test_other_names_are_no_files(name):
    with pytest.raises(NotThere, match="no file"):
        static_file(name)


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


def test_a_page_of_an_error_keeps_headers_and_says_what_to_do():
    problem = Problem(503, "busy", remedy="ask again in 2 s", headers={"Retry-After": "2"})
    answer = error_page(request("text/html"), problem)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    words = Page(answer.body.decode()).words
    assert "The service is busy" in words
    assert "ask again in 2 s" in words


def test_an_unknown_address_is_said_in_a_sentence():
    answer = error_page(request("text/html"), Problem(404, "Not Found"))
    assert "there is no page at this address" in Page(answer.body.decode()).words


def test_an_unknown_key_can_be_searched_for():
    answer = error_page(request("text/html", query=b"key=a%2Fb&kb=x"), Problem(404, "no entity 'a/b'"))
    assert "/search?q=a%2Fb" in Page(answer.body.decode()).links


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


def test_the_contrast_of_black_and_white_is_that_of_the_standard():
    assert contrast("#000000", "#fff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


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


def test_the_style_sheet_closes_what_it_opens():
    assert STYLE.count("{") == STYLE.count("}")
    assert re.findall(r"var\(--([a-z]+)\)", STYLE)
    defined = set(re.findall(r"--([a-z]+):", STYLE))
    assert set(re.findall(r"var\(--([a-z]+)\)", STYLE)) <= defined
