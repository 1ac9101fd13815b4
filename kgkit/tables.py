"""Tables: CSV and TSV with quoted fields, which may hold line ends, and Parquet, a batch of rows at a time.

pyarrow is loaded when a Parquet file is opened.
"""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from kgkit.errors import MissingExtra, SourceError
from kgkit.files import MAX_RECORD, checked_file, not_utf8, opened, raw_or_bad_lines

__all__ = [
    "TableFormat", "TableRow", "UnreadableCell", "csv_cell", "csv_line", "csv_or_bad_rows", "csv_rows",
    "csv_rows_of",
    "open_parquet", "parquet_batches", "parquet_cells", "readable_cells", "rounded_cell", "sniff_format",
    "table_rows",
]  # fmt: skip

DELIMITERS: Final = (",", ";", "\t", "|")
"""Separators of the fields of a table whose format is not known."""

_TO_QUOTE: Final = re.compile(r'["\r\n]')
_DELIMITER_LINE: Final = "sep="
"""So the first line of a table begins in which Excel finds its delimiter."""

# -- CSV --------------------------------------------------------------------


class TableFormat(NamedTuple):
    """How the rows of a table are written.

    Attributes:
        delimiter: character between two fields.
        quoted: whether a field that holds a delimiter or a line end stands in double quotes.
        skipped: number of lines before the header.
    """

    delimiter: str = ","
    quoted: bool = True
    skipped: int = 0


class TableRow(NamedTuple):
    """A row of CSV.

    Attributes:
        begin: line at which it begins, from 1.
        end: line at which it ends.
        fields: its fields; or what is wrong with it.
    """

    begin: int
    end: int
    fields: list[str] | SourceError


