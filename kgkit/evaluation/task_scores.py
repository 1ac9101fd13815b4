"""The scores of each task, from its examples and the predictions of a model: the deciding score first.

All are in [0, 1], but correlations in [-1, 1].

Every function here takes examples with gold and ids that differ, and predictions by the ids of the examples;
`kgkit.evaluation.tasks` has made sure of both. An example without a prediction counts as wrong, or as one
where nothing was found.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from kgkit.errors import UsageError
from kgkit.evaluation.correlation import auc, matthews, pearson, spearman
from kgkit.evaluation.entity_typing import Typed, score_typed
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.ner import Name, NameScore, NameScores, chunks, score_names
from kgkit.evaluation.positive import POSITIVE, score_positive
from kgkit.evaluation.ranking import Answer, score_ranking
from kgkit.evaluation.relations import OTHER, Relation, score_relations
from kgkit.evaluation.tacred import score_tacred
from kgkit.evaluation.tagged_rows import score_release_spans

Scores = dict[str, float]
Predictions = Mapping[str, Prediction]

RIGHT: Final = POSITIVE
"""The label of a right answer to a question, by whose probability answers are ranked."""

_BINARY: Final = {"0", RIGHT}
_DIRECTIONS: Final = ("(e1,e2)", "(e2,e1)")


def accuracy(examples: Sequence[Example], predictions: Predictions) -> float:
    """Return the share of examples whose prediction is their gold; 0 if there are no examples."""
    right = sum(
        example.id in predictions and predictions[example.id].answer == example.gold for example in examples
    )
    return right / max(1, len(examples))


def score_labels(examples: Sequence[Example], predictions: Predictions, _: Sequence[str]) -> Scores:
    """Return the accuracy, and further scores where there are two labels.

    Of the labels 0 and 1 F1, precision and recall of 1 (MRPC and QQP: accuracy and F1); of any two labels
    Matthews' correlation and, where each prediction has probabilities of these two alone, the area under the
    ROC curve. The latter two are the same whichever of the two labels counts as positive.
    """
    gold, answers = _labels(examples), _answers(predictions)
    scores = {"accuracy": accuracy(examples, predictions)}
    labels = {*gold.values()}
    if labels == _BINARY:
        positive = score_positive(gold, answers)
        scores |= {"f1": positive.f1, "precision": positive.precision, "recall": positive.recall}
    if len(labels) == 2:
        scores["matthews"] = matthews([*gold.values()], [answers.get(name, "") for name in gold])
        shares = _shares(gold, predictions, max(labels), labels)
        if shares is not None:
            scores["auc"] = auc([label == max(labels) for label in gold.values()], shares)
    return scores


def score_acceptability(examples: Sequence[Example], predictions: Predictions, _: Sequence[str]) -> Scores:
    """Return Matthews' correlation, of CoLA the official score, and then as `score_labels`."""
    gold, answers = _labels(examples), _answers(predictions)
    correlation = matthews([*gold.values()], [answers.get(name, "") for name in gold])
    return {"matthews": correlation} | score_labels(examples, predictions, ())


def score_numbers(examples: Sequence[Example], predictions: Predictions, _: Sequence[str]) -> Scores:
    """Return the mean of Pearson's and Spearman's correlation, and both.

    Both are the official scores of STS-B in GLUE, and their mean is its share in the score of GLUE.

    Raises:
        UsageError: if an example has no prediction.
    """
    if missing := next((example.id for example in examples if example.id not in predictions), None):
        raise UsageError(f"example {missing} has no prediction: each needs its number")
    gold = [_number(example.gold) for example in examples]
    answers = [_number(predictions[example.id].answer) for example in examples]
    linear, ranked = pearson(gold, answers), spearman(gold, answers)
    return {"mean_correlation": (linear + ranked) / 2, "pearson": linear, "spearman": ranked}


def score_choices(examples: Sequence[Example], predictions: Predictions, _: Sequence[str]) -> Scores:
    """Return the accuracy."""
    return {"accuracy": accuracy(examples, predictions)}


def score_same(examples: Sequence[Example], predictions: Predictions, labels: Sequence[str]) -> Scores:
    """Return the accuracy of answers that are all among *labels*.

    Raises:
        UsageError: if gold or an answer is another.
    """
    used = {*_labels(examples).values(), *_answers(predictions).values()}
    if unknown := sorted(used - {*labels}):
        raise UsageError(f"{unknown[0]!r} is none of the labels {' and '.join(labels)}")
    return {"accuracy": accuracy(examples, predictions)}


