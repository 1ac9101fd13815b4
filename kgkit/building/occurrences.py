"""Counting how often the surfaces of a KB occur in texts, and how often as links.

An occurrence of a surface is a run of whole tokens that fold to it, with white space between two of them
where the surface has some, within one paragraph. Every one counts: *York* occurs in *New York*, too, so
what else a KB knows does not change the counts of a surface. It is linked if it is just the text of a link.
Only the name of a page does not count on that page, where it is never a link.

Surfaces are known by hashes of 64 bits, of which worker processes map one table:

    token    BLAKE2b of the folded token
    n tokens (h ^ h >> 32) * FACTOR + the last one's hash (+ GAP, if white space precedes it)

Runs of tokens grow one token at a time, those of some megabytes of text at once, and only as long as a
surface may begin so.
Two of 15 million surfaces have one hash with a probability of 6e-6.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.building.attributes import check_occurrences
from kgkit.building.contract import Prose, Step
from kgkit.errors import SourceError
from kgkit.sorted_ids import match_sorted
from kgkit.store.layout import MAX_TOKENS
from kgkit.text import Folding
from kgkit.types import Occurrences

__all__ = ["SurfaceHashes", "checked_occurrences", "count_occurrences"]

Hashes = NDArray[np.uint64]
Indexes = NDArray[np.int64]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C17)
_GAP: Final = np.uint64(0xD1B54A32D192ED03)
_HALF: Final = np.uint64(32)
_MASK: Final = (1 << 64) - 1
_BREAK: Final = 2  # the kind of a gap between two paragraphs; 1 is white space, 0 is none
_NAMES: Final = 50_000  # surfaces that are hashed at once
_CHARACTERS: Final = 2 << 20  # of text that are looked at at once
_CHUNKS: Final = 400_000  # words that are remembered
_COUNTED: Final = 500_000  # surfaces whose counts are added up before they are given out
_SURFACE, _PREFIX = 1, 2  # bits of the table
_LEAST_BITS, _MOST_BITS = 10, 26


def checked_occurrences(record: Occurrences) -> Occurrences:
    """Return *record*.

    Raises:
        SourceError: if its counts are no counts, or none that the store can hold.
    """
    try:
        check_occurrences(record.count, record.linked)
    except ValueError as error:
        raise SourceError(f"a surface with counts that cannot be: {error}", text=record.surface) from None
    return record


class SurfaceHashes:
    """The surfaces that are sought: their hashes, ascending, and a table that tells soon what is none.

    The table has a byte for the first bits of a hash: whether there may be a surface of that hash, and one of
    more tokens that begins so. Where the latter is wrong, a run grows on for nothing.

    Args:
        hashes: (S,) ascending.
        table: (2 ** bits,) uint8.
    """

    def __init__(self, hashes: Hashes, table: NDArray[np.uint8]) -> None:
        self.hashes, self.table = hashes, table
        self._shift = np.uint64(64 - (len(table).bit_length() - 1))

    @classmethod
    def of(cls, surfaces: Iterable[str], number: int, folding: Folding) -> "SurfaceHashes":
        """Return the hashes of folded *surfaces*, which are *number* or about so many."""
        bits = min(max(_LEAST_BITS, (8 * number).bit_length()), _MOST_BITS)
        table, shift = np.zeros(1 << bits, np.uint8), np.uint64(64 - bits)
        batches, remaining = [], iter(surfaces)
        while names := list(islice(remaining, _NAMES)):
            text = _Vocabulary(folding).read([Prose(name) for name in names])
            starts = np.flatnonzero(text.gaps == _BREAK)
            lengths = np.diff(np.append(starts, len(text.gaps)))
            starts, lengths = (
                column[(lengths > 0) & (lengths <= MAX_TOKENS)] for column in (starts, lengths)
            )
            hashes, single = text.hashes[starts], lengths == 1
            batches.append(text.alone[starts][single])
            table[batches[-1] >> shift] |= _SURFACE
            starts, lengths, hashes = starts[~single], lengths[~single], hashes[~single]
            table[hashes >> shift] |= _PREFIX
            for size in range(2, int(lengths.max(initial=0)) + 1):
                hashes = text.longer(hashes, starts + size - 1)
                complete = lengths == size
                batches.append(hashes[complete])
                table[hashes[complete] >> shift] |= _SURFACE
                starts, lengths, hashes = starts[~complete], lengths[~complete], hashes[~complete]
                table[hashes >> shift] |= _PREFIX
        return cls(np.unique(np.concatenate(batches)) if batches else np.empty(0, np.uint64), table)

    @cached_property
    def digest(self) -> str:
        """What names the surfaces, in hexadecimal."""
        return hashlib.blake2b(self.hashes.tobytes(), digest_size=16).hexdigest()

    def save(self, folder: Path) -> None:
        """Write them into *folder*."""
        np.save(folder / "hashes.npy", self.hashes)
        np.save(folder / "table.npy", self.table)

    @classmethod
    def load(cls, folder: Path) -> "SurfaceHashes":
        """Map what `save` has written."""
        hashes, table = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("hashes", "table"))
        return cls(hashes, table)

    def look_up(self, hashes: Hashes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which of *hashes* (n,) are those of surfaces, and which may begin longer ones."""
        bits = self.table[hashes >> self._shift]
        is_surface = (bits & _SURFACE) > 0
        maybe = hashes[is_surface]
        is_surface[is_surface] = match_sorted(self.hashes, maybe).exists
        return is_surface, (bits & _PREFIX) > 0


