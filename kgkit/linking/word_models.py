"""Language models of whole words, as the role `language_model` gives them, and their perplexity."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kgkit.errors import UsageError
from kgkit.home import Home
from kgkit.models.folder import find_model_folder
from kgkit.models.kinds import KNOWBERT
from kgkit.models.manifest import read_header
from kgkit.models.opening import open_model
from kgkit.types import Progress
from kgkit.versions import read_current


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


def open_word_model(model: str, home: Home, device: str = "auto") -> WordModel | None:
    """Open a language model of whole words; None if *model* is a KnowBert.

    Args:
        model: name of a model in *home*, or its folder.
        home: home of models.
        device: torch device that the model computes on.

    Raises:
        UnknownName, NotThere: if there is no such model; says which language models there are.
        UsageError: if it is no language model, or one that has no perplexity of words.
        DamagedModel, MissingExtra: as `open_model` does.
    """
    folder = partial(find_model_folder, model, home, "language_model")
    if read_current(folder, read_header).kind == KNOWBERT.name:
        return None
    opened = open_model(model, "language_model", home=home, device=device)
    if not isinstance(opened, WordModel):
        raise UsageError(
            f"the model {model} opens as {type(opened).__name__}, which has no perplexity of words: its role "
            f"language_model is to give a {WordModel.__module__}.WordModel"
        )
    return opened
