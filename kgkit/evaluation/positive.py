"""One label of two that matters: precision, recall and F1 of the positive class.

Liu et al. (2020), K-BERT, finance_qa and law_qa: a question and a text, and 1 if the text answers it, else 0.
Where most do not, a model that always says 0 has a high accuracy, and finds nothing. The files are those of
any pairs of texts with a label (`label <TAB> text_a <TAB> text_b`); labels and answers come here by ids.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kgkit.errors import UsageError
from kgkit.evaluation.files import missing_gold

POSITIVE: Final = "1"
"""What K-BERT's files call the label that matters."""


class PositiveScore(NamedTuple):
    """How well the positive class was predicted, in [0, 1]; 0 where a ratio has nothing below it.

    Attributes:
        precision: right of those that were predicted to be positive.
        recall: right of those that are positive.
        f1: the official score: the harmonic mean of both.
        instances: of the gold, positive or not.
    """

    precision: float
    recall: float
    f1: float
    instances: int


def score_positive(
    gold: Mapping[str, str | None], answers: Mapping[str, str], positive: str = POSITIVE
) -> PositiveScore:
    """Score answers; an instance without one counts as predicted not to be positive.

    Args:
        gold: the label of each instance, by its id.
        answers: predicted label of each, by the id.
        positive: the label that matters; all others are alike.

    Raises:
        UsageError: if an instance has no label, or none has the positive one.

    Departures:
        Of a system that finds nothing the released code of K-BERT has no score: it divides by zero.
    """
    labels = [label for label in gold.values() if label is not None]
    if len(labels) < len(gold):
        missing = next(name for name, label in gold.items() if label is None)
        raise missing_gold(f"instance {missing}")
    if positive not in labels:
        existing = ", ".join(map(repr, sorted({*labels}))) or "none at all"
        raise UsageError(
            f"no instance has the label {positive!r}; there are {existing}: name the positive one"
        )
    positives = labels.count(positive)
    predicted = sum(answers.get(name) == positive for name in gold)
    right = sum(answers.get(name) == label == positive for name, label in gold.items())
    return PositiveScore(
        right / max(1, predicted), right / positives, 2 * right / (predicted + positives), len(labels)
    )
