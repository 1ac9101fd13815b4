"""The windows in which a model that reads so many word pieces at once reads a document.

    |···|=========== own ===========|···|
    begin                             end

A window reads its own pieces with some of what stands before and behind them. Every piece is some window's
own, exactly one's, so nothing is left out and nothing counted twice.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from kgkit.errors import UsageError

Scope = Literal["sentence", "document"]


class Window(NamedTuple):
    """A range of word pieces that is read at once: `begin` to `end`, for the sake of `own` to `own_end`."""

    begin: int
    end: int
    own: int
    own_end: int


def windows(
    pieces: int, sentences: Sequence[int], *, size: int, context: int, scope: Scope = "document"
) -> list[Window]:
    """Divide a document into windows.

    Sentences are kept whole and put together as long as there is room; one that
    is longer than a window is cut, and its parts overlap by twice *context*.

    Args:
        pieces: number of the document's word pieces.
        sentences: first piece of each sentence, ascending; none if they are not known.
        size: greatest number of pieces that are read at once.
        context: number of them on each side that are another window's own.
        scope: `sentence` reads each sentence alone, without what stands around it.

    Raises:
        UsageError: if *context* leaves a window nothing of its own.
    """
    room = size - 2 * context
    if context < 0 or room < 1:
        raise UsageError(
            f"windows of {size} pieces with {context} of context on each side have none of their own"
        )
    cuts = sorted({0, pieces, *(begin for begin in sentences if 0 < begin < pieces)}) if pieces else []
    result: list[Window] = []
    own = 0
    for first, last in pairwise(cuts):
        alone = scope == "sentence"
        if last - own > (size if alone else room) and own < first:
            result.append(_window(own, first, context, 0, pieces))
            own = first
        if alone and last - own <= size:
            result.append(Window(own, last, own, last))
            own = last
        while last - own > room:
            low, high = (first, last) if alone else (0, pieces)
            result.append(_window(own, own + room, context, low, high))
            own += room
        if alone and own < last:
            result.append(_window(own, last, context, first, last))
            own = last
    if own < pieces:
        result.append(_window(own, pieces, context, 0, pieces))
    return result


def _window(own: int, own_end: int, context: int, low: int, high: int) -> Window:
    return Window(max(low, own - context), min(high, own_end + context), own, own_end)
