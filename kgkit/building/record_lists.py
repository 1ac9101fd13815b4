"""Records that a program has in memory, as dictionaries, for a builder that reads JSON lines."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from kgkit.errors import SourceError, UsageError

__all__ = ["is_record_list", "written_records"]

_NAME = "records"


def is_record_list(source: object) -> bool:
    """Say whether a source is a list of dictionaries.

    Raises:
        UsageError: if it is a list of dictionaries and of something else, or one dictionary.
    """
    if isinstance(source, Mapping):
        raise UsageError("the source is one dictionary: give a list of them, one for each record")
    if isinstance(source, str) or not isinstance(source, Sequence):
        return False
    kinds = [isinstance(each, Mapping) for each in source]
    if any(kinds) and not all(kinds):
        raise UsageError(
            f"the source is a list of dictionaries, but number {kinds.index(False) + 1} is a "
            f"{type(source[kinds.index(False)]).__name__}"
        )
    return any(kinds)


@contextmanager
def written_records(records: Sequence[Mapping[str, Any]]) -> Iterator[Path]:
    """Give a file of JSON lines with the records; an error in the block names a record, not a line of it.

    Raises:
        SourceError: if a record cannot be written as JSON.
    """
    with tempfile.TemporaryDirectory(prefix="kgkit-") as folder:
        path = Path(folder) / f"{_NAME}.jsonl"
        with path.open("wb") as lines:
            for number, record in enumerate(records, start=1):
                try:
                    lines.write(msgspec.json.encode(record, enc_hook=_plain_number) + b"\n")
                except (TypeError, ValueError, OverflowError, RecursionError) as error:
                    raise SourceError(f"record {number} cannot be written as JSON: {error}") from None
        try:
            yield path
        except SourceError as error:
            if error.path != path:
                raise
            where = "the records" if error.line is None else f"record {error.line}"
            raise SourceError(f"{where}: {error.message}", text=error.text) from None


def _plain_number(value: Any) -> Any:
    """Return a number of NumPy's or pandas' as one of Python's."""
    if callable(item := getattr(value, "item", None)):
        return item()
    raise TypeError(f"it holds a {type(value).__name__}")
