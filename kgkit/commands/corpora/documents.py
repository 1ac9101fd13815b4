"""From files to documents: the bytes of one at a time, then the document that they are.

    text       a file is a document: .txt, .text, .md; its name is the document's id
    lines      every line of a file is one; its id is FILE:LINE
    jsonl      every line is a record of JSON: .jsonl, .ndjson
    csv        every row is a record, whose columns the first row names: .csv, .tsv
    parquet    the same, without line numbers: rows are counted from 1: .parquet

A record has a text, and perhaps an id; without one it is FILE:LINE. All but Parquet may be compressed, which
a second suffix says: .gz, .xz, .bz2, .zst. What cannot be read is an entry too, with its error, so that what
follows it can be read on.

A record may have mentions, in the layouts of those who find them:

    mentions    `kgkit tag`: start, end, perhaps text, id, lemma, pos, type, score, and candidates (keys)
    ents        spaCy, `Doc.to_json` and displaCy: start, end, label
    entities    GLiNER, `predict_entities`: start, end, text, label, score; or [start, end, label], as spaCy's
                training data
    spans       Prodigy, and lists of spaCy's spans: start, end, label

Offsets count code points of the text, the end is exclusive. The first of these fields that a record has is
read; null means that nobody has looked for mentions. The other fields of a record are carried to the output.

Input is UTF-8. Nothing of a text is changed, line ends included; only a byte order mark at the very start of
a file is left out.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, NamedTuple

import msgspec

from kgkit.commands.text_streams import STDIN
from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.files import COMPRESSIONS, not_utf8, opened, plain_name, raw_lines, without_mark
from kgkit.types import Document, Mention

# -- entries ----------------------------------------------------------------

InputFormat = Literal["auto", "text", "lines", "jsonl", "csv", "parquet"]

_FORMATS: Final[dict[str, InputFormat]] = {
    ".txt": "text", ".text": "text", ".md": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv",
    ".tsv": "csv", ".parquet": "parquet",
}  # fmt: skip
_SUFFIXES: Final = f"{', '.join(_FORMATS)}, and compressed {', '.join(COMPRESSIONS)}"
_MAX_SUFFIX: Final = 12  # letters that a message shows
_ROWS: Final = 64  # of Parquet that are read together


class SourceEntry(NamedTuple):
    """Source of a document.

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
    """Return the form of a file by its suffix, that of a compression apart; None if no suffix says it."""
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
        yield SourceEntry(name, None, without_mark(stream.read(), Path(name)))
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


# -- documents --------------------------------------------------------------

FIELDS: Final = ("mentions", "ents", "entities", "spans")
"""Fields that may have the mentions of a record, the first of which counts."""


class InputMention(msgspec.Struct):
    """A mention as a record has it; `label` is another name for `type`."""

    start: int
    end: int
    text: str | None = None
    id: str | int = ""
    lemma: str = ""
    pos: str = ""
    type: str = ""
    label: str = ""
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    candidates: tuple[str, ...] | None = None


class ParsedDocument(NamedTuple):
    """A document, and what its record has beside text and id.

    Attributes:
        document: the document; a `KeyedDocument` if its mentions came with candidates.
        fields: other fields of the record by name, as they stand there.
    """

    document: Document
    fields: Mapping[str, msgspec.Raw]


class _Record(msgspec.Struct):
    text: str
    id: str | int | None = None


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_mentions = msgspec.json.Decoder(list[InputMention | tuple[int, int, str]] | None).decode


def parse_entry(entry: SourceEntry, mention_fields: Sequence[str] = FIELDS) -> ParsedDocument:
    """Return the document of an entry.

    Args:
        entry: bytes of the document.
        mention_fields: fields of a record in which mentions are looked for.

    Raises:
        SourceError: if it is not UTF-8, no such record, has a mention that is no span, or could not be read.
    """
    if isinstance(entry.content, SourceError):
        raise entry.content
    path, name = Path(entry.file), entry.file if entry.line is None else f"{entry.file}:{entry.line}"
    try:
        text = entry.content.decode()
    except UnicodeDecodeError as error:
        if b"\0" in entry.content:
            raise SourceError("is no text: it has NUL bytes", path=path, line=entry.line) from None
        raise not_utf8(error, path, entry.line) from None
    if not entry.is_record:
        return ParsedDocument(Document(name, text), {})
    try:
        return _parsed_record(entry.content, name, mention_fields)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        reason = "a field is nested too deeply" if isinstance(error, RecursionError) else error
        problem = f'expected {{"id": …, "text": …}}: {reason}'
    except SourceError as error:
        problem = error.message
    raise SourceError(problem, path=path, line=entry.line, text=text)


def _parsed_record(content: bytes, name: str, mention_fields: Sequence[str]) -> ParsedDocument:
    record, fields = _decode_record(content), _decode_fields(content)
    mentions = _input_mentions(fields, mention_fields)
    for name_of_field in ("id", "text", "mentions"):  # they are in the output, or in its links
        fields.pop(name_of_field, None)
    document = Document(name if record.id is None else str(record.id), record.text)
    if mentions is None:
        return ParsedDocument(document, fields)
    from kgkit.candidates import KeyedDocument, mention_problem  # here: few records have mentions

    document.mentions = [_text_mention(mention, record.text) for mention in mentions]
    if problem := mention_problem(record.text, document.mentions):
        raise SourceError(problem)
    keys = tuple(mention.candidates for mention in mentions)
    if any(each is not None for each in keys):
        document = KeyedDocument(document.id, document.text, mentions=document.mentions, keys=keys)
    return ParsedDocument(document, fields)


def _input_mentions(fields: Mapping[str, msgspec.Raw], names: Sequence[str]) -> list[InputMention] | None:
    """Return the mentions of a record, by whichever layout it has them; None if it has none.

    Raises:
        ValueError: if a field of mentions is none; says which.
    """
    for name in names:
        value = fields.get(name)
        if value is None or (name == "spans" and bytes(value)[:1] == b"{"):  # spaCy's groups of spans
            continue
        try:
            mentions = _decode_mentions(value)
        except msgspec.MsgspecError as error:
            reason = str(error).replace("`$", f"`$.{name}")
            hint = "" if name == "mentions" else f"; a field {name} that has no mentions needs another name"
            raise ValueError(f"{reason}{hint}") from None
        if mentions is not None:
            return [
                InputMention(each[0], each[1], label=each[2]) if isinstance(each, tuple) else each
                for each in mentions
            ]
    return None


def _text_mention(mention: InputMention, text: str) -> Mention:
    """Return a mention of *text*; with a score it is one that a tagger has weighed."""
    start, end, name = mention.start, mention.end, str(mention.id)
    span = text[start:end] if mention.text is None else mention.text
    if mention.score is None:
        return Mention(start, end, span, lemma=mention.lemma, pos=mention.pos, id=name)
    from kgkit.tagging.mention_tagger import TaggedMention

    return TaggedMention(
        start, end, span, lemma=mention.lemma, pos=mention.pos, id=name,
        type=mention.type or mention.label, score=mention.score,
    )  # fmt: skip
