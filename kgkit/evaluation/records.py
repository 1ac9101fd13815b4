"""Records: examples as fields with names, whether they are lines of JSON, lines with tabs, or dictionaries.

Every file without a format of its own is read through here, and so is what a program hands over to be
predicted. docs/tasks.md lists the names of fields for each task. In files:

    {"text": …, "label": …}        JSON lines: one object a line
    label <TAB> text_a <TAB> …     a first line that names the columns, in any order, in either case
    TEXT <TAB> LABEL               no such line: the number of fields decides what they are

Fields are not quoted: a quotation mark is a character like any other, as in the files of GLUE (Wang et al.
2019, "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language Understanding"). A file may be
compressed (`.xz`, `.bz2`, `.gz`, `.zst`). Fields that no task asks for are kept beside the example. What a
task makes of a record, and what the columns of files without names of columns are, its `Layout` says.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from kgkit.errors import SourceError, UsageError, abbreviate
from kgkit.evaluation.examples import EntityMark, Example
from kgkit.evaluation.ner import chunks
from kgkit.evaluation.task_formats import TYPES
from kgkit.evaluation.task_scores import RIGHT
from kgkit.text import token_spans

FIRST: Final = ("text", "text_a", "sentence", "sentence1")
SECOND: Final = ("text_b", "sentence2")
PAIRS: Final = (("question1", "question2"), ("#1 string", "#2 string"), ("question", "sentence"))
"""Names of both texts in the files of QQP, MRPC and QNLI."""

LABEL: Final = ("label", "gold_label", "is_duplicate", "quality")
SCORE: Final = ("score", "label")
ID: Final = ("id", "index")

LINKS: Final = ("links", "links_b")
"""Entities of the first text and of the second, as `kgkit link` writes them."""

LineFormat = Literal["auto", "lines", "tsv", "jsonl"]
"""What lines are: texts and nothing else; fields with tabs between them; objects; auto: as the first is."""

FURTHER: Final = "…"
"""Last name of columns behind which lines may have any number of further fields, which are ignored."""

CONTEXT: Final = ("context", "ctx", "premise")
CHOICES: Final = ("choices", "endings")
NUMBERED: Final = ("choice", "ending", "answer")

_SAME: Final = {"t": "T", "true": "T", "1": "T", "f": "F", "false": "F", "0": "F"}
_BINARY: Final = ("0", RIGHT)
_MARKS: Final = re.compile(r"[*?#]*")  # of linguists, before a sentence that is not acceptable
_MAX_CHOICES: Final = 1000

_LARGEST: Final = 3e38  # models learn numbers of 32 bits

_NAMES: Final = (
    f"the first text is called {', '.join(FIRST[:-1])} or {FIRST[-1]}, a second one {' or '.join(SECOND)}"
)
_EXPECTED: Final = (
    'expected {"text": "…", "label": "…"}: texts are strings, a label or an id is a string, a whole number, '
    "true or false"
)


class Record(NamedTuple):
    """An example as fields with names.

    Attributes:
        fields: values by name; in files with tabs the names are in lower case.
        number: line of the file, from 1; of dictionaries the same as *position*.
        position: among the records, from 1.
        path: the file; None where there is none.
        line: text of the line; None where there is none.
    """

    fields: Mapping[str, object]
    number: int
    position: int
    path: Path | None = None
    line: str | None = None

    def error(self, message: str) -> SourceError:
        """Return the error that *message* is, with the place of the record."""
        if self.line is None:
            return SourceError(f"record {self.position}: {message}", path=self.path)
        return SourceError(message, path=self.path, line=self.number, text=self.line)


class ParsedRecord(NamedTuple):
    """An example of a record.

    Attributes:
        example: the example.
        unused: fields of the record that the task does not use.
        record: the record; None for an example of a task's own format.
    """

    example: Example
    unused: dict[str, object]
    record: Record | None = None


class Fields:
    """The fields of a record, from which a task takes those that it uses. A null that it takes is no field.

    Args:
        record: the record.

    Attributes:
        unused: fields that have not been taken yet.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.unused: dict[str, object] = {
            name: value for name, value in record.fields.items() if value is not None
        }
        self._nulls = {name for name, value in record.fields.items() if value is None}

    def rest(self) -> dict[str, object]:
        """Return the fields that no one has asked for, nulls among them, in the order of the record."""
        if not self._nulls:
            return self.unused
        names = self.unused.keys() | self._nulls
        return {name: value for name, value in self.record.fields.items() if name in names}

    def take(self, *names: str) -> object:
        """Take the first field that goes by one of the names; None if there is none."""
        return self._named(names)[1]

    def _named(self, names: Sequence[str]) -> tuple[str, object]:
        if self._nulls:
            self._nulls.difference_update(names)
        for name in names:  # a generator takes several times as long, and there are many records
            if name in self.unused:
                return name, self.unused.pop(name)
        return "", None

    def text(self, *names: str) -> str | None:
        """Take a text.

        Raises:
            SourceError: if it is no string.
        """
        name, value = self._named(names)
        if value is not None and not isinstance(value, str):
            raise self.record.error(f"{_EXPECTED}: {name} is {abbreviate(repr(value))}")
        if value is not None:
            self._check_code_points(name, value)
        return value

    def _check_code_points(self, name: str, text: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.record.error(
                f"{name} has a code point that is half of a pair: {abbreviate(repr(text))}"
            ) from None

    def name(self, *names: str) -> str | None:
        """Take a label or an id: a string, or what JSON calls a whole number, true or false.

        Raises:
            SourceError: if it is something else.
        """
        name, value = self._named(names)
        if value is None or isinstance(value, str):
            return value
        if not isinstance(value, int):
            raise self.record.error(f"{_EXPECTED}: {name} is {abbreviate(repr(value))}")
        return msgspec.json.encode(value).decode()

    def label(self) -> str | None:
        """Take the label, without white space around it.

        Raises:
            SourceError: if it is empty, or of no type that a label may have.
        """
        label = self.name(*LABEL)
        if label is not None and not label.strip():
            raise self.record.error("the label is empty")
        return None if label is None else label.strip()

    def number(self, *names: str) -> float | None:
        """Take a finite number.

        Raises:
            SourceError: if it is none.
        """
        value = self.take(*names)
        if value is None:
            return None
        try:
            number = float(value) if isinstance(value, str | float | int) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if isinstance(value, bool) or not abs(number) <= _LARGEST:
            raise self.record.error(f"the {names[0]} is {abbreviate(repr(value))}: expected a finite number")
        return number

    def strings(self, *names: str) -> list[str] | None:
        """Take a list of strings.

        Raises:
            SourceError: if it is none.
        """
        name, value = self._named(names)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise self.record.error(f"{name} is {abbreviate(repr(value))}: expected a list of strings")
        self._check_code_points(name, "".join(value))
        return list(value)

    def spans(self, name: str, text: str, count: int) -> tuple[tuple[int, int], ...]:
        """Take so many spans of *text*: code points, end exclusive.

        Raises:
            SourceError: if there are more or fewer, or one is not in the text, or has nothing in it.
        """
        value = self.take(name)
        spans = list(value) if isinstance(value, list | tuple) else []
        plain = [
            (span[0], span[1])
            for span in spans
            if isinstance(span, list | tuple) and len(span) == 2 and all(type(end) is int for end in span)
            if 0 <= span[0] < span[1] <= len(text) and text[span[0] : span[1]].strip()
        ]
        if len(plain) != len(spans) or len(plain) != count:
            raise self.record.error(
                f"{name} is {abbreviate(repr(value))}: expected {count} spans of the text as [start, end], "
                "in code points, none of them empty"
            )
        return tuple(plain)

    def links(self, texts: Sequence[str]) -> tuple[EntityMark, ...] | None:
        """Return the entities that texts mention, and leave the fields; None where no field says which.

        A list is one of links if it is empty, or an object in it has a start, an end or an entity; whatever
        else goes by that name is a field of the data's own.

        Args:
            texts: the texts of the record.

        Raises:
            SourceError: if a link has no start and end in its text, or an entity that is no string.
        """
        marks, has_links = list[EntityMark](), False
        for index, (name, text) in enumerate(zip(LINKS, texts, strict=False)):
            value = self.unused.get(name)
            if not isinstance(value, list | tuple) or (value and not any(map(_is_like_link, value))):
                continue
            has_links = True
            try:
                links = msgspec.convert(value, list[_Link])
            except msgspec.ValidationError as error:
                raise self.record.error(f"in `{name}` {error}") from None
            for link in links:
                if link.entity is None:  # nothing in the knowledge base is meant
                    continue
                if not 0 <= link.start < link.end <= len(text):
                    raise self.record.error(
                        f"in `{name}` an object links {link.start} to {link.end}: expected a start and a "
                        f"greater end in the text, 0 to {len(text)}, in code points"
                    )
                marks.append(EntityMark(index, link.start, link.end, link.entity))
        return tuple(marks) if has_links else None

    def texts(self) -> tuple[str, ...]:
        """Take the text, or both texts.

        Raises:
            SourceError: if there is none.
        """
        if "text" not in self.unused and "text_a" not in self.unused:
            for first, second in PAIRS:
                if first in self.unused and second in self.unused:
                    pair = self.text(first), self.text(second)
                    return tuple(text for text in pair if text is not None)
        text, other = self.text(*FIRST), self.text(*SECOND)
        if text is None:
            raise self.record.error(f"there is no text: {_NAMES}")
        return (text,) if other is None else (text, other)

    def pair(self, task: str) -> tuple[str, ...]:
        """Take both texts.

        Raises:
            SourceError: if there are not two.
        """
        texts = self.texts()
        if len(texts) < 2:
            raise self.record.error(
                f"example {self.id()} is one text, not a pair, which the task {task} needs: a second one is "
                f"called {' or '.join(SECOND)}"
            )
        return texts

    def id(self, other: int | None = None) -> str:
        """Take the id; where there is none, it is *other*, or the number of the record."""
        return self.name(*ID) or str(self.record.number if other is None else other)


class _Link(msgspec.Struct):
    """A link as `kgkit link` writes it; further fields do not matter."""

    start: int
    end: int
    entity: str | None


def _is_like_link(item: object) -> bool:
    return isinstance(item, Mapping) and not {*_Link.__struct_fields__}.isdisjoint(item)


class Layout(NamedTuple):
    """How a task makes examples of records.

    Attributes:
        example: function from the fields of a record to an example.
        columns: function from the fields of the first line of a file that names no columns to their names;
            none if it does not know them.
        expected: description of such lines, for an error.
        names: names by which a first line is known to name columns, beside those of texts.
    """

    example: Callable[[Fields], Example]
    columns: Callable[[Sequence[str]], Sequence[str]] = lambda _: ()
    expected: str = "JSON lines"
    names: tuple[str, ...] = ()


# -- lines ------------------------------------------------------------------


def names_columns(fields: Sequence[str], *further: str) -> bool:
    """Return whether the fields of a first line, in lower case, are names of columns."""
    return any(name in (*FIRST, *further) for name in fields) or any({*pair} <= {*fields} for pair in PAIRS)


def records_of_lines(
    numbered: Iterable[tuple[int, str]],
    path: Path | None,
    layout: Layout,
    *,
    plain: bool = False,
    line_format: LineFormat = "auto",
) -> Iterator[Record]:
    """Yield the records of lines: of JSON, or with tabs.

    Args:
        numbered: lines that are not blank, without their ends, with their numbers from 1.
        path: the file, for errors.
        layout: of the task.
        plain: whether lines may be texts and nothing else.
        line_format: what the lines are; `lines` takes each whole, with its tabs.

    Raises (when the first is asked for, or later):
        SourceError: if a line is of another kind than the first, or there is none.
    """
    lines = iter(numbered)
    first = next(lines, None)
    if first is None:
        raise SourceError("no text in it: there are no lines", path=path)
    if line_format == "lines":
        for position, (number, line) in enumerate(chain([first], lines), start=1):
            yield Record({"text": line}, number, position, path, line)
        return
    if line_format == "jsonl" or (line_format == "auto" and first[1].lstrip().startswith("{")):
        for position, (number, line) in enumerate(chain([first], lines), start=1):
            yield Record(_object(path, number, line), number, position, path, line)
        return
    fields = first[1].split("\t")
    names: Sequence[str] = [name.strip().lower() for name in fields]
    if named := names_columns(names, *layout.names):
        _check_names(names, layout, path, first)
    else:
        if not {*LABEL[:3]}.isdisjoint(names):  # `quality` may well be a text
            raise SourceError(
                f"it names columns ({', '.join(names)}), and no text among them: {_NAMES}",
                path=path, line=first[0], text=first[1],
            )  # fmt: skip
        names = ("text",) if plain and len(fields) == 1 else layout.columns(fields)
        if not names:
            raise SourceError(
                f"expected {layout.expected}, or a first line that names the columns; found {len(fields)} "
                "fields",
                path=path, line=first[0], text=first[1],
            )  # fmt: skip
    position = 0
    for position, (number, line) in enumerate(lines if named else chain([first], lines), start=1):
        yield Record(_split(names, path, number, line), number, position, path, line)
    if not position:
        raise SourceError("no text in it: it names columns, and ends", path=path)


def _check_names(names: Sequence[str], layout: Layout, path: Path | None, first: tuple[int, str]) -> None:
    used = (*FIRST, *SECOND, *LABEL, *SCORE, *ID, *(name for pair in PAIRS for name in pair), *layout.names)
    if twice := next((name for name in used if names.count(name) > 1), None):
        raise SourceError(
            f"the column {twice} comes more than once: it must be clear which one is meant",
            path=path, line=first[0], text=first[1],
        )  # fmt: skip


def _object(path: Path | None, number: int, line: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(f"{_EXPECTED}: {error}", path=path, line=number, text=line) from None


def _split(names: Sequence[str], path: Path | None, number: int, line: str) -> dict[str, object]:
    fields = line.split("\t")
    least = len(names) - (names[-1] == FURTHER)
    if len(fields) < least or len(fields) > least == len(names):
        raise SourceError(
            f"expected {least} tab-separated fields ({', '.join(names)}), found {len(fields)}",
            path=path, line=number, text=line,
        )  # fmt: skip
    return dict(zip(names[:least], fields, strict=False))


# -- examples ----------------------------------------------------------------


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
