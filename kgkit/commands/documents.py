"""From entries of files to documents.

    text                 a file is one document, and its name is the document's id
    lines                every line is one; its id is FILE:LINE
    jsonl, csv, parquet  every record is one, with a text, and perhaps an id; without one it is FILE:LINE

A record may have mentions, see `kgkit.commands.corpora.mentions`. Its other fields are carried to the output.

Input is UTF-8. Nothing of it is changed, line ends included, so that offsets
are those of the file; only a byte order mark at its very start is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kgkit.commands.corpora.entries import InputFormat, SourceEntry, find_files, read_entries
from kgkit.commands.corpora.mentions import FIELDS, check_spans, input_mentions, text_mention
from kgkit.errors import SourceError
from kgkit.types import Document

_NO_FIELDS: Final[Mapping[str, msgspec.Raw]] = {}


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


def read_documents(files: Sequence[Path], form: InputFormat) -> Iterator[Document]:
    """Yield the documents of *files*, in order; `-` is standard input.

    Args:
        files: files and folders.
        form: what a document is.

    Raises:
        NotThere: if there is no such file, or no text in a folder, before anything is yielded.
        SourceError: where a file is not UTF-8, a line is not such a record, or a mention no span of its text.
    """
    paths = find_files(files)
    return (parse_entry(entry).document for entry in read_entries(paths, form))


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
    name = entry.file if entry.line is None else f"{entry.file}:{entry.line}"
    text = _decode(entry, entry.content)
    return (
        _parse_record(entry, name, text, mention_fields)
        if entry.is_record
        else ParsedDocument(Document(name, text), _NO_FIELDS)
    )


def _parse_record(entry: SourceEntry, name: str, line: str, mention_fields: Sequence[str]) -> ParsedDocument:
    assert isinstance(entry.content, bytes)
    try:
        record, fields = _decode_record(entry.content), _decode_fields(entry.content)
        mentions = input_mentions(fields, mention_fields)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        reason = "a field is nested too deeply" if isinstance(error, RecursionError) else error
        problem = f'expected {{"id": …, "text": …}}: {reason}'
        raise SourceError(problem, path=Path(entry.file), line=entry.line, text=line) from None
    del fields["text"]
    for name_of_field in ("id", "mentions"):  # both are in the output, or in its links
        fields.pop(name_of_field, None)
    document = Document(name if record.id is None else str(record.id), record.text)
    if mentions is None:
        return ParsedDocument(document, fields)
    try:
        document.mentions = [text_mention(mention, record.text) for mention in mentions]
        check_spans(document.mentions, record.text)
    except SourceError as error:
        raise SourceError(error.message, path=Path(entry.file), line=entry.line, text=line) from None
    keys = tuple(mention.candidates for mention in mentions)
    if any(each is not None for each in keys):
        from kgkit.candidates import KeyedDocument  # here: few records have candidates

        document = KeyedDocument(document.id, document.text, mentions=document.mentions, keys=keys)
    return ParsedDocument(document, fields)


def _decode(entry: SourceEntry, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        path = Path(entry.file)
        if b"\0" in content:
            raise SourceError("is no text: it has NUL bytes", path=path, line=entry.line) from None
        raise SourceError(
            f"not UTF-8: byte 0x{content[error.start]:02x} at offset {entry.offset + error.start:,}; "
            "`iconv -f LATIN1 -t UTF-8` converts a file that is Latin-1",
            path=path, line=entry.line,
        ) from None  # fmt: skip
