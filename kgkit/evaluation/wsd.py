"""Word sense disambiguation: the files and the score of the unified framework.

Raganato, Camacho-Collados and Navigli (2017), "Word Sense Disambiguation: A
Unified Evaluation Framework and Empirical Comparison". A data set is two files:

    X.data.xml       <text id> of <sentence id> of tokens: <wf lemma pos> without a sense,
                     <instance id lemma pos> with one; pos is NOUN, VERB, ADJ or ADV
    X.gold.key.txt   one instance a line: its id, then the sense keys that count as right

Either may be compressed. A system's answers are a file like the gold one. WordNet
writes some adjectives with a syntactic marker, as in `lone%5:00:00:single(a):00`; the gold files leave it
out, and keys are read, written and compared without it.
"""

import logging
import re
from collections.abc import Collection, Container, Iterator, Mapping, Set
from fractions import Fraction
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.files import LimitedStream
from kgkit.files import lines, opened, written
from kgkit.types import Document, Mention

log = logging.getLogger(__name__)

MAX_TEXT: Final = 256 << 20
"""Bytes of a text of a file of XML: its elements take twenty times as much memory."""

POS: Final = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_SPACE: Final = re.compile(r"[ \t\r\n]+")  # of XML: a no-break space belongs to its token
_MARKER: Final = re.compile(r"\((?:a|p|ip)\)(?=[%:])")


def read_documents(data: Path) -> Iterator[Document]:
    """Yield a `Document` for each `<text>`, one in memory at a time.

    Its text is the tokens joined by a space and the sentences joined by a
    newline; `sentences` and `tokens` say where each lies; a `<wf>` or sentence
    with nothing in it is left out. A mention stands for an `<instance>`: its
    lemma has spaces where the file has underscores, its pos is one of `nvar`.

    Raises (when the first document is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if the XML is malformed (an entity bomb counts as such),
            is not of this format, or gives a text or its instances one id twice, or has more than
            `MAX_TEXT` bytes without the end of a text.
    """
    names: set[str] = set()
    with opened(data) as stream:
        problem = f"more than {MAX_TEXT >> 20} MiB without the end of a <text>"
        source = LimitedStream(stream, MAX_TEXT, problem, data)
        try:
            for _, element in ElementTree.iterparse(source):
                if element.tag == "text":
                    source.count = 0
                    document = _document(element, data)
                    element.clear()
                    if document.id in names:
                        raise SourceError(f"a second text {document.id!r}", path=data)
                    names.add(document.id)
                    yield document
        except ElementTree.ParseError as error:
            reason = expat.ErrorString(error.code)
            raise SourceError(f"malformed XML: {reason}", path=data, line=error.position[0]) from error
        except (LookupError, ValueError) as error:  # from the codec that the file asks for
            raise SourceError(f"an encoding that cannot be read: {error}", path=data) from error
    if not names:
        raise SourceError("no <text> in it: this is not a data file of the unified WSD format", path=data)


def _document(text: Element, path: Path) -> Document:
    pieces, size = list[str](), 0
    sentences: list[tuple[int, int]] = []
    tokens: list[tuple[int, int]] = []
    mentions: dict[str, Mention] = {}
    for sentence in _children(text, ("sentence",), path):
        first = len(tokens)
        for token in _children(sentence, ("wf", "instance"), path):
            word = _SPACE.sub(" ", token.text or "").strip(" ")
            if len(token) or (token.tag == "instance" and not word):
                raise _unexpected(token, path, "expected the text of a token")
            if not word:
                continue
            gap = "" if not tokens else "\n" if len(tokens) == first else " "
            start, size = size + len(gap), size + len(gap) + len(word)
            pieces += (gap, word)
            tokens.append((start, size))
            if token.tag == "instance":
                mention = _mention(token, start, word, path)
                if mention.id in mentions:
                    raise _unexpected(token, path, f"a second instance {mention.id!r}")
                mentions[mention.id] = mention
        if len(tokens) > first:
            sentences.append((tokens[first][0], size))
    return Document(_attribute(text, "id", path), "".join(pieces), sentences, tokens, list(mentions.values()))


