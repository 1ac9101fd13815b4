"""Whatever somebody sends: an answer, well-formed, with everything escaped."""

from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgkit.serving.page.addresses import address
from tests.serving.page.conftest import STRANGE_KEYS
from tests.serving.page.html_reader import Page

SOME = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))

TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from([*STRANGE_KEYS, "dog", "", "mark", "\x00", "0", "1e400", "-1", "nan", "９", "a" * 3_000]),
)
FIELDS = {
    "/": ("text", "kb", "model", "threshold", "coherence", "document", "corrections"),
    "/search": ("q", "kb", "by", "kind", "limit"),
    "/entity": ("key", "kb"),
    "/facts": ("key", "relation", "kb", "direction", "page"),
    "/graph": ("key", "kb", "relation", "radius", "nodes"),
    "/path": ("source", "target", "kb", "relation"),
    "/nearest": ("key", "q", "kb", "vectors", "k"),
    "/column": ("names", "layout", "column", "kb", "kind", "threshold"),
    "/kb": ("name",),
    "/model": ("name",),
    "/runs": ("model", "page"),
    "/run": ("id",),
    "/scores": ("task", "dataset", "page"),
}


def check(answer):
    """Make sure that an answer is a page without anything of a stranger's in its elements."""
    assert answer.status_code < 500, answer.text[:300]
    page = Page(answer.text)
    for tag, values in page.elements:
        assert tag not in ("img", "iframe", "style")
        assert not any(name.startswith("on") or name == "style" for name in values)
    scripts = [values["src"].partition("?")[0] for values in page.named("script")]
    assert scripts in (["/static/page.js"], ["/static/page.js", "/static/corrections.js"])


@pytest.mark.parametrize("path", FIELDS)
@SOME
@given(data=st.data())
def test_any_query_is_answered_with_a_page(browser, path, data):
    names = data.draw(st.lists(st.sampled_from(FIELDS[path]), unique=True))
    values = {name: data.draw(TEXTS, label=name) for name in names}
    if data.draw(st.booleans()) and "kb" in FIELDS[path]:
        values["kb"] = data.draw(st.sampled_from(["facts", "strange"]))
    check(browser.get(address(path, **values)))


@pytest.mark.parametrize("path", ["/", "/column"])
@SOME
@given(data=st.data())
def test_any_form_is_answered_with_a_page(browser, path, data):
    values = {name: data.draw(TEXTS, label=name) for name in FIELDS[path]}
    body = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in values.items())
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    check(browser.post(path, content=body, headers=headers))


@SOME
@given(content=st.binary(max_size=300), column=TEXTS)
def test_any_file_is_answered(browser, content, column):
    files = {"file": ("table.csv", content, "text/csv")}
    check(browser.post("/column", data={"kb": "facts", "column": column}, files=files))
    answer = browser.post("/column.csv", data={"kb": "facts"}, files=files)
    assert answer.status_code in (200, 413, 422)


@pytest.mark.parametrize(
    "body",
    [
        b"text=%ED%A0%80&kb=facts",
        b"text=%FF%FE&kb=facts",
        b"text=a%00b&kb=facts",
        b"text",
        b"&&&=",
        b"\xff" * 99,
    ],
)
def test_bytes_that_are_no_text_are_answered(browser, body):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    check(browser.post("/", content=body, headers=headers))


@pytest.mark.parametrize("path", ["/entity", "/graph", "/facts?relation=links", "/nearest"])
@pytest.mark.parametrize(
    "key", ["%2e%2e", "..%2f..%2f", "%00", "%ED%A0%80", "a%0Ab", "%F0%9F%90%95", "%22%3E%3Cb%3E"]
)
def test_encoded_keys_lead_to_no_other_view(browser, path, key):
    separator = "&" if "?" in path else "?"
    answer = browser.get(f"{path}{separator}kb=strange&key={key}")
    assert answer.status_code in (200, 404, 422)
    check(answer)


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_methods_that_change_things_are_not_answered(browser, method):
    answer = browser.request(method, "/")
    assert answer.status_code == 405
    assert "allow" in answer.headers
