"""Which grouping of vectors tells most about where they lie.

    P  vectors    D  width

A grouping is worth as many bits as the group of a vector tells about the group of its nearest neighbour:
their mutual information (Shannon 1948), less what as many groups would tell by chance (Miller 1955). A
grouping that has nothing to do with the vectors is worth nothing, however many groups it has; of two that
vectors follow, the finer is worth more.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from kgkit.types import Matrix, Numbers
from kgkit.vectors.scan import unit

_BLOCK: Final = 1024


def nearest_rows(vectors: Matrix) -> Numbers:
    """Return for each vector the row of the other one that is nearest by cosine; its own if it is alone.

    Args:
        vectors: (P, D), no row of them zeros.
    """
    directions = unit(np.asarray(vectors))  # (P, D)
    count = len(directions)
    nearest = np.zeros(count, np.int64)
    for start in range(0, count, _BLOCK):
        cosines = directions[start : start + _BLOCK] @ directions.T  # (rows, P)
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf
        nearest[start : start + _BLOCK] = cosines.argmax(axis=1)
    return nearest


def shared_bits(groups: Sequence[str], nearest: Numbers) -> float:
    """Return how many bits the group of a vector tells about that of its nearest neighbour, 0 at least.

    Vectors without a group, or whose neighbour has none, tell nothing: they count as vectors of no bits.

    Args:
        groups: group of each of P vectors; "" is none.
        nearest: (P,) row of the nearest neighbour of each.
    """
    if not len(groups):
        return 0.0
    names, codes = np.unique(np.array(groups, dtype=np.str_), return_inverse=True)
    is_grouped = names[codes] != ""
    rows = np.flatnonzero(is_grouped & is_grouped[nearest])
    if not len(rows):
        return 0.0
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, (codes[rows], codes[nearest[rows]]), 1)
    own, other = counts.sum(axis=1), counts.sum(axis=0)
    expected = own[:, None] * other[None, :] / len(rows)
    occurs = counts > 0
    bits = float((counts[occurs] * np.log2(counts[occurs] / expected[occurs])).sum()) / len(rows)
    cells = int((own > 0).sum() - 1) * int((other > 0).sum() - 1)
    by_chance = cells / (2 * len(rows) * math.log(2))
    return max(0.0, bits - by_chance) * len(rows) / len(groups)
