"""Training a PMI table: from files of plain text to the values of pairs of words.

    count words     runs of word counts; the frequent words get their numbers
    count pairs     runs of pair counts, see `counting`
    add up          by SQL (DuckDB), within bounded memory
    values          PMI of the pairs that are left, in the order of the table; then divided by the largest

What is counted is kept in the folder of the training until the table is published.
"""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kgkit.building.options import LEAST_MEMORY, bytes_of
from kgkit.errors import MissingExtra, StoppedCounting, UsageError
from kgkit.evaluation.plain_text import read_sentences
from kgkit.home import Home
from kgkit.models.pmi import PMI
from kgkit.pmi.table import ARRAYS
from kgkit.training.job import Outcome, Plan, run_job
from kgkit.training.pmi.settings import PMITraining
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.training.pmi.values import PairValues, Vocabulary

_log = logging.getLogger(__name__)

_WORD_BYTES: Final = 400  # that a distinct word takes while words are counted
_KEY_BYTES: Final = 48  # that a pair takes while pairs are counted
_BLOCK: Final = 1 << 20  # numbers that are copied at once


def train_pmi(
    home: Home,
    name: str,
    training: PMITraining,
    *,
    memory: int | str = "4GB",
    workers: int = 1,
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Make a PMI table, and write it to `models/NAME` of *home*, in the place of an older one.

    Args:
        home, name, command, progress: as `kgkit.training.job.Trainer` takes them.
        training: texts and settings.
        memory: memory that counts may take, roughly, in bytes or as `4GB`; more of them go to the disk.
        workers: largest number of threads that add up.

    Returns:
        Folder of the table's files, as `run_job` returns it.

    Raises:
        UsageError: if a number is out of range, or there is no pair of words that is frequent enough.
        MissingExtra: if DuckDB or PyArrow is not installed.
        NotThere, SourceError: as `kgkit.evaluation.plain_text.read_sentences` does.
        BuildFailed: if memory does not suffice.
        KBBusy, WriteFailed: as `run_job` does.
        StoppedCounting: on Ctrl-C or SIGTERM; says which counts are kept.
    """
    size = bytes_of(memory)
    if size < LEAST_MEMORY:
        raise UsageError(f"memory is {size:,} bytes; counting needs {LEAST_MEMORY:,} at least")
    if workers < 1:
        raise UsageError(f"workers is {workers}; it is 1 or more")
    try:
        import kgkit.training.pmi.counting  # noqa: F401  # what is needed later is missed here
        from kgkit.building.engines.local import DuckDBSession  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "duckdb", "scale") from error

    def prepare(_: ExitStack) -> Plan:
        for path in training.data:  # each is there, and has a text
            next(read_sentences(path))
        return Plan((), partial(_train_or_stop, training, size, workers, progress))

    return run_job(PMI, home, name, training, prepare, files=training.data, command=command)


def _train_or_stop(
    training: PMITraining, memory: int, workers: int, progress: Progress | None, work: Path
) -> Outcome:
    """Return what `_train` does; say which counts are kept, where it is stopped.

    Raises:
        StoppedCounting: on Ctrl-C or SIGTERM.
    """
    try:
        return _train(training, memory, workers, progress, work)
    except KeyboardInterrupt as cause:
        stopped = StoppedCounting(_written_counts(work), cause)
        _log.warning("%s", stopped)
        raise stopped from cause


def _written_counts(work: Path) -> str:
    """Return which counts there are in the folder *work*, as a phrase; empty if there are none."""
    import pyarrow as pa

    from kgkit.training.pmi.counting import CountRuns

    for name, key in (("pairs", pa.int64()), ("words", pa.string())):
        end = CountRuns(work, name, key).end
        if end.sentences:
            of = "all sentences" if end.complete else f"the first {end.sentences:,} sentences"
            return f"the counts of {name} of {of}"
    return ""


def _train(
    training: PMITraining, memory: int, workers: int, progress: Progress | None, work: Path
) -> Outcome:
    """Count what the texts have, in the folder *work*, and make the values of the table."""
    import pyarrow as pa

    from kgkit.building.engines.local import DuckDBSession
    from kgkit.training.pmi.counting import CountRuns, count_pairs, count_words
    from kgkit.training.pmi.values import count_vocabulary, write_pair_values

    def report(stage: str, number: int) -> None:
        if progress is not None:
            progress(stage, number, 0)

    runs = CountRuns(work, "words", pa.string())
    files = count_words(
        training.sentences,
        runs,
        distinct=memory // _WORD_BYTES,
        report=partial(report, "counting words, sentences"),
    )
    with DuckDBSession(work, files, memory=memory, threads=workers) as session:
        vocabulary = count_vocabulary(session, training)
    files = count_pairs(
        training.sentences, {word: number for number, word in enumerate(vocabulary.counts)},
        CountRuns(work, "pairs", pa.int64()), window=training.window,
        positions=max(1, memory // (_KEY_BYTES * training.window)),
        report=partial(report, "counting pairs, sentences"),
    )  # fmt: skip
    report("adding up runs", len(files))
    with DuckDBSession(work, files, memory=memory, threads=workers) as session:
        table = write_pair_values(session, len(vocabulary.counts), training, work)
    results = {
        "occurrences": vocabulary.occurrences, "words": len(vocabulary.counts), "pairs": table.pairs,
        "largest": table.largest,
    }  # fmt: skip
    return Outcome(results, partial(_save, training, vocabulary, table))


def _save(
    training: PMITraining, vocabulary: "Vocabulary", table: "PairValues", staged: Path, _: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the arrays of the table; return the fields of its manifest that are its own."""
    words = [word.encode() for word in vocabulary.counts]
    small = {
        "words": np.frombuffer(b"".join(words), np.uint8),
        "ends": np.cumsum([len(word) for word in words]),
        "counts": np.fromiter(vocabulary.counts.values(), np.int64, len(words)),
        "starts": table.starts,
    }
    for name, array in small.items():
        np.save(staged / f"{name}.npy", array.astype(ARRAYS[name]))
    _copy(table.columns, np.int32, staged / "columns.npy", ARRAYS["columns"], 1.0)
    _copy(table.values, np.float64, staged / "values.npy", ARRAYS["values"], table.largest)
    settings = {"min_count": training.min_count, "min_pairs": training.min_pairs, "words": training.words}
    return {
        "window": training.window, "largest": table.largest, "words": len(words), "pairs": table.pairs,
        "config": settings,
    }  # fmt: skip


def _copy(source: Path, kind: type[np.generic], target: Path, stored: str, scale: float) -> None:
    """Write the numbers of a file as an array, each divided by *scale*."""
    numbers = np.memmap(source, kind, "r")
    array = np.lib.format.open_memmap(target, mode="w+", dtype=stored, shape=numbers.shape)
    for start in range(0, len(numbers), _BLOCK):
        block = numbers[start : start + _BLOCK]
        array[start : start + _BLOCK] = block if scale == 1 else block / scale
    array.flush()
