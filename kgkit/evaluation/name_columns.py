"""Names that another tagger found, as `kgkit evaluate ner --predictions` writes them, and columns of F1.

A line of the file is a token, its tag in the gold and the tagger's; documents begin with -DOCSTART-. The
tokens are those of the data, in their order.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path

from kgkit.errors import SourceError, abbreviate
from kgkit.evaluation.ner import Name, NamedDocument, read_column_names
from kgkit.evaluation.score_columns import ScoreColumns, f1_of_sums, overlap_columns


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
    where = f"in the document {key!r} of {set_name}"
    for number, (token, other) in enumerate(zip(tokens, others, strict=False), start=1):
        if token != other:
            shown = abbreviate(repr(other)), abbreviate(repr(token))
            raise _mismatch(path, f"{where} token {number} is {shown[0]}; the data have {shown[1]}")
    if len(tokens) != len(others):
        raise _mismatch(path, f"{where} it has {len(others):,} tokens; the data have {len(tokens):,}")


def _mismatch(path: Path, problem: str) -> SourceError:
    return SourceError(f"{problem}: let --predictions write it anew, for the same --data", path=path)


def _moved(predicted: NamedDocument, gold: NamedDocument) -> list[Name]:
    """Return the names of a document at the code points of another with the same tokens."""
    spans, targets = predicted.document.tokens or [], gold.document.tokens or []
    begins = {start: begin for (start, _), (begin, _) in zip(spans, targets, strict=True)}
    ends = {end: stop for (_, end), (_, stop) in zip(spans, targets, strict=True)}
    return [Name(begins[name.start], ends[name.end], name.type) for name in predicted.names]


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
    return ScoreColumns("f1", overlap_columns(gold, answers), f1_of_sums)


def _by_unit(document: NamedDocument, names: Sequence[Name], *, by_sentence: bool) -> list[set[Name]]:
    """Return the names of each unit of a document."""
    if not by_sentence:
        return [{*names}]
    begins = [start for start, _ in document.document.sentences or ()][1:]
    units: list[set[Name]] = [set() for _ in (0, *begins)]
    for name in names:
        units[bisect_left(begins, name.start + 1)].add(name)
    return units
