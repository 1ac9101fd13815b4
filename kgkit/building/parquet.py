"""Parquet files, a batch of rows at a time; pyarrow is loaded when one is opened."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kgkit.errors import MissingExtra, SourceError

__all__ = ["UnreadableCell", "open_parquet", "parquet_batches", "parquet_cells", "readable_cells"]

MAX_ROW_GROUP: Final = 4 << 30
"""Bytes of a row group of Parquet, uncompressed, at most: some of them are in memory at once."""

_ROWS_OF_BATCH: Final = 1_000
_CONVERSION_ERRORS: Final = (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError)


class UnreadableCell(NamedTuple):
    """A cell that is no Python value, and why."""

    reason: str


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


def parquet_batches(file: Any, path: Path, columns: Sequence[int] | None = None) -> Iterator[Any]:
    """Yield the rows of such a file as batches of pyarrow, in order.

    Args:
        file: file of `open_parquet`.
        path: its path, for errors.
        columns: indices of the columns that are read; None for all. A batch has these in the file's order, or
            all where two columns have one name, or one has a dot in its name, which pyarrow reads as a path.

    Raises:
        SourceError: if it cannot be read on; says after which row.
    """
    import pyarrow

    number = 0
    names = None
    every = file.schema_arrow.names
    if columns is not None and len(set(every)) == len(every) and not any("." in name for name in every):
        names = [every[index] for index in columns]
    batches = file.iter_batches(batch_size=_ROWS_OF_BATCH, columns=names)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise SourceError(f"cannot be read on after row {number}: {error}", path=path) from None
        if batch is None:
            return
        number += batch.num_rows
        yield batch


def parquet_cells(file: Any, path: Path, columns: Sequence[int]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the number of each row of such a file, from 1, and its cells; None in columns that are not read.

    Args:
        file: file of `open_parquet`.
        path: its path, for errors.
        columns: indices of the columns that are read.

    Raises:
        SourceError: if a cell of these columns, or the file, cannot be read; says in which row.
    """
    names = file.schema_arrow.names
    number = 0
    for batch in parquet_batches(file, path, columns):
        indices = range(len(names)) if batch.num_columns == len(names) else sorted(set(columns))
        nothing = [None] * batch.num_rows
        cells = [nothing] * len(names)
        for column, index in zip(batch.columns, indices, strict=True):
            if index in columns:
                cells[index] = readable_cells(column)
        for row in zip(*cells, strict=True):
            number += 1
            for index in columns:
                if isinstance(row[index], UnreadableCell):
                    raise SourceError(
                        f"row {number:,}: the cell in column {names[index]!r} cannot be read: "
                        f"{row[index].reason}",
                        path=path,
                    )
            yield number, [*row]


def readable_cells(column: Any) -> list[Any]:
    """Return the cells of a column of pyarrow as Python values, an `UnreadableCell` for each that is none.

    Dates that Python has no values for are texts as ISO 8601 has them: those beyond the years 1 to 9999,
    times to the nanosecond, and times in zones that are not known here, which are given in UTC.
    """
    from pyarrow import ArrowException, duration, timestamp, types

    kind = column.type
    if types.is_duration(kind) and kind.unit == "ns":  # else pandas' own type is given
        column = column.cast(duration("us"), safe=False)
    elif types.is_timestamp(kind) and kind.unit == "ns":
        try:
            column = column.cast(timestamp("us", kind.tz))
        except ArrowException:
            return [_date_text(cell) if cell.is_valid else None for cell in column]
    with suppress(ArrowException, *_CONVERSION_ERRORS):
        values: list[Any] = column.to_pylist()
        return values
    return [*map(_cell, column)]


def _cell(cell: Any) -> Any:
    """Return a scalar of pyarrow as a Python value."""
    from pyarrow import ArrowException, types

    try:
        return cell.as_py()
    except (ArrowException, *_CONVERSION_ERRORS) as error:
        if types.is_date(cell.type) or types.is_timestamp(cell.type):
            return _date_text(cell)
        return UnreadableCell(str(error))


def _date_text(cell: Any) -> str | UnreadableCell:
    """Return a date, or a time, of pyarrow as ISO 8601 has it."""
    from pyarrow import types

    if types.is_timestamp(cell.type):
        unit, zone = cell.type.unit, "+00:00" if cell.type.tz else ""
    else:
        unit, zone = "D" if types.is_date32(cell.type) else "ms", ""
    date = np.datetime64(cell.value, unit)
    if types.is_date64(cell.type):
        date = date.astype("datetime64[D]")
    if np.isnat(date):
        return UnreadableCell(f"{cell.value} is no date")
    year, rest = str(date).removeprefix("-").split("-", 1)
    return f"{'-' if str(date).startswith('-') else ''}{year:0>4}-{rest}{zone}"
