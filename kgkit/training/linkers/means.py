"""The means of what each meaning was seen in, and the map to them: `kgkit.linking.ridge` has the equations.

R  rows: right candidates of mentions    S  meanings    K · D  numbers of a mention
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.inputs.mention_vectors import features
from kgkit.linking.ridge import LAYERS, RidgeArrays, queries, texts_of
from kgkit.linking.scoring import meanings
from kgkit.training.data import held_out_interval
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.types import Ids, Matrix, Progress
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from pathlib import Path

    from kgkit.inputs import SpanReader
    from kgkit.vectors.layout import VectorRows

RIDGE: Final = 5.0
"""λ: how much the map from texts to means is drawn to zero."""

_BLOCK: Final = 8_192  # mentions at once


class Sums(NamedTuple):
    """Of the meanings of a set: (S,) their ids and entities, (S, K · D) sums of their q, (S,) how many."""

    meanings: Ids
    entities: Ids
    sums: Matrix
    counts: Matrix


class TrainingSet:
    """The mentions of one set of documents, and what each of them means.

    Args:
        reader: reader of mentions.
        labelled: documents of the set.
        cache: folder where features are kept.
        progress: callback while mentions are read.
        stage: name of the reading, for *progress*.
    """

    def __init__(
        self,
        reader: "SpanReader",
        labelled: Sequence[LabelledDocument],
        cache: "Path",
        progress: Progress | None,
        stage: str = "reading",
    ) -> None:
        self.layers = len(reader.config.layers)
        self.width = reader.encoder.width * min(LAYERS, self.layers)  # K · D
        self.labelled = labelled
        self.vectors = features(
            reader, [document.document for document in labelled], cache, progress=progress, stage=stage
        )
        rows = list(self._right_rows())
        self.rows = np.array([row for row, _, _, _ in rows], np.int64)  # (R,)
        self.documents = np.array([number for _, number, _, _ in rows], np.int64)
        self.meanings = np.array([meaning for _, _, meaning, _ in rows], np.uint32)
        self.entities = np.array([entity for _, _, _, entity in rows], np.uint32)
        self.mean = self._mean()

    def _right_rows(self) -> "list[tuple[int, int, int, int]]":
        """Return row, document, meaning and entity of each right candidate."""
        rows, row = [], 0
        for number, document in enumerate(self.labelled):
            for candidates, right in zip(document.candidates, document.right, strict=True):
                pairs = meanings(candidates)[right].tolist(), candidates.ids[right].tolist()
                rows += [(row, number, meaning, entity) for meaning, entity in zip(*pairs, strict=True)]
                row += 1
        return rows

    def _mean(self) -> Matrix:
        total, nothing = np.zeros(self.width, np.float64), np.zeros(self.width, np.float32)
        rows = np.unique(self.rows)
        for begin in range(0, len(rows), _BLOCK):
            total += self.queries_of(rows[begin : begin + _BLOCK], nothing).sum(0, dtype=np.float64)
        return (total / max(1, len(rows))).astype(np.float32)

    def queries_of(self, rows: NDArray[np.int64], mean: Matrix) -> Matrix:
        """Return q of mentions, (m, K · D), by their rows."""
        return queries(self.vectors[rows].astype(np.float32), self.layers, mean)

    def sums(self, which: NDArray[np.bool_] | None = None) -> Sums:
        """Return the sums over the mentions, or over those of *which* (R,)."""
        chosen = np.arange(len(self.rows)) if which is None else np.flatnonzero(which)
        ids, index = np.unique(self.meanings[chosen], return_inverse=True)
        entities = np.zeros(len(ids), np.uint32)
        entities[index] = self.entities[chosen]
        sums = np.zeros((len(ids), self.width), np.float32)
        for begin in range(0, len(chosen), _BLOCK):
            here = slice(begin, begin + _BLOCK)
            np.add.at(sums, index[here], self.queries_of(self.rows[chosen[here]], self.mean))
        return Sums(ids, entities, sums, np.bincount(index, minlength=len(ids)).astype(np.float32))

    def own_sums(self) -> list[dict[int, tuple[Matrix, int]]]:
        """Return, for each document, the sum of q of each meaning in it, and how many mentions that is."""
        sums: list[dict[int, tuple[Matrix, int]]] = [{} for _ in self.labelled]
        for begin in range(0, len(self.rows), _BLOCK):
            here = slice(begin, begin + _BLOCK)
            query = self.queries_of(self.rows[here], self.mean)
            pairs = zip(self.documents[here].tolist(), self.meanings[here].tolist(), query, strict=True)
            for document, meaning, vector in pairs:
                before, count = sums[document].get(meaning, (0, 0))
                sums[document][meaning] = (before + vector, count + 1)
        return sums

    def held_out(self) -> NDArray[np.bool_]:
        """Return (R,) whether a mention is of a document that is held out; the same ones every time."""
        interval = held_out_interval(len(self.labelled), len(self.rows))
        is_held_out: NDArray[np.bool_] = self.documents % interval == interval - 1
        return is_held_out


class LinkerData(NamedTuple):
    """What every type of linker is trained over.

    Attributes:
        reader: reader of mentions, by the encoder that training begins with.
        vectors: vectors of the entities' texts, by the same encoder.
        parts: sets of documents: SemCor, a KB's examples.
        text_ids: ids of the entities whose texts stand for all in `text_mean`: the candidates in the data,
            where texts are encoded as they are needed; None: all entities.
        counted_priors: whether the prior is counted on the data, without the documents that are held out.
            WordNet's counts are SemCor's: with them a document's own gold is in the prior.
        balance: how far a rare meaning counts as much as a frequent one, from 0, each mention alike, to 1,
            each meaning of a name alike: a mention counts p^-balance, p being the share of its meaning among
            those of the name.
    """

    reader: "SpanReader"
    vectors: "VectorRows"
    parts: Sequence[TrainingSet]
    text_ids: Ids | None = None
    counted_priors: bool = False
    balance: float = 0.0

    def text_mean(self) -> Matrix:
        """Return the mean of the vectors of texts at length 1, (D,)."""
        return text_mean(self.vectors, self.text_ids)

    def sums(self) -> Sums:
        """Return the sums of all sets together.

        Raises:
            UsageError: if no mention has a right candidate.
        """
        if not sum(len(part.meanings) for part in self.parts):
            raise UsageError("no training examples: no mention has its gold entity among its candidates")
        return add_sums([part.sums() for part in self.parts])


def candidate_ids(sources: Iterable[Sequence[LabelledDocument]]) -> Ids:
    """Return the ids of all candidates in sets of documents, each once, ascending."""
    ids = [candidates.ids for source in sources for document in source for candidates in document.candidates]
    return np.unique(np.concatenate([np.empty(0, np.uint32), *ids]))


def add_sums(parts: Sequence[Sums]) -> Sums:
    """Return the sums of several sets together."""
    ids, index = np.unique(np.concatenate([part.meanings for part in parts]), return_inverse=True)
    sums = np.zeros((len(ids), parts[0].sums.shape[1]), np.float32)
    counts, entities = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.uint32)
    begin = 0
    for part in parts:
        here = index[begin : begin + len(part.meanings)]
        sums[here] += part.sums
        counts[here] += part.counts
        entities[here] = part.entities
        begin += len(part.meanings)
    return Sums(ids, entities, sums, counts)


def subtract_sums(total: Sums, part: Sums) -> Sums:
    """Return the sums of a set without those of a part of it."""
    index = np.searchsorted(total.meanings, part.meanings)
    counts = total.counts.copy()
    counts[index] -= part.counts
    remains = counts > 0.5  # what is left of the others is rounding
    sums, remaining = total.sums[remains], remains[index]
    sums[np.cumsum(remains)[index[remaining]] - 1] -= part.sums[remaining]
    return Sums(total.meanings[remains], total.entities[remains], sums, counts[remains])


def fit_means(sums: Sums, vectors: "VectorRows", mean: Matrix, gloss_mean: Matrix) -> RidgeArrays:
    """Return means at length 1, and the map from texts to them."""
    centroids = unit(sums.sums)
    texts = texts_of(vectors.gather(sums.entities), gloss_mean)  # (S, D + 1)
    counted = sums.counts * (texts[:, -1] > 0)  # an entity without a text has nothing to say of the map
    weighted = texts * counted[:, None]
    square = weighted.T @ texts + RIDGE * np.eye(texts.shape[1], dtype=np.float32)
    weight = np.linalg.solve(square.astype(np.float64), (weighted.T @ centroids).astype(np.float64))
    return RidgeArrays(
        sums.meanings, centroids.astype(np.float16), sums.counts, weight.astype(np.float32), mean, gloss_mean
    )


def text_mean(vectors: "VectorRows", ids: Ids | None = None) -> Matrix:
    """Return the mean of the vectors of texts at length 1, (D,), of the entities that have one.

    Args:
        vectors: vectors of the entities' texts.
        ids: (N,) ids of entities; None: all that *vectors* have rows for.
    """
    total, count = np.zeros(vectors.width, np.float64), 0
    size = vectors.manifest.rows if ids is None else len(ids)
    for begin in range(0, size, _BLOCK):
        end = min(begin + _BLOCK, size)
        block = vectors.gather(np.arange(begin, end) if ids is None else ids[begin:end])
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        total += (block / np.where(lengths > 0, lengths, 1)).sum(0, dtype=np.float64)
        count += int((lengths > 0).sum())
    return (total / max(1, count)).astype(np.float32)
