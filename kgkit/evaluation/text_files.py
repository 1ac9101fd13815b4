"""Files of texts, or of pairs of them, with a label.

    {"text": …, "label": …}        JSON lines; a first text is called `text`, `text_a`, `sentence` or
                                   `sentence1`, a second one `text_b` or `sentence2`; there may be an
                                   `id`; other fields are ignored
    label <TAB> text_a <TAB> …     a first line that names the columns so, in any order; others are ignored
    TEXT <TAB> TEXT <TAB> LABEL    no such line; the second text may be left out

Fields are not quoted. A file may be compressed (`.xz`, `.bz2`, `.gz`). A first line with a column `label` and
none of the names of texts is refused: it would be taken for a text.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from kgkit.errors import SourceError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.files import UniqueIds, lines

_FIRST: Final = ("text", "text_a", "sentence", "sentence1")
_SECOND: Final = ("text_b", "sentence2")
_ID: Final = ("id", "index")
_LABEL: Final = ("label",)
_NAMES: Final = (
    f"the first text is called {', '.join(_FIRST[:-1])} or {_FIRST[-1]}, a second one {' or '.join(_SECOND)}"
)

_Line = msgspec.defstruct(
    "_Line",
    [
        *((name, str | None, None) for name in (*_FIRST, *_SECOND)),
        *((name, str | int | bool | None, None) for name in (*_ID, *_LABEL)),
    ],
)
"""What is read of a line of JSON."""


def read_texts(path: Path) -> Iterator[Example]:
    """Yield the examples of a file.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if it is of none of the kinds, a line has no text, or two examples have one id.
    """
    numbered, ids = lines(path), UniqueIds(path)
    first = next(numbered, None)
    if first is None:
        raise SourceError("no text in it: there are no lines", path=path)
    if first[1].lstrip().startswith("{"):
        for number, line in chain([first], numbered):
            example = _of_json(path, number, line)
            ids.check(example.id, number, line)
            yield example
        return
    columns = [name.strip().lower() for name in first[1].split("\t")]
    named = any(name in _FIRST for name in columns)
    if not named and not {*_LABEL}.isdisjoint(columns):
        raise SourceError(
            f"it names columns ({', '.join(columns)}), and no text among them: {_NAMES}",
            path=path, line=first[0], text=first[1],
        )  # fmt: skip
    if not named:
        columns = {2: ["text", "label"], 3: ["text_a", "text_b", "label"]}.get(len(columns), [])
        if not columns:
            raise SourceError(
                "expected TEXT, TEXT, LABEL or TEXT, LABEL with tabs between them, or a first line that "
                f"names the columns (label, text_a, text_b); found {first[1].count(chr(9)) + 1} fields",
                path=path, line=first[0], text=first[1],
            )  # fmt: skip
    empty = True
    for number, line in numbered if named else (first, *numbered):
        fields = line.split("\t")
        if len(fields) != len(columns):
            raise SourceError(
                f"expected {len(columns)} tab-separated fields ({', '.join(columns)}), found {len(fields)}",
                path=path, line=number, text=line,
            )  # fmt: skip
        example = _example(dict(zip(columns, fields, strict=True)), path, number, line)
        ids.check(example.id, number, line)
        yield example
        empty = False
    if empty:
        raise SourceError("no text in it: it names columns, and ends", path=path)


def _of_json(path: Path, number: int, line: str) -> Example:
    try:
        values = msgspec.structs.asdict(msgspec.json.decode(line, type=_Line))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(
            'expected {"text": "…", "label": "…"}: texts are strings, a label or an id is a string, a whole '
            f"number, true or false: {error}",
            path=path, line=number, text=line,
        ) from None  # fmt: skip
    fields = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
        if value is not None
    }
    return _example(fields, path, number, line)


def _example(fields: Mapping[str, str], path: Path, number: int, line: str) -> Example:
    def first_of(names: Sequence[str]) -> str | None:
        return next((fields[name] for name in names if name in fields), None)

    first, second, name, label = (first_of(names) for names in (_FIRST, _SECOND, _ID, _LABEL))
    if first is None:
        raise SourceError(f"there is no text: {_NAMES}", path=path, line=number, text=line)
    if label is not None and not label.strip():
        raise SourceError("the label is empty", path=path, line=number, text=line)
    texts = (first,) if second is None else (first, second)
    return Example(name or str(number), texts, gold=None if label is None else label.strip())
