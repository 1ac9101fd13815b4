"""The engine of one machine: worker processes read, DuckDB groups within bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import duckdb
import pyarrow as pa
from pyarrow import parquet

from kgkit.errors import BuildFailed, WriteFailed

__all__ = ["DuckDBSession"]

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
        self._put: dict[str, Path] = {}
        database = folder / "grouping.duckdb"
        for left in folder.glob(f"{database.name}*"):
            left.unlink()
        with _told(folder):
            self._connection = duckdb.connect(
                database,
                config={
                    "memory_limit": f"{int(memory * (1 - _OURS))}B",
                    "threads": threads,
                    "temp_directory": str(folder / "spill"),
                    "preserve_insertion_order": False,
                },
            )
            names = ", ".join("'{}'".format(str(file).replace("'", "''")) for file in files)
            self._connection.execute(f"CREATE VIEW records AS SELECT * FROM read_parquet([{names}])")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def make(self, name: str, query: str) -> None:
        with _told(self.folder):
            self._connection.execute(f"CREATE OR REPLACE TABLE made AS {query}")
            self.drop(name)
            self._connection.execute(f"ALTER TABLE made RENAME TO {name}")

    def put(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.drop(name)
        file = self._put[name] = self.folder / f"{name}.parquet"
        with _told(self.folder), parquet.ParquetWriter(file, schema, compression="zstd") as out:
            for batch in batches:
                out.write_batch(batch)
        quoted = str(file).replace("'", "''")
        self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{quoted}')")

    def rows(self, query: str) -> Iterator[pa.RecordBatch]:
        # A cursor of its own: queries may be read while others are.
        with _told(self.folder), self._connection.cursor() as cursor:
            yield from cursor.sql(query).to_arrow_reader(_ROWS)

    def drop(self, *names: str) -> None:
        for name in names:
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")
            if name in self._put:
                self._put.pop(name).unlink(missing_ok=True)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Say what to do when memory or the disk is too small."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise BuildFailed(
            "the grouping needs more memory: give it more (--memory 8GB), or fewer threads (--workers 1). "
            f"The parts that were read are kept; the same command goes on from them ({_first_line(error)})"
        ) from error
    except duckdb.IOException as error:
        from shutil import disk_usage

        written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        raise WriteFailed(
            _first_line(error), written=written, free=disk_usage(folder).free, where=folder
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
