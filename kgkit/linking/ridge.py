"""A linker of means: what was seen in training, and a linear map for what was not. No gradient, minutes.

    q(m)   = ⟨v(m) − μ⟩                                       ⟨·⟩: at length 1
    c(e)   = ⟨Σ q(m) over the mentions of e in training⟩
    W      = argmin Σ n(e) ‖W g(e) − c(e)‖² + λ ‖W‖²          over the e that were seen, n(e) times each
    s(m,e) = q·c(e) + b q·⟨W g(e)⟩ + w log p(e | surface)     f q·⟨W g(e)⟩ in the place of q·c(e) if e was not
    p(e|m) = softmax(s / T)

v(m) joins the first K layers that are read, each at length 1; μ is their mean in training; g(e) is the
vector of the entity's text less the mean of all, at length 1, with a 1 behind it. Means of contexts as
vectors of senses: Melamud et al. (2016), Peters et al. (2018); a map from glosses to them, for those without:
ours.

A meaning is the sense of a candidate where it has one (`dog%1:05:00::`), else its entity.

    S  meanings seen    K  layers    D  width    C  candidates of a mention
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking.gloss import warn_of_missing
from kgkit.linking.model_folder import ModelManifest, damaged, model_vectors, read_model
from kgkit.linking.scoring import Scores
from kgkit.types import NO_CANDIDATES, NO_SENSE, Candidates, Document, Ids
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors

Matrix = NDArray[np.float32]

KIND: Final = "ridge"
ARRAYS: Final = ("meanings", "centroids", "counts", "weight", "mean", "gloss_mean")

_TINY: Final = 1e-6


@dataclass(frozen=True, kw_only=True)
class RidgeConfig:
    """Settings of the scores.

    Attributes:
        layers: K, at most: of those that are read, the first ones.
        ridge: λ.
        mapped: b, how much the mapped text counts beside what was seen.
        unseen: f, what it counts in the place of what was not.
        prior: w.
    """

    layers: int = 3
    ridge: float = 5.0
    mapped: float = 0.4
    unseen: float = 0.8
    prior: float = 0.02

    def __post_init__(self) -> None:
        if self.ridge <= 0 or self.layers < 1 or min(self.mapped, self.unseen, self.prior) < 0:
            raise UsageError(f"out of range in {self}: layers >= 1, ridge > 0, the rest >= 0")


class RidgeArrays(NamedTuple):
    """What was learnt.

    Attributes:
        meanings: (S,) uint32, ids, ascending.
        centroids: (S, K · D) float16, c at length 1.
        counts: (S,) float32, n.
        weight: (D + 1, K · D) float32, W.
        mean: (K · D,) float32, μ.
        gloss_mean: (D,) float32, the mean of the vectors of texts.
    """

    meanings: Ids
    centroids: NDArray[np.float16]
    counts: Matrix
    weight: Matrix
    mean: Matrix
    gloss_mean: Matrix

    def save(self, folder: Path) -> None:
        """Write each array to a file of its own, to be mapped."""
        for name in ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> "RidgeArrays":
        """Read what `save` wrote.

        Raises:
            DamagedModel: if a file is no array.
        """
        try:
            return cls(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS))
        except (OSError, ValueError) as error:
            raise damaged(folder, str(error)) from error


class RidgeScorer:
    """Scores candidates by what was seen in training, and by the vectors of their texts.

    Args:
        reader: of mentions, with the layers that were read in training.
        vectors: of the entities' texts.
        arrays: what was learnt.
        config: of the scores.
        temperature: T.
        name: that links carry.
    """

    ahead = 32

    def __init__(
        self,
        reader: SpanReader,
        vectors: "Vectors",
        arrays: RidgeArrays,
        config: RidgeConfig,
        *,
        temperature: float = 1.0,
        name: str = KIND,
    ) -> None:
        self.reader, self.vectors, self.arrays, self.config = reader, vectors, arrays, config
        self.temperature, self.name = temperature, name

    @classmethod
    def open(
        cls, folder: Path, kb: "KnowledgeBase", *, vectors: str | None = None, device: str = "auto"
    ) -> "RidgeScorer":
        """Open the model in *folder* on *kb*.

        Raises:
            DamagedModel: if it cannot be read.
            UsageError: if it is another KB's.
            StaleModel: if it is another build's, or of other vectors.
            NotThere: if the vectors or the encoder are gone.
        """
        from kgkit.embedding.text import encoder_of

        manifest = read_model(folder)
        found = model_vectors(manifest, kb, vectors)
        warn_of_missing(kb, found)
        reader = SpanReader(encoder_of(found, device=device), span_config(manifest))
        return cls(
            reader,
            found,
            RidgeArrays.load(folder),
            RidgeConfig(**manifest.config),
            temperature=manifest.temperature,
            name=manifest.name,
        )

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [
            [
                probabilities(self.scores(query, candidates), candidates, self.temperature)
                for query, candidates in zip(
                    queries(vectors, len(self.reader.config.layers), self.arrays.mean),
                    [mention.candidates or NO_CANDIDATES for mention in document.mentions or ()],
                    strict=True,
                )
            ]
            for document, vectors in self.reader(documents)
        ]

    def scores(self, query: Matrix, candidates: Candidates) -> Scores:
        """Return s, (C,), of the candidates of one mention; *query* is q, (K · D,)."""
        arrays, config = self.arrays, self.config
        texts = mapped(self.vectors.gather(candidates.ids), arrays.gloss_mean, arrays.weight)  # (C, K · D)
        like_text = texts @ query
        wanted = meanings(candidates)
        place = np.minimum(np.searchsorted(arrays.meanings, wanted), len(arrays.meanings) - 1)
        seen = arrays.meanings[place] == wanted
        like_seen = arrays.centroids[place].astype(np.float32) @ query
        return summed(seen, like_seen, like_text, candidates.priors, config)


def summed(
    seen: NDArray[np.bool_], like_seen: Matrix, like_text: Matrix, priors: Matrix, config: RidgeConfig
) -> Scores:
    """Return s, (C,), from its parts: q·c, where a meaning was *seen*, and q·⟨W g⟩."""
    found: Scores = (
        np.where(seen, like_seen, config.unseen * like_text)
        + config.mapped * like_text
        + config.prior * np.log(np.maximum(priors, _TINY))
    )
    return found


def queries(vectors: Matrix, layers: int, mean: Matrix) -> Matrix:
    """Return q of mentions, (M, K · D), of vectors of all *layers* that are read; *mean* is of K of them."""
    return unit(unit(parts_of(vectors, layers)[:, : len(mean)]) - mean)


def parts_of(vectors: Matrix, layers: int) -> Matrix:
    """Return (M, K · D) with each layer's part at length 1."""
    found: Matrix = unit(vectors.reshape(-1, vectors.shape[1] // layers)).reshape(vectors.shape)
    return found


def texts_of(vectors: Matrix, mean: Matrix) -> Matrix:
    """Return g of entities, (N, D + 1), of their vectors (N, D); zeros, no text, stay zeros."""
    there = vectors.any(axis=1, keepdims=True)
    return np.concatenate([unit(unit(vectors) - mean) * there, there], axis=1, dtype=np.float32)


def mapped(vectors: Matrix, mean: Matrix, weight: Matrix) -> Matrix:
    """Return ⟨W g⟩ of entities, (N, K · D)."""
    return unit(texts_of(vectors, mean) @ weight)


def meanings(candidates: Candidates) -> Ids:
    """Return (C,) what each candidate means: its sense, where it has one, else its entity."""
    senses = candidates.senses
    return np.where(senses == NO_SENSE, candidates.ids, senses)


def probabilities(scores: Scores, candidates: Candidates, temperature: float) -> Scores:
    """Return scores (C,) as probabilities that leave NULL its part."""
    if not len(scores):
        return np.empty(0, np.float32)
    weights = np.exp((scores - scores.max()) / np.float32(temperature))
    found: Scores = (weights / weights.sum() * (1 - candidates.null)).astype(np.float32)
    return found


def span_config(manifest: ModelManifest) -> SpanConfig:
    """Return how the model's mentions are read."""
    about = dict(manifest.reader)
    return SpanConfig(**{**about, "layers": tuple(about["layers"])})
