"""Closure, shortest paths and neighbourhoods, beside networkx."""

import itertools
import random
from collections.abc import Iterable

import networkx
import pytest

from kgkit.building import Entity, Triple
from kgkit.errors import NoPath, UnknownEntity, UnknownName, UsageError
from tests.small_kb import FACTS, INVERSES, NODES, build, facts_kb, said


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with facts_kb(tmp_path_factory.mktemp("facts")) as opened:
        yield opened


def keys(entities: Iterable[Entity]) -> list[str]:
    return [entity.key for entity in entities]


@pytest.mark.parametrize(("depth", "expected"), [(0, []), (1, ["dog"]), (2, ["dog", "animal"])])
def test_a_walk_can_be_cut_at_a_depth(kb, depth, expected):
    assert keys(kb.walk("puppy", "is_a", max_depth=depth)) == expected


def test_a_walk_starts_from_an_id_or_an_entity_and_complains_at_once(kb):
    assert (
        keys(kb.walk(kb.id("puppy"), "is_a"))
        == keys(kb.walk(kb["puppy"], "is_a"))
        == ["dog", "animal", "thing"]
    )
    with pytest.raises(UnknownEntity):
        kb.walk("unicorn", "is_a")
    with pytest.raises(UnknownName):
        kb.walk("dog", "isa")


def test_a_walk_agrees_with_networkx(kb):
    everything = said(FACTS, INVERSES)
    for key, relation in itertools.product(NODES, kb.relations):
        graph = networkx.DiGraph()
        graph.add_nodes_from(NODES)
        graph.add_edges_from((subject, object) for subject, name, object in everything if name == relation)
        assert set(keys(kb.walk(key, relation))) == networkx.descendants(graph, key)
        depths = networkx.single_source_shortest_path_length(graph, key)
        found = [depths[other] for other in keys(kb.walk(key, relation))]
        assert found == sorted(found)


def undirected(facts: Iterable[tuple[str, str, str]], nodes: Iterable[str]) -> "networkx.Graph[str]":
    graph: networkx.Graph[str] = networkx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((subject, object) for subject, _, object in facts)
    return graph


def check_path(path: list[Triple], start: str, end: str, everything: set[tuple[str, str, str]]) -> None:
    """Every step is a fact and begins where the one before it ended."""
    at = start
    for step in path:
        assert (step.subject, step.relation, step.object) in everything
        assert at in (step.subject, step.object)
        at = step.object if step.subject == at else step.subject
    assert at == end


def test_a_path_is_told_step_by_step(kb):
    assert kb.path("claw", "animal") == [
        Triple("claw", "part_of", "paw"),
        Triple("paw", "part_of", "dog"),
        Triple("dog", "is_a", "animal"),
    ]
    assert kb.path("animal", "paw", relations=["is_a", "likes"]) == [
        Triple("animal", "has_kind", "dog"),
        Triple("dog", "likes", "paw"),
    ]


def test_a_step_against_a_one_way_relation_is_told_as_it_is_stored(kb):
    assert kb.path("mouse", "dog", relations=["chases"]) == [
        Triple("cat", "chases", "mouse"),
        Triple("dog", "chases", "cat"),
    ]


def test_a_path_to_itself_has_no_steps(kb):
    assert kb.path("dog", "dog") == []
    assert kb.path("alone", kb.id("alone")) == []


def test_where_there_is_no_path_it_says_so(kb):
    with pytest.raises(NoPath, match="'dog' to 'alone'"):
        kb.path("dog", "alone")
    with pytest.raises(NoPath):
        kb.path("dog", "mouse", relations=["part_of", "is_a"])
    with pytest.raises(UnknownEntity):
        kb.path("dog", "unicorn")


def test_a_relation_allows_its_inverse_too(kb):
    expected = [Triple("puppy", "is_a", "dog"), Triple("dog", "is_a", "animal")]
    assert kb.path("puppy", "animal", relations=["is_a"]) == expected
    assert kb.path("puppy", "animal", relations=["has_kind"]) == expected


@pytest.mark.parametrize("seed", range(8))
def test_paths_of_random_graphs_are_as_short_as_those_of_networkx_and_always_the_same(tmp_path, seed):
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(14)]
    facts = [
        (chance.choice(names), chance.choice(["is_a", "likes", "near"]), chance.choice(names))
        for _ in range(chance.choice([10, 16, 40]))
    ]
    facts = list(dict.fromkeys([*facts, *[(c, name, a) for a, name, c in facts if name == "near"]]))
    records = [*map(Entity, names), *[Triple(*fact) for fact in facts]]
    with build(tmp_path, records, inverses=INVERSES) as kb:
        for allowed in (None, ["is_a"], [name for name in ("likes", "near") if name in kb.relations]):
            chosen = [fact for fact in facts if allowed is None or fact[1] in allowed]
            graph, everything = undirected(chosen, names), set(said(chosen, INVERSES))
            for start, end in itertools.product(names, repeat=2):
                if not networkx.has_path(graph, start, end):
                    with pytest.raises(NoPath):
                        kb.path(start, end, allowed)
                    continue
                path = kb.path(start, end, allowed)
                assert len(path) == networkx.shortest_path_length(graph, start, end)
                check_path(path, start, end, everything)
                assert kb.path(start, end, allowed) == path


@pytest.mark.parametrize("radius", [0, 1, 2, 5])
def test_a_neighbourhood_is_that_of_networkx(kb, radius):
    whole = undirected(FACTS, NODES)
    for start in NODES:
        graph = kb.subgraph([start], radius)
        assert set(graph) == set(networkx.ego_graph(whole, start, radius))
        expected = {fact for fact in FACTS if fact[0] in graph and fact[2] in graph}
        edges = {(subject, name, object) for subject, object, name in graph.edges(keys=True)}
        assert {fact for fact in edges if fact[1] != "near"} == {
            fact for fact in expected if fact[1] != "near"
        }
        near = {frozenset((a, c)) for a, name, c in expected if name == "near"}
        assert sorted(map(sorted, near)) == sorted(sorted({a, c}) for a, name, c in edges if name == "near")


def test_one_entity_and_one_relation_need_no_list(kb):
    assert set(kb.subgraph("puppy")) == set(kb.subgraph(kb["puppy"])) == {"puppy", "dog"}
    assert kb.path("puppy", "animal", relations="is_a") == kb.path("puppy", "animal", relations=["is_a"])


def test_a_neighbourhood_of_nonsense_is_refused(kb):
    with pytest.raises(UsageError, match="radius is -1"):
        kb.subgraph(["dog"], -1)
    with pytest.raises(UnknownEntity):
        kb.subgraph(["unicorn"])
