"""What a PMI table is made of: texts and settings."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kgkit.evaluation.files import check_data
from kgkit.ranges import check_range

if TYPE_CHECKING:
    from kgkit.evaluation.plain_text import PlainSentence

MOST_WORDS: Final = 2**31 - 1
"""The largest number of words, of which a table has the numbers in 32 bits."""


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

    data: tuple[Path, ...]
    window: int = field(default=10, metadata={"least": 1, "most": 1_000})
    min_count: int = field(default=10, metadata={"least": 1})
    min_pairs: int = field(default=5, metadata={"least": 1})
    words: int = field(default=200_000, metadata={"least": 1, "most": MOST_WORDS})

    def __post_init__(self) -> None:
        check_data(self.data)
        for number in fields(self)[1:]:
            check_range(self, number.name, **number.metadata)

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that are read."""
        return self.data

    @property
    def sentences(self) -> Iterator["PlainSentence"]:
        """The sentences of all files, from the first one.

        Raises (when the first of a file is asked for):
            NotThere, SourceError, UsageError: as `check_plain` and `read_sentences` do.
        """
        from kgkit.evaluation.plain_text import check_plain, read_sentences

        for path in self.data:
            check_plain(path)
            yield from read_sentences(path)
