"""Patterns of addresses: which are taken, and what they make of a key."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.types import Entity
from kgkit.urls import UrlPattern, is_web_address

WIKI = "https://en.wikipedia.org/wiki/{key:_}"


@pytest.mark.parametrize(
    ("pattern", "entity", "url"),
    [
        (WIKI, Entity("Mercury (planet)"), "https://en.wikipedia.org/wiki/Mercury_(planet)"),
        (WIKI, Entity("AC/DC"), "https://en.wikipedia.org/wiki/AC%2FDC"),
        (WIKI, Entity("苹果"), "https://en.wikipedia.org/wiki/%E8%8B%B9%E6%9E%9C"),
        ("https://en-word.net/lemma/{label}", Entity("x", "hot dog"), "https://en-word.net/lemma/hot%20dog"),
        (
            "http://h:80/?q={key}&x=1#f",
            Entity("a&b#\"c<d>%'e"),
            "http://h:80/?q=a%26b%23%22c%3Cd%3E%25%27e&x=1#f",
        ),
        ("https://w.org/{id}", Entity("a", attributes={"id": 42}), "https://w.org/42"),
        ("https://w.org/{id}", Entity("a", attributes={"id": "Q42"}), "https://w.org/Q42"),
        ("https://w.org/{a b}", Entity("a", attributes={"a b": "c"}), "https://w.org/c"),
        ("https://w.org/{key}.html", Entity("\ud800"), "https://w.org/%3F.html"),
    ],
)
def test_a_value_is_encoded_where_the_placeholder_was(pattern, entity, url):
    assert UrlPattern(pattern).url(entity) == url


@pytest.mark.parametrize(
    "attributes",
    [{}, {"id": ""}, {"id": True}, {"id": ["Q1", "Q2"]}, {"id": None}, {"id": ".."}, {"id": 1.5}],
)
def test_an_entity_without_a_value_has_no_address(attributes):
    assert UrlPattern("https://w.org/{id}").url(Entity("a", attributes=attributes)) == ""


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "does not begin with https"),
        ("javascript:alert({key})", "does not begin with https"),
        ("ftp://h.org/{key}", "does not begin with https"),
        ("//h.org/{key}", "does not begin with https"),
        ("https://h.org/", "has 0 placeholders"),
        ("https://h.org/{key}/{label}", "has 2 placeholders"),
        ("https://h.org/{key}/{}", "has 1 placeholders"),
        ("https://h.org/{key}}", "has 1 placeholders"),
        ("https://h.org/{key:x}", "has 0 placeholders"),
        ("https://{key}", "no host and slash"),
        ("https://h.org{key}", "no host and slash"),
        ("https://h.org@{key}/", "no host and slash"),
        ("https://user@h.org/{key}", "no host and slash"),
        ("https:///{key}", "no host and slash"),
        ("https://h.org/a b/{key}", "characters that no URL has"),
        ('https://h.org/"{key}', "characters that no URL has"),
        ("https://h.org/\n{key}", "characters that no URL has"),
        ("https://h.org/ä/{key}", "characters that no URL has"),
        ("https://h.org/" + "a" * 2000 + "{key}", "2,000 are the most"),
    ],
)
def test_what_is_no_pattern_of_addresses_on_one_host_is_refused(pattern, reason):
    with pytest.raises(ValueError, match=reason):
        UrlPattern(pattern)


@given(st.text())
def test_an_address_stays_on_its_host_and_gives_the_value_back(key):
    url = UrlPattern("https://h.org/wiki/{key}?a=b").url(Entity(key))
    if key in ("", ".", ".."):
        assert url == ""
        return
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("https", "h.org", "a=b", "")
    assert unquote(parts.path).removeprefix("/wiki/") == key.encode(errors="replace").decode()
    assert is_web_address(url)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://e.org/a", True), ("https://e.org", True), ("HTTP://e.org/a", False), ("e.org", False),
        ("javascript:alert(1)", False), ("https://e.org/a b", False), ('https://e.org/"', False), ("", False),
    ],
)  # fmt: skip
def test_an_address_on_the_web_begins_with_http_and_has_its_characters_only(text, expected):
    assert is_web_address(text) == expected
