"""A page of tagged texts: the text as it is, and the probabilities of each word that may be a name."""

import re
from xml.etree import ElementTree

import pytest

from kgkit.tagging.html import typed_section
from kgkit.tagging.mention_tagger import TypedWord
from kgkit.types import Document

TYPES = ("LOC", "PER")


def section(text, *shares, types=TYPES, name="names"):
    """Return the part of a page that shows words, each with its probabilities, as XML."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    words = [TypedWord(*span, share) for span, share in zip(spans, shares, strict=True)]
    page = "".join(typed_section(Document("d", text), words, types, name))
    return ElementTree.fromstring(f"<page>{page}</page>")


def text_of(page):
    """Return the text of a page without its cards."""
    for anchor in page.iter("a"):
        anchor.remove(anchor.find("span"))
    return "".join(page.find("div").itertext())


@pytest.mark.parametrize("text", ["Anna  lives in\nRome !", " a < b & 'c' \"d\" ", "", "Ö 苹果 😀"])
def test_the_text_stands_there_as_it_is(text):
    shares = [(0.1, 0.2, 0.7)] * len(text.split())
    assert text_of(section(text, *shares)) == text
    assert text_of(section(text, *[(1.0, 0.0, 0.0)] * len(shares))) == text


def test_a_legend_names_the_types_in_their_colours():
    page = section("Anna", (0.1, 0.2, 0.7), types=("LOC", "<PER>"))
    legend = [(part.text, part.get("style")) for part in page.find("p[@class='legend']")]
    assert legend == [("LOC", "--hue:0"), ("<PER>", "--hue:180")]


def test_a_word_has_the_colour_of_its_likeliest_type_and_a_card_of_all():
    page = section("Anna in Rome", (0.1, 0.2, 0.7), (0.99, 0.005, 0.005), (0.25, 0.75, 0.0))
    anna, rome = page.iter("a")
    assert (anna.text, rome.text) == ("Anna", "Rome"), "a word that is certainly no name is drawn plain"
    assert anna.get("style") == "--hue:180;--score:0.70" and rome.get("style") == "--hue:0;--score:0.75"
    assert [anna.find("span/b").text, rome.find("span/b").text] == ["PER", "LOC"]
    rows = [[cell.text for cell in row] for row in anna.findall("span/table/tr")]
    assert rows == [
        ["probability", "type"], ["0.100", "no name"], ["0.200", "LOC"], ["0.700", "PER"],
    ]  # fmt: skip


def test_a_word_that_is_rather_no_name_shows_its_likeliest_type_without_a_line():
    [word] = section("may", (0.6, 0.1, 0.3)).iter("a")
    assert word.get("class") == "link word" and word.find("span/b").text == "no name"
    assert word.get("style") == "--hue:180;--score:0.30"
    [word] = section("May", (0.2, 0.1, 0.7)).iter("a")
    assert word.get("class") == "link"


def test_names_of_types_and_models_are_no_markup():
    page = section("x", (0.2, 0.8), types=("<b>&",), name="<script>")
    assert page.find("h2").text == "d · <script>"
    assert page.find("div/a/span/b").text == "<b>&"
