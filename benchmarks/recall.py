"""Recall of facts by a language model: the mean reciprocal rank of the word pieces of hidden names.

Peters et al. (2019), "Knowledge Enhanced Contextual Word Representations", section 4.1: of each fact the
subject is hidden, and then the object.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kgkit.errors import UsageError
from kgkit.evaluation.facts import cloze_questions, read_facts, read_templates
from kgkit.home import Home
from kgkit.methods.cloze import recall_ranks
from kgkit.methods.cloze_opening import open_cloze_model


class RecallScore(NamedTuple):
    """How well facts were recalled.

    Attributes:
        mrr: mean reciprocal rank of all hidden word pieces, in [0, 1]; 0 if there are none.
        relations: of each relation the same, and its number of instances.
        instances: how many there are.
        pieces: how many word pieces were hidden.
    """

    mrr: float
    relations: dict[str, tuple[float, int]]
    instances: int
    pieces: int


def recall(home: Home, model: str, facts: Path, templates: Path) -> RecallScore:
    """Return how well a trained model recalls facts.

    Args:
        home: home of the model.
        model: its name.
        facts: file of facts.
        templates: file of the templates of their relations.
    """
    questions = cloze_questions(read_facts(facts), read_templates(templates)).instances
    with open_cloze_model(model, home) as opened:
        return score_recall(recall_ranks(opened, questions))


def score_recall(ranks: Iterable[tuple[str, Sequence[int]]]) -> RecallScore:
    """Score the ranks of what was hidden.

    The mean is over word pieces, as published: a name of several counts as often as it has some.

    Args:
        ranks: of each instance its relation, and the ranks from 1 of its hidden word pieces.

    Raises:
        UsageError: if an instance has no rank, or one below 1.
    """
    totals: dict[str, tuple[float, int, int]] = {}
    for position, (relation, own_ranks) in enumerate(ranks, start=1):
        if not len(own_ranks) or min(own_ranks) < 1:
            problem = f"the rank {min(own_ranks)}" if len(own_ranks) else "no ranks"
            raise UsageError(
                f"instance {position}, of {relation!r}, has {problem}: each hidden piece needs 1 or more"
            )
        total, pieces, count = totals.get(relation, (0.0, 0, 0))
        totals[relation] = total + sum(1 / rank for rank in own_ranks), pieces + len(own_ranks), count + 1
    total, pieces, instances = (sum(column) for column in zip((0, 0, 0), *totals.values(), strict=True))
    relations = {name: (total / pieces, count) for name, (total, pieces, count) in sorted(totals.items())}
    return RecallScore(total / max(1, pieces), relations, int(instances), int(pieces))
