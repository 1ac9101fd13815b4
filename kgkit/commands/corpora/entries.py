"""Files of texts, one document's bytes at a time.

    text       a file is a document: .txt, .text, .md
    lines      every line of a file is one
    jsonl      every line is a record of JSON: .jsonl, .ndjson
    csv        every row is a record, whose columns the first row names: .csv, .tsv
    parquet    the same, without line numbers: rows are counted from 1: .parquet

All but Parquet may be compressed, which a second suffix says: .gz, .xz, .bz2, .zst. What cannot be read is an
entry too, with its error, so that what follows it can be read on.
"""

import codecs
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import msgspec

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.files import COMPRESSIONS, opened, plain_name, raw_lines

InputFormat = Literal["auto", "text", "lines", "jsonl", "csv", "parquet"]

STDIN: Final = Path("-")

_FORMATS: Final[dict[str, InputFormat]] = {
    ".txt": "text", ".text": "text", ".md": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv",
    ".tsv": "csv", ".parquet": "parquet",
}  # fmt: skip
_SUFFIXES: Final = f"{', '.join(_FORMATS)}, and compressed {', '.join(COMPRESSIONS)}"
_MAX_SUFFIX: Final = 12  # letters that a message shows
_ROWS: Final = 64  # of Parquet that are read together


class SourceEntry(NamedTuple):
    """What a document is made of.

    Attributes:
        file: name of the file, as a text.
        line: line of the file at which it begins, or row of a Parquet file, from 1; None for a whole file.
        content: its bytes; or what is wrong.
        is_record: whether the bytes are a record of JSON; else they are a text.
    """

    file: str
    line: int | None
    content: bytes | SourceError
    is_record: bool = False


def input_format_of(path: Path) -> InputFormat | None:
    """Return what a file is by its name, but for the suffix of a compression; None if no suffix says it."""
    name = Path(plain_name(path.name))
    form = _FORMATS.get(name.suffix.lower())
    return None if form == "parquet" and name.name != path.name else form


def find_files(files: Sequence[Path], *, other_types: Counter[str] | None = None) -> Iterator[Path]:
    """Yield files, and in the place of a folder the texts in it and in the folders in it, by their names.

    Hidden files are left out; the names of one folder are in memory at a time.

    Args:
        files: files and folders; `-` is standard input.
        other_types: counter that gets the suffixes of the files in folders that are no texts.

    Raises:
        NotThere: if there is no such file, or no text in a folder, before anything is yielded.
    """
    left_out: Counter[str] = Counter() if other_types is None else other_types
    for file in files:
        if file == STDIN:
            continue
        if not file.exists():
            hint = ": `echo TEXT | kgkit link` takes a text itself" if " " in str(file) else ""
            raise NotThere(f"no file {file}{hint}")
        if file.is_dir() and next(_texts_in(file, Counter()), None) is None:
            raise NotThere(f"no text in {file}: in a folder, files that end in {_SUFFIXES} are read")
    return (path for file in files for path in (_texts_in(file, left_out) if file.is_dir() else [file]))


def is_read(path: Path, files: Sequence[Path]) -> bool:
    """Say whether *path* is one of *files*, or a text in one of the folders among them."""
    target = path.resolve()
    if not target.exists():
        return False
    folders = [file.resolve() for file in files if file.is_dir()]
    in_folder = any(target.is_relative_to(folder) for folder in folders) and input_format_of(target)
    return bool(in_folder) or target in {file.resolve() for file in files}


