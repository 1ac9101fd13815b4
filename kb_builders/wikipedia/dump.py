"""Pages out of the XML of a MediaWiki dump, with expat and in bounded memory.

    <mediawiki xml:lang="en">
      <siteinfo> <dbname> <base> <case> <namespaces> <namespace key="0" /> …
      <page> <title> <ns> <id> <redirect title="…" /> <revision> … <text> …
      …

Of a page with several revisions the last counts. What no dump of MediaWiki holds is refused: a DTD, since
its entities may grow without end, and sections of CDATA and comments, in which a `<page>` may stand that is
none.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.parsers import expat

from kb_builders.wikipedia.streams import Blocks, blocks
from kb_builders.wikipedia.titles import Site, single_spaced
from kgkit.errors import SourceError

__all__ = ["Page", "pages", "site"]

MAX_TEXT: Final = 16 << 20
"""Characters of one text: MediaWiki's own limit is 2 MiB."""

_MAX_WORD: Final = 4_096  # of a title, a number
_MAX_TAG: Final = 8 << 20
_MAX_DEPTH: Final = 32
_MAX_HEAD: Final = 8 << 20

_OPENING: Final = b"<page>"
_ROOT: Final = b"<mediawiki>"
_READ: Final = {("title", 3), ("ns", 3), ("id", 3), ("text", 4)}


class Page(NamedTuple):
    """A page.

    Attributes:
        title: title with the namespace.
        namespace: its number; None if the dump does not tell.
        id: its number in the wiki; 0 if the dump does not tell.
        redirect: the title that the page leads to; None for a page of its own.
        text: wikitext of the last revision.
    """

    title: str
    namespace: int | None
    id: int
    redirect: str | None
    text: str


def site(path: Path) -> Site:
    """Return what the head of a dump says of its wiki.

    Raises:
        SourceError: if it is no dump.
    """
    head = _Head(blocks(path))
    return head.read()


class _Enough(Exception):
    """The pages that follow are those of the next part."""


def pages(content: Blocks, *, from_start: bool) -> Iterator[Page]:
    """Yield the pages that begin in a range of a dump.

    Args:
        content: the bytes from the beginning of the range on.
        from_start: whether that is the beginning of the file.

    Raises:
        SourceError: at the first thing that no dump holds; it says where.
    """
    reader = _Reader(content)
    blocks = iter(content) if from_start else _from_first_page(content, reader)
    for block in blocks:
        try:
            reader.feed(block)
        except _Enough:
            yield from reader.take_pages()
            return
        yield from reader.take_pages()
    reader.close()
    yield from reader.take_pages()


def _from_first_page(content: Blocks, reader: "_Reader") -> Iterator[bytes]:
    """Yield an opening tag, and the bytes from the first page of the range on; nothing if there is none."""
    before, passed = b"", 0
    blocks = iter(content)
    for block in blocks:
        data = before + block
        begin = data.find(_OPENING)
        if begin >= 0 and not (content.end is not None and passed + begin >= content.end):
            reader.begin_at(passed + begin - len(_ROOT))
            yield _ROOT + data[begin:]
            yield from blocks
            return
        if content.end is not None and passed + len(data) >= content.end + len(_OPENING):
            break
        before = data[-len(_OPENING) + 1 :]
        passed += len(data) - len(before)
    reader.fail_if_empty()


