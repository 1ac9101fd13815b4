"""Relations between two names in a sentence: SemEval-2010 task 8, its file and its official score.

    8001<tab>"The most common <e1>audits</e1> were about <e2>waste</e2> and recycling."
    Message-Topic(e1,e2)
    Comment: …
    <blank>

Hendrickx et al. (2010): nine relations, each with a direction, and `Other`, which has none. The comment is
left out in the test file without gold, and may be in any.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.files import UniqueIds, missing_gold
from kgkit.files import lines

OTHER: Final = "Other"

_FIRST: Final = re.compile(r"(\d+)\t(.*)")
_LABEL: Final = re.compile(r"([\w-]+)\((e1,e2|e2,e1)\)|Other")
_TAG: Final = re.compile(r"</?e[12]>")
_TAGS: Final = ["<e1>", "</e1>", "<e2>", "</e2>"]


class Relation(NamedTuple):
    """Two names in a sentence, and what holds between them.

    Attributes:
        id: of the instance.
        text: the sentence, without quotes and tags.
        first, second: code points where each name stands, end exclusive.
        label: `Message-Topic(e1,e2)`, …, or `Other`; None in a file without gold.
        first_type, second_type: of the names, such as `PERSON`; "" where the data have none.
        pair: key of the two entities, in any order; "" where the data have none.
    """

    id: str
    text: str
    first: tuple[int, int]
    second: tuple[int, int]
    label: str | None
    first_type: str = ""
    second_type: str = ""
    pair: str = ""


class TokenText:
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
        """Return the code points of tokens *begin* to *end*, inclusive: the *name* of the instance.

        Raises:
            SourceError: if there are no such tokens, or there is nothing in them.
        """
        if not 0 <= begin <= end < len(self._tokens):
            raise SourceError(
                f"{self._instance}: the {name} is tokens {begin} to {end}, expected places of 0 to "
                f"{len(self._tokens) - 1}",
                path=self._path, text=self.text,
            )  # fmt: skip
        span = self._starts[begin], self._starts[end] + len(self._tokens[end])
        if not self.text[slice(*span)].strip():
            raise SourceError(
                f"{self._instance}: the {name} is nothing but white space", path=self._path, text=self.text
            )
        return span


class RelationScore(NamedTuple):
    """How well relations were predicted, in [0, 1].

    Attributes:
        macro_f1: the official score: the mean of F1 over the relations of the gold but `Other`; an answer
            with the right relation in the wrong direction is wrong.
        accuracy: over all instances, `Other` too.
        f1: of each relation.
        instances: of the gold.
    """

    macro_f1: float
    accuracy: float
    f1: dict[str, float]
    instances: int


def read_relations(path: Path) -> Iterator[Relation]:
    """Yield the instances of a file, which may be compressed.

    Raises (when the first is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if an instance has not one first and one second name, or the id of another, or a label is
            none, or there are no instances.
    """
    pending: Relation | None = None
    count, ids = 0, UniqueIds(path)
    for number, line in lines(path):
        if match := _FIRST.fullmatch(line):
            if pending is not None:
                yield pending
            ids.check(match[1], number, line)
            pending = _instance(match[1], match[2], path, number, line)
            count += 1
        elif not line.startswith("Comment:"):
            if pending is None or pending.label is not None or not _LABEL.fullmatch(line.strip()):
                raise SourceError(
                    "expected an instance, its relation or its comment", path=path, line=number, text=line
                )
            pending = pending._replace(label=line.strip())
    if pending is not None:
        yield pending
    elif not count:
        raise SourceError("no instance in it: this is not a file of SemEval-2010 task 8", path=path)


def _instance(name: str, quoted: str, path: Path, number: int, line: str) -> Relation:
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
    return Relation(name, text, (first, second), (third, fourth), None)


def score_relations(gold: Iterable[Relation], answers: Mapping[str, str]) -> RelationScore:
    """Score answers, by the ids of the instances; an instance without one is wrong.

    Raises:
        UsageError: if an instance has no gold label, or an answer is no label.
    """
    if wrong := next((instance for instance in answers.values() if not _LABEL.fullmatch(instance)), None):
        raise UsageError(f"{wrong!r} is no relation: RELATION(e1,e2), RELATION(e2,e1) or Other")
    right, predicted, labelled = dict[str, int](), dict[str, int](), dict[str, int]()
    hits = count = 0
    for instance in gold:
        if instance.label is None:
            raise missing_gold(f"instance {instance.id}", "relation")
        answer, count = answers.get(instance.id), count + 1
        labelled[without_direction(instance.label)] = labelled.get(without_direction(instance.label), 0) + 1
        if answer is not None:
            predicted[without_direction(answer)] = predicted.get(without_direction(answer), 0) + 1
        if answer == instance.label:
            right[without_direction(instance.label)] = right.get(without_direction(instance.label), 0) + 1
            hits += 1
    f1 = {
        name: 2 * right.get(name, 0) / (predicted.get(name, 0) + total)
        for name, total in sorted(labelled.items())
        if name != OTHER
    }
    return RelationScore(sum(f1.values()) / max(1, len(f1)), hits / max(1, count), f1, count)


def without_direction(label: str) -> str:
    """Return a relation without its direction."""
    return label.partition("(")[0]
