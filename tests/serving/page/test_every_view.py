"""What holds of every view: policy, size, escaping, labels, and links that lead somewhere."""

from urllib.parse import quote, unquote, urlsplit

import pytest

from kgkit.serving.page.addresses import address
from kgkit.serving.page.rendering import NAVIGATION
from tests.serving.page.conftest import HTML, STRANGE_KEYS
from tests.serving.page.html_reader import Page, local

TEXT = "A dog and a cat see 苹果 and مرحبا near the mouse."

VIEWS = {
    "text": "/",
    "linked": address("/", text=TEXT, kb="facts"),
    "linked coherence": address("/", text="dog cat mouse paw", kb="facts", coherence="graph"),
    "linked strange": address("/", text=f"mark {HTML} mark", kb="strange"),
    "error of a text": address("/", text="dog", kb="facts", model="none"),
    "search": "/search",
    "search results": address("/search", q="do", kb="facts"),
    "search strange": address("/search", q="mark", kb="strange", kind="page"),
    "error of a search": address("/search", q="dog", kb="facts", by=HTML),
    "entity": address("/entity", kb="facts", key="dog"),
    "facts": address("/facts", kb="facts", key="cat", relation="chases", direction="in"),
    "graph": address("/graph", kb="facts", key="dog", radius=2),
    "graph alone": address("/graph", kb="facts", key="alone"),
    "graph strange": address("/graph", kb="strange", key=STRANGE_KEYS[0], nodes=30),
    "path": "/path",
    "path results": address("/path", kb="facts", source="dog", target="cat"),
    "path strange": address("/path", kb="strange", source=STRANGE_KEYS[1], target=STRANGE_KEYS[0]),
    "error of a path": address("/path", kb="facts", source="dog", target=HTML),
    "nearest": "/nearest",
    "nearest results": address("/nearest", kb="facts", key="dog"),
    "error of nearest": address("/nearest", kb="facts", q=f"no {HTML}"),
    "column": "/column",
    "column results": address("/column", kb="strange", names=f"mark\n{HTML}\n\nnothing"),
    "column table": address(
        "/column", kb="facts", names="n,animal\n1,dog\n2,cta\n", layout="table", column="animal"
    ),
    "error of a column": address("/column", kb="facts", names=f'a,b\n"{HTML}', layout="table"),
    "kbs": "/kbs",
    "kb": "/kb?name=facts",
    "kb strange": "/kb?name=strange",
    "models": "/models",
    "model": "/model?name=wsd-minilm",
    "runs": "/runs",
    "run": "/run?id=1",
    "scores": "/scores",
    "error: not there": f"/nothing/{quote(HTML)}",
    "error: no such entity": address("/entity", kb="facts", key=HTML),
    "error: no such kb": address("/search", kb=HTML),
    "error: no number": address("/graph", kb="facts", key="dog", nodes="many"),
    "error: missing field": "/facts",
    **{f"entity {key}": address("/entity", kb="strange", key=key) for key in STRANGE_KEYS},
}


@pytest.fixture(scope="module")
def answers(browser):
    return {name: browser.get(path) for name, path in VIEWS.items()}


@pytest.fixture(scope="module")
def pages(answers):
    return {name: Page(answer.text) for name, answer in answers.items()}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_a_page(answers, pages, name):
    answer = answers[name]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    if name.startswith("error"):
        assert answer.status_code in (404, 422)
        assert str(answer.status_code) in pages[name].words
    else:
        assert answer.status_code == 200


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_loads_from_its_own_host_only(answers, pages, name):
    policy = answers[name].headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert pages[name].sources
    assert all(source.startswith("/static/") for source in pages[name].sources)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_no_inline_styles_scripts_or_handlers(pages, name):
    for tag, values in pages[name].elements:
        assert tag != "style"
        assert "style" not in values
        assert not any(attribute.startswith("on") for attribute in values)
        assert tag != "script" or values.keys() == {"src", "defer"}
        assert tag != "img"


@pytest.mark.parametrize("name", VIEWS)
def test_ids_of_a_view_differ_and_labels_name_fields(pages, name):
    page = pages[name]
    assert len(page.ids) == len(set(page.ids))
    labels = {values["for"] for values in page.named("label")}
    fields = [
        values
        for tag, values in page.elements
        if tag in ("input", "select", "textarea") and values.get("type") != "hidden"
    ]
    assert {values["id"] for values in fields} == labels


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_one_heading_a_title_and_a_way_to_the_content(pages, name):
    page = pages[name]
    assert [tag for tag, _ in page.elements].count("h1") == 1
    assert page.named("html") == [{"lang": "en"}]
    assert page.links[0] == "#main"
    assert "main" in page.ids
    assert {urlsplit(path).path for _, path, _ in NAVIGATION} <= {urlsplit(link).path for link in page.links}


def test_all_links_of_all_views_lead_somewhere(browser, pages):
    targets = {}
    for name, page in pages.items():
        for link in page.links:
            targets.setdefault(local(link), name)
            if link.startswith("#"):
                assert unquote(link[1:]) in page.ids, f"{link} of {name}"
    targets.pop("")
    failures = {target: name for target, name in targets.items() if browser.get(target).status_code != 200}
    assert failures == {}
    assert len(targets) > 100


def test_forms_lead_to_views_that_read_their_fields(browser, pages):
    for name, page in pages.items():
        for form, fields in page.forms:
            method = form.get("method", "get")
            assert fields, name
            if method == "get":
                assert browser.get(form["action"]).status_code in (200, 422), name
            else:
                answer = browser.post(form["action"], data={"text": "dog", "names": "dog", "kb": "facts"})
                assert answer.status_code == 200, name


def test_the_first_view_is_small_with_all_that_it_loads(browser, answers, pages):
    loaded = [browser.get(source).content for source in pages["text"].sources]
    assert len(loaded) == 4
    assert len(answers["text"].content) + sum(map(len, loaded)) < 50_000


def test_a_static_file_may_be_stored_until_it_changes(browser, pages):
    for source in pages["text"].sources:
        answer = browser.get(source)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert "v=" in source


@pytest.mark.parametrize("name", ["nothing.css", "..%2Frendering.py", "%2e%2e/views.py", ""])
def test_other_files_are_not_there(browser, name):
    assert browser.get(f"/static/{name}").status_code == 404


def test_no_view_shows_a_path_of_the_machine(answers, page_home):
    for name, answer in answers.items():
        assert str(page_home) not in answer.text, name


def test_the_style_sheet_has_all_hues_and_loads_nothing(browser):
    style = browser.get("/static/style.css").text
    assert "url(" not in style
    assert "@import" not in style
    assert all(f".h{hue} {{" in style for hue in range(24))
    assert all(f".s{shade} {{" in style for shade in range(11))
    assert "prefers-color-scheme: dark" in style


def test_the_scripts_ask_no_other_server_and_write_no_markup(browser):
    for name in "page.js", "corrections.js":
        script = browser.get(f"/static/{name}").text
        assert all(word not in script for word in ("XMLHttp", "innerHTML", "eval(", "http"))
        assert script.count("fetch(") == script.count('fetch("/') + script.count("fetch(`/v1/")
