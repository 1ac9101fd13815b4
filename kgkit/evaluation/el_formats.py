"""The formats of data sets of entity linking: which there are, which a file has, and readers of most.

    kgkit      JSON lines with tokens and mentions            kgkit.evaluation.el_files
    elevant    JSON lines with text and labels
    kilt       JSON lines with input and output
    aida       the columns of AIDA-CoNLL-YAGO
    nif        NIF 2.0 in Turtle or N-Triples                 kgkit.evaluation.nif
    docbin     spaCy's DocBin                                 kgkit.evaluation.doc_bin
    linked     JSON lines with text and links or mentions

A file's first bytes tell its format. What cannot be read twice, a pipe, has the format `kgkit` unless it is
named. A table has none of them, however it begins, unless it has the columns of AIDA.

ELEVANT (Bast et al. 2022), a document a line: id, text, and labels with span ([start, end) in code points),
entity_id, name, type, perhaps parent and optional.

KILT (Petroni et al. 2021), a mention a line: id; input, with the mention between `[START_ENT]` and
`[END_ENT]`; output, with answers and provenance with a title, empty for NIL, which KILT itself does not
have; candidates, in the files of some systems.

Texts with links, as `kgkit link` writes them, a document a line: id or doc_id; text; links or mentions, with
start, end (code points), entity (a key, a list of keys, or null for NIL), perhaps text, type and, of
mentions, candidates. Those of links are not read: they are the few that were shown.

AIDA-CoNLL-YAGO (Hoffart et al. 2011), a token a line, then, in a mention: B where it begins and I where it
continues, the whole mention, its entity in YAGO, or `--NME--` for NIL, and perhaps the page of Wikipedia, its
number, and an identifier of Freebase. A blank line ends a sentence. The page is the entity if there is one,
else YAGO's name is:

    -DOCSTART- (1 EU)
    EU  B  EU  --NME--
    rejects
    German  B  German  Germany  http://en.wikipedia.org/wiki/Germany  11867  /m/0345h
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from kgkit.errors import SourceError, UnknownName
from kgkit.evaluation.doc_bin import read_doc_bin
from kgkit.evaluation.el_files import (
    GoldDocument,
    GoldEntity,
    GoldError,
    GoldMention,
    Labelled,
    gold_documents,
    make_gold_document,
    read_gold_documents,
    read_links,
    writing_links,
)
from kgkit.evaluation.entity_iris import entity_of_iri
from kgkit.evaluation.files import UniqueIds
from kgkit.evaluation.nif import WriteDocument, read_nif, writing_nif
from kgkit.files import lines, opened, without_mark

_log = logging.getLogger(__name__)

GoldFormat = Literal["kgkit", "elevant", "kilt", "aida", "nif", "docbin", "linked"]
"""A format of data sets of entity linking."""

GOLD_FORMATS: Final[tuple[GoldFormat, ...]] = (
    "kgkit", "elevant", "kilt", "aida", "nif", "docbin", "linked",
)  # fmt: skip
"""All of them."""

_HEAD_BYTES: Final = 64 << 20  # of the first line: an article may be long, a book is not one line
_TURTLE: Final = ("@prefix", "@base", "prefix", "base", "<", "#", "_:")
_TABLES: Final = frozenset((".csv", ".tsv", ".parquet"))
_KEYS: Final[tuple[tuple[frozenset[str], GoldFormat], ...]] = (
    (frozenset({"tokens", "mentions"}), "kgkit"),
    (frozenset({"text", "labels"}), "elevant"),
    (frozenset({"input"}), "kilt"),
    (frozenset({"text"}), "linked"),
)

NIF_SUFFIXES: Final = frozenset((".ttl", ".nif"))
"""How the name of a file of predictions ends that are written as NIF."""

EntityField = Literal["id", "name"]
"""Field of an ELEVANT label that is compared with keys of a knowledge base: identifier or name."""

KILT_MARKS: Final = ("[START_ENT] ", " [END_ENT]")
"""Marks before and after the mention of a line of KILT."""


DOCUMENT_START: Final = "-DOCSTART-"
"""Beginning of the line before a document."""

NO_ENTITY: Final = "--NME--"
"""Text that stands for NIL."""

_COLUMNS: Final = (1, 4, 5, 6, 7)
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


def gold_format(path: Path) -> GoldFormat:
    """Return the format of a data set, by how its file begins.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it begins as none of the formats does.
    """
    if path.exists() and not path.is_file():
        return "kgkit"
    text = _first_line(path)
    if _begins_zlib(text):
        return "docbin"
    if text.startswith(b"{"):
        return _json_format(text, path)
    start = text[:40].decode("utf-8", "replace")
    if start.startswith(DOCUMENT_START):
        return "aida"
    is_table = not _TABLES.isdisjoint(suffix.lower() for suffix in path.suffixes)
    if not is_table and start.lower().startswith(_TURTLE):
        return "nif"
    raise SourceError(
        f"not recognised as a data set of entity linking ({', '.join(GOLD_FORMATS)}): write gold as JSON "
        f"lines of texts and mentions, or as AIDA's columns, which begin with {DOCUMENT_START}; "
        "`kgkit link letters -o links.jsonl` writes lines of plain texts, to be corrected and given here",
        path=path, line=1, text=start,
    )  # fmt: skip


def _begins_zlib(content: bytes) -> bool:
    """Say whether a zlib stream begins so, as a DocBin of spaCy does: an x, and a check (RFC 1950)."""
    return content[:1] == b"\x78" and (len(content) < 2 or not int.from_bytes(content[:2]) % 31)


def _first_line(path: Path) -> bytes:
    """Return the first line that is not blank, without a byte order mark."""
    with opened(path) as stream:
        while line := stream.readline(_HEAD_BYTES):
            if text := without_mark(line, path).lstrip():
                return text
    return b""


def _json_format(line: bytes, path: Path) -> GoldFormat:
    try:
        keys = set(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return "kgkit"  # whose reader says what is wrong
    return next((name for needed, name in _KEYS if needed <= keys), "kgkit")


def read_gold_data(
    path: Path,
    format: GoldFormat | None = None,
    *,
    entities: EntityField = "id",
) -> Iterator[GoldDocument]:
    """Yield the documents of a data set in any of the formats.

    Args:
        path: the file, which may be compressed.
        format: its format; None: as its beginning tells.
        entities: field of an ELEVANT label that is compared with the keys of a knowledge base.

    Raises:
        NotThere: if there is no such file.
        MissingExtra: if the package that reads the format is not installed.
        UnknownName: if there is no such format.
        SourceError: if the file is not of that format, or contradicts itself.
    """
    name = format or gold_format(path)
    if name not in GOLD_FORMATS:
        raise UnknownName("format of data", name, GOLD_FORMATS)
    readers: dict[GoldFormat, Callable[[Path], Iterator[GoldDocument]]] = {
        "kgkit": read_gold_documents,
        "elevant": partial(read_elevant, entities=entities),
        "kilt": read_kilt,
        "aida": read_aida,
        "nif": read_nif,
        "docbin": read_doc_bin,
        "linked": read_linked,
    }
    yield from readers[name](path)


def read_predictions(path: Path) -> dict[str, list[Labelled]]:
    """Return the links of each document, from a file of predictions: lines with tabs, or NIF.

    Args:
        path: file that `kgkit evaluate el --predictions` has written, or another system.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is neither.
    """
    start = _first_line(path)[:40]
    if b"\t" not in start and start.decode("utf-8", "replace").lower().startswith(_TURTLE):
        return {gold.document.id: gold.gold for gold in read_nif(path)}
    return read_links(path)


@contextmanager
def writing_predictions(path: Path) -> Iterator[WriteDocument]:
    """Give a function that writes the links of documents in turn: NIF by the suffix, else lines with tabs.

    Raises:
        UsageError, NotThere, OSError: as `writing_nif` and `writing_links` do.
    """
    if NIF_SUFFIXES.isdisjoint(suffix.lower() for suffix in path.suffixes[-2:]):
        with writing_links(path) as write:
            yield lambda document, links, _: write(document.id, links)
    else:
        with writing_nif(path) as write_document:
            yield write_document


# -- ELEVANT and KILT -------------------------------------------------------


class _Label(msgspec.Struct, frozen=True):
    span: tuple[int, int]
    entity_id: str | None
    name: str | None = None
    type: str | None = None
    parent: int | None = None
    optional: bool = False


class _Article(msgspec.Struct, frozen=True):
    id: int | str
    text: str
    labels: list[_Label]


def read_elevant(path: Path, entities: EntityField = "id") -> Iterator[GoldDocument]:
    """Yield the documents of a benchmark of ELEVANT, one in memory at a time.

    An identifier that is unknown (`Unknown…`, `<NIL>` and others in angle brackets) is NIL. Labels that are
    optional, and those within another label, are left out; the log says how many.

    Args:
        path: file of JSON lines.
        entities: field of a label that is its entity; a label without a name keeps its identifier.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no article with labels, its offsets do not fit its text, or two articles
            have one id.
    """
    skipped = 0

    def make(article: _Article, _: int) -> GoldDocument:
        """Return the document of an article."""
        nonlocal skipped
        rows = [label for label in article.labels if label.parent is None and not label.optional]
        skipped += len(article.labels) - len(rows)
        mentions = [_elevant_mention(row, entities) for row in rows]
        return make_gold_document(str(article.id), article.text, mentions)

    yield from gold_documents(path, _Article, make, "article of ELEVANT")
    if skipped:
        _log.warning("%s: %d labels are optional, or within another, and are left out", path, skipped)


def _elevant_mention(label: _Label, entities: EntityField) -> GoldMention:
    start, end = label.span
    identifier = label.entity_id
    is_nil = identifier is None or identifier.startswith(("<", "Unknown"))
    entity = None if is_nil else (entities == "name" and label.name) or identifier
    return GoldMention(start, end, entity, type=label.type or "")


class _Page(msgspec.Struct, frozen=True):
    title: str | None = None


class _Output(msgspec.Struct, frozen=True):
    answer: str | None = None
    provenance: list[_Page] = []


class _Instance(msgspec.Struct, frozen=True):
    id: int | str
    input: str
    output: list[_Output] = []
    candidates: tuple[str, ...] | None = None


def read_kilt(path: Path) -> Iterator[GoldDocument]:
    """Yield the documents of a file of KILT, one in memory at a time.

    Lines that follow each other with the same text are one document, which has the id of the first. An
    entity is the title of the first page of an answer, or the answer if it has none; several answers are
    several entities.

    Args:
        path: file of JSON lines.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no such record, marks more or less than one mention, or two have one id, or
            there is no line.
    """
    ids, decode = UniqueIds(path), msgspec.json.Decoder(_Instance).decode
    name, text, first_line = "", None, 0
    mentions: dict[tuple[int, int], GoldMention] = {}
    for number, line in lines(path):
        try:
            instance = decode(line)
            own_text, mention = _kilt_mention(instance)
        except (msgspec.MsgspecError, RecursionError, GoldError) as error:
            message = f"no mention of KILT: {error}"
            raise SourceError(message, path=path, line=number, text=line) from None
        ids.check(str(instance.id), number)
        span = mention.start, mention.end
        if text is not None and (own_text != text or span in mentions):
            yield _kilt_document(name, text, mentions, path, first_line)
            mentions, text = {}, None
        if text is None:
            name, text, first_line = str(instance.id), own_text, number
        mentions[span] = mention
    if text is None:
        raise SourceError("no document in it", path=path)
    yield _kilt_document(name, text, mentions, path, first_line)


def _kilt_mention(instance: _Instance) -> tuple[str, GoldMention]:
    """Return the text of a line of KILT, and the mention that it marks."""
    begin, finish = KILT_MARKS
    before, *after_begin = instance.input.split(begin)
    surface, *after = (after_begin or [""])[0].split(finish)
    if len(after_begin) != 1 or len(after) != 1:
        raise GoldError(f"expected one mention between {begin.strip()} and {finish.strip()}")
    titles = [
        next((page.title for page in output.provenance if page.title), output.answer)
        for output in instance.output
    ]
    entity = tuple(title for title in titles if title)
    start, end = len(before), len(before) + len(surface)
    mention = GoldMention(start, end, entity, surface, candidates=instance.candidates)
    return before + surface + after[0], mention


def _kilt_document(
    name: str, text: str, mentions: dict[tuple[int, int], GoldMention], path: Path, line: int
) -> GoldDocument:
    try:
        return make_gold_document(name, text, mentions.values())
    except GoldError as error:
        raise SourceError(str(error), path=path, line=line) from None


# -- texts with linked mentions ---------------------------------------------


class _Link(msgspec.Struct, frozen=True):
    start: int
    end: int
    entity: GoldEntity
    text: str | None = None
    type: str | None = None


class _LinkedMention(_Link, frozen=True):
    candidates: tuple[str, ...] | None = None


class _Linked(msgspec.Struct, frozen=True):
    text: str
    id: int | str | None = None
    doc_id: int | str | None = None
    links: list[_Link] | None = None
    mentions: list[_LinkedMention] | None = None


def read_linked(path: Path) -> Iterator[GoldDocument]:
    """Yield the documents of a file of texts with links or mentions, one in memory at a time.

    Args:
        path: file of JSON lines.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no such record, has neither links nor mentions or both, its offsets do not
            fit its text, or two documents have one id.
    """
    return gold_documents(path, _Linked, _linked_document, "text with links")


def _linked_document(record: _Linked, number: int) -> GoldDocument:
    name = next((given for given in (record.id, record.doc_id) if given is not None), number)
    return make_gold_document(str(name), record.text, _linked_mentions(record))


def _linked_mentions(record: _Linked) -> list[GoldMention]:
    if (record.links is None) == (record.mentions is None):
        what = "neither" if record.links is None else "both"
        raise GoldError(
            f"expected `mentions` (or `links`) beside the text, found {what}: a list of start, end and "
            "entity, empty where nothing is mentioned"
        )
    if record.links is not None:
        return [GoldMention(row.start, row.end, row.entity, row.text, row.type or "") for row in record.links]
    return [
        GoldMention(row.start, row.end, row.entity, row.text, row.type or "", row.candidates)
        for row in record.mentions or ()
    ]


# -- AIDA-CoNLL-YAGO --------------------------------------------------------


@dataclass
class _TokenRows:
    """The tokens of a document, while they are read.

    Attributes:
        name: id of the document.
        line: line that it begins in.
        pieces: tokens, and what stands between them.
        mentions: mentions so far.
    """

    name: str
    line: int
    pieces: list[str] = field(default_factory=list)
    tokens: list[tuple[int, int]] = field(default_factory=list)
    sentences: list[tuple[int, int]] = field(default_factory=list)
    mentions: list[GoldMention] = field(default_factory=list)
    size: int = 0

    def add(self, token: str, *, begins_sentence: bool) -> None:
        """Add a token to the text."""
        gap = "" if not self.tokens else "\n" if begins_sentence else " "
        start = self.size + len(gap)
        self.size = start + len(token)
        self.pieces += (gap, token)
        self.tokens.append((start, self.size))
        if begins_sentence or not self.sentences:
            self.sentences.append((start, self.size))
        else:
            self.sentences[-1] = (self.sentences[-1][0], self.size)

    def add_mention(self, columns: Sequence[str]) -> None:
        """Take the last token as the beginning, or as a further one, of a mention.

        Raises:
            GoldError: if it continues none, or has another surface.
        """
        tag, surface, yago, *page = columns
        start, end = self.tokens[-1]
        if tag == "B":
            entity = None if yago == NO_ENTITY else _entity(yago, page[0] if page else "")
            self.mentions.append(GoldMention(start, end, entity, surface))
            return
        previous = self.mentions[-1] if self.mentions else None
        if previous is None or len(self.tokens) < 2 or previous.end != self.tokens[-2][1]:
            raise GoldError("a mention continues (I) where none began (B)")
        if previous.surface != surface:
            raise GoldError(f"the mention {previous.surface!r} continues as {surface!r}")
        self.mentions[-1] = previous._replace(end=end)

    def document(self) -> GoldDocument:
        """Return the document.

        Raises:
            GoldError: if a mention has another text than its column says.
        """
        text = "".join(self.pieces)
        rows = []
        for row in self.mentions:
            # The column has spaces where the mention crosses sentences, and the text a line break.
            own = text[row.start : row.end]
            if own.split() != (row.surface or "").split():
                raise GoldError(f"document {self.name!r}: the tokens {own!r} are called {row.surface!r}")
            rows.append(row._replace(surface=own))
        return make_gold_document(self.name, text, rows, sentences=self.sentences or None, tokens=self.tokens)


def read_aida(path: Path) -> Iterator[GoldDocument]:
    """Yield the documents of a file with the columns of AIDA-CoNLL-YAGO, one in memory at a time.

    The text is the tokens joined by spaces, the sentences by newlines. The id of a document is what stands in
    brackets: `947testa CRICKET`.

    Args:
        path: the file.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line has other columns, a mention begins nowhere or has other tokens than its
            column says, two documents have one id, or there is none.
    """
    ids = UniqueIds(path)
    rows: _TokenRows | None = None
    previous = 0
    for number, line in lines(path):
        if line.startswith(DOCUMENT_START):
            if rows is not None:
                yield _finished(rows, path)
            name = line.removeprefix(DOCUMENT_START).strip()
            rows = _TokenRows(name.removeprefix("(").removesuffix(")").strip(), number)
            ids.check(rows.name, number)
        else:
            columns = line.rstrip("\t").split("\t")
            problem = _column_problem(columns, rows)
            if rows is None or problem is not None:
                raise SourceError(problem or "", path=path, line=number, text=line)
            rows.add(columns[0], begins_sentence=number > previous + 1)
            try:
                if len(columns) > 1:
                    rows.add_mention(columns[1:])
            except GoldError as error:
                raise SourceError(str(error), path=path, line=number, text=line) from None
        previous = number
    if rows is None:
        raise SourceError("no document in it", path=path)
    yield _finished(rows, path)


def _finished(rows: _TokenRows, path: Path) -> GoldDocument:
    try:
        return rows.document()
    except GoldError as error:
        raise SourceError(str(error), path=path, line=rows.line) from None


def _column_problem(columns: Sequence[str], rows: _TokenRows | None) -> str | None:
    if rows is None:
        return f"expected {DOCUMENT_START} before the first token: a file of AIDA's columns begins with it"
    if len(columns) not in _COLUMNS:
        return f"expected a token, or one with 3 to 6 columns of its mention, tabs between: {len(columns)}"
    if not columns[0].strip() or (len(columns) > 1 and columns[1] not in ("B", "I")):
        return "expected a token, then B or I, the mention and its entity"
    if len(columns) > 1 and not columns[3].strip():
        return f"a mention without an entity; NIL is {NO_ENTITY}"
    return None


def _entity(yago: str, page: str) -> str:
    """Return the title of a page, or what YAGO calls its entity, which escapes what is not ASCII."""
    if page:
        return entity_of_iri(page) or page
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), yago)
