"""The engine of several machines: Spark's workers read, and Spark groups.

The folder of the build has to be one that all machines see under one path. The parts lie in it as
the local engine writes them; what Spark makes of them lies beside them in `spark/`:

    part-00000.parquet …   see `parts`
    spark.log              what Spark says
    spark/NAME-N/          a table, or the rows of a query while they are read
    spark/reports-…/       errors of parts
    spark/local/           what does not fit into memory, where Spark runs on this machine alone
"""

import secrets
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from kgkit.building.engines.parts import Observe, PartsFolder, ReadingProgress, observe_parts
from kgkit.building.engines.spark_start import explain_spark_errors, spark_session
from kgkit.building.options import BuildOptions
from kgkit.building.sources import Part
from kgkit.errors import BuildFailed, KgkitError, SourceError
from kgkit.plugins import kgkit_version

__all__ = ["SparkTables", "spark_tables"]

_ROWS: Final = 1 << 15  # of a batch that is read
_ROW_GROUP: Final = 16 << 20  # bytes of a stretch of rows that Spark writes at once, and we read
_OF_A_TASK: Final = 16 << 20  # bytes of the parts, which are compressed, for one task of a grouping
_CODEC: Final = "zstd"


class SparkTables:
    """Tables as Parquet in a folder, and views of them; implements `Session`.

    A table is written as soon as it is made: a worker that is lost takes with it what it was
    doing, and nothing that was done before.

    Args:
        session: session of Spark; its views are this object's own.
        folder: folder for the tables; all machines see it.
        files: Parquet files with the rows of `records`.
    """

    def __init__(self, session: SparkSession, folder: Path, files: Sequence[Path]) -> None:
        self.session, self.folder = session, folder
        self._folders: dict[str, Path] = {}
        self._number = count()
        with explain_spark_errors(folder):
            context = session.sparkContext
            if not context.getConf().contains("spark.sql.shuffle.partitions"):
                size = sum(file.stat().st_size for file in files)
                tasks = max(2 * context.defaultParallelism, size // _OF_A_TASK)
                session.conf.set("spark.sql.shuffle.partitions", str(tasks))
        self.view("records", files)

    def make(self, name: str, query: str) -> None:
        """Write the rows of *query* as Parquet files into a new folder, and let *name* stand for them."""
        folder = self._folder(name)
        with explain_spark_errors(self.folder):
            table = self.session.sql(query)
            _write(table, folder)
            self._view(name, folder, self.session.read.schema(table.schema).parquet(_pattern(folder)))

    def put(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Write *batches* as one Parquet file into a new folder, and let *name* stand for it."""
        folder = self._folder(name)
        folder.mkdir()
        with parquet.ParquetWriter(folder / "rows.parquet", schema, compression=_CODEC) as out:
            for batch in batches:
                out.write_batch(batch)
        with explain_spark_errors(self.folder):
            self._view(name, folder, self._read([folder]))

    def view(self, name: str, files: Sequence[Path]) -> None:
        """Define *name* as a view of Parquet *files* on storage that all workers see."""
        with explain_spark_errors(self.folder):
            self._read(files).createOrReplaceTempView(name)

    def rows(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of *query* in its order; the files they are written to are removed one by one."""
        # Written by the workers and read from the files: this process holds one batch at a time.
        folder = self._folder("rows")
        try:
            with explain_spark_errors(self.folder):
                _write(self.session.sql(query), folder)
            for file in _in_order(folder):
                with parquet.ParquetFile(file) as rows:
                    yield from rows.iter_batches(_ROWS)
                file.unlink()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def drop(self, *names: str) -> None:
        """Remove tables with their folders; names that no table has are passed over."""
        for name in names:
            if name in self._folders:
                self.session.catalog.dropTempView(name)
                shutil.rmtree(self._folders.pop(name), ignore_errors=True)

    def _folder(self, name: str) -> Path:
        return self.folder / f"{name}-{next(self._number)}"

    def _read(self, folders: Sequence[Path]) -> DataFrame:
        return self.session.read.parquet(*map(_pattern, folders))

    def _view(self, name: str, folder: Path, table: DataFrame) -> None:
        older = self._folders.get(name)
        table.createOrReplaceTempView(name)
        self._folders[name] = folder
        if older is not None:
            shutil.rmtree(older, ignore_errors=True)


@contextmanager
def spark_tables(
    folder: PartsFolder,
    parts: Sequence[Part],
    options: BuildOptions,
    *,
    steps: bool,
    tell: ReadingProgress,
    tell_stage: Callable[[str], None],
) -> Iterator[tuple[SparkTables, Observe]]:
    """Start Spark, let its workers read *parts*, and give their rows as tables; Spark ends afterwards.

    What comes with the tables lets the workers read other parts into another folder.

    Args:
        folder: folder of the parts.
        parts: all parts of the source.
        options: options of the build.
        steps: whether the records come with `Step`.
        tell: callback that is told now and then how far the reading is.
        tell_stage: callback that is told what is being done.

    Raises:
        SourceError: at the first thing that is not as it should be; the parts that are done stay.
        UsageError: if Spark cannot be started.
        BuildFailed: if workers were killed again and again, or do not see the folder.
        WriteFailed: if the disk refuses.
    """
    folder.create()
    work = folder.path / "spark"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        tell_stage("starting Spark")
        with spark_session(work, options) as session:

            def observe(
                folder: PartsFolder,
                parts: Sequence[Part],
                types: Sequence[str],
                tell: ReadingProgress,
            ) -> list[Path]:
                if options.limit is not None:
                    # What comes first has to be read first, and is little.
                    return observe_parts(
                        folder, parts, types, tell, workers=1, steps=steps, limit=options.limit
                    )
                folder.create()
                # A worker of an earlier build that was given up may still fail, and is not to fail this one.
                reports = work / f"reports-{secrets.token_hex(4)}"
                reports.mkdir()
                return _observe_on_workers(
                    session, folder, reports, parts, types=types, steps=steps, tell=tell
                )

            yield SparkTables(session, work, observe(folder, parts, options.types, tell)), observe
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write(rows: DataFrame, folder: Path) -> None:
    rows.write.option("parquet.block.size", _ROW_GROUP).parquet(_uri(folder), compression=_CODEC)


def _uri(path: Path) -> str:
    """Return how Spark calls a file it writes: one of the machine's own file system."""
    return f"file:{path}"


def _pattern(path: Path) -> str:
    """Return how Spark calls a file it reads, where a name could be a pattern for several."""
    return _uri(path).translate({ord(letter): f"\\{letter}" for letter in "{}[]*?\\"})


def _in_order(folder: Path) -> list[Path]:
    """Return the files of a table, those of the first task first: part-TASK-…-cNUMBER.zstd.parquet."""

    def task_and_number(file: Path) -> tuple[int, str]:
        _, task, suffix = file.name.split("-", 2)
        return int(task), suffix

    return sorted(folder.glob("part-*.parquet"), key=task_and_number)


# -- parts on workers --------------------------------------------------------

_EVERY: Final = 5.0  # seconds between two reports
_OBSERVED_SCHEMA: Final = "number long, records long, units long"  # what a worker returns for each part
_SHARED: Final = "the home and the source have to lie where all machines see them, under one path"


class _Work(NamedTuple):
    """Settings of the workers.

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


def _observe_on_workers(
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
    with explain_spark_errors(work.folder.path):
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
    """Send a fault of this machine through Spark: there may be no folder to write it to."""
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
