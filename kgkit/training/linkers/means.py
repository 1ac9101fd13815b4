"""The means of what each meaning was seen in, and the map to them: `kgkit.linking.ridge` has the equations.

R  rows: right candidates of mentions    S  meanings    K · D  numbers of a mention
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.inputs.mention_vectors import features
from kgkit.linking.ridge import RidgeArrays, RidgeConfig, queries, texts_of
from kgkit.linking.scoring import meanings
from kgkit.sorted_ids import match_sorted
from kgkit.training.data import held_out_interval
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.types import Ids, Matrix, Progress
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from pathlib import Path

    from kgkit.inputs import SpanReader
    from kgkit.vectors.layout import VectorRows

_BLOCK: Final = 8_192  # mentions at once


class Sums(NamedTuple):
    """Of the meanings of a set: (S,) their ids and entities, (S, K · D) sums of their q, (S,) how many."""

    meanings: Ids
    entities: Ids
    sums: Matrix
    counts: Matrix


class MeaningCounts(NamedTuple):
    """How often meanings occur: (S,) their ids, ascending, and (S,) float32 counts."""

    meanings: Ids
    counts: Matrix

    def of(self, meanings: Ids, less: Mapping[int, int]) -> Matrix:
        """Return the counts (N,) of meanings (N,), 0 of unknown ones, less those in *less*."""
        index, exists = match_sorted(self.meanings, meanings)
        counts = np.where(exists, self.counts[index], 0)
        without = [less.get(meaning, 0) for meaning in meanings.tolist()]
        return (counts - np.array(without, np.float32)).astype(np.float32)


class TrainingSet:
    """The mentions of one set of documents, and what each of them means.

    Args:
        reader: reader of mentions.
        labelled: documents of the set.
        cache: folder where features are kept.
        progress: callback while mentions are read.
        layers: K, number of layers of which means are taken: the first ones that the reader reads.
        stage: name of the reading, for *progress*.
    """

    def __init__(
        self,
        reader: "SpanReader",
        labelled: Sequence[LabelledDocument],
        cache: "Path",
        progress: Progress | None,
        layers: int = 3,
        stage: str = "reading",
    ) -> None:
        self.layers = len(reader.config.layers)
        self.width = reader.encoder.width * min(layers, self.layers)  # K · D
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

    @property
    def has_targets(self) -> bool:
        """Whether a teacher says what the mentions mean; there is no gold then."""
        return any(document.targets is not None for document in self.labelled)

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

    def own_counts(self) -> list[Counter[int]]:
        """Return, for each document, how often each meaning occurs in it."""
        counts: list[Counter[int]] = [Counter() for _ in self.labelled]
        for document, meaning in zip(self.documents.tolist(), self.meanings.tolist(), strict=True):
            counts[document][meaning] += 1
        return counts

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
        parts: sets of documents: SemCor, text that a teacher has read, a KB's examples.
        ridge: settings of the means and the map.
        text_ids: ids of the entities whose texts stand for all in `text_mean`: the candidates in the data,
            where texts are encoded as they are needed; None: all entities.
    """

    reader: "SpanReader"
    vectors: "VectorRows"
    parts: Sequence[TrainingSet]
    ridge: RidgeConfig
    text_ids: Ids | None = None

    def text_mean(self) -> Matrix:
        """Return the mean of the vectors of texts at length 1, (D,)."""
        return text_mean(self.vectors, self.text_ids)

    def sums(self) -> Sums:
        """Return the sums of all sets with gold together; where none has, of all.

        Raises:
            UsageError: if no mention has a right candidate.
        """
        self._check_meanings()
        return add_sums([part.sums() for part in self.counted_parts()])

    def counts(self) -> MeaningCounts:
        """Return the counts of all sets with gold together; where none has, of all.

        Raises:
            UsageError: if no mention has a right candidate.
        """
        self._check_meanings()
        ids, counts = np.unique(
            np.concatenate([part.meanings for part in self.counted_parts()]), return_counts=True
        )
        return MeaningCounts(ids.astype(np.uint32), counts.astype(np.float32))

    def _check_meanings(self) -> None:
        if not sum(len(part.meanings) for part in self.counted_parts()):
            raise UsageError("no training examples: no mention has its gold entity among its candidates")

    def counted_parts(self) -> "Sequence[TrainingSet]":
        """Return the sets whose meanings are counted: those with gold, or all if none has.

        A teacher's answers are probabilities, no gold: they are not counted as occurrences.
        """
        return [part for part in self.parts if not part.has_targets] or self.parts


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


def fit_means(
    sums: Sums, vectors: "VectorRows", mean: Matrix, gloss_mean: Matrix, config: RidgeConfig
) -> RidgeArrays:
    """Return means at length 1, and the map from texts to them."""
    centroids = unit(sums.sums)
    texts = texts_of(vectors.gather(sums.entities), gloss_mean)  # (S, D + 1)
    counted = sums.counts * (texts[:, -1] > 0)  # an entity without a text has nothing to say of the map
    weighted = texts * counted[:, None]
    square = weighted.T @ texts + config.ridge * np.eye(texts.shape[1], dtype=np.float32)
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
