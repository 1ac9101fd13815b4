"""Taggers that answer the documents of a corpus."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from kgkit.commands.corpora.chunks import Answerer, DocumentAnswer, ResultColumn
from kgkit.errors import UsageError
from kgkit.home import Home
from kgkit.tagging.mention_tagger import MentionTagger, TaggedMention
from kgkit.types import Document


@dataclass(frozen=True, kw_only=True)
class TaggerFactory:
    """Opens a tagger, in this process or in workers.

    Attributes:
        model: name of the tagger, or its folder.
        home: home of it.
        device: torch device.
        threshold: least score of a name.
    """

    column: ClassVar[ResultColumn] = "mentions"
    mention_fields: ClassVar[Sequence[str]] = ("mentions",)  # other layouts are fields like any other

    model: str
    home: Home
    device: str
    threshold: float

    @contextmanager
    def open(self) -> "Iterator[TagAnswerer]":
        """Give what finds names in documents."""
        yield TagAnswerer(MentionTagger.open(self.model, home=self.home, device=self.device), self.threshold)


class TagAnswerer(Answerer):
    """Finds names in documents, for the output.

    Args:
        tagger: the tagger.
        threshold: least score of a name.
    """

    def __init__(self, tagger: MentionTagger, threshold: float) -> None:
        self.tagger, self._threshold, self.model = tagger, threshold, tagger.name

    def __call__(self, documents: Iterable[Document]) -> Iterator[DocumentAnswer]:
        """Yield the fields of each document with its names."""
        for document in self.tagger(map(_check_untagged, documents)):
            names = [
                {"start": name.start, "end": name.end, "text": name.text, "type": name.type,
                 "score": name.score}
                for name in document.mentions or ()
                if isinstance(name, TaggedMention) and name.score >= self._threshold
            ]  # fmt: skip
            record = {"id": document.id, "text": document.text, "model": self.model, "mentions": names}
            yield DocumentAnswer(record, len(names), document)


def _check_untagged(document: Document) -> Document:
    """Return *document*, in which names are to be found.

    Raises:
        UsageError: if it has mentions, which would be lost.
    """
    if document.mentions is not None:
        raise UsageError(
            f"document {document.id!r} has mentions already, and kgkit tag finds its own: leave the field "
            "'mentions' out"
        )
    return document
