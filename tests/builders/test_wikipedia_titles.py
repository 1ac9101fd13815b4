"""Titles of MediaWiki: one page, however a link to it is written."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_builders.wikipedia.titles import CATEGORY, Site, Titles, single_spaced, without_bracket
from tests.wiki_dumps import ENGLISH, GERMAN

EN = Titles(Site(language="en", namespaces=tuple(ENGLISH.items())))
DE = Titles(Site(language="de", namespaces=tuple(GERMAN.items())))


@pytest.mark.parametrize(
    "written",
    [
        "Dog house", "dog house", "Dog_house", "_dog__house_", " Dog  house ", ":Dog house", ": dog house",
        "Dog house#Roofs", "dog_house#", "Dog%20house", "%44og house", "Dog&#32;house", "Dog&nbsp;house",
        "Dog\u00a0house", "Dog\u2003house", "Dog house\u200e", "\u200fDog house", "&#68;og house",
        "&#x44;og house",
    ],
)  # fmt: skip
def test_one_page_has_many_spellings(written):
    assert EN.target(written) == "Dog house"


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("C++", "C++"),
        ("AT&T", "AT&T"),
        ("AT&amp;T", "AT&T"),
        ("R&B;", "R&B;"),
        ("Rock & Roll", "Rock & Roll"),
        ("éclair", "Éclair"),
        ("e\u0301clair", "Éclair"),
        ("ß", "ß"),
        ("ǆabar", "Ǆabar"),
        ("2001: A Space Odyssey", "2001: A Space Odyssey"),
        ("Star Wars: Episode IV", "Star Wars: Episode IV"),
        ("100%", "100%"),
        ("%zz%41%4", "%zzA%4"),
        ("Yahoo!", "Yahoo!"),
        ("Wall·E", "Wall·E"),
        ("狗", "狗"),
        ("狗_(动物)", "狗 (动物)"),
        ("Caf%C3%A9", "Café"),
        ("caf&eacute;", "Café"),
        ("AC/DC", "AC/DC"),
        ("/dev/null", "/dev/null"),
        ("Washington, D.C.", "Washington, D.C."),
        ("...And Justice for All", "...And Justice for All"),
        ("'Allo 'Allo!", "'Allo 'Allo!"),
        ('"Heroes"', '"Heroes"'),
        ("ლომი", "ლომი"),
        ("Foo & bar; baz", "Foo & bar; baz"),
    ],
)
def test_a_title_stays_what_it_is(written, title):
    assert EN.target(written) == title


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "#Roofs", ":", "_", "::Dog", "Dog%5Bs", "Dog%7C", "Dog&#91;", "Dog&lt;b&gt;", "%E4",
        "a" * 256,
        "狗" * 86, ".", "..", "./Dog", "Dog/../Cat", "Dog/.", "Dog~~~",
        "http://dog.example", "https://dog.example/a b", "//dog.example", "mailto:dog@example.org",
        "Dog\ufffd", "%00", "''Dog''", "Dog''s",
    ],
)  # fmt: skip
def test_what_mediawiki_takes_for_no_title_is_no_link(written):
    assert EN.target(written) == ""


def test_a_title_may_have_255_bytes():
    assert EN.target("a" * 255) == "A" + "a" * 254
    assert EN.target("狗" * 85) == "狗" * 85


@pytest.mark.parametrize(
    "written",
    [
        "fr:Chien", ":fr:Chien", "FR:Chien", "zh-min-nan:Káu", "wikt:dog", "Wiktionary:dog", "commons:Dogs",
        "s:Dog", "w:Dog", "doi:10.1000/1", "species:Canis", " de : Hund",
    ],
)  # fmt: skip
def test_a_link_to_another_wiki_is_none_to_a_page(written):
    assert EN.target(written) == ""


@pytest.mark.parametrize(
    "written",
    [
        "File:Dog.jpg", "file:dog.jpg", "Image:Dog.jpg", ":File:Dog.jpg", "Talk:Dog", "talk : Dog",
        "Wikipedia:Dogs", "WP:DOG", "User:Rex",
        "user_talk:Rex", "Template:Dog", "Portal:Dogs", "Special:Search/dog",
        "Media:Woof.ogg", "Help:Dogs", ":Category:Dogs", "Module:Dog",
    ],
)  # fmt: skip
def test_other_namespaces_are_no_articles(written):
    assert EN.target(written) == ""


def test_a_category_is_told_from_a_link_to_its_page():
    assert EN.target("Category:dogs_of_war") == f"{CATEGORY}Dogs of war"
    assert EN.target("category: Dogs") == f"{CATEGORY}Dogs"
    assert EN.target(":Category:Dogs") == ""


def test_namespaces_have_their_own_names_and_the_english_ones():
    assert DE.target("Kategorie:Hunde") == DE.target("Category:Hunde") == f"{CATEGORY}Hunde"
    assert DE.target("Datei:Hund.jpg") == DE.target("Bild:Hund.jpg") == DE.target("File:Hund.jpg") == ""
    assert DE.target("Diskussion:Hund") == DE.target("Talk:Hund") == ""
    assert EN.target("Kategorie:Hunde") == "Kategorie:Hunde"


def test_a_dump_without_siteinfo_has_the_english_names():
    bare = Titles(Site())
    assert bare.target("File:Dog.jpg") == ""
    assert bare.target("Category:Dogs") == f"{CATEGORY}Dogs"
    assert bare.target("dog") == "Dog"


def test_a_wiktionary_tells_dog_from_Dog():
    wiktionary = Titles(Site(language="en", first_letter=False))
    assert wiktionary.target("dog") == "dog"
    assert wiktionary.target("_dog ") == "dog"
    assert wiktionary.target("Dog") == "Dog"


def test_a_turkish_i_keeps_its_dot():
    assert Titles(Site(language="tr")).target("istanbul") == "İstanbul"
    assert EN.target("istanbul") == "Istanbul"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_title_that_is_a_target_leads_to_itself(written):
    target = EN.target(written)
    if target and target[0] != CATEGORY:
        assert EN.target(":" + target) in (target, "")  # `:fr:x` leads elsewhere, `fr:x` cannot be a target
        if ":" not in target and "%" not in target and "&" not in target:
            assert EN.target(target) == target
        assert unicodedata.is_normalized("NFC", target)
        assert single_spaced(target) == target
        assert len(target.encode()) <= 255


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        ("Mercury (planet)", "Mercury"),
        ("Mercury(planet)", "Mercury"),
        ("李娜（歌手）", "李娜"),
        ("Foo (a) (b)", "Foo (a)"),
        ("Mercury", ""),
        ("(I Can't Get No) Satisfaction", ""),
        ("(planet)", ""),
        ("Sunday ()", ""),
        ("Foo (a (b))", ""),
    ],
)
def test_a_bracket_at_the_end_can_be_left_out(title, bare):
    assert without_bracket(title) == bare
