r"""Entity linking: AIDA-CoNLL-YAGO, a token a line (Hoffart et al. 2011).

    -DOCSTART- (1 EU)
    EU	B	EU	--NME--
    rejects
    German	B	German	Germany	http://en.wikipedia.org/wiki/Germany	11867	/m/0345h

A line is a token, then, in a mention: B where it begins and I where it continues, the whole mention, its
entity in YAGO, or `--NME--` for NIL, and perhaps the page of Wikipedia, its number, and an identifier of
Freebase. A blank line ends a sentence. The page is the entity if there is one, else YAGO's name is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kgkit.errors import SourceError
from kgkit.evaluation.el_files import GoldDocument
from kgkit.evaluation.entity_iris import entity_of_iri
from kgkit.evaluation.files import UniqueIds
from kgkit.evaluation.gold import GoldError, GoldMention, make_gold_document
from kgkit.files import lines

DOCUMENT_START: Final = "-DOCSTART-"
"""What the line before a document begins with."""

NO_ENTITY: Final = "--NME--"
"""What stands for NIL."""

_COLUMNS: Final = (1, 4, 5, 6, 7)
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


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
            column says, or two documents have one id.
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
    if rows is not None:
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
