"""The picture of a linked text."""

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from kgkit.drawing.links import render
from kgkit.types import Link, LinkCandidate, LinkedDocument

HOSTILE = "<script>alert('x')</script> & \"quotes\" </div><a href=x>"


class Reading(HTMLParser):
    """Keeps tags, their attributes, and the text outside of cards and style sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.classes: list[str] = []
        self.shown = ""
        self.names = list[str]()
        self.legend = ""
        self.cards = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(f"{tag}.{dict(attrs).get('class') or ''}")
            self.classes.append(self.open[-1])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().partition(".")[0] == tag

    def handle_data(self, data: str) -> None:
        if "span.card" in self.open:
            self.cards += data
        elif "rt." in self.open:
            self.names.append(data)
        elif "p.legend" in self.open:
            self.legend += data
        elif "div.text" in self.open:
            self.shown += data


def read(*documents: LinkedDocument) -> Reading:
    reading = Reading()
    reading.feed(render(documents))
    reading.close()
    assert reading.open == []
    return reading


def a_link(text: str, start: int, length: int, entity: str | None = "dog.n.01", **how: Any) -> Link:
    row = LinkCandidate(entity or "cat", 0.5, 0.25, label="a label")
    fields: dict[str, Any] = {
        "sense": "dog%1",
        "label": "dog",
        "score": 0.25,
        "nil": entity is None,
        "candidates": [row],
        **how,
    }
    return Link(
        start=start, end=start + length, text=text[start : start + length], kb="kb", entity=entity, **fields
    )


def test_the_text_is_shown_as_it_is():
    text = "A dog\n\n  barks & 苹果 👩‍🔬 <b>"
    reading = read(LinkedDocument("d", text, "prior", [a_link(text, 2, 3)]))
    assert reading.shown == text
    assert "dog.n.01" in reading.cards
    assert "0.50" in reading.cards and "0.25" in reading.cards


@pytest.mark.parametrize("place", ["text", "id", "model", "entity", "sense", "label", "kb"])
def test_hostile_text_stays_text_wherever_it_stands(place):
    at = {place: HOSTILE}
    text = at.get("text", "dog")
    row = LinkCandidate(at.get("entity", "e"), 1, 1, label=at.get("label", "l"))
    found = Link(
        0, len(text), text, at.get("kb", "kb"), at.get("entity", "e"), at.get("sense"), at.get("label", "l"),
        1.0, False, [row],
    )  # fmt: skip
    reading = read(LinkedDocument(at.get("id", "d"), text, at.get("model", "m"), [found]))
    assert "script" not in reading.tags
    assert reading.shown == text
    assert reading.tags.count("a") == 1


@pytest.mark.parametrize(
    "odd", [*map(chr, range(32)), "\x7f", "\x85", "\ufffe", "\uffff", "\ud800", "\udfff"]
)
def test_a_page_is_xml_whatever_the_text(odd):
    row = LinkCandidate(odd, 1, 1, label=odd)
    found = Link(0, 2, f"a{odd}", odd, f"e{odd}", f"s{odd}", f"a{odd}", 1.0, False, [row])
    page = render([LinkedDocument(odd, f"a{odd}<b>", odd, [found])], describe=lambda entity: entity)
    body = page.encode().partition(b"</head>")[2].removesuffix(b"</html>\n")  # before it, <meta> has no end
    root = ElementTree.fromstring(body)
    shown = odd if odd in "\t\n\x7f\x85" else "\n" if odd == "\r" else "\ufffd"
    assert "".join(root.find(".//div").itertext()).startswith(f"a{shown}e")


def test_of_links_that_overlap_the_first_is_drawn_and_no_text_is_lost():
    text = "hot dogs taking off"
    links = [a_link(text, 0, 3), a_link(text, 0, 8), a_link(text, 4, 4), a_link(text, 9, 10)]
    reading = read(LinkedDocument("d", text, "prior", links))
    assert reading.shown == text
    assert reading.classes.count("a.link") == 3


@pytest.mark.parametrize(
    ("entity", "label", "name"),
    [("dog.n.01", "domestic dog", ["domestic dog"]), ("dog.n.01", "Dog", ["dog.n.01"]), ("DOG", "dog", [])],
)
def test_the_name_of_an_entity_stands_under_its_mention_unless_it_is_the_same(entity, label, name):
    reading = read(LinkedDocument("d", "a dog", "prior", [a_link("a dog", 2, 3, entity, label=label)]))
    assert (reading.names, reading.shown) == (name, "a dog")


def test_types_have_colors_and_a_legend_where_there_are_several():
    text = "dog cat dog owl"
    links = [
        a_link(text, start, 3, entity)
        for start, entity in ((0, "dog.n.01"), (4, "cat.n.01"), (8, "dog.n.01"), (12, None))
    ]
    kinds = {"dog.n.01": "pet & <b>", "cat.n.01": "animal"}
    page = render([LinkedDocument("d", text, "prior", links)], type_of=kinds.__getitem__)
    reading = Reading()
    reading.feed(page)
    assert reading.legend == "animalpet & <b>" and "b" not in reading.tags[:6]
    hues = re.findall(r'<a class="link" [^>]*--hue:(\d+)', page)
    assert hues == ["180", "0", "180"]
    alike = render([LinkedDocument("d", text, "prior", links)], type_of=lambda entity: "pet")
    assert "legend" not in alike.partition("<body>")[2]
    assert len({*re.findall(r'<a class="link" [^>]*--hue:(\d+)', alike)}) == 2


def test_what_means_nothing_is_drawn_as_such():
    text = "unicorn"
    reading = read(
        LinkedDocument("d", text, "prior", [a_link(text, 0, 7, None, sense=None, label="", candidates=[])])
    )
    assert "a.link nil" in reading.classes
    assert "nothing in the KB" in reading.cards
    assert "table" not in reading.tags


def test_a_page_holds_many_documents_or_none():
    assert read().shown == ""
    one, two = (LinkedDocument(name, name, "prior", []) for name in ("first", "second"))
    assert read(one, two).shown == "firstsecond"
    assert "0 links" in render([one])


def test_a_page_needs_nothing_else():
    page = render([LinkedDocument("d", "text", "prior", [a_link("text", 0, 4)])])
    assert page.startswith("<!DOCTYPE html>")
    assert "http" not in page and "src=" not in page and "<script" not in page
