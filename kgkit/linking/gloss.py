"""The linker that needs no training: a mention in its context beside the text of each entity.

    p(e | m) ∝ p(e | surface) · exp(cos(v(m), g(e)) / τ)

v(m) is the mean of the mention's word pieces in the last layer of the encoder that made the vectors g of the
entities' texts (labels and descriptions). A sentence encoder puts both into one space. τ = 0.1 was chosen on
semeval2007, where weights of the prior of 0.08 to 0.12 do equally well.

M  mentions    C  candidates of one    D  width
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from kgkit.errors import UsageError
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking.scoring import ScoreParts, Scorer, Scores, logarithms, shares
from kgkit.linking.text_vectors import open_text_vectors, prepare_candidates, warn_of_missing
from kgkit.types import LEAST_PRIOR, NO_CANDIDATES, Candidates, Document, Matrix
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.encoder import Encoder
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorRows


TEMPERATURE: Final = 0.1
"""τ, also in the scores of trained linkers that have the cosine in them."""


class GlossScorer(Scorer):
    """Scores candidates by their prior and by the vectors of their texts.

    A candidate without a vector is taken to fit as well as the others of its
    mention do on average.

    Args:
        vectors: of the entities' texts.
        encoder: that made them.
        spans: how mentions are read; of a small window as much as it has.

    Raises:
        UsageError: if the vectors have another width than the encoder.
    """

    batch_size = 32

    def __init__(self, vectors: "VectorRows", encoder: "Encoder", spans: SpanConfig = SpanConfig()) -> None:
        self.vectors, self.name = vectors, "gloss"
        if vectors.width != encoder.width:
            raise UsageError(
                f"{vectors.name} holds vectors of width {vectors.width}, {encoder.name} makes {encoder.width}"
            )
        size = min(spans.size, encoder.window - encoder.pieces.num_special_tokens_to_add(False))
        self.reader = SpanReader(encoder, replace(spans, size=size, context=min(spans.context, size // 4)))

    @classmethod
    def open(cls, kb: "KnowledgeBase", *, vectors: str | None = None, device: str = "auto") -> "GlossScorer":
        """Open the scorer over vectors of *kb*, with the encoder that made them.

        Where none are named and none have been made, texts are encoded as they are needed.

        Raises:
            NotThere: if there are no such vectors, or the encoder is gone.
            UsageError: if they are not of texts.
            StaleVectors, DamagedVectors: as `KnowledgeBase.vectors` does.
        """
        return cls.of(kb, open_text_vectors(kb, vectors, device=device), device=device)

    @classmethod
    def of(
        cls, kb: "KnowledgeBase", vectors: "Vectors | PartialTextVectors", *, device: str = "auto"
    ) -> "GlossScorer":
        """Return the scorer over open vectors of *kb*; raises as `open` does."""
        from kgkit.embedding.partial import encoder_for

        warn_of_missing(kb, vectors)
        return cls(vectors, encoder_for(vectors, device=device))

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [[score for score, _, _ in mentions] for mentions in self._scored(documents)]

    def explain(self, documents: Sequence[Document]) -> list[list[ScoreParts]]:
        """Return the scores of each candidate with two parts: the logarithm of its prior, and its context."""
        return [
            [ScoreParts(score, logarithms(prior), context) for score, prior, context in mentions]
            for mentions in self._scored(documents)
        ]

    def _scored(self, documents: Sequence[Document]) -> Iterator[list[tuple[Scores, Scores, Scores]]]:
        prepare_candidates(self.vectors, documents)
        for document, vectors in self.reader(documents):
            yield [
                self._terms(vector, mention.candidates or NO_CANDIDATES)
                for mention, vector in zip(document.mentions or (), vectors, strict=True)
            ]

    def _terms(self, mention: Scores, candidates: Candidates) -> tuple[Scores, Scores, Scores]:
        """Return scores, priors and cosines over τ, less the best one's, (C,) each."""
        if not len(candidates):
            return (np.empty(0, np.float32),) * 3
        query = unit(mention[None])[0]  # (D,)
        fit = text_cosines(query, self.vectors.gather(candidates.ids))
        context = (fit - fit.max()) / TEMPERATURE
        prior = np.maximum(shares(candidates.priors), LEAST_PRIOR)
        score = shares(prior * np.exp(context)) * np.float32(1 - candidates.null)
        return score, prior, context


def text_cosines(mention: Matrix, texts: Matrix) -> Scores:
    """Return the cosines (C,) of a mention (D,) with the texts (C, D) of its candidates.

    A candidate without a text, a row of zeros, has the mean of the others; 0 if none has a text.
    """
    has_text = texts.any(axis=1)
    cosines: Scores = unit(texts) @ unit(mention[None])[0]
    cosines[~has_text] = cosines[has_text].mean() if has_text.any() else 0
    return cosines
