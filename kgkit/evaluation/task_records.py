"""How each task makes an example of a record, and what the columns of files without names of columns are."""

import re
from collections.abc import Sequence
from typing import Final

from kgkit.errors import UsageError, abbreviate
from kgkit.evaluation.entity_typing import TYPES
from kgkit.evaluation.examples import Example
from kgkit.evaluation.ner import chunks
from kgkit.evaluation.positive import POSITIVE
from kgkit.evaluation.records import FIRST, FURTHER, SCORE, SECOND, Fields, Layout
from kgkit.evaluation.tagged_rows import joined
from kgkit.text import token_spans

SAME: Final = {True: "T", False: "F"}
"""The labels of WiC."""

CONTEXT: Final = ("context", "ctx", "premise")
CHOICES: Final = ("choices", "endings")
NUMBERED: Final = ("choice", "ending", "answer")

_SAME: Final = {"t": "T", "true": "T", "1": "T", "f": "F", "false": "F", "0": "F"}
_BINARY: Final = ("0", POSITIVE)
_MARKS: Final = re.compile(r"[*?#]*")  # of linguists, before a sentence that is not acceptable
_MAX_CHOICES: Final = 1000


# -- records ----------------------------------------------------------------


def label_example(fields: Fields) -> Example:
    """Return a text, or a pair, and its label."""
    texts = fields.texts()
    return Example(fields.id(), texts, gold=fields.label())


def pair_example(fields: Fields) -> Example:
    """Return a pair and its label."""
    texts = fields.pair("pair")
    return Example(fields.id(), texts, gold=fields.label())


def ranking_example(fields: Fields) -> Example:
    """Return a question, what may be its answer, and 1 if it is right, else 0; `qid` names the question."""
    texts = fields.pair("ranking")
    question, label = (fields.name("qid") or "").strip(), fields.label()
    if label is not None and not question:
        raise fields.record.error(
            "there is no qid: whose answer is it? The first line names the columns qid, text_a, text_b, label"
        )
    if label is not None and label not in _BINARY:
        raise fields.record.error(
            f"the label is {abbreviate(repr(label))}; it is 1 of a right answer, else 0"
        )
    return Example(fields.id(), texts, group=question, gold=label)


def number_example(fields: Fields) -> Example:
    """Return a text, or a pair, and a number."""
    texts = fields.texts()
    return Example(fields.id(), texts, gold=fields.number(*SCORE))


def wic_example(fields: Fields) -> Example:
    """Return two sentences, and whether a word means the same in both."""
    texts = fields.pair("wic")
    label = fields.label()
    if label is not None and label.lower() not in _SAME:
        raise fields.record.error(f"the label is {abbreviate(repr(label))}; it is T or F")
    return Example(fields.id(), texts, gold=None if label is None else _SAME[label.lower()])


def tags_example(fields: Fields) -> Example:
    """Return a text with its tokens, and their tags.

    A field `tokens` has them as a list, `text_a` with spaces between them, as K-BERT's files; `text` is cut
    into those of `kgkit.text`, of which a blank one has none, and has no tags.
    """
    record = fields.record
    name = fields.id(record.position)
    tokens, tags = fields.strings("tokens"), None
    if tokens is not None:
        tags = fields.strings("tags")
    elif "text_a" in fields.unused:
        tokens, label = _parts(fields.text("text_a") or ""), fields.label()
        tags = None if label is None else _parts(label)
    if tokens is None:
        text = fields.text(*FIRST)
        if text is None:
            raise record.error("there is neither a text nor a list of tokens: name them text, or tokens")
        spans = token_spans(text)
    else:
        if not tokens or not all(tokens):
            raise record.error("there is no token, or an empty one")
        text, spans = joined(tokens)
    if tags is not None and len(tags) != len(spans):
        raise record.error(f"expected a tag for each token; found {len(spans)} tokens, {len(tags)} tags")
    try:
        chunks(tags or ())
    except UsageError as error:
        raise record.error(str(error)) from None
    return Example(name, (text,), tokens=tuple(spans), gold=None if tags is None else tuple(tags))


def _parts(text: str) -> list[str]:
    """Cut a text at U+0020: other white space can be a token."""
    return [part for part in text.split(" ") if part]


def relation_example(fields: Fields) -> Example:
    """Return a text with two marked names, their types where there are some, and what holds between them."""
    [text] = fields.texts()[:1]
    marks = fields.spans("marks", text, 2)
    types = fields.strings("types") or []
    if len(types) not in (0, 2):
        raise fields.record.error(f"types are {abbreviate(', '.join(types))}: expected one for each name")
    tail = tuple(f"[{role}={kind}]" for role, kind in zip(("SUBJECT", "OBJECT"), types, strict=False) if kind)
    return Example(fields.id(), (text,), marks, tail=tail, gold=fields.label())


