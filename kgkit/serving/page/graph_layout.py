"""Where the nodes of a neighbourhood are drawn: in rings around the centre, without chance.

A node has a ray, on which its label stands, so that 200 labels do not overlap. Equal neighbourhoods give
equal drawings.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kgkit.serving.page.colors import hue_classes
from kgkit.serving.page.neighborhood import GraphNode, Neighborhood
from kgkit.serving.page.widths import shorten, text_width
from kgkit.types import Entity

__all__ = ["DrawnEdge", "DrawnNode", "GraphDrawing", "draw_neighborhood", "relation_name"]

_LINE: Final = 20.0  # units between two labels of a ring
_LETTER: Final = 9.2  # units of a letter
_INNER: Final = 190.0  # least radius of the first ring
_GAP: Final = 14.0  # units between a node and its label
_LETTERS: Final = 24  # of a label that is drawn
_MARGIN: Final = 14.0
_CENTRE: Final = 100.0  # half of what the label of the centre may take


class DrawnNode(NamedTuple):
    """A node and its label.

    Attributes:
        entity: entity of the node.
        x, y: position.
        label: label, shortened.
        color: class of the color.
        title: label in full, and how the node was reached.
        transform: rotation of the label about the node, as SVG has it.
        anchor: end of the label that is at the node: `start`, `middle` or `end`.
        dx, dy: position of the label from the node.
        radius: radius of the circle.
    """

    entity: Entity
    x: float
    y: float
    label: str
    color: str
    title: str
    transform: str = ""
    anchor: str = "middle"
    dx: float = 0
    dy: float = -18
    radius: float = 9


class DrawnEdge(NamedTuple):
    """A line between two nodes.

    Attributes:
        path: path, as SVG has it.
        color: class of the color; `chord` where neither node was reached from the other.
        title: facts that the line stands for.
    """

    path: str
    color: str
    title: str


class GraphDrawing(NamedTuple):
    """A drawing of a neighbourhood.

    Attributes:
        size: width and height in units; the centre is at (0, 0), in the middle.
        nodes: nodes, the centre last, so that it lies on top.
        edges: lines.
        legend: class of the color of each relation.
    """

    size: int
    nodes: list[DrawnNode]
    edges: list[DrawnEdge]
    legend: dict[str, str]


def draw_neighborhood(around: Neighborhood) -> GraphDrawing:
    """Return the drawing of a neighbourhood.

    Args:
        around: entities and facts, see `kgkit.serving.page.neighborhood`.
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
    longest = max((text_width(node.label) for node in nodes), default=0)
    half = step * len(rings) + _GAP + _LETTER * longest
    nodes.append(DrawnNode(around.centre, 0, 0, shorten(names[0], _LETTERS), "centre", names[0]))
    size = 2 * math.ceil(half + _MARGIN)
    return GraphDrawing(size, nodes, [*_edges(around, points, colors, names)], legend)


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


def _drawn_node(node: GraphNode, point: tuple[float, float], color: str, names: Sequence[str]) -> DrawnNode:
    x, y = point
    degrees = math.degrees(math.atan2(y, x))
    flipped = abs(degrees) > 90
    name, via = node.entity.label or node.entity.key, f" {names[node.parent]}" if node.parent else ""
    return DrawnNode(
        node.entity, x, y, shorten(name, _LETTERS), color,
        f"{name} ({relation_name(node)}{via})",
        transform=f"rotate({degrees - 180 * math.copysign(flipped, degrees):.1f} {x:g} {y:g})",
        anchor="end" if flipped else "start", dx=4 - _GAP if flipped else _GAP - 4, dy=5, radius=5,
    )  # fmt: skip


def _edges(
    around: Neighborhood, points: Sequence[tuple[float, float]], colors: Sequence[str], names: Sequence[str]
) -> Iterator[DrawnEdge]:
    """Yield lines for the facts; bent and faint where neither node was reached from the other."""
    drawn: dict[tuple[int, int], list[str]] = {}
    for fact in around.facts:
        if fact.subject != fact.object:
            ends = min(fact.subject, fact.object), max(fact.subject, fact.object)
            drawn.setdefault(ends, []).append(f"{names[fact.subject]} {fact.relation} {names[fact.object]}")
    for (near, far), facts in drawn.items():
        (x, y), (u, v) = points[near], points[far]
        branch = around.nodes[far - 1].parent == near
        bend = "L" if branch else f"Q{(x + u) / 4:.1f} {(y + v) / 4:.1f} "
        path = f"M{x:.1f} {y:.1f}{bend}{u:.1f} {v:.1f}"
        yield DrawnEdge(path, colors[far] if branch else "chord", "; ".join(facts))
