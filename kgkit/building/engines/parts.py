"""Observing the parts of a source, each into one Parquet file, and remembering which are done.

    $KGKIT_HOME/cache/parts/NAME/WORK/    one build's; WORK is a digest of what is to be read, and how
      part-00000.parquet                  the rows of the first part
      part-00000.json                     written last: the part is done
      …                                   and whatever the engine needs beside them

A part that is done is not observed again: a build that was stopped goes on where it was.
The folder goes away when the build has been published.
"""

import hashlib
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import parquet

from kgkit.building.engines.columns import SCHEMA, RowsOfPart
from kgkit.building.sources import Part, name_source, reading_errors
from kgkit.errors import BuildFailed, WriteFailed
from kgkit.signals import interrupts_blocked
from kgkit.text import Folding

__all__ = [
    "Observe",
    "Observed",
    "PartsFolder",
    "ReadingProgress",
    "explain_write_errors",
    "observe_parts",
    "outlive_no_parent",
]


def outlive_no_parent() -> None:
    """Leave Ctrl-C to the parent, which stops its workers, and end this process when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it would wait for work for ever."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class Observed(msgspec.Struct, frozen=True):
    """What one part came to."""

    records: int
    units: int
    size: int


ReadingProgress = Callable[[int, int], None]
"""Is told how many parts have been read, and how many pages, or whatever the builder counts."""

Observe = Callable[["PartsFolder", Sequence[Part], Sequence[str], ReadingProgress], list[Path]]
"""Observes parts into a folder, entities of some types only, as the options say; returns the files."""


class PartsFolder:
    """Where the parts of one build lie until it is published.

    Args:
        root: the folder of all builds of one KB.
        work: settings that decide what the parts hold: anything msgspec can encode.
        folding: folding of the surfaces.
    """

    def __init__(self, root: Path, work: Any, folding: Folding) -> None:
        self.folding = folding
        digest = hashlib.blake2b(msgspec.json.encode([work, str(SCHEMA)]), digest_size=8).hexdigest()
        self.path = root / digest

    def create(self) -> None:
        """Make the folder, unless it is there, and remove what an earlier build has not finished.

        Raises:
            WriteFailed: if the disk refuses.
        """
        with explain_write_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            for unfinished in self.path.glob("*.new"):
                unfinished.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with all it holds, and the one it is in if it was the only one."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            self.path.parent.rmdir()

    def file(self, number: int) -> Path:
        """Return the Parquet file of a part."""
        return self.path / f"part-{number:05}.parquet"

    def observation(self, number: int) -> Observed | None:
        """Return what a part came to; None if it is not done."""
        try:
            observation = msgspec.json.decode(self._note(number).read_bytes(), type=Observed)
            return observation if self.file(number).stat().st_size == observation.size else None
        except (OSError, msgspec.DecodeError):
            return None

    def observe(
        self,
        part: Part,
        number: int,
        *,
        types: Sequence[str] = (),
        steps: bool,
        limit: int | None = None,
        tell: Callable[[int], None] = lambda units: None,
    ) -> Observed:
        """Observe one part, and write its rows.

        Args:
            part: part that is read.
            number: its number.
            types: kinds and types, as in `RowsOfPart`.
            steps: flag, as in `RowsOfPart`.
            limit: largest number of units of it.
            tell: callback that is told how many units have been read; what it raises ends the reading.

        Raises:
            SourceError: at the first thing that is not as it should be.
            WriteFailed: if the disk refuses.
        """
        rows = RowsOfPart(number, self.folding, types, steps=steps)
        file = self.file(number)
        # A name of its own: a worker that was given up may still be writing the part.
        unfinished = file.with_suffix(f".{secrets.token_hex(4)}.new")
        try:
            with (
                explain_write_errors(self.path),
                parquet.ParquetWriter(unfinished, SCHEMA, compression="zstd") as out,
            ):
                for batch in batches_of(part, rows, limit):
                    out.write_batch(batch)
                    tell(rows.units)
        except BaseException:
            unfinished.unlink(missing_ok=True)  # it may be what the disk has no room for
            raise
        with explain_write_errors(self.path):
            unfinished.replace(file)
            observation = Observed(rows.records, rows.units, file.stat().st_size)
            note = self._note(number)
            unfinished.write_bytes(msgspec.json.encode(observation))
            unfinished.replace(note)
        return observation

    def _note(self, number: int) -> Path:
        return self.path / f"part-{number:05}.json"


def batches_of(part: Part, rows: RowsOfPart, limit: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one part.

    Raises:
        SourceError: at the first thing that is not as it should be.
    """
    with reading_errors("read", part.path), name_source(part.path):
        batches = rows.batches(part.read(), limit)
    while True:
        with reading_errors("read", part.path), name_source(part.path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def observe_parts(
    folder: PartsFolder,
    parts: Sequence[Part],
    types: Sequence[str],
    tell: ReadingProgress,
    *,
    workers: int,
    steps: bool,
    limit: int | None,
) -> list[Path]:
    """Observe those of *parts* that are not done; return the files of all, in order.

    Args:
        folder: folder of the parts.
        parts: all parts of the source.
        types: kinds and types, as in `RowsOfPart`.
        tell: callback that is told now and then how far it is.
        workers: number of processes; with one, this one does it.
        steps: flag, as in `RowsOfPart`.
        limit: largest number of units, of the first parts; then one process reads them in turn.

    Raises:
        SourceError: at the first thing that is not as it should be; the parts that are done stay.
        WriteFailed: if the disk refuses.
        BuildFailed: if a worker was killed.
    """
    folder.create()
    outcomes = {number: outcome for number in range(len(parts)) if (outcome := folder.observation(number))}

    def report(units: int = 0) -> None:
        tell(len(outcomes), sum(outcome.units for outcome in outcomes.values()) + units)

    report()
    missing = [number for number in range(len(parts)) if number not in outcomes]
    if workers > 1 and len(missing) > 1 and limit is None:
        for number, outcome in _observe_in_processes(
            folder, parts, types, steps, missing, min(workers, len(missing))
        ):
            outcomes[number] = outcome
            report()
    for number, part in enumerate(parts):
        if number not in outcomes:
            outcomes[number] = folder.observe(
                part, number, types=types, steps=steps, limit=limit, tell=report
            )
            report()
        if limit is not None:
            limit -= outcomes[number].units
            if limit <= 0:
                break
    return [folder.file(number) for number in sorted(outcomes)]


def _observe_in_processes(
    folder: PartsFolder,
    parts: Sequence[Part],
    types: Sequence[str],
    steps: bool,
    missing: Sequence[int],
    workers: int,
) -> Iterator[tuple[int, Observed]]:
    """Yield what each of the *missing* parts came to, by its number, as soon as it is read."""
    # Spawned, not forked: this process may have threads, and what they hold would be held for ever.
    context = get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(stop,)) as pool:
        try:
            with interrupts_blocked():  # it starts processes
                tasks = {
                    pool.submit(_observe, folder, parts[number], number, types, steps): number
                    for number in missing
                }
            for task in as_completed(tasks):
                yield tasks[task], task.result()
        except BrokenProcessPool as error:
            raise BuildFailed(
                "a worker process was killed, most often because memory ran out: try fewer workers. Or "
                "it could not begin: it imports the builder, and the script that builds, whose call of "
                'build_kb has to stand under `if __name__ == "__main__":`. The parts that were read are '
                "kept; the same command goes on from them"
            ) from error
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


# In a worker: what `_begin` was given.
_stop: Event


class _Stopped(Exception):
    """Another worker has failed."""


def _begin(stop: Event) -> None:
    global _stop
    _stop = stop
    outlive_no_parent()


def _observe(folder: PartsFolder, part: Part, number: int, types: Sequence[str], steps: bool) -> Observed:
    def end_if_stopped(_: int) -> None:
        if _stop.is_set():
            raise _Stopped

    return folder.observe(part, number, types=types, steps=steps, tell=end_if_stopped)


@contextmanager
def explain_write_errors(folder: Path) -> Iterator[None]:
    """Say of a disk that refuses how much room there is.

    Args:
        folder: folder that is written to.

    Raises:
        WriteFailed: if the disk refuses.
    """
    try:
        yield
    except OSError as error:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        written = sum(file.stat().st_size for file in folder.glob("*")) if folder.exists() else 0
        free = shutil.disk_usage(existing).free
        raise WriteFailed(str(error), written=written, free=free, where=folder) from error
