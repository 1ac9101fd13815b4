"""Identifiers and addresses on links: wherever links go."""

import pytest

import kgkit
from kgkit.drawing.links import render
from kgkit.types import Link, LinkedDocument

RECORDS = [
    {"kgkit": {"url_pattern": "https://towns.example/{key:_}", "identifiers": ["wikidata"]}},
    {"key": "Port & Pier", "label": "Port", "aliases": ["port"], "attributes": {"wikidata": "Q7", "size": 3}},
    {"key": "Avon", "aliases": [{"text": "Avon", "sense": "avon%1"}]},
    {"key": "avon%1", "aliases": ["unused"]},
]


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    home = tmp_path_factory.mktemp("towns")
    kgkit.build_kb("jsonl", RECORDS, name="towns", home=home)
    with kgkit.open_kb("towns", home) as kb:
        yield kb


@pytest.fixture(scope="module")
def linked(towns):
    return kgkit.link("the port of Avon", towns, model="prior", mentions="all")


def test_a_link_carries_identifiers_and_an_address(linked):
    port, avon = linked.links
    assert (port.ids, port.url) == ({"wikidata": "Q7"}, "https://towns.example/Port_%26_Pier")
    assert (avon.ids, avon.url) == ({"sense_key": "avon%1"}, "https://towns.example/Avon")


def test_a_link_to_nothing_carries_neither(towns):
    tie = [{"key": key, "aliases": ["Bath"]} for key in ("a", "b")]
    kgkit.build_kb("jsonl", [RECORDS[0], *tie], name="tie", home=towns.home.path.parents[1])
    [nil] = kgkit.link("Bath", "tie", home=towns.home.path.parents[1], threshold=0.9, nil=True).links
    assert (nil.nil, nil.ids, nil.url) == (True, {}, "")
    assert not {"ids", "url"} & nil.to_dict().keys()


def test_a_page_links_to_the_address(linked):
    page = linked.to_html()
    assert '<a class="link" href="https://towns.example/Port_%26_Pier" rel="noreferrer"' in page


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", 'https://e.org/" onclick="x', "//e.org"]
)
def test_a_page_links_to_nothing_that_is_no_address_on_the_web(url):
    link = Link(0, 1, "x", "kb", "e", None, "", 1.0, False, [], "", {}, url)
    page = render([LinkedDocument("d", "x", "m", [link])])
    assert "href" not in page and 'tabindex="0"' in page
