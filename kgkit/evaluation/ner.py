"""Names in texts: the files of CoNLL-2003, and the score of spans with types.

Tjong Kim Sang and De Meulder (2003), "Introduction to the CoNLL-2003 Shared Task". A file has a token a line,
its tag in the last column; a blank line ends a sentence, a line with -DOCSTART- begins a document:

    -DOCSTART- -X- O O

    EU NNP I-NP I-ORG
    rejects VBZ I-VP O

It may be compressed, and its first -DOCSTART- may be missing. Tags are read as the
task's own scorer, conlleval, reads them: a name begins at B-TYPE, and at I-TYPE where the token before is
outside or of another type. So files in IOB1 (B- only between two names) and in IOB2 (B- at each beginning)
are both read as they are meant. A name is right if its span and its type are; precision, recall and F1 are
over all names together, those of each type stand beside them. Without types a name is right if its span is.
A token within a name is right if it has the name's type, wherever the name begins and ends.

The JSON lines of entity linking (`kgkit.evaluation.el_files`) are read too, where a file is called so: their
mentions are the names, of the `type` that they have, else `NAME`.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Final

import msgspec

from kgkit.errors import SourceError, UsageError, abbreviate
from kgkit.evaluation.columns import ScoreColumns, overlap_scores
from kgkit.evaluation.el_files import GoldDocument
from kgkit.evaluation.el_formats import read_gold_data
from kgkit.files import JSON_LINES, lines, written
from kgkit.types import Document

_SPACE: Final = re.compile(r"[ \t]+")  # a no-break space is part of a token
DOCSTART: Final = "-DOCSTART-"
OUTSIDE: Final = "O"
_UNTYPED: Final = "NAME"


class Name(msgspec.Struct, frozen=True, gc=False):
    """A span of a text that names something of a type: code points, end exclusive."""

    start: int
    end: int
    type: str


class NamedDocument(msgspec.Struct, frozen=True):
    """A document with its sentences and tokens, and the names in it, in order of their start."""

    document: Document
    names: list[Name]


# -- files ------------------------------------------------------------------


def chunks(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the names that the tags of a sentence mean: first token, one past the last, type.

    Raises:
        UsageError: for a tag that is not O, B-TYPE or I-TYPE.
    """
    names: list[tuple[int, int, str]] = []
    begin, open_type = 0, ""
    for index, tag in enumerate([*tags, OUTSIDE]):
        prefix, _, kind = tag.partition("-")
        if tag != OUTSIDE and (prefix not in ("B", "I") or not kind):
            raise UsageError(f"a tag is {abbreviate(repr(tag))}; it is O, B-TYPE or I-TYPE")
        if open_type and (kind != open_type or prefix == "B"):
            names.append((begin, index, open_type))
            open_type = ""
        if kind and not open_type:
            begin, open_type = index, kind
    return names


def read_names(data: Path) -> Iterator[NamedDocument]:
    """Yield the documents of a file, one in memory at a time.

    In the format of CoNLL-2003 their ids are 1, 2, and so on. The text is the tokens joined by a space, the
    sentences by a newline.

    Raises (when the first document is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if a line is not a token with a tag, or there is none; if the mentions of a document in
            JSON lines overlap.
    """
    if not {*JSON_LINES}.isdisjoint(path_suffix.lower() for path_suffix in data.suffixes):
        for gold in read_gold_data(data):
            yield _names_of_mentions(gold, data)
    else:
        yield from read_column_names(data)


def read_column_names(data: Path) -> Iterator[NamedDocument]:
    """Yield the documents of a file in the format of CoNLL-2003, whatever it is called.

    Raises (when the first document is asked for, or later):
        NotThere: if there is no such file.
        SourceError: if a line is not a token with a tag, or there is none.
    """
    number, documents = 0, 0
    sentences: list[list[tuple[str, str]]] = []
    for at, line in lines(data):
        fields = _SPACE.split(line.strip(" \t\r\n"))
        if fields[0] == DOCSTART:
            if sentences:
                documents += 1
                yield _document(str(documents), sentences)
            sentences, number = [], 0
            continue
        if len(fields) < 2:
            raise SourceError(
                "expected a token and, in the last column, its tag, white space between them; files of JSON "
                "lines end in .jsonl",
                path=data, line=at, text=line,
            )  # fmt: skip
        try:
            chunks(fields[-1:])
        except UsageError as error:
            raise SourceError(str(error), path=data, line=at, text=line) from None
        if at != number + 1 or not sentences:  # blank lines are not among those that are read
            sentences.append([])
        sentences[-1].append((fields[0], fields[-1]))
        number = at
    if sentences:
        yield _document(str(documents + 1), sentences)
    elif not documents:
        raise SourceError("no token in it: this is not a file of CoNLL-2003", path=data)


