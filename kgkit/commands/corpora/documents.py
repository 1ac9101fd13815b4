"""From entries of files to documents.

    text                 a file is one document, and its name is the document's id
    lines                every line is one; its id is FILE:LINE
    jsonl, csv, parquet  every record is one, with a text, and perhaps an id; without one it is FILE:LINE

A record may have mentions, in the layouts of those who find them:

    mentions    `kgkit tag`: start, end, perhaps text, id, lemma, pos, type, score, and candidates (keys)
    ents        spaCy, `Doc.to_json` and displaCy: start, end, label
    entities    GLiNER, `predict_entities`: start, end, text, label, score; or [start, end, label], as spaCy's
                training data
    spans       Prodigy, and lists of spaCy's spans: start, end, label

Offsets count code points of the text, the end is exclusive. The first of these fields that a record has is
read; null means that nobody has looked for mentions. The other fields of a record are carried to the output.

Input is UTF-8. Nothing of a text is changed, line ends included; only a byte order mark at the very start of
a file is left out.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from kgkit.commands.corpora.entries import SourceEntry
from kgkit.errors import SourceError
from kgkit.files import not_utf8
from kgkit.types import Document, Mention

FIELDS: Final = ("mentions", "ents", "entities", "spans")
"""Fields that may have the mentions of a record, the first of which counts."""


class InputMention(msgspec.Struct):
    """A mention as a record has it; `label` is another name for `type`."""

    start: int
    end: int
    text: str | None = None
    id: str | int = ""
    lemma: str = ""
    pos: str = ""
    type: str = ""
    label: str = ""
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    candidates: tuple[str, ...] | None = None


class ParsedDocument(NamedTuple):
    """A document, and what its record has beside text and id.

    Attributes:
        document: the document; a `KeyedDocument` if its mentions came with candidates.
        fields: other fields of the record by name, as they stand there.
    """

    document: Document
    fields: Mapping[str, msgspec.Raw]


class _Record(msgspec.Struct):
    text: str
    id: str | int | None = None


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_mentions = msgspec.json.Decoder(list[InputMention | tuple[int, int, str]] | None).decode


def parse_entry(entry: SourceEntry, mention_fields: Sequence[str] = FIELDS) -> ParsedDocument:
    """Return the document of an entry.

    Args:
        entry: bytes of the document.
        mention_fields: fields of a record in which mentions are looked for.

    Raises:
        SourceError: if it is not UTF-8, no such record, has a mention that is no span, or could not be read.
    """
    if isinstance(entry.content, SourceError):
        raise entry.content
    path, name = Path(entry.file), entry.file if entry.line is None else f"{entry.file}:{entry.line}"
    try:
        text = entry.content.decode()
    except UnicodeDecodeError as error:
        if b"\0" in entry.content:
            raise SourceError("is no text: it has NUL bytes", path=path, line=entry.line) from None
        raise not_utf8(error, path, entry.line) from None
    if not entry.is_record:
        return ParsedDocument(Document(name, text), {})
    try:
        return _parsed_record(entry.content, name, mention_fields)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        reason = "a field is nested too deeply" if isinstance(error, RecursionError) else error
        problem = f'expected {{"id": …, "text": …}}: {reason}'
    except SourceError as error:
        problem = error.message
    raise SourceError(problem, path=path, line=entry.line, text=text)


def _parsed_record(content: bytes, name: str, mention_fields: Sequence[str]) -> ParsedDocument:
    record, fields = _decode_record(content), _decode_fields(content)
    mentions = _input_mentions(fields, mention_fields)
    for name_of_field in ("id", "text", "mentions"):  # they are in the output, or in its links
        fields.pop(name_of_field, None)
    document = Document(name if record.id is None else str(record.id), record.text)
    if mentions is None:
        return ParsedDocument(document, fields)
    from kgkit.candidates import KeyedDocument, mention_problem  # here: few records have mentions

    document.mentions = [_text_mention(mention, record.text) for mention in mentions]
    if problem := mention_problem(record.text, document.mentions):
        raise SourceError(problem)
    keys = tuple(mention.candidates for mention in mentions)
    if any(each is not None for each in keys):
        document = KeyedDocument(document.id, document.text, mentions=document.mentions, keys=keys)
    return ParsedDocument(document, fields)


def _input_mentions(fields: Mapping[str, msgspec.Raw], names: Sequence[str]) -> list[InputMention] | None:
    """Return the mentions of a record, by whichever layout it has them; None if it has none.

    Raises:
        ValueError: if a field of mentions is none; says which.
    """
    for name in names:
        value = fields.get(name)
        if value is None or (name == "spans" and bytes(value)[:1] == b"{"):  # spaCy's groups of spans
            continue
        try:
            mentions = _decode_mentions(value)
        except msgspec.MsgspecError as error:
            reason = str(error).replace("`$", f"`$.{name}")
            hint = "" if name == "mentions" else f"; a field {name} that has no mentions needs another name"
            raise ValueError(f"{reason}{hint}") from None
        if mentions is not None:
            return [
                InputMention(each[0], each[1], label=each[2]) if isinstance(each, tuple) else each
                for each in mentions
            ]
    return None


def _text_mention(mention: InputMention, text: str) -> Mention:
    """Return a mention of *text*; with a score it is one that a tagger has weighed."""
    start, end, name = mention.start, mention.end, str(mention.id)
    span = text[start:end] if mention.text is None else mention.text
    if mention.score is None:
        return Mention(start, end, span, lemma=mention.lemma, pos=mention.pos, id=name)
    from kgkit.tagging.mention_tagger import TaggedMention

    return TaggedMention(
        start, end, span, lemma=mention.lemma, pos=mention.pos, id=name,
        type=mention.type or mention.label, score=mention.score,
    )  # fmt: skip
