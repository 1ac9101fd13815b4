"""Where the nodes of a neighbourhood are drawn: in rings around the centre, without chance.

A node has a ray, on which its label stands, so that 200 labels do not overlap; what was reached from a node
stands behind it. Equal neighbourhoods give equal drawings.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kgkit.serving.page.colors import hue_classes
from kgkit.serving.page.neighborhood import GraphNode, Neighborhood
from kgkit.serving.page.widths import shorten, text_width
from kgkit.types import Entity

__all__ = [
    "DrawnEdge",
    "DrawnNode",
    "GraphDrawing",
    "draw_neighborhood",
    "relation_name",
]

_LINE: Final = 20.0  # units between two labels of a ring
_LETTER: Final = 9.2  # units of a letter
_INNER: Final = 190.0  # least radius of the first ring
_GAP: Final = 14.0  # units between a node and its label
_LETTERS: Final = 24  # of a label that is drawn
_MARGIN: Final = 14.0
_CENTRE: Final = 100.0  # half of what the label of the centre may take


@dataclass(frozen=True, kw_only=True)
class DrawnNode:
    """A node and its label.

    Attributes:
        entity: entity of the node.
        x, y: position.
        radius: radius of the circle.
        label: label, shortened.
        transform: rotation of the label about the node, as SVG has it.
        anchor: end of the label that is at the node: `start`, `middle` or `end`.
        dx, dy: position of the label from the node.
        color: class of the color.
        title: label in full, and how the node was reached.
    """

    entity: Entity
    x: float
    y: float
    radius: float
    label: str
    transform: str
    anchor: str
    dx: float
    dy: float
    color: str
    title: str


@dataclass(frozen=True, kw_only=True)
class DrawnEdge:
    """A line between two nodes.

    Attributes:
        path: path, as SVG has it.
        color: class of the color; `chord` where neither node was reached from the other.
        title: facts that the line stands for.
    """

    path: str
    color: str
    title: str


@dataclass(frozen=True, kw_only=True)
class GraphDrawing:
    """A drawing of a neighbourhood.

    Attributes:
        view_box: attribute `viewBox` of the drawing.
        width, height: size in units.
        nodes: nodes, the centre last, so that it lies on top.
        edges: lines.
        legend: class of the color of each relation.
    """

    view_box: str
    width: int
    height: int
    nodes: list[DrawnNode]
    edges: list[DrawnEdge]
    legend: dict[str, str]


def draw_neighborhood(around: Neighborhood) -> GraphDrawing:
    """Return the drawing of a neighbourhood.

    Args:
        around: entities and facts, see `kgkit.serving.page.neighborhood`.
    """
    angles, rings = _angles(around.nodes), _rings(around.nodes)
    radii = _radii(rings, around.nodes)
    legend = hue_classes(relation_name(node) for node in around.nodes if node.parent == 0)
    colors = _colors(around.nodes, legend)
    points = [(0.0, 0.0)] + [
        (radii[ring] * math.cos(angle), radii[ring] * math.sin(angle))
        for angle, ring in zip(angles, rings, strict=True)
    ]
    nodes = [
        _drawn_node(node, point, angle, color, around.nodes)
        for node, point, angle, color in zip(around.nodes, points[1:], angles, colors, strict=True)
    ]
    nodes.append(_drawn_centre(around.centre))
    edges = [*_edges(around, points, colors)]
    min_x, min_y, max_x, max_y = _frame(nodes, angles, points[1:])
    return GraphDrawing(
        view_box=f"{min_x} {min_y} {max_x - min_x} {max_y - min_y}",
        width=max_x - min_x,
        height=max_y - min_y,
        nodes=nodes,
        edges=edges,
        legend=legend,
    )


def _frame(
    nodes: Sequence[DrawnNode], angles: Sequence[float], points: Sequence[tuple[float, float]]
) -> tuple[int, int, int, int]:
    """Return the least and the greatest coordinates of what all labels take; the centre's is above it."""
    horizontal, vertical = [-_CENTRE, _CENTRE], [-_CENTRE, _CENTRE]
    for node, angle, (x, y) in zip(nodes, angles, points, strict=False):
        length = _GAP + _LETTER * text_width(node.label)
        horizontal.append(x + length * math.cos(angle))
        vertical.append(y + length * math.sin(angle))
    min_x, min_y = math.floor(min(horizontal) - _MARGIN), math.floor(min(vertical) - _MARGIN)
    return min_x, min_y, math.ceil(max(horizontal) + _MARGIN), math.ceil(max(vertical) + _MARGIN)


def _rings(nodes: Sequence[GraphNode]) -> list[int]:
    """Return the ring of each node: 0 beside the centre, 1 behind a node of that."""
    return [0 if node.parent == 0 else 1 for node in nodes]