def _document(name: str, sentences: Iterable[Sequence[tuple[str, str]]]) -> NamedDocument:
    text, size = list[str](), 0
    bounds: list[tuple[int, int]] = []
    tokens: list[tuple[int, int]] = []
    names: list[Name] = []
    for sentence in sentences:
        first = len(tokens)
        for token, _ in sentence:
            tokens.append((size, size + len(token)))
            size += len(token) + 1
        bounds.append((tokens[first][0], tokens[-1][1]))
        text.append(" ".join(token for token, _ in sentence))
        for begin, end, kind in chunks([tag for _, tag in sentence]):
            names.append(Name(tokens[first + begin][0], tokens[first + end - 1][1], kind))
    return NamedDocument(Document(name, "\n".join(text), bounds, tokens), names)


def _names_of_mentions(gold: GoldDocument, data: Path) -> NamedDocument:
    """Return a document of entity linking with its mentions as names."""
    document, types = gold.document, gold.types or [""] * len(gold.entities)
    if spaced := next((kind for kind in types if _SPACE.search(kind) or not kind.isprintable()), ""):
        raise SourceError(
            f"document {document.id!r} has a mention of a type with white space, {abbreviate(repr(spaced))}",
            path=data,
        )
    names = sorted(
        (
            Name(mention.start, mention.end, kind or _UNTYPED)
            for mention, kind in zip(document.mentions or (), types, strict=True)
        ),
        key=lambda name: (name.start, name.end),
    )
    for name, following in pairwise(names):
        if following.start < name.end:
            raise SourceError(
                f"document {document.id!r} has mentions that overlap, from {name.start} and "
                f"{following.start}: names stand side by side",
                path=data,
            )
    return NamedDocument(msgspec.structs.replace(document, mentions=None), names)


WriteNames = Callable[[NamedDocument, Sequence[Name]], None]
"""Takes a document with its names, and those that a tagger found."""


