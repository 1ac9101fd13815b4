"""The surfaces that are like a text, or contain it: the index of a build's surfaces.

It is the file `surfaces.trigrams`. A surface is listed by

    trigrams    all three bytes in a row of the UTF-8 of its plain form, with a space before and behind it
    bigrams     of a plain form of at most `SHORT` bytes, which may have no trigram left after a typing error
    words       the words of its plain form, as numbers that are hashes
    its core    what is left without brackets and without what stands behind a comma, where it has these
    letters     the first ones of its words, of three words or more, or of two with `&` between them: of all,
                of all but *and*, and of those over three letters; one word of letters with `&` between them

The file holds, little-endian and each part at a multiple of 8 bytes:

    header      magic (8 bytes); numbers of surfaces N, bytes of text B, grams G and postings P (u64 each)
    text        (B,) the surfaces as the table `aliases` has them, one behind the other
    ends        (N + 1,) u64, where each surface begins and the last one ends
    grams       (G,) u32, ascending: a trigram as b0 << 16 | b1 << 8 | b2, a bigram as b0 << 8 | b1; words
                and cores as `word_code` and `core_code` give them
    starts      (G + 1,) u64, where the postings of each gram begin
    postings    (P,) u32, the numbers of the surfaces that have the gram, ascending
    labels      (C,) the labels that no surface of their entity contains, as `Labels` has them
    label ends  (L,) u64, where each of them ends
    label ids   (L,) u32, the ids of their entities, ascending
    sizes       L and C, u64 each

Surfaces are numbered in the order of the file: those of a build ascend, those that were added to it follow.
What is in the file follows from the table `aliases`, but for that order. Surfaces whose key is a digest, as
they are too long for one, are not in it.

The index of the first version (`KGTRIG1`) has the trigrams and bigrams of the folded surfaces alone; that of
the second (`KGTRIG2`) lacks letters of names with `&` and stars; none before the fourth has labels. They are
read; what extends them is written anew.
"""

import os
import re
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from itertools import groupby, islice, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final, NamedTuple
from unicodedata import normalize, numeric
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import DamagedKB, WriteFailed
from kgkit.pauses import pause
from kgkit.text import without_accents
from kgkit.versions import free_space

__all__ = [
    "BRACKETS", "NO_LABELS", "SHORT", "Labels", "TrigramIndex", "TrigramWriter", "core_code", "core_of",
    "first_letters", "grams_of", "plain_form", "postings_of", "word_code",
]  # fmt: skip

Codes = NDArray[np.uint32]

SHORT: Final = 8
"""A surface of so many bytes, at most, is listed by its bigrams too."""

_MAGICS: Final = (b"KGTRIG1\n", b"KGTRIG2\n", b"KGTRIG3\n", b"KGTRIG4\n")  # the last one is written
_GRAMS_SINCE: Final = 3  # version whose grams are those of today
_WORDS: Final = 0x8000_0000
_CORES: Final = 0xC000_0000
_HASH: Final = 0x3FFF_FFFF
_HEADER: Final = struct.Struct("<8s4Q")
_SIZES: Final = struct.Struct("<2Q")
_ALIGNED: Final = 8
_ACRONYM_WORDS: Final = 3  # of a surface that is listed by their first letters
_SHORT_WORD: Final = 3  # letters, as articles and prepositions have
_BATCH: Final = 32_768
_BYTES: Final = 32 << 20  # of a base that are read at a time
_POSTINGS: Final = 4 << 20  # that are joined at a time
_TEXT: Final = 64 << 10  # bytes in which a part is sought at a time
_LISTS: Final = 4  # of grams that are compared, the shortest ones
_LONG: Final = 200_000  # postings of a list: sooner than these, all surfaces are read
_FEW: Final = 1_000  # surfaces that are read sooner than a further list of them
_COMPARED: Final = 20_000  # surfaces that are read one by one
_U32, _U64 = np.dtype("<u4"), np.dtype("<u8")
_BEGINNINGS: Final = np.array([(1 << 64) - (1 << 8 * (8 - count)) for count in range(9)], np.uint64)
"""The first bytes of eight, by their number."""


