"""Scores as functions of sums over examples, so that a score has its interval and its paired test.

    mean         a value, 1
    F1           right, predicted, in the gold; so precision and recall
    macro F1     these three of each label of the gold

A unit is what changes sides as a whole in a test, and what an interval draws: an example, or all those that
are no independent examples, such as the answers to a question.

    S  systems    N  examples    U  units    C  columns
"""

from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.evaluation.examples import Example
from kgkit.evaluation.significance import UNIT, Comparison, Interval, Statistic, compare

UnitKind = Literal["group", "text"]
"""Examples of one group; or those that have a text in common, or are linked by others that do."""


class ScoreColumns(NamedTuple):
    """Columns whose sums a score is a function of.

    Attributes:
        metric: name of the score.
        columns: (S, N, C) of each system and each example; or (S, U, C), of each unit.
        statistic: function from sums (…, C) to scores (…).
        bounds: least and greatest value of the score.
    """

    metric: str
    columns: NDArray[np.float64]
    statistic: Statistic
    bounds: Interval = UNIT

    def score(self, system: int = 0) -> float:
        """Return the score of a system."""
        return float(self.statistic(self.columns[system].sum(0)))

    def compare(self) -> Comparison:
        """Return how the score of the second of two systems differs from that of the first."""
        versus, own = self.columns
        return compare(versus, own, self.statistic, self.bounds)

    def by_unit(self, examples: Sequence[Example], kind: UnitKind = "group") -> "ScoreColumns":
        """Return the sums (S, U, C) of the columns (S, N, C), by units.

        Args:
            examples: the N examples.
            kind: what joins examples.
        """
        return self._replace(columns=sum_units(self.columns, unit_numbers(examples, kind)))


# -- units ------------------------------------------------------------------


def unit_numbers(examples: Sequence[Example], kind: UnitKind = "group") -> NDArray[np.int64]:
    """Return the number of the unit of each example, (N,) from 0, in the order of their first examples.

    Args:
        examples: with ids that differ.
        kind: what joins examples; one without a group is a unit of its own.
    """
    if kind == "text":
        keys = _linked_texts(examples)
    else:
        keys = [("group", example.group) if example.group else ("id", example.id) for example in examples]
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _linked_texts(examples: Sequence[Example]) -> list[Hashable]:
    """Return for each example a text that is the same for all that share texts, or are linked by such."""
    parents: dict[str, str] = {}

    def root(text: str) -> str:
        while (parent := parents.setdefault(text, text)) != text:
            parents[text] = parents.setdefault(parent, parent)
            text = parents[text]
        return text

    for example in examples:
        for text in example.texts[1:]:
            parents[root(text)] = root(example.texts[0])
    return [root(example.texts[0]) for example in examples]


def sum_units(columns: NDArray[np.float64], units: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sums (S, U, C) of columns (S, N, C) by the unit (N,) of each example."""
    sums = np.zeros((len(columns), int(units.max(initial=-1)) + 1, columns.shape[2]))
    for own, rows in zip(sums, columns, strict=True):
        np.add.at(own, units, rows)
    return sums


# -- statistics -------------------------------------------------------------


def mean_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean (…) of sums (…, 2) of values and how many there are; 0 of none."""
    mean: NDArray[np.float64] = sums[..., 0] / np.maximum(sums[..., 1], 1)
    return mean


def precision_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return the precision (…) of sums (…, 3): how many are right, predicted, in the gold; 0 of none."""
    return mean_of_sums(sums)


def recall_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return the recall (…) of sums (…, 3): how many are right, predicted, in the gold; 0 of none."""
    return mean_of_sums(sums[..., ::2])


def f1_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return F1 (…) of sums (…, 3): how many are right, predicted, in the gold; 0 of none."""
    f1: NDArray[np.float64] = 2 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1)
    return f1


def macro_f1_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean F1 (…) of the labels that the gold has, of sums (…, 3 L): three for each label."""
    by_label = sums.reshape(*sums.shape[:-1], sums.shape[-1] // 3, 3)
    labelled = by_label[..., 2] > 0  # (…, L)
    total = (f1_of_sums(by_label) * labelled).sum(-1)
    mean: NDArray[np.float64] = total / np.maximum(labelled.sum(-1), 1)
    return mean


def overlap_scores(
    gold: Sequence[frozenset[Any] | set[Any]], answers: Sequence[Sequence[frozenset[Any] | set[Any]]]
) -> list[ScoreColumns]:
    """Return F1, precision and recall of sets, over all examples together.

    Args:
        gold: of each example what is right.
        answers: of each system and each example what it answers.
    """
    counts = [
        [(len(own & right), len(own), len(right)) for own, right in zip(system, gold, strict=True)]
        for system in answers
    ]
    columns = np.array(counts, np.float64).reshape(len(answers), len(gold), 3)
    return [
        ScoreColumns("f1", columns, f1_of_sums),
        ScoreColumns("precision", columns, precision_of_sums),
        ScoreColumns("recall", columns, recall_of_sums),
    ]
