"""The engine of one machine: worker processes read, DuckDB groups within bounded memory."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import duckdb
import pyarrow as pa
from pyarrow import parquet

from kgkit.errors import BuildFailed, WriteFailed

__all__ = ["DuckDBSession"]

_DATABASE: Final = "grouping.duckdb"
_SPILL: Final = "spill"
_ROWS: Final = 1 << 15  # of a batch that is read
_OURS: Final = 0.35  # of the memory is for what is not DuckDB's: Python, and rows on their way


class DuckDBSession:
    """Tables in a DuckDB file; implements `Session`.

    Args:
        folder: for the file and for what does not fit into memory.
        files: Parquet, the rows of `records`.
        memory: bytes that may be used, by and large.
        threads: how many at most.
    """

    def __init__(self, folder: Path, files: Sequence[Path], *, memory: int, threads: int) -> None:
        self.folder = folder
        self._clear()  # of what a build that was killed has left
        with _told(folder):
            self._connection = duckdb.connect(
                folder / _DATABASE,
                config={
                    "memory_limit": f"{int(memory * (1 - _OURS))}B",
                    "threads": threads,
                    "temp_directory": str(folder / _SPILL),
                    "preserve_insertion_order": False,
                },
            )
            self._connection.execute(f"CREATE VIEW records AS SELECT * FROM {_read(*files)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._clear()  # it may be what the disk has no room for

    def _clear(self) -> None:
        shutil.rmtree(self.folder / _SPILL, ignore_errors=True)
        for left in self.folder.glob(f"{_DATABASE}*"):
            left.unlink()

    def make(self, name: str, query: str) -> None:
        with _told(self.folder):
            self._connection.execute(f"CREATE OR REPLACE TABLE made AS {query}")
            self.drop(name)
            self._connection.execute(f"ALTER TABLE made RENAME TO {name}")

    def put(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.drop(name)
        file = self.folder / f"{name}.parquet"
        with _told(self.folder):
            with parquet.ParquetWriter(file, schema, compression="zstd") as out:
                for batch in batches:
                    out.write_batch(batch)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {_read(file)}")
        file.unlink()

    def rows(self, query: str) -> Iterator[pa.RecordBatch]:
        # A cursor of its own: queries may be read while others are.
        with _told(self.folder), self._connection.cursor() as cursor:
            yield from cursor.sql(query).to_arrow_reader(_ROWS)

    def drop(self, *names: str) -> None:
        for name in names:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")


def _read(*files: Path) -> str:
    """Return the rows of Parquet files as SQL."""
    names = ", ".join("'{}'".format(str(file).replace("'", "''")) for file in files)
    return f"read_parquet([{names}])"


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Say what to do when memory or the disk is too small."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        if "max_temp_directory_size" in str(error):  # nothing more can be put aside: it is the disk
            raise _refused(error, folder) from error
        raise BuildFailed(
            "the grouping needs more memory: give it more (--memory 8GB), or fewer threads (--workers 1). "
            f"The parts that were read are kept; the same command goes on from them ({_first_line(error)})"
        ) from error
    except (duckdb.IOException, OSError) as error:
        raise _refused(error, folder) from error
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # so DuckDB says that the user did
            raise KeyboardInterrupt from error
        raise


def _refused(error: Exception, folder: Path) -> WriteFailed:
    written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(folder).free
    return WriteFailed(_first_line(error), written=written, free=free, where=folder)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
