"""What finds names in documents: the contract of taggers, and what they have in common.

It loads neither torch nor spaCy: `MentionTagger.open` does, as the tagger needs.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from kgkit.home import Home
from kgkit.models.opening import open_model
from kgkit.text import token_spans
from kgkit.types import Document, Mention

SPACY: Final = "spacy:"
"""Prefix of a tagger that is a spaCy pipeline."""

_DOCUMENTS: Final = 32  # whose windows are sorted by length together


class TaggedMention(Mention, gc=False):
    """A mention that a tagger has found.

    Attributes:
        type: of what is named, in the words of the tagger's data: `PER`, `LOC`, …
        score: the probability, in [0, 1], that this very span is a name of this type.
    """

    type: str = ""
    score: float = 1.0


class TypedWord(NamedTuple):
    """A word with the probabilities of its types.

    Attributes:
        start, end: span in code points, end exclusive.
        probabilities: (1 + K,), that it is part of no name, and of a name of each type.
    """

    start: int
    end: int
    probabilities: tuple[float, ...]

    def likeliest(self) -> int:
        """Return the number of its likeliest type; 0: it is part of no name."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)


class MentionTagger(ABC):
    """Finds names in documents: what each kind of model with the role of a tagger does.

    Args:
        name: what it is called by.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @staticmethod
    def open(
        model: str,
        *,
        home: Home | str | os.PathLike[str] | None = None,
        device: str = "auto",
    ) -> "MentionTagger":
        """Open the tagger *model*, a name or a folder.

        Args:
            model: name of a model with the role of a tagger; or its folder; or `spacy:` and the name or the
                folder of a spaCy pipeline.
            home: where models lie.
            device: where it computes.

        Raises:
            UnknownName, NotThere: if there is none.
            UsageError: if it is no tagger, or there is no such device.
            DamagedModel: if it cannot be read.
            MissingExtra: if torch, transformers or safetensors is not installed; or spaCy, for a pipeline.
        """
        if str(model).startswith(SPACY):  # a folder may be a `Path`
            from kgkit.tagging.spacy_tagger import SpacyTagger  # here: it loads spaCy

            return SpacyTagger.load(model.removeprefix(SPACY))
        tagger: MentionTagger = open_model(model, "tagger", home=home, device=device)
        return tagger

    @property
    @abstractmethod
    def types(self) -> tuple[str, ...]:
        """The types of names."""

    def text_words(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the words of a plain text, cut as those that the tagger has learnt from."""
        return [*token_spans(text)]

    @abstractmethod
    def typed_words(self, documents: Sequence[Document]) -> list[list[TypedWord]]:
        """Return the words of each document with the probabilities of their types."""

    @abstractmethod
    def mentions(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Return the names in each document, whatever mentions it has: `TaggedMention`s, in order."""

    def __call__(self, documents: Iterable[Document | str]) -> Iterator[Document]:
        """Yield each document with its names as mentions; those that have mentions keep them.

        A string among them is a document of its own.

        Raises:
            TypeError: if *documents* is one string: give a list of it; or something in it is no document.
        """
        if isinstance(documents, str):
            raise TypeError("a tagger takes documents, not one text: tagger([text])")
        return self._tagged(documents)

    def _tagged(self, documents: Iterable[Document | str]) -> Iterator[Document]:
        source = enumerate(documents)
        while read := list(islice(source, _DOCUMENTS)):
            chunk = [
                Document(str(number), document) if isinstance(document, str) else document
                for number, document in read
            ]
            for document in chunk:
                if not isinstance(document, Document):
                    raise TypeError(f"a document is a str or a kgkit.Document, not {type(document).__name__}")
            names = iter(self.mentions([document for document in chunk if document.mentions is None]))
            for document in chunk:
                if document.mentions is None:
                    document = msgspec.structs.replace(document, mentions=next(names))
                yield document
