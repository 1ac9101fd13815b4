"""Documents of a data set for entity linking, made from spans that are checked against their text."""

from collections.abc import Iterable
from typing import NamedTuple

from kgkit.evaluation.el_files import GoldDocument
from kgkit.text import mention_problem
from kgkit.types import Document, Mention


class GoldMention(NamedTuple):
    """A mention as a data set has it.

    Attributes:
        start, end: code points of the text, end exclusive.
        entity: its title or identifier; None for NIL.
        surface: text that the data set says is there; None: it does not say.
        type: type of the name; "" where the data set has none.
        candidates: entities that it may mean; None where the data set has none.
    """

    start: int
    end: int
    entity: str | None
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
    return GoldDocument(
        Document(name, text, sentences, tokens, spans),
        [row.entity for row in rows],
        [row.candidates for row in rows],
        [row.type for row in rows],
    )


def _row_problem(rows: list[GoldMention], text: str) -> str | None:
    """Return what is wrong with the first mention that no scorer can use, whose span is one of the text."""
    numbers: dict[tuple[int, int], int] = {}
    for number, row in enumerate(rows, start=1):
        earlier = numbers.setdefault((row.start, row.end), number)
        if earlier != number:
            return f"mentions {earlier} and {number} have one span, {row.start} to {row.end}"
        if not text[row.start : row.end].strip():
            return f"mention {number} is nothing but white space"
        if row.entity is not None and not row.entity.strip():
            return f"mention {number} has an empty entity"
    return None
