r"""Formats of the tasks' own: words in context, relations of three data sets, types of names.

WiC, Pilehvar and Camacho-Collados (2019); pairs have no ids, and are counted from 1:

    the release   word <TAB> N or V <TAB> INDEX-INDEX <TAB> first sentence <TAB> second sentence
                  with a file of its own for the gold: a line of T or F for each line of the pairs
    JSON lines    {"label": 1, "text": "Word: go. Sentence 1: … Sentence 2: …"}
                  with a label of 0 or 1, or none

SemEval-2010 task 8, Hendrickx et al. (2010): nine relations, each with a direction, and `Other`; comments are
left out:

    8001<tab>"The most common <e1>audits</e1> were about <e2>waste</e2> and recycling."
    Message-Topic(e1,e2)
    Comment: …

TACRED, Zhang et al. (2017), one JSON list. Places count tokens from 0, and the end is part of the name:

    [{"id": "61b3…", "relation": "per:title", "token": ["He", "leads", …], "subj_start": 0, "subj_end": 0,
      "obj_start": 4, "obj_end": 5, "subj_type": "PERSON", "obj_type": "TITLE", …}, …]

FewRel, Han et al. (2018), one JSON object with the instances of each relation. A name has the entity's key in
Wikidata, and the tokens, from 0, of each place where it stands; the first one is marked:

    {"P177": [{"tokens": ["A", "bridge", "over", "the", "Elbe", …],
               "h": ["blue wonder", "Q462297", [[1]]], "t": ["elbe", "Q1644", [[3, 4]]]}, …], "P364": …}

Open Entity, Choi et al. (2018), with the nine general types that Zhang et al. (2019), ERNIE, take of it:

    Choi et al.   JSON lines: annot_id, left_context_token (a list), mention_span (a string),
                  right_context_token (a list), y_str (a list of types)
    Zhang et al.  one JSON list: sent, start, end (code points, end exclusive), labels (a list of types)

Any of them may be compressed. Other keys are ignored.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.files import UniqueIds
from kgkit.files import lines, opened, read_content, without_mark

T = TypeVar("T")

SAME: Final = {True: "T", False: "F"}
"""The labels of WiC."""

TYPES: Final = (
    "person", "group", "organization", "location", "entity", "time", "object", "place", "event",
)  # fmt: skip
"""The general types of Open Entity."""

_BEGIN: Final = 4096  # bytes that say which format a file of relations has


# -- words in context -------------------------------------------------------

_WORD: Final = "Word: "
_FIRST: Final = ". Sentence 1: "
_SECOND: Final = " Sentence 2: "
_PLACES: Final = re.compile(r"[0-9]+-[0-9]+")


class _Pair(msgspec.Struct, frozen=True):
    text: str
    label: Literal[0, 1] | None = None


def read_wic(path: Path, gold: Path | None = None) -> Iterator[Example]:
    """Yield the pairs of a file of WiC.

    Args:
        path: the pairs, of either kind.
        gold: the lines of T and F that belong to a file of the release; without it its pairs have no label.

    Raises:
        NotThere: if there is no such file.
        UsageError: if *gold* is given for JSON lines, which carry their labels.
        SourceError: if a line is no pair or no label, there are none, or their numbers differ.
    """
    numbered = list(lines(path))
    if not numbered:
        raise SourceError("no pair in it: this is not a file of WiC", path=path)
    if numbered[0][1].lstrip().startswith("{"):
        if gold is not None:
            raise UsageError(f"{path} has its labels in its own lines: leave out the gold file {gold}")
        for position, source in enumerate(numbered, start=1):
            yield _pair_of_json(str(position), path, *source)
        return
    labels = [None] * len(numbered) if gold is None else _read_labels(gold)
    if len(labels) != len(numbered):
        raise SourceError(
            f"{len(labels)} labels, but {path} has {len(numbered)} pairs: give the gold file of these pairs",
            path=gold,
        )
    for position, (label, (number, line)) in enumerate(zip(labels, numbered, strict=True), start=1):
        yield Example(str(position), _released_pair(path, number, line), gold=label)


def _pair_of_json(name: str, path: Path, number: int, line: str) -> Example:
    try:
        record = msgspec.json.decode(line, type=_Pair)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(
            f'expected {{"label": 0 or 1, "text": "…"}}: {error}', path=path, line=number, text=line
        ) from None
    word, _, sentences = record.text.removeprefix(_WORD).partition(_FIRST)
    first, _, second = sentences.rpartition(_SECOND)
    if not (record.text.startswith(_WORD) and word.strip() and first.strip() and second.strip()):
        raise SourceError(
            "expected the text `Word: WORD. Sentence 1: … Sentence 2: …`",
            path=path, line=number, text=record.text,
        )  # fmt: skip
    if record.text.count(_SECOND) > 1:
        raise SourceError(
            f"cannot tell where the second sentence begins: {_SECOND.strip()!r} comes more than once; "
            "leave this pair out, or take the files of the release",
            path=path, line=number, text=record.text,
        )  # fmt: skip
    gold = None if record.label is None else SAME[bool(record.label)]
    return Example(name, (first.strip(), second.strip()), gold=gold)


def _released_pair(path: Path, number: int, line: str) -> tuple[str, str]:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != 5:
        raise SourceError(
            f"expected 5 tab-separated fields (word, pos, indices, two sentences), found {len(fields)}",
            path=path, line=number, text=line,
        )  # fmt: skip
    word, pos, places, first, second = fields
    if not (word and pos in ("N", "V") and _PLACES.fullmatch(places) and first and second):
        raise SourceError(
            "expected a word, N or V, the places of the word such as 2-1, and two sentences",
            path=path, line=number, text=line,
        )  # fmt: skip
    return first, second


def _read_labels(path: Path) -> list[str | None]:
    labels: list[str | None] = []
    for number, line in lines(path):
        if line.strip() not in SAME.values():
            raise SourceError("expected T or F", path=path, line=number, text=line)
        labels.append(line.strip())
    return labels


# -- relations --------------------------------------------------------------

_INSTANCE: Final = re.compile(r"(\d+)\t(.*)")
_LABEL: Final = re.compile(r"([\w-]+)\((e1,e2|e2,e1)\)|Other")
_TAG: Final = re.compile(r"</?e[12]>")
_TAGS: Final = ["<e1>", "</e1>", "<e2>", "</e2>"]

# How the tokenizer of TACRED writes brackets.
_BRACKETS: Final = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
}  # fmt: skip

_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_FEWREL: Final = re.compile(
    rb"\s*\{\s*(?:%(string)s\s*:\s*\[\s*\]\s*,\s*)*%(string)s\s*:\s*\[\s*\{\s*\"(?:tokens|h|t)\"\s*:"
    % {b"string": _STRING}
)


def read_relations(path: Path, _: Path | None = None) -> Iterator[Example]:
    """Yield the instances of a file of SemEval-2010 task 8, TACRED or FewRel, by its first character.

    The first mark is e1, the subject or the head. Types of names stand in the tail; instances of one pair of
    entities are a group.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if an instance has not one first and one second name within its text, or the id of
            another, or a label is none, or there are no instances.
    """
    with opened(path) as stream:
        begin = without_mark(stream.read(_BEGIN), path).lstrip()[:1]
    readers = {b"[": _read_tacred, b"{": _read_fewrel}
    return readers.get(begin, _read_semeval)(path)


def is_fewrel(path: Path) -> bool:
    """Return whether a file begins as one of FewRel: an object of lists of instances.

    Raises:
        NotThere, SourceError: if it is not there, or cannot be read.
    """
    with opened(path) as stream:
        return _FEWREL.match(without_mark(stream.read(_BEGIN), path)) is not None


def _read_semeval(path: Path) -> Iterator[Example]:
    pending: Example | None = None
    ids = UniqueIds(path)
    for number, line in lines(path):
        if match := _INSTANCE.fullmatch(line):
            if pending is not None:
                yield pending
            ids.check(match[1], number, line)
            pending = _semeval_instance(match[1], match[2], path, number, line)
        elif not line.startswith("Comment:"):
            if pending is None or pending.gold is not None or not _LABEL.fullmatch(line.strip()):
                raise SourceError(
                    "expected an instance, its relation or its comment", path=path, line=number, text=line
                )
            pending = pending._replace(gold=line.strip())
    if pending is None:
        raise SourceError("no instance in it: this is not a file of SemEval-2010 task 8", path=path)
    yield pending


def _semeval_instance(name: str, quoted: str, path: Path, number: int, line: str) -> Example:
    tags = list(_TAG.finditer(quoted))
    order = sorted(tags, key=lambda tag: tag[0].lstrip("</"))
    if sorted(tag[0] for tag in tags) != sorted(_TAGS) or [tag[0] for tag in order] != _TAGS:
        raise SourceError(
            "expected one name in <e1> and </e1>, one in <e2> and </e2>", path=path, line=number, text=line
        )
    offsets, parts, at, length = {}, [], 0, 0
    for tag in tags:
        parts.append(quoted[at : tag.start()])
        length += len(parts[-1])
        offsets[tag[0]] = length
        at = tag.end()
    text = "".join([*parts, quoted[at:]])
    begin = 1 if text.startswith('"') else 0
    text = text[begin:].removesuffix('"') if begin else text
    first, second, third, fourth = (offsets[tag] - begin for tag in _TAGS)
    if not (text[first:second].strip() and text[third:fourth].strip()):
        raise SourceError("a name is empty", path=path, line=number, text=line)
    return Example(name, (text,), ((first, second), (third, fourth)))


class _Tacred(msgspec.Struct, frozen=True):
    id: str | int
    token: list[str]
    subj_start: int
    subj_end: int
    obj_start: int
    obj_end: int
    relation: str | None = None
    subj_type: str = ""
    obj_type: str = ""


def _read_tacred(path: Path) -> Iterator[Example]:
    """Yield the instances of TACRED, its brackets for what stands for them (`-LRB-` and its like)."""
    records = _decoded(path, list[_Tacred], "a JSON list of instances of TACRED")
    if not records:
        raise SourceError("no instance in it: the list is empty", path=path)
    ids = UniqueIds(path, "instance")
    for position, record in enumerate(records, start=1):
        name = str(record.id)
        if not name:
            raise SourceError(
                f"instance {position} has an empty id: each needs its own, as answers go by it", path=path
            )
        ids.check(name, position)
        text = _TokenText([_BRACKETS.get(token, token) for token in record.token], f"instance {name}", path)
        marks = (
            text.span("subject", record.subj_start, record.subj_end),
            text.span("object", record.obj_start, record.obj_end),
        )
        types = (("SUBJECT", record.subj_type), ("OBJECT", record.obj_type))
        tail = tuple(f"[{role}={kind}]" for role, kind in types if kind)
        yield Example(name, (text.text,), marks, tail=tail, gold=record.relation)


class _FewRel(msgspec.Struct, frozen=True):
    tokens: list[str]
    h: tuple[str, str, list[list[int]]]
    t: tuple[str, str, list[list[int]]]


def _read_fewrel(path: Path) -> Iterator[Example]:
    """Yield the instances of FewRel; the id has the key of the relation and a number: `P177-1`."""
    relations = _decoded(
        path, dict[str, list[_FewRel]], "a JSON object of FewRel, with the instances of each relation"
    )
    if not any(relations.values()):
        raise SourceError("no instance in it: the object has no relation, or none has one", path=path)
    for label, records in relations.items():
        for number, record in enumerate(records, start=1):
            text = _TokenText(record.tokens, f"instance {label}-{number}", path)
            marks = (text.first_place("head", record.h[2]), text.first_place("tail", record.t[2]))
            keys = sorted([record.h[1], record.t[1]])
            group = " ".join(keys) if all(keys) else ""
            yield Example(f"{label}-{number}", (text.text,), marks, group=group, gold=label)


def _decoded(path: Path, kind: type[T], expected: str) -> T:
    """Return the JSON of a file, all of which is in memory at once."""
    content = read_content(path)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"expected {expected}: {error}", path=path) from None


class _TokenText:
    """The text of tokens, joined by a space.

    Args:
        tokens: tokens of one instance.
        instance: description of the instance, for errors.
        path: file that it is in.

    Attributes:
        text: the text.
    """

    def __init__(self, tokens: Sequence[str], instance: str, path: Path) -> None:
        self.text, self._tokens, self._instance, self._path = " ".join(tokens), tokens, instance, path
        self._starts = list(accumulate((len(token) + 1 for token in tokens), initial=0))

    def span(self, name: str, begin: int, end: int) -> tuple[int, int]:
        """Return the code points of tokens *begin* to *end*, inclusive: the *name* of the instance."""
        if not 0 <= begin <= end < len(self._tokens):
            raise self._error(
                f"the {name} is tokens {begin} to {end}, expected places of 0 to {len(self._tokens) - 1}"
            )
        span = self._starts[begin], self._starts[end] + len(self._tokens[end])
        if not self.text[slice(*span)].strip():
            raise self._error(f"the {name} is nothing but white space")
        return span

    def first_place(self, name: str, places: Sequence[Sequence[int]]) -> tuple[int, int]:
        """Return the code points of the first of some lists of tokens."""
        tokens = [*places[0]] if places else []
        if not tokens or tokens != [*range(tokens[0], tokens[0] + len(tokens))]:
            raise self._error(f"the {name} is tokens {tokens}, expected some that follow each other")
        return self.span(name, tokens[0], tokens[-1])

    def _error(self, problem: str) -> SourceError:
        return SourceError(f"{self._instance}: {problem}", path=self._path, text=self.text)


# -- types of names ---------------------------------------------------------


class _Choi(msgspec.Struct, frozen=True):
    left_context_token: list[str]
    mention_span: str
    right_context_token: list[str]
    y_str: list[str] | None = None
    annot_id: str | int = ""


class _Zhang(msgspec.Struct, frozen=True):
    sent: str
    start: int
    end: int
    labels: list[str] | None = None


def read_types(path: Path, _: Path | None = None) -> Iterator[Example]:
    """Yield the names of a file of Open Entity with their types; JSON lines one at a time.

    In JSON lines the text is the tokens and the span, joined by a space. Types other than `TYPES` are left
    out. The id is `annot_id`; where there is none, it is the place in the file, from 1.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if it is of neither kind, a span is not in its text or has nothing in it, two instances
            have one id, or there are no instances.
    """
    numbered = lines(path)
    first = next(numbered, None)
    if first is None:
        raise SourceError("no instance in it: this is not a file of Open Entity", path=path)
    if first[1].lstrip().startswith("["):
        yield from _read_zhang(path)
        return
    ids = UniqueIds(path)
    for position, (number, line) in enumerate(chain([first], numbered), start=1):
        example = _choi_instance(position, path, number, line)
        ids.check(example.id, number, line)
        yield example


def _choi_instance(position: int, path: Path, number: int, line: str) -> Example:
    try:
        record = msgspec.json.decode(line, type=_Choi)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(
            f"expected an instance as Choi et al. have them, or one JSON list as Zhang et al.: {error}",
            path=path, line=number, text=line,
        ) from None  # fmt: skip
    before = "".join(token + " " for token in record.left_context_token)
    text = " ".join([*record.left_context_token, record.mention_span, *record.right_context_token])
    span = _narrowed(text, len(before), len(before) + len(record.mention_span))
    if span is None:
        raise SourceError("mention_span has nothing in it", path=path, line=number, text=line)
    return Example(str(record.annot_id) or str(position), (text,), (span,), gold=_general(record.y_str))


def _read_zhang(path: Path) -> Iterator[Example]:
    records = _decoded(path, list[_Zhang], "a JSON list of instances as Zhang et al. have them")
    if not records:
        raise SourceError("no instance in it: the list is empty", path=path)
    for position, record in enumerate(records, start=1):
        span = None
        if 0 <= record.start < record.end <= len(record.sent):
            span = _narrowed(record.sent, record.start, record.end)
        if span is None:
            raise SourceError(
                f"instance {position}: the span is {record.start} to {record.end}, expected one of 0 to "
                f"{len(record.sent)} that is not white space",
                path=path, text=record.sent,
            )  # fmt: skip
        yield Example(str(position), (record.sent,), (span,), gold=_general(record.labels))


def _narrowed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span without the white space at its ends; None if nothing is left."""
    inner = text[start:end].lstrip()
    start = end - len(inner)
    return (start, start + len(inner.rstrip())) if inner else None


def _general(labels: Iterable[str] | None) -> frozenset[str] | None:
    return None if labels is None else frozenset(labels).intersection(TYPES)
