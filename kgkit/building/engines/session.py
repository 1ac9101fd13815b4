"""What an engine has to be able to do with tables."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

__all__ = ["Session", "first_row"]


class Session(Protocol):
    """Tables that may be larger than memory, and queries over them; `records` is there from the first."""

    def make(self, name: str, query: str) -> None:
        """Make the table *name* of what *query* gives; the query may read an older one of that name."""

    def put(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Make the table *name* of *batches*, which may be read from another of this session's queries."""

    def view(self, name: str, files: Sequence[Path]) -> None:
        """Let *name* be the rows of Parquet *files*, as `records` is those of the parts."""

    def rows(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield what *query* gives, in the order it asks for."""

    def drop(self, *names: str) -> None:
        """Forget tables, and their room on the disk."""


def first_row(session: Session, query: str) -> tuple[Any, ...] | None:
    """Return the first row that *query* gives, None if it gives none."""
    for batch in session.rows(query):
        if batch.num_rows:
            return tuple(column[0].as_py() for column in batch.columns)
    return None
