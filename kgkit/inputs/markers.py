"""Special pieces put into a text that is read: around a name, or behind the text."""

from collections.abc import Sequence

import numpy as np

from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.texts import TokenizedText
from kgkit.types import Numbers


def insert_markers(text: TokenizedText, markers: Sequence[tuple[int, int]]) -> TokenizedText:
    """Return *text* with special pieces put into it.

    A mention keeps its pieces: a marker at the first of them stands before the mention, one behind the last
    stands outside, one between them makes it longer. A marker has the type of the piece that it was put
    before; behind the last, that of the last.

    Args:
        text: text of T pieces, one at least.
        markers: pairs of a position (0 to T) and the id of the piece that goes before the piece there; those
            at one position stand in the order of the list.
    """
    if not markers:
        return text
    positions, ids = np.array(markers, np.int64).T  # (K,)
    count = len(text.ids)
    ascending = np.sort(positions)
    return TokenizedText(
        np.insert(text.ids, positions, ids),  # of equal positions it keeps the order
        np.insert(text.types, positions, text.types[np.minimum(positions, count - 1)]),
        np.insert(text.special, positions, True),
        {name: _moved(mentions, ascending) for name, mentions in text.mentions.items()},
    )


def marker_positions(markers: Sequence[tuple[int, int]]) -> list[int]:
    """Return the position of each marker in the text that `insert_markers` gives."""
    positions = np.array([position for position, _ in markers], np.int64)
    order = np.argsort(positions, kind="stable")
    positions[order] += np.arange(len(order))
    return [int(position) for position in positions]


def _moved(mentions: MentionSpans, positions: Numbers) -> MentionSpans:
    """Return mentions with the spans that they have after pieces were put in at *positions*, ascending."""
    before = np.searchsorted(positions, mentions.spans[:, 0], "right")
    inside = np.searchsorted(positions, mentions.spans[:, 1], "left")
    return mentions._replace(spans=mentions.spans + np.stack([before, inside], axis=1))
