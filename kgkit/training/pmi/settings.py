"""What a PMI table is made of: texts and settings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from kgkit.evaluation.files import check_data
from kgkit.evaluation.plain_text import PlainSentence, check_plain, read_sentences
from kgkit.ranges import check_range

MOST_WORDS: Final = 2**31 - 1
"""The largest number of words, of which a table has the numbers in 32 bits."""

_MOST: Final = {"window": 1000, "words": MOST_WORDS}


@dataclass(frozen=True, kw_only=True)
class PMITraining:
    """Texts and settings of a PMI table.

    Attributes:
        data: files of plain text, a blank line between documents.
        window: largest distance of two words that are a pair, in words; 1: next to each other.
        min_count: least number of occurrences of a word.
        min_pairs: least number of times that two words are a pair.
        words: largest number of words; the most frequent ones are taken.
    """

    LEAST: ClassVar[Mapping[str, int]] = {"window": 1, "min_count": 1, "min_pairs": 1, "words": 1}
    """The least value of each number."""

    data: tuple[Path, ...]
    window: int = 10
    min_count: int = 10
    min_pairs: int = 5
    words: int = 200_000

    def __post_init__(self) -> None:
        check_data(self.data)
        for name, least in self.LEAST.items():
            check_range(self, name, least=least, most=_MOST.get(name))

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that are read."""
        return self.data

    @property
    def sentences(self) -> Iterator[PlainSentence]:
        """The sentences of all files, from the first one.

        Raises (when the first of a file is asked for):
            NotThere, SourceError, UsageError: as `check_plain` and `read_sentences` do.
        """
        for path in self.data:
            check_plain(path)
            yield from read_sentences(path)
