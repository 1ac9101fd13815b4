"""Training the linker of means: `kgkit.linking.ridge` has the equations.

R  rows: mentions that something is learnt of    S  meanings    K · D  numbers of a mention
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.evaluation.calibration import best_temperature, calibration_error
from kgkit.linking.ridge import Matrix, RidgeArrays, RidgeConfig, RidgeScorer, meanings, queries, texts_of
from kgkit.linking.scoring import Scores
from kgkit.training.features import features
from kgkit.training.taught import Taught
from kgkit.types import NO_CANDIDATES, Candidates, Ids

if TYPE_CHECKING:
    from pathlib import Path

    from kgkit.inputs import SpanReader
    from kgkit.vectors import Vectors

_BLOCK: Final = 8_192  # mentions at once
_HELD_OUT: Final = 10  # one document of so many is held out to measure with

Progress = Callable[[str, int, int], object]
"""Is told what is being done, how much of it is done, and of how much."""


class Trained(NamedTuple):
    """What came out of a training.

    Attributes:
        arrays: what was learnt, from all documents.
        temperature: T, chosen on documents that were held out of what was measured with.
        results: accuracy and calibration there, and how much was learnt from.
    """

    arrays: RidgeArrays
    temperature: float
    results: dict[str, float]


def train_ridge(
    reader: "SpanReader",
    vectors: "Vectors",
    sources: Sequence[Sequence[Taught]],
    config: RidgeConfig,
    cache: "Path",
    *,
    progress: Progress | None = None,
) -> Trained:
    """Learn means and map from *sources*.

    Each source is centred by its own mean; the first one's mean, and its documents that are held out for the
    temperature, stand for what will be linked.

    Args:
        reader: of mentions.
        vectors: of the entities' texts.
        sources: sets of documents: SemCor, a KB's examples.
        config: settings.
        cache: where features are kept.
        progress: is told what is done.

    Raises:
        UsageError: if no mention has a right candidate.
        WriteFailed: if the features have no room.
    """
    parts = [_Part(reader, source, cache, _telling(progress, f"reading set {number}"))
             for number, source in enumerate(sources, 1)]  # fmt: skip
    if not sum(len(part.meanings) for part in parts):
        raise UsageError("there is nothing to learn: no mention has its gold among its candidates")
    held = parts[0].held_out()
    gloss_mean = _text_mean(vectors)
    kept = _fitted([parts[0].sums(~held), *(part.sums() for part in parts[1:])], vectors, gloss_mean, config,
                   parts[0].mean)  # fmt: skip
    scored = parts[0].scored(RidgeScorer(reader, vectors, kept, config), held) if len(kept.meanings) else []
    temperature = best_temperature(scored)
    arrays = _fitted([part.sums() for part in parts], vectors, gloss_mean, config, parts[0].mean)
    results = {
        "mentions": float(sum(len(part.meanings) for part in parts)),
        "meanings": float(len(arrays.meanings)),
    }
    if scored:
        results |= {
            "held_out": float(len(scored)),
            "held_out_accuracy": float(np.mean([right[scores.argmax()] for scores, right in scored])),
            "calibration_error_before": calibration_error(scored, 1.0),
            "calibration_error": calibration_error(scored, temperature),
        }
    return Trained(arrays, temperature, results)


class _Sums(NamedTuple):
    """Of the meanings of a set: (S,) their ids and entities, (S, K · D) sums of their q, (S,) how many."""

    meanings: Ids
    entities: Ids
    sums: Matrix
    counts: Matrix


class _Part:
    """The mentions of one set of documents, and what each of them means."""

    def __init__(
        self,
        reader: "SpanReader",
        taught: Sequence[Taught],
        cache: "Path",
        progress: Callable[[int, int], object] | None,
    ) -> None:
        self.layers = len(reader.config.layers)
        self.taught = taught
        self.vectors = features(reader, [one.document for one in taught], cache, progress=progress)
        found = list(self._learnt())
        self.rows = np.array([row for row, _, _, _ in found], np.int64)  # (R,)
        self.documents = np.array([number for _, number, _, _ in found], np.int64)
        self.meanings = np.array([meaning for _, _, meaning, _ in found], np.uint32)
        self.entities = np.array([entity for _, _, _, entity in found], np.uint32)
        self.mean = self._mean()

    def _learnt(self) -> "list[tuple[int, int, int, int]]":
        """Return row, document, meaning and entity of each right candidate."""
        found, row = [], 0
        for number, one in enumerate(self.taught):
            for mention, right in zip(one.document.mentions or (), one.right, strict=True):
                if right.any():
                    candidates = mention.candidates or NO_CANDIDATES
                    meant = meanings(candidates)[right].tolist()
                    found += [
                        (row, number, meaning, entity)
                        for meaning, entity in zip(meant, candidates.ids[right].tolist(), strict=True)
                    ]
                row += 1
        return found

    def _mean(self) -> Matrix:
        total = np.zeros(self.vectors.shape[1], np.float64)
        nothing = np.zeros(self.vectors.shape[1], np.float32)
        rows = np.unique(self.rows)
        for begin in range(0, len(rows), _BLOCK):
            total += self._queries(rows[begin : begin + _BLOCK], nothing).sum(0, dtype=np.float64)
        return (total / max(1, len(rows))).astype(np.float32)

    def _queries(self, rows: NDArray[np.int64], mean: Matrix) -> Matrix:
        return queries(self.vectors[rows].astype(np.float32), self.layers, mean)

    def sums(self, which: NDArray[np.bool_] | None = None) -> _Sums:
        """Return the sums over the mentions, or over those of *which* (R,)."""
        chosen = np.arange(len(self.rows)) if which is None else np.flatnonzero(which)
        ids, place = np.unique(self.meanings[chosen], return_inverse=True)
        entities = np.zeros(len(ids), np.uint32)
        entities[place] = self.entities[chosen]
        sums = np.zeros((len(ids), self.vectors.shape[1]), np.float32)
        for begin in range(0, len(chosen), _BLOCK):
            here = slice(begin, begin + _BLOCK)
            np.add.at(sums, place[here], self._queries(self.rows[chosen[here]], self.mean))
        return _Sums(ids, entities, sums, np.bincount(place, minlength=len(ids)).astype(np.float32))

    def held_out(self) -> NDArray[np.bool_]:
        """Return (R,) whether a mention is of a document that is held out; the same ones every time."""
        found: NDArray[np.bool_] = self.documents % _HELD_OUT == _HELD_OUT - 1
        return found

    def scored(self, scorer: RidgeScorer, held: NDArray[np.bool_]) -> list[tuple[Scores, NDArray[np.bool_]]]:
        """Return the scores (C,) of the mentions that are held out, and which candidates are right."""
        wanted = set(self.rows[held].tolist())
        found, row = [], 0
        for one in self.taught:
            for mention, right in zip(one.document.mentions or (), one.right, strict=True):
                if row in wanted:
                    query = self._queries(np.array([row]), self.mean)[0]
                    candidates: Candidates = mention.candidates or NO_CANDIDATES
                    found.append((scorer.scores(query, candidates), right))
                row += 1
        return found


def _fitted(
    parts: Sequence[_Sums], vectors: "Vectors", gloss_mean: Matrix, config: RidgeConfig, mean: Matrix
) -> RidgeArrays:
    """Join the sums, and fit the map."""
    ids, place = np.unique(np.concatenate([part.meanings for part in parts]), return_inverse=True)
    sums = np.zeros((len(ids), parts[0].sums.shape[1]), np.float32)
    counts, entities = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.uint32)
    begin = 0
    for part in parts:
        here = place[begin : begin + len(part.meanings)]
        sums[here] += part.sums
        counts[here] += part.counts
        entities[here] = part.entities
        begin += len(part.meanings)
    centroids = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    texts = texts_of(vectors.gather(entities), gloss_mean)  # (S, D + 1)
    counted = counts * (texts[:, -1] > 0)  # an entity without a text has nothing to say of the map
    weighted = texts * counted[:, None]
    square = weighted.T @ texts + config.ridge * np.eye(texts.shape[1], dtype=np.float32)
    weight = np.linalg.solve(square.astype(np.float64), (weighted.T @ centroids).astype(np.float64))
    return RidgeArrays(ids, centroids.astype(np.float16), counts, weight.astype(np.float32), mean, gloss_mean)


def _text_mean(vectors: "Vectors") -> Matrix:
    """Return the mean of the vectors of texts at length 1, (D,)."""
    total, count = np.zeros(vectors.width, np.float64), 0
    for begin in range(0, len(vectors), _BLOCK):
        block = np.asarray(vectors.matrix[begin : begin + _BLOCK])
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        total += (block / np.where(lengths > 0, lengths, 1)).sum(0, dtype=np.float64)
        count += int((lengths > 0).sum())
    return (total / max(1, count)).astype(np.float32)


def _telling(progress: Progress | None, stage: str) -> Callable[[int, int], object] | None:
    return None if progress is None else lambda done, total: progress(stage, done, total)
