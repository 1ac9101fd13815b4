"""The mentions that records came with, in the layouts of those who find them.

    mentions    `kgkit tag`: start, end, perhaps text, id, lemma, pos, type, score, and candidates (keys)
    ents        spaCy, `Doc.to_json` and displaCy: start, end, label
    entities    GLiNER, `predict_entities`: start, end, text, label, score; or [start, end, label], as spaCy's
                training data
    spans       Prodigy, and lists of spaCy's spans: start, end, label

Offsets count code points of the text, the end is exclusive. The first of these fields that a record has is
read; null means that nobody has looked for mentions.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from kgkit.errors import SourceError
from kgkit.types import Mention

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


_Triple = tuple[int, int, str]
_decode = msgspec.json.Decoder(list[InputMention | _Triple] | None).decode


def input_mentions(
    fields: Mapping[str, msgspec.Raw], names: Sequence[str] = FIELDS
) -> list[InputMention] | None:
    """Return the mentions of a record, by whichever layout it has them; None if it has none.

    Args:
        fields: values of the record by name, undecoded.
        names: names of the fields that may have mentions.

    Raises:
        ValueError: if a field of mentions is none; says which.
    """
    for name in names:
        value = fields.get(name)
        if value is None or (name == "spans" and bytes(value)[:1] == b"{"):  # spaCy's groups of spans
            continue
        try:
            mentions = _decode(value)
        except msgspec.MsgspecError as error:
            reason = str(error).replace("`$", f"`$.{name}")
            hint = "" if name == "mentions" else f"; a field {name} that has no mentions needs another name"
            raise ValueError(f"{reason}{hint}") from None
        if mentions is not None:
            return [_as_mention(each) for each in mentions]
    return None


def _as_mention(mention: InputMention | _Triple) -> InputMention:
    if isinstance(mention, tuple):
        start, end, label = mention
        return InputMention(start, end, label=label)
    return mention


def text_mention(mention: InputMention, text: str) -> Mention:
    """Return a mention of *text*; with a score it is one that a tagger has weighed."""
    start, end, name = mention.start, mention.end, str(mention.id)
    span = text[start:end] if mention.text is None else mention.text
    if mention.score is None:
        return Mention(start, end, span, lemma=mention.lemma, pos=mention.pos, id=name)
    from kgkit.linking.mention_tagger import TaggedMention

    return TaggedMention(
        start, end, span, lemma=mention.lemma, pos=mention.pos, id=name,
        type=mention.type or mention.label, score=mention.score,
    )  # fmt: skip


def check_spans(mentions: list[Mention], text: str) -> None:
    """Refuse mentions that are no spans of the text, or have another text there.

    Raises:
        SourceError: without a file; says which mention.
    """
    from kgkit.candidates import mention_problem  # here: only records with mentions need it

    if problem := mention_problem(text, mentions):
        raise SourceError(problem)
