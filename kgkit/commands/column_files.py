"""Tables in files, batch by batch: CSV, TSV, JSON lines and Parquet, with columns added on the way.

A table is written in the format that it was read in: rows in their order, columns that are not asked for as
they are, and the new ones behind them. Of the rows a batch is in memory at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit.commands.output import Write, write_bytes
from kgkit.errors import SourceError, UsageError
from kgkit.files import JSON_LINES, checked_file, compression_of, plain_name, text_lines, written
from kgkit.tables import (
    UnreadableCell,
    csv_cell,
    csv_line,
    csv_rows,
    open_parquet,
    parquet_batches,
    readable_cells,
    rounded_cell,
    sniff_format,
)

__all__ = ["ColumnFile", "check_format", "open_columns"]

Cells = list[list[Any]]
"""For each row the cells that are added to it."""

WriteRows = Callable[[Any, Cells], object]
"""Writes rows with the cells that are added to them."""

_PARQUET: Final = (".parquet", ".pq")
_BATCH: Final = 1_000


class ColumnFile(ABC):
    """A table in a file.

    Args:
        path: path of the file.

    Attributes:
        columns: names of its columns; of JSON lines those of the first record.
    """

    columns: Sequence[str]
    format: str

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def batches(self, column: str) -> Iterator[tuple[Any, list[Any]]]:
        """Yield rows, and of each of them the cell of a column.

        Raises:
            SourceError: where the file is not as its first rows say.
        """

    @abstractmethod
    def writer(self, output: Path | None, new_columns: Mapping[str, type]) -> Any:
        """Give, in a `with`, what writes rows with the cells that are added to them.

        Args:
            output: file to write; None: standard output.
            new_columns: columns that are added, with the types of their cells.

        Raises:
            UsageError: if the format cannot be written there.
        """


def open_columns(path: Path) -> ColumnFile:
    """Open a table; its format goes by the name of the file, and CSV is what has another name.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is empty, or not of that format.
        MissingExtra: if it is Parquet, and pyarrow is not installed.
    """
    checked_file(path)
    return _kind_of(path)(path)


def check_format(output: Path, table: ColumnFile) -> None:
    """Make sure that the name of an output file says the format of the table.

    Raises:
        UsageError: if it says another one, or compressed Parquet.
    """
    kind = _kind_of(output)
    if kind is _Parquet and compression_of(output):
        raise UsageError(f"{output}: Parquet is compressed within; name the file {plain_name(output.name)}")
    if kind is not type(table):
        raise UsageError(
            f"{output} would be {kind.format}, and {table.path} is {table.format}: a table is written in the "
            "format that it was read in; name a file of that format"
        )


def _kind_of(path: Path) -> type[ColumnFile]:
    suffix = Path(plain_name(path.name)).suffix.lower()
    return _JSONLines if suffix in JSON_LINES else _Parquet if suffix in _PARQUET else _Delimited


class _Delimited(ColumnFile):
    """CSV or TSV, with the delimiter that its first line has most of."""

    format = "CSV or TSV"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._form = sniff_format(path)
        self._rows = csv_rows(path, self._form, keep_blank=True)
        line, self.columns = next(self._rows, (1, []))
        if not any(name.strip() for name in self.columns):
            raise SourceError("the first row names the columns, and this one is empty", path=path, line=line)

    def batches(self, column: str) -> Iterator[tuple[Any, list[Any]]]:
        position = self.columns.index(column)
        while batch := [row for _, row in islice(self._rows, _BATCH)]:
            yield batch, [row[position] or None for row in batch]

    @contextmanager
    def writer(self, output: Path | None, new_columns: Mapping[str, type]) -> Iterator[WriteRows]:
        def line(row: Sequence[str], cells: Sequence[Any]) -> str:
            return csv_line([*row, *map(csv_cell, cells)], self._form.delimiter)

        with _text_output(output) as write:
            write(line(self.columns, [*new_columns]).encode())
            yield lambda rows, cells: write("".join(map(line, rows, cells)).encode())


class _JSONLines(ColumnFile):
    """JSON lines: an object a line; a blank line before the last one has empty cells."""

    format = "JSON lines"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._first = self._record(*next(text_lines(path)))
        self.columns = [*self._first]

    def batches(self, column: str) -> Iterator[tuple[Any, list[Any]]]:
        numbered = self._records()
        while records := [*islice(numbered, _BATCH)]:
            for number, record in records:
                if not isinstance(record.get(column), str | None):
                    raise SourceError(
                        f"expected a string as {column!r}, found {record[column]!r}",
                        path=self.path, line=number,
                    )  # fmt: skip
            yield records, [record.get(column) for _, record in records]

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        following = 1
        for number, line in text_lines(self.path):
            for blank in range(following, number):
                yield blank, dict.fromkeys(self.columns)
            yield number, self._record(number, line)
            following = number + 1

    @contextmanager
    def writer(self, output: Path | None, new_columns: Mapping[str, type]) -> Iterator[WriteRows]:
        encode = msgspec.json.Encoder().encode

        with _text_output(output) as write:

            def write_rows(rows: Any, cells: Cells) -> None:
                """Write records with their new fields."""
                for (number, record), new in zip(rows, cells, strict=True):
                    if clash := [name for name in new_columns if name in record]:
                        raise SourceError(
                            f"it has a field {clash[0]!r} already, and one of that name is to be added: "
                            "--prefix begins the names of new ones",
                            path=self.path, line=number,
                        )  # fmt: skip
                    record.update(zip(new_columns, map(rounded_cell, new), strict=True))
                    write(encode(record) + b"\n")

            yield write_rows

    def _record(self, number: int, line: str) -> dict[str, Any]:
        try:
            record: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            reason = "a field is nested too deeply" if isinstance(error, RecursionError) else error
            raise SourceError(
                f"expected an object of JSON: {reason}", path=self.path, line=number, text=line
            ) from None
        return record


class _Parquet(ColumnFile):
    """Parquet, whose columns keep their types."""

    format = "Parquet"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = open_parquet(path)
        self.columns = [str(name) for name in self._file.schema_arrow.names]

    def batches(self, column: str) -> Iterator[tuple[Any, list[Any]]]:
        from pyarrow import types

        number = 0
        for batch in parquet_batches(self._file, self.path):
            arrow_column = batch.column(self.columns.index(column))
            if types.is_temporal(arrow_column.type):  # some of whose cells would be texts
                raise SourceError(
                    f"expected strings as {column!r}, found {arrow_column.type}", path=self.path
                )
            names = readable_cells(arrow_column)
            for row, name in enumerate(names, start=number + 1):
                if not isinstance(name, str | None):
                    found = name.reason if isinstance(name, UnreadableCell) else repr(name)
                    raise SourceError(
                        f"expected a string as {column!r} in row {row:,}, found {found}", path=self.path
                    )
            number += len(names)
            yield batch, names

    @contextmanager
    def writer(self, output: Path | None, new_columns: Mapping[str, type]) -> Iterator[WriteRows]:
        import pyarrow
        from pyarrow import parquet

        if output is None:
            raise UsageError("Parquet is not written to standard output: name a file by --output")
        of_arrow = {str: pyarrow.string(), float: pyarrow.float64(), bool: pyarrow.bool_()}
        types = [of_arrow[cell_type] for cell_type in new_columns.values()]
        fields = [pyarrow.field(name, kind) for name, kind in zip(new_columns, types, strict=True)]
        schema = self._file.schema_arrow
        schema = pyarrow.schema([*schema, *fields], metadata=schema.metadata)
        with ExitStack() as stack:
            stream = stack.enter_context(written(output))
            rows = stack.enter_context(parquet.ParquetWriter(stream, schema))

            def write_rows(batch: Any, cells: Cells) -> None:
                """Write a batch with its new columns."""
                columns = zip(*cells, strict=True)
                new = [pyarrow.array(values, kind) for values, kind in zip(columns, types, strict=True)]
                rows.write_batch(pyarrow.RecordBatch.from_arrays([*batch.columns, *new], schema=schema))

            yield write_rows


@contextmanager
def _text_output(output: Path | None) -> Iterator[Write]:
    if output is None:
        yield write_bytes
        return
    with written(output) as stream:
        yield stream.write
