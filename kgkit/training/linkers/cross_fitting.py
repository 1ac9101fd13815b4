"""What a first stage says of documents that it has not learnt from: what a second one learns from.

`prior` and `gloss` learn nothing. The others are trained once more for each of a few stretches of the
documents, without it.

N  documents    M  mentions    C  candidates of one    W  numbers of a mention
"""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.linking.ridge import Matrix, RidgeConfig, RidgeScorer, probabilities, queries
from kgkit.linking.scoring import PriorScorer, Scorer, Scores
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.means import Part, fitted, joined, text_mean
from kgkit.types import NO_CANDIDATES, Progress

if TYPE_CHECKING:
    from kgkit.inputs import SpanReader
    from kgkit.training.linkers.head import HeadConfig
    from kgkit.vectors import Vectors

Said = list[list[Scores]]
"""For each document and mention, the scores (C,) of its candidates."""


def said_by(scorer: Scorer, taught: Sequence[LabelledDocument], progress: Progress | None) -> Said:
    """Return what a scorer says that has not learnt from any of them."""
    found: Said = []
    for begin in range(0, len(taught), scorer.ahead):
        found += scorer([one.document for one in taught[begin : begin + scorer.ahead]])
        if progress is not None:
            progress("reading", len(found), len(taught))
    return found


def said_by_ridge(
    reader: "SpanReader",
    vectors: "Vectors",
    parts: Sequence[Part],
    config: RidgeConfig,
    temperature: float,
    stretches: int,
    weights: Matrix | None = None,
) -> Said:
    """Return what means and map say of the documents of the first part, each without its stretch.

    *weights* (4,) of the terms are those that all documents have chosen.
    """
    part, gloss_mean = parts[0], text_mean(vectors)
    rest = [other.sums() for other in parts[1:]]
    found: Said = []
    for own in stretches_of(len(part.taught), stretches):
        kept = joined([part.sums(~own[part.documents]), *rest])
        if not len(kept.meanings):  # all that is to be learnt stands in this stretch
            found += said_by(
                PriorScorer(), [part.taught[number] for number in np.flatnonzero(own).tolist()], None
            )
            continue
        arrays = fitted(kept, vectors, part.mean, gloss_mean, config)._replace(weights=weights)
        scorer = RidgeScorer(reader, vectors, arrays)
        for one, read in documents_of(part, own):
            asked = queries(read, part.layers, part.mean)
            candidates = [mention.candidates or NO_CANDIDATES for mention in one.document.mentions or ()]
            found.append(
                [
                    probabilities(scorer.scores(query, each), each, temperature)
                    for query, each in zip(asked, candidates, strict=True)
                ]
            )
    return found


def said_by_head(
    reader: "SpanReader",
    vectors: "Vectors",
    parts: Sequence[Part],
    ridge: RidgeConfig,
    config: "HeadConfig",
    temperature: float,
    stretches: int,
    folder: Path,
    **settings: Any,
) -> Said:
    """Return what heads say of the documents of the first part, each without its stretch.

    Args:
        reader, vectors, parts, ridge, config: as `train_head` takes them.
        temperature: of the head that has learnt from all.
        stretches: how many.
        folder: for checkpoints.
        settings: `device`, `progress`: of `train_head`.
    """
    from kgkit.linking.head import HeadScorer
    from kgkit.training.linkers.head import train_head

    part = parts[0]
    found: Said = []
    for stretch, own in enumerate(stretches_of(len(part.taught), stretches)):
        kept = [without(part, own), *parts[1:]]
        trained = train_head(reader, vectors, kept, ridge, config, folder / f"{stretch}", **settings)
        scorer = HeadScorer(reader, vectors, trained.arrays, trained.heads, trained.scale, share=config.ridge)
        for one, read in documents_of(part, own):
            found.append(
                [
                    probabilities(score, mention.candidates or NO_CANDIDATES, temperature)
                    for mention, score in zip(
                        one.document.mentions or (), scorer.scores(one.document, read), strict=True
                    )
                ]
            )
    return found


def stretches_of(count: int, stretches: int) -> Iterator[NDArray[np.bool_]]:
    """Yield (N,) bool, which of *count* documents are of a stretch, for each of so many.

    Raises:
        UsageError: if there are fewer documents than stretches.
    """
    if count < stretches:
        raise UsageError(
            f"coherence is learnt from {stretches} documents at least, there are {count}: give more, or "
            "train without it"
        )
    number = np.arange(count) * stretches // count
    for stretch in range(stretches):
        yield number == stretch


def documents_of(part: Part, which: NDArray[np.bool_]) -> Iterator[tuple[LabelledDocument, Matrix]]:
    """Yield documents of a part, with the vectors (M, W) of their mentions."""
    ends = np.cumsum([len(one.document.mentions or ()) for one in part.taught])
    for number in np.flatnonzero(which).tolist():
        one = part.taught[number]
        begin = int(ends[number]) - len(one.document.mentions or ())
        yield one, part.vectors[begin : ends[number]].astype(np.float32)


def without(part: Part, which: NDArray[np.bool_]) -> Part:
    """Return a part without the documents of *which* (N,), whose mean is that of all."""
    kept = ~which
    mentions = np.repeat(kept, [len(one.document.mentions or ()) for one in part.taught])
    learnt = kept[part.documents]
    found = copy.copy(part)
    found.taught = [one for one, stays in zip(part.taught, kept.tolist(), strict=True) if stays]
    found.vectors = part.vectors[mentions]
    found.rows = (np.cumsum(mentions) - 1)[part.rows[learnt]]
    found.documents = (np.cumsum(kept) - 1)[part.documents[learnt]]
    found.meanings, found.entities = part.meanings[learnt], part.entities[learnt]
    return found
