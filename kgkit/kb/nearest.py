"""The entities whose vectors are near."""

from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kgkit.errors import UsageError
from kgkit.kb.lineage import ancestry
from kgkit.types import Entity, Ids, Neighbour

if TYPE_CHECKING:
    from kgkit.kb.handle import KnowledgeBase
    from kgkit.vectors import Vectors

_RARE: Final = 16  # more than one vector of so many, and still too few of the kind: only those are compared


class Near:
    """The vectors that a handle has opened, and the ids that it has counted out."""

    def __init__(self) -> None:
        self._vectors: dict[str | None, Vectors] = {}
        self._kinds: dict[str, Ids] = {}

    def clear(self) -> None:
        """Let go of all of them."""
        self._vectors.clear()

    def vectors(self, kb: "KnowledgeBase", name: str | None) -> "Vectors":
        """Open vectors of *kb*, as `KnowledgeBase.vectors` promises."""
        if name not in self._vectors:
            from kgkit.vectors import open_vectors  # here: readers of the KB alone do without it

            other, _, last = (name or "").rpartition("/")
            if other.partition("@")[0] not in ("", kb.name):
                raise UsageError(f"{name} are vectors of another knowledge base than {kb.name!r}")
            self._vectors[name] = open_vectors(
                kb.home, None if name is None else last, ancestry(kb), kb.store.retired
            )
        return self._vectors[name]

    def nearest(
        self, kb: "KnowledgeBase", query: Any, k: int, name: str | None, kind: str | None
    ) -> list[Neighbour]:
        """Return the entities nearest to *query*, as `KnowledgeBase.nearest` promises."""
        vectors, itself = self.vectors(kb, name), -1
        if isinstance(query, str | Entity | Integral) or np.ndim(query) == 0:
            itself = kb.id(query)
            row = vectors.gather(itself)
            if not row.any():
                return []
        else:
            row = np.asarray(query, np.float32)
            if row.shape != (vectors.width,):
                raise UsageError(
                    f"{vectors.name} holds vectors of width {vectors.width}, the query has shape {row.shape}"
                )
        proposals, most = k + (itself >= 0), vectors.manifest.covered
        while most:
            proposals = min(proposals, most)
            rare = kind is not None and proposals * _RARE > most
            scores, ids = vectors.nearest(
                row, proposals, among=self._of_kind(kb, kind) if rare and kind else None
            )
            neighbours = [
                Neighbour(entity, score)
                for number, score in zip(ids[0].tolist(), scores[0].tolist(), strict=True)
                if number not in (-1, itself) and (entity := kb[number]).kind == (kind or entity.kind)
            ]
            if len(neighbours) >= k or proposals >= most or rare:
                return neighbours[:k]
            proposals *= 4  # the others were of another kind
        return []

    def _of_kind(self, kb: "KnowledgeBase", kind: str) -> Ids:
        """Return the ids of the entities of *kind*, found once by reading them all."""
        if kind not in self._kinds:
            self._kinds[kind] = np.fromiter((entity.id for entity in kb.entities(kind)), np.int64)
        return self._kinds[kind]
