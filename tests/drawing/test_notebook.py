"""What a notebook shows of links, entities and knowledge bases: all of it escaped, bounded, and lazy."""

import math
import re
from xml.etree import ElementTree

import pytest

import kgkit
from kgkit.drawing import notebook
from kgkit.types import Entity, Link, LinkCandidate, LinkedDocument
from tests.vector_toys import made

HOSTILE = "<script>alert('x')</script>\"&"


SECOND = LinkCandidate("Apple_Inc.", 0.3, 0.2)


def link(start=0, end=5, text="apple", entity="Apple", **fields):
    usual = {
        "kb": "toy", "sense": None, "label": "apple", "score": 0.75, "nil": entity is None,
        "candidates": [LinkCandidate("Apple", 0.7, 0.75, label="apple"), SECOND],
    }  # fmt: skip
    return Link(start=start, end=end, text=text, entity=entity, **(usual | fields))


def tree(drawing):
    """Return a drawing as a tree, which it has to be."""
    return ElementTree.fromstring(drawing.replace("&#10;", "\n"))


def words(drawing):
    return " ".join("".join(tree(drawing).itertext()).split())


def test_a_text_is_drawn_with_its_links_and_the_names_of_their_entities():
    document = LinkedDocument("d", "apple pie and apple", "prior", [link(), link(14, 19, entity=None)])
    drawing = document._repr_html_()
    assert words(drawing) == "d · 2 links · prior" + "apple pie and apple"
    assert "0.75 Apple apple&#10;0.20 Apple_Inc." in drawing and "dotted gray" in drawing


def test_the_name_of_an_entity_stands_under_another_name():
    drawing = LinkedDocument("d", "apple", "prior", [link(label="the fruit")])._repr_html_()
    assert [node.text for node in tree(drawing).iter("rt")] == ["the fruit"]


def test_of_links_that_overlap_the_first_is_drawn():
    document = LinkedDocument("d", "big apple", "prior", [link(0, 9, "big apple"), link(4, 9)])
    assert words(document._repr_html_()).count("apple") == 2  # the text, and the name under it


def test_of_a_long_text_the_beginning_is_drawn():
    text = "apple " * 5000
    links = [link(6 * number, 6 * number + 5) for number in range(5000)]
    drawing = LinkedDocument("d", text, "prior", links)._repr_html_()
    assert "10,002 more characters" in drawing or "more characters" in drawing
    assert drawing.count("<span") == math.ceil((notebook.MOST_CHARACTERS - 4) / 6)


def test_a_link_is_drawn_with_its_candidates_and_its_address():
    drawing = link(url="https://example.org/Apple")._repr_html_()
    assert "https://example.org/Apple" in drawing and "0.20" in drawing
    assert [node.text for node in tree(drawing).iter("th")] == ["score", "prior", "candidate", "label"]
    assert "nothing in the knowledge base" in link(entity=None)._repr_html_()


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//x"])
def test_an_address_that_is_none_of_the_web_is_not_drawn(url):
    assert "href" not in link(url=url)._repr_html_()


def test_an_entity_is_drawn_with_its_first_attributes():
    entity = Entity(
        "Apple", "apple", "A fruit.", "page", types=("food",), attributes={f"a{n}": n for n in range(20)}
    )
    shown = words(entity._repr_html_())
    assert shown.startswith("apple Apple page, food") and "A fruit." in shown
    assert "a7" in shown and "a8" not in shown and "12 more" in shown
    assert words(Entity("bare")._repr_html_()) == "bare bare"


def test_a_knowledge_base_is_drawn_with_its_counts_its_licence_and_its_vectors(tmp_path):
    from tests.toys import build_toy

    home = build_toy(tmp_path).path.parents[3]
    made(home)
    with kgkit.open_kb("toy", home=home) as kb:
        shown = words(kb._repr_html_())
        assert shown.startswith(f"toy build {kb.build}") and "CC0-1.0" in shown and "plane" in shown
        assert "entities" in shown and kb["Apple"]._repr_html_().startswith("<div><b>apple</b>")


@pytest.mark.parametrize(
    "drawn",
    [
        LinkedDocument(HOSTILE, HOSTILE, HOSTILE, [link(0, 8, HOSTILE, HOSTILE, label=HOSTILE * 2)]),
        link(text=HOSTILE, entity=HOSTILE, label=HOSTILE, kb=HOSTILE,
             candidates=[LinkCandidate(HOSTILE, 0.1, 0.1, label=HOSTILE)]),
        Entity(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), {HOSTILE: HOSTILE}),
    ],
    ids=["document", "link", "entity"],
)  # fmt: skip
def test_nothing_of_a_text_or_a_knowledge_base_is_markup(drawn):
    drawing = drawn._repr_html_()
    assert "<script" not in drawing and "onerror" not in drawing
    assert {node.tag for node in tree(drawing).iter()} <= {
        "div", "small", "span", "ruby", "rt", "b", "code", "table", "tr", "td", "th", "a",
    }  # fmt: skip


@pytest.mark.parametrize("score", [float("nan"), -5.0, 0.0, 1.0, 80.0])
def test_a_color_has_a_share_whatever_the_score_is(score):
    drawing = LinkedDocument("d", "apple", "prior", [link(score=score)])._repr_html_()
    [share] = re.findall(r"hsla\(\d+,70%,55%,([\d.]+)\)", drawing)
    assert 0.1 < float(share) <= 0.42
