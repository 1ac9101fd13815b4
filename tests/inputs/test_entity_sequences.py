"""Mixed lists of word pieces and entities: their arrays, and batches beside a twin of single cells."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.inputs.entity_sequences import ENTITY, EntitySequence, build_sequence, collate_sequences
from kgkit.inputs.entity_vectors import StoredEntityVectors

ROWS = np.array([[1, 2], [3, 4], [0, 0], [5, 6]], np.float32)
"""Vectors of four entities, of which the third has none."""


class Rows:
    """Vectors of a knowledge base, as far as a head reads them; counts what is read."""

    def __init__(self, rows: np.ndarray = ROWS) -> None:
        self.rows, self.width, self.read = rows, rows.shape[1], list[int]()

    def gather(self, ids: np.ndarray) -> np.ndarray:
        self.read += ids.tolist()
        return self.rows[ids]


def stored(rows: Any = ROWS) -> StoredEntityVectors:
    """Return the vectors of entities, one a row."""
    of_a_kb: Any = Rows(np.asarray(rows, np.float32))
    return StoredEntityVectors(of_a_kb)


# -- one sequence -----------------------------------------------------------


def test_a_word_piece_is_its_id_and_an_entity_a_tuple_of_its_own():
    sequence = build_sequence([101, (7,), 1013, (8, 9), 102])
    assert sequence.ids.tolist() == [101, ENTITY, 1013, ENTITY, 102]
    assert sequence.entities == ((7,), (8, 9))
    assert len(sequence) == 5


def test_without_more_said_all_is_of_the_first_segment_and_stands_in_no_text():
    sequence = build_sequence([1, (2,), 3])
    assert sequence.types.tolist() == [0, 0, 0]
    assert sequence.starts.tolist() == sequence.ends.tolist() == [-1, -1, -1]
    assert sequence.words.tolist() == []


def test_the_words_are_pieces_that_stand_in_a_text_and_no_entities():
    sequence = build_sequence(
        [1, (2,), 3, 4, 5], offsets=[(-1, -1), (0, 4), (0, 2), (2, 4), (-1, -1)], types=[0, 0, 0, 0, 1]
    )
    assert sequence.words.tolist() == [2, 3]
    assert sequence.starts.tolist() == [-1, 0, 0, 2, -1] and sequence.ends.tolist() == [-1, 4, 2, 4, -1]
    assert sequence.types.tolist() == [0, 0, 0, 0, 1]


def test_a_sequence_of_nothing_is_one():
    sequence = build_sequence([])
    assert len(sequence) == 0 and sequence.entities == () and sequence.words.tolist() == []
    assert all(column.dtype == np.int64 for column in (sequence.ids, sequence.types, sequence.starts))


def test_numbers_of_numpy_are_taken_and_entities_are_plain_numbers():
    sequence = build_sequence([3, (np.int64(4),)], types=np.array([0, 1]))
    assert sequence.ids.tolist() == [3, ENTITY] and type(sequence.entities[0][0]) is int


# -- batches ----------------------------------------------------------------

pieces = st.lists(
    st.integers(1, 9) | st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6
)


def collated_by_cell(sequences: list[EntitySequence], padding: int) -> dict[str, list[list[Any]]]:
    """Return what `collate_sequences` makes, cell by cell, with the vector in the place of its row."""
    longest = max(len(sequence) for sequence in sequences)
    table: dict[str, list[list[Any]]] = {"ids": [], "real": [], "types": [], "vectors": []}
    for sequence in sequences:
        entities = iter(sequence.entities)
        line: dict[str, list[Any]] = {name: [] for name in table}
        for position in range(longest):
            real = position < len(sequence)
            entity = real and sequence.ids[position] == ENTITY
            line["ids"].append(int(sequence.ids[position]) if real and not entity else padding)
            line["real"].append(real)
            line["types"].append(int(sequence.types[position]) if real else 0)
            group = next(entities) if entity else ()
            rows = [ROWS[one] for one in group if ROWS[one].any()]
            mean = np.mean(rows, axis=0).tolist() if rows else [0.0, 0.0]
            line["vectors"].append(mean if entity else None)
        for name, cells in line.items():
            table[name].append(cells)
    return table


@given(st.lists(pieces, min_size=1, max_size=4), st.integers(0, 5))
def test_a_batch_is_what_its_cells_are(lists, padding):
    pytest.importorskip("torch")
    sequences = [build_sequence(own, types=[number % 2 for number in range(len(own))]) for own in lists]
    batch = collate_sequences(sequences, stored(), padding=padding)
    expected = collated_by_cell(sequences, padding)
    assert batch.ids.tolist() == expected["ids"] and batch.real.tolist() == expected["real"]
    assert batch.types is not None and batch.types.tolist() == expected["types"]
    for rows, cells in zip(batch.rows.tolist(), expected["vectors"], strict=True):
        for row, cell in zip(rows, cells, strict=True):
            assert (row == -1) == (cell is None)
            if cell is not None:
                assert batch.vectors[row].tolist() == pytest.approx(cell)


@given(st.lists(pieces, min_size=1, max_size=4))
def test_each_group_of_entities_has_one_vector_however_often_it_comes(lists):
    pytest.importorskip("torch")
    sequences = [build_sequence(own) for own in lists]
    groups = dict.fromkeys(group for sequence in sequences for group in sequence.entities)
    batch = collate_sequences(sequences, stored())
    assert len(batch.vectors) == len(groups)
    assert {row for rows in batch.rows.tolist() for row in rows} - {-1} == {*range(len(groups))}


def test_an_encoder_without_segments_gets_none():
    pytest.importorskip("torch")
    sequences = [build_sequence([1, 2], types=[0, 1])]
    assert collate_sequences(sequences, None, typed=False).types is None
    typed = collate_sequences(sequences, None).types
    assert typed is not None and typed.tolist() == [[0, 1]]


def test_without_entities_no_vector_is_read():
    pytest.importorskip("torch")
    vectors = stored()
    batch = collate_sequences([build_sequence([1, 2]), build_sequence([3])], vectors)
    assert batch.vectors.shape[0] == 0 and batch.rows.tolist() == [[-1, -1], [-1, -1]]
    assert batch.ids.tolist() == [[1, 2], [3, 0]] and vectors.vectors.read == []
