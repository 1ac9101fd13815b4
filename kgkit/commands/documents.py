"""From files and standard input to documents.

    text    a file is one document, and its name is the document's id
    lines   every line is one; its id is FILE:LINE
    jsonl   every line is {"id": …, "text": …}; without an id it is FILE:LINE

A record of JSON lines may have `mentions`, as `kgkit tag` writes them: start and end in code points, and
perhaps text, id, lemma, pos, type and score (of a tagger), and candidates (keys of entities).

Input is UTF-8. Nothing of it is changed, line ends included, so that offsets
are those of the file; only a byte order mark at its very start is left out.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

import msgspec

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.types import Document, Mention

InputFormat = Literal["auto", "text", "lines", "jsonl"]

STDIN = Path("-")
_JSONL = (".jsonl", ".ndjson")
TEXTS: Final = (".txt", ".text", ".md", *_JSONL)
"""Suffixes of the files that are read of a folder."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class GivenDocument(Document):
    """A document with mentions that came with it.

    Attributes:
        candidates: for each mention the keys of its candidates; None where a generator is to look.
    """

    candidates: tuple[tuple[str, ...] | None, ...] = ()


class _Mention(msgspec.Struct):
    start: int
    end: int
    text: str | None = None
    id: str | int = ""
    lemma: str = ""
    pos: str = ""
    type: str = ""
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    candidates: tuple[str, ...] | None = None


class _Record(msgspec.Struct):
    text: str
    id: str | int | None = None
    mentions: list[_Mention] | None = None


def read_documents(
    files: Sequence[Path], form: InputFormat, *, recursive: bool = False
) -> Iterator[Document]:
    """Yield the documents of *files*, in order; `-` is standard input.

    Those with mentions are `GivenDocument`s.

    Args:
        files: files, and folders if *recursive*.
        form: what a document is.
        recursive: whether of a folder the texts in it are read, and in the folders in it.

    Raises:
        NotThere: if there is no such file, or no text in a folder, before anything is yielded.
        UsageError: if one is a folder, and not *recursive*.
        SourceError: where a file is not UTF-8, a line is not such a record, or a mention no span of its text.
    """
    paths: list[Path] = []
    for file in files:
        if file != STDIN and not file.exists():
            raise NotThere(f"no file {file}")
        if file.is_dir() and not recursive:
            raise UsageError(
                f"{file} is a folder; name the files in it, or add --recursive, which reads those that end "
                f"in {', '.join(TEXTS)}"
            )
        paths += texts_in(file) if file.is_dir() else [file]
    return (document for path in paths for document in _documents(path, form))


def texts_in(folder: Path) -> list[Path]:
    """Return the texts in a folder and in the folders in it, by their paths, but for hidden ones.

    Raises:
        NotThere: if there is none.
    """
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in TEXTS
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not paths:
        raise NotThere(f"no text in {folder}: --recursive reads files that end in {', '.join(TEXTS)}")
    return paths


def _documents(file: Path, form: InputFormat) -> Iterator[Document]:
    if form == "auto":
        form = "jsonl" if file.suffix.lower() in _JSONL else "text"
    # Names may have bytes that are no UTF-8; an id cannot.
    name = os.fsencode(file).decode(errors="replace")
    if file == STDIN:
        yield from _read(sys.stdin.buffer, name, form)
        return
    with file.open("rb") as stream:
        yield from _read(stream, name, form)


def _read(stream: BinaryIO, name: str, form: InputFormat) -> Iterator[Document]:
    if form == "text":
        content = stream.read()
        skipped = len(_BYTE_ORDER_MARK) if content.startswith(_BYTE_ORDER_MARK) else 0
        yield Document(name, _decode(content[skipped:], name, skipped))
        return
    make = _document_of_record if form == "jsonl" else _document_of_line
    for number, offset, line in _lines(stream):
        if line.strip():
            yield make(line, name, number, offset)


def _lines(stream: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of each line, from 1, where it begins in the file, and the line without its end."""
    offset = 0
    for number, line in enumerate(stream, start=1):
        skipped = len(_BYTE_ORDER_MARK) if number == 1 and line.startswith(_BYTE_ORDER_MARK) else 0
        yield number, offset + skipped, line[skipped:].rstrip(b"\r\n")
        offset += len(line)


def _document_of_line(line: bytes, name: str, number: int, offset: int) -> Document:
    return Document(f"{name}:{number}", _decode(line, name, offset))


def _document_of_record(line: bytes, name: str, number: int, offset: int) -> Document:
    text = _decode(line, name, offset)
    try:
        record = msgspec.json.decode(line, type=_Record)
    except (msgspec.MsgspecError, RecursionError) as error:
        reason = "a field is nested too deeply" if isinstance(error, RecursionError) else error
        problem = f'expected {{"id": …, "text": …}}: {reason}'
        raise SourceError(problem, path=Path(name), line=number, text=text) from None
    document = Document(f"{name}:{number}" if record.id is None else str(record.id), record.text)
    if record.mentions is None:
        return document
    from kgkit.candidates import mention_problem  # here: only those with mentions need it

    mentions = [_mention(entry, record.text) for entry in record.mentions]
    if problem := mention_problem(record.text, mentions) or "":
        raise SourceError(problem, path=Path(name), line=number, text=text)
    keys = tuple(entry.candidates for entry in record.mentions)
    return GivenDocument(document.id, document.text, mentions=mentions, candidates=keys)


def _mention(entry: _Mention, text: str) -> Mention:
    start, end, name = entry.start, entry.end, str(entry.id)
    span = text[start:end] if entry.text is None else entry.text
    if entry.score is None:
        return Mention(start, end, span, lemma=entry.lemma, pos=entry.pos, id=name)
    from kgkit.linking.tagger import TaggedMention  # here: it loads the encoder

    return TaggedMention(
        start, end, span, lemma=entry.lemma, pos=entry.pos, id=name, type=entry.type, score=entry.score
    )


def _decode(content: bytes, name: str, offset: int) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if b"\0" in content:
            raise SourceError("is no text: it has NUL bytes", path=Path(name)) from None
        raise SourceError(
            f"not UTF-8: byte 0x{content[error.start]:02x} at offset {offset + error.start:,}; "
            "`iconv -f LATIN1 -t UTF-8` converts a file that is Latin-1",
            path=Path(name),
        ) from None
