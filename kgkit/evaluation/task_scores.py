"""The scores of each task, from its examples and the predictions of models: the deciding score first.

All are in [0, 1], but correlations in [-1, 1]. A correlation is 0 where one side has no variance: a model
that answers all alike has none.

Every function here takes examples with gold and ids that differ, the predictions of one or several systems by
the ids of the examples, and the labels that the model chooses from; `kgkit.evaluation.tasks` checks them. An
example without a prediction counts as wrong, or as one where nothing was found.

Pearson's correlation is the same for numbers on any scale, so those of each system are standardized; and
Spearman's is Pearson's of ranks. Where a test exchanges the answers of two systems, an answer keeps the
distance from the mean, and the rank, that it has among those of its own system. Ranked anew among the answers
of both, numbers on two scales would say which system gave them, and no difference could be seen.

    S  systems    N  examples    L  labels
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.evaluation.columns import ScoreColumns, macro_f1_of_sums, mean_of_sums, overlap_scores
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.ner import OUTSIDE, chunks
from kgkit.evaluation.significance import Interval

Predictions = Mapping[str, Prediction]
"""Predictions of a system by the ids of the examples."""

RIGHT: Final = "1"
"""The label of a right answer to a question, by whose probability answers are ranked."""

OTHER: Final = "Other"
"""The label of SemEval-2010 task 8 for no relation, which has no direction."""

NO_RELATION: Final = "no_relation"
"""The label of TACRED for no relation."""

CORRELATION: Final = Interval(-1.0, 1.0)
"""The values that a correlation may have."""

PADDING: Final = "[PAD]"
"""Name of the tag of no token in the released code of K-BERT; its models can answer with it."""

_BINARY: Final = {"0", RIGHT}
_DIRECTIONS: Final = ("(e1,e2)", "(e2,e1)")
_ROUNDING: Final = 1e-12  # share of a sum of squares below which a variance is none


# -- labels -----------------------------------------------------------------


def accuracy(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return the share of examples whose prediction is their gold."""
    right = [[_answer(own, example) == example.gold for example in examples] for own in systems]
    return [_mean("accuracy", np.array(right, np.float64))]


