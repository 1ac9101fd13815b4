"""CN-DBpedia, the encyclopaedic graph of Fudan University: its public dump, and what K-BERT made of it.

Xu et al. (2017), "CN-DBpedia: A Never-Ending Chinese Knowledge Extraction System". `docs/cn-dbpedia.md`
says where the files come from, what is known of them, and why things are kept as they are.

    subject                  an entity; what stands in the bracket at the end of its key is a type of it
    BaiduCARD                the description
    BaiduTAG                 types
    中文名, 外文名, 别名 …    names: an attribute, and aliases
    any other attribute      a triple if the value is the key of an entity, else an attribute
    a mention of m2e.txt     an alias, counted once
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

from kb_builders import cn_dbpedia_files as dump
from kgkit.building import (
    Alias,
    Aliases,
    Attribute,
    BadRecord,
    Builder,
    Entity,
    Files,
    Record,
    SourceInfo,
    Step,
)
from kgkit.errors import SourceError

KIND: Final = "entity"

CARDS: Final = frozenset(["BaiduCARD", "DESC"])
"""What the dump, and what the project's web service, calls the text at the head of an article."""

TAGS: Final = frozenset(["BaiduTAG", "CATEGORY_ZH"])
"""What they call its tags."""

SINGLE_VALUED: Final = frozenset(
    "中文名 中文名称 外文名 外文名称 英文名 英文名称 全称 全名 原名 本名 书名".split()
)
"""Attributes whose value is a name of the entity."""

NAMES: Final = frozenset(
    "别名 别称 又称 又名 亦称 俗称 俗名 简称 缩写 昵称 绰号 笔名 艺名 曾用名 旧称 古称 其他名称".split()
)
"""Attributes whose value may hold several names."""

LONGEST_NAME: Final = 64
"""Characters; what is longer in an attribute of names is a sentence about them."""

LONGEST_RUN: Final = 100_000
"""Lines of one subject that are kept together; the rest is told as another piece of it."""

_LINK: Final = re.compile("</?a(?: [^<>]*)?>")
_PARAGRAPH: Final = "|||"
_BETWEEN_NAMES: Final = re.compile("[、；;，]")
_OPENING, _CLOSING = "（(", "）)"


class CNDBpediaBuilder(Builder):
    """A dump of CN-DBpedia: a file, or a folder with several."""

    name: ClassVar[str] = "cn_dbpedia"
    version: ClassVar[str] = "1"
    smoothing: ClassVar[float] = 1.0
    language: ClassVar[str] = "zh"
    engine: ClassVar[str] = "local"
    pieces: ClassVar[bool] = True
    unit: ClassVar[str] = "lines"
    reads_lines: ClassVar[bool] = True

    def look(self, source: Path) -> Files:
        """Return the files of the dump at *source*: triples, and mentions if they are there."""
        info = SourceInfo(name="CN-DBpedia", url="http://kw.fudan.edu.cn/cndbpedia/")
        return Files(info, [file.path for file in dump.dump_files(source)])

    def parts(self, source: Path) -> Sequence[str]:
        """Return a name for each file, or for each range of bytes of one that can be read from its middle."""
        return [name for file in dump.dump_files(source) for name in dump.part_names(file)]

    def observe(self, source: Path, part: str) -> Iterator[Record | Step]:
        """Yield the records of the lines of a part, and a `Step` for each stretch of lines."""
        file, span = dump.part_of(source, part)
        read = _triples if file.fields == dump.TRIPLE else _mentions
        return read(file.path, dump.lines_of(file.path, span), self.bad_record)


def without_bracket(key: str) -> tuple[str, str]:
    """Return the name in *key* and what stands in the bracket behind it: `李娜（歌手）` -> `李娜`, `歌手`.

    Of several brackets it is the last, with those inside it. Without one, with nothing before it or
    nothing in it, all of *key* is the name.
    """
    if key[-1:] not in _CLOSING or not key:
        return key, ""
    depth = 0
    for index in range(len(key) - 1, -1, -1):
        if key[index] in _CLOSING:
            depth += 1
        elif key[index] in _OPENING:
            depth -= 1
            if not depth:
                name, inside = key[:index].strip(), key[index + 1 : -1].strip()
                return (name, inside) if name and inside else (key, "")
    return key, ""


_BadRecordOf = Callable[[SourceError], BadRecord]


def _triples(path: Path, batches: Iterator[dump.Lines], bad_record: _BadRecordOf) -> Iterator[Record | Step]:
    """Yield what the lines of triples say; a `Step` between two subjects, so that no entity is cut by it."""
    key = label = description = ""
    types: list[str] = []
    lines = 0
    for batch in batches:
        for index, line in enumerate(batch.texts):
            fields = [] if isinstance(line, SourceError) else [*map(str.strip, line.split("\t"))]
            if len(fields) != len(dump.TRIPLE) or "" in fields:
                if (error := _problem(path, batch, index, dump.TRIPLE)) is not None:
                    yield bad_record(error)
                continue
            subject, attribute, value = fields
            if subject != key or lines >= LONGEST_RUN:
                if key:
                    yield Entity(key, label, description, KIND, types=tuple(types))
                if lines >= dump.LINES:
                    yield Step(lines)
                    lines = 0
                key, description = subject, ""
                label, bracket = without_bracket(key)
                types = [bracket] if bracket else []
                yield Alias(label, key)
                if label != key:
                    yield Alias(key, key)
            lines += 1
            if "<" in value:
                value = _LINK.sub("", value).strip()
                if not value:
                    continue
            if attribute in CARDS:
                description = description or value.replace(_PARAGRAPH, "\n")
            elif attribute in TAGS:
                types.append(value)
            elif attribute in SINGLE_VALUED or attribute in NAMES:
                yield Attribute(key, attribute, value)
                for name in _names(attribute, value):
                    if name not in (key, label):
                        yield Alias(name, key)
            else:
                # A page, a price or a year is none of the entities that are called by a number.
                yield Attribute(key, attribute, value, not value.isdecimal())
    if key:
        yield Entity(key, label, description, KIND, types=tuple(types))
    yield Step(lines)


def _names(attribute: str, value: str) -> list[str]:
    names = [value] if attribute in SINGLE_VALUED else map(str.strip, _BETWEEN_NAMES.split(value))
    return [name for name in names if 0 < len(name) <= LONGEST_NAME]


def _mentions(path: Path, batches: Iterator[dump.Lines], bad_record: _BadRecordOf) -> Iterator[Record | Step]:
    for batch in batches:
        counts: dict[tuple[str, str], float] = {}
        for index, line in enumerate(batch.texts):
            fields = [] if isinstance(line, SourceError) else [*map(str.strip, line.split("\t"))]
            if len(fields) != len(dump.MENTION) or "" in fields:
                if (error := _problem(path, batch, index, dump.MENTION)) is not None:
                    yield bad_record(error)
                continue
            pair = fields[0], fields[1]
            counts[pair] = counts.get(pair, 0.0) + 1.0
        yield Aliases(counts)
        yield Step(len(batch.texts))


def _problem(path: Path, batch: dump.Lines, index: int, names: Sequence[str]) -> SourceError | None:
    """Return the fault of a line that has not the fields *names*; None for an empty one."""
    line = batch.texts[index]
    if isinstance(line, SourceError):
        return line
    if not line.rstrip("\r"):
        return None
    fields = [field.strip() for field in line.split("\t")]
    what = f"expected {len(names)} tab-separated fields ({', '.join(names)}), found {len(fields)}"
    if len(fields) == len(names):
        what = f"the {names[fields.index('')]} is empty"
    return SourceError(what, path=path, line=batch.number(index), text=line)
