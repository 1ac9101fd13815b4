"""Cross-fitting: scores of a first stage for documents it was not trained on, to train a second stage.

`prior` and `gloss` are not trained. The others are trained once more for each fold of the documents,
without that fold.

N  documents    M  mentions    C  candidates of one    W  numbers of a mention
"""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.linking.ridge import RidgeScorer, queries
from kgkit.linking.scoring import PriorScorer, Scorer, Scores, probabilities
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.means import LinkerData, Sums, TrainingSet, add_sums, fit_means
from kgkit.training.linkers.ridge import counted_priors
from kgkit.types import NO_CANDIDATES, Matrix, Progress

if TYPE_CHECKING:
    from kgkit.training.linkers.head import HeadConfig

DocumentScores = list[list[Scores]]
"""For each document and mention, the scores (C,) of its candidates."""


def score_documents(
    scorer: Scorer, labelled: Sequence[LabelledDocument], progress: Progress | None
) -> DocumentScores:
    """Return the scores by a scorer that was trained on none of the documents."""
    scores: DocumentScores = []
    for begin in range(0, len(labelled), scorer.batch_size):
        scores += scorer([document.document for document in labelled[begin : begin + scorer.batch_size]])
        if progress is not None:
            progress("reading", len(scores), len(labelled))
    return scores


def cross_fit_ridge(
    data: LinkerData, temperature: float, folds: int, weights: Matrix | None = None
) -> DocumentScores:
    """Return the scores by means and map of the documents of the first part, each without its fold.

    *weights* (4,) of the terms are those fitted on all documents.
    """
    part, gloss_mean = data.parts[0], data.text_mean()
    further = [other.sums() for other in data.parts[1:]]
    scores: DocumentScores = []
    for own in folds_of(len(part.labelled), folds):
        sums = add_sums([part.sums(~own[part.documents]), *further])
        if not len(sums.meanings):  # all that is to be learnt stands in this stretch
            scores += score_documents(
                PriorScorer(), [document for document, _ in documents_of(part, own)], None
            )
            continue
        arrays = fit_means(sums, data.vectors, part.mean, gloss_mean)._replace(weights=weights)
        scorer = RidgeScorer(data.reader, data.vectors, arrays)
        for document, read in documents_of(part, own):
            if data.counted_priors:
                document = with_counted_priors(document, sums)
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
    """Return the scores by heads of the documents of the first part, each without its fold.

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
        remaining = data._replace(parts=[drop_documents(part, own), *data.parts[1:]])
        trained = train_head(remaining, config, folder / f"{fold}", device=device, progress=progress)
        scorer = HeadScorer(data.reader, data.vectors, trained.arrays, trained.head, trained.scale)
        sums = remaining.sums() if data.counted_priors else None
        for document, read in documents_of(part, own):
            if sums is not None:
                document = with_counted_priors(document, sums)
            pairs = zip(scorer.scores(document.document, read), document.candidates, strict=True)
            scores.append([probabilities(score, each, temperature) for score, each in pairs])
    return scores


def with_counted_priors(document: LabelledDocument, sums: Sums) -> LabelledDocument:
    """Return a document with priors that *sums* count; those of a KB may have counted its gold."""
    mentions = [
        structs.replace(mention, candidates=counted_priors(mention.candidates or NO_CANDIDATES, sums))
        for mention in document.document.mentions or ()
    ]
    return document._replace(document=structs.replace(document.document, mentions=mentions))


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
