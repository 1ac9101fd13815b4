"""Training the linker of means: `kgkit.linking.ridge` has the equations."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.evaluation.calibration import Scored, best_temperature, calibration_error
from kgkit.linking.ridge import START, RidgeArrays, RidgeScorer
from kgkit.linking.scoring import meanings, shares
from kgkit.sorted_ids import match_sorted
from kgkit.training.linkers.balance import balanced_counts
from kgkit.training.linkers.conditional_logit import fit_weights
from kgkit.training.linkers.means import (
    LinkerData,
    Sums,
    TrainingSet,
    fit_means,
    subtract_sums,
)
from kgkit.types import Candidates, Matrix

USUAL: Final = 1.0
"""The temperature where too little is held out to choose one: scores as they are weighed."""

_FOLDS: Final = 10
_MOST: Final = 5_000  # mentions that weights and temperature are learnt from


class HeldOutTerms(NamedTuple):
    """A mention as the means and the map of other documents see it.

    Attributes:
        terms: (C, F) terms of its candidates: see `RidgeScorer.terms`.
        correct: (C,) whether a candidate is right.
        share: share of those in the prior.
    """

    terms: Matrix
    correct: NDArray[np.bool_]
    share: float


class TrainedRidge(NamedTuple):
    """Trained means, map and weights with their measurements.

    Attributes:
        arrays: means, map and weights, from all documents.
        temperature: T, chosen on mentions whose documents were held out of what they were measured with.
        results: accuracy and calibration on these, and the sizes of the training data.
    """

    arrays: RidgeArrays
    temperature: float
    results: dict[str, float]


def train_ridge(data: LinkerData) -> TrainedRidge:
    """Learn means, map and weights from sets of documents.

    Each set is centred by its own mean; the first one's mean stands for what will be linked, and so do its
    documents: ten times one in ten of them is held out, to learn weights and temperature from.

    Raises:
        UsageError: if no mention has a right candidate.
    """
    arrays, examples = fit_weighted_means(data, data.sums())
    weights = np.asarray(arrays.weights)
    scored: Scored = [(each.terms @ weights, each.correct) for each in examples]
    temperature = best_temperature(scored, USUAL)
    results = {
        **training_counts(data.parts, arrays),
        **held_out_metrics(scored, temperature),
        **prior_accuracy(scored),
    }
    return TrainedRidge(arrays, temperature, results)


def fit_weighted_means(data: LinkerData, together: Sums) -> tuple[RidgeArrays, list[HeldOutTerms]]:
    """Return means, map and weights of *together*, the sums of all sets; and what weights are learnt from."""
    gloss_mean = data.text_mean()
    examples = list(held_out_terms(data, together, gloss_mean))
    arrays = fit_means(together, data.vectors, data.parts[0].mean, gloss_mean)
    counts = balanced_counts(np.array([share for _, _, share in examples]), data.balance)
    pairs = [(each.terms, each.correct) for each in examples]
    return arrays._replace(weights=fit_weights(pairs, counts)), examples


def held_out_terms(data: LinkerData, together: Sums, gloss_mean: Matrix) -> Iterator[HeldOutTerms]:
    """Yield the terms of mentions that have a right candidate.

    Means and map are those of *together* without a tenth of the documents of the first set, the mention's own
    among them. Of many mentions 5,000 are taken; of a single document none.
    """
    part = data.parts[0]
    documents = np.unique(part.documents)
    folds = min(_FOLDS, len(documents)) if len(documents) > 1 else 0
    which = np.searchsorted(documents, part.documents) % max(1, folds)  # (R,)
    rows_with_gold = np.unique(part.rows)
    sampled = rows_with_gold[:: -(-len(rows_with_gold) // _MOST)]
    golds = [
        gold for document in part.labelled for gold in zip(document.candidates, document.right, strict=True)
    ]
    for fold in range(folds):
        sums = subtract_sums(together, part.sums(which == fold))
        if not len(sums.meanings):  # all that is to be learnt stands in this tenth
            continue
        start = np.array(START, np.float32)
        arrays = fit_means(sums, data.vectors, part.mean, gloss_mean)._replace(weights=start)
        scorer = RidgeScorer(data.reader, data.vectors, arrays)
        rows = np.intersect1d(sampled, part.rows[which == fold])
        for row, query in zip(rows.tolist(), part.queries_of(rows, part.mean), strict=True):
            candidates, right = golds[row]
            if data.counted_priors:
                candidates = counted_priors(candidates, sums)
            share = float(shares(candidates.priors)[right].sum())
            yield HeldOutTerms(scorer.terms(query, candidates), right, share)


def counted_priors(candidates: Candidates, sums: Sums) -> Candidates:
    """Return candidates in their order, with (n + 1) / Σ (n + 1) for priors, n being counted in *sums*."""
    own_meanings = meanings(candidates)
    index, exists = match_sorted(sums.meanings, own_meanings)
    counts = np.where(exists, sums.counts[index], 0)
    rows = candidates.rows.copy()
    rows["prior"] = shares(counts + 1)
    return Candidates(rows, candidates.null)


def training_counts(parts: Sequence[TrainingSet], arrays: RidgeArrays) -> dict[str, float]:
    """Return the numbers of mentions and of meanings in the training data."""
    return {
        "mentions": float(sum(len(part.meanings) for part in parts)),
        "meanings": float(len(arrays.meanings)),
    }


def held_out_metrics(scored: Scored, temperature: float) -> dict[str, float]:
    """Return accuracy and calibration on held-out mentions; an empty mapping if there are none."""
    if not scored:
        return {}
    return {
        "held_out": float(len(scored)),
        "held_out_accuracy": float(np.mean([right[scores.argmax()] for scores, right in scored])),
        "calibration_error_before": calibration_error(scored, 1.0),
        "calibration_error": calibration_error(scored, temperature),
    }


def prior_accuracy(scored: Scored) -> dict[str, float]:
    """Return the accuracy of `prior` on the same mentions, whose candidates come best prior first.

    Args:
        scored: scores of the candidates of each mention, and which are right.
    """
    return {"prior_accuracy": float(np.mean([right[0] for _, right in scored]))} if scored else {}
