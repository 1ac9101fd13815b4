"""Cross-fitting: scores of a first stage for documents it was not trained on, to train a second stage.

The prior is not trained. Means and networks are trained once more for each fold of the documents, without
that fold. The documents are of entities, one set of them, and priors are the knowledge base's.

N  documents    M  mentions    C  candidates of one    W  numbers of a mention
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.linking.ridge import RidgeScorer, queries
from kgkit.linking.scoring import PriorScorer, Scores, probabilities
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.means import LinkerData, TrainingSet, fit_means
from kgkit.types import Matrix, Progress

if TYPE_CHECKING:
    from kgkit.training.linkers.head import HeadConfig

DocumentScores = list[list[Scores]]
"""For each document and mention, the scores (C,) of its candidates."""


def cross_fit_ridge(
    data: LinkerData, temperature: float, folds: int, weights: Matrix | None = None
) -> DocumentScores:
    """Return the scores by means and map of the documents, each without its fold.

    *weights* (4,) of the terms are those fitted on all documents.
    """
    part, gloss_mean = data.parts[0], data.text_mean()
    scores: DocumentScores = []
    for own in folds_of(len(part.labelled), folds):
        sums = part.sums(~own[part.documents])
        if not len(sums.meanings):  # all that is to be learnt stands in this stretch
            scores += PriorScorer()([document.document for document, _ in documents_of(part, own)])
            continue
        arrays = fit_means(sums, data.vectors, part.mean, gloss_mean)._replace(weights=weights)
        scorer = RidgeScorer(data.reader, data.vectors, arrays)
        for document, read in documents_of(part, own):
            pairs = zip(queries(read, part.layers, part.mean), document.candidates, strict=True)
            scores.append(
                [probabilities(scorer.scores(query, each), each, temperature) for query, each in pairs]
            )
    return scores


def cross_fit_head(
    data: LinkerData,
    config: "HeadConfig",
    temperature: float,
    folds: int,
    folder: Path,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> DocumentScores:
    """Return the scores by heads of the documents, each without its fold.

    Args:
        data, config: as `train_head` takes them.
        temperature: temperature of the head that was trained on all documents.
        folds: number of folds.
        folder: folder for checkpoints.
        device: torch device on which heads are trained.
        progress: callback while they are trained.
    """
    from kgkit.linking.head import HeadScorer
    from kgkit.training.linkers.head import train_head

    part = data.parts[0]
    scores: DocumentScores = []
    for fold, own in enumerate(folds_of(len(part.labelled), folds)):
        remaining = data._replace(parts=[drop_documents(part, own)])
        trained = train_head(remaining, config, folder / f"{fold}", device=device, progress=progress)
        scorer = HeadScorer(data.reader, data.vectors, trained.arrays, trained.head, trained.scale)
        for document, read in documents_of(part, own):
            pairs = zip(scorer.scores(document.document, read), document.candidates, strict=True)
            scores.append([probabilities(score, each, temperature) for score, each in pairs])
    return scores


def folds_of(count: int, folds: int) -> Iterator[NDArray[np.bool_]]:
    """Yield (N,) bool, which of *count* documents belong to a fold, for each fold.

    Raises:
        UsageError: if there are fewer documents than folds.
    """
    if count < folds:
        raise UsageError(
            f"coherence needs at least {folds} documents of training data, found {count}: add documents"
        )
    number = np.arange(count) * folds // count
    for fold in range(folds):
        yield number == fold


def documents_of(part: TrainingSet, which: NDArray[np.bool_]) -> Iterator[tuple[LabelledDocument, Matrix]]:
    """Yield documents of a part, with the vectors (M, W) of their mentions."""
    ends = np.cumsum([len(document.right) for document in part.labelled])
    for number in np.flatnonzero(which).tolist():
        document = part.labelled[number]
        yield document, part.vectors[ends[number] - len(document.right) : ends[number]].astype(np.float32)


def drop_documents(part: TrainingSet, which: NDArray[np.bool_]) -> TrainingSet:
    """Return a part without the documents of *which* (N,); its mean stays that of all documents."""
    remains = ~which
    mentions = np.repeat(remains, [len(document.right) for document in part.labelled])
    learnt = remains[part.documents]
    smaller = copy.copy(part)
    smaller.labelled = [
        document for document, stays in zip(part.labelled, remains.tolist(), strict=True) if stays
    ]
    smaller.vectors = part.vectors[mentions]
    smaller.rows = (np.cumsum(mentions) - 1)[part.rows[learnt]]
    smaller.documents = (np.cumsum(remains) - 1)[part.documents[learnt]]
    smaller.meanings, smaller.entities = part.meanings[learnt], part.entities[learnt]
    return smaller
