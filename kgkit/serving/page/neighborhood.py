"""The neighbourhood of an entity: a bounded part of the graph.

An entity may have as many neighbours as the KB has entities. They are chosen from all relations in turn, so
that a relation of a million facts does not crowd out the others; their own neighbours follow, likewise.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

import numpy as np

from kgkit.errors import UnknownName, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.kb.facts import Facts
from kgkit.serving.page.facts import FactDirection, groups_of_ids
from kgkit.types import Entity, Ids

__all__ = ["MAX_NODES", "GraphFact", "GraphNode", "Neighborhood", "neighborhood"]

MAX_NODES: Final = 200
MAX_RADIUS: Final = 2
_FURTHER_FACTS: Final = 100  # beside those with the centre: more lines cannot be told apart
_MAX_TURNS: Final = 100_000  # neighbours of an entity that are looked at


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """An entity near the centre.

    Attributes:
        entity: entity itself.
        relation: relation by which it was reached.
        direction: whether it is the object of that fact (`out`), or its subject (`in`).
        parent: position of the node from which it was reached; 0 is the centre.
    """

    entity: Entity
    relation: str
    direction: FactDirection
    parent: int


@dataclass(frozen=True, kw_only=True)
class GraphFact:
    """A fact between two nodes.

    Attributes:
        subject: position of the subject; 0 is the centre.
        relation: name of the relation.
        object: position of the object.
    """

    subject: int
    relation: str
    object: int


@dataclass(frozen=True, kw_only=True)
class Neighborhood:
    """Entities and facts around an entity.

    Attributes:
        centre: entity in the middle.
        nodes: entities around it; position 1 is the first of them, 0 the centre.
        facts: stored facts among them, the centre included.
        hidden: number of neighbours of the centre that are not among the nodes.
        relations: relations that the entity has facts of.
    """

    centre: Entity
    nodes: list[GraphNode] = field(default_factory=list)
    facts: list[GraphFact] = field(default_factory=list)
    hidden: int = 0
    relations: list[str] = field(default_factory=list)


_Reached = dict[int, tuple[str, FactDirection, int]]


def neighborhood(
    kb: KnowledgeBase, key: str, *, max_nodes: int = 60, radius: int = 1, relation: str | None = None
) -> Neighborhood:
    """Return the neighbourhood of an entity.

    Args:
        kb: open knowledge base.
        key: key of the entity.
        max_nodes: largest number of entities around it, at most `MAX_NODES`.
        radius: largest number of facts between it and them, 1 or 2.
        relation: name of the only relation; None for any.

    Raises:
        UnknownEntity: if the KB has no such entity.
        UnknownName: if the entity is in no fact of that relation.
        UsageError: if a number is out of range.
    """
    if not 1 <= max_nodes <= MAX_NODES or not 1 <= radius <= MAX_RADIUS:
        raise UsageError(
            f"max_nodes is {max_nodes} and radius {radius}: they are 1 to {MAX_NODES}, and 1 to {MAX_RADIUS}"
        )
    facts, centre = Facts(kb.store, kb.name), kb.id(key)
    groups = [*groups_of_ids(facts, centre)]
    relations = sorted({name for name, _, _ in groups})
    if relation is not None:
        if relation not in relations:
            raise UnknownName(f"relation of {key!r}", relation, relations)
        groups = [group for group in groups if group[0] == relation]
    first_ring = max_nodes if radius == 1 else max(1, max_nodes // 3)
    reached: _Reached = {}
    _add_nodes(reached, _round_robin([_edges(*group, 0) for group in groups]), first_ring, centre)
    if radius > 1:
        inner = [*reached]
        branches = [
            _outer_edges(facts, number, position, relation) for position, number in enumerate(inner, start=1)
        ]
        _add_nodes(reached, _round_robin(branches), max_nodes, centre)
    numbers = [*reached]
    neighbors = np.unique(np.concatenate([ids for _, _, ids in groups])) if groups else np.empty(0, np.uint32)
    shown = np.isin(neighbors, np.array([centre, *numbers], np.uint32)).sum()
    nodes = [
        GraphNode(
            entity=entity,
            relation=reached[number][0],
            direction=reached[number][1],
            parent=reached[number][2],
        )
        for number, entity in zip(numbers, kb.store.entities(numbers), strict=True)
    ]
    return Neighborhood(
        centre=kb[centre],
        nodes=nodes,
        facts=_facts_among(facts, [centre, *numbers], reached, relation),
        hidden=len(neighbors) - int(shown),
        relations=relations,
    )


_Edge = tuple[int, str, FactDirection, int]


def _edges(relation: str, direction: FactDirection, ids: Ids, parent: int) -> Iterator[_Edge]:
    for number in ids[:_MAX_TURNS].tolist():
        yield number, relation, direction, parent


def _outer_edges(facts: Facts, number: int, parent: int, relation: str | None) -> Iterator[_Edge]:
    """Yield the edges of an entity beside the centre, by one relation or all."""
    for name, direction, ids in groups_of_ids(facts, number):
        if relation in (None, name):
            yield from _edges(name, direction, ids, parent)


def _round_robin(sources: Sequence[Iterable[_Edge]]) -> Iterator[_Edge]:
    """Yield the first of each source, then the second of each, and so on."""
    for row in zip_longest(*sources):
        yield from (edge for edge in row if edge is not None)


def _add_nodes(reached: _Reached, edges: Iterator[_Edge], size: int, centre: int) -> None:
    """Add entities that have not been reached yet, until there are *size*."""
    for number, relation, direction, parent in edges:
        if len(reached) >= size:
            return
        if number != centre and number not in reached:
            reached[number] = relation, direction, parent


def _facts_among(
    facts: Facts, numbers: Sequence[int], reached: _Reached, relation: str | None
) -> list[GraphFact]:
    """Return facts among entities: those by which they were reached, then some of the others, in turns."""
    positions = {number: position for position, number in enumerate(numbers)}
    inside = np.array(numbers, np.uint32)
    sources = [_facts_of(facts, number, positions, inside, relation) for number in numbers]
    branches: list[GraphFact] = []
    others: list[GraphFact] = []
    for fact in (fact for row in zip_longest(*sources) for fact in row if fact is not None):
        near, far = sorted((fact.subject, fact.object))
        is_branch = far > 0 and reached[numbers[far]][2] == near
        (branches if is_branch else others).append(fact)
    return branches + others[:_FURTHER_FACTS]


def _facts_of(
    facts: Facts, number: int, positions: Mapping[int, int], inside: Ids, relation: str | None
) -> Iterator[GraphFact]:
    """Yield the facts of an entity about those inside; of a fact and its inverse one, that of the centre."""
    centre = int(inside[0])
    ids, codes = facts.edges(number, None, "out")
    matching = np.isin(ids, inside)
    for neighbor, code in zip(ids[matching].tolist(), codes[matching].tolist(), strict=True):
        name, inverse = facts.name(code), facts.inverse(code)
        if number != centre:
            if neighbor == centre and inverse is not None:
                continue
            if relation is None and not facts.is_stored(number, code, neighbor):
                continue
            if inverse == code and number > neighbor:
                continue
        if relation in (None, name):
            yield GraphFact(subject=positions[number], relation=name, object=positions[neighbor])
