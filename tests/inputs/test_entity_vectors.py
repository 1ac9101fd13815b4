"""Vectors of entities as heads read them: means beside a slow twin, and stretched ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kgkit.errors import DamagedVectors
from kgkit.inputs.entity_vectors import (
    RescaledEntityVectors,
    StoredEntityVectors,
    choose_entity_vectors,
)

ROWS = np.array([[3, 4], [0, 0], [-1, 2], [0, 5], [6, -8]], np.float32)
NONE = 1
"""The entity without a vector."""


class Rows:
    """Vectors of a knowledge base, as far as a head reads them: rows, and keys that survive new builds."""

    name = "names/text"

    def __init__(self, rows: Any = ROWS, keys: Any = None) -> None:
        self.rows = np.asarray(rows, np.float32)
        self.width = self.rows.shape[1]
        self.keys = np.arange(len(self.rows), dtype=np.uint64) + 100 if keys is None else np.asarray(keys)
        self.read = list[list[int]]()

    def gather(self, ids: np.ndarray) -> np.ndarray:
        self.read.append(ids.tolist())
        return self.rows[ids]


groups = st.lists(st.lists(st.integers(0, len(ROWS) - 1), min_size=1, max_size=4).map(tuple), max_size=6)


def means_one_by_one(rows: np.ndarray, wanted: list[tuple[int, ...]]) -> list[list[float]]:
    """Return the mean of the vectors that the entities of each group have; zeros where none has one."""
    means = []
    for group in wanted:
        vectors = [rows[entity].astype(np.float64) for entity in group if rows[entity].any()]
        means.append((sum(vectors) / len(vectors) if vectors else np.zeros(rows.shape[1])).tolist())
    return means


@given(groups)
def test_a_mean_is_that_of_the_vectors_there_are(wanted):
    means = StoredEntityVectors(Rows()).means(wanted)
    assert means.shape == (len(wanted), 2) and means.dtype == np.float32
    assert means.tolist() == [pytest.approx(mean, abs=1e-6) for mean in means_one_by_one(ROWS, wanted)]


@given(groups)
def test_each_entity_is_read_once_for_all_means(wanted):
    rows = Rows()
    StoredEntityVectors(rows).means(wanted)
    [read] = rows.read
    assert sorted(read) == sorted({entity for group in wanted for entity in group})


def test_the_mean_of_one_entity_is_its_vector_to_the_bit():
    rows = Rows(np.random.default_rng(0).standard_normal((5, 2)))
    means = StoredEntityVectors(rows).means([(4,), (0,), (2,)])
    assert np.array_equal(means, rows.rows[[4, 0, 2]])


def test_an_entity_that_a_group_names_twice_counts_twice():
    [mean] = StoredEntityVectors(Rows()).means([(0, 0, 3)])
    assert mean.tolist() == pytest.approx([2, 13 / 3])


def test_zeros_are_no_vector():
    vectors = StoredEntityVectors(Rows())
    assert vectors.exist([0, NONE, 2]).tolist() == [True, False, True]
    assert vectors.exist([]).tolist() == [] and vectors.exist(np.array([NONE])).tolist() == [False]
    assert vectors.means([(NONE,), (NONE, NONE)]).tolist() == [[0, 0], [0, 0]]
    assert vectors.width == 2


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "choice",
    [{}, {"norm": 7.0}],
    ids=["stored", "rescaled"],
)
def test_a_vector_that_is_not_finite_is_named_and_no_other_is_refused(choice, number):
    rows = Rows(ROWS.copy())
    rows.rows[4, 1] = number
    vectors = choose_entity_vectors(rows, np.eye(2, dtype=np.float32), **choice)
    for call in (
        lambda: vectors.exist([0, 4]),
        lambda: vectors.gather(np.array([4, 0])),
        lambda: vectors.means([(0, 4), (2,)]),
    ):
        with pytest.raises(
            DamagedVectors,
            match=r"vectors names/text have numbers that are not finite .* id 4 \(.*\): make",
        ):
            call()
    assert vectors.exist([0, 2]).all() and np.isfinite(vectors.means([(0, 2), (3,)])).all()


# -- stretched --------------------------------------------------------------

weights = arrays(np.float32, (3, 2), elements=st.floats(-2, 2, width=32)).filter(
    lambda weight: np.linalg.norm(ROWS @ weight.T, axis=1)[ROWS.any(axis=1)].min() > 0.01
)


@given(weights, st.floats(0.5, 9))
def test_stretched_vectors_are_mapped_to_one_length(weight, norm):
    vectors = RescaledEntityVectors(Rows(), weight, norm)
    lengths = np.linalg.norm(vectors.gather([*range(len(ROWS))]) @ weight.T, axis=1)
    assert lengths[NONE] == 0
    assert np.delete(lengths, NONE).tolist() == pytest.approx([norm] * 4, rel=1e-4)


def test_stretching_turns_no_vector():
    vectors = RescaledEntityVectors(Rows(), np.eye(2, dtype=np.float32), 7)
    rows = vectors.gather([0, 2, 3, 4])
    expected = 7 * ROWS[[0, 2, 3, 4]] / np.linalg.norm(ROWS[[0, 2, 3, 4]], axis=1, keepdims=True)
    assert np.allclose(rows, expected)
    assert vectors.means([(0, 4)])[0].tolist() == pytest.approx(((rows[0] + rows[3]) / 2).tolist())


def test_a_vector_that_is_mapped_to_nothing_is_none():
    weight = np.array([[0, 1]], np.float32)
    vectors = RescaledEntityVectors(Rows([[1, 0], [0, 1]]), weight, 20)
    assert np.allclose(vectors.gather([0, 1]), [[0, 0], [0, 20]])


def test_a_mean_leaves_out_an_entity_without_a_vector_however_far_others_are_stretched():
    vectors = RescaledEntityVectors(Rows(), np.eye(2, dtype=np.float32), 50)
    assert np.allclose(vectors.means([(NONE, 3), (NONE,)]), [[0, 50], [0, 0]])
