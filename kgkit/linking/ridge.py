"""A linker of means: the score of `gloss`, and the contexts in which each meaning was seen. No gradient.

    q(m)   = ⟨v(m) − μ⟩                                       ⟨·⟩: at length 1
    c(e)   = ⟨Σ q(m) over the mentions of e in training⟩
    W      = argmin Σ n(e) ‖W g(e) − c(e)‖² + λ ‖W‖²          over the e that were seen, n(e) times each
    r(x,e) = cos(q(m) − x̄, x(e) − x̄)                          x̄: the mean over candidates that have an x
    s(m,e) = α (log p(e | surface) + cos(v₁(m), g(e)) / τ) + β r(⟨W g⟩, e) + γ r(c, e) + δ [e was seen]
    p(e|m) = softmax(s / T)

v(m) joins the first K layers that are read, each at length 1, v₁ being the first of them; μ is their mean in
training; g(e) is the vector of the entity's text, for W less the mean of all, at length 1, with a 1 behind
it. What has α is the score of `gloss`, with its τ. r is 0 for what has no x, and where fewer than two have
one: all that was seen of a name has the name in common, and r leaves that out.

α, β, γ and δ are learnt by `kgkit.training.linkers.conditional_logit`; they begin at `START`, which is nearly
`gloss`. Means of contexts as vectors of senses: Melamud et al. (2016), Peters et al. (2018); a map from
glosses to them, for those without, and r: ours.

A meaning is the sense of a candidate where it has one (`dog%1:05:00::`), else its entity.

    S  meanings seen    K  layers    D  width    C  candidates of a mention
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.inputs import SpanConfig, SpanReader
from kgkit.inputs.spans import parts_of
from kgkit.linking.gloss import TEMPERATURE, text_cosines
from kgkit.linking.neighbour_texts import own_texts
from kgkit.linking.scoring import ScoreParts, Scorer, Scores, meanings, probabilities, shares
from kgkit.linking.text_vectors import linker_vectors, prepare_candidates, texts_with_neighbours
from kgkit.models.arrays import check_numbers, read_array
from kgkit.models.kinds import LinkerManifest
from kgkit.models.manifest import checking_settings, damaged
from kgkit.sorted_ids import match_sorted
from kgkit.types import LEAST_PRIOR, NO_CANDIDATES, Candidates, Document, Ids, Matrix
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.models.opening import Opening
    from kgkit.vectors.layout import VectorRows

KIND: Final = "ridge"
ARRAYS: Final = ("meanings", "centroids", "counts", "weight", "mean", "gloss_mean")

WEIGHTS: Final = "weights"
"""The array of α, β, γ, δ."""

START: Final = (1.0, 0.0, 4.0, 0.0)
"""α, β, γ, δ where nothing says otherwise; γ was chosen on semeval2007 and on AIDA's testa."""

LAYERS: Final = 3
"""K, at most: of the layers that are read, the first ones."""

_NEAR: Final = 0.03  # what differs less from the mean of the candidates differs by rounding


class RidgeArrays(NamedTuple):
    """What was learnt.

    Attributes:
        meanings: (S,) uint32, ids, ascending.
        centroids: (S, K · D) float16, c at length 1.
        counts: (S,) float32, n.
        weight: (D + 1, K · D) float32, W.
        mean: (K · D,) float32, μ.
        gloss_mean: (D,) float32, the mean of the vectors of texts.
        weights: (4,) float32, α, β, γ, δ; None: those of `START`.
    """

    meanings: Ids
    centroids: NDArray[np.float16]
    counts: Matrix
    weight: Matrix
    mean: Matrix
    gloss_mean: Matrix
    weights: Matrix | None = None

    def save(self, folder: Path) -> None:
        """Write each array to a file of its own, to be mapped."""
        for name in ARRAYS if self.weights is None else (*ARRAYS, WEIGHTS):
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> "RidgeArrays":
        """Read what `save` wrote.

        Raises:
            DamagedModel: if a file is no array, their shapes do not fit each other, meanings are not
                ascending, or a number is not finite.
        """
        names = (*ARRAYS, WEIGHTS) if (folder / f"{WEIGHTS}.npy").is_file() else ARRAYS
        arrays = cls(*(read_array(folder / f"{name}.npy") for name in names))
        if arrays.centroids.ndim != 2 or arrays.weight.ndim != 2 or arrays.meanings.dtype.kind == "f":
            raise damaged(folder, "its arrays are not those of a model of this kind")
        (count, width), rows = arrays.centroids.shape, len(arrays.weight)
        expected = {
            "meanings": (count,), "centroids": (count, width), "counts": (count,), "weight": (rows, width),
            "mean": (width,), "gloss_mean": (rows - 1,), WEIGHTS: (len(START),),
        }  # fmt: skip
        for name in names:
            if getattr(arrays, name).shape != expected[name]:
                shape = getattr(arrays, name).shape
                raise damaged(
                    folder, f"{name}.npy has the shape {shape}, the others ask for {expected[name]}"
                )
            check_numbers(folder, f"{name}.npy", getattr(arrays, name))
        if not (arrays.meanings[1:] > arrays.meanings[:-1]).all():
            raise damaged(folder, "meanings.npy is not in ascending order")
        return arrays


