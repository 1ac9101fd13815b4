"""What scores the candidates of mentions: the seam between a linker and its models."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kgkit.types import NO_CANDIDATES, Document

Scores = NDArray[np.float32]


class Scorer(Protocol):
    """Says how probable each candidate of each mention is.

    Attributes:
        name: that links carry.
        ahead: documents that are best scored together.
        tells_null: whether all that is missing to 1 is NULL's; False, where it is not there.
        by_mention: whether the scores of a mention are those of its candidates alone, whatever is around it,
            so that a long document may come some mentions at a time; False, where it is not there.
    """

    name: str
    ahead: int

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        """Return, for each document and mention, the scores (C,) of its candidates.

        They are probabilities and sum to 1 at most: what is missing belongs to NULL, or to
        candidates that were cut off.
        """
        ...


class PriorScorer:
    """The prior as it is."""

    name, ahead, by_mention = "prior", 1, True

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [
            [(mention.candidates or NO_CANDIDATES).priors for mention in document.mentions or ()]
            for document in documents
        ]


def shares(weights: Scores) -> Scores:
    """Return weights (C,) as shares of their sum; equal ones, if they are all 0."""
    total = float(weights.sum())
    if total > 0:
        return (weights / total).astype(np.float32, copy=False)
    return np.full(len(weights), 1 / max(1, len(weights)), np.float32)
