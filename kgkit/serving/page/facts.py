"""Facts of an entity in both directions, by relation, a bounded number of each.

An entity may be in a million facts: ids are counted, and only those that are shown become entities. A
relation with an inverse is listed from the entity's side only, as `kgkit show` does: that it has the hypernym
A implies that A has it as a hyponym.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from kgkit.errors import UnknownName
from kgkit.kb import KnowledgeBase
from kgkit.kb.facts import Edges, Facts, edges_of_code
from kgkit.types import Entity, Ids

__all__ = [
    "DIRECTIONS",
    "FactDirection",
    "FactGroup",
    "facts_by_relation",
    "facts_of_relation",
    "groups_of_ids",
]

FactDirection = Literal["out", "in"]
DIRECTIONS = get_args(FactDirection)


@dataclass(frozen=True, kw_only=True)
class FactGroup:
    """Facts of one relation.

    Attributes:
        relation: name of the relation.
        direction: `out`, where the entity is the subject; `in`, where it is the object.
        total: number of facts.
        entities: entities at the other ends, those that are shown.
    """

    relation: str
    direction: FactDirection
    total: int
    entities: list[Entity]


def facts_by_relation(kb: KnowledgeBase, number: int, size: int) -> list[FactGroup]:
    """Return the facts of an entity by relation, those where it is the subject first.

    Args:
        kb: open knowledge base.
        number: id of the entity.
        size: largest number of facts of each relation.
    """
    return [
        FactGroup(
            relation=relation,
            direction=direction,
            total=len(ids),
            entities=kb.store.entities(ids[:size].tolist()),
        )
        for relation, direction, ids in groups_of_ids(Facts(kb.store, kb.name), number)
    ]


def facts_of_relation(
    kb: KnowledgeBase, number: int, relation: str, direction: str, start: int, size: int
) -> FactGroup:
    """Return facts of an entity by one relation.

    Args:
        kb: open knowledge base.
        number: id of the entity.
        relation: name of the relation.
        direction: `out` or `in`.
        start: position of the first fact that is shown, from 0.
        size: largest number of facts.

    Raises:
        UnknownName: if the KB has no such relation, or there is no such direction.
    """
    if direction not in DIRECTIONS:
        raise UnknownName("direction of facts", direction, DIRECTIONS)
    side: FactDirection = "out" if direction == "out" else "in"
    ids = Facts(kb.store, kb.name).edges(number, relation, side)[0]
    shown = kb.store.entities(ids[start : start + size].tolist())
    return FactGroup(relation=relation, direction=side, total=len(ids), entities=shown)


def groups_of_ids(facts: Facts, number: int) -> Iterator[tuple[str, FactDirection, Ids]]:
    """Yield relation, direction and the ids at the other ends, in the order of their first occurrences."""
    for code, ids in _by_code(facts.edges(number, None, "out")):
        yield facts.name(code), "out", ids
    for code, ids in _by_code(facts.edges_without_inverse(number)):
        yield facts.name(code), "in", ids


def _by_code(edges: Edges) -> Iterator[tuple[int, Ids]]:
    codes, firsts = np.unique(edges[1], return_index=True)
    for code in codes[np.argsort(firsts)].tolist():
        yield code, edges_of_code(edges, code)[0]
