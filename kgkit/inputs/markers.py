"""Special pieces put into a text that is read: around a name, or behind the text."""

from collections.abc import Sequence

import numpy as np

from kgkit.errors import UsageError
from kgkit.inputs.knowbert import Known, Text
from kgkit.inputs.pieces import Numbers


def marked(text: Text, markers: Sequence[tuple[int, int]]) -> Text:
    """Return *text* with special pieces put into it.

    A mention keeps its pieces: a marker at the first of them stands before the mention, one behind the last
    stands outside, one between them makes it longer. A marker has the type of the piece that it was put
    before; behind the last, that of the last.

    Args:
        text: of T pieces, one at least.
        markers: (place, id): the piece *id* goes before what stood at *place* (0 to T); those at one place
            stand in the order they are given in.

    Raises:
        UsageError: if a place is not in the text.
    """
    if not markers:
        return text
    places, ids = np.array(markers, np.int64).T  # (K,)
    count = len(text.ids)
    if wrong := [place for place in places.tolist() if not 0 <= place <= count]:
        raise UsageError(f"a marker is to stand at {wrong[0]} of a text of {count} pieces")
    sorted_places = np.sort(places)
    return Text(
        np.insert(text.ids, places, ids),  # of equal places it keeps the order
        np.insert(text.types, places, text.types[np.minimum(places, count - 1)]),
        np.insert(text.special, places, True),
        {name: _moved(one, sorted_places) for name, one in text.known.items()},
    )


def places_of(markers: Sequence[tuple[int, int]]) -> list[int]:
    """Return where each marker stands in the text that `marked` gives."""
    places = np.array([place for place, _ in markers], np.int64)
    order = np.argsort(places, kind="stable")
    places[order] += np.arange(len(order))
    found: list[int] = places.tolist()
    return found


def _moved(known: Known, places: Numbers) -> Known:
    """Return mentions where they stand after pieces were put in at *places*, ascending."""
    before = np.searchsorted(places, known.spans[:, 0], "right")
    inside = np.searchsorted(places, known.spans[:, 1], "left")
    return known._replace(spans=known.spans + np.stack([before, inside], axis=1))