@contextmanager
def writing_names(path: Path) -> Iterator[WriteNames]:
    """Give what writes documents to *path* as conlleval reads them: token, tag, tag of the tagger, in IOB2.

    The file appears, whole, when the block ends without an error.

    Raises:
        UsageError: if a name that was found does not begin and end where tokens do.
        NotThere: if there is no folder to put it in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
    with written(path) as stream:

        def write(gold: NamedDocument, predicted: Sequence[Name]) -> None:
            """Write a document, a token a line: token, gold tag, predicted tag."""
            document = gold.document
            spans, ends = document.tokens or [], {end for _, end in document.sentences or ()}
            columns = [document.text[start:end] for start, end in spans], _tags(spans, gold.names)
            rows = [f"{DOCSTART} {OUTSIDE} {OUTSIDE}\n\n"]
            for (_, end), *fields in zip(spans, *columns, _tags(spans, predicted), strict=True):
                rows.append(" ".join(fields) + ("\n\n" if end in ends else "\n"))
            stream.write("".join(rows).encode())

        yield write


def _tags(tokens: Sequence[tuple[int, int]], names: Iterable[Name]) -> list[str]:
    """Return the tags of tokens in IOB2."""
    tags = [OUTSIDE] * len(tokens)
    begins = {start: index for index, (start, _) in enumerate(tokens)}
    ends = {end: index for index, (_, end) in enumerate(tokens)}
    for name in names:
        if name.start not in begins or name.end not in ends:
            raise UsageError(f"{name} does not begin and end where tokens do: it has no tags")
        first, last = begins[name.start], ends[name.end]
        tags[first : last + 1] = [f"B-{name.type}", *[f"I-{name.type}"] * (last - first)]
    return tags


def read_predicted_names(
    path: Path, sets: Mapping[str, Sequence[NamedDocument]]
) -> dict[str, list[list[Name]]]:
    """Return the names that a file has for each document of data sets.

    Args:
        path: the file.
        sets: documents by the name of their set, in the order of the file.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or is empty; if a line is not a token with tags; if its documents
            or tokens are not those of the data.
    """
    predicted = read_column_names(path)
    names: dict[str, list[list[Name]]] = {}
    for set_name, documents in sets.items():
        names[set_name] = []
        for gold in documents:
            tokens = _tokens(gold)
            if not tokens:  # the file has no line of it
                names[set_name].append([])
                continue
            if (other := next(predicted, None)) is None:
                raise _mismatch(path, f"it ends before the document {gold.document.id!r} of {set_name}")
            _check_tokens(path, set_name, gold.document.id, tokens, _tokens(other))
            names[set_name].append(_moved(other, gold))
    if (other := next(predicted, None)) is not None:
        begin = " ".join(_tokens(other)[:8])
        raise _mismatch(
            path, f"behind the last document of the data it has another, {abbreviate(repr(begin))}"
        )
    return names


def _tokens(document: NamedDocument) -> list[str]:
    text = document.document.text
    return [text[start:end] for start, end in document.document.tokens or ()]


def _check_tokens(path: Path, set_name: str, key: str, tokens: Sequence[str], others: Sequence[str]) -> None:
    """Refuse a document with other tokens."""
    for number, (token, other) in enumerate(zip_longest(tokens, others), start=1):
        if token != other:
            found, expected = ("none" if each is None else abbreviate(repr(each)) for each in (other, token))
            where = f"in the document {key!r} of {set_name} token {number}"
            raise _mismatch(path, f"{where} is {found}; the data have {expected}")


def _mismatch(path: Path, problem: str) -> SourceError:
    return SourceError(f"{problem}: let --predictions write it anew, for the same --data", path=path)


def _moved(predicted: NamedDocument, gold: NamedDocument) -> list[Name]:
    """Return the names of a document at the code points of another with the same tokens."""
    spans, targets = predicted.document.tokens or [], gold.document.tokens or []
    begins = {start: begin for (start, _), (begin, _) in zip(spans, targets, strict=True)}
    ends = {end: stop for (_, end), (_, stop) in zip(spans, targets, strict=True)}
    return [Name(begins[name.start], ends[name.end], name.type) for name in predicted.names]


# -- scores -----------------------------------------------------------------


class NameScore(msgspec.Struct, frozen=True):
    """How many names were right, predicted, and in the gold; 0 where a ratio has nothing below it."""

    right: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: "NameScore") -> "NameScore":
        return NameScore(self.right + other.right, self.predicted + other.predicted, self.gold + other.gold)

    @property
    def precision(self) -> float:
        """Right of those that were predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Right of those of the gold."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 2 right / (predicted + gold)."""
        return 2 * self.right / (self.predicted + self.gold) if self.predicted + self.gold else 0.0

    def as_dict(self) -> dict[str, float]:
        """Return the counts and the ratios, ready for JSON."""
        counts = {"right": self.right, "found": self.predicted, "gold": self.gold}
        return counts | {"precision": self.precision, "recall": self.recall, "f1": self.f1}


class NameScores(msgspec.Struct, frozen=True):
    """The score of names of each type, and of spans whatever their type. Scores of documents add up.

    Attributes:
        by_type: score of names of each type.
        spans: score of spans.
        tokens_by_type: score of tokens within names of each type, wherever these begin and end.
    """

    by_type: dict[str, NameScore] = {}
    spans: NameScore = NameScore()
    tokens_by_type: dict[str, NameScore] = {}

    @property
    def overall(self) -> NameScore:
        """The score of all names: both span and type must be right."""
        return sum(self.by_type.values(), NameScore())

    @property
    def tokens(self) -> NameScore:
        """The score of all tokens within names: their type must be right."""
        return sum(self.tokens_by_type.values(), NameScore())

    def __add__(self, other: "NameScores") -> "NameScores":
        return NameScores(
            _added(self.by_type, other.by_type),
            self.spans + other.spans,
            _added(self.tokens_by_type, other.tokens_by_type),
        )

    def as_dict(self) -> dict[str, object]:
        """Return all of them, ready for JSON."""
        return {
            "overall": self.overall.as_dict(),
            "spans": self.spans.as_dict(),
            "by_type": {kind: score.as_dict() for kind, score in self.by_type.items()},
            "tokens": self.tokens.as_dict(),
            "tokens_by_type": {kind: score.as_dict() for kind, score in self.tokens_by_type.items()},
        }


