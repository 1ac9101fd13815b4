"""First paragraphs, as plain text."""

import pytest

from kb_builders.wikipedia.lead import MAX_PARAGRAPH, first_paragraph, items
from kb_builders.wikipedia.templates import Templates
from kb_builders.wikipedia.titles import Site, Titles
from kb_builders.wikipedia.wikitext import cut

TITLES = Titles(Site(language="en"))


def lead(text):
    return first_paragraph(cut(text), TITLES.is_hidden, Templates("en"), "Dog")


@pytest.mark.parametrize(
    "text",
    [
        "A '''dog''' is an [[animal]].",
        "\n\nA '''dog''' is an [[animal]].\n\nIt barks.",
        "A dog is\nan animal.\n\nIt barks.",
        "A dog is an animal.\n== Breeds ==\nMany.",
        "A dog is an animal.\n* one\n* two",
        "{{Infobox animal\n| name = Dog\n| legs = {{nowrap|4}}\n}}\nA dog is an animal.",
        "{{Short description|Animal}}{{Use dmy dates}}\nA dog is an animal.",
        ":''For the Led Zeppelin song, see [[Black Dog]].''\nA dog is an animal.",
        "{| class=infobox\n| a\n|-\n|\n{| class=inner\n| b\n|}\n|}\nA dog is an animal.",
        "[[File:Dog.jpg|thumb|A [[dog]] [[File:x.png]] here]]\nA dog is an animal.",
        "[[File:Dog.jpg|thumb|A\n\n[[dog]]]]\nA dog is an animal.",
        "[[fr:Chien]]\n[[Category:Dogs]]\nA dog is an animal.",
        "__NOTOC__\nA dog is an animal.",
        "<!-- old --> A dog<ref>Or a [[wolf]]</ref> is an animal.<ref name=a /><ref>See\n\nthere</ref>",
        "A dog ({{IPA|dɒɡ}}) is an animal.",
        "A dog ( {{IPA|dɒɡ}} ; , ) is an animal.",
        "A dog {{citation needed}} is an [[animal|animal]] .",
        "A&nbsp;dog is an <i>animal</i>.",
        "----\nA dog is an animal.",
        "'''A''' [[:dog]] is an [[Animal (biology)|animal]].",
        "<div>\n</div>\nA dog is an animal.",
        "A [[File:x.png|20px]] dog is an animal.",
    ],
)
def test_the_first_paragraph_is_read(text):
    assert lead(text) == "A dog is an animal."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "== Dogs ==\nA dog is an animal.",
        "* one\n* two",
        "{{Infobox}}",
        "{|\n| a\nA dog.",
    ],
)
def test_a_page_may_have_none(text):
    assert lead(text) == ""


def test_what_was_a_template_in_a_bracket_leaves_no_trace():
    assert lead("Plato ({{IPA|x}}, ''Plátōn''; 428 BC) was") == "Plato (Plátōn; 428 BC) was"
    assert lead("李娜（{{IPA|x}}，1982年）是") == "李娜（1982年）是"


def test_marks_of_italics_on_both_sides_of_markup_are_no_apostrophes():
    text = "''we''<sup>''w''</sup> is ''[[dog|''a'' dog]]'' or '''[[dog|''D'']]'''"
    assert lead(text) == "wew is a dog or D"


def test_a_long_infobox_is_passed_over():
    for size in (100, 2_000, 10_000):
        text = "{{Infobox\n" + "| a = {{b|c}} [[d]]\n" * size + "}}\nA dog is an animal.\n\nMore."
        assert lead(text) == ("A dog is an animal." if size < 10_000 else "")


def test_a_long_paragraph_ends_with_a_sentence():
    sentences = "This one has six short words. " * 60
    found = lead(sentences)
    assert 900 < len(found) <= MAX_PARAGRAPH and found.endswith("words.")
    assert lead("字" * 300 + "。" + "字" * 900) == "字" * 300 + "。"


def test_a_long_sentence_ends_with_a_word():
    found = lead("word " * 1_000)
    assert len(found) <= MAX_PARAGRAPH and found.endswith("word…")
    assert lead("字" * 2_000) == "字" * 999 + "…"


def test_a_paragraph_of_exactly_so_many_characters_stays():
    assert lead("x" * MAX_PARAGRAPH) == "x" * MAX_PARAGRAPH


def test_items_are_the_lines_of_lists():
    text = "'''Mercury''' may be:\n* [[Mercury (planet)]]\n** a [[moon]]\n# [[x]]\n== y ==\nz\n*w"
    assert list(items(text)) == [" [[Mercury (planet)]]", " a [[moon]]", " [[x]]", "w"]
