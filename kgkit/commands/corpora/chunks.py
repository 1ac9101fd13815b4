"""Chunks of documents, answered in this process or by workers, in order.

    entries ──chunked──▶ chunks ──answer_chunk──▶ lines of JSON, counts, skipped records

Chunks have the same bounds however many processes there are, and each is answered by itself, so that its
answers do not depend on where that was. The results of a few chunks for each worker wait for those before.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol

import msgspec

from kgkit.commands.corpora.documents import ParsedDocument, SourceEntry, parse_entry
from kgkit.commands.messages import ProgressCallback
from kgkit.commands.output import Write
from kgkit.errors import SourceError
from kgkit.types import Document, LinkedDocument

_ENTRIES: Final = 256  # of a chunk: a multiple of the batches of scorers
_BYTES: Final = 1 << 20  # of the texts of a chunk, roughly


ResultColumn = Literal["links", "mentions"]
Chunks = Iterator[Iterator[SourceEntry]]


class SkippedRecord(msgspec.Struct, frozen=True):
    """A record that could not be read.

    Attributes:
        file: name of its file.
        line: line at which it begins, or row of a Parquet file; None for a whole file.
        error: text of what is wrong with it.
    """

    file: str
    line: int | None
    error: str

    def __str__(self) -> str:
        return f"{self.file if self.line is None else f'{self.file}:{self.line}'}: {self.error}"


class RunCounts(NamedTuple):
    """How much has been answered.

    Attributes:
        documents: documents that were answered.
        items: links, or names, of these.
        skipped: records that could not be read.
    """

    documents: int = 0
    items: int = 0
    skipped: int = 0

    def add(self, more: "RunCounts") -> "RunCounts":
        """Return the sums."""
        return RunCounts(*map(sum, zip(self, more, strict=True)))


class DocumentAnswer(NamedTuple):
    """What is written of a document.

    Attributes:
        record: fields by name.
        items: number of its links, or names.
        document: the document with these.
    """

    record: Mapping[str, Any]
    items: int
    document: Document | LinkedDocument


class Answerer(ABC):
    """Answers documents, in order.

    Attributes:
        model: name of the model that answers.
    """

    model: str

    @abstractmethod
    def __call__(self, documents: Iterable[Document]) -> Iterator[DocumentAnswer]:
        """Yield an answer for each document."""

    def omissions(self) -> list[str]:
        """Return surfaces that were left out by their spelling since the last call."""
        return []

    def missing_documents(self) -> frozenset[str]:
        """Return names of documents that corrections are about, and that have not come so far."""
        return frozenset()

    def report_encoding(self, report: ProgressCallback) -> None:  # noqa: B027
        """Set what is called while a model encodes texts of entities that it needs."""


class AnswererFactory(Protocol):
    """Opens an `Answerer`; it travels to worker processes.

    Attributes:
        column: field of the answers that has links, or mentions.
        mention_fields: fields of a record in which its mentions are.
    """

    column: ClassVar[ResultColumn]
    mention_fields: ClassVar[Sequence[str]]

    def open(self) -> AbstractContextManager[Answerer]:
        """Return a context that gives what answers documents."""


class ChunkResult(NamedTuple):
    """What became of a chunk.

    Attributes:
        content: bytes of the answers; empty where they are written already.
        counts: numbers of the chunk.
        skipped: records that could not be read.
        model: name of the model that answered.
        omissions: surfaces that were left out, and no earlier result of the process named.
        missing_documents: names of documents that corrections are about, and that the process has not seen.
    """

    content: bytes
    counts: RunCounts
    skipped: Sequence[SkippedRecord]
    model: str
    omissions: Sequence[str]
    missing_documents: frozenset[str]


def answer_chunk(
    answerer: Answerer,
    entries: Iterable[SourceEntry],
    mention_fields: Sequence[str],
    write: Write,
    *,
    skip_bad: bool,
    take: Callable[[DocumentAnswer], None] = lambda answer: None,
) -> ChunkResult:
    """Answer the documents of a chunk, and write the answers.

    Args:
        answerer: what answers documents.
        entries: the chunk.
        mention_fields: fields of a record in which its mentions are.
        write: function that takes the answers.
        skip_bad: whether records that cannot be read are left out; else they are errors.
        take: function that gets each answer.

    Raises:
        SourceError: if a record cannot be read, and is not to be skipped.
    """
    skipped: list[SkippedRecord] = []
    carried: deque[Mapping[str, Any]] = deque()
    documents = items = 0

    def parse() -> Iterator[Document]:
        for parsed in parse_entries(entries, mention_fields, skipped, skip_bad=skip_bad):
            carried.append(parsed.fields)
            yield parsed.document

    for answer in answerer(parse()):
        fields = {name: value for name, value in carried.popleft().items() if name not in answer.record}
        write(msgspec.json.encode({**answer.record, **fields}) + b"\n")
        documents, items = documents + 1, items + answer.items
        take(answer)
    counts = RunCounts(documents, items, len(skipped))
    return ChunkResult(
        b"", counts, skipped, answerer.model, answerer.omissions(), answerer.missing_documents()
    )


def parse_entries(
    entries: Iterable[SourceEntry],
    mention_fields: Sequence[str],
    skipped: list[SkippedRecord],
    *,
    skip_bad: bool,
) -> Iterator[ParsedDocument]:
    """Yield the documents of entries; add those that cannot be read to *skipped*, if *skip_bad*.

    Raises:
        SourceError: if a record cannot be read, and is not to be skipped.
    """
    for entry in entries:
        try:
            parsed = parse_entry(entry, mention_fields)
        except SourceError as error:
            if not skip_bad:
                raise error.with_remedy() from None
            skipped.append(SkippedRecord(entry.file, error.line, error.message))
            continue
        yield parsed


def chunked(entries: Iterator[SourceEntry]) -> Chunks:
    """Yield entries in chunks; the bounds depend on the entries alone.

    A chunk is read as it is iterated over, so that what comes from a pipe is answered as it comes.
    """
    for first in entries:
        yield _chunk(first, entries)


def _chunk(first: SourceEntry, entries: Iterator[SourceEntry]) -> Iterator[SourceEntry]:
    entry, size = first, 0
    for count in range(1, _ENTRIES + 1):
        size += len(entry.content) if isinstance(entry.content, bytes) else 0
        yield entry
        if size >= _BYTES or count == _ENTRIES:
            return
        following = next(entries, None)
        if following is None:
            return
        entry = following


@dataclass(frozen=True, kw_only=True)
class ChunkTask:
    """What a worker does with chunks.

    Attributes:
        factory: what opens the answerer.
        skip_bad: whether records that cannot be read are left out.
    """

    factory: AnswererFactory
    skip_bad: bool

    def open(self, stack: ExitStack) -> Callable[[Sequence[SourceEntry]], ChunkResult]:
        """Return what answers a chunk, with the bytes of its answers."""
        answerer = stack.enter_context(self.factory.open())

        def answer(entries: Sequence[SourceEntry]) -> ChunkResult:
            pieces: list[bytes] = []
            fields = self.factory.mention_fields
            result = answer_chunk(answerer, entries, fields, pieces.append, skip_bad=self.skip_bad)
            return result._replace(content=b"".join(pieces))

        return answer
