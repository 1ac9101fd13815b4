"""The rows of a table, whether its file is CSV, TSV or Parquet."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from kgkit.building import check_regular_file, csv_rows, sniff_format
from kgkit.errors import MissingExtra, SourceError

WORKBOOKS: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""So the files of spreadsheet programs begin."""

MAX_ROW_GROUP: Final = 4 << 30
"""Bytes of a row group of Parquet, uncompressed, at most: some of them are in memory at once."""

_PARQUET: Final = b"PAR1"
_ROWS_OF_BATCH: Final = 1_000


class Table(NamedTuple):
    """The rows of a file: the number of each, and its cells, which are texts in CSV.

    Attributes:
        header: names of the columns.
        rows: number and cells of each further row.
        unit: what the numbers count: lines, or rows where the file has no lines.
    """

    header: list[str]
    rows: Iterator[tuple[int, list[Any]]]
    unit: str


@contextmanager
def open_table(path: Path) -> Iterator[Table]:
    """Give the rows of a file of CSV, TSV or Parquet."""
    check_regular_file(path)
    with path.open("rb") as file:
        begin = file.read(4)
    if begin == _PARQUET:
        yield _parquet_table(path)
        return
    if begin in WORKBOOKS:
        raise SourceError(
            "is a workbook of a spreadsheet program: save the sheet as CSV in UTF-8, and name that file",
            path=path,
        )
    rows = csv_rows(path, sniff_format(path))
    line, header = next(rows, (1, []))
    if not any(name.strip() for name in header):
        raise SourceError("the first row names the columns, and this one is empty", path=path, line=line)
    yield Table([name.strip() for name in header], iter(rows), "line")


def _parquet_table(path: Path) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "pyarrow", "scale", "or save the table as CSV") from error

    def rows() -> Iterator[tuple[int, list[Any]]]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_ROWS_OF_BATCH):
                columns = [column.to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, [*cells]
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise SourceError(f"cannot be read on after row {number}: {error}", path=path) from None

    try:
        file = parquet.ParquetFile(path)
        groups = [file.metadata.row_group(index).total_byte_size for index in range(file.num_row_groups)]
        if max(groups, default=0) > MAX_ROW_GROUP:
            raise SourceError(
                f"has a row group of {max(groups):,} bytes, and {MAX_ROW_GROUP:,} are the most: write "
                "it with smaller ones",
                path=path,
            )
        return Table([str(name).strip() for name in file.schema_arrow.names], rows(), "row")
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"is no Parquet file: {error}", path=path) from None
