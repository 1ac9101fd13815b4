"""Facts of an entity by relation: counted all, shown as many as fit, each pair of inverses once."""

import pytest

from kgkit.building import Entity, Triple
from kgkit.errors import UnknownName
from kgkit.serving.page.facts import facts_by_relation, facts_of_relation
from tests.small_kb import build

RECORDS = [
    *(Entity(key, key.title()) for key in ("dog", "cat", "animal", "paw", "bone", "alone")),
    Triple("dog", "hypernym", "animal"), Triple("cat", "hypernym", "animal"),
    Triple("dog", "eats", "bone"), Triple("dog", "eats", "paw"), Triple("dog", "eats", "cat"),
    Triple("cat", "fears", "dog"), Triple("dog", "fears", "dog"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("kb"), RECORDS, inverses={"hypernym": "hyponym"}) as opened:
        yield opened


def groups(kb, key, size=10):
    """Return the groups of an entity as (relation, direction, total, keys that are shown)."""
    return {
        (group.relation, group.direction): (group.total, sorted(entity.key for entity in group.entities))
        for group in facts_by_relation(kb, kb.id(key), size)
    }


def test_facts_are_grouped_by_relation_and_direction(kb):
    assert groups(kb, "dog") == {
        ("hypernym", "out"): (1, ["animal"]),
        ("eats", "out"): (3, ["bone", "cat", "paw"]),
        ("fears", "out"): (1, ["dog"]),
        ("fears", "in"): (2, ["cat", "dog"]),
    }


def test_a_relation_with_an_inverse_is_read_from_the_side_of_the_entity_alone(kb):
    assert groups(kb, "animal") == {("hyponym", "out"): (2, ["cat", "dog"])}
    assert ("hypernym", "in") not in groups(kb, "animal")


def test_an_entity_without_facts_has_no_groups(kb):
    assert groups(kb, "alone") == {} and facts_by_relation(kb, kb.id("alone"), 3) == []


def test_all_facts_are_counted_and_a_bounded_number_shown(kb):
    total, keys = groups(kb, "dog", size=2)["eats", "out"]
    assert total == 3 and len(keys) == 2
    assert groups(kb, "dog", size=0)["eats", "out"] == (3, [])


def test_pages_of_a_relation_together_are_all_of_its_facts(kb):
    pages = [facts_of_relation(kb, kb.id("dog"), "eats", "out", start, 2) for start in (0, 2, 4)]
    assert [page.total for page in pages] == [3, 3, 3]
    assert [len(page.entities) for page in pages] == [2, 1, 0]
    shown = [entity.key for page in pages for entity in page.entities]
    assert sorted(shown) == ["bone", "cat", "paw"]
    every = next(group for group in facts_by_relation(kb, kb.id("dog"), 10) if group.relation == "eats")
    assert shown == [entity.key for entity in every.entities]


def test_the_direction_says_on_which_side_of_the_facts_the_entity_is(kb):
    incoming = facts_of_relation(kb, kb.id("dog"), "fears", "in", 0, 9)
    outgoing = facts_of_relation(kb, kb.id("dog"), "fears", "out", 0, 9)
    assert (incoming.total, outgoing.total) == (2, 1)
    assert (incoming.direction, outgoing.direction) == ("in", "out")
    assert facts_of_relation(kb, kb.id("paw"), "eats", "out", 0, 9).total == 0


@pytest.mark.parametrize(
    ("relation", "direction", "message"),
    [("eats", "sideways", "direction of facts.*sideways.*out"), ("drinks", "out", "drinks")],
)
def test_an_unknown_relation_or_direction_is_an_error_that_names_it(kb, relation, direction, message):
    with pytest.raises(UnknownName, match=message):
        facts_of_relation(kb, kb.id("dog"), relation, direction, 0, 9)
