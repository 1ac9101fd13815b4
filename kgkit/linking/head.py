"""A linker of a trained head: KnowBert's, equations (1) to (5), over mentions that an encoder has read.

Its stored vectors are those of the entities' texts; beside the prior's place in the list it is told what
`kgkit.linking.prior_features` names, for which it has the means and counts of `kgkit.linking.ridge` with it.
The score of that linker is added to its own:

    ψ(m,e) + w s(m,e)

The two make different errors: the head weighs what it has seen often, the means and the map serve what was
rare.

A portable head has no means, and of the features only those that the prior tells. It knows nothing of single
entities, so it is small, and links to any build of any knowledge base that has vectors of the same encoder.
Beside its score stands what `gloss` says of the text alone (see there for the letters):

    ψ(m,e) + u cos(v(m), g(e)) / τ

The head has fitted the texts that it learnt from; the cosine has fitted none.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import StaleModel
from kgkit.heads.linker_network import LinkerNetwork
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.inputs.linking import LinkerSentence, padded_layout, sentences_of
from kgkit.inputs.spans import hidden_of
from kgkit.linking.gloss import TEMPERATURE
from kgkit.linking.neighbour_texts import own_width
from kgkit.linking.parts_of_speech import PartsOfSpeech
from kgkit.linking.prior_features import (
    FEATURES,
    OF_PRIORS,
    candidate_features,
    prior_features,
)
from kgkit.linking.ridge import RidgeArrays, RidgeScorer, check_shapes, check_weights, queries
from kgkit.linking.scoring import Scorer, Scores, meanings, probabilities
from kgkit.linking.text_vectors import linker_vectors, prepare_candidates, texts_with_neighbours
from kgkit.models.arrays import LARGEST, check_numbers, read_array
from kgkit.models.folder import train_again
from kgkit.models.kinds import LinkerManifest
from kgkit.models.manifest import checking_settings, damaged
from kgkit.pauses import pause
from kgkit.sorted_ids import match_sorted
from kgkit.types import NO_CANDIDATES, Candidates, Document, Matrix, Numbers
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.heads.entity_linker import EntityLinker
    from kgkit.models.opening import Opening
    from kgkit.types import Ids
    from kgkit.vectors.layout import VectorRows

KIND: Final = "head"
HEAD: Final = "head"
"""The folder of the head, in that of a model."""
SCALE_FILE: Final = "scale.npy"
SHARE: Final = 2.0
"""w, chosen on semeval2007."""

_AT_ONCE: Final = 32  # sentences


class HeadScorer(Scorer):
    """Scores candidates by a trained head.

    Args:
        reader: of mentions, with the layers that were read in training.
        vectors: of the entities' texts.
        arrays: what was seen in training; None for a portable head.
        head: KnowBert's linker.
        scale: (2, F) float32, mean and deviation of the features in training.
        text_weight: u, how much the cosine of a mention, as the first layer has it, with an entity's text
            counts; for a head without means.
        parts_of_speech: the part of speech that a mention has in its context, where none is given.
        temperature, name: as `RidgeScorer` takes them.
    """

    batch_size = 32

    def __init__(
        self,
        reader: SpanReader,
        vectors: "VectorRows",
        arrays: RidgeArrays | None,
        head: LinkerNetwork,
        scale: Matrix,
        *,
        text_weight: float = 0.0,
        parts_of_speech: PartsOfSpeech | None = None,
        temperature: float = 1.0,
        name: str = KIND,
    ) -> None:
        self.reader, self.vectors, self.arrays, self.head = reader, vectors, arrays, head
        self.scale, self.text_weight, self.parts_of_speech = scale, text_weight, parts_of_speech
        self.reads_parts_of_speech = parts_of_speech is not None
        self.means = None if arrays is None else RidgeScorer(reader, vectors, arrays)
        self.temperature: float = temperature
        self.name = name

    @classmethod
    def open(cls, folder: Path, manifest: LinkerManifest, opening: "Opening") -> "HeadScorer":
        """Open the model in *folder*, of which *manifest* tells.

        Raises:
            MissingExtra: if a package is not installed that the encoder needs.
            The rest as `RidgeScorer.open` does.
        """
        from kgkit.embedding.partial import encoder_for

        own_vectors, device = linker_vectors(manifest, opening), opening.device
        encoder = encoder_for(own_vectors, device=device)
        if manifest.build:
            check_weights(folder)
        scale = _read_scale(folder, portable=not manifest.build)
        with checking_settings(folder):
            config = manifest.config["head"]
            text_weight = float(config.get("text_weight") or 0.0)
            if not 0 <= text_weight <= LARGEST:
                raise ValueError(f"text_weight is {text_weight:g}")
            read = msgspec.convert(manifest.reader, SpanConfig)
            if (config.get("ranks"), config.get("heads", 1), float(config["ridge"])) != ("shared", 1, SHARE):
                raise StaleModel(
                    f"the model {manifest.name} is a head of an older version, of other features: "
                    f"{train_again(manifest)}"
                )
        reader, texts = SpanReader(encoder, read), texts_with_neighbours(own_vectors, manifest, opening)
        arrays = RidgeArrays.load(folder) if manifest.build else None
        if arrays is not None:
            check_shapes(folder, arrays, reader, texts)
        head = LinkerNetwork.load(folder / HEAD)
        shape = (head.config.hidden, head.config.stored, head.config.features)
        expected = (reader.width, texts.width, scale.shape[-1])
        if shape != expected:
            raise damaged(
                folder, f"{HEAD} is for mentions, texts and features of {shape} numbers, read are {expected}"
            )
        return cls(
            reader, texts, arrays, head, scale,
            text_weight=text_weight,
            parts_of_speech=PartsOfSpeech.load(folder, reader.width, opening.kb_for(manifest.name)),
            temperature=manifest.temperature, name=manifest.name,
        )  # fmt: skip

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        results: list[list[Scores]] = []
        prepare_candidates(self.vectors, documents)
        source = iter(self.reader(documents))
        while chunk := list(islice(source, self.batch_size)):
            masks = [self._read_as_candidates(document, vectors) for document, vectors in chunk]
            kept = [
                (_with_some(document, mask), vectors[mask])
                for (document, vectors), mask in zip(chunk, masks, strict=True)
            ]
            for (document, _), mask, (shorter, vectors), scores in zip(
                chunk, masks, kept, self._document_scores(kept), strict=True
            ):
                scored = [
                    probabilities(score, mention.candidates or NO_CANDIDATES, self.temperature)
                    for mention, score in zip(shorter.mentions or (), scores, strict=True)
                ]
                if self.parts_of_speech is not None:
                    hidden = hidden_of(vectors, len(self.reader.config.layers))
                    scored = self.parts_of_speech(shorter.mentions or [], hidden, scored)
                rest = iter(scored)
                results.append(
                    [
                        next(rest) if keep else np.zeros(len(mention.candidates or NO_CANDIDATES), np.float32)
                        for mention, keep in zip(document.mentions or (), mask, strict=True)
                    ]
                )
        return results

    def _read_as_candidates(self, document: Document, vectors: Matrix) -> NDArray[np.bool_]:
        """Say of each mention whether the head reads it: no function word of another part of speech, (M,)."""
        mentions = document.mentions or []
        if self.parts_of_speech is None:
            return np.ones(len(mentions), np.bool_)
        return self.parts_of_speech.agree(mentions, hidden_of(vectors, len(self.reader.config.layers)))

    def null(self, candidates: Candidates, scores: Scores) -> float:
        """Return the probability that the generator and the part of speech leave to NULL."""
        if self.parts_of_speech is None:
            return super().null(candidates, scores)
        return candidates.link_probability - float(scores.sum())

    def scores(self, document: Document, vectors: Matrix) -> list[Scores]:
        """Return ψ and what stands beside it, (C,), of the candidates of each mention.

        *vectors* (M, W) are the reader's.
        """
        (scores,) = self._document_scores([(document, vectors)])
        return scores

    def _document_scores(self, documents: Sequence[tuple[Document, Matrix]]) -> Iterator[list[Scores]]:
        """Yield `scores` of each document; the head reads the sentences of all of them together."""
        sentences: list[LinkerSentence] = []
        begins = np.cumsum([0, *(len(vectors) for _, vectors in documents)])
        for (document, vectors), begin in zip(documents, begins[:-1].tolist(), strict=True):
            features = self._features(document, vectors)
            ids = [(mention.candidates or NO_CANDIDATES).ids for mention in document.mentions or ()]
            sentences += [
                LinkerSentence(rows + begin, [ids[row] for row in rows], [features[row] for row in rows])
                for rows in sentences_of(document)
            ]
        layers = len(self.reader.config.layers)
        hidden = hidden_of(np.concatenate([vectors for _, vectors in documents]), layers)
        scores = self.scored(sentences, hidden)
        for (document, vectors), begin, end in zip(documents, begins[:-1], begins[1:], strict=True):
            yield self._with_means(document, vectors, scores[begin:end])

    def _with_means(self, document: Document, vectors: Matrix, scores: list[Scores]) -> list[Scores]:
        """Return *scores* (C,) of the candidates of each mention, and w s beside them."""
        if self.means is None:
            return scores
        query_vectors = queries(vectors, len(self.reader.config.layers), self.means.arrays.mean)
        return [
            score + np.float32(SHARE) * self.means.scores(query, mention.candidates or NO_CANDIDATES)
            for score, query, mention in zip(scores, query_vectors, document.mentions or (), strict=True)
        ]

    def scored(self, sentences: Sequence[LinkerSentence], hidden: Matrix) -> list[Scores]:
        """Return ψ, and u cos / τ beside it, of the candidates of each mention, (C,).

        Mentions are named by their rows in *hidden* (M, W).
        """
        results = [np.empty(0, np.float32) for _ in hidden]
        for begin in range(0, len(sentences), _AT_ONCE):
            if begin:
                pause()
            part = sentences[begin : begin + _AT_ONCE]
            layout, sizes = padded_layout(part), [len(ids) for sentence in part for ids in sentence.ids]
            of = np.repeat(np.arange(len(sizes)), sizes)  # (R,) which mention a candidate is of
            once, which = np.unique(layout.ids, return_inverse=True)
            texts, mentions = self.texts(once), hidden[layout.rows]
            features = [each for sentence in part for each in sentence.features]
            scores = self.head.scores(
                self.head.mentions(mentions, layout.mention)[of],
                self.head.entities(texts)[which],
                np.concatenate([np.empty((0, self.head.config.features), np.float32), *features]),
            )
            if self.text_weight:
                width = own_width(self.vectors)
                cosines = _text_cosines(mentions[:, :width], texts[which, :width], of)
                scores = scores + np.float32(self.text_weight / TEMPERATURE) * cosines
            for row, own in zip(layout.rows.tolist(), np.split(scores, np.cumsum(sizes)[:-1]), strict=True):
                results[row] = own
        return results

    def texts(self, ids: "Ids") -> Matrix:
        """Return the stored vectors of entities, (R, D), as the head takes them."""
        return texts_of(self.vectors, ids)

    def _features(self, document: Document, vectors: Matrix) -> list[Matrix]:
        """Return the features of the candidates of each mention, (C, F)."""
        arrays = self.arrays
        candidates = [mention.candidates or NO_CANDIDATES for mention in document.mentions or ()]
        if not candidates:
            return []
        sizes = np.array([len(each) for each in candidates], np.int64)
        cuts = np.cumsum(sizes)[:-1]
        priors = np.concatenate([each.priors for each in candidates])
        if arrays is None:
            return np.split((prior_features(priors, sizes) - self.scale[0]) / self.scale[1], cuts)
        query = np.repeat(queries(vectors, len(self.reader.config.layers), arrays.mean), sizes, axis=0)
        own_meanings = np.concatenate([meanings(each) for each in candidates])
        index, exists = match_sorted(arrays.meanings, own_meanings)
        counts = np.where(exists, arrays.counts[index], 0)
        likeness = np.einsum("rk,rk->r", arrays.centroids[index].astype(np.float32), query)
        features = candidate_features(counts, likeness, sizes)[:, : self.scale.shape[1]]
        return np.split((features - self.scale[0]) / self.scale[1], cuts)


def save_head(
    folder: Path, head: "EntityLinker", scale: Matrix, text_weight: float = 0.0, *, half: bool = False
) -> dict[str, Any]:
    """Write a head and the scale of its features, and return the settings for the manifest."""
    head.save_pretrained(folder / HEAD, half=half)
    np.save(folder / SCALE_FILE, scale)
    return {"head": {"ridge": SHARE, "ranks": "shared", "text_weight": text_weight}}


def _read_scale(folder: Path, *, portable: bool) -> Matrix:
    """Return mean and deviation, (2, F), of the features of the heads in *folder*.

    Raises:
        DamagedModel: if they are not of as many features as such a head has, or nothing can be divided by
            a deviation.
    """
    scale: Matrix = np.array(read_array(folder / SCALE_FILE))
    most = len(OF_PRIORS if portable else FEATURES)  # without a build the features are those of priors, all
    if scale.ndim != 2 or len(scale) != 2 or not (most if portable else 1) <= scale.shape[1] <= most:
        expected = "a portable head has" if portable else "a head has, at most"
        raise damaged(folder, f"{SCALE_FILE} has the shape {scale.shape}, and {expected} {most} features")
    check_numbers(folder, SCALE_FILE, scale)
    if not (scale[1] > 0).all():
        raise damaged(folder, f"{SCALE_FILE} has deviations that are not above 0")
    return scale


def texts_of(vectors: "VectorRows", ids: "Ids") -> Matrix:
    """Return vectors of entities (R, D) as the head takes them: with a mean square of 1."""
    return unit(vectors.gather(ids)) * np.float32(np.sqrt(vectors.width))


def _text_cosines(mentions: Matrix, texts: Matrix, of: Numbers) -> Scores:
    """Return (R,) cosines of mentions (m, D) with the texts (R, D) of candidates, as `gloss` has them.

    Args:
        mentions: vectors of mentions.
        texts: vectors of texts, zeros where a candidate has none.
        of: (R,) which mention a candidate is of.
    """
    has_text = texts.any(axis=1)
    cosines = np.einsum("rd,rd->r", unit(texts), unit(mentions)[of])
    count = np.bincount(of, has_text, len(mentions))
    means = np.bincount(of, cosines * has_text, len(mentions)) / np.maximum(count, 1)
    return np.where(has_text, cosines, means[of]).astype(np.float32)


def _with_some(document: Document, mask: NDArray[np.bool_]) -> Document:
    if mask.all():
        return document
    return msgspec.structs.replace(document, mentions=[*compress(document.mentions or (), mask)])