def _mention(token: Element, start: int, word: str, path: Path) -> Mention:
    name, lemma, pos = (_attribute(token, key, path) for key in ("id", "lemma", "pos"))
    if pos not in POS:
        raise _unexpected(token, path, f"expected pos {', '.join(POS)}, found {pos!r}")
    return Mention(start, start + len(word), word, lemma=lemma.replace("_", " "), pos=POS[pos], id=name)


def _children(parent: Element, tags: tuple[str, ...], path: Path) -> Iterator[Element]:
    """Yield the children, all of which must be *tags* with only white space around them."""
    expected = f"in <{parent.tag}> expected only {' and '.join(f'<{tag}>' for tag in tags)}"
    if parent.text and parent.text.strip():
        raise _unexpected(parent, path, expected)
    for child in parent:
        if child.tag not in tags or (child.tail and child.tail.strip()):
            raise _unexpected(child, path, expected)
        yield child


def _attribute(element: Element, name: str, path: Path) -> str:
    value = element.get(name, "")
    if not value.strip():
        raise _unexpected(element, path, f"<{element.tag}> without {name!r}")
    return value


def _unexpected(element: Element, path: Path, message: str) -> SourceError:
    return SourceError(message, path=path, text=ElementTree.tostring(element, encoding="unicode"))


