"""A picture of the attention that is paid to a text, as SVG: maps, a plain encoder, and a KAM-BERT.

Each panel is a square of the text's word pieces: a row is what attends, a column what is attended to. A cell
is the darker the higher its value; the highest of a panel has its full colour. A line below says so.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from kgkit.methods.attention import TextAttention
from kgkit.pages import drawing_file
from kgkit.text import drawn_text, escape_xml
from kgkit.types import Matrix

_CELL, _GAP, _MARGIN, _LINE, _LETTER = 14, 40, 16, 24, 7.2  # pixels
_LEAST: Final = 0.01  # of the highest value: fainter cells are not drawn
_COLOURS: Final = {"plain": "#33506b", "mixed": "#882255"}
_MAP_COLOUR: Final = "#117733"
_INK, _SOFT, _FAINT = "#1a1a1a", "#767676", "#999"


def attention_picture(
    shown: TextAttention, *, suffix: str = ".svg", title: str = "", plain: str = ""
) -> bytes:
    """Draw maps and attention.

    Args:
        shown: what is drawn.
        suffix: `.svg`, or `.html` for a page that needs nothing else.
        title: above it.
        plain: name of the plain encoder.

    Returns:
        The content of the file, in UTF-8; equal values give equal files.

    Raises:
        UsageError: if there is no such format.
    """
    panels = [(name, matrix, _MAP_COLOUR) for name, matrix in shown.maps.items()]
    if shown.plain is not None:
        panels.append((plain or "plain encoder", shown.plain, _COLOURS["plain"]))
    panels.append(("with maps", shown.mixed, _COLOURS["mixed"]))
    drawing = "".join(_svg(panels, shown, title))
    return drawing_file(drawing, suffix, title="Attention", what="a picture of attention")


def _svg(panels: Sequence[tuple[str, Matrix, str]], shown: TextAttention, title: str) -> Iterator[str]:
    pieces, caption = shown.pieces, _caption(shown)
    labels = max(map(len, pieces), default=0) * _LETTER + 8
    top = _MARGIN + (2 if title else 1) * _LINE + labels
    width = labels + len(pieces) * _CELL + _GAP
    wide = max(2 * _MARGIN + len(panels) * width, 2 * _MARGIN + max(map(len, caption)) * _LETTER)
    bottom = top + len(pieces) * _CELL + _LINE
    high = bottom + len(caption) * _LINE
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" '
        f'height="{high:g}" font-family="ui-monospace, monospace" font-size="11" fill="{_INK}">\n'
        f'<rect width="{wide:g}" height="{high:g}" fill="white"/>\n'
    )
    if title:
        heading = escape_xml(drawn_text(title))
        yield f'<text x="{_MARGIN}" y="{_MARGIN + 10}" font-size="14">{heading}</text>\n'
    for number, (name, matrix, colour) in enumerate(panels):
        left = _MARGIN + labels + number * width
        yield f'<g transform="translate({left:g} {top:g})">\n'
        yield f'<text x="0" y="{-labels - 8:g}" font-size="13" fill="{colour}">{escape_xml(name)}</text>\n'
        yield from _panel(matrix, pieces, colour, len(pieces) - shown.auxiliary)
        yield "</g>\n"
    for number, line in enumerate(caption):
        yield f'<text x="{_MARGIN}" y="{bottom + number * _LINE:g}" fill="{_SOFT}">{line}</text>\n'
    yield "</svg>\n"


def _caption(shown: TextAttention) -> list[str]:
    """Return the lines below the panels."""
    heads = f"head {shown.head}" if shown.head else "mean of all heads"
    lines = [f"layer {shown.layer}, {heads}" if shown.layer else heads]
    lines.append("a row attends to the columns; the darker, the more")
    if shown.auxiliary:
        lines.append("grey: auxiliary words, which the text lacks")
    return lines


def _panel(matrix: Matrix, pieces: Sequence[str], colour: str, own: int) -> Iterator[str]:
    """Yield the square of a matrix; the first *own* pieces are those of the text, others auxiliary."""
    size = len(matrix)
    for index, piece in enumerate(pieces[:size]):
        name, middle = escape_xml(drawn_text(piece)), index * _CELL + _CELL - 4
        ink = f' fill="{_SOFT}"' if index >= own else ""
        yield f'<text x="-4" y="{middle}" text-anchor="end"{ink}>{name}</text>\n'
        yield f'<text transform="translate({middle} -4) rotate(-90)"{ink}>{name}</text>\n'
    highest = float(matrix.max(initial=0)) or 1.0
    shares = np.round(matrix / highest, 2)
    for row, column in np.argwhere(shares >= _LEAST).tolist():
        yield (
            f'<rect x="{column * _CELL}" y="{row * _CELL}" width="{_CELL - 1}" height="{_CELL - 1}" '
            f'fill="{colour}" fill-opacity="{shares[row, column]:g}"/>\n'
        )
    yield f'<rect width="{size * _CELL}" height="{size * _CELL}" fill="none" stroke="{_FAINT}"/>\n'
