"""The page in a browser: by keyboard, narrow, dark, without scripts.

Slow: a browser and a server are started. Skipped where Chromium is not installed.
"""

import socket
import threading
import time

import pytest
import uvicorn

import kgkit
from kgkit.home import Home
from kgkit.linking import Corrections
from kgkit.serving.app import make_app
from kgkit.serving.page.addresses import address
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings
from tests.serving.page.chromium import CHROMIUM, Chromium
from tests.serving.page.test_every_view import VIEWS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def site(page_home):
    """The address of a server over the home of the page."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        settings = ServiceSettings(kbs={"facts": ("prior",), "strange": ("prior",)})
        app = make_app(Service(settings, Home(page_home)))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def chromium():
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def scripts(request, chromium):
    """Whether scripts of the page run."""
    chromium.send("Emulation.setScriptExecutionDisabled", value=not request.param)
    yield request.param
    chromium.send("Emulation.setScriptExecutionDisabled", value=False)


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("width", [320, 1280])
def test_no_view_scrolls_sideways_loads_from_elsewhere_or_breaks_a_policy(site, chromium, width):
    """Slow: every view is opened in a browser."""
    for dark in (False, True):
        chromium.resize(width, dark=dark)
        for name, path in VIEWS.items():
            chromium.open(site + path)
            foreign = [url for url in chromium.requests() if not url.startswith(site)]
            complaints = [text for text in chromium.complaints() if "status of 4" not in text]
            assert (name, foreign, complaints, chromium.evaluate(OVERFLOW)) == (name, [], [], 0)


def test_the_first_view_comes_in_half_a_second(site, chromium):
    """Slow: a browser opens it."""
    chromium.open(site + "/kbs")
    seconds = []
    for _ in range(3):
        chromium.open(site + "/")
        entry = "performance.getEntriesByType('navigation')[0]"
        seconds.append(chromium.evaluate(f"{entry}.loadEventStart / 1000"))
    assert min(seconds) < 0.5


def test_a_text_is_linked_by_keyboard_and_its_candidates_are_opened(site, chromium, scripts):
    """Slow: a browser is steered."""
    chromium.resize(320)
    chromium.open(site + "/?kb=facts")
    chromium.tab_to("#text")
    chromium.type("The dog saw a cat.")
    chromium.tab_to("button[type=submit]")
    chromium.follow()
    assert "2 links" in chromium.evaluate("document.body.innerText")
    chromium.tab_to("a.mark")
    chromium.press("Enter")
    if scripts:
        chromium.wait(lambda: chromium.evaluate("document.querySelector('dialog[open]') !== null"))
        chromium.tab_to("dialog a")
        chromium.press("Enter")
    chromium.wait(lambda: chromium.evaluate("document.querySelector('details[open] table') !== null"))
    chromium.tab_to(".inside a[href^='/entity']")
    chromium.follow()
    assert chromium.evaluate("document.querySelector('h1').innerText") == "Dog"


WORDS = "[...document.querySelectorAll('.text a.mark')].map(mark => [mark.dataset.text, mark.dataset.entity])"
CHOOSER = "document.querySelector('dialog[open]')"
FOCUS = "document.activeElement.innerText"


def corrected(chromium, number):
    """Wait until so many corrections are listed, and the links are there; return these."""
    shown = f"document.querySelectorAll('.corrected li').length === {number}"
    chromium.wait(lambda: chromium.evaluate(f"{shown} && !document.querySelector('[aria-busy]')"))
    return chromium.evaluate(WORDS)


def opened(chromium, path):
    """Open a page of a browser that keeps no corrections."""
    chromium.resize(1000)
    chromium.open(path)
    chromium.evaluate("localStorage.clear()")
    chromium.open(path)


def test_a_link_is_corrected_by_keyboard_and_stays_so(site, chromium):
    """Slow: a browser is steered."""
    path = site + address("/", text="The dog and a dog saw a cat.", kb="facts")
    opened(chromium, path)
    chromium.tab_to("a.mark")
    chromium.press("Enter")
    chromium.wait(lambda: chromium.evaluate(f"{CHOOSER} !== null"))
    chromium.press("Escape")
    assert chromium.evaluate(FOCUS).startswith("dog")
    chromium.press("Enter")
    for _ in range(10):
        if chromium.evaluate(FOCUS) == "No name":
            break
        chromium.press("ArrowDown")
    chromium.press("Enter")
    found = [["dog", "dog"], ["cat", "cat"]]
    assert corrected(chromium, 1) == found
    assert chromium.evaluate("document.activeElement.dataset.start") == "14"
    chromium.press("Enter")
    chromium.press("ArrowUp")
    chromium.type("alone")
    chromium.wait(
        lambda: chromium.evaluate("document.querySelector('.option').innerText").startswith("Alone")
    )
    chromium.press("ArrowDown")
    chromium.press("Enter")
    found[0] = ["dog", "alone"]
    assert corrected(chromium, 2) == found
    chromium.open(path)
    assert corrected(chromium, 2) == found
    chromium.tab_to(".corrected button")
    chromium.press("Enter")
    assert corrected(chromium, 1) == [["dog", "dog"], ["cat", "cat"]]
    assert chromium.complaints() == []


def test_words_are_linked_with_the_mouse_everywhere_and_the_file_is_downloaded(
    site, chromium, page_home, tmp_path
):
    """Slow: a browser is steered."""
    text = 'A tabby, my 😀 "tabby", is a cat.\nTabby, tabby.'
    opened(chromium, site + address("/", text=text, kb="facts", document="letters/1.txt"))
    chromium.evaluate(
        "window.words = document.createRange(); words.setStart(textNodes()[0], 16);"
        "words.setEnd(textNodes()[0], 21)"
    )
    chromium.drag("words.getClientRects()[0]", "words.getClientRects()[0]")
    chromium.wait(lambda: "tabby" in chromium.evaluate("document.querySelector('.selector').innerText"))
    chromium.click(".selector")
    chromium.wait(lambda: chromium.evaluate(f"{CHOOSER} !== null"))
    chromium.click("dialog input[type=radio]:not(:checked)")
    chromium.evaluate(f"{CHOOSER}.querySelector('input[type=search]').select()")
    chromium.type("cat")
    chromium.wait(lambda: chromium.evaluate("document.querySelector('.option').innerText").startswith("Cat"))
    chromium.click(".option")
    assert corrected(chromium, 1) == [["tabby", "cat"], ["tabby", "cat"], ["cat", "cat"], ["tabby", "cat"]]
    chromium.click(".text a.mark:nth-of-type(2)")
    chromium.click(".option.none")
    assert corrected(chromium, 2) == [["tabby", "cat"], ["cat", "cat"], ["tabby", "cat"]]
    chromium.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    chromium.click("#corrections button")
    chromium.wait(lambda: (tmp_path / "corrections.csv").exists())
    with kgkit.open_kb("facts", home=page_home) as kb:
        corrections = Corrections.open(kb, tmp_path / "corrections.csv")
        found = corrections.spans("letters/1.txt", text)
        assert {span: row.entity for span, row in found.items()} == {
            (2, 7): "cat", (15, 20): "", (40, 45): "cat",
        }  # fmt: skip


def test_a_search_leads_to_a_card_and_a_neighbourhood_by_keyboard(site, chromium, scripts):
    """Slow: a browser is steered."""
    chromium.resize(1280)
    chromium.open(site + "/search?kb=facts")
    chromium.tab_to("#q")
    chromium.type("dog")
    chromium.follow()
    chromium.tab_to(".hit a")
    chromium.follow()
    chromium.tab_to("a[href^='/graph']")
    chromium.follow()
    chromium.tab_to("svg a")
    chromium.follow()
    assert chromium.evaluate("document.title").startswith("Around")


def test_a_column_is_reconciled_by_keyboard(site, chromium, scripts):
    """Slow: a browser is steered."""
    chromium.open(site + "/column?kb=facts")
    chromium.tab_to("#names")
    chromium.type("dog\nmosue")
    chromium.tab_to("form.panel button")
    chromium.follow()
    assert "of 2 names matched" in chromium.evaluate("document.body.innerText")
    chromium.tab_to("form[action='/column.csv'] button")


@pytest.mark.parametrize(("width", "display"), [(360, "block"), (1280, "inline-block")])
def test_candidates_of_a_name_have_a_line_each_on_a_narrow_page(site, chromium, width, display):
    """Slow: a browser draws the page."""
    chromium.resize(width)
    chromium.open(site + "/column?kb=facts&names=dog%0Amosue%0Acat%20dog")
    others = "[...document.querySelectorAll('.other')]"
    assert set(chromium.evaluate(f"{others}.map(other => getComputedStyle(other).display)")) == {display}


def test_what_a_keyboard_skips_is_the_navigation(site, chromium):
    """Slow: a browser is steered."""
    chromium.open(site + "/search?kb=facts&q=dog")
    chromium.press("Tab")
    chromium.press("Enter")
    chromium.press("Tab")
    assert chromium.evaluate("document.activeElement.closest('main') !== null")


def test_escape_closes_candidates_and_a_slash_goes_to_the_first_field(site, chromium):
    """Slow: a browser is steered."""
    chromium.open(site + address("/", text="dog cat", kb="facts"))
    chromium.tab_to("summary")
    chromium.press("Enter")
    assert chromium.evaluate("document.querySelectorAll('details[open]').length") == 1
    chromium.press("Escape")
    assert chromium.evaluate("document.querySelectorAll('details[open]').length") == 0
    chromium.send("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
    assert chromium.evaluate("document.activeElement.id") == "text"


def test_all_candidates_open_at_once(site, chromium):
    """Slow: a browser is steered."""
    chromium.open(site + address("/", text="dog cat mouse", kb="facts"))
    chromium.tab_to("button.quiet")
    chromium.press("Enter")
    assert chromium.evaluate("document.querySelectorAll('details[open]').length") == 3
    assert chromium.evaluate("document.querySelector('button.quiet').textContent") == "Close all"


def test_a_mark_opens_its_candidates_and_a_right_to_left_text_stands_right(site, chromium):
    """Slow: a browser is steered."""
    chromium.open(site + address("/", text="مرحبا يا dog", kb="facts") + "#candidates-1")
    assert chromium.evaluate("document.querySelector('details').open")
    assert chromium.evaluate("getComputedStyle(document.querySelector('.text')).direction") == "rtl"


def test_colors_follow_the_scheme_of_the_reader(site, chromium):
    """Slow: a browser is steered."""
    backgrounds = []
    for dark in (False, True):
        chromium.resize(800, dark=dark)
        chromium.open(site + "/")
        backgrounds.append(chromium.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert backgrounds == ["rgb(251, 250, 248)", "rgb(21, 23, 26)"]
