"""Numbers that are looked up in a sorted array."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class SortedMatches(NamedTuple):
    """Where numbers are in a sorted array.

    Attributes:
        rows: (N,) positions in the array; any where there is none.
        exists: (N,) bool, whether the array has the number.
    """

    rows: NDArray[np.int64]
    exists: NDArray[np.bool_]


def match_sorted(
    values: NDArray[Any], numbers: NDArray[Any], *, order: NDArray[np.intp] | None = None
) -> SortedMatches:
    """Return where numbers are in a sorted array.

    Args:
        values: (S,) ascending; of equal ones the first is the match.
        numbers: (N,) what is looked up.
        order: (S,) positions of *values* in ascending order, if these are not; *rows* then are of *values*.

    Examples:
        >>> match_sorted(np.array([2, 5, 9]), np.array([5, 3, 10]))
        SortedMatches(rows=array([1, 1, 2]), exists=array([ True, False, False]))
    """
    if not len(values):
        return SortedMatches(np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_))
    rows = np.minimum(np.searchsorted(values, numbers, sorter=order), len(values) - 1)
    if order is not None:
        rows = order[rows]
    return SortedMatches(rows, values[rows] == numbers)
