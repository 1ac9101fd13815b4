"""Is a difference more than chance: a paired test over examples, and one over seeds.

The first (approximate randomisation, Noreen 1989) lets the answers to an example change sides, those of all
seeds together, and so speaks of these very models on other examples. The second, Student's paired t-test over
the scores of the seeds, speaks of other trainings on these very examples. Neither replaces the other: of two
equal methods whose seeds deviate by a point, the first has p < 0.05 in a quarter of the comparisons or more,
of three seeds over 3,000 texts.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.evaluation.significance import paired_test

DRAWS: Final = 10_000
_AT_ONCE: Final = 100
_EQUAL: Final = 1e-9  # scores that differ by rounding alone
OVER_SEEDS: Final = "p over seeds"
"""Heading of the column with `seeds_cell`."""

NOTES: Final = """
`p`: how often chance alone makes a difference in score to what it is compared with, the first row
unless said otherwise, as large, either way, in a paired
test: for each example it is drawn which of the two gave which answers, those of all seeds together, 10,000
times. It speaks of the models that were trained, on other examples. `p over seeds`: a paired t-test over the
scores of the n seeds, which speaks of other trainings on these examples; empty of one seed. A gain is shown
where both are small. Of many comparisons some come out small.
"""


def chance(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return how often a difference in the mean F1 of all seeds as large comes by chance.

    Args:
        first, second: (S, N, 3), for S seeds and N examples how many of a model's answers are right, how many
            it gave, and how many there are to give. Where each is answered once, F1 is accuracy.
    """
    return paired_test(first, second, f1_of)


def chance_over_seeds(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Return the p of a paired t-test over the scores of seeds; None if the differences do not vary.

    Args:
        first, second: (S,) scores of two methods, of the same seeds in the same order.
    """
    from scipy.stats import ttest_1samp

    differences = second - first
    if len(differences) < 2 or np.ptp(differences) < _EQUAL:
        return None
    return float(ttest_1samp(differences, 0.0).pvalue)


def seeds_cell(first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    """Return the cell of the column `OVER_SEEDS`; arguments as for `chance_over_seeds`."""
    p = chance_over_seeds(first, second)
    return "" if p is None else f"{p:.4f} (n = {len(first)})"


Score = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
"""A score of answers (…, N) to examples whose gold is (N,): (…)."""


def chance_of_score(
    gold: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    score: Score,
    draws: int = DRAWS,
) -> float:
    """Return how often a difference in the mean score of all seeds as large comes by chance.

    Args:
        gold: (N,) what is right.
        first, second: (S, N) answers of two models, for S seeds.
        score: as `matthews` or `pearson`.
        draws: how often it is drawn whose answers to an example are whose.
    """
    drawn = np.random.default_rng(0)
    observed = abs(float(score(gold, second).mean() - score(gold, first).mean()))
    as_large = 0
    for begin in range(0, draws, _AT_ONCE):
        swapped = drawn.random((min(_AT_ONCE, draws - begin), 1, len(gold))) < 0.5  # (D, 1, N)
        first_side, second_side = (
            np.where(swapped, second, first),
            np.where(swapped, first, second),
        )  # (D, S, N)
        differences = np.abs(score(gold, second_side).mean(-1) - score(gold, first_side).mean(-1))  # (D,)
        as_large += int((differences >= observed - 1e-12).sum())
    return (as_large + 1) / (draws + 1)


def matthews(gold: NDArray[np.float64], answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Matthews' correlation of two labels, 0 and 1: Pearson's of these numbers."""
    return pearson(gold, answers)


def pearson(gold: NDArray[np.float64], answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pearson's correlation, (…) for answers (…, N); 0 where all answers are alike."""
    gold_deviations, deviations = gold - gold.mean(), answers - answers.mean(-1, keepdims=True)
    scale = np.sqrt((gold_deviations**2).sum() * (deviations**2).sum(-1))
    together = (gold_deviations * deviations).sum(-1)
    correlation: NDArray[np.float64] = np.where(scale > 1e-12, together / np.maximum(scale, 1e-12), 0.0)
    return correlation


def correct_counts(correct: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return (S, N, 3) counts for `chance`, of (S, N) predictions that are correct or not."""
    return np.stack([correct, np.ones_like(correct), np.ones_like(correct)], -1).astype(np.int64)


def f1_of(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return (…) F1 of (…, 3) counts."""
    correct, predicted, gold = np.moveaxis(counts, -1, 0)
    f1: NDArray[np.float64] = 2 * correct / np.maximum(predicted + gold, 1)
    return f1


def spread(scores: NDArray[np.float64]) -> str:
    """Return the mean of the scores of seeds, and their sample deviation if there are several."""
    return f"{scores.mean():.2f}" + (f" ± {scores.std(ddof=1):.2f}" if len(scores) > 1 else "")