def score_answers(examples: Sequence[Example], predictions: Predictions, _: Sequence[str]) -> Scores:
    """Return how high right answers are ranked by the probability of `RIGHT`, and the accuracy.

    Where there are right answers and wrong ones, the area under the ROC curve too, of all of them whatever
    their question, as for relevance.

    Raises:
        UsageError: if an example has no prediction with probabilities.
    """
    rows, shares = ranked_answers(examples, predictions)
    ranking = score_ranking(rows, shares)
    scores = {"mrr": ranking.mrr, "map": ranking.map, "accuracy": accuracy(examples, predictions)}
    positive = [example.gold == RIGHT for example in examples]
    if len({*positive}) == 2:
        scores["auc"] = auc(positive, [shares[example.id] for example in examples])
    return scores


def ranked_answers(
    examples: Sequence[Example], predictions: Predictions
) -> tuple[list[Answer], dict[str, float]]:
    """Return the answers to questions, and by their ids the probabilities of `RIGHT` that rank them."""
    shares: dict[str, float] = {}
    for name, prediction in predictions.items():
        if isinstance(prediction.probabilities, Mapping):
            shares[name] = prediction.probabilities.get(RIGHT, 0.0)
    return [Answer(example.id, example.group, example.gold == RIGHT) for example in examples], shares


def score_tags(examples: Sequence[Example], predictions: Predictions, _: Sequence[str]) -> Scores:
    """Return F1, precision and recall of names with types, as conlleval has them, and F1 without types.

    The latter is that of K-BERT's released code, `score_release_spans`.

    Raises:
        UsageError: if an example has no prediction, or one with more or fewer tags than tokens.
    """
    typed, spans = NameScores(), NameScore()
    for example in examples:
        gold = _tags(example.gold)
        if example.id not in predictions:
            raise UsageError(f"example {example.id} has no prediction: each needs its tags")
        tags = _tags(predictions[example.id].answer)
        names, predicted = (
            [Name(begin, end, kind) for begin, end, kind in chunks(some)] for some in (gold, tags)
        )
        typed += score_names(names, predicted)
        spans += score_release_spans(gold, tags)
    overall = typed.overall
    return {
        "f1": overall.f1,
        "precision": overall.precision,
        "recall": overall.recall,
        "untyped_f1": spans.f1,
    }


def score_relation(examples: Sequence[Example], predictions: Predictions, labels: Sequence[str]) -> Scores:
    """Return the scores of SemEval-2010 task 8 if all relations have directions, else those of TACRED.

    Args:
        examples: with gold.
        predictions: by id.
        labels: of the model; they decide where all gold is `Other`, which says nothing of directions.
    """
    gold, answers = _labels(examples), _answers(predictions)
    relations = [Relation(name, "", (0, 0), (0, 0), label) for name, label in gold.items()]
    if has_directions(gold.values(), labels):
        directed = score_relations(relations, answers)
        return {"macro_f1": directed.macro_f1, "accuracy": directed.accuracy}
    score = score_tacred(relations, answers)
    return {"f1": score.f1, "precision": score.precision, "recall": score.recall}


def has_directions(gold: Iterable[str], labels: Iterable[str]) -> bool:
    """Return whether all relations have directions: those of the gold or, if it has none, of the labels."""
    schema = {*gold} - {OTHER} or {*labels} - {OTHER}
    return all(label.endswith(_DIRECTIONS) for label in schema)


def score_types(examples: Sequence[Example], predictions: Predictions, _: Sequence[str]) -> Scores:
    """Return micro F1, precision and recall of the types of names."""
    typed = [Typed(example.id, "", (0, 0), _types(example.gold)) for example in examples]
    score = score_typed(typed, {name: _types(prediction.answer) for name, prediction in predictions.items()})
    return {"f1": score.f1, "precision": score.precision, "recall": score.recall}


# `Task.score` has checked the types of gold and answers.


def _labels(examples: Sequence[Example]) -> dict[str, str]:
    return {example.id: str(example.gold) for example in examples}


def _answers(predictions: Predictions) -> dict[str, str]:
    return {name: str(prediction.answer) for name, prediction in predictions.items()}


def _shares(
    gold: Mapping[str, str], predictions: Predictions, positive: str, labels: Set[str]
) -> list[float] | None:
    """Return the probability of *positive* for each example; None where not all have that of two labels."""
    shares = []
    for name in gold:
        own = predictions[name].probabilities if name in predictions else None
        if not isinstance(own, Mapping) or own.keys() != labels:
            return None
        shares.append(own[positive])
    return shares


def _number(answer: object) -> float:
    assert isinstance(answer, float)
    return answer


def _tags(answer: object) -> tuple[str, ...]:
    assert isinstance(answer, tuple)
    return answer


def _types(answer: object) -> frozenset[str]:
    assert isinstance(answer, frozenset)
    return answer