# Punctuation of all scripts, but not + and # behind a letter (C++, F#), * behind a letter alone (A*), and no
# superscript digits.
_PUNCTUATION: Final = re.compile(
    r"(?<![^\W\d_])(?<![+#])[+#]+|[+#*]+(?=[^\W_])|(?<![\W_][^\W\d_])(?<!^[^\W\d_])\*|"
    '[\0-"$-),-/:-@\\[-`{-\xa9\xab-\xb1\xb4-\xb8\xbb-\xbf\xd7\xf7'
    "\u02b9-\u02bc\u055a-\u055f\u05be\u05f3\u05f4\u060c\u061b\u061f\u0964\u2000-\u200b"
    "\u200e-\u206f\u20a0-\u20cf\u2100-\u263f\u2641\u2643-\u27bf\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u30fb"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+"
)
_APOSTROPHES: Final = re.compile("['`\xb4\u02b9-\u02bc\u2018\u2019\u201b\u2032\uff07]")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_COMMA: Final = re.compile(r",(?!\d)")
_STOPS: Final = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.){2,}[^\W\d_]?(?![^\W_])")
_LOOSE_SIGNS: Final = re.compile(r"(?<=[^\W\d_]) +(?=[+#]+$)")
_NUMBERS: Final = re.compile("[\xbc-\xbe\u2150-\u218b\u2460-\u24ff\u2640\u2642\u266d\u266f\u2776-\u2793]")
_CHANGED: Final = re.compile("|".join(each.pattern for each in (_PUNCTUATION, _APOSTROPHES, _NUMBERS)))
_ACCIDENTALS: Final = {"\u266d": " flat", "\u266f": "#"}
BRACKETS: Final = re.compile("[(\\[{\uff08\u3010][^)\\]}\uff09\u3011]*(?:[)\\]}\uff09\u3011]|$)")
"""A part of a text in brackets."""


def plain_form(folded: str) -> str:
    """Return a folded text as names are compared: words of letters without accents and of digits.

    Apostrophes, and the stops of `u.s.a.`, leave nothing; other marks leave a space. Numbers that are one
    character, as Ⅱ, ② and ½, become letters or digits. A text of marks alone stays as it is.

    Examples:
        >>> plain_form("antonín dvořák (u.s. tour)")
        'antonin dvorak us tour'
    """
    if folded.isascii():
        if folded.replace(" ", "").isalnum():
            return folded
        text = folded
    else:
        text = without_accents(_NUMBERS.sub(_spelled, folded))
    text = _APOSTROPHES.sub("", text)
    if "." in text:
        text = _STOPS.sub(lambda match: match[0].replace(".", ""), text)
    if "," in text:
        text = _THOUSANDS.sub("", text)
    if text.endswith(("+", "#")):
        text = _LOOSE_SIGNS.sub("", text)
    return " ".join(_PUNCTUATION.sub(" ", text).split()) or folded


def _spelled(match: re.Match[str]) -> str:
    """Return a number of one character in letters or digits; fractions and signs are words of their own."""
    character = match[0]
    if character in _ACCIDENTALS:
        return _ACCIDENTALS[character]
    text = normalize("NFKC", character)
    if text == character and (number := numeric(character, -1)) >= 0:
        text = f"{number:g}"
    return text if text.isalnum() else f" {text} "


def core_of(folded: str) -> str:
    """Return a folded text without what qualifies it: brackets, and what stands behind a comma.

    Examples:
        >>> core_of("mercury (planet)"), core_of("cambridge, massachusetts")
        ('mercury', 'cambridge')
    """
    core = _COMMA.split(BRACKETS.sub(" ", folded).strip(" ,"), 1)[0].strip()
    return plain_form(core) if core else ""


def word_code(word: str) -> int:
    """Return the number by which an index lists the surfaces that have a word."""
    return _WORDS | crc32(word.encode(errors="replace")) & _HASH


def core_code(core: str) -> int:
    """Return the number by which an index lists the surfaces that have a core, whatever spaces are in it."""
    return _CORES | crc32(core.replace(" ", "").encode(errors="replace")) & _HASH


