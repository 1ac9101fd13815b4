"""What a PMI table is made of: texts and settings."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from kgkit.evaluation.files import check_data
from kgkit.evaluation.plain_text import PlainSentence, read_sentences
from kgkit.models.pmi import Norm, Scope
from kgkit.ranges import check_range

MOST_WORDS: Final = 2**31 - 1
"""The largest number of words, of which a table has the numbers in 32 bits."""


@dataclass(frozen=True, kw_only=True)
class PMITraining:
    """Texts and settings of a PMI table.

    Attributes:
        data: files of plain text, a blank line between documents.
        window: largest distance of two words that are a pair; 1: next to each other.
        scope: what a window does not go beyond.
        min_count: least number of occurrences of a word.
        min_pairs: least number of times that two words are a pair.
        words: largest number of words; the most frequent ones are taken.
        norm: what the values are, see `PMIManifest`.
    """

    data: tuple[Path, ...]
    window: int = 10
    scope: Scope = "document"
    min_count: int = 10
    min_pairs: int = 5
    words: int = 200_000
    norm: Norm = "max"

    def __post_init__(self) -> None:
        check_data(self.data)
        check_range(self, "window", least=1, most=1000)
        check_range(self, "min_count", "min_pairs", least=1)
        check_range(self, "words", least=1, most=MOST_WORDS)

    @property
    def sentences(self) -> Iterator[PlainSentence]:
        """The sentences of all files, from the first one."""
        return chain.from_iterable(map(read_sentences, self.data))
