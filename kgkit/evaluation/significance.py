"""How sure a score is: intervals by the bootstrap, and whether a difference is more than chance.

Both read sums over examples or documents: D of them with C columns each, and a statistic of the sums of the
columns, such as F1. Documents are drawn, not mentions, as those of a document resemble each other (Efron
1979; for the test Noreen 1989, approximate randomisation). Percentiles of samples are too near to each other
where documents are few: they are expanded as by Hesterberg (2015), "What Teachers Should Know About the
Bootstrap", 5.3. Where all documents score alike, samples do not vary: the interval allows for documents of
another kind, as many as 5 % of samples would have missed (Hanley and Lippman-Hand 1983, "If Nothing Goes
Wrong, Is Everything All Right?").

    D  documents or examples    C  columns    B  draws
"""

from collections.abc import Callable, Collection, Iterator
from itertools import product
from math import sqrt
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError

Statistic = Callable[[NDArray[Any]], NDArray[np.float64]]
"""Scores (…) or (…, K) of sums of columns (…, C)."""

DRAWS: Final = 2_000
"""Samples of documents that an interval is made of."""

SWAPS: Final = 10_000
"""Assignments of answers to systems that a test draws; all are tried where there are no more."""

LEVEL: Final = 0.95
"""Share of data sets of the same kind whose interval holds the true score."""

_EQUAL: Final = 1e-12  # difference of two scores that are the same to rounding
_CELLS: Final = 1 << 22  # of the weights that are in memory at a time


class Interval(NamedTuple):
    """An interval of a score.

    Attributes:
        low, high: its ends.
    """

    low: float
    high: float


UNIT: Final = Interval(0.0, 1.0)
"""The values that a score may have."""


class Comparison(msgspec.Struct, frozen=True):
    """How the score of a system differs from that of another.

    Attributes:
        score: score of the system.
        versus: score of the system that it is compared with.
        difference: the first less the second.
        interval: interval of the difference.
        p: how often chance alone makes a difference as large, see `paired_test`.
    """

    score: float
    versus: float
    difference: float
    interval: Interval
    p: float


def compare(
    first: NDArray[np.float64], second: NDArray[np.float64], statistic: Statistic, bounds: Interval = UNIT
) -> Comparison:
    """Return how the score of the second system differs from the first's.

    Args:
        first: (D, C) columns of each document, by the system that is compared with.
        second: (D, C) columns of the same documents, by the system.
        statistic: function from sums (…, C) to scores (…).
        bounds: least and greatest value that the score may have.
    """
    versus, score = (float(statistic(columns.sum(0))) for columns in (first, second))
    [interval] = difference_interval(first, second, lambda sums: statistic(sums)[..., None], bounds=bounds)
    return Comparison(score, versus, score - versus, interval, paired_test(first, second, statistic))


def bootstrap_intervals(
    columns: NDArray[np.float64],
    statistic: Statistic,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
    bounds: Interval = UNIT,
) -> list[Interval]:
    """Return the interval of each score, by percentiles of samples of documents with replacement.

    Args:
        columns: (D, C).
        statistic: function from sums (B, C) to scores (B, K).
        draws: B, samples.
        level: share of intervals that hold the true score.
        seed: seed of the samples.
        bounds: least and greatest value that a score may have.

    Returns:
        K intervals; without documents, or with a single one, all are as wide as the score may vary: *bounds*.

    Raises:
        UsageError: if *columns* has another number of axes.
    """
    if columns.ndim != 2:
        raise UsageError(
            f"the columns have the shape {columns.shape}; expected (D, C): of each document its columns, "
            "such as (right, 1), even if there is a single one"
        )
    size = len(columns)
    count = statistic(columns.sum(0, keepdims=True)).shape[-1]
    if size < 2:
        return [bounds] * count
    generator, scores = np.random.default_rng(seed), []
    for number in _blocks(draws, size):
        weights = generator.multinomial(size, np.full(size, 1 / size), size=number)  # (B, D)
        scores.append(statistic(weights.astype(np.float64) @ columns))
    tail = _expanded_tail((1 - level) / 2, size)
    low, high = np.quantile(np.concatenate(scores), [tail, 1 - tail], axis=0)  # (K,)
    unseen = 1 - (1 - level) ** (1 / size)
    return [
        Interval(*ends) if ends[1] - ends[0] > _EQUAL else _interval_of_equals(ends[0], unseen, bounds)
        for ends in zip(low.tolist(), high.tolist(), strict=True)
    ]


def _interval_of_equals(score: float, unseen: float, bounds: Interval) -> Interval:
    """Return the interval of a score that all documents have, if a share of others has an extreme score."""
    return Interval(*(score + unseen * (bound - score) for bound in bounds))


