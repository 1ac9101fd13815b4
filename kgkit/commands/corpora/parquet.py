"""Answers as Parquet: a row for each, with lists of links, or of mentions, as lists of structs.

Fields that a record had beside are JSON, in the column `fields`; so are a link's `ids`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kgkit.commands.corpora.chunks import ResultColumn
from kgkit.errors import MissingExtra
from kgkit.files import written

if TYPE_CHECKING:
    import pyarrow

_ROWS: Final = 4096  # of a row group
_BYTES: Final = 64 << 20  # of lines from which on a row group is written, whatever their number


def is_parquet(path: Path) -> bool:
    """Return whether the name of a file says that it is Parquet."""
    return path.suffix.lower() == ".parquet"


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def write_parquet(lines: Iterable[bytes], path: Path, column: ResultColumn) -> None:
    """Write answers, which are lines of JSON, as a file of Parquet; a row group is in memory at a time.

    Args:
        lines: the lines.
        path: file to write, which appears whole or not at all.
        column: column of what was found in a text.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = answer_schema(column)
    with written(path) as stream, parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for rows in _row_groups(lines, column):
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _row_groups(lines: Iterable[bytes], column: ResultColumn) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    size = 0
    for line in lines:
        rows.append(_row(line, column))
        size += len(line)
        if len(rows) == _ROWS or size >= _BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _row(line: bytes, column: ResultColumn) -> dict[str, Any]:
    fields = _decode_fields(line)
    row = {name: msgspec.json.decode(fields.pop(name)) for name in ("id", "text", "model", column)}
    for item in row[column]:
        item["ids"] = msgspec.json.encode(item["ids"]).decode() if item.get("ids") else None
    return {**row, "fields": msgspec.json.encode(fields).decode() if fields else None}


def answer_schema(column: ResultColumn) -> "pyarrow.Schema":
    """Return the columns of the answers of linkers and of taggers.

    Raises:
        MissingExtra: if pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise MissingExtra("pyarrow", "scale") from None
    text, number, score = pa.string(), pa.int64(), pa.float64()
    parts = pa.struct([(name, score) for name in ("prior", "context", "coherence")])
    candidate = pa.struct(
        [("entity", text), ("prior", score), ("score", score), ("sense", text), ("label", text),
         ("parts", parts)]
    )  # fmt: skip
    span = [("start", number), ("end", number), ("text", text)]
    link = pa.struct(
        [*span, ("kb", text), ("entity", text), ("sense", text), ("label", text), ("score", score),
         ("nil", pa.bool_()), ("candidates", pa.list_(candidate)), ("id", text), ("ids", text),
         ("url", text)]
    )  # fmt: skip
    mention = pa.struct([*span, ("type", text), ("score", score)])
    items = pa.list_(link if column == "links" else mention)
    return pa.schema([("id", text), ("text", text), ("model", text), (column, items), ("fields", text)])
