"""PMI of words: how much more often two words stand near each other than chance would have it.

    N(x, y)  how often x and y stand within a window of each other; N(x) = Σ_y N(x, y), N = Σ_x N(x)
    PMI(x, y) = ln(N(x, y) · N / (N(x) · N(y)))                                  Church and Hanks (1990)

A table keeps the pairs whose PMI is positive; any other pair has the value 0. In its folder, with V words and
P pairs, each of which stands in both of its directions:

    words.npy    uint8    the words in UTF-8, one behind the other, in the order of their bytes
    ends.npy     int64    (V,) where each word ends
    counts.npy   int64    (V,) how often each word occurs in the texts
    starts.npy   int64    (V + 1,) where the pairs of each word begin in the two arrays that follow
    columns.npy  int32    (P,) number of the second word, ascending within a first word
    values.npy   float32  (P,) value of the pair

All of it is mapped into memory. The words are looked at when it is opened, the pairs where somebody asks for
them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.bounded_cache import BoundedCache
from kgkit.errors import DamagedModel, UsageError
from kgkit.sorted_ids import match_sorted
from kgkit.text import fold, tokens

ARRAYS: Final[Mapping[str, str]] = {
    "words": "uint8", "ends": "int64", "counts": "int64", "starts": "int64", "columns": "int32",
    "values": "float32",
}  # fmt: skip
"""The arrays of a table, and the types of their numbers."""

_CACHE_BYTES: Final = 16_000_000


class AssociatedWord(NamedTuple):
    """A word, and how strongly it goes with others.

    Attributes:
        word: the word, folded.
        value: its mean value with the others; with one other word, the value of the pair.
    """

    word: str
    value: float


def text_words(text: str) -> list[str]:
    """Return the words of a text, folded: its tokens that have a letter or a digit.

    Examples:
        >>> text_words("The dog barked -- twice.")
        ['the', 'dog', 'barked', 'twice']
    """
    if text.isascii():
        folded = tokens(text.lower())  # of ASCII, folding a token is no more than this
    else:
        folded = [fold(token) for token in tokens(text)]
    return [token for token in folded if token.isalnum() or any(map(str.isalnum, token))]


class PMITable:
    """Values of pairs of words, mapped into memory; `kgkit.open_model` opens one by its name.

    Words are compared folded (`kgkit.text.fold`): *Dog* is *dog*. A word that the table does not have goes
    with nothing: its pairs have the value 0. The table is symmetric; the pair of a word with itself is two
    occurrences of that word. It may be used from any number of threads.

    Args:
        arrays: arrays of the table, as the module has them.
        name: name of the table, for errors.
        words: number of words that the arrays are to have; None: any.
        pairs: number of pairs that they are to have, (x, y) and (y, x) counted once; None: any.

    Raises:
        DamagedModel: if the arrays do not fit each other, or these numbers.

    Examples:
        >>> table = kgkit.open_model("english-pmi")
        >>> table.value("olive", "oil")
        0.41
        >>> table.strongest(["olive", "oil"], 2)
        [AssociatedWord(word='virgin', value=0.57), AssociatedWord(word='drizzle', value=0.39)]
    """

    def __init__(
        self,
        arrays: Mapping[str, NDArray[Any]],
        name: str,
        *,
        words: int | None = None,
        pairs: int | None = None,
    ) -> None:
        self.name = name
        for array, kind in ARRAYS.items():
            if arrays[array].dtype != kind or arrays[array].ndim != 1:
                what = f"{arrays[array].dtype} {arrays[array].shape}"
                raise self._damaged(f"{array}.npy holds {what}, expected a row of {kind}")
        # Still mapped, but without what each slice of a `memmap` costs.
        self._text, self._ends, self._counts = (
            np.asarray(arrays[array]) for array in ("words", "ends", "counts")
        )
        self._starts, self._columns = np.asarray(arrays["starts"]), np.asarray(arrays["columns"])
        self._values = np.asarray(arrays["values"])
        if len(self._counts) != len(self._ends) or len(self._starts) != len(self._ends) + 1:
            raise self._damaged("ends.npy, counts.npy and starts.npy are not of one number of words")
        if len(self._columns) != len(self._values):
            raise self._damaged("columns.npy and values.npy are not of one number of pairs")
        self._check_offsets("ends", np.concatenate([[0], self._ends]), len(self._text))
        self._check_offsets("starts", self._starts, len(self._columns))
        self._numbers = BoundedCache[str, int](_CACHE_BYTES)  # -1 of a word that is not there
        self._check_numbers(words, pairs)
        self._check_words()

    def _check_words(self) -> None:
        """Make sure that words are UTF-8 and ascend, which their search needs, and that counts are some."""
        start, before = 0, b""
        for number, end in enumerate(map(int, self._ends)):
            word = self._text[start:end].tobytes()
            if number and word <= before:
                raise self._damaged(f"the word of number {number} is not behind the one before it")
            self._decoded(word, number)
            start, before = end, word
        if (self._counts < 0).any():
            raise self._damaged("counts.npy has counts below 0")

    def _check_numbers(self, words: int | None, pairs: int | None) -> None:
        """Make sure that there are so many words and pairs, of two values each; of a word with itself one."""
        if words is not None and words != len(self):
            raise self._damaged(f"its arrays have {len(self):,} words, its manifest {words:,}")
        values = len(self._values)
        if pairs is not None and not 0 <= 2 * pairs - values <= len(self):
            raise self._damaged(f"its arrays have {values:,} values, its manifest {pairs:,} pairs")

    def _check_offsets(self, array: str, offsets: NDArray[np.int64], last: int) -> None:
        """Make sure that offsets into another array begin at 0, ascend, and end where that array does."""
        if offsets[0] != 0 or offsets[-1] != last or (offsets[1:] < offsets[:-1]).any():
            raise self._damaged(f"{array}.npy does not ascend from 0 to {last:,}")

    def _damaged(self, what: str) -> DamagedModel:
        return DamagedModel(
            f"the PMI table {self.name} cannot be used: {what}; train it again with `kgkit train pmi`"
        )

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._number(fold(word)) is not None

    def __repr__(self) -> str:
        return f"<PMITable {self.name}: {len(self):,} words, {len(self._values):,} values>"

    @property
    def words(self) -> Sequence[str]:
        """All words of the table, in the order of their bytes in UTF-8."""
        return [self._word(number) for number in range(len(self))]

    def count(self, word: str) -> int:
        """Return how often *word* occurs in the texts that were counted; 0 if the table does not have it."""
        number = self._number(fold(word))
        return 0 if number is None else int(self._counts[number])

    def value(self, first: str, second: str) -> float:
        """Return the value of a pair of words; 0 if it has none."""
        return float(self.values([first], [second])[0, 0])

    def values(self, first: Sequence[str], second: Sequence[str] | None = None) -> NDArray[np.float32]:
        """Return the values of all pairs of a word of *first* and one of *second*.

        Args:
            first: F words, as those of a sentence.
            second: S words; None: those of *first*.

        Returns:
            (F, S) float32.

        Raises:
            TypeError: if a text stands where words are expected: cut it with `text_words`.
            DamagedModel: if the pairs of a word are none.
        """
        second = first if second is None else second
        _check_words(first)
        _check_words(second)
        numbers = np.array([self._number_or(word, -1) for word in second], np.int64)
        values = np.zeros((len(first), len(second)), np.float32)
        for row, word in enumerate(first):
            if (number := self._number(fold(word))) is None:
                continue
            partners, of_pairs = self._pairs(number)
            if len(partners):
                index, exists = match_sorted(partners, numbers)
                values[row] = np.where(exists, of_pairs[index], 0)
        return values

    def strongest(self, words: Iterable[str], k: int = 10) -> list[AssociatedWord]:
        """Return the words that go best with *words*, as those of a sentence, and are not among them.

        They have the highest mean value with those of *words* that the table has, each counted once; of equal
        ones the more frequent word comes first. A word whose values with all of them are 0 is none of them.

        Args:
            words: words of a sentence.
            k: number of words, at most.

        Returns:
            The words, the best first; none if the table has none of *words*.

        Raises:
            UsageError: if *k* is below 1.
            TypeError: if *words* is a text: cut it with `text_words`.
            DamagedModel: if the pairs of a word are none.
        """
        _check_words(words)
        if k < 1:
            raise UsageError(f"k is {k}; it is at least 1")
        numbers = sorted({number for word in words if (number := self._number(fold(word))) is not None})
        if not numbers:
            return []
        rows = [self._pairs(number) for number in numbers]
        means = np.bincount(
            np.concatenate([columns for columns, _ in rows]),
            weights=np.concatenate([values for _, values in rows]),
            minlength=len(self),
        ) / len(numbers)
        means[numbers] = 0
        candidates = np.flatnonzero(means)
        if len(candidates) > k:
            least = np.partition(means[candidates], len(candidates) - k)[len(candidates) - k]
            candidates = candidates[means[candidates] >= least]
        order = np.lexsort((candidates, -self._counts[candidates], -means[candidates]))[:k]
        return [AssociatedWord(self._word(number), float(means[number])) for number in candidates[order]]

    def _pairs(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the second words and the values of a word's pairs.

        Raises:
            DamagedModel: if a second word is not there, or a value is none.
        """
        start, end = self._starts[number : number + 2]
        columns, values = self._columns[start:end], self._values[start:end]
        if len(columns):
            fits = columns[0] >= 0 and columns[-1] < len(self) and (columns[1:] > columns[:-1]).all()
            if not fits or not (np.isfinite(values) & (values >= 0)).all():
                raise self._damaged(f"the pairs of the word {self._word(number)!r} are none")
        return columns, values

    def _number_or(self, word: str, default: int) -> int:
        """Return the number of a word, folded or not; *default* if the table does not have it."""
        number = self._number(fold(word))
        return default if number is None else number

    def _number(self, folded: str) -> int | None:
        """Return the number of a word; None if the table does not have it."""
        number = self._numbers.get(folded)
        if number is None:
            found = self._search(folded.encode("utf-8", "surrogatepass"))
            number = self._numbers.keep(folded, -1 if found is None else found)
        return None if number < 0 else number

    def _search(self, word: bytes) -> int | None:
        """Return the number of a word by a binary search; None if the table does not have it."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(middle) < word:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._bytes(low) == word else None

    def _bytes(self, number: int) -> bytes:
        start = self._ends[number - 1] if number else 0
        return self._text[start : self._ends[number]].tobytes()

    def _word(self, number: int) -> str:
        return self._decoded(self._bytes(number), number)

    def _decoded(self, word: bytes, number: int) -> str:
        try:
            return word.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self._damaged(f"the word of number {number} is not UTF-8") from error


def _check_words(words: object) -> None:
    """Refuse a text where words are expected: its letters would be the words.

    Raises:
        TypeError: if it is one.
    """
    if isinstance(words, str):
        raise TypeError("words are expected, not one text: give a list of words, as text_words(text) makes")