def types_example(fields: Fields) -> Example:
    """Return a text with a marked name, and those of the nine general types that it has."""
    [text] = fields.texts()[:1]
    marks = fields.spans("marks", text, 1)
    labels = fields.strings("labels")
    gold = None if labels is None else frozenset(labels).intersection(TYPES)
    return Example(fields.id(), (text,), marks, gold=gold)


def choice_example(fields: Fields) -> Example:
    """Return a context, or a context and a question, or none; the choices; the index of the right one."""
    choices, record = fields.strings(*CHOICES), fields.record
    if choices is None:
        choices = _numbered(fields)
    if len(choices) < 2:
        raise record.error(
            f"there are {len(choices)} choices: expected a list of two or more, named choices, or fields "
            "choice0, choice1, …"
        )
    context = fields.text(*CONTEXT, *FIRST)
    question = fields.text("question", *SECOND)
    texts = tuple(text for text in (context, question) if text is not None)
    label = fields.number("label", "answer")
    if label is not None and label not in range(len(choices)):
        raise record.error(f"the label is {label:g}: expected the index of a choice, 0 to {len(choices) - 1}")
    gold = None if label is None else int(label)
    return Example(fields.id(), texts, gold=gold, choices=tuple(choices))


def _numbered(fields: Fields) -> list[str]:
    """Take the fields choice0, choice1, …; the numbers may begin with 1."""
    prefix = next((name for name in NUMBERED if {f"{name}0", f"{name}1"} & fields.unused.keys()), NUMBERED[0])
    begin = 0 if f"{prefix}0" in fields.unused else 1
    choices = []
    for number in range(begin, _MAX_CHOICES):
        choice = fields.text(f"{prefix}{number}")
        if choice is None:
            break
        choices.append(choice)
    return choices


# -- files without names of columns -----------------------------------------


def label_columns(fields: Sequence[str]) -> Sequence[str]:
    """Return the columns of a text, or a pair, with a label; of four those of CoLA (Warstadt et al. 2019).

    A line of CoLA has the source, 1 or 0, the linguist's mark, and the sentence. Its test file names columns.
    """
    if len(fields) == 4 and fields[1] in _BINARY and _MARKS.fullmatch(fields[2].strip()):
        return ("source", "label", "mark", "sentence")
    return {2: ("text", "label"), 3: ("text_a", "text_b", "label")}.get(len(fields), ())


def pair_columns(fields: Sequence[str]) -> Sequence[str]:
    """Return the columns of a pair, with a label or without."""
    return {2: ("text_a", "text_b"), 3: ("text_a", "text_b", "label")}.get(len(fields), ())


def number_columns(fields: Sequence[str]) -> Sequence[str]:
    """Return the columns of a text, or a pair, with a number; of seven or more those of the STS benchmark.

    A line of the STS benchmark (Cer et al. 2017) has the genre, the file, the year, a number that is not
    unique, the score, both sentences, and in some lines the sources of these.
    """
    if len(fields) >= 7 and _is_number(fields[4]):
        return ("genre", "file", "year", "number", "score", "sentence1", "sentence2", FURTHER)
    return {2: ("text", "score"), 3: ("text_a", "text_b", "score")}.get(len(fields), ())


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


# -- layouts ----------------------------------------------------------------

LABEL_LAYOUT: Final = Layout(
    label_example, label_columns, "TEXT, TEXT, LABEL or TEXT, LABEL with tabs between them"
)
PAIR_LAYOUT: Final = Layout(pair_example, pair_columns, "TEXT, TEXT, LABEL with tabs between them")
NUMBER_LAYOUT: Final = Layout(
    number_example, number_columns, "TEXT, TEXT, SCORE or TEXT, SCORE with tabs between them"
)
RANKING_LAYOUT: Final = Layout(
    ranking_example, pair_columns, "a qid, two texts and a label in JSON lines", names=("qid",)
)
WIC_LAYOUT: Final = Layout(wic_example, pair_columns, "two sentences with a tab between them")
TAGS_LAYOUT: Final = Layout(tags_example, expected="lists of tokens and tags in JSON lines")
RELATION_LAYOUT: Final = Layout(relation_example, expected="a text and two marks in JSON lines")
TYPES_LAYOUT: Final = Layout(types_example, expected="a text and a mark in JSON lines")
CHOICE_LAYOUT: Final = Layout(
    choice_example, expected="a list of choices in JSON lines",
    names=(*CONTEXT, *(f"{name}{number}" for name in NUMBERED for number in (0, 1))),
)  # fmt: skip
