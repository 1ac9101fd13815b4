"""Names in texts: the files of K-BERT's tagging tasks, and how its released code scores spans.

Liu et al. (2020), "K-BERT": medical_ner, financial_ner, msra_ner. The first line names the columns, in any
order; each row has the characters of a text, or its tokens, and as many tags, with spaces between them:

    text_a <TAB> label
    患 者 腹 痛 。 <TAB> O O B-Symptom I-Symptom O

Only U+0020 divides: an ideographic space, or one that does not break, can be a token. Tags are O, B-TYPE and
I-TYPE. What names they mean is read in two ways, which differ where a row begins in the middle of a name, as
17 of medical_ner do, or its tags are ill-formed:

    conlleval      `read_tagged_rows`: an I-TYPE that follows none of its type begins a name. So typed scores
                   (`kgkit.evaluation.ner.score_names`) are those of CoNLL.
    the release    `release_spans`: a name begins at B- alone, and goes on until O or the next B-, whatever
                   the types of its I-. Scores of the released code are of these.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.columns import rows
from kgkit.evaluation.ner import OUTSIDE, Name, NamedDocument, NameScore, chunks
from kgkit.text import token_spans
from kgkit.types import Document

TEXT: Final = "text_a"
TAGS: Final = "label"
PADDING: Final = "[PAD]"
"""What the released code calls the tag of no token; its models can answer with it."""

_BEGINS: Final = ("B", "S")


class TaggedRow(NamedTuple):
    """A text, cut.

    Attributes:
        id: position among the rows of the file, from 1.
        tokens: T of them, none empty.
        tags: (T,) one of each.
    """

    id: str
    tokens: list[str]
    tags: list[str]


# -- files ------------------------------------------------------------------


def read_tags(path: Path) -> Iterator[TaggedRow]:
    """Yield the rows of a file as they are.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if its first line does not name the two columns, a row has not one tag for each token, a
            tag is none, or there are no rows.
    """
    for position, (number, line, fields) in enumerate(rows(path, (TEXT, TAGS)), start=1):
        tokens, tags = ([part for part in fields[name].split(" ") if part] for name in (TEXT, TAGS))
        if len(tokens) != len(tags) or not tokens:
            raise SourceError(
                f"expected a tag for each token, with spaces between them; found {len(tokens)} tokens, "
                f"{len(tags)} tags",
                path=path, line=number, text=line,
            )  # fmt: skip
        try:
            chunks(tags)
        except UsageError as error:
            raise SourceError(str(error), path=path, line=number, text=line) from None
        yield TaggedRow(str(position), tokens, tags)


def read_tagged_rows(path: Path) -> Iterator[NamedDocument]:
    """Yield a document for each row of a file: one sentence, its tokens, its names as conlleval reads them.

    The text is what `joined` makes of the tokens.

    Raises (when the first is asked for, or later): as `read_tags` does.
    """
    for name, tokens, tags in read_tags(path):
        text, spans = joined(tokens)
        names = [Name(spans[begin][0], spans[end - 1][1], kind) for begin, end, kind in chunks(tags)]
        yield NamedDocument(Document(name, text, [(0, len(text))], spans), names)


def joined(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Put the tokens of a row together, so that surfaces of a knowledge base can be found in it.

    If each is one character, the text was cut into characters, Latin ones too, and nothing is between them:
    `C T 片` is CT片. Else they are words, and a space is between two that `kgkit.text` would read as one
    without it: `使 用 iPhone 5 。` is 使用iPhone 5。

    Args:
        tokens: T of them, none empty.

    Returns:
        The text, and where each of the T tokens stands in it: code points, end exclusive.
    """
    characters = all(len(token) == 1 for token in tokens)
    parts, spans, size = list[str](), list[tuple[int, int]](), 0
    last = run = ""  # the last token, and the last two where nothing is between them
    for token in tokens:
        if not characters and _grow_together(run, token):
            parts.append(" ")
            size += 1
            last = ""
        parts.append(token)
        spans.append((size, size + len(token)))
        size += len(token)
        run, last = last + token, token
    return "".join(parts), spans


def _grow_together(before: str, after: str) -> bool:
    """Say whether a token of the two texts, put together, has a part of each."""
    return any(start < len(before) < end for start, end in token_spans(before + after))


# -- scores -----------------------------------------------------------------


def release_spans(tags: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of a row as the released code of K-BERT reads them: first token, one past the last.

    A span begins at each tag whose first letter is B or S. It ends before the next such tag, before O or
    `PADDING`, or with the row. With every other tag, of whatever type, it goes on; where nothing has begun,
    such a tag means nothing.

    Args:
        tags: (T,) any.
    """
    spans: list[tuple[int, int]] = []
    begin: int | None = None
    for index, tag in enumerate([*tags, OUTSIDE]):
        begins = tag.startswith(_BEGINS)
        if begin is not None and (begins or tag in (OUTSIDE, PADDING)):
            spans.append((begin, index))
            begin = None
        if begins:
            begin = index
    return spans


def score_release_spans(gold: Sequence[str], predicted: Sequence[str]) -> NameScore:
    """Score the tags of one row as the released code of K-BERT does, without types; scores of rows add up.

    Spans are those of `release_spans`. A predicted one is right if one of the gold begins and ends where it
    does, whatever the types of the two.

    Typed F1, as conlleval and `kgkit.evaluation.ner.score_names` have it, differs in two things. The type
    must be right too. And an I-TYPE that follows none of its type begins a name there; here it is none, or a
    part of the name before. So on well-formed tags, where each I-TYPE follows one of its type, this score is
    `NameScores.spans`, and typed F1 is never higher.

    Args:
        gold: (T,) tags of the data.
        predicted: (T,) tags of a model.

    Raises:
        UsageError: if there are more of the one than of the other.

    Departures:
        The released code reads the rows of a batch as one, each cut to a length or padded: a span that
        nothing ends goes on in the next row, and what is behind the cut is missing from the gold. What it
        counts as found has begin tags of injected words in it. Here each row stands alone, whole, without
        injected words. Where it divides by zero, ratios are 0.
    """
    if len(gold) != len(predicted):
        raise UsageError(f"{len(predicted)} tags for {len(gold)} tokens: expected one for each")
    gold_spans, predicted_spans = release_spans(gold), release_spans(predicted)
    return NameScore(len({*gold_spans} & {*predicted_spans}), len(predicted_spans), len(gold_spans))
