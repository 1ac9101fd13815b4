"""Entity linking: the files of a data set.

    data          JSON lines, one document a line:
                  doc_id, tokens, sentences ([start, end) in tokens), mentions (start, end in tokens, entity,
                  and, if they have some, candidates: a list of entities, and type: that of the name)
    redirects     one JSON object: title -> title of the same page
    predictions   doc_id <TAB> start <TAB> end <TAB> entity: code points of the text; no entity for NIL

Any of them may be compressed. Other keys of the data are ignored. An entity is a
title, null where nothing in the knowledge base is meant: such a mention, and what a linker takes for one,
is called NIL. Titles are compared as Wikipedia does: an underscore is a space.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.files import json_lines, lines, read_content, written
from kgkit.types import Document, LinkedDocument, Mention

PageOf = Callable[[str], str]
"""Gives all titles of one page the same name."""

_BREAKS: Final = frozenset("\t\n\r\ufeff")  # the last one would be lost at the start of a file
_OFFSET: Final = re.compile(r"[0-9]{1,18}")
_FIELDS: Final = 4


# -- documents --------------------------------------------------------------


class Labelled(msgspec.Struct, frozen=True, gc=False):
    """A span and what somebody says it means.

    Attributes:
        start, end: code points of the text, end exclusive.
        entity: its title or key; None for NIL.
        candidates: the entities it was chosen from; None if they are unknown.
    """

    start: int
    end: int
    entity: str | None
    candidates: tuple[str, ...] | None = None


class GoldDocument(msgspec.Struct, frozen=True):
    """A document of a data set, its `mentions` those of the data.

    Attributes:
        document: the text, and its mentions.
        entities: what each of them means; None for NIL.
        candidates: what each may mean, if the data tell; None where they do not.
        types: type of the name that each is; "" where the data have none.
    """

    document: Document
    entities: list[str | None]
    candidates: list[tuple[str, ...] | None] = []
    types: list[str] = []

    @property
    def gold(self) -> list[Labelled]:
        """The mentions with their entities, in the order of the data."""
        pairs = zip(self.document.mentions or (), self.entities, strict=True)
        return [Labelled(mention.start, mention.end, entity) for mention, entity in pairs]


class _Mention(msgspec.Struct, frozen=True, omit_defaults=True):
    start: int
    end: int
    entity: str | None
    candidates: tuple[str, ...] | None = None
    type: str = ""


class _Record(msgspec.Struct, frozen=True):
    doc_id: int | str
    tokens: list[str]
    mentions: list[_Mention]
    sentences: list[tuple[int, int]] | None = None


def read_gold_documents(data: Path) -> Iterator[GoldDocument]:
    """Yield the documents of a data set, one in memory at a time.

    The text is the tokens joined by a space; where a sentence begins or ends, by
    a newline, so a mention that crosses sentences has one in its text. Without
    `sentences` all are joined by spaces. A sentence with nothing in it is left
    out. The mention at place N, from 0, has the id `DOC_ID.mN`.

    Raises (when the first document is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if a line is not such a record, ranges lie outside of the tokens,
            sentences overlap, two mentions have one span, or two documents one id.
    """
    names: set[str] = set()
    for number, line, record in json_lines(data, _Record, "not a document"):
        name = str(record.doc_id)
        if not name or name in names:
            problem = f"a second document {name!r}" if name else "an empty doc_id"
            raise SourceError(problem, path=data, line=number, text=line)
        names.add(name)
        try:
            document = _gold_document(name, record)
        except _Unexpected as error:
            problem = f"document {name!r}: {error}"
            raise SourceError(problem, path=data, line=number, text=error.text) from None
        yield document
    if not names:
        raise SourceError("no document in it", path=data)


class _Unexpected(Exception):
    """What is wrong with a record, and the part of it that is."""

    def __init__(self, message: str, part: object) -> None:
        super().__init__(message)
        self.text = msgspec.json.encode(part).decode()


def _gold_document(name: str, record: _Record) -> GoldDocument:
    count, bounds = len(record.tokens), set[int]()
    reached = 0
    for first, last in record.sentences or ():
        if not reached <= first <= last <= count:
            expected = f"a sentence of tokens {reached} to {count} at most"
            raise _Unexpected(f"expected {expected}, in order", (first, last))
        reached = last
        if first < last:
            bounds |= {first, last}
    pieces, tokens, size = list[str](), list[tuple[int, int]](), 0
    for index, token in enumerate(record.tokens):
        gap = "" if not index else "\n" if index in bounds else " "
        start, size = size + len(gap), size + len(gap) + len(token)
        pieces += (gap, token)
        tokens.append((start, size))
    text = "".join(pieces)
    sentences = None
    if record.sentences is not None:
        sentences = [
            (tokens[first][0], tokens[last - 1][1]) for first, last in record.sentences if first < last
        ]
    mentions: dict[tuple[int, int], Mention] = {}
    for index, row in enumerate(record.mentions):
        if not 0 <= row.start < row.end <= count:
            raise _Unexpected(f"expected a mention of tokens 0 to {count}", row)
        span = start, end = tokens[row.start][0], tokens[row.end - 1][1]
        if span in mentions or row.entity == "" or not text[start:end].strip():
            problem = (
                "a second mention of the same tokens" if span in mentions
                else "an empty entity; NIL is null" if row.entity == ""
                else "a mention of nothing but white space"
            )  # fmt: skip
            raise _Unexpected(problem, row)
        mentions[span] = Mention(start, end, text[start:end], id=f"{name}.m{index}")
    document = Document(name, text, sentences, tokens, list(mentions.values()))
    entities = [row.entity for row in record.mentions]
    candidates = [row.candidates for row in record.mentions]
    return GoldDocument(document, entities, candidates, [row.type for row in record.mentions])


# -- redirects --------------------------------------------------------------


class Redirects:
    """Gives a title the last one that redirects lead to, so that all titles of one page have one name.

    Titles come out with spaces for underscores. In a loop of redirects the
    first of its titles, by code points, stands for all.

    Args:
        targets: title -> title.

    Examples:
        >>> Redirects({"Big_Apple": "New_York_City"})("Big Apple")
        'New York City'
    """

    def __init__(self, targets: Mapping[str, str] | None = None) -> None:
        self._targets = {plain_title(title): plain_title(to) for title, to in (targets or {}).items()}
        self._titles: dict[str, list[str]] | None = None

    def __call__(self, title: str) -> str:
        title = plain_title(title)
        if title not in self._targets:
            return title
        passed = {title: None}
        while (title := self._targets.get(title, title)) not in passed:
            passed[title] = None
        loop = list(passed)
        return min(loop[loop.index(title) :])

    def titles(self, title: str) -> list[str]:
        """Return all titles of the page of *title*, in sorted order."""
        if self._titles is None:
            self._titles = {}
            for title_of_page in sorted({*self._targets, *self._targets.values()}):
                self._titles.setdefault(self(title_of_page), []).append(title_of_page)
        return self._titles.get(self(title), [plain_title(title)])


def plain_title(title: str) -> str:
    """Return *title* with spaces for underscores, as Wikipedia shows it."""
    return title.replace("_", " ").strip()


def read_redirects(path: Path) -> Redirects:
    """Return the redirects of a file.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is not one JSON object of titles.
    """
    content = read_content(path)
    try:
        return Redirects(msgspec.json.decode(content, type=dict[str, str]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f'expected {{"title": "title", …}}: {error}', path=path) from None


# -- predictions ------------------------------------------------------------


def links_of(linked: LinkedDocument) -> list[Labelled]:
    """Return the links of a document as they are scored and written, with the candidates they show."""
    return [
        Labelled(link.start, link.end, link.entity, tuple(candidate.entity for candidate in link.candidates))
        for link in linked.links
    ]


WriteLinks = Callable[[str, Iterable[Labelled]], None]
"""Takes the id of a document and its links."""


@contextmanager
def writing_links(path: Path) -> Iterator[WriteLinks]:
    """Give what writes the links of one document after the other to *path*.

    The file appears, whole, when the block ends without an error; only a pipe or
    a device is written to as it is. The suffix may ask for compression. A NIL is
    a line without an entity. Candidates are not written.

    Raises:
        UsageError: if an id is empty, or an id or entity has a tab or a line break in it.
        NotThere: if there is no folder to put it in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
    with written(path) as stream:

        def write(name: str, links: Iterable[Labelled]) -> None:
            """Write a line for each link of the document *name*."""
            for link in links:
                fields = name, str(link.start), str(link.end), link.entity or ""
                if not name or not _BREAKS.isdisjoint("".join(fields)):
                    raise UsageError(
                        f"a file of links has no place for an empty id, tabs or line breaks: {fields}"
                    )
                stream.write(("\t".join(fields) + "\n").encode())

        yield write


def write_links(path: Path, documents: Iterable[tuple[str, Iterable[Labelled]]]) -> None:
    """Write *documents*, pairs of an id and links, as `writing_links` does."""
    with writing_links(path) as write:
        for name, links in documents:
            write(name, links)


def read_links(path: Path) -> dict[str, list[Labelled]]:
    """Return the links of each document, in the order of the file; documents without any are not in it.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is not `doc_id, start, end, entity` with tabs between,
            or gives a document one span twice.
    """
    by_document: dict[str, dict[tuple[int, int], Labelled]] = {}
    for number, line in lines(path):
        fields = line.split("\t")
        if len(fields) != _FIELDS:
            problem = f"expected {_FIELDS} tab-separated fields (id, start, end, entity), found {len(fields)}"
            raise SourceError(problem, path=path, line=number, text=line)
        name, first, last, entity = fields
        if not (name and _OFFSET.fullmatch(first) and _OFFSET.fullmatch(last) and int(first) < int(last)):
            problem = "expected an id, and code points: a start and a greater end"
            raise SourceError(problem, path=path, line=number, text=line)
        span = int(first), int(last)
        links = by_document.setdefault(name, {})
        if span in links:
            raise SourceError("a span comes twice", path=path, line=number, text=line)
        links[span] = Labelled(*span, entity or None)
    return {name: list(links.values()) for name, links in by_document.items()}
