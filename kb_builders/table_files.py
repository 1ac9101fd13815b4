"""The rows of a table, whether its file is CSV, TSV or Parquet."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from kgkit.building import check_regular_file, csv_or_bad_rows, open_parquet, parquet_cells, sniff_format
from kgkit.errors import SourceError

WORKBOOKS: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""So the files of spreadsheet programs begin."""

_PARQUET: Final = b"PAR1"


class Table(NamedTuple):
    """The rows of a file: the number of each, and its cells, which are texts in CSV.

    Attributes:
        header: names of the columns.
        rows: function that gives number and cells of each further row, once, and an error in the place of
            the cells of one that cannot be read; of Parquet, cells of the columns with the indices that it
            is given alone, and None in the others.
        unit: what the numbers count: lines, or rows where the file has no lines.
    """

    header: list[str]
    rows: Callable[[Sequence[int]], Iterator[tuple[int, list[Any] | SourceError]]]
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
    rows = csv_or_bad_rows(path, sniff_format(path))
    line, header = next(rows, (1, []))
    if isinstance(header, SourceError):
        raise header
    if not any(name.strip() for name in header):
        raise SourceError("the first row names the columns, and this one is empty", path=path, line=line)
    yield Table([name.strip() for name in header], lambda columns: iter(rows), "line")


def _parquet_table(path: Path) -> Table:
    file = open_parquet(path)
    header = [str(name).strip() for name in file.schema_arrow.names]
    return Table(header, lambda columns: parquet_cells(file, path, columns), "row")