class _Tokens(NamedTuple):
    """Texts as (T,) tokens: number of each folded one, its hash, and the kind of the gap before it.

    `links` is (L, 2): the first token of each link, and how many it has; `own` (T,) the hash of what does not
    count in the text of each token; `singles` and `alone` (T,) are numbers and hashes of the tokens as
    surfaces of their own: abbreviations are then folded otherwise.
    """

    numbers: Indexes
    hashes: Hashes
    gaps: NDArray[np.uint8]
    links: Indexes
    own: Hashes
    singles: Indexes
    alone: Hashes

    def longer(self, hashes: Hashes, ends: Indexes) -> Hashes:
        """Return the hashes of runs that grow by the token at *ends*."""
        grown: Hashes = (hashes ^ hashes >> _HALF) * _FACTOR + self.hashes[ends]
        return grown + _GAP * (self.gaps[ends] > 0).astype(np.uint64)


class _Column:
    """Whole numbers, of which more are added and all are read at once."""

    def __init__(self) -> None:
        self.values = array("q")

    def __getitem__(self, indexes: Indexes) -> Indexes:
        return np.array(self.values, np.int64)[indexes]


class _Vocabulary(dict[str, int]):
    """Cuts texts into tokens and remembers how: numbers chunks between two spaces, as most come again."""

    def __init__(self, folding: Folding) -> None:
        super().__init__()
        self._folding = folding
        self.folded: list[str] = []
        self._numbers: dict[str, int] = {}  # of folded tokens
        self._hashes: list[int] = []
        # Of a chunk: its first token among those of all chunks, how many it has, characters, line ends.
        self._first, self._sizes, self._lengths, self._lines = (_Column() for _ in range(4))
        # Of a token in a chunk: its number, where it starts and ends, the line ends before it in the chunk,
        # and whether white space precedes it, as it does the first one.
        self._tokens, self._starts, self._ends, self._before, self._spaced = (_Column() for _ in range(5))
        self._singles = _Column()

    def __missing__(self, chunk: str) -> int:
        folding, pieces = self._folding, self._folding.split(chunk)
        self._first.values.append(len(self._tokens.values))
        self._sizes.values.append(len(pieces) // 2)
        self._lengths.values.append(len(chunk))
        self._lines.values.append(chunk.count("\n"))
        at = lines = 0
        for index in range(1, len(pieces), 2):
            gap, token = pieces[index - 1], pieces[index]
            at, lines = at + len(gap), lines + gap.count("\n")
            folded = folding.fold(token)
            self._tokens.values.append(self._number(folding.part(folded)))
            self._singles.values.append(self._number(folded))
            self._starts.values.append(at)
            at += len(token)
            self._ends.values.append(at)
            self._before.values.append(lines)
            self._spaced.values.append(index == 1 or folding.joint(gap) != "")
        number = self[chunk] = len(self._sizes.values) - 1
        return number

    def _number(self, folded: str) -> int:
        number = self._numbers.setdefault(folded, len(self.folded))
        if number == len(self.folded):
            self.folded.append(folded)
            digest = hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            self._hashes.append(int.from_bytes(digest, "little"))
        return number

    def read(self, texts: Sequence[Prose]) -> _Tokens:
        """Return the tokens of *texts*, which are paragraphs apart; one without tokens leaves no trace."""
        numbers, bounds = array("q"), [0]
        for text in texts:
            numbers.extend(map(self.__getitem__, text.text.split(" ")))
            bounds.append(len(numbers))
        chunks = np.array(numbers, np.int64)
        sizes, lines, lengths = self._sizes[chunks], self._lines[chunks], self._lengths[chunks] + 1
        ends = np.append(0, np.cumsum(sizes))  # of the chunks, in tokens; then in characters
        begins, offsets = ends[:-1], np.append(0, np.cumsum(lengths))
        index = np.repeat(self._first[chunks] - begins, sizes) + np.arange(ends[-1])
        before = np.repeat(np.cumsum(lines) - lines, sizes) + self._before[index]
        gaps = self._spaced[index].astype(np.uint8)
        gaps[1:][np.diff(before) > 1] = _BREAK
        of_text = ends[bounds]  # the first token of each text
        gaps[of_text[:-1][np.diff(of_text) > 0]] = _BREAK
        tokens = self._tokens[index]
        at = np.repeat(offsets[:-1], sizes)
        spans = [
            (start + offset, end + offset)
            for text, offset in zip(texts, offsets[bounds].tolist(), strict=False)
            for start, end in text.links
        ]
        own = np.array([self._hash_of_surface(text.own) for text in texts], np.uint64)
        return _Tokens(
            tokens,
            np.array(self._hashes, np.uint64)[tokens],
            gaps,
            _links(at + self._starts[index], at + self._ends[index], spans),
            np.repeat(own, np.diff(of_text)),
            self._singles[index],
            np.array(self._hashes, np.uint64)[self._singles[index]],
        )

    def _hash_of_surface(self, surface: str) -> int:
        """Return the hash of a whole surface; 0 if it has no token."""
        hashed, folding, pieces = 0, self._folding, self._folding.split(surface)
        if len(pieces) == 3:
            return self._hashes[self._number(folding.fold(pieces[1]))]
        for index in range(1, len(pieces), 2):
            token = self._hashes[self._number(folding.fold_part(pieces[index]))]
            gap = int(_GAP) if folding.joint(pieces[index - 1]) else 0
            hashed = token if index == 1 else ((hashed ^ hashed >> 32) * int(_FACTOR) + token + gap) & _MASK
        return hashed

    def run(self, text: _Tokens, start: int, size: int) -> str:
        """Return the folded surface of so many tokens."""
        if size == 1:
            return self.folded[int(text.singles[start])]
        numbers, gaps = text.numbers[start : start + size].tolist(), text.gaps[start : start + size].tolist()
        glue = ["", *(" " if gap else "" for gap in gaps[1:])]
        return "".join(between + self.folded[number] for between, number in zip(glue, numbers, strict=True))


def _links(starts: Indexes, ends: Indexes, spans: Sequence[tuple[int, int]]) -> Indexes:
    """Return (L, 2): first token and number of tokens of those *spans* that are whole tokens."""
    if not spans or not len(starts):
        return np.empty((0, 2), np.int64)
    begin, end = np.array(spans, np.int64).T
    first = np.minimum(np.searchsorted(starts, begin), len(starts) - 1)
    last = np.minimum(np.searchsorted(ends, end), len(ends) - 1)
    complete = (starts[first] == begin) & (ends[last] == end) & (first <= last)
    links: Indexes = np.stack([first, last - first + 1], axis=1)[complete]
    return links


def count_occurrences(
    read: Callable[[], Iterator[Prose | Step]],
    surfaces: SurfaceHashes | Path,
    folding: Folding,
    *,
    complete_at_steps: bool = False,
) -> Iterator[Occurrences | Step]:
    """Yield how often *surfaces* occur in texts; a surface may come several times, to be added up.

    Args:
        read: function that gives the texts.
        surfaces: surfaces, or the folder where they are saved.
        folding: folding of the surfaces.
        complete_at_steps: whether all that was counted comes before the next step, where one may stop.
    """
    counter = _Counter(SurfaceHashes.load(surfaces) if isinstance(surfaces, Path) else surfaces, folding)
    for text in read():
        if isinstance(text, Step):
            if complete_at_steps:
                yield from counter.drain()
            yield text
        else:
            counter.take(text)
            if counter.full:
                yield from counter.drain()
    yield from counter.drain()


class _Counter:
    """Adds up the occurrences in texts, some of which are looked at at once."""

    def __init__(self, surfaces: SurfaceHashes, folding: Folding) -> None:
        self._surfaces, self._folding = surfaces, folding
        self._vocabulary = _Vocabulary(folding)
        self._counts: dict[int, Occurrences] = {}
        self._clear()

    def _clear(self) -> None:
        self._texts: list[Prose] = []
        self._size = 0

    @property
    def full(self) -> bool:
        """Whether there is enough to be given out."""
        return len(self._counts) >= _COUNTED

    def take(self, text: Prose) -> None:
        """Take in a text."""
        self._texts.append(text)
        self._size += len(text.text)
        if self._size >= _CHARACTERS:
            self._count()

    def drain(self) -> Iterator[Occurrences]:
        """Yield what has been counted, and begin anew."""
        self._count()
        counts, self._counts = self._counts, {}
        yield from counts.values()

    def _count(self) -> None:
        if len(self._vocabulary) > _CHUNKS:
            self._vocabulary = _Vocabulary(self._folding)
        texts = self._texts
        self._clear()
        tokens = self._vocabulary.read(texts)
        links, lengths = tokens.links.T
        for size, starts, hashes in self._runs(tokens):
            # The first place of each surface, how often it is there, and how often just a link is there.
            distinct, firsts, counts = np.unique(hashes, return_index=True, return_counts=True)
            at_link = hashes[np.isin(starts, links[lengths == size])]
            linked = np.bincount(np.searchsorted(distinct, at_link), minlength=len(distinct))
            columns = (column.tolist() for column in (distinct, starts[firsts], counts, linked))
            for number, start, count, of_links in zip(*columns, strict=True):
                earlier = self._counts.get(number)
                if earlier is None:
                    surface = self._vocabulary.run(tokens, start, size)
                    self._counts[number] = Occurrences(surface, count, of_links)
                else:
                    total = earlier.count + count, earlier.linked + of_links
                    self._counts[number] = Occurrences(earlier.surface, *total)

    def _runs(self, text: _Tokens) -> Iterator[tuple[int, Indexes, Hashes]]:
        """Yield the runs of 1, 2, 3 … tokens that are surfaces: where they start, and their hashes."""
        starts, hashes = np.arange(len(text.hashes)), text.hashes
        for size in range(1, MAX_TOKENS + 1):
            are_surfaces, begins = self._surfaces.look_up(hashes)
            runs = hashes
            if size == 1:
                runs = text.alone
                are_surfaces, _ = self._surfaces.look_up(runs)
            are_surfaces &= runs != text.own[starts]
            yield size, starts[are_surfaces], runs[are_surfaces]
            ends = starts + size
            going_on = begins & (ends < len(text.gaps))
            going_on[going_on] = text.gaps[ends[going_on]] != _BREAK
            starts, ends = starts[going_on], ends[going_on]
            if not len(starts):
                return
            hashes = text.longer(hashes[going_on], ends)
