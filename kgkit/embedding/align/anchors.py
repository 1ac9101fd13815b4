"""Where two spaces have the same thing: words that both know, or pairs that a file gives.

A   anchors
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.errors import NotThere, SourceError


class Anchors(NamedTuple):
    """Rows that stand for the same thing in two spaces.

    Attributes:
        source: (A,) int64.
        target: (A,) int64, ascending.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]


def shared_words(source: Sequence[str], target: Sequence[str]) -> Anchors:
    """Return the words that a word table and a tokenizer's pieces share.

    If no piece has an upper-case letter, a word of the table may stand for its lower case, where the table
    has no such word: the first that does.

    Args:
        source: the words of the table, frequent ones first.
        target: the pieces of the tokenizer.
    """
    words_of_target = vocabulary_words(target)
    rows: dict[int, int] = {}
    for row, word in enumerate(source):
        piece = words_of_target.get(word)
        if piece is not None:
            rows.setdefault(piece, row)
    if not any(word != word.lower() for word in words_of_target):
        exact = set(rows)
        for row, word in enumerate(source):
            lower = word.lower()
            piece = words_of_target.get(lower) if lower != word else None
            if piece is not None and piece not in exact:
                rows.setdefault(piece, row)
    return _anchors(rows)


def read_pairs(
    path: Path, source: Callable[[str], int | None], target: Callable[[str], int | None]
) -> Anchors:
    """Return the anchors that a file names: on each line a name in the source, a tab, a name in the target.

    Pairs of which a space does not know one are left out. Of several for one
    row of the target, the first is taken.

    Args:
        path: the file.
        source, target: functions that return the row of a name.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no pair, or no pair is known to both.
    """
    if not path.is_file():
        raise NotThere(f"no file of pairs {path}")
    rows: dict[int, int] = {}
    number = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                fields = line.decode("utf-8").rstrip("\r\n").split("\t")
            except UnicodeDecodeError:
                raise SourceError("not UTF-8", path=path, line=number) from None
            if len(fields) != 2:
                message = f"expected 2 tab-separated fields, found {len(fields)}"
                raise SourceError(message, path=path, line=number, text="\t".join(fields))
            source_row, target_row = source(fields[0]), target(fields[1])
            if source_row is not None and target_row is not None:
                rows.setdefault(target_row, source_row)
    if not rows:
        raise SourceError(f"none of its {number:,} pairs is known on both sides", path=path)
    return _anchors(rows)


def _anchors(rows: dict[int, int]) -> Anchors:
    """Return the anchors of target row -> source row."""
    pairs = np.array(sorted(rows.items()), np.int64).reshape(-1, 2)
    return Anchors(pairs[:, 1].copy(), pairs[:, 0].copy())
