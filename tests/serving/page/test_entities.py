"""Views of entities: search, card, nearest."""

import pytest

from kgkit.serving.page.addresses import address
from kgkit.serving.page.entity_views import MAX_CHARACTERS, MAX_VALUES, attribute_views, entity_card
from kgkit.serving.page.rendering import NAVIGATION
from tests.serving.page.conftest import HTML, STRANGE_KEYS
from tests.small_kb import facts_kb, surfaces_kb


def views(attributes, excluded=frozenset()):
    return {view["name"]: view["values"] for view in attribute_views(attributes, set(excluded))}


def test_attributes_are_texts_without_empty_ones_and_identifiers():
    attributes = {
        "a": 1,
        "b": [],
        "c": "",
        "d": None,
        "e": {},
        "f": ["x", "", 2.5],
        "g": False,
        "wikidata": "Q1",
    }
    assert views(attributes, {"wikidata"}) == {"a": ["1"], "f": ["x", "2.5"], "g": ["False"]}


def test_nested_attributes_are_written_out():
    assert views({"a": [{"x": [1, 2], "y": {"z": 3}}]}) == {"a": ["x: 1; 2; y: z: 3"]}


def test_long_attributes_are_cut():
    [sequence, text] = attribute_views({"many": list(range(1_000)), "long": "x" * 100_000}, set())
    assert (len(sequence["values"]), sequence["hidden"]) == (MAX_VALUES, 1_000 - MAX_VALUES)
    assert len(text["values"][0]) == MAX_CHARACTERS
    assert text["values"][0].endswith("…")


def test_a_card_has_names_facts_and_no_address_where_there_is_none(tmp_path):
    with facts_kb(tmp_path) as kb:
        card = entity_card(kb, "dog")
    assert [surface.surface for surface in card["surfaces"]] == ["dog"]
    assert (card["url"], card["ids"], card["hidden_surfaces"]) == ("", {}, 0)
    assert ("is_a", "out", 1) in [(group.relation, group.direction, group.total) for group in card["facts"]]


def test_a_card_has_spellings_with_their_priors(tmp_path):
    with surfaces_kb(tmp_path) as kb:
        card = entity_card(kb, "Turkey_(bird)")
    assert {surface.surface for surface in card["surfaces"]} >= {"turkey"}
    assert all(0 <= surface.prior <= 1 for surface in card["surfaces"])


@pytest.mark.parametrize("key", STRANGE_KEYS)
def test_a_strange_key_has_its_card_neighbourhood_and_search(read, key):
    card = read(address("/entity", kb="strange", key=key))
    assert key in card.text
    assert f"what {HTML} is" in card.text
    for link in card.links:
        if link.startswith(("/graph", "/search?kb=strange&q=")):
            assert key in read(link).text or "mark" in link
    assert read(address("/search", q=key, kb="strange")).rows == []
    assert key in read(address("/search", q=key, kb="strange")).text


def test_a_search_lists_what_is_called_so_with_links(read):
    page = read(address("/search", q="dog", kb="facts"))
    assert address("/entity", kb="facts", key="dog") in page.links
    assert "Dog" in page.text


def test_a_search_that_finds_nothing_says_so(read):
    assert "Nothing in facts is called so" in read(address("/search", q="qqqqqqqq", kb="facts")).words


def test_a_search_of_a_kind_lists_that_kind_only(read):
    page = read(address("/search", q="thing", kb="facts", kind="thing"))
    assert "1 result" in page.words
    assert "no kind of entity" in read(address("/search", q="thing", kb="facts", kind="x"), 422).words


def test_a_search_without_a_text_is_a_form(read):
    page = read("/search?q=%20%20")
    assert page.classes("ol") == []
    assert page.forms[0][1] == ["q", "kb", "by", "kind"]


def test_the_choices_of_a_form_stay(read):
    page = read(address("/search", q="mark", kb="strange", kind="page"))
    selected = [values for values in page.named("option") if "selected" in values]
    assert len(selected) == 3
    assert {"value": "page", "selected": ""} in selected
    assert address("/", kb="strange") in page.links  # other views stay with the knowledge base


def test_nearest_to_an_entity_are_others_with_their_cosines(read):
    page = read(address("/nearest", kb="facts", key="dog"))
    assert "Nearest to Dog" in page.words
    assert address("/entity", kb="facts", key="cat") in page.links
    assert address("/nearest", kb="facts", key="cat") in page.links


def test_a_key_in_the_form_of_nearest_is_an_entity(read):
    assert "Nearest to Dog" in read(address("/nearest", kb="facts", q="dog")).words


def test_of_nearest_as_many_are_listed_as_are_asked_for(read):
    page = read(address("/nearest", kb="facts", key="dog", k="2"))
    assert len([values for values in page.named("li") if not values]) - len(NAVIGATION) == 2
    assert "k is '0'" in read(address("/nearest", kb="facts", key="dog", k="0"), 422).words


def test_where_there_are_no_vectors_nearest_says_so(read):
    page = read(address("/nearest", kb="strange", key=STRANGE_KEYS[0]), 404)
    assert "vectors" in page.words
    card = read(address("/entity", kb="strange", key=STRANGE_KEYS[0]))
    assert not [link for link in card.links if link.startswith("/nearest?kb=strange&key")]


def test_an_unknown_key_is_told_with_a_search_for_it(read):
    page = read(address("/entity", kb="facts", key="dgo"), 404)
    assert "did you mean dog" in page.words
    assert address("/search", q="dgo") in page.links


def test_without_a_name_the_first_knowledge_base_is_asked(read):
    assert "Dog" in read("/entity?key=dog").text
    assert "no knowledge base served here named 'none'" in read("/entity?key=dog&kb=none", 422).words
