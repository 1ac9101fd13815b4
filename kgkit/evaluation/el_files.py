"""Entity linking: the files of a data set.

    data          JSON lines, one document a line:
                  doc_id, tokens, sentences ([start, end) in tokens), mentions (start, end in tokens, entity,
                  and, if they have some, candidates: a list of entities, and type: that of the name)
    redirects     one JSON object: title -> title of the same page
    predictions   doc_id <TAB> start <TAB> end <TAB> entity: code points of the text; no entity for NIL

Any of them may be compressed. Other keys of the data are ignored. An entity is a
title, null where nothing in the knowledge base is meant: such a mention, and what a linker takes for one,
is called NIL. Titles are compared as Wikipedia does: an underscore is a space. A mention may have several
entities, as a list, or as the campaign HIPE writes items of Wikidata: `Q39|Q340787`. A link to any of them is
right.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.files import UniqueIds
from kgkit.files import lines, read_content, written
from kgkit.types import Document, LinkedDocument, Mention, mention_problem

T = TypeVar("T")

PageOf = Callable[[str], str]
"""Gives all titles of one page the same name."""

_BREAKS: Final = frozenset("\t\n\r\ufeff")  # the last one would be lost at the start of a file
_OFFSET: Final = re.compile(r"[0-9]{1,18}")
_ITEMS: Final = re.compile(r"(?:Q[0-9]+|NIL)(?:\|(?:Q[0-9]+|NIL))+")
_NIL: Final = "NIL"
_FIELDS: Final = 4


# -- documents --------------------------------------------------------------


class Labelled(msgspec.Struct, frozen=True, gc=False):
    """A span and what somebody says it means.

    Attributes:
        start, end: code points of the text, end exclusive.
        entity: its title or key; None for NIL.
        candidates: the entities it was chosen from; None if they are unknown.
        others: further entities that are as right.
    """

    start: int
    end: int
    entity: str | None
    candidates: tuple[str, ...] | None = None
    others: tuple[str, ...] = ()

    @property
    def entities(self) -> tuple[str, ...]:
        """The entity and the others; none for NIL."""
        return () if self.entity is None else (self.entity, *self.others)

    def pages(self, page: PageOf) -> set[str]:
        """Return the names of the pages of its entities."""
        return set(map(page, self.entities))


class GoldDocument(msgspec.Struct, frozen=True):
    """A document of a data set, its `mentions` those of the data.

    Attributes:
        document: the text, and its mentions.
        entities: what each of them means; None for NIL.
        candidates: what each may mean, if the data tell; None where they do not.
        types: type of the name that each is; "" where the data have none.
        others: further entities that each means as well, as those of another knowledge base.
    """

    document: Document
    entities: list[str | None]
    candidates: list[tuple[str, ...] | None] = []
    types: list[str] = []
    others: list[tuple[str, ...]] = []

    @property
    def gold(self) -> list[Labelled]:
        """The mentions with their entities, in the order of the data."""
        others = self.others or [()] * len(self.entities)
        rows = zip(self.document.mentions or (), self.entities, others, strict=True)
        return [
            Labelled(mention.start, mention.end, entity, others=further) for mention, entity, further in rows
        ]


GoldEntity = str | tuple[str, ...] | None
"""The entity of a mention, several, or none, as a data set has them."""


class GoldMention(NamedTuple):
    """A mention as a data set has it.

    Attributes:
        start, end: code points of the text, end exclusive.
        entity: its title or identifier, or several in the order of preference; None for NIL.
        surface: text that the data set says is there; None: it does not say.
        type: type of the name; "" where the data set has none.
        candidates: entities that it may mean; None where the data set has none.
    """

    start: int
    end: int
    entity: "GoldEntity"
    surface: str | None = None
    type: str = ""
    candidates: tuple[str, ...] | None = None


class GoldError(Exception):
    """A document that contradicts itself; its reader adds the file and the line."""


def make_gold_document(
    name: str,
    text: str,
    mentions: Iterable[GoldMention],
    *,
    sentences: list[tuple[int, int]] | None = None,
    tokens: list[tuple[int, int]] | None = None,
) -> GoldDocument:
    """Return a document of a data set. Mention N, from 0, has the id `NAME.mN`.

    Args:
        name: id of the document.
        text: its text.
        mentions: its mentions, in the order of the data.
        sentences, tokens: ranges of the text, if the data set has them.

    Raises:
        GoldError: if the id is empty, a span lies outside of the text, has another text than its surface,
            nothing but white space, or is that of another mention; or an entity is empty.
    """
    if not name:
        raise GoldError("the document has an empty id")
    rows = list(mentions)
    spans = [
        Mention(
            row.start,
            row.end,
            text[row.start : row.end] if row.surface is None else row.surface,
            id=f"{name}.m{index}",
        )
        for index, row in enumerate(rows)
    ]
    problem = mention_problem(text, spans)
    if problem is None:
        problem = _row_problem(rows, text)
    if problem is not None:
        raise GoldError(f"document {name!r}: {problem}")
    entities = [_entities(row.entity) for row in rows]
    return GoldDocument(
        Document(name, text, sentences, tokens, spans),
        [next(iter(each), None) for each in entities],
        [row.candidates for row in rows],
        [row.type for row in rows],
        [each[1:] for each in entities],
    )


def _entities(entity: GoldEntity) -> tuple[str, ...]:
    """Return the entities of a mention, each once; none for NIL."""
    if isinstance(entity, str):
        items = entity.split("|") if _ITEMS.fullmatch(entity) else [entity]
        entity = tuple(item for item in items if item != _NIL or len(items) == 1)
    return tuple(dict.fromkeys(entity or ()))


def _row_problem(rows: list[GoldMention], text: str) -> str | None:
    """Return the problem of the first mention that no scorer can use, whose span is one of the text."""
    numbers: dict[tuple[int, int], int] = {}
    for number, row in enumerate(rows, start=1):
        earlier = numbers.setdefault((row.start, row.end), number)
        if earlier != number:
            return f"mentions {earlier} and {number} have one span, {row.start} to {row.end}"
        if not text[row.start : row.end].strip():
            return f"mention {number} is nothing but white space"
        if not all(entity.strip() for entity in _entities(row.entity)):
            return f"mention {number} has an empty entity"
    return None


def gold_documents(
    data: Path, kind: type[T], make: Callable[[T, int], GoldDocument], what: str
) -> Iterator[GoldDocument]:
    """Yield the documents of JSON lines, one in memory at a time.

    Args:
        data: the file.
        kind: type of a line.
        make: function from a line and its number to a document; it may raise `GoldError`.
        what: description of a line, for errors.

    Raises (when the first document is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if a line is not of the type, or contradicts itself, or two documents have one id, or
            there is no document.
    """
    ids, decode, number = UniqueIds(data), msgspec.json.Decoder(kind).decode, 0
    for number, line in lines(data):
        try:
            document = make(decode(line), number)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise SourceError(f"no {what}: {error}", path=data, line=number, text=line) from None
        except GoldError as error:
            raise SourceError(str(error), path=data, line=number, text=line) from None
        ids.check(document.document.id, number, line)
        yield document
    if not number:
        raise SourceError("no document in it", path=data)


class _Mention(msgspec.Struct, frozen=True):
    start: int
    end: int
    entity: GoldEntity
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
    return gold_documents(data, _Record, _document_of_tokens, "document")


def _document_of_tokens(record: _Record, _: int) -> GoldDocument:
    name, count, bounds = str(record.doc_id), len(record.tokens), set[int]()
    reached = 0
    for first, last in record.sentences or ():
        if not reached <= first <= last <= count:
            raise GoldError(
                f"document {name!r}: a sentence of tokens {first} to {last}, expected some of {reached} to "
                f"{count}, in order"
            )
        reached = last
        if first < last:
            bounds |= {first, last}
    pieces, tokens, size = list[str](), list[tuple[int, int]](), 0
    for index, token in enumerate(record.tokens):
        gap = "" if not index else "\n" if index in bounds else " "
        start, size = size + len(gap), size + len(gap) + len(token)
        pieces += (gap, token)
        tokens.append((start, size))
    sentences = None
    if record.sentences is not None:
        sentences = [
            (tokens[first][0], tokens[last - 1][1]) for first, last in record.sentences if first < last
        ]
    mentions = []
    for row in record.mentions:
        if not 0 <= row.start < row.end <= count:
            raise GoldError(
                f"document {name!r}: a mention of tokens {row.start} to {row.end}, expected 0 to {count}"
            )
        start, end = tokens[row.start][0], tokens[row.end - 1][1]
        mentions.append(GoldMention(start, end, row.entity, None, row.type, row.candidates))
    return make_gold_document(name, "".join(pieces), mentions, sentences=sentences, tokens=tokens)


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
