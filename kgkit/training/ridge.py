"""Training the linker of means: `kgkit.linking.ridge` has the equations."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored, best_temperature, calibration_error
from kgkit.linking.ridge import RidgeArrays, RidgeConfig, RidgeScorer
from kgkit.linking.scoring import Scores
from kgkit.training.means import Part, fitted, joined, text_mean
from kgkit.types import NO_CANDIDATES

if TYPE_CHECKING:
    from kgkit.inputs import SpanReader
    from kgkit.vectors import Vectors

Progress = Callable[[str, int, int], object]
"""Is told what is being done, how much of it is done, and of how much."""

USUAL: Final = 0.08
"""The temperature where too little is held out to choose one: so it is for SemCor, and for AIDA."""


class Trained(NamedTuple):
    """What came out of a training.

    Attributes:
        arrays: what was learnt, from all documents.
        temperature: T, chosen on documents that were held out of what was measured with.
        results: accuracy and calibration there, and how much was learnt from.
    """

    arrays: RidgeArrays
    temperature: float
    results: dict[str, float]


def train_ridge(
    reader: "SpanReader", vectors: "Vectors", parts: Sequence[Part], config: RidgeConfig
) -> Trained:
    """Learn means and map from sets of documents.

    Each set is centred by its own mean; the first one's mean, and its documents that are held out for the
    temperature, stand for what will be linked.

    Args:
        reader: of mentions.
        vectors: of the entities' texts.
        parts: the sets: SemCor, a KB's examples.
        config: settings.

    Raises:
        UsageError: if no mention has a right candidate.
    """
    check_something(parts)
    held, gloss_mean, mean = parts[0].held_out(), text_mean(vectors), parts[0].mean
    rest = [part.sums() for part in parts[1:]]
    kept = joined([parts[0].sums(~held), *rest])
    scored: Scored = []
    if len(kept.meanings):
        scorer = RidgeScorer(reader, vectors, fitted(kept, vectors, mean, gloss_mean, config), config)
        scored = _scored(parts[0], scorer, held)
    temperature = best_temperature(scored, USUAL)
    arrays = fitted(joined([parts[0].sums(), *rest]), vectors, mean, gloss_mean, config)
    return Trained(arrays, temperature, {**amounts(parts, arrays), **measured(scored, temperature)})


def check_something(parts: Sequence[Part]) -> None:
    """Make sure that there is something to learn.

    Raises:
        UsageError: if no mention has a right candidate.
    """
    if not sum(len(part.meanings) for part in parts):
        raise UsageError("there is nothing to learn: no mention has its gold among its candidates")


def amounts(parts: Sequence[Part], arrays: RidgeArrays) -> dict[str, float]:
    """Return how many mentions and meanings were learnt from."""
    return {
        "mentions": float(sum(len(part.meanings) for part in parts)),
        "meanings": float(len(arrays.meanings)),
    }


def measured(scored: Scored, temperature: float) -> dict[str, float]:
    """Return accuracy and calibration on what was held out; nothing, if nothing was."""
    if not scored:
        return {}
    return {
        "held_out": float(len(scored)),
        "held_out_accuracy": float(np.mean([right[scores.argmax()] for scores, right in scored])),
        "calibration_error_before": calibration_error(scored, 1.0),
        "calibration_error": calibration_error(scored, temperature),
    }


def _scored(
    part: Part, scorer: RidgeScorer, held: NDArray[np.bool_]
) -> list[tuple[Scores, NDArray[np.bool_]]]:
    """Return the scores (C,) of the mentions that are held out, and which candidates are right."""
    wanted = set(part.rows[held].tolist())
    found, row = [], 0
    for one in part.taught:
        for mention, right in zip(one.document.mentions or (), one.right, strict=True):
            if row in wanted:
                query = part.queries_of(np.array([row]), part.mean)[0]
                found.append((scorer.scores(query, mention.candidates or NO_CANDIDATES), right))
            row += 1
    return found
