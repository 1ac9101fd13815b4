"""Entity linking: data sets of JSON lines by ELEVANT and KILT.

ELEVANT (Bast et al. 2022), a document a line:

    id, text
    labels     span ([start, end) in code points), entity_id, name, type; perhaps parent, optional

KILT (Petroni et al. 2021), a mention a line:

    id
    input      the text, the mention between `[START_ENT]` and `[END_ENT]`
    output     answer, and provenance with a title; nothing in it for NIL, which KILT itself does not have
    candidates titles, in the files of some systems
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from kgkit.errors import SourceError
from kgkit.evaluation.el_files import GoldDocument
from kgkit.evaluation.files import UniqueIds
from kgkit.evaluation.gold import GoldError, GoldMention, make_gold_document
from kgkit.files import json_lines

_log = logging.getLogger(__name__)

EntityField = Literal["id", "name"]
"""What of an ELEVANT label is compared with the keys of a knowledge base: its identifier, or its name."""

KILT_MARKS: Final = ("[START_ENT] ", " [END_ENT]")
"""What stands before and after the mention of a line of KILT."""


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
    ids = UniqueIds(path)
    skipped = 0
    for number, _, article in json_lines(path, _Article, "no article of ELEVANT"):
        name = str(article.id)
        rows = [label for label in article.labels if label.parent is None and not label.optional]
        try:
            document = make_gold_document(
                name, article.text, [_elevant_mention(row, entities) for row in rows]
            )
        except GoldError as error:
            raise SourceError(str(error), path=path, line=number) from None
        ids.check(name, number)
        skipped += len(article.labels) - len(rows)
        yield document
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

    Lines that follow each other with the same text are one document, which has the id of the first. Its
    entity is the title of the first page of the first answer that has one, else that answer.

    Args:
        path: file of JSON lines.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line is no such record, marks more or less than one mention, or two have one id.
    """
    ids = UniqueIds(path)
    name, text, first_line = "", None, 0
    mentions: dict[tuple[int, int], GoldMention] = {}
    for number, line, instance in json_lines(path, _Instance, "no mention of KILT"):
        try:
            own_text, mention = _kilt_mention(instance)
        except GoldError as error:
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
    if text is not None:
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
    entity = next((title for title in titles if title), None)
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