class RidgeScorer(Scorer):
    """Scores candidates by their prior, the vectors of their texts, and what was seen in training.

    Args:
        reader: of mentions, with the layers that were read in training.
        vectors: of the entities' texts.
        arrays: what was learnt.
        temperature: T.
        name: that links carry.
    """

    batch_size = 32

    def __init__(
        self,
        reader: SpanReader,
        vectors: "VectorRows",
        arrays: RidgeArrays,
        *,
        temperature: float = 1.0,
        name: str = KIND,
    ) -> None:
        self.reader, self.vectors, self.arrays = reader, vectors, arrays
        self.temperature: float = temperature
        self.name = name

    @classmethod
    def open(cls, folder: Path, manifest: LinkerManifest, opening: "Opening") -> "RidgeScorer":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            DamagedModel: if it cannot be read, or has no weights, as models of older versions.
            UsageError: if it is another KB's, or opened on none.
            StaleModel: if it is another build's, or of other vectors.
            NotThere: if the vectors or the encoder are gone.
        """
        from kgkit.embedding.partial import encoder_for

        check_weights(folder)
        vectors = linker_vectors(manifest, opening)
        own_vectors = texts_with_neighbours(vectors, manifest, opening)
        with checking_settings(folder):
            read = msgspec.convert(manifest.reader, SpanConfig)
        encoder, arrays = encoder_for(vectors, device=opening.device), RidgeArrays.load(folder)
        reader = SpanReader(encoder, read)
        check_shapes(folder, arrays, reader, own_vectors)
        return cls(
            reader,
            own_vectors,
            arrays,
            temperature=manifest.temperature,
            name=manifest.name,
        )

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [
            [
                probabilities(self.scores(query, candidates), candidates, self.temperature)
                for query, candidates in mentions
            ]
            for mentions in self._read(documents)
        ]

    def explain(self, documents: Sequence[Document]) -> list[list[ScoreParts]]:
        """Return the scores with two parts: the weighed prior, and all else as context."""
        return [
            [self._parts(query, candidates) for query, candidates in mentions]
            for mentions in self._read(documents)
        ]

    def _read(self, documents: Sequence[Document]) -> Iterator[list[tuple[Matrix, Candidates]]]:
        """Yield q, (K · D,), and the candidates of each mention of a document."""
        prepare_candidates(self.vectors, documents)
        for document, vectors in self.reader(documents):
            candidates = [mention.candidates or NO_CANDIDATES for mention in document.mentions or ()]
            read = queries(vectors, len(self.reader.config.layers), self.arrays.mean)
            yield [*zip(read, candidates, strict=True)]

    def _parts(self, query: Matrix, candidates: Candidates) -> ScoreParts:
        """Return the scores of a mention's candidates; α log p of the prior is one part, all else context."""
        terms = self.terms(query, candidates)
        total = terms @ self.weights
        prior = self.weights[0] * np.log(np.maximum(shares(candidates.priors), LEAST_PRIOR))
        return ScoreParts(
            probabilities(total, candidates, self.temperature),
            prior / self.temperature,
            (total - prior) / self.temperature,
        )

    @property
    def weights(self) -> Scores:
        """The weights α, β, γ, δ, (4,)."""
        return np.asarray(START if self.arrays.weights is None else self.arrays.weights, np.float32)

    def scores(self, query: Matrix, candidates: Candidates) -> Scores:
        """Return s, (C,), of the candidates of one mention; *query* is q, (K · D,)."""
        scores: Scores = self.terms(query, candidates) @ self.weights
        return scores

    def terms(self, query: Matrix, candidates: Candidates) -> Matrix:
        """Return the terms that are weighed, (C, 4), of the candidates of one mention.

        Args:
            query: q, (K · D,).
            candidates: candidates of the mention.
        """
        arrays = self.arrays
        texts = self.vectors.gather(candidates.ids)  # (C, D)
        own = own_texts(texts, self.vectors)
        has_text = np.linalg.norm(own, axis=1) > 0
        fit = text_cosines(mention_vector_of(query, arrays.mean)[: own.shape[1]], own)  # cos(v₁, g)
        prior = np.log(np.maximum(shares(candidates.priors), LEAST_PRIOR))
        gloss = prior + fit / TEMPERATURE
        own_meanings = meanings(candidates)
        index, is_meaning = match_sorted(arrays.meanings, own_meanings)
        like_text = centred_cosines(query, map_texts(texts, arrays.gloss_mean, arrays.weight), has_text)
        likeness = centred_cosines(query, arrays.centroids[index].astype(np.float32), is_meaning)
        terms = [gloss, like_text, likeness, is_meaning]
        return np.stack(terms, axis=1, dtype=np.float32)


