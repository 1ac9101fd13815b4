"""The mentions of a text in a knowledge base, with their candidates and their word pieces.

    M  mentions of a text    T  its word pieces    C  candidates of a mention

Nothing here asks for vectors: what a head makes of mentions and candidates is its own business.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.candidates import Generator
from kgkit.errors import UsageError
from kgkit.types import NO_CANDIDATES, Candidates, Document, Numbers

_CHUNK: Final = 256  # texts that a generator of candidates sees together


class MentionSpans(NamedTuple):
    """The mentions of a text in a knowledge base.

    Attributes:
        spans: (M, 2) their word pieces, end exclusive.
        candidates: M lists of candidates.
        masked: (M,) bool, mentions that have the entity [MASK] instead of their candidates.
        indices: (M,) their indices among the document's mentions.
    """

    spans: Numbers
    candidates: list[Candidates]
    masked: NDArray[np.bool_]
    indices: Numbers


def find_mentions(
    texts: Iterable[tuple[str, ...]], generators: Mapping[str, Generator]
) -> Iterator[tuple[tuple[str, ...], dict[str, list[Document]]]]:
    """Yield each text, or pair of texts, with its mentions.

    Args:
        texts: tuples of one text, or of two.
        generators: generators of candidates, by the name of their knowledge base.

    Yields:
        The tuple; by the name of a knowledge base, a document with mentions for each text of the tuple.

    Raises:
        UsageError: if a tuple has more than two texts, or none.
    """
    source = iter(texts)
    while chunk := list(islice(source, _CHUNK)):
        if wrong := [len(example) for example in chunk if not 1 <= len(example) <= 2]:
            raise UsageError(f"a text or a pair of texts is read, not {wrong[0]} texts")
        flat = [Document("", text) for example in chunk for text in example]
        documents = {name: iter(list(generator(iter(flat)))) for name, generator in generators.items()}
        for example in chunk:
            yield example, {name: list(islice(source, len(example))) for name, source in documents.items()}


def spans_within(ranges: Numbers, document: Document, begin: int, end: int, shift: int) -> MentionSpans:
    """Return the mentions that lie in a part of a document.

    Args:
        ranges: (M, 2) word pieces of the document's mentions, end exclusive.
        document: document with its mentions.
        begin: first piece of the part.
        end: piece behind its last.
        shift: position of the part's first piece in the text that is read.
    """
    mentions = document.mentions or []
    inside = (ranges[:, 0] < ranges[:, 1]) & (ranges[:, 0] >= begin) & (ranges[:, 1] <= end)
    indices = np.flatnonzero(inside)
    candidates = [mentions[index].candidates or NO_CANDIDATES for index in indices.tolist()]
    return MentionSpans(
        ranges[indices] - begin + shift, candidates, np.zeros(len(indices), np.bool_), indices
    )


def join_spans(parts: Sequence[MentionSpans]) -> MentionSpans:
    """Return the mentions of both texts of a pair together."""
    return MentionSpans(
        np.concatenate([part.spans for part in parts]),
        [candidates for part in parts for candidates in part.candidates],
        np.concatenate([part.masked for part in parts]),
        np.concatenate([part.indices for part in parts]),
    )


def parts_around_cuts(
    ranges: Numbers, begins: Sequence[int], pieces: int, room: int
) -> list[tuple[int, int]]:
    """Return parts of a document, end exclusive, that hold the mentions which a cut goes through.

    Args:
        ranges: (M, 2) word pieces of the mentions, end exclusive.
        begins: first pieces of the parts that the document has been cut into, ascending.
        pieces: number of the document's word pieces.
        room: number of word pieces of a part; longer mentions are left out.
    """
    first, last = ranges[:, 0], ranges[:, 1]
    part, part_of_last = (np.searchsorted(begins, ends, side="right") for ends in (first, last - 1))
    cut = (first < last) & (last - first <= room) & (part != part_of_last)  # (M,)
    parts: list[tuple[int, int]] = []
    for begin, end in ranges[cut].tolist():
        if not parts or begin < parts[-1][0] or parts[-1][1] < end:
            start = max(0, min(begin - (room - (end - begin)) // 2, pieces - room))
            parts.append((start, start + room))
    return parts
