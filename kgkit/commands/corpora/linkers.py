"""Linkers that answer the documents of a corpus."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from kgkit.commands.corpora.chunks import Answerer, DocumentAnswer, ResultColumn
from kgkit.commands.corpora.documents import FIELDS
from kgkit.commands.messages import ProgressCallback
from kgkit.commands.output import counted
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.linking.settings import LinkSettings
from kgkit.types import Document


@dataclass(frozen=True, kw_only=True)
class LinkerFactory:
    """Opens linkers of one setting, in this process or in workers.

    Attributes:
        models: models of the builds of knowledge bases, by the builds' names.
        settings: settings of all of them.
    """

    column: ClassVar[ResultColumn] = "links"
    mention_fields: ClassVar[Sequence[str]] = FIELDS

    models: Mapping[str, str]
    settings: LinkSettings

    @contextmanager
    def open(self) -> "Iterator[LinkAnswerer]":
        """Give what links documents."""
        with MultiKBLinker.open(self.models, **vars(self.settings)) as linker:
            yield LinkAnswerer(linker)


class LinkAnswerer(Answerer):
    """Links documents, for the output.

    Args:
        linker: linker of one knowledge base or several.
    """

    def __init__(self, linker: MultiKBLinker) -> None:
        self._linker, self.model = linker, linker.model
        self._told = 0  # omissions that were returned

    def __call__(self, documents: Iterable[Document]) -> Iterator[DocumentAnswer]:
        """Yield the fields of each linked document."""
        for linked in self._linker(documents):
            record = {name: getattr(linked, name) for name in linked.__struct_fields__}
            yield DocumentAnswer(record, len(linked.links), linked)

    def omissions(self) -> list[str]:
        """Return surfaces that texts have in lower case, and a knowledge base with capitals only."""
        every = [surface for generator in self._linker.generators for surface in generator.omissions]
        begin, self._told = self._told, len(every)
        return every[begin:]

    def missing_documents(self) -> frozenset[str]:
        """Return names of documents that corrections are about, and that have not come so far."""
        every = (linker.corrections for linker in self._linker.linkers)
        return frozenset(name for each in every if each is not None for name in each.missing_documents)

    def report_encoding(self, report: ProgressCallback) -> None:
        """Set what is called while texts of entities are encoded for vectors that fill as they are used."""
        for linker in self._linker.linkers:
            vectors: Any = getattr(linker.scorer, "vectors", None)
            if hasattr(vectors, "progress"):
                vectors.progress = lambda stage, count, total: report(
                    f"{stage}, {count:,} of {counted(total, 'text')}", count, total
                )
