"""The neighbourhood of an entity: a bounded part of the graph, and where it is drawn.

An entity may have as many neighbours as the KB has entities. They are chosen from all relations in turn, so
that a relation of a million facts does not crowd out the others; their own neighbours follow, likewise. They
are drawn in rings around the centre; a node has a ray, on which its label stands, so that 200 labels do not
overlap. Equal neighbourhoods give equal drawings.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from kgkit.errors import UnknownName
from kgkit.kb import KnowledgeBase
from kgkit.kb.facts import Facts
from kgkit.serving.page.facts import FactDirection, groups_of_ids
from kgkit.serving.page.rendering import hue_classes, shorten, text_width
from kgkit.types import Entity, Ids

MAX_NODES: Final = 200
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


GraphFact = tuple[int, str, int]
"""A fact between two nodes: position of the subject, relation, position of the object; 0 is the centre."""


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
        max_nodes: largest number of entities around it, 1 to `MAX_NODES`.
        radius: largest number of facts between it and them, 1 or 2.
        relation: name of the only relation; None for any.

    Raises:
        UnknownEntity: if the KB has no such entity.
        UnknownName: if the entity is in no fact of that relation.
    """
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
        near, far = sorted((fact[0], fact[2]))
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
            yield positions[number], name, positions[neighbor]


_LINE: Final = 20.0  # units between two labels of a ring
_LETTER: Final = 9.2  # units of a letter
_INNER: Final = 190.0  # least radius of the first ring
_GAP: Final = 14.0  # units between a node and its label
_LETTERS: Final = 24  # of a label that is drawn
_MARGIN: Final = 14.0
_CENTRE: Final = 100.0  # half of what the label of the centre may take


def draw_neighborhood(around: Neighborhood) -> dict[str, Any]:
    """Return the drawing of a neighbourhood, by the names that its template reads.

    A node has a position (x, y), a label, turned and moved from it, and a color, which is a class; the centre
    is at (0, 0), in the middle, and comes last, so that it lies on top. An edge is the line of one fact or
    several. *size* is width and height in units.

    Args:
        around: entities and facts, see `kgkit.serving.page.graph`.
    """
    import networkx  # here: 100 ms

    rings = _rings(around.nodes)
    step = max(_INNER, len(rings[-1]) * _LINE / (2 * math.pi * len(rings))) if rings else _CENTRE
    if len(rings) > 1:
        step = max(step, 2 * _GAP + _LETTER * _LETTERS)
    positions = range(len(around.nodes) + 1)
    places = networkx.shell_layout(positions, [[0], *rings], rotate=0, scale=step * (len(rings) + 1))
    points = [(round(float(places[each][0]), 1), round(float(places[each][1]), 1)) for each in positions]
    legend = hue_classes(relation_name(node) for node in around.nodes if node.parent == 0)
    colors = ["centre"]
    for node in around.nodes:
        colors.append(colors[node.parent] if node.parent else legend[relation_name(node)])
    names = [
        entity.label or entity.key for entity in (around.centre, *(node.entity for node in around.nodes))
    ]
    nodes = [
        _drawn_node(node, points[position], colors[position], names)
        for position, node in enumerate(around.nodes, start=1)
    ]
    longest = max((text_width(node["label"]) for node in nodes), default=0)
    half = step * len(rings) + _GAP + _LETTER * longest
    nodes.append(
        {
            "entity": around.centre, "x": 0, "y": 0, "label": shorten(names[0], _LETTERS), "color": "centre",
            "title": names[0], "transform": "", "anchor": "middle", "dx": 0, "dy": -18, "radius": 9,
        }
    )  # fmt: skip
    size = 2 * math.ceil(half + _MARGIN)
    edges = [*_drawn_edges(around, points, colors, names)]
    return {"size": size, "nodes": nodes, "edges": edges, "legend": legend}


def _rings(nodes: Sequence[GraphNode]) -> list[list[int]]:
    """Return the positions of the nodes on each ring, negative numbers where it has a gap.

    Nodes of one relation are side by side; a node of the outer ring stands behind its parent.
    """
    children: dict[int, list[int]] = {}
    for position, node in enumerate(nodes, start=1):
        children.setdefault(node.parent, []).append(position)
    names = list(dict.fromkeys(relation_name(nodes[position - 1]) for position in children.get(0, ())))
    inner: list[int] = []
    outer: list[int] = []
    for position in sorted(
        children.get(0, ()), key=lambda position: names.index(relation_name(nodes[position - 1]))
    ):
        behind = children.get(position, [-1])
        outer += behind
        slots = [-1] * len(behind)
        slots[len(behind) // 2] = position
        inner += slots
    return [inner, outer] if max(outer, default=-1) > 0 else [inner] if inner else []


def relation_name(node: GraphNode) -> str:
    """Return the name of the relation by which a node was reached, with an arrow where it is the subject."""
    return node.relation if node.direction == "out" else f"← {node.relation}"


def _drawn_node(
    node: GraphNode, point: tuple[float, float], color: str, names: Sequence[str]
) -> dict[str, Any]:
    x, y = point
    degrees = math.degrees(math.atan2(y, x))
    flipped = abs(degrees) > 90
    name, via = node.entity.label or node.entity.key, f" {names[node.parent]}" if node.parent else ""
    return {
        "entity": node.entity, "x": x, "y": y, "label": shorten(name, _LETTERS), "color": color,
        "title": f"{name} ({relation_name(node)}{via})",
        "transform": f"rotate({degrees - 180 * math.copysign(flipped, degrees):.1f} {x:g} {y:g})",
        "anchor": "end" if flipped else "start", "dx": 4 - _GAP if flipped else _GAP - 4, "dy": 5,
        "radius": 5,
    }  # fmt: skip


def _drawn_edges(
    around: Neighborhood, points: Sequence[tuple[float, float]], colors: Sequence[str], names: Sequence[str]
) -> Iterator[dict[str, str]]:
    """Yield lines for the facts; bent and faint where neither node was reached from the other."""
    drawn: dict[tuple[int, int], list[str]] = {}
    for subject, relation, object in around.facts:
        if subject != object:
            ends = min(subject, object), max(subject, object)
            drawn.setdefault(ends, []).append(f"{names[subject]} {relation} {names[object]}")
    for (near, far), facts in drawn.items():
        (x, y), (u, v) = points[near], points[far]
        branch = around.nodes[far - 1].parent == near
        bend = "L" if branch else f"Q{(x + u) / 4:.1f} {(y + v) / 4:.1f} "
        path = f"M{x:.1f} {y:.1f}{bend}{u:.1f} {v:.1f}"
        yield {"path": path, "color": colors[far] if branch else "chord", "title": "; ".join(facts)}
