"""The linker that needs no training: a mention in its context beside the text of each entity.

    p(e | m) ∝ p(e | surface) · exp(cos(v(m), g(e)) / τ)

v(m) is the mean of the mention's word pieces in the last layer of the encoder that made the vectors g of the
entities' texts (labels and descriptions). A sentence encoder puts both into one space. τ = 0.1 was chosen on
semeval2007, where weights of the prior of 0.08 to 0.12 do equally well.

M  mentions    C  candidates of one    D  width
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kgkit.errors import UsageError
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking.scoring import Scores, shares
from kgkit.models.folder import text_vectors
from kgkit.types import NO_CANDIDATES, Candidates, Document
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors

log = logging.getLogger(__name__)

_TINY: Final = 1e-6  # a prior of 0 makes a candidate unlikely, not impossible


@dataclass(frozen=True, kw_only=True)
class GlossConfig:
    """Settings of `GlossScorer`."""

    temperature: float = 0.1  # τ, of cosines
    context: int = 24  # word pieces read on each side of what is read for its own sake
    size: int = 126  # word pieces read at once

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"temperature is {self.temperature}; it is above 0")


class GlossScorer:
    """Scores candidates by their prior and by the vectors of their texts.

    A candidate without a vector is taken to fit as well as the others of its
    mention do on average.

    Args:
        vectors: of the entities' texts.
        encoder: that made them.
        config: settings.

    Raises:
        UsageError: if the vectors have another width than the encoder.
    """

    name, ahead = "gloss", 32

    def __init__(self, vectors: "Vectors", encoder: "Encoder", config: GlossConfig | None = None) -> None:
        if vectors.width != encoder.width:
            raise UsageError(
                f"{vectors.name} holds vectors of width {vectors.width}, {encoder.name} makes {encoder.width}"
            )
        self.vectors, self.config = vectors, config or GlossConfig()
        self.reader = SpanReader(encoder, SpanConfig(size=self.config.size, context=self.config.context))

    @classmethod
    def open(cls, kb: "KnowledgeBase", *, vectors: str | None = None, device: str = "auto") -> "GlossScorer":
        """Open the scorer over vectors of *kb*, with the encoder that made them.

        Raises:
            NotThere: if there are no such vectors, or the encoder is gone.
            UsageError: if they are not of texts.
            StaleVectors, DamagedVectors: as `KnowledgeBase.vectors` does.
        """
        from kgkit.embedding.text import encoder_of

        found = kb.vectors(text_vectors(kb, vectors))
        warn_of_missing(kb, found)
        return cls(found, encoder_of(found, device=device))

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [
            [
                self._scored(vector, mention.candidates or NO_CANDIDATES)
                for mention, vector in zip(document.mentions or (), vectors, strict=True)
            ]
            for document, vectors in self.reader(documents)
        ]

    def _scored(self, mention: Scores, candidates: Candidates) -> Scores:
        if not len(candidates):
            return np.empty(0, np.float32)
        rows = unit(self.vectors.gather(candidates.ids))  # (C, D)
        fit = rows @ unit(mention[None])[0]  # (C,)
        there = rows.any(axis=1)
        fit[~there] = fit[there].mean() if there.any() else 0
        prior = np.maximum(shares(candidates.priors), _TINY)
        fits = np.exp((fit - fit.max()) / self.config.temperature)
        return shares(prior * fits) * np.float32(1 - candidates.null)


def warn_of_missing(kb: "KnowledgeBase", vectors: "Vectors") -> None:
    """Say so, if entities have come to *kb* since *vectors* were made: they have none."""
    if vectors.manifest.build != kb.build:
        told = (kb.name, vectors.manifest.name)
        log.warning(
            "entities have been added to %s since its vectors %s were made, and have none: `kgkit embed %s "
            "--name %s --update` gives them one",
            *told,
            *told,
        )