def _angles(nodes: Sequence[GraphNode]) -> list[float]:
    """Return the angle of each node in radians; those of one relation are side by side."""
    children: dict[int, list[int]] = {}
    for position, node in enumerate(nodes, start=1):
        children.setdefault(node.parent, []).append(position)
    inner = children.get(0, [])
    groups = list(dict.fromkeys(relation_name(nodes[position - 1]) for position in inner))
    inner.sort(key=lambda position: groups.index(relation_name(nodes[position - 1])))
    total = sum(max(1, len(children.get(position, ()))) for position in inner)
    angles, slot = [0.0] * len(nodes), 0.0
    for position in inner:
        behind = children.get(position, [])
        width = max(1, len(behind))
        angles[position - 1] = _angle(slot + width / 2, total)
        for offset, child in enumerate(behind):
            angles[child - 1] = _angle(slot + offset + 0.5, total)
        slot += width
    return angles


def _angle(slot: float, total: int) -> float:
    """Return the angle of a slot of the circle; the first one is at the top."""
    return 2 * math.pi * slot / total - math.pi / 2


def _radii(rings: Sequence[int], nodes: Sequence[GraphNode]) -> tuple[float, float]:
    """Return the radii of both rings, so that neighbouring labels are a line apart."""
    inner = rings.count(0)
    first = max(_INNER, inner * _LINE / (2 * math.pi))
    outer = sum(max(1, sum(child.parent == position for child in nodes)) for position in range(1, inner + 1))
    second = max(first + _GAP + _LETTER * _LETTERS + _GAP, outer * _LINE / (2 * math.pi))
    return first, second


def relation_name(node: GraphNode) -> str:
    """Return the name of the relation by which a node was reached, with an arrow where it is the subject."""
    return node.relation if node.direction == "out" else f"← {node.relation}"


def _colors(nodes: Sequence[GraphNode], legend: dict[str, str]) -> list[str]:
    """Return the class of each node: that of the relation at the centre over which it was reached."""
    colors: list[str] = []
    for node in nodes:
        colors.append(legend[relation_name(node)] if node.parent == 0 else colors[node.parent - 1])
    return colors


def _drawn_node(
    node: GraphNode, point: tuple[float, float], angle: float, color: str, nodes: Sequence[GraphNode]
) -> DrawnNode:
    degrees = math.degrees(angle)
    flipped = not -90 <= degrees <= 90
    x, y = round(point[0], 1), round(point[1], 1)
    rotation = degrees - 180 if flipped else degrees
    name = node.entity.label or node.entity.key
    via = (
        ""
        if node.parent == 0
        else f" {nodes[node.parent - 1].entity.label or nodes[node.parent - 1].entity.key}"
    )
    return DrawnNode(
        entity=node.entity,
        x=x,
        y=y,
        radius=5,
        label=shorten(name, _LETTERS),
        transform=f"rotate({rotation:.1f} {x:g} {y:g})",
        anchor="end" if flipped else "start",
        dx=-_GAP + 4 if flipped else _GAP - 4,
        dy=5,
        color=color,
        title=f"{name} ({relation_name(node)}{via})",
    )


def _drawn_centre(entity: Entity) -> DrawnNode:
    name = entity.label or entity.key
    return DrawnNode(
        entity=entity, x=0, y=0, radius=9, label=shorten(name, _LETTERS), transform="", anchor="middle",
        dx=0, dy=-18, color="centre", title=name,
    )  # fmt: skip


def _edges(
    around: Neighborhood, points: Sequence[tuple[float, float]], colors: Sequence[str]
) -> Iterator[DrawnEdge]:
    """Yield lines for the facts; bent and faint where neither node was reached from the other."""
    names = [around.centre.label or around.centre.key] + [
        node.entity.label or node.entity.key for node in around.nodes
    ]
    parents = [0] + [node.parent for node in around.nodes]
    drawn: dict[tuple[int, int], list[str]] = {}
    for fact in around.facts:
        ends = min(fact.subject, fact.object), max(fact.subject, fact.object)
        if ends[0] != ends[1]:
            drawn.setdefault(ends, []).append(f"{names[fact.subject]} {fact.relation} {names[fact.object]}")
    for (near, far), facts in drawn.items():
        (x, y), (u, v) = points[near], points[far]
        branch = parents[far] == near
        bend = "" if branch else f"Q{(x + u) / 4:.1f} {(y + v) / 4:.1f} "
        path = f"M{x:.1f} {y:.1f}{bend or 'L'}{u:.1f} {v:.1f}"
        yield DrawnEdge(path=path, color=colors[far - 1] if branch else "chord", title="; ".join(facts))
