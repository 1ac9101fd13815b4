"""Which tails are known of a head and a relation: what a fair ranking and a fair negative leave out.

T  triples    Q  questions (head, relation)    F  tails found, of all questions together
"""

from typing import NamedTuple

import numpy as np

from kgkit.sorted_ids import match_sorted


class Tails(NamedTuple):
    """Tails of many questions in one pair of arrays."""

    rows: np.ndarray  # (F,) the question that a tail answers, ascending
    tails: np.ndarray  # (F,)


class TrueTails:
    """The tails of every (head, relation) of a set of triples.

    Args:
        triples: (T, 3) head, relation, tail; a triple given twice counts once.
    """

    def __init__(self, triples: np.ndarray) -> None:
        triples = np.asarray(triples, np.int64).reshape(-1, 3)
        self._relations = int(triples[:, 1].max(initial=0)) + 1
        triples = np.unique(triples, axis=0)  # sorted by head, relation, tail
        keys, self._starts = np.unique(self._key(triples[:, 0], triples[:, 1]), return_index=True)
        self._keys = keys
        self._ends = np.append(self._starts[1:], len(triples))
        self._tails = triples[:, 2].copy()

    def _key(self, heads: np.ndarray, relations: np.ndarray) -> np.ndarray:
        keys: np.ndarray = heads.astype(np.int64) * self._relations + relations
        return keys

    def of(self, heads: np.ndarray, relations: np.ndarray) -> Tails:
        """Return what is known of each question."""
        if not len(self._keys) or not len(heads):
            return Tails(np.empty(0, np.int64), np.empty(0, np.int64))
        keys = self._key(heads, relations)
        positions, exists = match_sorted(self._keys, keys)
        exists &= relations < self._relations
        starts = np.where(exists, self._starts[positions], 0)
        counts = np.where(exists, self._ends[positions] - starts, 0)
        rows = np.repeat(np.arange(len(heads)), counts)
        before = np.cumsum(counts) - counts
        within = np.arange(len(rows)) - np.repeat(before, counts)
        return Tails(rows, self._tails[np.repeat(starts, counts) + within])
