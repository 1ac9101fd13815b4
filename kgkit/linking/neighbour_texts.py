"""Vectors of an entity's text joined with those of its neighbours' texts, relation by relation.

    g(e) ⊕ g₁(e) ⊕ … ⊕ g_K(e)        g_k(e): the mean over the neighbours of e by relation k that have a text;
                                     0 without any

Read so, what learns of texts has a part of its own for the text of the entity and for those of each relation,
and weighs them. Of a linear map that is multiplied with a mention, as `ridge` and `head` have one, the part
of `hypernym` is what a hypernym hands down of its own score: the structured logits of EWISER (Bevilacqua and
Navigli 2020), with a weight for each number of a vector in the place of one for each edge.

D  width of a text's vector    K  relations
"""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from kgkit.bounded_cache import BoundedCache
from kgkit.errors import UnknownName
from kgkit.types import Matrix
from kgkit.vectors.layout import VectorRows, VectorsManifest
from kgkit.vectors.matrix import check_ids
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

_MOST: Final = 64
"""Neighbours by one relation whose texts are read, the first ones: some entities have thousands."""

_CACHE_BYTES: Final = 32_000_000
"""Of the neighbours that are remembered, until all are forgotten."""


class NeighbourTexts(VectorRows):
    """Rows of texts with those of neighbours behind them.

    Args:
        kb: knowledge base of the entities.
        vectors: vectors of the entities' texts.
        relations: names of the relations that lead to neighbours.

    Raises:
        UnknownName: if *kb* has no such relation.

    Attributes:
        manifest: description of the vectors of texts alone.
        own_width: D.

    Examples:
        >>> NeighbourTexts(kb, kb.vectors("text"), ["hypernym", "hyponym"]).width
        1152
    """

    def __init__(self, kb: "KnowledgeBase", vectors: VectorRows, relations: Sequence[str]) -> None:
        self.kb, self.vectors, self.relations = kb, vectors, tuple(relations)
        self.manifest: VectorsManifest = vectors.manifest
        self.own_width = vectors.width
        self._neighbours = BoundedCache[tuple[int, str], list[int]](_CACHE_BYTES)
        for relation in self.relations:
            if relation not in kb.relations:
                raise UnknownName(f"relation in {kb.name!r}", relation, kb.relations)

    def __len__(self) -> int:
        return self.manifest.rows

    @property
    def name(self) -> str:
        """`KB/NAME`."""
        return self.vectors.name

    @property
    def width(self) -> int:
        """Numbers in a row, (1 + K) · D."""
        return self.own_width * (1 + len(self.relations))

    def gather(self, ids: ArrayLike) -> Matrix:
        """Return the rows of *ids*, of any shape (…): (…, (1 + K) · D) float32, zeros without a text."""
        numbers = check_ids(ids)
        entities, index = np.unique(numbers.ravel(), return_inverse=True)
        rows = np.zeros((len(entities), self.width), np.float32)
        rows[:, : self.own_width] = unit(self.vectors.gather(entities))
        for number, relation in enumerate(self.relations, 1):
            neighbours = [self._neighbours_of(int(entity), relation) for entity in entities]
            sizes = np.array([*map(len, neighbours)], np.int64)
            if not sizes.any():
                continue
            texts = unit(self.vectors.gather([*chain.from_iterable(neighbours)]))
            begins = (np.cumsum(sizes) - sizes)[sizes > 0]
            columns = slice(number * self.own_width, (number + 1) * self.own_width)
            counts = np.add.reduceat(texts.any(axis=1), begins, dtype=np.int64)  # of those that have a text
            rows[sizes > 0, columns] = np.add.reduceat(texts, begins) / np.maximum(counts, 1)[:, None]
        joined: Matrix = rows[index].reshape(*numbers.shape, self.width)
        return joined

    def prepare(self, ids: ArrayLike) -> None:
        """Make the rows of *ids*, and of their neighbours, that are made as they are needed."""
        entities = np.unique(check_ids(ids)).tolist()
        neighbours = [
            self._neighbours_of(entity, relation) for relation in self.relations for entity in entities
        ]
        self.vectors.prepare(np.unique(np.array([*entities, *chain.from_iterable(neighbours)], np.int64)))

    def _neighbours_of(self, entity: int, relation: str) -> list[int]:
        """Return the ids of the neighbours by one relation: `_MOST` at most, none of a retired entity."""
        ids = self._neighbours.get((entity, relation))
        if ids is None:
            ids = []
            if entity in self.kb:  # a retired entity has no facts
                ids = self.kb.neighbors(entity, relation)[:_MOST].tolist()
            self._neighbours.keep((entity, relation), ids)
        return ids


def own_texts(texts: Matrix, vectors: VectorRows) -> Matrix:
    """Return the part of rows (…, (1 + K) · D) that is of the entities' own texts, (…, D)."""
    return texts[..., : own_width(vectors)]


def own_width(vectors: VectorRows) -> int:
    """Return D, the width of an entity's own text among what stands in a row."""
    width: int = getattr(vectors, "own_width", vectors.width)
    return width


def with_neighbours(kb: "KnowledgeBase", vectors: VectorRows, relations: Sequence[str]) -> VectorRows:
    """Return vectors of texts with those of neighbours behind them; *vectors* if no relations are named."""
    return NeighbourTexts(kb, vectors, relations) if relations else vectors