def read_gold(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the sense keys of each instance of a gold file, as `read_keys` does.

    Raises:
        NotThere: if there is no such file.
        SourceError: as `read_keys`, and if there is no instance.
    """
    if not (gold := read_keys(path)):
        raise SourceError("no instance in it: this is no gold", path=path)
    return gold


def read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the sense keys of each instance, from a gold file or from a system's answers.

    Keys are without their marker, each once, in the order of the line. Blank lines are skipped.

    Raises:
        NotThere: if there is no such file.
        SourceError: if a line has no key, has an id that an earlier line has, or is not UTF-8.
    """
    keys_by_instance: dict[str, tuple[str, ...]] = {}
    for number, line in lines(path):
        instance, *keys = line.split()
        if not keys or instance in keys_by_instance:
            problem = "an instance comes twice" if keys else "expected an id and its keys, found 1 field"
            raise SourceError(problem, path=path, line=number, text=line)
        keys_by_instance[instance] = _plain(keys)
    return keys_by_instance


def write_keys(path: Path, answers: Mapping[str, Collection[str]]) -> None:
    """Write *answers*, in their order, as a key file that the framework's own scorer reads too.

    An instance without an answer gets no line. The file appears whole or not
    at all: it is written beside its place, then renamed; only a pipe or a
    device is written to as it is. The suffix may ask for compression.

    Raises:
        UsageError: if an id or a key is empty or has white space in it.
        NotThere: if there is no folder to put it in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
    rows = []
    for instance, keys in answers.items():
        fields = [instance, *_plain(keys)]
        if any(field.split() != [field] for field in fields):
            raise UsageError(f"a key file has no place for an empty field or white space in one: {fields}")
        if len(fields) > 1:
            rows.append(" ".join(fields) + "\n")
    with written(path) as stream:
        stream.write("".join(rows).encode())


def _plain(keys: Collection[str]) -> tuple[str, ...]:
    """Return the different keys, without the marker of adjectives; those of a set in sorted order."""
    listed = [keys] if isinstance(keys, str) else sorted(keys) if isinstance(keys, Set) else keys
    return tuple(dict.fromkeys(map(plain_key, listed)))


def plain_key(key: str) -> str:
    """Return a sense key without the marker of adjectives, as gold files have it."""
    return _MARKER.sub("", key)


class Score(msgspec.Struct, frozen=True):
    """How many instances there are, how many were answered, how many of those rightly."""

    right: Fraction  # whole unless an instance was given several answers
    answered: int
    total: int

    @property
    def precision(self) -> float:
        """Right of answered; 0 when nothing was answered (where the framework's scorer says NaN)."""
        return float(self.right / self.answered) if self.answered else 0.0

    @property
    def recall(self) -> float:
        """Right of all."""
        return float(self.right / self.total) if self.total else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 2 right / (answered + total)."""
        return float(2 * self.right / (self.answered + self.total)) if self.total else 0.0

    def as_dict(self) -> dict[str, int | float]:
        """Return the counts and the three ratios, ready for JSON."""
        right = float(self.right) if self.right.denominator > 1 else int(self.right)
        counts: dict[str, int | float] = {"right": right, "answered": self.answered, "total": self.total}
        return counts | {"precision": self.precision, "recall": self.recall, "f1": self.f1}


class Scores(msgspec.Struct, frozen=True):
    """The score over all gold instances, and over parts of them. In each, every instance weighs the same."""

    overall: Score
    by_pos: dict[str, Score]  # in the order n, v, a, r
    skipped: tuple[str, ...]  # answered instances that have no gold, in the order of the answers


def check_instances(gold: Collection[str], instances: Container[str], path: Path | None = None) -> None:
    """Make sure that the instances of a gold file are those of the data.

    Args:
        gold: instance ids of the gold.
        instances: instance ids of the data.
        path: file of the gold, for the error.

    Raises:
        SourceError: if one is not.
    """
    if lost := [instance for instance in gold if instance not in instances]:
        problem = f"{len(lost)} of {len(gold)} gold instances are not in the data, the first is {lost[0]!r}"
        raise SourceError(f"{problem}: do the two files belong together?", path=path)


def score(
    gold: Mapping[str, Collection[str]],
    answers: Mapping[str, Collection[str]],
    *,
    pos: Mapping[str, str] | None = None,
) -> Scores:
    """Score *answers* as `Scorer.java` of the framework does, itself a form of SemEval-2015 task 13's.

    - An answer is right if it is among the gold keys, whichever and however many those are.
    - k different answers to one instance weigh 1/k each: one right and one wrong make half a point
      (some other scorers count the instance as right if any of them is).
    - An instance without an answer costs recall, not precision: P = right/answered, R = right/total.
    - An answer to an instance without gold is skipped (here: logged as a warning too, and named in the
      result), so that a part of a gold file can be scored with answers to all of it.

    Args:
        gold: the keys that count as right, by instance id.
        answers: a system's keys by instance id; empty or absent where it has none.
        pos: the part of speech of every instance of the data (`Mention.id` to `Mention.pos`).

    Raises:
        SourceError: if *pos* is given and lacks an instance of *gold*.
    """
    if pos is not None:
        check_instances(gold, pos)
    skipped = tuple(instance for instance in answers if instance not in gold)
    if skipped:
        log.warning("%d answers have no gold and are not scored, the first is %r", len(skipped), skipped[0])
    points = {instance: _points(keys, answers.get(instance, ())) for instance, keys in gold.items()}
    return Scores(_total(points.values()), _parts(points, pos or {}), skipped)


def instance_columns(
    gold: Mapping[str, Collection[str]], answers: Mapping[str, Collection[str]]
) -> NDArray[np.float64]:
    """Return what each gold instance earns, whether it was answered, and 1, (N, 3).

    Args:
        gold: keys that count as right, by instance id; N instances.
        answers: a system's keys by instance id; those of instances without gold are left out.
    """
    points = [_points(keys, answers.get(instance, ())) for instance, keys in gold.items()]
    columns = [(float(earned or 0), float(earned is not None), 1.0) for earned in points]
    return np.array(columns, np.float64).reshape(-1, 3)


def _points(gold: Collection[str], answers: Collection[str]) -> Fraction | None:
    """Return what one instance earns, in [0, 1]; None if it was not answered."""
    predicted = set(_plain(answers))
    return Fraction(len(predicted & set(_plain(gold))), len(predicted)) if predicted else None


def _parts(points: Mapping[str, Fraction | None], pos: Mapping[str, str]) -> dict[str, Score]:
    parts: dict[str, list[Fraction | None]] = {}
    for instance in points.keys() & pos.keys():
        parts.setdefault(pos[instance], []).append(points[instance])
    return {name: _total(parts[name]) for name in sorted(parts, key="nvar".find)}


def _total(points: Collection[Fraction | None]) -> Score:
    earned = [point for point in points if point is not None]
    return Score(sum(earned, Fraction(0)), len(earned), len(points))