def first_letters(plain: str) -> set[str]:
    """Return the first letters of three words or more: of all, of all but *and*, of the long ones."""
    words = plain.split()
    if len(words) < _ACRONYM_WORDS:
        return set()
    long_words = [word for word in words if len(word) > _SHORT_WORD]
    without_and = [word for word in words if word != "and"]
    return {"".join(word[0] for word in each) for each in (words, without_and, long_words) if len(each) > 1}


def postings_of(surfaces: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return (P,) postings of *surfaces*, ascending and each once: gram << 32 | number of the surface.

    The numbers are those of the sequence.
    """
    if not surfaces:
        return np.empty(0, np.uint64)
    folded = [str(surface, errors="replace") for surface in surfaces]
    plain = [plain_form(text) for text in folded]
    listed: list[int] = []
    codes: dict[str, int] = {}  # of words, most of which come often
    for number, text in enumerate(plain):
        words = text.split(" ")
        for word in words:
            if (code := codes.get(word)) is None:
                code = codes[word] = word_code(word) << 32
            listed.append(code | number)
        if len(words) >= _ACRONYM_WORDS:
            listed += [core_code(letters) << 32 | number for letters in first_letters(text)]
    for number, text in enumerate(folded):
        if "&" in text and len(plain[number]) < SHORT:
            listed.append(word_code(plain[number].replace(" ", "")) << 32 | number)
        elif "&" in text and len(words := plain[number].split()) == 2:
            listed.append(core_code(words[0][0] + words[1][0]) << 32 | number)
        if not text.isalnum() and ("," in text or BRACKETS.search(text)) and (core := core_of(text)):
            listed.append(core_code(core) << 32 | number)
    postings = np.concatenate(
        [_gram_postings([text.encode(errors="replace") for text in plain]), np.array(listed, np.uint64)]
    )
    postings.sort()
    return postings[_firsts(postings)]


def _gram_postings(surfaces: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return the postings of trigrams and bigrams, some of them several times, in no order."""
    lengths = np.fromiter(map(len, surfaces), np.int64, len(surfaces))
    # Each is followed by a NUL, and no gram has one.
    text = np.frombuffer(b" " + b" \0 ".join(surfaces) + b" \0", np.uint8).astype(np.uint64)
    sizes = lengths + 3
    numbers = np.repeat(np.arange(len(surfaces), dtype=np.uint64), sizes)
    is_short = np.repeat(lengths <= SHORT, sizes)
    pairs = text[:-1] << np.uint64(8) | text[1:]
    has_no_end = (text[:-1] != 0) & (text[1:] != 0)
    trigrams = pairs[:-1] << np.uint64(8) | text[2:]
    is_trigram = has_no_end[:-1] & (text[2:] != 0)
    is_bigram = has_no_end & is_short[:-1]
    return np.concatenate(
        [
            trigrams[is_trigram] << np.uint64(32) | numbers[:-2][is_trigram],
            pairs[is_bigram] << np.uint64(32) | numbers[:-1][is_bigram],
        ]
    )


def _firsts(ascending: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each value of an ascending array comes first; faster than `np.unique`, which hashes."""
    return np.flatnonzero(np.append(len(ascending) > 0, ascending[1:] != ascending[:-1]))


def grams_of(text: bytes, *, bigrams: bool) -> Codes:
    """Return (G,) distinct trigrams of a text, ascending, and its bigrams if these are wanted."""
    padded = np.frombuffer(b" " + text + b" ", np.uint8).astype(np.uint32)
    pairs = padded[:-1] << 8 | padded[1:]
    trigrams = pairs[:-1] << 8 | padded[2:]
    codes: Codes = np.sort(np.concatenate([trigrams, pairs]) if bigrams else trigrams)
    return codes[_firsts(codes)]


def _rows_between(grams: Codes, low: Any, high: Any) -> tuple[int, int]:
    """Return where the *grams* from *low* to *high*, both among them, begin and end."""
    return int(np.searchsorted(grams, low)), int(np.searchsorted(grams, high, "right"))


class Labels(NamedTuple):
    """Labels of entities, in which parts are sought.

    A label is here as it is folded and in lower case, if the two differ, each with a line end behind it.

    Attributes:
        text: (C,) uint8, the labels, one behind the other.
        ends: (L,) uint64, where each of them ends.
        ids: (L,) uint32, the ids of their entities, ascending.
    """

    text: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    ids: Codes

    def same_as(self, others: "Labels") -> bool:
        """Say whether all labels are those of *others*."""
        return (
            np.array_equal(self.text, others.text)
            and np.array_equal(self.ends, others.ends)
            and np.array_equal(self.ids, others.ids)
        )

    def containing(self, part: bytes) -> Iterator[int]:
        """Yield the ids of the entities whose labels contain a folded text, ascending."""
        for places in _places(self.text, part):
            yield from self.ids[np.unique(np.searchsorted(self.ends, places, "right"))].tolist()


NO_LABELS: Final = Labels(np.empty(0, np.uint8), np.empty(0, _U64), np.empty(0, _U32))


def _places(text: NDArray[np.uint8], part: bytes) -> Iterator[NDArray[np.uint64]]:
    """Yield where *part*, which is not empty, begins in a text, some places at a time."""
    for begin in range(0, len(text), _TEXT):
        pause()
        piece = text[begin : begin + _TEXT + len(part) - 1].tobytes()
        places, at = [], piece.find(part)
        while at >= 0:
            places.append(begin + at)
            at = piece.find(part, at + 1)
        if places:
            yield np.array(places, np.uint64)


def _parts_of_plain_form(folded: str) -> list[bytes]:
    """Return parts that are in the plain form of every text that contains a folded text."""
    characters = [
        character if character == " " or (character.isalnum() and not _CHANGED.match(character)) else "\n"
        for character in folded
    ]
    return [
        without_accents(part.strip()).encode() for part in "".join(characters).split("\n") if part.strip()
    ]


class _Run(NamedTuple):
    """Postings of some surfaces: grams, how many postings each has, and where the temporary file has them."""

    grams: Codes
    counts: NDArray[np.int64]
    begin: int


class TrigramWriter:
    """Writes the index of a build; of the surfaces a batch is in memory at a time.

    Args:
        path: path of the file.
        base: index whose surfaces this one begins with; None for none.

    Raises:
        WriteFailed: if the disk refuses, from any method.

    Examples:
        with TrigramWriter(folder / TRIGRAMS) as index:
            index.add(keys_of_aliases)
            index.finish()
    """

    def __init__(self, path: Path, base: "TrigramIndex | None" = None) -> None:
        self._path, self._base = path, base
        self._runs: list[_Run] = []
        self._ends = [np.zeros(1, _U64)] if base is None else []  # of the surfaces that are not the base's
        self._count = self._size = self._spilled = 0
        try:
            self._file = path.open("w+b")
            self._spill = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115
        except OSError as error:
            raise self._failure(error) from error
        self._write(bytes(_HEADER.size))
        if base is not None:
            for begin in range(0, len(base.text), _BYTES):
                self._write(base.text[begin : begin + _BYTES].tobytes())
            self._count, self._size = len(base), len(base.text)

    def __enter__(self) -> "TrigramWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._spill.close()
        self._file.close()

    def add(self, surfaces: Iterable[bytes]) -> None:
        """Take in surfaces, which have not come before."""
        remaining = iter(surfaces)
        while batch := list(islice(remaining, _BATCH)):
            postings = postings_of(batch)
            codes = (postings >> np.uint64(32)).astype(np.uint32)
            firsts = _firsts(codes)
            counts = np.diff(np.append(firsts, len(codes)))
            numbers = (postings & np.uint64(0xFFFFFFFF)).astype(_U32) + np.uint32(self._count)
            lengths = np.fromiter(map(len, batch), _U64, len(batch))
            self._add_run(b"".join(batch), lengths, codes[firsts], counts, numbers)

    def finish(self, labels: Labels = NO_LABELS) -> None:
        """Write all but the surfaces, and bring the file to the disk."""
        base = self._base
        of_base = np.empty(0, np.uint32) if base is None else base.grams
        grams = np.unique(np.concatenate([of_base, *[run.grams for run in self._runs]])).astype(np.uint32)
        totals = np.zeros(len(grams), np.int64)
        if base is not None:
            totals[np.searchsorted(grams, of_base)] = np.diff(base.starts)
        for run in self._runs:
            totals[np.searchsorted(grams, run.grams)] += run.counts
        starts = np.append(0, np.cumsum(totals)).astype(_U64)
        self._align(self._size)
        if base is not None:
            for begin in range(0, len(base.ends), _BYTES // 8):
                self._write(base.ends[begin : begin + _BYTES // 8].tobytes())
        for ends in self._ends:
            self._write(ends.tobytes())
        for array in (grams.astype(_U32), starts):
            self._write(array.tobytes())
            self._align(array.nbytes)
        try:
            if base is not None:
                self._join(base, grams, starts)
            else:
                self._file.flush()
                begin = self._file.tell()
                self._file.truncate(begin + int(starts[-1]) * _U32.itemsize)
                if len(grams):
                    self._scatter(grams, starts[:-1].astype(np.int64), begin)
                self._file.seek(0, os.SEEK_END)
            self._align(int(starts[-1]) * _U32.itemsize)
            for part in labels:
                self._file.write(part.tobytes())
                self._align(part.nbytes)
            self._file.write(_SIZES.pack(len(labels.ids), len(labels.text)))
            self._file.seek(0)
            self._file.write(_HEADER.pack(_MAGICS[-1], self._count, self._size, len(grams), int(starts[-1])))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failure(error) from error

    def _scatter(self, grams: Codes, following: NDArray[np.int64], begin: int) -> None:
        """Write the postings of all runs, gram by gram; *following* is where the next one of each goes."""
        postings = np.memmap(self._file, _U32, "r+", begin)
        for run in self._runs:
            self._spill.seek(run.begin)
            numbers = np.frombuffer(self._spill.read(int(run.counts.sum()) * _U32.itemsize), _U32)
            rows = np.searchsorted(grams, run.grams)
            first = np.cumsum(run.counts) - run.counts
            postings[np.repeat(following[rows] - first, run.counts) + np.arange(len(numbers))] = numbers
            following[rows] += run.counts
        postings.flush()

    def _join(self, base: "TrigramIndex", grams: Codes, starts: NDArray[np.uint64]) -> None:
        """Write the postings of each gram, those of *base* first, some of the grams at a time."""
        bounds = np.searchsorted(starts, np.arange(0, int(starts[-1]), _POSTINGS)).tolist()
        for first, last in pairwise(sorted({len(grams)}.union(bounds))):
            low, high = grams[first], grams[last - 1]
            rows = _rows_between(base.grams, low, high)
            old = slice(int(base.starts[rows[0]]), int(base.starts[rows[1]]))
            numbers = base.postings[old]
            new_grams, new_numbers = [], []
            for run in self._runs:
                begin, end = _rows_between(run.grams, low, high)
                skipped, taken = int(run.counts[:begin].sum()), int(run.counts[begin:end].sum())
                self._spill.seek(run.begin + skipped * _U32.itemsize)
                new_numbers.append(np.frombuffer(self._spill.read(taken * _U32.itemsize), _U32))
                new_grams.append(np.repeat(run.grams[begin:end], run.counts[begin:end]))
            if new_numbers:
                codes = np.concatenate(new_grams)
                order = np.argsort(codes, kind="stable")
                # Behind those that the base has of the same gram.
                places = base.starts[np.searchsorted(base.grams, codes[order], "right")].astype(np.int64)
                numbers = np.insert(numbers, places - old.start, np.concatenate(new_numbers)[order])
            self._file.write(numbers.astype(_U32).tobytes())

    def _add_run(
        self,
        text: bytes,
        lengths: NDArray[np.uint64],
        grams: Codes,
        counts: NDArray[np.int64],
        numbers: NDArray[np.uint32],
    ) -> None:
        self._write(text)
        self._ends.append((np.cumsum(lengths) + np.uint64(self._size)).astype(_U64))
        self._size += len(text)
        self._count += len(lengths)
        if len(grams):
            self._runs.append(_Run(np.array(grams), np.array(counts), self._spilled))
            try:
                self._spilled += self._spill.write(numbers.astype(_U32).tobytes())
            except OSError as error:
                raise self._failure(error) from error

    def _align(self, size: int) -> None:
        self._write(bytes(-size % _ALIGNED))

    def _write(self, content: bytes) -> None:
        try:
            self._file.write(content)
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> WriteFailed:
        folder = self._path.parent
        return WriteFailed(str(error), written=self._size, free=free_space(folder), where=folder)


class TrigramIndex:
    """The index of a build, mapped into memory.

    Use it from any number of threads, and in forked children. What it has mapped stays when the build is
    removed.

    Args:
        path: path of the file.

    Attributes:
        text, ends, grams, starts, postings: the parts of the file, as the module describes them.
        labels: the labels in it; None of an older version, which has none.
        is_first: whether it is of the first version, of folded surfaces and without words.
        has_grams_of_today: whether its grams are those that `postings_of` gives.

    Raises:
        DamagedKB: if it is no such file, or not as long as its header says.
        OSError: if it cannot be mapped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            content = mmap(file.fileno(), 0, access=ACCESS_READ)
        if len(content) < _HEADER.size:
            raise DamagedKB(f"{path} is too short for an index of surfaces")
        magic, surfaces, size, grams, postings = _HEADER.unpack_from(content)
        if magic not in _MAGICS:
            raise DamagedKB(f"{path} is no index of surfaces that this kgkit reads")
        version = 1 + _MAGICS.index(magic)
        self.is_first = version == 1
        self.has_grams_of_today = version >= _GRAMS_SINCE
        begins = [_HEADER.size]
        for length in (size, 8 * (surfaces + 1), 4 * grams, 8 * (grams + 1)):
            begins.append(begins[-1] + length + -length % _ALIGNED)
        end = begins[-1] + 4 * postings
        if has_labels := version == len(_MAGICS):
            labels, letters = _SIZES.unpack_from(content, len(content) - _SIZES.size)
            begins.append(end + -end % _ALIGNED)
            for length in (letters, 8 * labels, 4 * labels):
                begins.append(begins[-1] + length + -length % _ALIGNED)
            end = begins[-1] + _SIZES.size
        if end != len(content):
            raise DamagedKB(f"{path} has {len(content):,} bytes, its header says {end:,}")
        self.text = np.frombuffer(content, np.uint8, size, begins[0])
        self.ends = np.frombuffer(content, _U64, surfaces + 1, begins[1])
        self.grams = np.frombuffer(content, _U32, grams, begins[2])
        self.starts = np.frombuffer(content, _U64, grams + 1, begins[3])
        self.postings = np.frombuffer(content, _U32, postings, begins[4])
        self.labels: Labels | None = None
        if has_labels:
            self.labels = Labels(
                np.frombuffer(content, np.uint8, letters, begins[5]),
                np.frombuffer(content, _U64, labels, begins[6]),
                np.frombuffer(content, _U32, labels, begins[7]),
            )

    def __len__(self) -> int:
        return len(self.ends) - 1

    def surface(self, number: int) -> str:
        """Return the surface of a number."""
        return str(self.text[int(self.ends[number]) : int(self.ends[number + 1])].tobytes(), errors="replace")

    def surfaces(self) -> Iterator[bytes]:
        """Yield every surface, as the key of the table `aliases`, in the order of their numbers."""
        for begin in range(0, len(self), _BATCH):
            ends = self.ends[begin : begin + _BATCH + 1].tolist()
            text = self.text[ends[0] : ends[-1]].tobytes()
            yield from (text[first - ends[0] : last - ends[0]] for first, last in pairwise(ends))

    def containing(self, folded: str, part: bytes) -> Iterator[str]:
        """Yield the surfaces that contain a folded text, in the order of the table `aliases`.

        Args:
            folded: folded text.
            part: its UTF-8, not empty.
        """
        numbers = self._proposed(folded, part)
        runs = []
        for first, last in pairwise(self._bounds):
            if numbers is None or len(numbers) > _COMPARED:
                runs.append(self._read(part, first, last))
            else:
                begin, end = np.searchsorted(numbers, (first, last)).tolist()
                runs.append(self._compared(part, numbers[begin:end]))
        for surface, _ in groupby(merge(*runs)):
            yield str(surface, errors="replace")

    def _read(self, part: bytes, first: int, last: int) -> Iterator[bytes]:
        """Yield those of the surfaces from *first* to before *last* that have a part, some of them twice."""
        ends = self.ends[first : last + 1]
        for places in _places(self.text[int(ends[0]) : int(ends[-1])], part):
            begins = places + ends[0]
            numbers = np.searchsorted(ends, begins, "right")  # of the surfaces behind those that these are in
            numbers = np.unique(numbers[begins + np.uint64(len(part)) <= ends[numbers]])
            for begin, end in zip(ends[numbers - 1].tolist(), ends[numbers].tolist(), strict=True):
                yield self.text[begin:end].tobytes()

    def _compared(self, part: bytes, numbers: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield those of some surfaces that have a part."""
        for begin, end in zip(self.ends[numbers].tolist(), self.ends[numbers + 1].tolist(), strict=True):
            if part in (surface := self.text[begin:end].tobytes()):
                yield surface

    @cached_property
    def _bounds(self) -> list[int]:
        """The numbers at which surfaces begin to ascend anew, those of each addition, and their count."""
        bounds = [0]
        for first in range(0, len(self) - 1, _BATCH):
            ends = self.ends[first : first + _BATCH + 2].astype(np.int64)
            text = self.text[ends[0] : ends[-1]].tobytes() + bytes(8)
            eights = np.ndarray(len(text) - 7, ">u8", text, strides=(1,))  # bytes from each place on
            begins, lengths = ends[:-1] - ends[0], np.diff(ends)
            rows, at, found = np.arange(len(begins) - 1), 0, []
            while len(rows):  # those that begin with the same bytes as the next one, so far
                left, right = (
                    eights[begins[each] + at] & _BEGINNINGS[(lengths[each] - at).clip(0, 8)]
                    for each in (rows, rows + 1)
                )
                found += rows[left > right].tolist()
                at += 8
                rows = rows[(left == right) & (np.minimum(lengths[rows], lengths[rows + 1]) >= at)]
            bounds += sorted(first + row + 1 for row in found)
        return [*bounds, len(self)]

    def _proposed(self, folded: str, part: bytes) -> NDArray[np.int64] | None:
        """Return the numbers of the surfaces that have the rarest grams of a folded text; None for any."""
        parts = [part] if self.is_first else _parts_of_plain_form(folded)
        codes = {int.from_bytes(each[at : at + 3], "big") for each in parts for at in range(len(each) - 2)}
        if codes:
            spans = [(code, code + 1) for code in codes]
        elif pairs := [int.from_bytes(each, "big") << 8 for each in parts if len(each) == 2]:
            spans = [
                (pair, pair + 0x100) for pair in pairs
            ]  # it has a trigram that begins so, before a space
        else:
            return None
        bounds = self.starts[np.searchsorted(self.grams, np.array(spans, np.uint32))].astype(np.int64)
        bounds = bounds[np.argsort(bounds[:, 1] - bounds[:, 0], kind="stable")][:_LISTS]
        if bounds[0, 1] - bounds[0, 0] > _LONG:
            return None
        numbers: NDArray[np.int64] | None = None
        for begin, end in bounds.tolist():
            if numbers is not None and len(numbers) <= _FEW:
                break
            listed = self.postings[begin:end]
            if not codes:
                listed = np.sort(listed)
                listed = listed[_firsts(listed)]
            if numbers is None:
                numbers = listed.astype(np.int64)
            elif len(listed):
                at = np.minimum(np.searchsorted(listed, numbers), len(listed) - 1)
                numbers = numbers[listed[at] == numbers]
        return numbers
