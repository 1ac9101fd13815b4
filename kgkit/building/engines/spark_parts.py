"""Observing parts on Spark's workers, each into its Parquet file, as the local engine does."""

import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from kgkit.building.engines.parts import PartsFolder, ReadingProgress
from kgkit.building.engines.spark_start import explain_spark_errors
from kgkit.building.options import kgkit_version
from kgkit.building.sources import Part
from kgkit.errors import BuildFailed, KgkitError, SourceError

__all__ = ["observe_on_workers"]

_EVERY: Final = 5.0  # seconds between two reports
_OBSERVED_SCHEMA: Final = "number long, records long, units long"  # what a worker returns for each part
_SHARED: Final = "the home and the source have to lie where all machines see them, under one path"


class _Work(NamedTuple):
    """What the workers are told.

    Attributes:
        folder: folder of the parts.
        reports: the folder for errors of parts.
        parts: those to be read, with their numbers.
        types, steps: values as in `RowsOfPart`.
        version: version of the kgkit that builds.
    """

    folder: PartsFolder
    reports: Path
    parts: Sequence[tuple[int, Part]]
    types: Sequence[str]
    steps: bool
    version: str


class _Failure(msgspec.Struct, frozen=True):
    """An error on its way to the process that builds; `path` and what follows are of a `SourceError`."""

    sentence: str
    path: str | None = None
    line: int | None = None
    text: str | None = None
    of_source: bool = False

    def error(self) -> KgkitError:
        """Return the error that the driver raises, with file and line if a source was at fault."""
        if not self.of_source:
            return BuildFailed(self.sentence)
        path = None if self.path is None else Path(self.path)
        return SourceError(self.sentence, path=path, line=self.line, text=self.text)


def observe_on_workers(
    session: SparkSession,
    folder: PartsFolder,
    reports: Path,
    parts: Sequence[Part],
    *,
    types: Sequence[str],
    steps: bool,
    tell: ReadingProgress,
) -> list[Path]:
    """Observe those of *parts* that are not done, one a task; return the files of all, in order.

    A task whose worker is lost is given to another one, which reads that part anew.

    Args:
        session: session of Spark.
        folder: folder of the parts.
        reports: an empty folder for errors of workers.
        parts: all parts of the source.
        types: kinds and types, as in `RowsOfPart`.
        steps: flag, as in `RowsOfPart`.
        tell: callback that is told now and then how far it is.

    Raises:
        SourceError: at the first thing that is not as it should be; the parts that are done stay.
        BuildFailed: if workers are lost again and again, or do not see the folder.
    """
    missing = [(number, part) for number, part in enumerate(parts) if folder.observation(number) is None]

    def report() -> None:
        outcomes = [outcome for number in range(len(parts)) if (outcome := folder.observation(number))]
        tell(len(outcomes), sum(outcome.units for outcome in outcomes))

    report()
    if missing:
        _observe(session, _Work(folder, reports, missing, types, steps, kgkit_version()), report)
        unseen = [number for number, _ in missing if folder.observation(number) is None]
        if unseen:
            raise BuildFailed(
                f"workers have read {len(unseen)} parts, but nothing of them is in {folder.path}: {_SHARED}"
            )
    return [folder.file(number) for number in range(len(parts))]


def _observe(session: SparkSession, work: _Work, report: Callable[[], None]) -> None:
    context = session.sparkContext
    group = f"kgkit {work.folder.path.name}"

    def job() -> None:
        """Run one task of Spark for each part."""
        context.setJobGroup(group, "kgkit reads the parts of a source", interruptOnCancel=True)
        tasks = len(work.parts)
        session.range(0, tasks, 1, tasks).mapInArrow(
            partial(observe_batches, work), _OBSERVED_SCHEMA
        ).collect()

    def look() -> None:
        """Report what workers have read, and raise the error of one that failed."""
        report()
        for file in sorted(work.reports.glob("failed-*.json")):
            raise msgspec.json.decode(file.read_bytes(), type=_Failure).error()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(job)
        try:
            while wait([running], timeout=_EVERY).not_done:
                look()
        except BaseException:
            context.cancelJobGroup(group)
            raise
    look()
    with explain_spark_errors(work.reports):
        running.result()


def observe_batches(work: _Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Observe the parts that stand at the places in *batches*, in a worker; yield what they came to."""
    for batch in batches:
        for index in batch.column(0).to_pylist():
            number, part = work.parts[index]
            if row := _observe_part(work, number, part):
                yield pa.RecordBatch.from_pylist([row])


def _observe_part(work: _Work, number: int, part: Part) -> dict[str, int] | None:
    _check_machine(work)
    try:
        outcome = work.folder.observe(part, number, types=work.types, steps=work.steps)
    except KgkitError as error:
        # It would be the same a second time: no failure of the task, which Spark repeats.
        report = work.reports / f"failed-{number:05}"
        report.write_bytes(msgspec.json.encode(_failure(error)))
        report.rename(report.with_suffix(".json"))
        return None
    return {"number": number, "records": outcome.records, "units": outcome.units}


def _check_machine(work: _Work) -> None:
    """Say what is wrong with this machine, through Spark: there may be no folder to write it to."""
    if not work.reports.is_dir():
        raise BuildFailed(f"the machine {socket.gethostname()} sees no folder {work.reports}: {_SHARED}")
    if (here := kgkit_version()) != work.version:
        raise BuildFailed(
            f"the machine {socket.gethostname()} has kgkit {here}, and the one that builds {work.version}: "
            "install the same on all of them"
        )


def _failure(error: KgkitError) -> _Failure:
    if not isinstance(error, SourceError):
        return _Failure(str(error))
    path = error.path
    if path is not None and not path.exists():
        return _Failure(f"the machine {socket.gethostname()} sees no {path}: {_SHARED}")
    return _Failure(
        error.message, None if path is None else str(path), error.line, error.text, of_source=True
    )
