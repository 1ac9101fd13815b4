"""CSV and TSV with quoted fields, which may hold line ends, read by their line numbers."""

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kgkit.building.lines import checked_file
from kgkit.errors import SourceError
from kgkit.files import decompression_errors, open_bytes

__all__ = ["TableFormat", "csv_rows", "csv_rows_of", "format_of_line", "sniff_format"]

DELIMITERS: Final = (",", ";", "\t", "|")
"""What may separate the fields of a table whose format is not known."""

_MAX_FIELD: Final = 16 << 20
_BOM: Final = "\ufeff"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_DELIMITER_LINE: Final = "sep="
"""So the first line of a table begins in which Excel finds its delimiter."""


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


def csv_rows(path: Path, table_format: TableFormat | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield `(line, fields)` of a table, its header among them.

    A quoted field may go over several lines: the number is that of the last one.

    Args:
        path: file in UTF-8; it may be compressed.
        table_format: format of the table; None: tabs without quotes if its name says `.tsv`, as KGX writes
            them, else commas.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is no table of UTF-8; says where.
    """
    checked_file(path)
    if table_format is None:
        table_format = TableFormat("\t", quoted=False) if ".tsv" in path.suffixes else TableFormat()
    with open_bytes(path) as file:
        yield from csv_rows_of(file, table_format, path)


def csv_rows_of(
    file: BinaryIO, table_format: TableFormat | None = None, path: Path | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield `(line, fields)` of a table in an open file, as `csv_rows` does.

    Args:
        file: file in UTF-8, uncompressed.
        table_format: format of the table; None: as its first line says.
        path: path of the file, for errors.

    Raises:
        SourceError: if it is no table of UTF-8; says where.
    """
    csv.field_size_limit(_MAX_FIELD)
    lines = _lines(file, path)
    if table_format is None:
        first = next(lines, "")
        table_format, lines = format_of_line(first), chain([first] if first else [], lines)
    for _ in range(table_format.skipped):
        next(lines, None)
    reader = csv.reader(
        lines,
        delimiter=table_format.delimiter,
        quoting=csv.QUOTE_MINIMAL if table_format.quoted else csv.QUOTE_NONE,
        strict=table_format.quoted,
    )
    yield from _checked_rows(reader, path, table_format)


def _checked_rows(
    reader: "Iterator[list[str]]", path: Path | None, table_format: TableFormat
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a reader of `csv`; all are to be as wide as the first one."""
    width, last = 0, table_format.skipped

    def line_of_reader() -> int:
        return int(getattr(reader, "line_num", 0)) + table_format.skipped

    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise SourceError(_reason(error, last + 1), path=path, line=line_of_reader()) from None
        if row is None:
            return
        last = line_of_reader()
        if not row:
            continue
        width = width or len(row)
        if len(row) != width:
            raise SourceError(
                f"expected {width} fields, as the header has them, found {len(row)}",
                path=path, line=last, text=table_format.delimiter.join(row),
            )  # fmt: skip
        yield last, row


def _reason(error: csv.Error, begin: int) -> str:
    """Return what is wrong with the row that begins in the line *begin*."""
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
    checked_file(path)
    with open_bytes(path) as file:
        lines = _lines(file, path)
        return format_of_line(next(lines, ""))


def format_of_line(line: str) -> TableFormat:
    """Return the format of a table whose first line is *line*."""
    first = line.rstrip("\r\n")
    if first.lower().startswith(_DELIMITER_LINE) and len(first) == len(_DELIMITER_LINE) + 1:
        return TableFormat(first[-1], skipped=1)
    outside = "".join(first.split('"')[::2])
    return TableFormat(max(DELIMITERS, key=outside.count))


def _lines(file: BinaryIO, path: Path | None) -> Iterator[str]:
    number = 0
    while True:
        try:
            line = file.readline(_MAX_FIELD + 1)
        except decompression_errors() as error:
            raise SourceError(f"cannot be read on: {error}", path=path, line=number + 1) from None
        if not line:
            return
        number += 1
        if len(line) > _MAX_FIELD:
            raise SourceError(f"a line of more than {_MAX_FIELD >> 20} MiB", path=path, line=number)
        if number == 1:
            _check_text(line, path)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise SourceError(
                f"not UTF-8: {error.reason} at byte {error.start + 1} of the line: save the table as "
                "UTF-8, or convert it, as by `iconv -f LATIN1 -t UTF-8`",
                path=path, line=number,
            ) from None  # fmt: skip
        yield text.removeprefix(_BOM) if number == 1 else text


def _check_text(line: bytes, path: Path | None) -> None:
    """Refuse a first line that no text file in UTF-8 has."""
    if line.startswith(_UTF16_MARKS):
        raise SourceError("this is UTF-16: save the file as UTF-8", path=path, line=1)
    if b"\0" in line:
        raise SourceError("a NUL byte: this is no text file", path=path, line=1)
