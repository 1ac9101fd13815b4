"""Parquet files, a batch of rows at a time; pyarrow is loaded when one is opened."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kgkit.errors import MissingExtra, SourceError

__all__ = ["open_parquet", "parquet_batches"]

MAX_ROW_GROUP: Final = 4 << 30
"""Bytes of a row group of Parquet, uncompressed, at most: some of them are in memory at once."""

_ROWS_OF_BATCH: Final = 1_000


def open_parquet(path: Path) -> Any:
    """Return a file as a `pyarrow.parquet.ParquetFile`.

    Raises:
        MissingExtra: if pyarrow is not installed.
        SourceError: if it is no Parquet file, or has a row group of more than `MAX_ROW_GROUP` bytes.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "pyarrow", "scale", "or save the table as CSV") from error
    try:
        file = parquet.ParquetFile(path)
        groups = [file.metadata.row_group(index).total_byte_size for index in range(file.num_row_groups)]
        if max(groups, default=0) > MAX_ROW_GROUP:
            raise SourceError(
                f"has a row group of {max(groups):,} bytes, and {MAX_ROW_GROUP:,} are the most: write "
                "it with smaller ones",
                path=path,
            )
        return file
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"is no Parquet file: {error}", path=path) from None


def parquet_batches(file: Any, path: Path) -> Iterator[Any]:
    """Yield the rows of such a file as batches of pyarrow, in order.

    Raises:
        SourceError: if it cannot be read on; says after which row.
    """
    import pyarrow

    number = 0
    batches = file.iter_batches(batch_size=_ROWS_OF_BATCH)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise SourceError(f"cannot be read on after row {number}: {error}", path=path) from None
        if batch is None:
            return
        number += batch.num_rows
        yield batch
