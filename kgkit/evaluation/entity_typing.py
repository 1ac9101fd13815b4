"""Types of entities in a sentence: Open Entity with its nine general types, its files and its score.

The data are of Choi et al. (2018), "Ultra-Fine Entity Typing": some ten thousand types, nine of them general.
Only those nine are read here, as by Zhang et al. (2019), "ERNIE: Enhanced Language Representation with
Informative Entities", and after them by Peters et al. (2019), KnowBert. Two kinds of file are read; the first
character tells which it is:

    Choi et al.     JSON lines: annot_id, left_context_token (a list), mention_span (a string),
                    right_context_token (a list), y_str (a list of types)
    Zhang et al.    one JSON list: sent, start, end (code points, end exclusive), labels (a list of types)

Other keys are ignored. Either may be compressed (`.xz`, `.bz2`, `.gz`, `.zst`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.files import UniqueIds
from kgkit.files import lines

TYPES: Final = (
    "person", "group", "organization", "location", "entity", "time", "object", "place", "event",
)  # fmt: skip


class Typed(NamedTuple):
    """A sentence, a span of it, and the types of what the span names.

    Attributes:
        id: of the instance, once in its file.
        text: the sentence.
        span: code points, end exclusive, with no white space at either end.
        types: those of the nine that hold, maybe none; None in a file without gold.
    """

    id: str
    text: str
    span: tuple[int, int]
    types: frozenset[str] | None


class TypeScore(NamedTuple):
    """How well types were predicted, in [0, 1]; 0 where a ratio has nothing below it.

    Attributes:
        precision: right of the predicted types.
        recall: right of the types that hold.
        f1: the harmonic mean of both.
        instances: of the gold.
    """

    precision: float
    recall: float
    f1: float
    instances: int


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


def read_typed(path: Path) -> Iterator[Typed]:
    """Yield the instances of a file; JSON lines one at a time.

    In JSON lines the text is the tokens and the span, joined by a space. Types other than the nine are left
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
        # A line break in JSON is never part of a string, so a blank line was none either.
        yield from _of_list([first[1], *(line for _, line in numbered)], path)
        return
    ids = UniqueIds(path)
    for position, (number, line) in enumerate(chain([first], numbered), start=1):
        instance = _of_line(position, path, number, line)
        ids.check(instance.id, number, line)
        yield instance


def _of_line(position: int, path: Path, number: int, line: str) -> Typed:
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
    return Typed(str(record.annot_id) or str(position), text, span, _general(record.y_str))


def _of_list(content: Sequence[str], path: Path) -> Iterator[Typed]:
    try:
        records = msgspec.json.decode("\n".join(content), type=list[_Zhang])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(
            f"expected a JSON list of instances as Zhang et al. have them: {error}", path=path
        ) from None
    if not records:
        raise SourceError("no instance in it: the list is empty", path=path)
    for position, record in enumerate(records, start=1):
        size = len(record.sent)
        if not 0 <= record.start < record.end <= size:
            raise SourceError(
                f"instance {position}: the span is {record.start} to {record.end}, expected 0 to {size}",
                path=path, text=record.sent,
            )  # fmt: skip
        span = _narrowed(record.sent, record.start, record.end)
        if span is None:
            raise SourceError(
                f"instance {position}: the span is nothing but white space", path=path, text=record.sent
            )
        yield Typed(str(position), record.sent, span, _general(record.labels))


def _narrowed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span without the white space at its ends; None if nothing is left."""
    inner = text[start:end].lstrip()
    start = end - len(inner)
    return (start, start + len(inner.rstrip())) if inner else None


def _general(labels: Iterable[str] | None) -> frozenset[str] | None:
    return None if labels is None else frozenset(labels).intersection(TYPES)


def score_typed(gold: Iterable[Typed], answers: Mapping[str, frozenset[str]]) -> TypeScore:
    """Score answers, by the ids of the instances, over the types of all instances together.

    An answer may be no type at all; an instance without an answer counts as one with such.

    Raises:
        UsageError: if an instance has no gold types, or an answer is none of the nine types.
    """
    if strange := sorted(frozenset[str]().union(*answers.values()).difference(TYPES)):
        raise UsageError(f"{strange[0]!r} is no general type; these are: {', '.join(TYPES)}")
    right = predicted = labelled = count = 0
    for instance in gold:
        if instance.types is None:
            raise UsageError(f"instance {instance.id} has no types: score on a file with gold")
        answer, count = answers.get(instance.id, frozenset()), count + 1
        right += len(answer & instance.types)
        predicted += len(answer)
        labelled += len(instance.types)
    f1 = 2 * right / max(1, predicted + labelled)
    return TypeScore(right / max(1, predicted), right / max(1, labelled), f1, count)
