"""Choosing how an index is searched: the cheapest setting that finds enough of the true neighbours.

Q  queries    D  width    k  neighbours asked for    C  candidates
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from kgkit.types import Matrix, Numbers
from kgkit.vectors.kinds import IndexKind
from kgkit.vectors.scan import rescore, scan, unit

Propose = Callable[[Matrix, int, int], Numbers]
"""Takes queries (Q, D) of length 1, C and the setting of the knob; returns (Q, C) rows."""

AT: Final = 10
_NOISE: Final = 1.5
_MARGIN: Final = 0.2  # of what the target leaves: the cheapest setting that reaches it has had luck


class Tuned(NamedTuple):
    """What was chosen, and the recall that it reaches on queries it was not chosen with."""

    setting: int
    proposals: int
    recall: float
    queries: int


def sampled_queries(matrix: Matrix, rows: Numbers, count: int, seed: int) -> Matrix:
    """Return up to *count* rows of the matrix, each moved by 1.5 times its length in a random direction.

    A row itself, or one moved a little, would be too easy: a graph that finds the row has its neighbours at
    hand. Moved so far, glosses are about as hard to find neighbours of as sentences that are no glosses.
    """
    drawn = np.random.default_rng(seed)
    chosen = np.sort(drawn.choice(rows, min(count, len(rows)), replace=False))
    queries = unit(np.asarray(matrix).take(chosen, axis=0))  # (Q, D)
    moves = unit(drawn.standard_normal(queries.shape, np.float32))
    queries = queries + np.float32(_NOISE) * moves
    # The order of the rows may mean something: both halves of the queries are to see all of it.
    return queries[drawn.permutation(len(queries))]


def tune(
    propose: Propose, kind: IndexKind, most: int, matrix: Matrix, queries: Matrix, target: float
) -> Tuned:
    """Return the cheapest setting of *kind* with the recall *target*, or the dearest, if none has it.

    Args:
        propose: function that searches the index.
        kind: kind of index whose knob is turned.
        most: largest setting that is tried.
        matrix: (R, D), compared with in full to know the truth.
        queries: (Q, D); the first half is chosen with, the second measured with.
        target: recall in [0, 1].
    """
    half = max(1, len(queries) // 2)
    truth = scan(matrix, queries, AT).rows
    sought = unit(queries)
    least_recall = target + _MARGIN * (1 - target)
    chosen = _choose(propose, kind, most, matrix, sought[:half], truth[:half], least_recall)
    setting, proposals = chosen
    held_out, held_truth = (sought[half:], truth[half:]) if len(queries) > half else (sought, truth)
    rows = rescore(matrix, held_out, propose(held_out, AT * proposals, setting), AT).rows
    return Tuned(setting, proposals, recall_of(rows, held_truth), len(held_out))


def _choose(
    propose: Propose,
    kind: IndexKind,
    most: int,
    matrix: Matrix,
    sought: Matrix,
    truth: Numbers,
    target: float,
) -> tuple[int, int]:
    tried = [setting for setting in kind.settings if setting <= most] or [kind.settings[0]]
    for setting in tried:
        rows = propose(sought, AT * kind.proposals[-1], setting)  # (Q, C), best first
        for proposals in kind.proposals:
            best = rescore(matrix, sought, rows[:, : AT * proposals], AT).rows
            if recall_of(best, truth) >= target:
                return setting, proposals
    return tried[-1], kind.proposals[-1]


def recall_of(result: Numbers, truth: Numbers) -> float:
    """Return the share of the rows in *truth* (Q, k) that are in *found* (Q, k) too; -1 is no row."""
    same = (result[:, :, None] == truth[:, None, :]) & (truth >= 0)[:, None, :]
    return float(same.any(axis=1).sum() / max(1, int((truth >= 0).sum())))
