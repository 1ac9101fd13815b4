"""CSV, as the formats of tables write it; `kgkit.building.tables` reads it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kgkit.exchange.contract import chunks

__all__ = ["csv_chunks", "csv_line"]

_TO_QUOTE: Final = re.compile(r'["\r\n]')


def csv_chunks(rows: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """Yield *rows* as CSV with commas, the first one its header."""
    return chunks(csv_line(row) for row in rows)


def csv_line(row: Sequence[str], delimiter: str = ",") -> str:
    """Return a row of CSV with its line end; a field is in quotes where it has to be."""

    # Not with csv.writer: before Python 3.13 it leaves a lone carriage return unquoted.
    def field(text: str) -> str:
        is_quoted = delimiter in text or _TO_QUOTE.search(text)
        return '"' + text.replace('"', '""') + '"' if is_quoted else text

    return delimiter.join(map(field, row)) + "\n"
