"""Answers as bytes: JSON lines, compressed or not, or Parquet.

What a chunk of documents gives is complete by itself, so that chunks may be written anywhere and in any
process, and put together by their order: lines, a member of a compressed file, or a stream of Arrow, of which
the end of a run makes Parquet. The same chunks give the same bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from kgkit.commands.output import Write
from kgkit.commands.pieces import json_line
from kgkit.errors import MissingExtra, UsageError
from kgkit.files import check_compression, compressing, compression_of

if TYPE_CHECKING:
    import pyarrow

WriteRecord = Callable[[Mapping[str, Any]], None]
"""Takes the fields of an answer by name."""

ResultColumn = Literal["links", "mentions"]

_ROWS: Final = 4096  # of a row group of Parquet, at least


class ResultFormat(Protocol):
    """How answers are written.

    Attributes:
        streams: whether the bytes of chunks, one after another, are the output.
    """

    streams: bool

    def writing(self, write: Write) -> "Any":
        """Return a context that gives what writes the answers of a chunk through *write*."""

    def finish(self, parts: Path, target: Path) -> None:
        """Write to *target* what the bytes of all chunks, in the file *parts*, are put together.

        Called only where they are not the output as they are.
        """


class LineResults:
    """A line of JSON for each answer.

    Args:
        suffix: suffix of the compression; "" for none.
    """

    streams = True

    def __init__(self, suffix: str = "") -> None:
        self._suffix = suffix

    @contextmanager
    def writing(self, write: Write) -> Iterator[WriteRecord]:
        """Give what writes the answers of a chunk; a compressed one is a member of the file."""
        buffer = BytesIO()
        with compressing(self._suffix, buffer) as stream:
            yield lambda record: stream.writelines(json_line(record))
        write(buffer.getvalue())

    def finish(self, parts: Path, target: Path) -> None:
        """Do nothing: the lines are the output."""


class ParquetResults:
    """A row of Parquet for each answer: lists of links, or of mentions, as lists of structs.

    Fields that the record had beside are JSON, in the column `fields`; so are a link's `ids`.

    Args:
        column: column of what was found in a text.

    Raises:
        MissingExtra: if pyarrow is not installed.
    """

    streams = False

    def __init__(self, column: ResultColumn) -> None:
        self._column: ResultColumn = column
        self._names = tuple(_schema(column).names)

    @contextmanager
    def writing(self, write: Write) -> Iterator[WriteRecord]:
        """Give what writes the answers of a chunk as a stream of Arrow."""
        import pyarrow as pa

        rows: list[dict[str, Any]] = []

        def write_record(record: Mapping[str, Any]) -> None:
            row = {name: record[name] for name in self._names if name in record and name != "fields"}
            fields = {name: value for name, value in record.items() if name not in row}
            row[self._column] = [_plain(each) for each in record[self._column]]
            row["fields"] = msgspec.json.encode(fields).decode() if fields else None
            rows.append(row)

        yield write_record
        if rows:
            sink = pa.BufferOutputStream()
            schema = _schema(self._column)
            with pa.ipc.new_stream(sink, schema) as stream:
                stream.write_table(pa.Table.from_pylist(rows, schema))
            write(sink.getvalue().to_pybytes())

    def finish(self, parts: Path, target: Path) -> None:
        """Write the rows of all chunks as one Parquet file, some thousands at a time."""
        from pyarrow import parquet

        with parquet.ParquetWriter(target, _schema(self._column), compression="zstd") as writer:
            for table in _row_groups(parts):
                writer.write_table(table)


def result_format(output: Path | None, column: ResultColumn) -> ResultFormat:
    """Return how answers are written into a file of this name.

    Args:
        output: file; None for standard output.
        column: field of the answers that has what was found in a text.

    Raises:
        MissingExtra: for Parquet, if pyarrow is not installed.
        UsageError: for a compression without its library, and Parquet that is compressed by a suffix.
    """
    if output is not None and output.suffix.lower() == ".parquet":
        return ParquetResults(column)
    if output is None or not (suffix := compression_of(output)):
        return LineResults()
    if output.with_suffix("").suffix.lower() == ".parquet":
        raise UsageError(f"{output}: Parquet is compressed within; name the file {output.with_suffix('')}")
    check_compression(output)
    return LineResults(suffix)


def _schema(column: ResultColumn) -> "pyarrow.Schema":
    """Return the columns of the answers of linkers and of taggers."""
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


def _plain(item: Any) -> dict[str, Any]:
    """Return a link or a mention as a row of its column."""
    row: dict[str, Any] = msgspec.to_builtins(item)
    ids = row.get("ids")
    return {**row, "ids": msgspec.json.encode(ids).decode() if ids else None}


def _row_groups(parts: Path) -> "Iterator[pyarrow.Table]":
    """Yield the tables in streams of Arrow that stand one after another, some thousand rows at a time."""
    import pyarrow as pa

    tables: list[Any] = []
    with pa.OSFile(str(parts)) as source:
        while source.tell() < source.size():
            with pa.ipc.open_stream(source) as stream:
                tables.append(stream.read_all())
            if sum(map(len, tables)) >= _ROWS:
                yield pa.concat_tables(tables)
                tables = []
    if tables:
        yield pa.concat_tables(tables)
