"""Entity linking: data sets of texts with linked mentions, as `kgkit link` writes them.

JSON lines, a document a line:

    id         or doc_id; without one the number of the line
    text
    links      or mentions: start, end (code points of the text), entity (a key, or null for NIL);
               perhaps text, type and, of mentions, candidates: a list of keys

Other keys are ignored, so links that somebody has corrected are gold. The candidates of links are not read:
they are the few that were shown.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from kgkit.errors import SourceError
from kgkit.evaluation.el_files import GoldDocument
from kgkit.evaluation.files import UniqueIds
from kgkit.evaluation.gold import GoldError, GoldMention, make_gold_document
from kgkit.files import json_lines


class _Link(msgspec.Struct, frozen=True):
    start: int
    end: int
    entity: str | None
    text: str | None = None
    type: str | None = None


class _Mention(_Link, frozen=True):
    candidates: tuple[str, ...] | None = None


class _Record(msgspec.Struct, frozen=True):
    text: str
    id: int | str | None = None
    doc_id: int | str | None = None
    links: list[_Link] | None = None
    mentions: list[_Mention] | None = None


def read_linked(path: Path) -> Iterator[GoldDocument]:
    """Yield the documents of a file of texts with links or mentions, one in memory at a time.

    Args:
        path: file of JSON lines.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no such record, has neither links nor mentions or both, its offsets do not
            fit its text, or two documents have one id.
    """
    ids = UniqueIds(path)
    for number, line, record in json_lines(path, _Record, "no text with links"):
        name = str(next((given for given in (record.id, record.doc_id) if given is not None), number))
        try:
            document = make_gold_document(name, record.text, _mentions(record))
        except GoldError as error:
            raise SourceError(str(error), path=path, line=number, text=line) from None
        ids.check(name, number)
        yield document


def _mentions(record: _Record) -> list[GoldMention]:
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
