"""A picture of vectors in the plane, coloured by type.

The commonest types have a colour, which people of any colour vision can tell apart (Paul Tol's twelve), the
rest are grey. Each is named where its points are densest, and in a legend beside the picture; some points are
named too, where there is room. Letters that matplotlib's own font lacks are drawn with an installed one that
has them (`kgkit.vectors.fonts`).
"""

import io
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import MissingExtra, UsageError
from kgkit.text import drawn_text, truncate
from kgkit.vectors.fonts import choose_fonts, warn_of_missing
from kgkit.vectors.projection import Points

SUFFIXES: Final = (".png", ".svg", ".pdf")

# In an order in which the first ones differ most.
_COLOURS: Final = (
    "#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499",
    "#661100", "#6699CC",
)  # fmt: skip
_REMAINING: Final = "#C9C9C9"
_INK: Final = "#1a1a1a"
_SIZE: Final = (12.0, 8.4)  # inches
_DPI: Final = 150
_GRID: Final = 48  # cells along each side, to find where points are densest


def picture(
    points: Points,
    groups: Sequence[str],
    *,
    suffix: str,
    names: Sequence[tuple[int, str]] = (),
    title: str = "",
    note: str = "",
) -> bytes:
    """Draw *points*.

    Args:
        points: (P, 2).
        groups: groups of each point; "" is none.
        suffix: `.png`, `.svg` or `.pdf`.
        names: points to be named and how, the most important first; those without room are left out.
        title: title above it.
        note: note below it, small.

    Returns:
        The content of the file.

    Raises:
        UsageError: if there is no such format.
        MissingExtra: if matplotlib is not installed.
    """
    if suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"a picture cannot be {suffix or 'without a suffix'}; it can be {', '.join(SUFFIXES)}"
        )
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot") from error
    shown = _colours_of(groups)
    fonts = choose_fonts([title, note, *map(_short, shown), *(_short(name) for _, name in names)])
    warn_of_missing(fonts.missing)
    # Not pyplot, which would choose a screen. A fixed salt, no date: equal points give equal files.
    settings: Any = {"svg.hashsalt": "kgkit", "svg.fonttype": "none", "font.family": list(fonts.families)}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # they are named above
        figure = Figure(figsize=_SIZE, dpi=_DPI, facecolor="white")
        canvas: Any = FigureCanvasAgg(figure)
        axes = figure.add_axes((0.015, 0.04, 0.785, 0.90))
        axes.set_axis_off()
        _scatter(axes, points, groups, shown)
        _legend(axes, groups, shown)
        axes.set_title(_plain(title), loc="left", fontsize=13, color=_INK)
        figure.text(0.02, 0.015, _plain(note), fontsize=8, color="#666666")
        canvas.draw()  # where texts lie is known from here on
        _write_names(axes, points, groups, shown, names)
        buffer = io.BytesIO()
        undated = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        figure.savefig(buffer, format=suffix.lower()[1:], metadata=undated[suffix.lower()])
    return buffer.getvalue()


def _colours_of(groups: Sequence[str]) -> dict[str, str]:
    """Return the colour of each of the commonest groups, the largest first."""
    counts = Counter(group for group in groups if group)
    largest = sorted(counts, key=lambda group: (-counts[group], group))
    return dict(zip(largest, _COLOURS, strict=False))


def _scatter(axes: Any, points: Points, groups: Sequence[str], shown: dict[str, str]) -> None:
    colours = np.array([shown.get(group, _REMAINING) for group in groups])
    size = float(np.clip(40_000 / max(1, len(points)), 2, 40))
    grey = colours == _REMAINING
    axes.scatter(*points[grey].T, c=_REMAINING, s=size * 0.7, linewidths=0, zorder=1)
    # In an order of chance, so that no type lies on top of all others.
    order = np.random.default_rng(0).permutation(np.flatnonzero(~grey))
    axes.scatter(*points[order].T, c=colours[order], s=size, alpha=0.85, linewidths=0, zorder=2)
    # A few points far out would press all others together.
    low, high = np.percentile(points, 0.2, axis=0), np.percentile(points, 99.8, axis=0)
    margin = 0.04 * (high - low) + 1e-9
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])


def _legend(axes: Any, groups: Sequence[str], shown: dict[str, str]) -> None:
    from matplotlib.lines import Line2D

    counts = Counter(groups)
    remaining = len(groups) - sum(counts[group] for group in shown)
    entries = [(f"{_short(group)}  {counts[group]:,}", colour) for group, colour in shown.items()]
    if remaining:
        entries.append((f"others  {remaining:,}", _REMAINING))
    handles = [
        Line2D([], [], marker="o", linestyle="", color=colour, markersize=8, label=label)
        for label, colour in entries
    ]
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9.5,
        labelspacing=0.7, handletextpad=0.3,
    )  # fmt: skip


