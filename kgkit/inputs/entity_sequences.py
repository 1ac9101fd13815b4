"""Sequences of word pieces and entities, as E-BERT reads them.

    B  sequences of a batch    T  pieces of one: word pieces and entities
    U  vectors of a batch      S  numbers of a stored entity vector

`build_sequence` makes a sequence of any mixed list: a word piece is its id, an entity a tuple of its id, and
the mean of several entities, as E-BERT-MLM's [E-MASK], a tuple of theirs. `collate_sequences` makes a batch:
the vectors of all its entities are taken from where they are mapped, each entity once.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kgkit.inputs.entity_vectors import StoredEntityVectors
from kgkit.types import Numbers

if TYPE_CHECKING:
    from kgkit.heads.ebert import EBertInputs

ENTITY: Final = -1
"""What stands among the ids of a sequence where an entity does."""

Piece = int | tuple[int, ...]
"""A word piece, by its id in the vocabulary; an entity, or the mean of several, by their ids in the KB."""


class EntitySequence(NamedTuple):
    """Word pieces and entities as they are read, one behind the other.

    Attributes:
        ids: (T,) int64, word pieces; `ENTITY` where an entity stands.
        entities: for each of these, from the first on, the ids of the entities whose mean it is.
        types: (T,) int64, segment of each.
        starts, ends: (T,) int64, the code points of each in its text, end exclusive; of an entity those of
            its mention; -1 for special pieces, slashes and markers.
    """

    ids: Numbers
    entities: tuple[tuple[int, ...], ...]
    types: Numbers
    starts: Numbers
    ends: Numbers

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def words(self) -> Numbers:
        """The positions of the word pieces that texts have."""
        return np.flatnonzero((self.ids != ENTITY) & (self.starts >= 0))


def build_sequence(
    pieces: Sequence[Piece],
    *,
    types: Sequence[int] | Numbers | None = None,
    offsets: Sequence[tuple[int, int]] | None = None,
) -> EntitySequence:
    """Return the sequence of a mixed list of word pieces and entities, special pieces included.

    Args:
        pieces: T of them.
        types: (T,) segments; None: all are of the first.
        offsets: T spans of code points; None: nothing stands in a text.

    Examples:
        >>> film = build_sequence([101, (7,), 1013, 9006, 102])       # [CLS] Jean_Marais / jean [SEP]
        >>> masked = build_sequence([101, (7, 8, 9), 1013, 9006, 102])  # [CLS] [E-MASK] / jean [SEP]
    """
    count = len(pieces)
    spans = (
        np.full((count, 2), -1, np.int64) if offsets is None else np.array(offsets, np.int64).reshape(-1, 2)
    )
    segments = np.zeros(count, np.int64) if types is None else np.array(types, np.int64)
    ids = [ENTITY if isinstance(piece, tuple) else piece for piece in pieces]
    entities = tuple(tuple(map(int, piece)) for piece in pieces if isinstance(piece, tuple))
    return EntitySequence(np.array(ids, np.int64), entities, segments, spans[:, 0], spans[:, 1])


def collate_sequences(
    sequences: Sequence[EntitySequence],
    vectors: StoredEntityVectors | None,
    *,
    padding: int = 0,
    typed: bool = True,
) -> "EBertInputs":
    """Return what `EBert` reads of sequences, padded to the longest.

    Args:
        sequences: B of them.
        vectors: vectors of their entities; None where they have none.
        padding: piece that stands behind shorter sequences.
        typed: whether the encoder has segments.
    """
    import torch

    from kgkit.heads.ebert import EBertInputs

    longest = max(map(len, sequences))
    ids = np.full((len(sequences), longest), padding, np.int64)
    types, rows = np.zeros_like(ids), np.full_like(ids, -1)
    real = np.zeros(ids.shape, np.bool_)
    numbers: dict[tuple[int, ...], int] = {}
    for index, sequence in enumerate(sequences):
        end = len(sequence)
        ids[index, :end] = np.where(sequence.ids == ENTITY, padding, sequence.ids)
        types[index, :end], real[index, :end] = sequence.types, True
        rows[index, :end][sequence.ids == ENTITY] = [
            numbers.setdefault(entities, len(numbers)) for entities in sequence.entities
        ]
    stored = np.zeros((0, 0), np.float32) if vectors is None else vectors.means([*numbers])
    ids_of, real_of, rows_of, vectors_of, types_of = map(torch.from_numpy, (ids, real, rows, stored, types))
    return EBertInputs(ids_of, real_of, rows_of, vectors_of, types_of if typed else None)