def score_labels(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return the accuracy, and further scores where there are two labels.

    Of the labels 0 and 1 F1, precision and recall of 1 (MRPC and QQP: accuracy and F1); of any two labels
    Matthews' correlation and, where each prediction has probabilities of these two alone, the area under the
    ROC curve. The latter two are the same whichever of the two labels counts as positive.
    """
    scores = accuracy(examples, systems)
    labels = {str(example.gold) for example in examples}
    if labels == _BINARY:
        scores += overlap_scores(
            [{str(example.gold)} & {RIGHT} for example in examples],
            [[{_label(own, example)} & {RIGHT} for example in examples] for own in systems],
        )
    if len(labels) == 2:
        scores += matthews(examples, systems)
        positive = max(labels)
        shares = [_shares(examples, own, positive, labels) for own in systems]
        if None not in shares:
            scores.append(_area([example.gold == positive for example in examples], shares))
    return scores


def score_acceptability(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return Matthews' correlation, of CoLA the official score, and then as `score_labels`."""
    scores = score_labels(examples, systems)
    return matthews(examples, systems) + [each for each in scores if each.metric != "matthews"]


def matthews(examples: Sequence[Example], systems: Sequence[Predictions]) -> list[ScoreColumns]:
    """Return the correlation of labels, of two or more kinds (Matthews 1975; R_K, Gorodkin 2004).

    Columns are whether an answer is right, and of each label of the gold or of an answer whether it is gold,
    and whether it is the answer.
    """
    gold = [str(example.gold) for example in examples]
    answers = [[_label(own, example) for example in examples] for own in systems]
    indices = {label: index for index, label in enumerate(sorted({*gold}.union(*answers)))}
    kinds = np.eye(len(indices))
    labelled = kinds[[indices[label] for label in gold]]  # (N, L)
    columns = []
    for own in answers:
        right = np.array([answer == label for answer, label in zip(own, gold, strict=True)], np.float64)
        columns.append(np.hstack([right[:, None], labelled, kinds[[indices[answer] for answer in own]]]))
    return [ScoreColumns("matthews", np.stack(columns), _matthews_of_sums, CORRELATION)]


def _matthews_of_sums(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return Matthews' correlation (…) of sums (…, 1 + 2 L): right; of each label gold; answers."""
    size = sums.shape[-1] // 2
    right, labelled, answered = sums[..., 0], sums[..., 1 : 1 + size], sums[..., 1 + size :]
    total = labelled.sum(-1)
    spread = np.sqrt((total**2 - (labelled**2).sum(-1)) * (total**2 - (answered**2).sum(-1)))
    gap = right * total - (labelled * answered).sum(-1)
    correlation: NDArray[np.float64] = np.where(spread > 0, gap / np.where(spread > 0, spread, 1), 0.0)
    return correlation


def _shares(
    examples: Sequence[Example], predictions: Predictions, positive: str, labels: set[str]
) -> list[float] | None:
    """Return the probability of *positive* for each example; None where not all have that of two labels."""
    shares = []
    for example in examples:
        own = predictions[example.id].probabilities if example.id in predictions else None
        if not isinstance(own, Mapping) or own.keys() != labels:
            return None
        shares.append(own[positive])
    return shares


def _area(positive: Sequence[bool], shares: Sequence[Sequence[float] | None]) -> ScoreColumns:
    """Return the area under the ROC curve, by the rank sum of Mann and Whitney.

    It is no function of sums over examples: all of it stands at the first one, so it cannot be compared.
    """
    right = np.array(positive, np.bool_)
    positives, negatives = int(right.sum()), int((~right).sum())
    areas = np.zeros((len(shares), len(right), 2))
    for area, own in zip(areas, shares, strict=True):
        above = ranks(np.array(own, np.float64))[right].sum() - positives * (positives + 1) / 2
        area[0] = above / (positives * negatives), 1
    return ScoreColumns("auc", areas, mean_of_sums)


# -- answers to questions ---------------------------------------------------


def score_answers(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return how high right answers are ranked by the probability of `RIGHT`, and the accuracy.

    The mean reciprocal rank is that of the right answer that is ranked highest, over questions that have one;
    the mean average precision the mean, over the right answers of each, of the part that is right of those
    down to it. Of answers with one probability the wrong ones are ranked higher. Where there are right
    answers and wrong ones, the area under the ROC curve too, of all of them whatever their question, as for
    relevance.

    Raises:
        UsageError: if an example has no prediction with probabilities.

    Departures:
        The released code of K-BERT resolves ties in favour of the right answer if a question has several, and
        counts a question once for each place of a tie if it has one. Every question there must have a right
        answer, and its rows must be next to each other.
    """
    columns = np.zeros((2, len(systems), len(examples), 2))
    shares = [[_share(example, own) for example in examples] for own in systems]
    for system, own in enumerate(shares):
        ranked: dict[str, list[tuple[float, bool, int]]] = {}
        for index, (example, share) in enumerate(zip(examples, own, strict=True)):
            ranked.setdefault(example.group, []).append((-share, example.gold == RIGHT, index))
        for rows in ranked.values():
            right = [rank for rank, (_, is_right, _) in enumerate(sorted(rows), start=1) if is_right]
            if right:
                precisions = sum(count / rank for count, rank in enumerate(right, start=1))
                columns[0, system, rows[0][2]] = 1 / right[0], 1
                columns[1, system, rows[0][2]] = precisions / len(right), 1
    scores = [
        ScoreColumns("mrr", columns[0], mean_of_sums), ScoreColumns("map", columns[1], mean_of_sums),
        *accuracy(examples, systems),
    ]  # fmt: skip
    positive = [example.gold == RIGHT for example in examples]
    return [*scores, _area(positive, shares)] if len({*positive}) == 2 else scores


def _share(example: Example, predictions: Predictions) -> float:
    """Return the probability that a possible answer is right."""
    probabilities = predictions[example.id].probabilities if example.id in predictions else None
    share = probabilities.get(RIGHT, 0.0) if isinstance(probabilities, Mapping) else math.nan
    if math.isnan(share):
        raise UsageError(
            f"answer {example.id} (question {example.group}) has no probability: each needs one to be ranked"
        )
    return share


# -- tags, relations, types -------------------------------------------------


def score_tags(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return F1, precision and recall of names with types, as conlleval has them, and F1 without types.

    The latter is that of K-BERT's released code, by `release_spans`: spans of the gold and of the answer are
    the same if they begin and end alike. On well-formed tags, where each I-TYPE follows one of its type,
    typed F1 is never higher.

    Raises:
        UsageError: if an example has no prediction, or one with more or fewer tags than tokens.

    Departures:
        The released code reads the rows of a batch as one, each cut to a length or padded: a span that
        nothing ends goes on in the next row, and what is behind the cut is missing from the gold. What it
        counts as found has begin tags of injected words in it. Here each row stands alone, whole, without
        injected words. Where it divides by zero, ratios are 0.
    """
    gold = [_tags(example.gold) for example in examples]
    answers = [[_tags(_answer(own, example)) for example in examples] for own in systems]
    for own in answers:
        for example, right, tags in zip(examples, gold, own, strict=True):
            if len(tags) != len(right):
                raise UsageError(
                    f"example {example.id} has {len(tags)} predicted tags for {len(right)} tokens: expected "
                    "one for each"
                )
    typed, spans = (
        overlap_scores(
            [frozenset(read(tags)) for tags in gold],
            [[frozenset(read(tags)) for tags in own] for own in answers],
        )
        for read in (chunks, release_spans)
    )
    return [*typed, spans[0]._replace(metric="untyped_f1")]


def release_spans(tags: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of a row as the released code of K-BERT reads them: first token, one past the last.

    A span begins at each tag whose first letter is B or S. It ends before the next such tag, before O or
    `PADDING`, or with the row. With every other tag, of whatever type, it goes on; where nothing has begun,
    such a tag means nothing.

    Args:
        tags: (T,) any.
    """
    spans: list[tuple[int, int]] = []
    begin: int | None = None
    for index, tag in enumerate([*tags, OUTSIDE]):
        begins = tag.startswith(("B", "S"))
        if begin is not None and (begins or tag in (OUTSIDE, PADDING)):
            spans.append((begin, index))
            begin = None
        if begins:
            begin = index
    return spans


def score_relation(
    examples: Sequence[Example], systems: Sequence[Predictions], labels: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return the scores of SemEval-2010 task 8 if all relations have directions, else those of TACRED.

    The former are the mean of F1 over the relations of the gold but `OTHER`, where an answer with the right
    relation in the wrong direction is wrong, and the accuracy. The latter are F1, precision and recall of all
    relations but `NO_RELATION`, which is no answer, nor anything to be found. *labels* decide where all gold
    is `OTHER`, which says nothing of directions.

    Departures:
        Of a system that finds no relation at all the official scorer of TACRED says that its precision is 1;
        here it is 0. F1 is 0 in either.
    """
    gold = [str(example.gold) for example in examples]
    answers = [[_label(own, example) for example in examples] for own in systems]
    if not has_directions(gold, labels):
        none = {"", NO_RELATION}
        found = [[{answer} - none for answer in own] for own in answers]
        return overlap_scores([{label} - none for label in gold], found)
    names = sorted({_without_direction(label) for label in gold} - {OTHER})
    columns = np.zeros((len(systems), len(examples), len(names), 3))
    indices = {name: index for index, name in enumerate(names)}
    for system, own in enumerate(answers):
        for row, (label, answer) in enumerate(zip(gold, own, strict=True)):
            if (index := indices.get(_without_direction(label))) is not None:
                columns[system, row, index, [0, 2]] += answer == label, 1
            if (index := indices.get(_without_direction(answer))) is not None:
                columns[system, row, index, 1] += 1
    flat = columns.reshape(len(systems), len(examples), 3 * len(names))
    return [ScoreColumns("macro_f1", flat, macro_f1_of_sums), *accuracy(examples, systems)]


def has_directions(gold: Iterable[str], labels: Iterable[str]) -> bool:
    """Return whether all relations have directions: those of the gold or, if it has none, of the labels."""
    schema = {*gold} - {OTHER} or {*labels} - {OTHER}
    return all(label.endswith(_DIRECTIONS) for label in schema)


def _without_direction(label: str) -> str:
    return label.partition("(")[0]


def score_types(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return micro F1, precision and recall of the types of names."""
    answers = [[_set(_answer(own, example)) for example in examples] for own in systems]
    return overlap_scores([_set(example.gold) for example in examples], answers)


# -- numbers ----------------------------------------------------------------


def score_numbers(
    examples: Sequence[Example], systems: Sequence[Predictions], _: Sequence[str] = ()
) -> list[ScoreColumns]:
    """Return the mean of Pearson's and Spearman's correlation, and both.

    Both are the official scores of STS-B in GLUE, and their mean is its share in the score of GLUE. Columns
    are 1, and of numbers, and again of ranks, x, x², y, y² and xy.

    Raises:
        UsageError: if an example has no prediction.
    """
    gold = np.array([example.gold for example in examples], np.float64)
    columns = []
    for own in systems:
        if missing := next((example.id for example in examples if example.id not in own), None):
            raise UsageError(f"example {missing} has no prediction: each needs its number")
        answers = np.array([_answer(own, example) for example in examples], np.float64)
        parts = [np.ones((len(gold), 1))]
        for numbers, predicted in ((gold, answers), (ranks(gold), ranks(answers))):
            x, y = _standardized(numbers), _standardized(predicted)
            parts.append(np.stack([x, x * x, y, y * y, x * y], 1))
        columns.append(np.hstack(parts))  # (N, 11)
    stacked = np.stack(columns)
    statistics = {"mean_correlation": _mean_correlation, "pearson": _pearson, "spearman": _spearman}
    return [ScoreColumns(name, stacked, statistic, CORRELATION) for name, statistic in statistics.items()]


def ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each of (N,) numbers, from 1; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: NDArray[np.float64] = (last - (counts - 1) / 2)[inverse.reshape(-1)]
    return mean


def _standardized(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (N,) numbers with mean 0 and deviation 1; all are 0 where they are alike."""
    if not len(numbers) or numbers.min() == numbers.max():
        return np.zeros_like(numbers)
    scaled = numbers / np.abs(numbers).max()  # squares of very large or small numbers stay finite, above 0
    centred = scaled - scaled.mean()
    deviation = np.sqrt((centred**2).mean())
    standard: NDArray[np.float64] = centred / deviation if deviation else np.zeros_like(numbers)
    return standard


def _mean_correlation(sums: NDArray[Any]) -> NDArray[np.float64]:
    return (_pearson(sums) + _spearman(sums)) / 2


def _spearman(sums: NDArray[Any]) -> NDArray[np.float64]:
    return _pearson(sums[..., [0, *range(6, 11)]])


def _pearson(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return Pearson's correlation (…) of sums (…, 6 or more); 0 where one side has no variance."""
    count, x, xx, y, yy, xy = np.moveaxis(sums[..., :6], -1, 0)
    variances = [count * square - mean**2 for mean, square in ((x, xx), (y, yy))]
    varied = [
        variance > _ROUNDING * count * square for variance, square in zip(variances, (xx, yy), strict=True)
    ]
    both = varied[0] & varied[1]
    spread = np.sqrt(np.where(both, variances[0] * variances[1], 1.0))
    return np.where(both, np.clip((count * xy - x * y) / spread, -1, 1), 0.0)


# -- answers ----------------------------------------------------------------


def _mean(metric: str, values: NDArray[np.float64]) -> ScoreColumns:
    """Return the mean of values (S, N)."""
    return ScoreColumns(metric, np.stack([values, np.ones_like(values)], -1), mean_of_sums)


def _answer(predictions: Predictions, example: Example) -> object:
    prediction = predictions.get(example.id)
    return None if prediction is None else prediction.answer


def _label(predictions: Predictions, example: Example) -> str:
    """Return the label that is answered; "" if none is."""
    answer = _answer(predictions, example)
    return "" if answer is None else str(answer)


def _tags(answer: object) -> tuple[str, ...]:
    return answer if isinstance(answer, tuple) else ()


def _set(answer: object) -> frozenset[str]:
    return answer if isinstance(answer, frozenset) else frozenset()
