"""CSV, as the formats of tables write it; `kgkit.building.tables` reads it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kgkit.exchange.contract import chunks

__all__ = ["csv_cell", "csv_chunks", "csv_line", "rounded_cell"]

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


def csv_cell(cell: Any) -> str:
    """Return a cell as text: nothing for None, truth values in lower case, at most four decimals."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(rounded_cell(cell))


def rounded_cell(cell: Any) -> Any:
    """Return a cell, a float with at most four decimals."""
    return round(cell, 4) if isinstance(cell, float) else cell
