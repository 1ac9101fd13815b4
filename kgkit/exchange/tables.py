"""CSV and TSV with quoted fields, which may hold line ends, read by their line numbers."""

import csv
import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from kgkit.building.lines import open_bytes
from kgkit.errors import SourceError
from kgkit.exchange.contract import checked_file, chunks

__all__ = ["csv_chunks", "csv_rows"]

_MAX_FIELD: Final = 16 << 20
_TO_QUOTE: Final = re.compile(r'[",\r\n]')
_BOM: Final = "\ufeff"


def csv_chunks(rows: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """Yield *rows* as CSV with commas, the first one its header."""
    # Not with csv.writer: before Python 3.13 it leaves a lone carriage return unquoted.
    return chunks(",".join(map(_field, row)) + "\n" for row in rows)


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _TO_QUOTE.search(text) else text


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield `(line, fields)` of a table, its header among them; by tabs if its name says `.tsv`.

    A quoted field may go over several lines: the number is that of the last one.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is no table of UTF-8; says where.
    """
    checked_file(path)
    tabs = ".tsv" in path.suffixes
    csv.field_size_limit(_MAX_FIELD)
    with open_bytes(path) as file:
        # KGX writes its tables without any quoting.
        reader = csv.reader(
            _text(file, path),
            delimiter="\t" if tabs else ",",
            quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
            strict=not tabs,
        )
        width = 0
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise SourceError(str(error), path=path, line=reader.line_num) from None
            if row is None:
                return
            if not row:
                continue
            width = width or len(row)
            if len(row) != width:
                raise SourceError(
                    f"expected {width} fields, as the header has them, found {len(row)}",
                    path=path, line=reader.line_num, text=",".join(row),
                )  # fmt: skip
            yield reader.line_num, row


def _text(file: BinaryIO, path: Path) -> Iterator[str]:
    number = 0
    while True:
        try:
            line = file.readline(_MAX_FIELD + 1)
        except (EOFError, OSError, lzma.LZMAError) as error:
            raise SourceError(f"cannot be read on: {error}", path=path, line=number + 1) from None
        if not line:
            return
        number += 1
        if len(line) > _MAX_FIELD:
            raise SourceError(f"a line of more than {_MAX_FIELD >> 20} MiB", path=path, line=number)
        if number == 1 and b"\0" in line:
            raise SourceError("a NUL byte: this is no text file", path=path, line=number)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise SourceError(
                f"not UTF-8: {error.reason} at byte {error.start + 1} of the line", path=path, line=number
            ) from None
        yield text.removeprefix(_BOM) if number == 1 else text
