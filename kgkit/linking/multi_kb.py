"""Links to several knowledge bases at once, those of words that refer back among them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.linking.linker import Linker
from kgkit.linking.references import References
from kgkit.types import Document, LinkedDocument


class MultiKBLinker:
    """Links documents to each of several knowledge bases, and words that refer back.

    Args:
        linkers: linkers, one for each knowledge base; links of the first come first.

    Attributes:
        generators: generators of the linkers.

    Raises:
        UsageError: if there is no linker.
    """

    def __init__(self, linkers: Sequence[Linker]) -> None:
        if not linkers:
            raise UsageError("there is no knowledge base to link to")
        self._linkers = linkers
        self.generators = [linker.generator for linker in linkers]
        self._references = References([linker.kb for linker in linkers])

    @classmethod
    def open(
        cls,
        kbs: Sequence[KnowledgeBase],
        *,
        model: str,
        coherence: Literal["graph"] | None = None,
        device: str = "auto",
        all_surfaces: bool = False,
    ) -> "MultiKBLinker":
        """Open a linker on each of *kbs*; the other arguments are those of `Linker.open`."""
        return cls(
            [
                Linker.open(kb, model=model, coherence=coherence, device=device, all_surfaces=all_surfaces)
                for kb in kbs
            ]
        )

    def __call__(self, documents: Iterable[Document]) -> Iterator[LinkedDocument]:
        """Yield each document with the links to all knowledge bases; they may overlap.

        All documents are read before the first is linked.
        """
        texts = [*documents]
        for linked in zip(*[[*linker(texts)] for linker in self._linkers], strict=True):
            links = [link for document in linked for link in document.links]
            yield self._references(msgspec.structs.replace(linked[0], links=links))
