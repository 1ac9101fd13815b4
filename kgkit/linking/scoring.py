"""What scores the candidates of mentions: the seam between a linker and its models."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kgkit.types import NO_CANDIDATES, NO_SENSE, Candidates, Document, Ids

Scores = NDArray[np.float32]


class ScoreParts(NamedTuple):
    """The scores of a mention's candidates, and what they are made of; None where a model has no such part.

    Parts are natural logarithms up to a constant of the mention: of two candidates, exp of the difference of
    their sums says how many times as probable one is as the other.

    Attributes:
        score: (C,) probabilities.
        prior: (C,) what the name alone says of each candidate.
        context: (C,) what a model says of the mention in its text; with what it has learnt of the prior,
            where it does not keep that apart.
        coherence: (C,) what the other mentions of the document add.
    """

    score: Scores
    prior: Scores | None = None
    context: Scores | None = None
    coherence: Scores | None = None

    def with_coherence(self, score: Scores) -> "ScoreParts":
        """Return the parts of *score* (C,), that of a further stage after this one."""
        gain = logarithms(score) - logarithms(self.score)
        return self._replace(score=score, coherence=gain if self.coherence is None else self.coherence + gain)

    def row(self, index: int) -> dict[str, float]:
        """Return the parts of one candidate by name."""
        named = {"prior": self.prior, "context": self.context, "coherence": self.coherence}
        return {name: round(float(part[index]), 4) for name, part in named.items() if part is not None}


class LinkDefaults(NamedTuple):
    """Settings that a linker was trained with, for those who name no others.

    Attributes:
        mentions: name of the tagger whose names are linked; None: the generator finds the mentions.
        threshold: least score of a link.
    """

    mentions: str | None = None
    threshold: float = 0.0


class Scorer(Protocol):
    """Says how probable each candidate of each mention is.

    A class that derives from it has the attributes and the method `explain` as they stand here.

    Attributes:
        name: model name that links carry.
        batch_size: number of documents that are best scored together.
        by_mention: whether the scores of a mention are those of its candidates alone, whatever is around it,
            so that a long document may come some mentions at a time.
        reads_parts_of_speech: whether a mention has the part of speech that its context says.
        scores_null: whether all that is missing to 1 is the probability of NULL.
        temperature: number that the logarithms of the scores were divided by; None if there is none.
        defaults: settings of linking that the model was trained with.
    """

    name: str
    batch_size: int = 1
    by_mention: bool = False
    reads_parts_of_speech: bool = False
    scores_null: bool = False
    temperature: float | None = None
    defaults: LinkDefaults = LinkDefaults()

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        """Return, for each document and mention, the scores (C,) of its candidates.

        They are probabilities and sum to 1 at most: what is missing belongs to NULL, or to
        candidates that were cut off.
        """
        ...

    def null(self, candidates: Candidates, scores: Scores) -> float:
        """Return the probability that a mention means nothing, where its candidates have *scores* (C,)."""
        return 1 - float(scores.sum()) if self.scores_null else generated_null(candidates)

    def explain(self, documents: Sequence[Document]) -> list[list[ScoreParts]]:
        """Return the same scores with their parts; unless a model has better ones, all is context."""
        return [
            [ScoreParts(score, context=logarithms(score)) for score in scores] for scores in self(documents)
        ]


class PriorScorer(Scorer):
    """The prior as it is."""

    name, by_mention = "prior", True

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [
            [(mention.candidates or NO_CANDIDATES).priors for mention in document.mentions or ()]
            for document in documents
        ]

    def explain(self, documents: Sequence[Document]) -> list[list[ScoreParts]]:
        """Return the priors with one part: their logarithms."""
        return [
            [ScoreParts(score, prior=logarithms(score)) for score in scores] for scores in self(documents)
        ]


def generated_null(candidates: Candidates) -> float:
    """Return the part of NULL's prior that is no matter of link probability.

    In an encyclopedia a name is a link once a page, so it is a mention in more places than it is linked in:
    that it mostly is no link does not make it NIL.
    """
    return candidates.null - (1 - candidates.link_probability)


def logarithms(weights: Scores) -> Scores:
    """Return the natural logarithms of weights (C,); of 0 that of the least number there is."""
    return np.log(np.maximum(weights, np.finfo(np.float32).tiny))


def shares(weights: Scores) -> Scores:
    """Return weights (C,) as shares of their sum; equal ones, if they are all 0."""
    total = float(weights.sum())
    if total > 0:
        return (weights / total).astype(np.float32, copy=False)
    return np.full(len(weights), 1 / max(1, len(weights)), np.float32)


def probabilities(scores: Scores, candidates: Candidates, temperature: float) -> Scores:
    """Return scores (C,) as probabilities that leave NULL its part."""
    if not len(scores):
        return np.empty(0, np.float32)
    weights = np.exp((scores - scores.max()) / np.float32(temperature))
    result: Scores = (weights / weights.sum() * (1 - candidates.null)).astype(np.float32)
    return result


def meanings(candidates: Candidates) -> Ids:
    """Return (C,) what each candidate means: its sense, where it has one, else its entity."""
    senses = candidates.senses
    return np.where(senses == NO_SENSE, candidates.ids, senses)
