"""Where a document of many word pieces is cut in two: between sentences, words, or word pieces.

P  word pieces of a document
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.evaluation.plain_text import sentence_begins
from kgkit.inputs.pieces import WordPieces
from kgkit.types import Document, Numbers


class Cuts(NamedTuple):
    """Positions between word pieces, by what a cut there would go through.

    Attributes:
        sentences: (·,) positions that sentences begin at.
        words: (·,) positions that words begin at.
        crossed: (P + 1,) bool, whether a span goes over a position.
    """

    sentences: Numbers
    words: Numbers
    crossed: NDArray[np.bool_]

    def nearest_middle(self, begin: int, end: int) -> int:
        """Return where a range of word pieces is cut: at the sentence end nearest the middle.

        Where no sentence ends, it is cut between words, else between word pieces; through a span only where
        spans are everywhere.
        """
        inside = np.arange(begin + 1, end)
        whole = inside[~self.crossed[inside]]
        choices = np.intersect1d(whole, self.sentences), np.intersect1d(whole, self.words), whole, inside
        cuts = next(positions for positions in choices if len(positions))
        return int(cuts[np.abs(2 * cuts - (begin + end)).argmin()])


def find_cuts(document: Document, pieces: WordPieces, spans: Sequence[tuple[int, int]]) -> Cuts:
    """Return where a document may be cut; a word begins behind what no word piece stands for, as a space.

    Args:
        document: document; where it has no sentences, they are looked for.
        pieces: its P word pieces.
        spans: spans of word pieces, end exclusive, that no cut is to go through.
    """
    crossed = np.zeros(len(pieces) + 1, np.bool_)
    for first, end in spans:
        crossed[first + 1 : end] = True
    words = np.flatnonzero(pieces.starts[1:] > pieces.ends[:-1]) + 1
    return Cuts(_sentence_ends(document, pieces), words, crossed)


def _sentence_ends(document: Document, pieces: WordPieces) -> Numbers:
    """Return the positions of the word pieces that sentences begin with, but the first."""
    if document.sentences:
        begins = [begin for begin, _ in document.sentences]
    else:
        begins = sentence_begins(document.text)
    return np.unique([pieces.within(begin, len(document.text))[0] for begin in begins] or [0]).astype(
        np.int64
    )
