"""Counts of words, and of pairs of words within windows, in files that may be larger than memory.

    WORK/words-00000.parquet, …    runs: (key, count) of a stretch of the texts, keys ascending and each once
    WORK/pairs-00000.parquet, …    likewise; the key of the words a <= b is a · V + b, of V words

A run is written when there is no more room for its counts; the same key in several runs is to be added up.
Its file says where its stretch ends (`RunEnd`), so that a training that was stopped goes on behind its last
run. Where runs end changes no sum.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from kgkit.building.engines.parts import explain_write_errors
from kgkit.evaluation.plain_text import PlainSentence
from kgkit.files import written
from kgkit.pmi import text_words

Report = Callable[[int], object]
"""Callback with the number of sentences that have been read."""

UNKNOWN: Final = -1
"""The number of a word that is not counted."""

_NOTE: Final = b"kgkit"
_EVERY: Final = 1_000  # sentences between two reports


class RunEnd(msgspec.Struct, frozen=True):
    """Where the stretch of a run ends.

    Attributes:
        sentences: number of sentences up to there.
        complete: whether these are all.
        tail: numbers of the last words, with which the next ones may be pairs.
    """

    sentences: int
    complete: bool
    tail: list[int] = []


class CountRuns:
    """Runs of counts in a folder.

    Args:
        folder: folder of the runs, which is made.
        name: what the names of their files begin with.
        key: type of the keys.
    """

    def __init__(self, folder: Path, name: str, key: pa.DataType) -> None:
        self.folder, self.name = folder, name
        self.schema = pa.schema([("key", key), ("count", pa.int64())])
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def files(self) -> list[Path]:
        """The files of all runs, in order."""
        return sorted(self.folder.glob(f"{self.name}-*.parquet"))

    @property
    def end(self) -> RunEnd:
        """Where the last run ends."""
        if not (files := self.files):
            return RunEnd(0, False)
        return msgspec.json.decode(parquet.read_schema(files[-1]).metadata[_NOTE], type=RunEnd)

    def add(self, keys: "pa.Array | NDArray[np.int64]", counts: NDArray[np.int64], end: RunEnd) -> None:
        """Write a run.

        Args:
            keys: (n,) ascending.
            counts: (n,) count of each key.
            end: where its stretch ends.

        Raises:
            WriteFailed: if the disk refuses.
        """
        schema = self.schema.with_metadata({_NOTE: msgspec.json.encode(end)})
        columns = [pa.array(keys, schema.field(0).type), pa.array(counts)]
        path = self.folder / f"{self.name}-{len(self.files):05}.parquet"
        with explain_write_errors(self.folder), written(path) as stream:
            parquet.write_table(pa.table(columns, schema), stream, compression="zstd")


def count_words(
    sentences: Iterable[PlainSentence], runs: CountRuns, *, distinct: int, report: Report
) -> list[Path]:
    """Count the words of sentences, those behind the last run.

    Args:
        sentences: all sentences of the texts.
        runs: runs that are added to, with words as keys.
        distinct: number of distinct words after which a run is written.
        report: callback with the number of sentences that have been read.

    Returns:
        The files of all runs.
    """
    counts: Counter[str] = Counter()

    def write(number: int, complete: bool) -> None:
        # By code points, which is the order of UTF-8 too.
        rows = sorted(counts.items())
        numbers = np.array([count for _, count in rows], np.int64)
        runs.add(pa.array([word for word, _ in rows], pa.string()), numbers, RunEnd(number, complete))
        counts.clear()

    number = runs.end.sentences
    for number, sentence in _remaining(sentences, runs.end, report):
        counts.update(text_words(sentence.text))
        if len(counts) >= distinct:
            write(number, complete=False)
    if not runs.end.complete:
        write(number, complete=True)
    return runs.files


def count_pairs(
    sentences: Iterable[PlainSentence],
    numbers: Mapping[str, int],
    runs: CountRuns,
    *,
    window: int,
    positions: int,
    report: Report,
) -> list[Path]:
    """Count the pairs of words of sentences, those behind the last run.

    Two words are a pair if there are fewer than *window* words between them, in one document: of three *the*
    next to each other, those are three pairs within a window of 2. A word without a number has its place
    among the others, and is in no pair.

    Args:
        sentences: all sentences of the texts.
        numbers: number of each word that is counted, from 0.
        runs: runs that are added to, with whole numbers as keys.
        window: largest distance of two words.
        positions: number of words after which a run is written.
        report: callback with the number of sentences that have been read.

    Returns:
        The files of all runs.
    """
    gap = array("q", [UNKNOWN] * window)  # between what no window is to join
    stretch, carried = array("q", runs.end.tail), len(runs.end.tail)

    def write(number: int, complete: bool) -> None:
        nonlocal carried
        keys = _pair_keys(np.array(stretch, np.int64), window, carried, len(numbers))
        tail = stretch[-window:]
        runs.add(*np.unique(keys, return_counts=True), RunEnd(number, complete, tail.tolist()))
        del stretch[:]
        stretch.extend(tail)
        carried = len(tail)

    number = runs.end.sentences
    for number, sentence in _remaining(sentences, runs.end, report):
        if sentence.begins:
            stretch.extend(gap)
        stretch.extend(numbers.get(word, UNKNOWN) for word in text_words(sentence.text))
        if len(stretch) - carried >= positions:
            write(number, complete=False)
    if not runs.end.complete:
        write(number, complete=True)
    return runs.files


def _remaining(
    sentences: Iterable[PlainSentence], end: RunEnd, report: Report
) -> Iterator[tuple[int, PlainSentence]]:
    """Yield the sentences behind the end of a run, each with its number, from 1."""
    if end.complete:
        return
    for number, sentence in enumerate(islice(sentences, end.sentences, None), end.sentences + 1):
        yield number, sentence
        if not number % _EVERY:
            report(number)


def _pair_keys(stretch: NDArray[np.int64], window: int, carried: int, words: int) -> NDArray[np.int64]:
    """Return the keys of all pairs of a stretch whose second word is not among the *carried* first ones."""
    keys, size = np.empty(len(stretch) * window, np.int64), 0
    for distance in range(1, min(window, len(stretch) - 1) + 1):
        start = max(0, carried - distance)
        first, second = stretch[start:-distance], stretch[start + distance :]
        counted = (first != UNKNOWN) & (second != UNKNOWN)
        first, second = first[counted], second[counted]
        keys[size : size + len(first)] = np.minimum(first, second) * words + np.maximum(first, second)
        size += len(first)
    return keys[:size]