class _Reader:
    """Takes blocks of bytes and keeps the pages that were completed."""

    def __init__(self, content: Blocks) -> None:
        self._content, self._path = content, content.path
        self._first = 0  # what is added to an offset of the parser to have one of the content
        self._fed = self._depth = self._size = 0
        self._last = b""
        self._pages: list[Page] = []
        self._pieces: list[str] = []
        self._root = self._reading = ""
        self._stub = self._empty = False
        self._title, self._ns, self._id, self._text = "", "", "", ""
        self._redirect: str | None = None
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text, parser.buffer_size = True, 1 << 18
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        _refuse_what_no_dump_has(parser, self._error)

    def begin_at(self, first: int) -> None:
        """Take note of where in the content the first byte that is fed lies."""
        self._first = first

    def fail_if_empty(self) -> None:
        """Take note that there is no page."""
        self._empty = True

    def take_pages(self) -> list[Page]:
        """Return the pages that were completed since the last time."""
        pages, self._pages = self._pages, []
        return pages

    def feed(self, block: bytes) -> None:
        """Parse the next block of the dump.

        Raises:
            SourceError: if it is no XML, or has a tag that is too long for a dump.
        """
        self._last = block
        self._fed += len(block)
        try:
            self._parser.Parse(block, False)
        except expat.ExpatError as error:
            raise self._syntax_error(error) from None
        # Where a C `long` has 32 bits, so has the index.
        if (self._fed - self._parser.CurrentByteIndex) & 0xFFFFFFFF > _MAX_TAG:
            raise self._error(f"holds a tag of more than {_MAX_TAG >> 20} MiB: this is no dump")

    def close(self) -> None:
        """Parse the end of the dump.

        Raises:
            SourceError: if the file ends within an element, or is empty.
        """
        if self._empty:
            return
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            if self._fed == 0:
                raise SourceError("is empty: there is nothing to read", path=self._path) from None
            raise self._syntax_error(error) from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth = depth = self._depth + 1
        if (name, depth) in _READ:
            self._reading = name
            self._pieces, self._size = [], 0
            self._parser.CharacterDataHandler = self._take
            if name == "text":
                self._stub = attributes.get("bytes", "0") != "0" and "deleted" not in attributes
        elif depth == 2:
            if name == "page":
                end = self._content.end
                if end is not None and self._first + self._parser.CurrentByteIndex >= end:
                    raise _Enough
                if attributes:
                    raise self._error("has a <page> with attributes, which no dump has")
                self._title = self._ns = self._id = self._text = ""
                self._redirect = None
        elif depth == 3:
            if name == "redirect":
                self._redirect = attributes.get("title", "")
        elif depth == 1:
            if name != "mediawiki":
                raise self._error(f"is no dump of MediaWiki: its first element is <{name[:40]}>")
        elif depth > _MAX_DEPTH:
            raise self._error(f"nests elements more than {_MAX_DEPTH} deep: this is no dump")

    def _take(self, data: str) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MAX_WORD and self._size > (MAX_TEXT if self._reading == "text" else _MAX_WORD):
            limit = f"{MAX_TEXT:,} characters" if self._reading == "text" else f"{_MAX_WORD:,} characters"
            raise self._error(
                f"the <{self._reading}> of the page {self._title[:100]!r} has more than {limit}, "
                "which no MediaWiki stores"
            )

    def _end(self, name: str) -> None:
        if self._reading:
            self._parser.CharacterDataHandler = None
            text = "".join(self._pieces)
            match self._reading:
                case "text":
                    self._text = text
                    if self._stub and not text:
                        raise self._error(
                            f"the page {self._title!r} comes without its text: this is a dump of stubs; take "
                            "pages-articles"
                        )
                case "title":
                    self._title = text
                case "ns":
                    self._ns = text
                case "id":
                    self._id = text
            self._reading = ""
        elif self._depth == 2 and name == "page":
            self._pages.append(self._page())
        self._depth -= 1

    def _page(self) -> Page:
        title, text = single_spaced(self._title), self._text
        self._text = ""
        if not title:
            raise self._error("a page without a title")
        try:
            namespace = int(self._ns) if self._ns else None
            number = int(self._id) if self._id else 0
        except ValueError:
            raise self._error(
                f"the page {title!r} has the number {self._id!r} in the namespace {self._ns!r}: both "
                "have to be whole numbers"
            ) from None
        return Page(title, namespace, number, self._redirect, text)

    def _error(self, what: str) -> SourceError:
        location = self._content.location(max(0, self._first + self._parser.CurrentByteIndex))
        return SourceError(f"{what} (at {location})", path=self._path)

    def _syntax_error(self, error: expat.ExpatError) -> SourceError:
        """Say what expat has found, in a user's words."""
        offset = self._parser.ErrorByteIndex
        after_page = f", behind the page {self._title!r}" if self._title else ""
        location = self._content.location(max(0, self._first + offset))
        message = expat.ErrorString(error.code) or ""
        if message in _CUT_OFF:
            what = "is cut off: the XML ends before its last element does"
        elif bad := _invalid_utf8(self._last[max(0, offset - (self._fed - len(self._last))) :][:8]):
            what = f"holds bytes that are no UTF-8 ({bad})"
        else:
            what = f"is not well-formed XML: {message}"
        return SourceError(f"{what} (at {location}{after_page})", path=self._path)


