"""The view of a path: its steps, their directions, and what there is where there is no path."""

import pytest

from kgkit.serving.page.addresses import address
from kgkit.serving.page.entity_views import path_steps
from kgkit.types import Triple
from tests.serving.page.conftest import HTML, STRANGE_KEYS
from tests.small_kb import facts_kb


def test_steps_lead_from_the_first_entity_whatever_the_direction_of_a_fact(tmp_path):
    with facts_kb(tmp_path) as kb:
        facts = [Triple("dog", "is_a", "animal"), Triple("cat", "is_a", "animal")]
        steps = path_steps(kb, "dog", facts)
        assert [(step["relation"], step["is_forward"], step["entity"].key) for step in steps] == [
            ("is_a", True, "animal"), ("is_a", False, "cat"),
        ]  # fmt: skip
        assert path_steps(kb, "dog", []) == []


def test_a_path_has_links_to_its_entities_and_the_other_direction(read):
    page = read(address("/path", kb="facts", source="dog", target="cat"))
    assert address("/entity", kb="facts", key="dog") in page.links
    assert address("/entity", kb="facts", key="cat") in page.links
    assert address("/path", kb="facts", source="cat", target="dog") in page.links


@pytest.mark.parametrize("fields", [{}, {"source": "dog"}, {"target": "dog"}])
def test_without_both_ends_there_is_a_form(read, fields):
    page = read(address("/path", kb="facts", **fields))
    assert "facts" not in page.words.split("Search")[-1]
    assert len(page.named("form")) == 1


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"target": "dgo"}, 404), ({"target": "alone"}, 404), ({"target": "cat", "relation": "none"}, 422)],
)
def test_what_is_wrong_stands_above_and_the_form_stays(read, fields, status):
    page = read(address("/path", kb="facts", source="dog", **fields), status)
    assert str(status) in page.words
    assert len(page.named("form")) == 1


def test_relations_of_the_knowledge_base_can_be_chosen(read):
    page = read(
        address(
            "/path", kb="strange", source=STRANGE_KEYS[1], target=STRANGE_KEYS[0], relation=f"links {HTML}"
        )
    )
    assert "One fact" in page.words and f"links {HTML}" in page.words