def _expanded_tail(tail: float, size: int) -> float:
    """Return the share of samples beyond an end, for an interval as wide as Student's of *size* documents."""
    normal, freedom = NormalDist(), size - 1
    z = -normal.inv_cdf(tail)
    # Student's quantile, by its expansion (Abramowitz and Stegun 1964, 26.7.5).
    student = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return normal.cdf(-student * sqrt(size / freedom))


def difference_interval(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    statistic: Statistic,
    *,
    seed: int = 0,
    bounds: Interval = UNIT,
) -> list[Interval]:
    """Return the interval of the second system's scores less the first's, over the same documents.

    Args:
        first: (D, C) columns of each document, by the first system.
        second: (D, C) columns of each document, by the second.
        statistic: function from sums (B, C) to scores (B, K).
        seed: seed of the samples.
        bounds: least and greatest value that a score may have.

    Returns:
        K intervals; of systems that have the same columns in all documents, two at least, all are 0 to 0.

    Raises:
        UsageError: if the systems have columns of different shapes, or these are not (D, C).
    """
    _check_shapes(first, second, (2,))
    width = first.shape[1]

    def difference(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return statistic(sums[..., width:]) - statistic(sums[..., :width])

    if len(first) > 1 and np.array_equal(first, second):
        return [Interval(0.0, 0.0)] * statistic(first.sum(0, keepdims=True)).shape[-1]
    both, span = np.concatenate([first, second], 1), bounds.high - bounds.low
    return bootstrap_intervals(both, difference, seed=seed, bounds=Interval(-span, span))


def paired_test(first: NDArray[Any], second: NDArray[Any], statistic: Statistic, *, seed: int = 0) -> float:
    """Return how often chance alone makes a difference between two systems as large, either way.

    For each document it is drawn which system gave which answers. Those that both answer alike can change
    sides unnoticed, and are not drawn. Of few documents every assignment is tried, of more `SWAPS` are drawn,
    and the observed one is counted with them, so that the result is never 0.

    Args:
        first: (D, C) columns of each document, by the first system; or (S, D, C) of S runs, which change
            sides together, and whose mean score is compared.
        second: columns of the same shape, by the second system.
        statistic: function from sums (…, C) to scores (…).
        seed: seed of the draws.

    Returns:
        A share of the draws, in (0, 1]; 1 where both systems have the same columns in all documents.

    Raises:
        UsageError: if the systems have columns of different shapes, or neither (D, C) nor (S, D, C).
    """
    _check_shapes(first, second, (2, 3))
    sides = [side if side.ndim == 3 else side[None] for side in (first, second)]
    differing = (sides[0] != sides[1]).any((0, 2))  # (D,)
    if not differing.any():
        return 1.0
    shared = sides[0][:, ~differing].sum(1)  # (S, C)
    own, opposite = (side[:, differing].astype(np.float64) for side in sides)  # (S, M, C)

    def difference(swapped: NDArray[np.float64]) -> NDArray[np.float64]:
        moved = np.einsum("bm,smc->bsc", swapped, opposite - own)
        totals = own.sum(1) + shared + moved, opposite.sum(1) + shared - moved
        gap: NDArray[np.float64] = (statistic(totals[1]) - statistic(totals[0])).mean(-1)
        return gap

    size = int(differing.sum())
    observed = abs(float(difference(np.zeros((1, size)))[0]))
    exact = size < SWAPS.bit_length() and 2**size <= SWAPS
    as_large = total = 0
    for swapped in _every_swap(size) if exact else _drawn_swaps(size, seed):
        gaps = np.abs(difference(swapped))
        as_large, total = as_large + int((gaps >= observed - 1e-12).sum()), total + len(gaps)
    return as_large / total if exact else (as_large + 1) / (total + 1)


def _check_shapes(first: NDArray[Any], second: NDArray[Any], axes: Collection[int]) -> None:
    """Refuse columns of two systems that are not of the same documents.

    Raises:
        UsageError: if their shapes differ, or their number of axes is none of *axes*.
    """
    if first.shape != second.shape:
        raise UsageError(
            f"the columns of the systems have the shapes {first.shape} and {second.shape}; expected the "
            "same: give the columns of the same documents, in one order"
        )
    if first.ndim not in axes:
        runs = ", or (S, D, C) of S runs" if 3 in axes else ""
        raise UsageError(
            f"the columns of both systems have the shape {first.shape}; expected (D, C){runs}: of each "
            "document its columns, such as (right, 1), even if there is a single one"
        )


def _every_swap(size: int) -> Iterator[NDArray[np.float64]]:
    yield np.array([*product((0.0, 1.0), repeat=size)])


def _drawn_swaps(size: int, seed: int) -> Iterator[NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    for number in _blocks(SWAPS, size):
        yield (generator.random((number, size)) < 0.5).astype(np.float64)


def _blocks(draws: int, size: int) -> Iterator[int]:
    """Yield how many draws of *size* numbers are made at a time, until there are *draws*."""
    block = max(1, _CELLS // size)
    for start in range(0, draws, block):
        yield min(block, draws - start)
