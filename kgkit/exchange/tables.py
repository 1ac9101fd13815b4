"""CSV, as the formats of tables write it; `kgkit.building.tables` reads it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kgkit.exchange.contract import chunks

__all__ = ["csv_chunks"]

_TO_QUOTE: Final = re.compile(r'[",\r\n]')


def csv_chunks(rows: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """Yield *rows* as CSV with commas, the first one its header."""
    # Not with csv.writer: before Python 3.13 it leaves a lone carriage return unquoted.
    return chunks(",".join(map(_field, row)) + "\n" for row in rows)


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _TO_QUOTE.search(text) else text
