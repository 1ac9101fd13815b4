"""Language models of whole words, as the role `language_model` gives them, and their perplexity."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kgkit.types import Progress


class WordPerplexity(NamedTuple):
    """How well words are predicted.

    Attributes:
        perplexity: e to the mean negative log-likelihood of a word.
        nats: that mean.
        words: number of words that are predicted, `<eos>` behind sentences among them.
        unknown: how many of them the vocabulary lacks.
    """

    perplexity: float
    nats: float
    words: int
    unknown: int


class WordModel(ABC):
    """A language model of whole words."""

    @property
    @abstractmethod
    def bidirectional(self) -> bool:
        """Whether a word is predicted from both sides, so that its perplexity is a pseudo-perplexity."""

    @abstractmethod
    def perplexity(
        self, paths: Sequence[Path], *, rows: int = 1, progress: Progress | None = None
    ) -> WordPerplexity:
        """Return how well the words of files of plain text are predicted.

        Args:
            paths: files, which are read as one sequence.
            rows: parts of the sequence that are read at once, each of which may begin without context.
            progress: callback with the number of batches that are done.

        Raises:
            NotThere, SourceError, UsageError: if a file cannot be read.
        """
