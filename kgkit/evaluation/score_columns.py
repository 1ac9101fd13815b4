"""The first score of each task as a function of sums over examples, for intervals and paired tests.

Each function here takes examples with gold, the predictions of one or several systems, and labels, as the
functions of `kgkit.evaluation.task_scores` do; it returns columns for each example, and the statistic whose
value for their sums is the first score.

    accuracy             right, 1
    F1                   right, predicted, in the gold
    macro F1             these three of each relation of the gold
    Matthews             right; how often each label is gold; how often it is the answer
    mean correlation     1, and of numbers, and again of ranks: x, x², y, y², xy
    reciprocal rank      that of the first right answer to a question, 1 if it has one

Pearson's correlation is the same for numbers on any scale, so those of each system are standardized; and
Spearman's is Pearson's of ranks. Where a test exchanges the answers of two systems, an answer keeps the
distance from the mean, and the rank, that it has among those of its own system. Ranked anew among the answers
of both, numbers on two scales would say which system gave them, and no difference could be seen.

A unit is what changes sides as a whole in a test, and what an interval draws: an example, or all those that
are no independent examples, such as the answers to a question.

    S  systems    N  examples    U  units    C  columns
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.evaluation.correlation import ranks
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.ner import chunks
from kgkit.evaluation.ranking import first_right_ranks
from kgkit.evaluation.relations import OTHER, without_direction
from kgkit.evaluation.significance import UNIT, Interval, Statistic
from kgkit.evaluation.tacred import NO_RELATION
from kgkit.evaluation.task_scores import Predictions, has_directions, ranked_answers

CORRELATION: Final = Interval(-1.0, 1.0)
"""The values that a correlation may have."""

UnitKind = Literal["group", "text"]
"""Examples of one group; or those that have a text in common, or are linked by others that do."""

_ROUNDING: Final = 1e-12  # share of a sum of squares below which a variance is none


class ScoreColumns(NamedTuple):
    """Columns whose sums a score is a function of.

    Attributes:
        metric: name of the score, the first of those of `Task.score`.
        columns: (S, N, C) of each system and each example; or (S, U, C), of each unit.
        statistic: function from sums (…, C) to scores (…).
        bounds: least and greatest value of the score.
    """

    metric: str
    columns: NDArray[np.float64]
    statistic: Statistic
    bounds: Interval = UNIT

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


def matthews_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return Matthews' correlation (…) of sums (…, 1 + 2 L): right; of each label gold; answers."""
    size = sums.shape[-1] // 2
    right, labelled, answered = sums[..., 0], sums[..., 1 : 1 + size], sums[..., 1 + size :]
    total = labelled.sum(-1)
    spread = np.sqrt((total**2 - (labelled**2).sum(-1)) * (total**2 - (answered**2).sum(-1)))
    gap = right * total - (labelled * answered).sum(-1)
    correlation: NDArray[np.float64] = np.where(spread > 0, gap / np.where(spread > 0, spread, 1), 0.0)
    return correlation


def mean_correlation_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean (…) of two correlations, of sums (…, 11): how many; x, x², y, y², xy of either."""
    linear, ranked = (_pearson_of_sums(sums[..., 0], sums[..., start : start + 5]) for start in (1, 6))
    return (linear + ranked) / 2


def _pearson_of_sums(count: NDArray[Any], sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return Pearson's correlation (…) of counts (…) and sums (…, 5); 0 where a column has no variance."""
    x, xx, y, yy, xy = np.moveaxis(sums, -1, 0)
    variances = [count * square - mean**2 for mean, square in ((x, xx), (y, yy))]
    varied = [
        variance > _ROUNDING * count * square for variance, square in zip(variances, (xx, yy), strict=True)
    ]
    both = varied[0] & varied[1]
    spread = np.sqrt(np.where(both, variances[0] * variances[1], 1.0))
    return np.where(both, np.clip((count * xy - x * y) / spread, -1, 1), 0.0)


# -- columns of each score --------------------------------------------------