def _texts_in(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    """Yield the texts in a folder; count the suffixes of its other files in *left_out*."""
    with os.scandir(folder) as scan:
        members = sorted((member.name, member.is_dir(follow_symlinks=False)) for member in scan)
    for name, is_folder in members:
        path = folder / name
        if name.startswith("."):
            continue
        if is_folder:
            yield from _texts_in(path, left_out)
        elif not path.is_file():
            continue
        elif input_format_of(path) is not None:
            yield path
        else:
            left_out[path.suffix.lower()[:_MAX_SUFFIX] or "without a suffix"] += 1


def read_entries(paths: Iterable[Path], form: InputFormat) -> Iterator[SourceEntry]:
    """Yield the entries of files, in order; blank lines are none.

    A file that cannot be read to its end ends with an entry that has the error.

    Raises:
        NotThere: if a file has gone.
        MissingExtra: for Parquet, if pyarrow is not installed.
    """
    for path in paths:
        # Names may have bytes that are no UTF-8; an id cannot.
        name = os.fsencode(path).decode(errors="replace")
        line = 0
        try:
            for entry in _file_entries(path, name, form):
                line = entry.line or 0
                yield entry
        except SourceError as error:
            number = error.line if error.line is not None or not line else line + 1
            yield SourceEntry(name, number, SourceError(error.message, path=Path(name), line=number))


def _file_entries(path: Path, name: str, form: InputFormat) -> Iterator[SourceEntry]:
    if form == "auto":
        form = input_format_of(path) or "text"
    if form == "parquet":
        yield from _parquet_rows(path, name)
    elif path == STDIN:
        yield from _stream_entries(sys.stdin.buffer, name, form)
    else:
        with opened(path) as stream:
            yield from _stream_entries(stream, name, form)


def _stream_entries(stream: BinaryIO, name: str, form: InputFormat) -> Iterator[SourceEntry]:
    if form == "text":
        yield SourceEntry(name, None, stream.read().removeprefix(codecs.BOM_UTF8))
    elif form == "csv":
        yield from _table_rows(stream, name)
    else:
        for number, line in raw_lines(stream, Path(name)):
            if line.strip():
                yield SourceEntry(name, number, line.rstrip(b"\r\n"), form == "jsonl")


def _table_rows(stream: BinaryIO, name: str) -> Iterator[SourceEntry]:
    """Yield the rows of a table of CSV as records; the first row has their names."""
    from kgkit.tables import table_rows  # here: only tables need it, and it loads NumPy

    header: list[str] | None = None
    for row in table_rows(stream, path=Path(name)):
        if isinstance(row.fields, SourceError):
            if header is None:
                raise row.fields
            content: bytes | SourceError = row.fields
        elif header is None:
            header = _checked_columns(row.fields, name, row.begin)
            continue
        else:
            content = _row_content(dict(zip(header, row.fields, strict=True)))
        yield SourceEntry(name, row.begin, content, is_record=True)
    if header is None:
        _checked_columns([], name, 1)


def _row_content(record: dict[str, Any]) -> bytes:
    """Return a row as a record of JSON."""
    if not record.get("id"):
        record.pop("id", None)
    if "mentions" in record:
        record["mentions"] = msgspec.Raw(record["mentions"].encode() or b"null")
    return msgspec.json.encode(record)


def _checked_columns(names: list[str], file: str, line: int | None) -> list[str]:
    """Return the names of columns, one of which has the texts.

    Raises:
        SourceError: if there is none, or two columns have one name.
    """
    if "text" not in names:
        listed = ", ".join(names) or "none"
        raise SourceError(
            f"the table has no column text; its columns are: {listed}", path=Path(file), line=line
        )
    if len({*names}) != len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise SourceError(f"two columns are called {twice}", path=Path(file), line=line)
    return names


def _parquet_rows(path: Path, name: str) -> Iterator[SourceEntry]:
    """Yield the rows of a Parquet file as records."""
    from kgkit.tables import open_parquet, parquet_batches, readable_cells

    if path == STDIN:
        raise UsageError("Parquet is read from files, not from standard input: name the file")
    line = 0
    with open_parquet(path) as table:
        columns = _checked_columns(table.schema_arrow.names, name, None)
        for batch in parquet_batches(table, path, rows=_ROWS):
            for cells in zip(*map(readable_cells, batch.columns), strict=True):
                line += 1
                row = dict(zip(columns, cells, strict=True))
                yield SourceEntry(name, line, _encoded(row, name, line), is_record=True)


def _encoded(row: dict[str, Any], name: str, line: int) -> bytes | SourceError:
    from kgkit.tables import UnreadableCell

    for column, cell in row.items():
        if isinstance(cell, UnreadableCell):
            problem = f"the cell in column {column!r} cannot be read: {cell.reason}"
            return SourceError(problem, path=Path(name), line=line)
    try:
        return msgspec.json.encode(row)
    except (TypeError, ValueError, RecursionError) as error:
        return SourceError(f"a field is no JSON: {error}", path=Path(name), line=line)
