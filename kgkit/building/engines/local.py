"""The engine of one machine: worker processes read, DuckDB groups within bounded memory."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import duckdb
import pyarrow as pa
from pyarrow import parquet

from kgkit.errors import BuildFailed, UsageError, WriteFailed

__all__ = ["DuckDBSession"]

_DATABASE: Final = "grouping.duckdb"
_SPILL: Final = "spill"
_ROWS: Final = 1 << 15  # of a batch that is read
_OURS: Final = 0.35  # of the memory is for what is not DuckDB's: Python, and rows on their way


_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")


class _DuckDBPaths:
    r"""Paths as DuckDB takes them: it reads `*`, `?` and `[` as patterns, and a backslash as a slash.

    A folder with such a character in its path is reached through a symbolic link, in a folder for links that
    `close` removes.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._links: dict[Path, Path] = {}

    def database(self, path: Path) -> str:
        """Return what DuckDB is to open as its database.

        It follows links before it makes the name of its log, in which `?` begins options, so a database in
        such a folder has no file: what the memory does not hold is spilled all the same.
        """
        return ":memory:" if _PATTERN.search(str(path.absolute())) else self(path)

    def __call__(self, path: Path) -> str:
        """Return *path*, whose name has no such character, so that DuckDB opens it and nothing else.

        Raises:
            UsageError: if there is no folder for links whose own path is without such characters.
        """
        folder = path.parent.absolute()  # without a slash at its begin, `md:` or `s3:` would be other places
        if not _PATTERN.search(str(folder)):
            return str(folder / path.name)
        if folder not in self._links:
            link = self._folder_of_links() / str(len(self._links))
            link.symlink_to(folder, target_is_directory=True)
            self._links[folder] = link
        return str(self._links[folder] / path.name)

    def _folder_of_links(self) -> Path:
        if self._folder is None:
            folders = [folder for folder in (tempfile.gettempdir(), "/tmp") if not _PATTERN.search(folder)]
            if not folders:
                raise UsageError(
                    r"the engine local cannot work in a home with *, ?, [, { or \ in its path: name another "
                    "with --home or KGKIT_HOME, or a TMPDIR without them"
                )
            self._folder = tempfile.TemporaryDirectory(prefix="kgkit-", dir=folders[0])
        return Path(self._folder.name)

    def close(self) -> None:
        """Remove the links."""
        if self._folder is not None:
            self._folder.cleanup()


class DuckDBSession:
    """Tables in a DuckDB database on the disk; implements `Session`.

    Args:
        folder: folder for the file and for what does not fit into memory.
        files: Parquet files with the rows of `records`.
        memory: bytes that may be used, roughly.
        threads: largest number of threads.
    """

    def __init__(self, folder: Path, files: Sequence[Path], *, memory: int, threads: int) -> None:
        self.folder, self._path = folder, _DuckDBPaths()
        self._clear()  # of what a build that was killed has left
        with _explain_errors(folder):
            self._connection = duckdb.connect(
                self._path.database(folder / _DATABASE),
                config={
                    "memory_limit": f"{int(memory * (1 - _OURS))}B",
                    "threads": threads,
                    "temp_directory": self._path(folder / _SPILL),
                    "preserve_insertion_order": False,
                },
            )
        self.view("records", files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._path.close()
        self._clear()  # it may be what the disk has no room for

    def _clear(self) -> None:
        shutil.rmtree(self.folder / _SPILL, ignore_errors=True)
        for path in self.folder.glob(f"{_DATABASE}*"):
            path.unlink()

    def make(self, name: str, query: str) -> None:
        """Write the rows of *query* into a table of DuckDB's, in the place of any table *name*."""
        with _explain_errors(self.folder):
            self._connection.execute(f"CREATE OR REPLACE TABLE made AS {query}")
            self.drop(name)
            self._connection.execute(f"ALTER TABLE made RENAME TO {name}")

    def put(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Write *batches* into a Parquet file, and load that as the table *name*."""
        self.drop(name)
        file = self.folder / f"{name}.parquet"
        with _explain_errors(self.folder):
            with parquet.ParquetWriter(file, schema, compression="zstd") as out:
                for batch in batches:
                    out.write_batch(batch)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {self._read(file)}")
        file.unlink()

    def view(self, name: str, files: Sequence[Path]) -> None:
        """Define *name* as a view of Parquet *files*, which queries read where they lie."""
        with _explain_errors(self.folder):
            self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {self._read(*files)}")

    def rows(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of *query* in its order, in batches of a fixed number of rows."""
        # A cursor of its own: queries may be read while others are.
        with _explain_errors(self.folder), self._connection.cursor() as cursor:
            yield from cursor.sql(query).to_arrow_reader(_ROWS)

    def drop(self, *names: str) -> None:
        """Drop tables; names that no table has are passed over."""
        for name in names:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")

    def _read(self, *files: Path) -> str:
        """Return the rows of Parquet files as SQL."""
        names = ", ".join("'{}'".format(self._path(file).replace("'", "''")) for file in files)
        return f"read_parquet([{names}])"


@contextmanager
def _explain_errors(folder: Path) -> Iterator[None]:
    """Say what to do when memory or the disk is too small."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        if "max_temp_directory_size" in str(error):  # nothing more can be put aside: it is the disk
            raise _refusal(error, folder) from error
        raise BuildFailed(
            "the grouping needs more memory: give it more (--memory 8GB), or fewer threads (--workers 1). "
            f"The parts that were read are kept; the same command goes on from them ({_first_line(error)})"
        ) from error
    except (duckdb.IOException, OSError) as error:
        raise _refusal(error, folder) from error
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # so DuckDB says that the user did
            raise KeyboardInterrupt from error
        raise


def _refusal(error: Exception, folder: Path) -> WriteFailed:
    written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(folder).free
    return WriteFailed(_first_line(error), written=written, free=free, where=folder)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
