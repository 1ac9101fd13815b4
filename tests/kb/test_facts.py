"""Neighbours and triples, beside a list of all that can be said."""

import itertools
import random

import pytest

from kgkit.building import Entity, Triple
from kgkit.errors import UnknownEntity, UnknownName, UsageError
from kgkit.kb.facts import Facts
from tests.small_kb import FACTS, INVERSES, NODES, build, facts_kb, said

SAID = said(FACTS, INVERSES)
ONE_WAY = ("chases", "fears", "likes")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with facts_kb(tmp_path_factory.mktemp("facts")) as opened:
        yield opened


def test_keys_give_entities_and_ids_give_ids(kb):
    assert [other.key for other in kb.neighbors("puppy")] == ["dog"]
    ids = kb.neighbors(kb.id("puppy"))
    assert ids.dtype == "uint32"
    assert ids.tolist() == [kb.id("dog")]


def test_neighbors_come_in_the_order_of_the_source(kb):
    assert [other.key for other in kb.neighbors("dog", "likes")] == ["paw", "puppy"]
    assert [other.key for other in kb.neighbors("cat", "part_of", "in")] == ["paw"]
    assert [other.key for other in kb.neighbors("animal", "has_kind")] == ["dog", "cat", "thing"]


def test_an_inverse_going_out_is_the_relation_coming_in(kb):
    for key in NODES:
        assert kb.neighbors(key, "has_kind") == kb.neighbors(key, "is_a", "in")
        assert kb.neighbors(key, "has_kind", "in") == kb.neighbors(key, "is_a")
        assert (
            kb.neighbors(key, "near") == kb.neighbors(key, "near", "in") == kb.neighbors(key, "near", "both")
        )


def test_an_entity_without_facts_has_no_neighbors(kb):
    for direction in ("out", "in", "both"):
        assert kb.neighbors("alone", None, direction) == []
        assert kb.neighbors(kb.id("alone"), None, direction).tolist() == []
    assert kb.neighbors("alone") == []


def test_unknown_names_are_named_with_what_there_is(kb):
    for ask in (
        lambda: kb.neighbors("dog", "isa"),
        lambda: kb.neighbors(2, "isa", "in"),
        lambda: kb.match(relation="isa"),
        lambda: kb.match("dog", "isa"),
        lambda: kb.match(object="dog", relation="isa"),
        lambda: kb.walk("dog", "isa"),
        lambda: kb.path("dog", "cat", relations=["isa"]),
    ):
        with pytest.raises(UnknownName, match=r"'isa'.*is_a, has_kind"):
            ask()
    with pytest.raises(UsageError, match="direction is 'up'"):
        kb.neighbors("dog", None, "up")
    for ask in (kb.match, lambda key: kb.match(None, None, key), lambda key: kb.match("dog", None, key)):
        with pytest.raises(UnknownEntity):
            ask("unicorn")


def stored() -> list[tuple[str, str, str]]:
    """Return the facts, of a symmetric relation one of the two."""
    place = {key: number for number, key in enumerate(NODES)}
    return [fact for fact in FACTS if fact[1] != "near" or place[fact[0]] <= place[fact[2]]]


def test_match_takes_ids_and_entities(kb):
    expected = [Triple("dog", "chases", "cat")]
    assert list(kb.match(kb.id("dog"), "chases")) == expected
    assert list(kb.match(kb["dog"], None, kb["cat"])) == [Triple("dog", "near", "cat"), *expected]


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_are_answered_as_the_list_of_their_facts(tmp_path, seed):
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(8)]
    facts = [
        (chance.choice(names), chance.choice(["up", "beside", "by", "down"]), chance.choice(names))
        for _ in range(25)
    ]
    # `up` and `down` are written from both ends or one, `beside` from both.
    facts += [(object, name, subject) for subject, name, object in facts if name == "beside"]
    inverses = {"beside": "beside"}
    if seed % 2:
        inverses["up"] = "down"
        facts = [fact for fact in facts if fact[1] != "down"]
    facts = list(dict.fromkeys(facts))
    everything = said(facts, inverses)
    records = [*map(Entity, names), *[Triple(*fact) for fact in facts]]
    with build(tmp_path, records, inverses=inverses) as kb:
        for subject, object in itertools.product((None, *names), repeat=2):
            if subject is object is None:
                continue
            found = [
                (triple.subject, triple.relation, triple.object) for triple in kb.match(subject, None, object)
            ]
            expected = [
                fact for fact in everything if subject in (None, fact[0]) and object in (None, fact[2])
            ]
            assert sorted(found) == sorted(expected)
        for name in names:
            both = {fact[2] for fact in everything if fact[0] == name}
            both |= {fact[0] for fact in everything if fact[2] == name}
            assert {other.key for other in kb.neighbors(name, None, "both")} == both


@pytest.mark.parametrize("relation", [None, "is_a", *ONE_WAY])
def test_facts_without_inverse_are_those_that_the_facts_of_their_object_do_not_imply(kb, relation):
    facts = Facts(kb.store, kb.name)
    for key in NODES:
        expected = sorted(
            (subject, name)
            for subject, name, object in SAID
            if object == key and name in ONE_WAY and relation in (None, name)
        )
        number = kb[key].id
        assert (
            sorted((fact.subject, fact.relation) for fact in facts.without_inverse(number, relation))
            == expected
        )
        ids = facts.edges_without_inverse(number, relation)[0].tolist()
        assert sorted(kb[each].key for each in ids) == [subject for subject, _ in expected]


def test_facts_without_inverse_of_an_unknown_relation_or_entity_are_errors(kb):
    facts = Facts(kb.store, kb.name)
    with pytest.raises(UnknownName):
        facts.edges_without_inverse(0, "nothing")
    with pytest.raises(UnknownEntity):
        facts.edges_without_inverse(10**6)
