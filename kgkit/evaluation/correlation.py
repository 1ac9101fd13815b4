"""Statistics of two columns of numbers, or of labels: correlations, and the area under the ROC curve.

    pearson     linear correlation
    spearman    Pearson's of the ranks; numbers that are alike share the mean of their ranks
    matthews    correlation of labels, of two or more kinds (Matthews 1975; Gorodkin 2004)
    auc         how often a positive example has a higher number than a negative one; of equal ones half

A correlation is in [-1, 1], and 0 where one column has no variance: a model that answers all alike has none.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgkit.errors import UsageError


def pearson(first: ArrayLike, second: ArrayLike) -> float:
    """Return the linear correlation of two columns of N numbers; 0 if one of them is constant.

    Raises:
        UsageError: if one has more numbers than the other, or a number is not finite.
    """
    x, y = _columns(first, second)
    return _correlation(x, y)


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return the correlation of the ranks of two columns of N numbers; 0 if one of them is constant.

    Raises:
        UsageError: if one has more numbers than the other, or a number is not finite.
    """
    x, y = _columns(first, second)
    return _correlation(ranks(x), ranks(y))


def matthews(gold: Sequence[str], answers: Sequence[str]) -> float:
    """Return the correlation of N labels and N answers; 0 if all labels, or all answers, are alike.

    Of two labels it is (TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN)), of more Gorodkin's
    R_K.

    Raises:
        UsageError: if there are more of the one than of the other.
    """
    if len(gold) != len(answers):
        raise UsageError(f"{len(gold)} labels and {len(answers)} answers: expected one answer for each")
    names = {name: index for index, name in enumerate(sorted({*gold, *answers}))}
    table = np.zeros((len(names), len(names)))  # gold × answers
    np.add.at(table, ([names[name] for name in gold], [names[name] for name in answers]), 1)
    labelled, answered, total = table.sum(1), table.sum(0), table.sum()
    # As floats: the counts of a large data set overflow integers here.
    spread = np.sqrt((total**2 - labelled @ labelled) * (total**2 - answered @ answered))
    return float((np.trace(table) * total - labelled @ answered) / spread) if spread else 0.0


def auc(positive: Sequence[bool], scores: ArrayLike) -> float:
    """Return the area under the ROC curve, by the rank sum of Mann and Whitney.

    Args:
        positive: N of them.
        scores: N numbers, the higher the likelier positive.

    Raises:
        UsageError: if there are more of the one than of the other, a number is not finite, or all examples
            are positive, or none is: there is no area then.
    """
    right, numbers = np.asarray(positive, np.bool_), np.asarray(scores, np.float64)
    _columns(right, numbers)
    positives, negatives = int(right.sum()), int((~right).sum())
    if not positives or not negatives:
        raise UsageError(f"{positives} positive and {negatives} negative examples: expected some of both")
    return float((ranks(numbers)[right].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each of (N,) numbers, from 1; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: NDArray[np.float64] = (last - (counts - 1) / 2)[inverse.reshape(-1)]
    return mean


def _columns(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise UsageError(f"expected two columns of as many numbers, found shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise UsageError("a number is not finite: it has no rank and no distance from the mean")
    return x, y


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    if not len(x) or x.min() == x.max() or y.min() == y.max():
        return 0.0
    # Scaled first, so that squares of very large or very small numbers stay finite and above 0.
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    x, y = x - x.mean(), y - y.mean()
    spread = np.linalg.norm(x) * np.linalg.norm(y)
    return float(np.clip(x @ y / spread, -1, 1)) if spread else 0.0
