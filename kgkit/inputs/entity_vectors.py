"""Vectors of entities as a head reads them, from where they are mapped into memory.

R  entities    U  groups of entities    S  numbers of a stored vector    E  numbers of an input embedding
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgkit.types import Matrix
from kgkit.vectors.layout import require_finite

if TYPE_CHECKING:
    from kgkit.vectors import Vectors

_LEAST = 1e-30  # length below which a mapped vector points nowhere, and is read as none

EntityIds = NDArray[np.integer[Any]] | Sequence[int]


def _as_array(ids: EntityIds) -> NDArray[Any]:
    """Return ids as an array, whatever they are; without any, NumPy would make one of floats."""
    return np.asarray(ids) if len(ids) else np.zeros(0, np.int64)


class StoredEntityVectors:
    """Vectors of entities as they are stored, which W maps among the word pieces.

    Args:
        vectors: vectors of one knowledge base, mapped into memory.

    Attributes:
        width: S.
    """

    def __init__(self, vectors: "Vectors") -> None:
        self.vectors, self.width = vectors, vectors.width

    def exist(self, ids: EntityIds) -> NDArray[np.bool_]:
        """Return (R,) bool, whether entities have a vector: zeros are none.

        Raises:
            UsageError: if an id is negative or no integer, as a key is.
            DamagedVectors: if a vector is not finite.
        """
        return np.asarray(self._stored(ids).any(axis=1))

    def gather(self, ids: EntityIds) -> Matrix:
        """Return the vectors of entities, (R, S); zeros where one has none.

        Raises:
            UsageError, DamagedVectors: as `exist` does.
        """
        return self._stored(ids)

    def _stored(self, ids: EntityIds) -> Matrix:
        """Return the vectors as they are stored, (R, S): what a head makes of NaN looks like its own damage.

        Raises:
            UsageError, DamagedVectors: as `exist` does.
        """
        numbers = _as_array(ids)
        rows = self.vectors.gather(numbers)  # (R, S)
        require_finite(rows, numbers, self.vectors)
        return rows

    def means(self, groups: Sequence[tuple[int, ...]]) -> Matrix:
        """Return the mean vector of each group of entities, (U, S); of a group of one its vector.

        Each entity is read once. Those without a vector do not count; a group of none has zeros.
        """
        flat = np.array([entity for group in groups for entity in group], np.int64)
        if len(flat) == len(groups) == len({*groups}):
            return self.gather(flat)
        ids, inverse = np.unique(flat, return_inverse=True)
        rows = self.gather(ids)  # (R, S)
        real = np.asarray(rows.any(axis=1))
        sums = np.zeros((len(groups), self.width), np.float32)
        counts = np.zeros(len(groups), np.int64)
        owners = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        np.add.at(sums, owners, rows[inverse])
        np.add.at(counts, owners, real[inverse])
        means: Matrix = sums / np.maximum(counts, 1).astype(np.float32)[:, None]
        return means


class RescaledEntityVectors(StoredEntityVectors):
    """Vectors that W maps to one length, as `kgkit align --rescale` has them.

    Each is stretched so that W v has that length; means are then those of what is mapped.

    Args:
        vectors: vectors of one knowledge base, mapped into memory.
        weight: (E, S) float32, W.
        norm: length of W v.
    """

    def __init__(self, vectors: "Vectors", weight: Matrix, norm: float) -> None:
        super().__init__(vectors)
        self.weight, self.norm = weight, norm

    def gather(self, ids: EntityIds) -> Matrix:
        """Return the vectors of entities, (R, S), stretched; zeros where one has none."""
        rows = super().gather(ids)
        lengths = np.linalg.norm(rows @ self.weight.T, axis=1)
        factors = np.divide(self.norm, lengths, out=np.zeros_like(lengths), where=lengths > _LEAST)
        stretched: Matrix = rows * factors[:, None]
        return stretched


def choose_entity_vectors(vectors: "Vectors", weight: Matrix, norm: float = 0.0) -> StoredEntityVectors:
    """Return vectors of entities as a head reads them: rescaled, or as they are stored.

    Args:
        vectors: vectors of one knowledge base, mapped into memory.
        weight: (E, S) float32, W.
        norm: length of W v, where all mapped vectors have one; 0: they are not rescaled.
    """
    return RescaledEntityVectors(vectors, weight, norm) if norm else StoredEntityVectors(vectors)
