"""Words in context: whether a word means the same in two sentences, and how often the answer was right.

Pilehvar and Camacho-Collados (2019), "WiC: the Word-in-Context Dataset". Two kinds of file are read; the
first character tells which it is:

    the release   word <TAB> N or V <TAB> INDEX-INDEX <TAB> first sentence <TAB> second sentence
                  with a file of its own for the gold: a line of T or F for each line of the pairs
    JSON lines    {"label": 1, "text": "Word: go. Sentence 1: … Sentence 2: …"}
                  with a label of 0 or 1, or none

Either may be compressed. No pair has an id: those that are given here count the pairs
of one file from 1. The indices of the release, the places of the word among the tokens, are not kept, as the
JSON lines have none.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.files import missing_gold
from kgkit.files import lines

_WORD: Final = "Word: "
_FIRST: Final = ". Sentence 1: "
_SECOND: Final = " Sentence 2: "
_INDICES: Final = re.compile(r"[0-9]+-[0-9]+")
_POS: Final = {"N": "n", "V": "v"}
_LABELS: Final = {"T": True, "F": False}


class WordPair(NamedTuple):
    """A word and two sentences that it stands in, in some form of it.

    Attributes:
        id: position of the pair in the file, from 1.
        word: the lemma.
        pos: "n" or "v"; "" if unknown.
        first, second: the sentences.
        label: whether the word means the same in both; None in a file without gold.
    """

    id: str
    word: str
    pos: str
    first: str
    second: str
    label: bool | None


class PairScore(NamedTuple):
    """How well meanings were compared.

    Attributes:
        accuracy: the official score, in [0, 1]; 0 if there are no pairs.
        instances: pairs of the gold.
    """

    accuracy: float
    instances: int


class _Line(msgspec.Struct, frozen=True):
    text: str
    label: Literal[0, 1] | None = None


def read_pairs(path: Path, gold: Path | None = None) -> list[WordPair]:
    """Return the pairs of a file.

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
        return [_of_json(str(position), path, *source) for position, source in enumerate(numbered, start=1)]
    labels = [None] * len(numbered) if gold is None else _read_labels(gold)
    if len(labels) != len(numbered):
        raise SourceError(
            f"{len(labels)} labels, but {path} has {len(numbered)} pairs: give the gold file of these pairs",
            path=gold,
        )
    return [
        _of_release(str(position), label, path, *source)
        for position, (label, source) in enumerate(zip(labels, numbered, strict=True), start=1)
    ]


def _of_json(name: str, path: Path, number: int, line: str) -> WordPair:
    try:
        record = msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceError(
            f'expected {{"label": 0 or 1, "text": "…"}}: {error}', path=path, line=number, text=line
        ) from None
    word, _, sentences = record.text.removeprefix(_WORD).partition(_FIRST)
    first, _, second = sentences.rpartition(_SECOND)
    word, first, second = word.strip(), first.strip(), second.strip()
    if not (record.text.startswith(_WORD) and word and first and second):
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
    return WordPair(name, word, "", first, second, None if record.label is None else bool(record.label))


def _of_release(name: str, label: bool | None, path: Path, number: int, line: str) -> WordPair:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != 5:
        raise SourceError(
            f"expected 5 tab-separated fields (word, pos, indices, two sentences), found {len(fields)}",
            path=path, line=number, text=line,
        )  # fmt: skip
    word, pos, indices, first, second = fields
    if not (word and pos in _POS and _INDICES.fullmatch(indices) and first and second):
        raise SourceError(
            "expected a word, N or V, the places of the word such as 2-1, and two sentences",
            path=path, line=number, text=line,
        )  # fmt: skip
    return WordPair(name, word, _POS[pos], first, second, label)


def _read_labels(path: Path) -> list[bool | None]:
    labels: list[bool | None] = []
    for number, line in lines(path):
        if line.strip() not in _LABELS:
            raise SourceError("expected T or F", path=path, line=number, text=line)
        labels.append(_LABELS[line.strip()])
    return labels


def score_pairs(gold: Iterable[WordPair], answers: Mapping[str, bool]) -> PairScore:
    """Score answers, by the ids of the pairs; a pair without one is wrong.

    Raises:
        UsageError: if a pair has no gold label, or the id of another.
    """
    names = set[str]()
    hits = 0
    for pair in gold:
        if pair.label is None:
            raise missing_gold(f"pair {pair.id}")
        if pair.id in names:
            raise UsageError(
                f"two pairs have the id {pair.id!r}: score the pairs of one file, or give them other ids"
            )
        names.add(pair.id)
        hits += answers.get(pair.id) == pair.label
    return PairScore(hits / max(1, len(names)), len(names))