def check_weights(folder: Path) -> None:
    """Make sure that a model has weights of its own.

    Raises:
        DamagedModel: if it has none.
    """
    if not (folder / f"{WEIGHTS}.npy").is_file():
        raise damaged(folder, "it was trained before the weights of its scores were learnt and kept")


def centred_cosines(query: Matrix, vectors: Matrix, valid: NDArray[np.bool_]) -> Scores:
    """Return r, (C,): the likeness of q, (K · D,), to *vectors* (C, K · D) as seen from their mean.

    Of vectors that are not *valid* (C,) it is 0, and so it is of those that are the mean but for rounding.
    """
    if valid.sum() < 2:
        return np.zeros(len(valid), np.float32)
    middle = vectors[valid].mean(0)
    away = vectors - middle
    length = np.linalg.norm(away, axis=1)
    valid = valid & (length > _NEAR)
    cosines: Scores = away @ unit((query - middle)[None])[0] / np.where(valid, length, 1) * valid
    return cosines


def mention_vector_of(query: Matrix, mean: Matrix) -> Matrix:
    """Return ⟨v⟩ of a mention, (K · D,), of its q = ⟨⟨v⟩ − μ⟩: where the ray from μ has come to length 1."""
    along = float(query @ mean)
    length = np.float32(max(0.0, along * along + 1 - float(mean @ mean)) ** 0.5 - along)
    result: Matrix = query * length + mean
    return result


def check_shapes(folder: Path, arrays: RidgeArrays, reader: SpanReader, texts: "VectorRows") -> None:
    """Make sure that the arrays of the model in *folder* are of mentions and texts as they are read.

    Raises:
        DamagedModel: if they are of other widths. Means are of the first layers that are read, or of all.
    """
    shape, expected = (len(arrays.mean), len(arrays.gloss_mean)), (reader.width, texts.width)
    mean, width = len(arrays.mean), reader.encoder.width
    if mean % width or not width <= mean <= reader.width or len(arrays.gloss_mean) != texts.width:
        raise damaged(
            folder, f"its arrays are for mentions and texts of {shape} numbers, read are {expected}"
        )


def queries(vectors: Matrix, layers: int, mean: Matrix) -> Matrix:
    """Return q of mentions, (M, K · D), of vectors of all *layers* that are read; *mean* is of K of them."""
    return unit(unit(parts_of(vectors, layers)[:, : len(mean)]) - mean)


def texts_of(vectors: Matrix, mean: Matrix) -> Matrix:
    """Return g of entities, (N, D + 1), of their vectors (N, D); zeros, no text, stay zeros."""
    has_text = vectors.any(axis=1, keepdims=True)
    return np.concatenate([unit(unit(vectors) - mean) * has_text, has_text], axis=1, dtype=np.float32)


def map_texts(vectors: Matrix, mean: Matrix, weight: Matrix) -> Matrix:
    """Return ⟨W g⟩ of entities, (N, K · D)."""
    return unit(texts_of(vectors, mean) @ weight)
