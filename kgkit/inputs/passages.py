"""Passages for language modelling: stretches of plain text, alone or in pairs, of so many word pieces.

Documents are lists of sentences, as `kgkit.evaluation.plain_text` reads them. Pairs are for the prediction of
the next sentence (Devlin et al. 2019): behind the first text stands, half of the time, what follows it, else,
and where its document ends with it, something of another document.

Departures:
    From BERT's released code: no sentence is broken but one that is longer than half of a pair; a random
    second text is cut at its end, where both are too long, not at an end that is drawn.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from kgkit.inputs.pieces import PieceTokenizer, WordPieces

_SHORT: Final = 0.1  # of the passages are shorter than they might be, as short texts will be


class Passage(NamedTuple):
    """A text, or two.

    Attributes:
        texts: tuple of one text, or two.
        follows: whether the second stands behind the first where they come from; None for one text.
    """

    texts: tuple[str, ...]
    follows: bool | None = None


class MeasuredSentence(NamedTuple):
    """A sentence, and how many word pieces it has."""

    text: str
    pieces: int


def measure_sentences(
    documents: Iterable[Sequence[str]], tokens: PieceTokenizer, longest: int
) -> Iterator[list[MeasuredSentence]]:
    """Yield documents with the lengths of their sentences; those of more than *longest* pieces are cut.

    They are cut between words: half a word would be other pieces when it is read again.
    """
    for document in documents:
        sentences = []
        for text in document:
            pieces, begin = tokens(text), 0
            while begin < len(pieces):
                end = _cut_at(pieces, begin, longest)
                sentences.append(
                    MeasuredSentence(text[pieces.starts[begin] : pieces.ends[end - 1]], end - begin)
                )
                begin = end
        if sentences:
            yield sentences


def single_passages(documents: Iterable[Sequence[MeasuredSentence]], room: int) -> Iterator[Passage]:
    """Yield stretches of documents of at most *room* pieces, each sentence in one of them."""
    for document in documents:
        at = 0
        while at < len(document):
            end = _end(document, at, room)
            yield Passage((_joined(document[at:end]),))
            at = end


def passage_pairs(
    documents: Sequence[Sequence[MeasuredSentence]],
    tokens: PieceTokenizer,
    room: int,
    generator: np.random.Generator,
) -> Iterator[Passage]:
    """Yield pairs of at most *room* pieces together.

    Each sentence is in one first text, or in one that follows it, besides those that are drawn. Of a single
    document, where none can be drawn, a sentence that none follows is left out.

    Args:
        documents: documents whose sentences have half of *room* at most.
        tokens: tokenizer that cuts a second text where it is too long.
        room: number of word pieces, special ones not counted.
        generator: generator that all is drawn from.
    """
    for number, document in enumerate(documents):
        at = 0
        while at < len(document):
            short = generator.random() < _SHORT
            goal = int(generator.integers(2, room + 1)) if short else room
            end = _end(document, at, goal)
            cut = at + 1 if end == at + 1 else int(generator.integers(at + 1, end))
            first = document[at:cut]
            length = sum(sentence.pieces for sentence in first)
            free = (goal if length < goal else room) - length
            if cut < end and (len(documents) == 1 or generator.random() < 0.5):
                yield Passage((_joined(first), _joined(document[cut:end])), True)
                at = end
                continue
            at = cut
            if len(documents) > 1:
                other = documents[(number + int(generator.integers(1, len(documents)))) % len(documents)]
                begin = int(generator.integers(len(other)))
                second = _joined(other[begin : _end(other, begin, free)])
                yield Passage((_joined(first), _cut(second, tokens, free)), False)


def _end(document: Sequence[MeasuredSentence], begin: int, room: int) -> int:
    """Return where the sentences end that fit into *room*: one at least."""
    end, length = begin + 1, document[begin].pieces
    while end < len(document) and length + document[end].pieces <= room:
        length += document[end].pieces
        end += 1
    return end


def _cut_at(pieces: WordPieces, begin: int, longest: int) -> int:
    """Return where to cut behind *longest* pieces at most: where a word ends, if one does."""
    last = min(begin + longest, len(pieces))
    if last == len(pieces):
        return last
    ends = (end for end in range(last, begin, -1) if pieces.starts[end] > pieces.ends[end - 1])
    return next(ends, last)


def _joined(sentences: Sequence[MeasuredSentence]) -> str:
    return " ".join(sentence.text for sentence in sentences)


def _cut(text: str, tokens: PieceTokenizer, room: int) -> str:
    pieces = tokens(text)
    return text if len(pieces) <= room else text[: pieces.ends[room - 1]]