_CUT_OFF: Final = (
    expat.errors.XML_ERROR_NO_ELEMENTS,
    expat.errors.XML_ERROR_UNCLOSED_TOKEN,
    expat.errors.XML_ERROR_PARTIAL_CHAR,
)


def _invalid_utf8(data: bytes) -> str:
    """Return the bytes that *data* begins with if they are no UTF-8, as one would write them."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if error.start == 0 and error.reason != "unexpected end of data":
            return " ".join(f"{byte:02x}" for byte in data[: max(1, error.end)])
    return ""


class _Head:
    """Reads a dump up to the end of its `siteinfo`, or to the first page if there is none."""

    def __init__(self, content: Blocks) -> None:
        self._content = content
        self._attributes: dict[str, str] = {}
        self._namespaces: list[tuple[int, str]] = []
        self._name, self._number = "", ""
        self._pieces: list[str] = []
        self._path: list[str] = []
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._pieces.append
        _refuse_what_no_dump_has(parser, self._error)

    def read(self) -> Site:
        """Return what there is."""
        fed = 0
        try:
            for block in self._content:
                if not fed and block.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise self._error("is UTF-16, and dumps are UTF-8: convert it")
                fed += len(block)
                self._parser.Parse(block, False)
                if fed > _MAX_HEAD:
                    raise self._error("has no page near its beginning: this is no dump of MediaWiki")
            if not fed:
                raise SourceError("is empty: there is nothing to read", path=self._content.path)
            self._parser.Parse(b"", True)
        except _Enough:
            pass
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code) or ""
            location = self._content.location(max(0, self._parser.ErrorByteIndex))
            what = (
                "is cut off" if message in _CUT_OFF else f"is no dump of MediaWiki, nor other XML: {message}"
            )
            raise SourceError(f"{what} (at {location})", path=self._content.path) from None
        attributes = self._attributes
        return Site(
            language=attributes.get("xml:lang", ""),
            name=attributes.get("dbname", ""),
            url=attributes.get("base", ""),
            first_letter=attributes.get("case", "first-letter") != "case-sensitive",
            namespaces=tuple(self._namespaces),
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._path:
            if name != "mediawiki":
                raise self._error(f"is no dump of MediaWiki: its first element is <{name[:40]}>")
            self._attributes["xml:lang"] = attributes.get("xml:lang", "")
        elif len(self._path) == 1 and name == "page":
            raise _Enough
        elif len(self._path) > _MAX_DEPTH:
            raise self._error(f"nests elements more than {_MAX_DEPTH} deep: this is no dump")
        self._path.append(name)
        self._pieces.clear()
        if name == "namespace":
            self._number = attributes.get("key", "")

    def _end(self, name: str) -> None:
        text = "".join(self._pieces).strip()
        if self._path == ["mediawiki", "siteinfo", name]:
            self._attributes.setdefault(name, text)
        elif name == "namespace" and self._number.lstrip("-").isdigit():
            self._namespaces.append((int(self._number), text))
        elif name == "siteinfo":
            raise _Enough
        self._path.pop()
        self._pieces.clear()

    def _error(self, what: str) -> SourceError:
        location = self._content.location(max(0, self._parser.CurrentByteIndex))
        return SourceError(f"{what} (at {location})", path=self._content.path)


def _refuse_what_no_dump_has(parser: expat.XMLParserType, error: Callable[[str], SourceError]) -> None:
    def document_type(*_: object) -> None:
        raise error("has a DOCTYPE, which no dump has, and whose entities may grow without end: refused")

    def cdata() -> None:
        raise error("has a section of CDATA, which no dump has: refused")

    def comment(_: str) -> None:
        raise error("has an XML comment, which no dump has: refused")

    parser.StartDoctypeDeclHandler = document_type
    parser.StartCdataSectionHandler = cdata
    parser.CommentHandler = comment
