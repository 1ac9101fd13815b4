"""A picture of a sentence tree and of what sees what in it, as SVG.

Above, the text stands in a line, with the soft position of each token, and the facts below the words that
they hang from. Below, the visible matrix: a square is filled where the token of its row sees that of its
column, in the colour of the fact that one of them is of.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

import numpy as np

from kgkit.pages import drawing_file
from kgkit.text import escape_xml
from kgkit.trees.flat import FlatTree, visible

_LETTER, _DIGIT, _LINE, _MARGIN, _SQUARE, _GAP = 8.0, 6.0, 26, 16, 16, 14  # pixels
_INK, _FAINT, _TEXT = "#1a1a1a", "#999", "#33506b"
_BRANCHES: Final = ("#cc6677", "#117733", "#999933", "#882255", "#44aa99", "#aa4499")


def picture(tree: FlatTree, *, suffix: str = ".svg", title: str = "") -> bytes:
    """Draw a tree.

    Args:
        tree: its tokens are strings.
        suffix: as `drawing_file` takes it, which refuses others with a `UsageError`.
        title: title above the tree.

    Returns:
        Content of the file; equal trees give equal files.
    """
    return drawing_file("".join(_svg(tree, title)), suffix, title="Sentence tree", what="a tree")


def _svg(tree: FlatTree, title: str) -> Iterator[str]:
    lefts, rows = _layout(tree)
    widths = [_wide(token) for token in tree.tokens]
    top = _MARGIN + (2 * _LINE if title else _LINE)
    labels = max(widths, default=0) + _GAP
    squares = _SQUARE * len(tree)
    tree_high = (1 + max(rows, default=0)) * _LINE + 2 * _GAP
    wide = max([x + width for x, width in zip(lefts, widths, strict=True)] + [labels + squares]) + 2 * _MARGIN
    high = top + tree_high + squares + _MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" '
        f'height="{high:g}" font-family="ui-monospace, monospace" font-size="13" fill="{_INK}">\n'
        f'<rect width="{wide:g}" height="{high:g}" fill="white"/>\n'
    )
    if title:
        yield f'<text x="{_MARGIN}" y="{_MARGIN + 14}" font-size="15">{escape_xml(title)}</text>\n'
    yield f'<g transform="translate({_MARGIN} {top})">\n'
    yield from _tree(tree, lefts, rows, widths)
    yield f'</g>\n<g transform="translate({_MARGIN + labels:g} {top + tree_high})">\n'
    yield from _matrix(tree)
    yield "</g>\n</svg>\n"


def _layout(tree: FlatTree) -> tuple[list[float], list[int]]:
    """Return where each token stands: how far to the right, and in which row, the text in row 0."""
    lefts, rows = [0.0] * len(tree), [0] * len(tree)
    at = edge = begin = 0.0  # of the text, of what hangs below it, of the last mention
    row = 0
    runs = groupby(range(len(tree)), key=lambda index: (int(tree.branches[index]), int(tree.hooks[index])))
    for (branch, hook), indices in runs:
        if hook and not branch:  # a mention stands clear of what hangs from the one before
            begin, row = max(at, edge), 0
            at = begin
        row += branch > 0
        x = begin if branch else at
        for index in indices:
            lefts[index], rows[index] = x, row if branch else 0
            x += _wide(tree.tokens[index]) + _GAP + _DIGIT * (len(str(tree.positions[index])) - 1)
        at, edge = (at, max(edge, x)) if branch else (x, edge)
    return lefts, rows


def _tree(tree: FlatTree, lefts: list[float], rows: list[int], widths: list[float]) -> Iterator[str]:
    for index, token in enumerate(tree.tokens):
        branch, x, top = int(tree.branches[index]), lefts[index], rows[index] * _LINE
        colour = _colour(branch)
        if branch and (index == 0 or tree.branches[index - 1] != branch):  # the line that it hangs from
            yield f'<path d="M{x + 4:g} {(rows[index] - 1) * _LINE + 5}V{top - 12}" stroke="{colour}"/>\n'
        weight = ' font-weight="bold"' if not branch and tree.hooks[index] else ""
        yield f'<text x="{x:g}" y="{top}" fill="{colour}"{weight}>{escape_xml(str(token))}</text>\n'
        right, number = x + widths[index] + 1, tree.positions[index]
        yield f'<text x="{right:g}" y="{top + 4}" font-size="9" fill="{_FAINT}">{number}</text>\n'


def _matrix(tree: FlatTree) -> Iterator[str]:
    matrix = visible(tree.branches, tree.hooks)
    for row, token in enumerate(tree.tokens):
        colour, name = _colour(int(tree.branches[row])), escape_xml(str(token))
        yield f'<text x="-6" y="{row * _SQUARE + 12}" text-anchor="end" fill="{colour}">{name}</text>\n'
        for column in np.flatnonzero(matrix[row]).tolist():
            shade = _colour(int(max(tree.branches[row], tree.branches[column])))
            yield (
                f'<rect x="{column * _SQUARE + 1}" y="{row * _SQUARE + 1}" width="{_SQUARE - 2}" '
                f'height="{_SQUARE - 2}" fill="{shade}"/>\n'
            )
    size = len(tree) * _SQUARE
    yield f'<rect width="{size}" height="{size}" fill="none" stroke="{_FAINT}"/>\n'


def _colour(branch: int) -> str:
    return _BRANCHES[(branch - 1) % len(_BRANCHES)] if branch else _TEXT


def _wide(token: object) -> float:
    """Return about how many pixels a token takes."""
    return sum(_LETTER if ord(letter) < 0x1100 else 1.7 * _LETTER for letter in str(token))
