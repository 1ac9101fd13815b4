"""Records: examples as fields with names, whether they are lines of JSON, lines with tabs, or dictionaries.

Every file without a format of its own is read through here, and so is what a program hands over to be
predicted. docs/tasks.md lists the names of fields for each task. In files:

    {"text": …, "label": …}        JSON lines: one object a line
    label <TAB> text_a <TAB> …     a first line that names the columns, in any order, in either case
    TEXT <TAB> LABEL               no such line: the number of fields decides what they are

Fields are not quoted: a quotation mark is a character like any other, as in the files of GLUE (Wang et al.
2019, "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language Understanding"). A file may be
compressed (`.xz`, `.bz2`, `.gz`, `.zst`). Fields that no task asks for are kept beside the example.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from kgkit.errors import SourceError, abbreviate
from kgkit.evaluation.examples import EntityMark, Example

FIRST: Final = ("text", "text_a", "sentence", "sentence1")
SECOND: Final = ("text_b", "sentence2")
PAIRS: Final = (("question1", "question2"), ("#1 string", "#2 string"), ("question", "sentence"))
"""Names of both texts in the files of QQP, MRPC and QNLI."""

LABEL: Final = ("label", "gold_label", "is_duplicate", "quality")
SCORE: Final = ("score", "label")
ID: Final = ("id", "index")

LINKS: Final = ("links", "links_b")
"""Entities of the first text and of the second, as `kgkit link` writes them."""

_LINK: Final = frozenset(["start", "end", "entity"])
"""What an object among these has."""

LineFormat = Literal["auto", "lines", "tsv", "jsonl"]
"""What lines are: texts and nothing else; fields with tabs between them; objects; auto: as the first is."""

FURTHER: Final = "…"
"""Last name of columns behind which lines may have any number of further fields, which are ignored."""

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
            for item in value:
                if not isinstance(item, Mapping) or _LINK - {*item}:
                    raise self.record.error(
                        f"in `{name}` an item is {abbreviate(repr(item))}: expected objects with start, end "
                        "and entity"
                    )
                start, end, entity = item["start"], item["end"], item["entity"]
                if entity is None:  # nothing in the knowledge base is meant
                    continue
                is_span = type(start) is int and type(end) is int and 0 <= start < end <= len(text)
                if not is_span or not isinstance(entity, str):
                    raise self.record.error(
                        f"in `{name}` an object links {start!r} to {end!r} to {entity!r}: expected a start "
                        f"and a greater end in the text, 0 to {len(text)}, in code points, and the key of an "
                        "entity"
                    )
                marks.append(EntityMark(index, start, end, entity))
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


def _is_like_link(item: object) -> bool:
    return isinstance(item, Mapping) and not _LINK.isdisjoint(item)


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