def csv_rows(
    path: Path, table_format: TableFormat | None = None, *, keep_blank: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield `(line, fields)` of a table, its header among them.

    A quoted field may go over several lines: the number is that of the last one.

    Args:
        path: file in UTF-8; it may be compressed.
        table_format: format of the table; None: tabs without quotes if its name says `.tsv`, as KGX writes
            them, else commas.
        keep_blank: whether a blank line is a row of empty cells: before the last row, or in a single column.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is no table of UTF-8; says where.
    """
    for number, fields in csv_or_bad_rows(path, table_format, keep_blank=keep_blank):
        if isinstance(fields, SourceError):
            raise fields
        yield number, fields


def csv_or_bad_rows(
    path: Path, table_format: TableFormat | None = None, *, keep_blank: bool = False
) -> Iterator[tuple[int, list[str] | SourceError]]:
    """Yield the rows of a table as `csv_rows` does, and an error in the place of a damaged one.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read on, or its first line is no text.
    """
    checked_file(path)
    if table_format is None:
        table_format = TableFormat("\t", quoted=False) if ".tsv" in path.suffixes else TableFormat()
    with opened(path) as file:
        for _, end, fields in table_rows(file, table_format, path, keep_blank=keep_blank):
            yield end, fields


def csv_rows_of(
    file: BinaryIO,
    table_format: TableFormat | None = None,
    path: Path | None = None,
    *,
    keep_blank: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """Yield `(line, fields)` of a table in an open file, as `csv_rows` does.

    Args:
        file: file in UTF-8, uncompressed.
        table_format: format of the table; None: as its first line says.
        path: path of the file, for errors.
        keep_blank: whether a blank line is a row of empty cells: before the last row, or in a single column.

    Raises:
        SourceError: if it is no table of UTF-8; says where.
    """
    for _, end, fields in table_rows(file, table_format, path, keep_blank=keep_blank):
        if isinstance(fields, SourceError):
            raise fields
        yield end, fields


def table_rows(
    file: BinaryIO,
    table_format: TableFormat | None = None,
    path: Path | None = None,
    *,
    keep_blank: bool = False,
) -> Iterator[TableRow]:
    """Yield the rows of a table in an open file, those that are damaged as errors.

    A row that is not as wide as the first one is damaged, too. Of one whose quotes do not match, the first
    line is damaged, and the next row begins in the second.

    Args:
        file: file in UTF-8, uncompressed.
        table_format: format of the table; None: as its first line says.
        path: path of the file, for errors.
        keep_blank: whether a blank line is a row of empty cells: before the last row, or in a single column.

    Raises:
        SourceError: if it cannot be read on, or its first line is no text.
    """
    csv.field_size_limit(MAX_RECORD)
    damage: list[SourceError] = []  # of the lines of a row
    lines = _LinesOfRows(_csv_lines(file, path, damage))
    if table_format is None:
        table_format = format_of_line(next(lines, ""))
        lines.back(0)
    for _ in range(table_format.skipped):
        next(lines, None)
    reader = csv.reader(
        lines,
        delimiter=table_format.delimiter,
        quoting=csv.QUOTE_MINIMAL if table_format.quoted else csv.QUOTE_NONE,
        strict=table_format.quoted,
    )
    width = blank = 0  # fields of the header, and blank lines since the last row
    while True:
        begin = lines.begin_row()
        fields: list[str] | None = None
        problem = ""
        try:
            if (fields := next(reader, None)) is None:
                return
        except csv.Error as error:
            problem = _reason(error, begin)
            if not damage:
                lines.back(1)
        end = lines.number
        if fields == [] and keep_blank and width == 1:
            fields = [""]
        if fields == []:
            blank += width > 0
            continue
        if keep_blank:
            for line in range(begin - blank, begin):
                yield TableRow(line, line, [""] * width)
        blank = 0
        if fields is not None and not damage:
            width = width or len(fields)
            if len(fields) == width:
                yield TableRow(begin, end, fields)
                continue
            problem = f"expected {width} fields, as the header has them, found {len(fields)}"
        text = "".join(lines.row).rstrip() if fields is None else table_format.delimiter.join(fields)
        yield TableRow(
            begin, end, damage[0] if damage else SourceError(problem, path=path, line=begin, text=text)
        )
        damage.clear()


class _LinesOfRows:
    """The lines of a table, of which those of the row that is being read can be read again.

    Attributes:
        row: lines of the row so far.
        number: number of the last of them.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._again = lines, deque[str]()
        self.row, self.number = list[str](), 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.row.append(line := self._again.popleft() if self._again else next(self._lines))
        self.number += 1
        return line

    def begin_row(self) -> int:
        """Begin a row with the next line; return its number."""
        self.row = []
        return self.number + 1

    def back(self, kept: int) -> None:
        """Let the lines of the row be read again, all but the first ones, as many as *kept* says."""
        again, self.row = self.row[kept:], self.row[:kept]
        self.number -= len(again)
        self._again.extendleft(reversed(again))


def _csv_lines(file: BinaryIO, path: Path | None, damage: list[SourceError]) -> Iterator[str]:
    """Yield the lines of a table; add the error of one that is no UTF-8 to *damage*, and read on."""
    for number, raw in raw_or_bad_lines(file, path, MAX_RECORD):
        if isinstance(raw, SourceError):
            damage.append(raw)
            yield "\ufffd\n"
            continue
        if number == 1 and b"\0" in raw:
            raise SourceError("a NUL byte: this is no text file", path=path, line=1)
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            damage.append(not_utf8(error, path, number))
            line = raw.decode(errors="replace")
        yield line


def _reason(error: csv.Error, begin: int) -> str:
    """Return the problem of the row that begins in the line *begin*."""
    if str(error) == "unexpected end of data":
        return f"unexpected end of data: a quote in the row that begins in line {begin} is not closed"
    if "expected after" in str(error):
        return f"{error}: within quotes a quote is written twice"
    return str(error)


def sniff_format(path: Path) -> TableFormat:
    """Return the format of a table, by its first line: the delimiter that it has most of, outside of quotes.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is no table of UTF-8.
    """
    damage: list[SourceError] = []
    with opened(checked_file(path)) as file:
        first = next(_csv_lines(file, path, damage), "")
    if damage:
        raise damage[0]
    return format_of_line(first)


def format_of_line(line: str) -> TableFormat:
    """Return the format of a table whose first line is *line*."""
    first = line.rstrip("\r\n")
    if first.lower().startswith(_DELIMITER_LINE) and len(first) == len(_DELIMITER_LINE) + 1:
        return TableFormat(first[-1], skipped=1)
    outside = "".join(first.split('"')[::2])
    return TableFormat(max(DELIMITERS, key=outside.count))


def csv_line(row: Sequence[str], delimiter: str = ",") -> str:
    """Return a row of CSV with its line end; a field is in quotes where it has to be."""

    # Not with csv.writer: before Python 3.13 it leaves a lone carriage return unquoted.
    def field(text: str) -> str:
        is_quoted = delimiter in text or _TO_QUOTE.search(text)
        return '"' + text.replace('"', '""') + '"' if is_quoted else text

    return delimiter.join(map(field, row)) + "\n"


def csv_cell(cell: Any) -> str:
    """Return a cell as text: nothing for None, truth values in lower case, at most four decimals."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(rounded_cell(cell))


def rounded_cell(cell: Any) -> Any:
    """Return a cell, a float with at most four decimals."""
    return round(cell, 4) if isinstance(cell, float) else cell


# -- Parquet ----------------------------------------------------------------

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
        file = parquet.ParquetFile(path, pre_buffer=False)
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


def parquet_batches(
    file: Any, path: Path, columns: Sequence[int] | None = None, rows: int = _ROWS_OF_BATCH
) -> Iterator[Any]:
    """Yield the rows of such a file as batches of pyarrow, in order.

    Args:
        file: file of `open_parquet`.
        path: its path, for errors.
        columns: indices of the columns that are read; None for all. A batch has these in the file's order, or
            all where two columns have one name, or one has a dot in its name, which pyarrow reads as a path.
        rows: number of rows of a batch, at most.

    Raises:
        SourceError: if it cannot be read on; says after which row.
    """
    import pyarrow

    number = 0
    names = None
    every = file.schema_arrow.names
    if columns is not None and len(set(every)) == len(every) and not any("." in name for name in every):
        names = [every[index] for index in columns]
    batches = file.iter_batches(batch_size=rows, columns=names)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise SourceError(f"cannot be read on after row {number}: {error}", path=path) from None
        if batch is None:
            return
        number += batch.num_rows
        yield batch


def parquet_cells(
    file: Any, path: Path, columns: Sequence[int]
) -> Iterator[tuple[int, list[Any] | SourceError]]:
    """Yield the number of each row of such a file, from 1, and its cells; None in columns that are not read.

    In the place of a row with a cell that cannot be read there is an error.

    Args:
        file: file of `open_parquet`.
        path: its path, for errors.
        columns: indices of the columns that are read.

    Raises:
        SourceError: if the file cannot be read.
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
            bad = next((index for index in columns if isinstance(row[index], UnreadableCell)), None)
            if bad is None:
                yield number, [*row]
            else:
                problem = f"the cell in column {names[bad]!r} cannot be read: {row[bad].reason}"
                yield number, SourceError(f"row {number:,}: {problem}", path=path)


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