def accuracy_columns(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> ScoreColumns:
    """Return the columns of accuracy."""
    right = [[_answer(own, example) == example.gold for example in examples] for own in systems]
    columns = np.array(right, np.float64)
    return ScoreColumns("accuracy", np.stack([columns, np.ones_like(columns)], -1), mean_of_sums)


def matthews_columns(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> ScoreColumns:
    """Return the columns of Matthews' correlation, of L labels of the gold or of an answer."""
    gold = [str(example.gold) for example in examples]
    answers = [[_label(own, example) for example in examples] for own in systems]
    indices = {label: index for index, label in enumerate(sorted({*gold}.union(*answers)))}
    kinds = np.eye(len(indices))
    labelled = kinds[[indices[label] for label in gold]]  # (N, L)
    columns = []
    for own in answers:
        right = np.array([answer == label for answer, label in zip(own, gold, strict=True)], np.float64)
        columns.append(np.hstack([right[:, None], labelled, kinds[[indices[answer] for answer in own]]]))
    return ScoreColumns("matthews", np.stack(columns), matthews_of_sums, CORRELATION)


def reciprocal_rank_columns(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> ScoreColumns:
    """Return the columns of the mean reciprocal rank; those of a question stand at its first answer."""
    columns = np.zeros((len(systems), len(examples), 2))
    first = {example.group: index for index, example in reversed([*enumerate(examples)])}
    for row, own in zip(columns, systems, strict=True):
        for question, rank in first_right_ranks(*ranked_answers(examples, own)).items():
            row[first[question]] = 1 / rank, 1
    return ScoreColumns("mrr", columns, mean_of_sums)


def chunk_columns(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> ScoreColumns:
    """Return the columns of F1 of the names, with types, that tags mean."""
    gold = [frozenset(chunks(_tuple(example.gold))) for example in examples]
    answers = [[frozenset(chunks(_tuple(_answer(own, example)))) for example in examples] for own in systems]
    return ScoreColumns("f1", overlap_columns(gold, answers), f1_of_sums)


def type_columns(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> ScoreColumns:
    """Return the columns of micro F1 of sets of labels."""
    gold = [_set(example.gold) for example in examples]
    answers = [[_set(_answer(own, example)) for example in examples] for own in systems]
    return ScoreColumns("f1", overlap_columns(gold, answers), f1_of_sums)


def relation_columns(
    examples: Sequence[Example], systems: Sequence[Predictions], labels: Sequence[str] = ()
) -> ScoreColumns:
    """Return the columns of macro F1 where relations have directions, else of micro F1 as TACRED has it."""
    gold = [str(example.gold) for example in examples]
    if not has_directions(gold, labels):
        relations = [{label} - {NO_RELATION} for label in gold]
        answers = [[{_label(own, example)} - {"", NO_RELATION} for example in examples] for own in systems]
        return ScoreColumns("f1", overlap_columns(relations, answers), f1_of_sums)
    names = sorted({without_direction(label) for label in gold} - {OTHER})
    columns = np.zeros((len(systems), len(examples), len(names), 3))
    indices = {name: index for index, name in enumerate(names)}
    for system, own in enumerate(systems):
        for row, (label, example) in enumerate(zip(gold, examples, strict=True)):
            answer = _label(own, example)
            if (index := indices.get(without_direction(label))) is not None:
                columns[system, row, index, [0, 2]] += answer == label, 1
            if (index := indices.get(without_direction(answer))) is not None:
                columns[system, row, index, 1] += 1
    return ScoreColumns(
        "macro_f1", columns.reshape(len(systems), len(examples), 3 * len(names)), macro_f1_of_sums
    )


def correlation_columns(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> ScoreColumns:
    """Return the columns of the mean of Pearson's and Spearman's correlation."""
    gold = np.array([example.gold for example in examples], np.float64)
    columns = []
    for own in systems:
        answers = np.array([_answer(own, example) for example in examples], np.float64)
        parts = [np.ones((len(gold), 1))]
        for numbers, predicted in ((gold, answers), (ranks(gold), ranks(answers))):
            x, y = _standardized(numbers), _standardized(predicted)
            parts.append(np.stack([x, x * x, y, y * y, x * y], 1))
        columns.append(np.hstack(parts))  # (N, 11)
    return ScoreColumns("mean_correlation", np.stack(columns), mean_correlation_of_sums, CORRELATION)


def overlap_columns(
    gold: Sequence[frozenset[Any] | set[Any]], answers: Sequence[Sequence[frozenset[Any] | set[Any]]]
) -> NDArray[np.float64]:
    """Return (S, N, 3): how many answers are right, how many there are, and how many the gold has.

    Args:
        gold: of each example what is right.
        answers: of each system and each example what it answers.
    """
    counts = [
        [(len(own & right), len(own), len(right)) for own, right in zip(system, gold, strict=True)]
        for system in answers
    ]
    return np.array(counts, np.float64).reshape(len(answers), len(gold), 3)


def _standardized(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (N,) numbers with mean 0 and deviation 1; all are 0 where they are alike."""
    if not len(numbers) or numbers.min() == numbers.max():
        return np.zeros_like(numbers)
    scaled = numbers / np.abs(numbers).max()  # squares of very large or small numbers stay finite, above 0
    centred = scaled - scaled.mean()
    deviation = np.sqrt((centred**2).mean())
    standard: NDArray[np.float64] = centred / deviation if deviation else np.zeros_like(numbers)
    return standard


def _answer(predictions: Mapping[str, Prediction], example: Example) -> object:
    prediction = predictions.get(example.id)
    return None if prediction is None else prediction.answer


def _label(predictions: Mapping[str, Prediction], example: Example) -> str:
    """Return the label that is answered; "" if none is."""
    answer = _answer(predictions, example)
    return "" if answer is None else str(answer)


def _tuple(answer: object) -> tuple[str, ...]:
    return answer if isinstance(answer, tuple) else ()


def _set(answer: object) -> frozenset[str]:
    return answer if isinstance(answer, frozenset) else frozenset()
