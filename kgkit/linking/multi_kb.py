"""Links to several knowledge bases at once, those of words that refer back among them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.linking.linker import Linker
from kgkit.linking.references import References
from kgkit.types import Document, LinkedDocument


class SeveralLinkers:
    """Links documents to each of several knowledge bases, and words that refer back.

    Args:
        kbs: one or more; links of the first come first.
        model: of each linker, as for `Linker.open`.
        coherence: whether the links of a document are to agree, as for `Linker.open`.
        device: where they are.
        all_surfaces: of each linker, as for `Linker.open`.

    Attributes:
        generators: of each linker.

    Raises:
        UsageError: if there is no knowledge base; else as `Linker.open` does.
    """

    def __init__(
        self,
        kbs: Sequence[KnowledgeBase],
        *,
        model: str,
        coherence: Literal["graph"] | None = None,
        device: str = "auto",
        all_surfaces: bool = False,
    ) -> None:
        if not kbs:
            raise UsageError("there is no knowledge base to link to")
        self._linkers = [
            Linker.open(kb, model=model, coherence=coherence, device=device, all_surfaces=all_surfaces)
            for kb in kbs
        ]
        self.generators = [one.generator for one in self._linkers]
        self._referring = References([*kbs])

    def __call__(self, documents: Iterable[Document]) -> Iterator[LinkedDocument]:
        """Yield each document with the links to all knowledge bases; they may overlap.

        All documents are read before the first is linked.
        """
        asked = [*documents]
        for linked in zip(*[[*one(asked)] for one in self._linkers], strict=True):
            every = [link for one in linked for link in one.links]
            yield self._referring(msgspec.structs.replace(linked[0], links=every))
