"""Ways through the graph of a build: closure, shortest path, neighbourhood."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from kgkit.errors import NoPath
from kgkit.kb.facts import Facts, edges_of_code, pairs
from kgkit.pauses import pause
from kgkit.types import Triple

if TYPE_CHECKING:
    import networkx


def closure(facts: Facts, start: int, code: int, max_depth: int | None) -> Iterator[int]:
    """Yield what *start* reaches by one relation, nearest first, itself excluded."""
    visited, waiting = {start}, deque([(start, 0)])
    while waiting:
        pause()
        number, depth = waiting.popleft()
        edges = facts.store.facts(number)
        if edges is None or (max_depth is not None and depth >= max_depth):
            continue
        for other in edges_of_code(edges, code)[0].tolist():
            if other not in visited:
                visited.add(other)
                waiting.append((other, depth + 1))
                yield other


def shortest_path(facts: Facts, start: int, end: int, relations: Iterable[str] | None) -> list[Triple]:
    """Return the steps of a shortest path, edges taken in either direction.

    Raises:
        NoPath: if there is none.
    """
    codes = None if relations is None else {facts.code(relation) for relation in relations}
    if codes is not None:
        codes |= {inverse for code in codes if (inverse := facts.inverse(code)) is not None}
    # From both ends at once, the smaller frontier first.
    came: tuple[dict[int, int], dict[int, int]] = ({start: start}, {end: end})
    frontiers: tuple[list[int], list[int]] = ([start], [end])
    meeting = start if start == end else None
    while meeting is None and frontiers[0] and frontiers[1]:
        side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        meeting = _advance(facts, frontiers[side], came[side], came[1 - side], codes)
    if meeting is None:
        names = [facts.store.key_of(number) for number in (start, end)]
        raise NoPath(f"no path from {names[0]!r} to {names[1]!r} in {facts.kb!r}")
    steps = [meeting]
    while steps[-1] != start:
        steps.append(came[0][steps[-1]])
    steps.reverse()
    while steps[-1] != end:
        steps.append(came[1][steps[-1]])
    return [_step(facts, near, far, codes) for near, far in pairwise(steps)]


def _advance(
    facts: Facts, frontier: list[int], came: dict[int, int], met: dict[int, int], codes: set[int] | None
) -> int | None:
    """Move *frontier* one step; return the best node where it meets the other side."""
    reached, meetings = [], []
    for number in frontier:
        pause()
        for other, code in pairs(facts.edges(number, None, "both")):
            if other not in came and (codes is None or code in codes):
                came[other] = number
                reached.append(other)
                if other in met:
                    meetings.append(other)
    frontier[:] = reached
    # All of them lie at one depth of this side: the other side decides.
    return min(meetings, key=lambda node: (_depth(met, node), node), default=None)


def _step(facts: Facts, near: int, far: int, codes: set[int] | None) -> Triple:
    for subject, other in ((near, far), (far, near)):
        for neighbour, code in pairs(facts.edges(subject, None, "out")):
            if neighbour == other and (codes is None or code in codes):
                triple = next(iter(facts.of(subject, facts.name(code), other)), None)
                if triple is not None:
                    return triple
    raise facts.store.damaged(f"a fact between entities {near:,} and {far:,} is told at one end only")


def _depth(came: dict[int, int], node: int) -> int:
    depth = 0
    while came[node] != node:
        node, depth = came[node], depth + 1
    return depth


def subgraph_around(facts: Facts, entities: Iterable[int], radius: int) -> "networkx.MultiDiGraph[str]":
    """Return the entities within *radius* edges of *entities*, and the stored triples among them."""
    import networkx  # here: 100 ms

    frontier = dict.fromkeys(entities)
    inside = dict(frontier)
    for _ in range(radius):
        frontier = dict.fromkeys(
            other
            for number in frontier
            for other in facts.edges(number, None, "both")[0].tolist()
            if other not in inside
        )
        inside.update(frontier)
    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    keys = {}
    for number, entity in zip(inside, facts.store.entities(list(inside)), strict=True):
        keys[number] = entity.key
        graph.add_node(entity.key, label=entity.label, kind=entity.kind, id=number)
    for number in inside:
        for other, code in pairs(facts.edges(number, None, "out")):
            if other in inside and facts.is_stored(number, code, other):
                relation = facts.name(code)
                graph.add_edge(keys[number], keys[other], key=relation, relation=relation)
    return graph