def _write_names(
    axes: Any, points: Points, groups: Sequence[str], shown: dict[str, str], names: Sequence[tuple[int, str]]
) -> None:
    """Write the groups where they are densest, then the names of points where there is room."""
    import matplotlib.patheffects as effects

    boxes: list[Any] = []
    labels = np.array(groups)
    for group, colour in shown.items():
        text = axes.text(
            *_densest(points[labels == group]), _short(group), fontsize=12, fontweight="bold",
            color=_darker(colour), ha="center", va="center", zorder=5, clip_on=True,
            path_effects=[effects.withStroke(linewidth=3.5, foreground="white", alpha=0.9)],
        )  # fmt: skip
        _keep(axes, text, boxes, [(0, move) for move in (0, 1, -1, 2, -2, 3, -3)], inward=True)
    for row, name in names:
        x, y = points[row]
        text = axes.text(
            x, y, " " + _short(name), fontsize=7.5, color=_INK, ha="left", va="center",
            zorder=4, clip_on=True,
            path_effects=[effects.withStroke(linewidth=2, foreground="white", alpha=0.85)],
        )  # fmt: skip
        # To the right of the point, else to its left, else above or below.
        if _keep(axes, text, boxes, [(0, 0), (-1, 0), (-0.5, 1), (-0.5, -1)]):
            axes.scatter([x], [y], s=9, c=_INK, linewidths=0, zorder=3)


def _keep(
    axes: Any, text: Any, boxes: list[Any], moves: Sequence[tuple[float, float]], inward: bool = False
) -> bool:
    """Leave *text* in the picture if there is room for it.

    Args:
        axes: axes of the picture.
        text: text of a point.
        boxes: boxes of the texts that are there; that of this one is added.
        moves: steps in its own widths and heights by which it may be moved, tried in this order.
        inward: whether it is first moved into the picture where it would stick out.
    """
    renderer = axes.figure.canvas.get_renderer()
    frame = axes.get_window_extent(renderer)
    at = axes.transData.transform(text.get_position())
    box = text.get_window_extent(renderer)
    if inward:
        right = max(0.0, frame.x0 - box.x0 + 4) - max(0.0, box.x1 - frame.x1 + 4)
        up = max(0.0, frame.y0 - box.y0 + 4) - max(0.0, box.y1 - frame.y1 + 4)
        at, box = at + np.array((right, up)), box.translated(right, up)
    for across, upward in moves:
        shift = across * box.width, 1.05 * upward * box.height
        moved = box.translated(*shift)
        within = (
            frame.x0 <= moved.x0 and moved.x1 <= frame.x1 and frame.y0 <= moved.y0 and moved.y1 <= frame.y1
        )
        if within and not any(moved.overlaps(other) for other in boxes):
            text.set_position(axes.transData.inverted().transform(at + np.array(shift)))
            boxes.append(moved)
            return True
    text.remove()
    return False


def _densest(points: Points) -> NDArray[np.float32]:
    """Return where most of *points* (P, 2) lie together; their mean may be where none is."""
    low, high = points.min(axis=0), points.max(axis=0)
    cells = ((points - low) / np.maximum(high - low, 1e-9) * (_GRID - 1)).astype(np.int64)  # (P, 2)
    counts = np.zeros((_GRID + 4, _GRID + 4))
    np.add.at(counts, (cells[:, 0] + 2, cells[:, 1] + 2), 1)
    around = sum(counts[i : i + _GRID, j : j + _GRID] for i in range(5) for j in range(5))
    best = np.unravel_index(np.argmax(around), (_GRID, _GRID))
    near = (np.abs(cells - np.array(best)) <= 2).all(axis=1)
    centre: NDArray[np.float32] = points[near].mean(axis=0) if near.any() else points.mean(axis=0)
    return centre


def _darker(colour: str) -> str:
    """Return *colour* dark enough to be read on white."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    light = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    share = min(1.0, 0.45 / max(light, 0.01))
    return f"#{int(red * share):02x}{int(green * share):02x}{int(blue * share):02x}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return _plain(truncate(line, 28))


def _plain(text: str) -> str:
    """Return *text* as matplotlib has to be given it: a dollar would begin a formula."""
    return drawn_text(text).replace("$", r"\$")
