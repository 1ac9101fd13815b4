"""Which grouping of vectors tells most about where they lie."""

import numpy as np
import pytest

from kgkit.vectors.grouping import nearest_rows, shared_bits


def clouds(number, size=60, seed=0):
    """Return *size* vectors around each of *number* directions, in turn."""
    drawn = np.random.default_rng(seed)
    centres = np.eye(number, 24)[np.arange(number * size) % number]
    return (centres + 0.02 * drawn.standard_normal((number * size, 24))).astype(np.float32)


def test_the_nearest_row_is_another_one_whatever_the_lengths():
    vectors = np.array([[1, 0], [50, 1], [0, 1], [0, 9]], np.float32)
    assert nearest_rows(vectors).tolist() == [1, 0, 3, 2]
    assert nearest_rows(vectors[:1]).tolist() == [0]


def test_nearest_rows_agree_with_all_cosines_over_several_blocks(monkeypatch):
    monkeypatch.setattr("kgkit.vectors.grouping._BLOCK", 7)
    vectors = np.random.default_rng(1).standard_normal((50, 5)).astype(np.float32)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -2)
    assert nearest_rows(vectors).tolist() == cosines.argmax(axis=1).tolist()


def test_groups_that_vectors_follow_share_the_bits_of_the_group():
    nearest = nearest_rows(clouds(4))
    groups = [str(row % 4) for row in range(240)]
    assert shared_bits(groups, nearest) == pytest.approx(2, abs=0.05)  # log2 of 4 groups
    halves = [str(row % 2) for row in range(240)]
    assert shared_bits(halves, nearest) == pytest.approx(1, abs=0.05)


def test_groups_by_chance_share_hardly_anything_however_many_there_are():
    nearest = nearest_rows(clouds(4))
    drawn = np.random.default_rng(2)
    for number in (2, 10, 40):
        groups = [f"{word}" for word in drawn.integers(0, number, 240)]
        assert shared_bits(groups, nearest) < 0.2, number


def test_vectors_without_a_group_tell_nothing():
    nearest = nearest_rows(clouds(4))
    groups = [str(row % 4) for row in range(240)]
    half = [group if row < 120 else "" for row, group in enumerate(groups)]
    assert 0 < shared_bits(half, nearest) < shared_bits(groups, nearest) / 1.5
    assert shared_bits([""] * 240, nearest) == 0
    assert shared_bits([], np.zeros(0, np.int64)) == 0


def test_one_group_for_all_tells_nothing():
    assert shared_bits(["noun"] * 240, nearest_rows(clouds(4))) == 0