def score_names(
    gold: Sequence[Name], predicted: Sequence[Name], tokens: Sequence[tuple[int, int]] = ()
) -> NameScores:
    """Score the names that were found in one document.

    Args:
        gold: names that are right.
        predicted: names that were found.
        tokens: spans of the tokens, which are scored too.

    Raises:
        UsageError: if a span comes twice in *gold*, or in *predicted*.
    """
    gold_types, predicted_types = _types(gold, "gold names"), _types(predicted, "names that were found")
    return NameScores(
        _scores_by_type(gold_types, predicted_types),
        NameScore(len(gold_types.keys() & predicted_types.keys()), len(predicted_types), len(gold_types)),
        _scores_by_type(_token_types(tokens, gold), _token_types(tokens, predicted)),
    )


def _scores_by_type(
    gold: Mapping[tuple[int, int], str], predicted: Mapping[tuple[int, int], str]
) -> dict[str, NameScore]:
    """Return the score of each type, of the types of spans."""
    correct = Counter(kind for span, kind in predicted.items() if gold.get(span) == kind)
    gold_kinds, predicted_kinds = Counter(gold.values()), Counter(predicted.values())
    return {
        kind: NameScore(correct[kind], predicted_kinds[kind], gold_kinds[kind])
        for kind in sorted({*gold_kinds, *predicted_kinds})
    }


def _token_types(tokens: Sequence[tuple[int, int]], names: Sequence[Name]) -> dict[tuple[int, int], str]:
    """Return the types of the tokens that lie within names."""
    begins = [start for start, _ in tokens]
    types = {}
    for name in names:
        for number in range(bisect_left(begins, name.start), bisect_left(begins, name.end)):
            types[tokens[number]] = name.type
    return types


def _added(scores: Mapping[str, NameScore], others: Mapping[str, NameScore]) -> dict[str, NameScore]:
    """Return the sums of the scores of types."""
    none = NameScore()
    return {kind: scores.get(kind, none) + others.get(kind, none) for kind in sorted({*scores, *others})}


def _types(names: Sequence[Name], what: str) -> dict[tuple[int, int], str]:
    types = {(name.start, name.end): name.type for name in names}
    if len(types) < len(names):
        raise UsageError(f"{len(names) - len(types)} of {len(names)} {what} have the span of another")
    return types


def name_columns(
    documents: Sequence[NamedDocument], systems: Sequence[Sequence[Sequence[Name]]]
) -> ScoreColumns:
    """Return the columns (S, U, 3) of F1 of names with types.

    A unit is a document; where there is a single one, as in files without -DOCSTART-, a sentence.

    Args:
        documents: with the names of the gold.
        systems: names of each document by each of S systems.
    """
    by_sentence = len(documents) == 1
    gold = [names for each in documents for names in _by_unit(each, each.names, by_sentence=by_sentence)]
    answers = [
        [
            names
            for each, own in zip(documents, system, strict=True)
            for names in _by_unit(each, own, by_sentence=by_sentence)
        ]
        for system in systems
    ]
    return overlap_scores(gold, answers)[0]


def _by_unit(document: NamedDocument, names: Sequence[Name], *, by_sentence: bool) -> list[set[Name]]:
    """Return the names of each unit of a document."""
    if not by_sentence:
        return [{*names}]
    begins = [start for start, _ in document.document.sentences or ()][1:]
    units: list[set[Name]] = [set() for _ in (0, *begins)]
    for name in names:
        units[bisect_left(begins, name.start + 1)].add(name)
    return units
