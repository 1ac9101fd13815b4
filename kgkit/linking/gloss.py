"""The linker that needs no training: a mention in its context beside the text of each entity.

    p(e | m) ∝ p(e | surface) · exp(cos(v(m), g(e)) / τ)

v(m) is the mean of the mention's word pieces in the last layer of the encoder that made the vectors g of the
entities' texts (labels and descriptions). A sentence encoder puts both into one space. τ = 0.1 was chosen on
semeval2007, where weights of the prior of 0.08 to 0.12 do equally well.

Tempered, the prior counts less where the texts tell the candidates apart:

    p(e | m) ∝ p(e | surface)^β · exp(cos(v(m), g(e)) / τ)
    β        = H(softmax(cos(v(m), g(e)) / τ)) / log C        H: entropy; β^κ for a tempering of κ

Where all texts fit alike β is 1, and this is the formula above; where a single text fits β is near 0, and the
prior is forgotten. With a weight w of neighbours the texts around a candidate's count too:

    (1 − w) cos(v(m), g(e)) + w · mean over neighbours n with a text of cos(v(m), g(n)), instead of the cosine

M  mentions    C  candidates of one    D  width
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kgkit.errors import UnknownName, UsageError
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking.neighbour_texts import ANY, NeighbourTexts, own_texts
from kgkit.linking.scoring import ScoreParts, Scorer, Scores, logarithms, shares
from kgkit.linking.text_vectors import open_text_vectors, prepare_candidates, warn_of_missing
from kgkit.models.folder import TEMPERED_GLOSS
from kgkit.ranges import check_range
from kgkit.setting_types import convert_settings
from kgkit.types import LEAST_PRIOR, NO_CANDIDATES, Candidates, Document, Matrix
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.embedding.partial import PartialTextVectors
    from kgkit.encoder import Encoder
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorRows

log = logging.getLogger(__name__)

_NAMES: Final = ("gloss", TEMPERED_GLOSS)


@dataclass(frozen=True, kw_only=True)
class GlossConfig:
    """Settings of `GlossScorer`."""

    temperature: float = 0.1  # τ, of cosines
    tempering: float = 0.0  # κ: how soon the prior yields to texts that differ; 0: never
    neighbours: float = 0.0  # w: how much the texts of a candidate's neighbours count
    context: int = 24  # word pieces read on each side of what is read for its own sake
    size: int = 126  # word pieces read at once

    def __post_init__(self) -> None:
        check_range(self, "temperature", above=0)
        check_range(self, "tempering", "context", least=0)
        check_range(self, "neighbours", least=0, most=1)
        check_range(self, "size", least=1)
        convert_settings(self)


TEMPERATURE: Final = GlossConfig().temperature
"""τ in the scores of trained linkers that have the cosine in them: another one would change saved models."""


def gloss_config(model: str) -> GlossConfig:
    """Return the settings of the model `gloss`, or of `tempered-gloss`, whose τ and κ semeval2007 chose.

    Raises:
        UnknownName: if it is neither.
    """
    if model not in _NAMES:
        raise UnknownName("model of texts alone", model, _NAMES)
    if model == "gloss":
        return GlossConfig()
    return GlossConfig(temperature=0.08, tempering=0.25, neighbours=0.25)


class GlossScorer(Scorer):
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

    batch_size = 32

    def __init__(self, vectors: "VectorRows", encoder: "Encoder", config: GlossConfig | None = None) -> None:
        self.vectors, self.config = vectors, config or GlossConfig()
        width = getattr(vectors, "own_width", vectors.width)
        if width != encoder.width:
            raise UsageError(
                f"{vectors.name} holds vectors of width {width}, {encoder.name} makes {encoder.width}"
            )
        if self.config.neighbours and not isinstance(vectors, NeighbourTexts):
            raise UsageError(
                "neighbours count by their texts: open the scorer with GlossScorer.of(KB, VECTORS, config=…)"
            )
        self.name = TEMPERED_GLOSS if self.config.tempering else "gloss"
        size = min(self.config.size, encoder.window - encoder.tokenizer.num_special_tokens_to_add())
        context = min(self.config.context, size // 4)
        self.reader = SpanReader(encoder, SpanConfig(size=size, context=context))

    @classmethod
    def open(
        cls,
        kb: "KnowledgeBase",
        *,
        vectors: str | None = None,
        device: str = "auto",
        config: GlossConfig | None = None,
    ) -> "GlossScorer":
        """Open the scorer over vectors of *kb*, with the encoder that made them.

        Where none are named and none have been made, texts are encoded as they are needed.

        Raises:
            NotThere: if there are no such vectors, or the encoder is gone.
            UsageError: if they are not of texts.
            StaleVectors, DamagedVectors: as `KnowledgeBase.vectors` does.
        """
        return cls.of(kb, open_text_vectors(kb, vectors, device=device), device=device, config=config)

    @classmethod
    def of(
        cls,
        kb: "KnowledgeBase",
        vectors: "Vectors | PartialTextVectors",
        *,
        device: str = "auto",
        config: GlossConfig | None = None,
    ) -> "GlossScorer":
        """Return the scorer over open vectors of *kb*; raises as `open` does."""
        from kgkit.embedding.partial import encoder_for

        warn_of_missing(kb, vectors)
        texts: VectorRows = vectors
        if config is not None and config.neighbours:
            texts = NeighbourTexts(kb, vectors, (ANY,))
        return cls(texts, encoder_for(vectors, device=device), config)

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
        joined = self.vectors.gather(candidates.ids)
        fit = text_cosines(query, own_texts(joined, self.vectors))
        if weight := self.config.neighbours:
            neighbour_means = joined[:, len(query) :]  # (C, D)
            fit = np.where(
                neighbour_means.any(axis=1), (1 - weight) * fit + weight * (neighbour_means @ query), fit
            )
        context = (fit - fit.max()) / self.config.temperature
        exponent = evenness(context) ** self.config.tempering if self.config.tempering else 1
        prior = np.maximum(shares(candidates.priors), LEAST_PRIOR) ** np.float32(exponent)
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


def evenness(logits: Scores) -> float:
    """Return how alike *logits* (C,) are: the entropy of their softmax over its largest, log C, in [0, 1].

    1 says that they tell nothing apart, 0 that a single one counts. Of one candidate it is 1.
    """
    if len(logits) < 2:
        return 1.0
    probabilities = shares(np.exp(logits - logits.max()))
    entropy = -float(probabilities @ np.log(np.maximum(probabilities, np.finfo(np.float32).tiny)))
    return min(1.0, max(0.0, entropy / float(np.log(len(logits)))))
