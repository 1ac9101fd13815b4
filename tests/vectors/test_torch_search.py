"""Search by torch has the answers of comparing every row; torch computes on the processor here."""

import numpy as np
import pytest

import kgkit
from kgkit.vectors import torch_search
from kgkit.vectors.scan import rescore, scan, unit
from kgkit.vectors.torch_search import TorchSearch
from tests.vector_toys import built, made

torch = pytest.importorskip("torch")


def random_matrix(rows, width=8, seed=0):
    """Rows of lengths between 1 and 100, every tenth of them zeros."""
    drawn = np.random.default_rng(seed)
    matrix = drawn.standard_normal((rows, width)).astype(np.float32)
    matrix *= drawn.uniform(1, 100, (rows, 1)).astype(np.float32)
    matrix[9::10] = 0
    return matrix


def every_row(matrix, queries, k):
    """Score every row, as the last step of every search does, and sort."""
    rows = np.tile(np.arange(len(matrix)), (len(queries), 1))
    rows[~queries.any(axis=1)] = -1
    return rescore(matrix, unit(queries), rows, k)


def same(one, other):
    return np.array_equal(one.rows, other.rows) and np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize("scores_at_once", [1, 300, 1 << 26])
@pytest.mark.parametrize("rows", [0, 1, 7, 100, 1500])
def test_it_finds_what_a_scan_finds_however_many_scores_are_held_at_once(rows, scores_at_once, monkeypatch):
    monkeypatch.setattr(torch_search, "_SCORES", scores_at_once)
    matrix, asked = random_matrix(rows), random_matrix(20, seed=1)
    search = TorchSearch(matrix, "cpu")
    for k in (1, 5, 200):
        assert same(search.search(asked, k), scan(matrix, asked, k))


def test_more_queries_than_are_compared_at_once_are_answered_in_order():
    matrix, asked = random_matrix(200), random_matrix(1100, seed=1)
    assert same(TorchSearch(matrix, "cpu").search(asked, 3), every_row(matrix, asked, 3))
    assert TorchSearch(matrix, "cpu").search(asked[:0], 3).rows.shape == (0, 3)


@pytest.mark.parametrize("width", [1, 2, 7, 384])
@pytest.mark.parametrize("scores_at_once", [640, 1 << 26])
def test_of_many_equal_rows_the_first_are_found(width, scores_at_once, monkeypatch):
    monkeypatch.setattr(torch_search, "_SCORES", scores_at_once)
    drawn = np.random.default_rng(3)
    few = drawn.standard_normal((4, width)).astype(np.float32)
    matrix = few[drawn.integers(0, 4, 1000)]
    matrix[500:] *= 2  # of another length and equal but for rounding
    asked = drawn.standard_normal((64, width)).astype(np.float32)
    for k in (1, 10, 300):
        assert same(TorchSearch(matrix, "cpu").search(asked, k), every_row(matrix, asked, k))


def test_rows_that_differ_by_rounding_alone_are_told_apart():
    drawn = np.random.default_rng(4)
    matrix = np.tile(drawn.standard_normal(64), (2000, 1)) + 1e-6 * drawn.standard_normal((2000, 64))
    matrix = matrix.astype(np.float32)
    asked = matrix[::100] + drawn.standard_normal((20, 64)).astype(np.float32)
    assert same(TorchSearch(matrix, "cpu").search(asked, 10), every_row(matrix, asked, 10))


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_products_of_less_precision_give_the_same_answers(precision):
    matrix, asked = random_matrix(3000, width=64), random_matrix(64, width=64, seed=1)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            found = TorchSearch(matrix, "cpu").search(asked, 10)
    finally:
        torch.set_float32_matmul_precision(before)
    assert same(found, every_row(matrix, asked, 10))


def test_it_equals_the_exact_index_of_faiss():
    faiss = pytest.importorskip("faiss")
    matrix, asked = random_matrix(2000, width=32), random_matrix(80, width=32, seed=1)[:9]
    flat = faiss.IndexFlatIP(32)
    flat.add(unit(matrix))
    scores, rows = flat.search(unit(asked), 10)
    found = TorchSearch(matrix, "cpu").search(asked, 10)
    assert found.rows.tolist() == rows.tolist()
    np.testing.assert_allclose(found.scores, scores, atol=1e-6)


def test_vectors_are_searched_on_the_device_that_is_named(tmp_path):
    home, _ = built(tmp_path)
    made(home)
    with kgkit.open_kb("toy", home=home) as kb:
        vectors = kb.vectors("plane")
        asked = np.random.default_rng(0).standard_normal((100, 2)).astype(np.float32)
        expected = vectors.nearest(asked, 3)
        assert same_neighbours(vectors.nearest(asked, 3, device="cpu:0"), expected)
        vectors.hidden = np.array(sorted({int(expected.ids[0, 0])}), np.int64)
        assert same_neighbours(vectors.nearest(asked, 3, device="cpu:0"), vectors.nearest(asked, 3))


def same_neighbours(one, other):
    return np.array_equal(one.ids, other.ids) and np.array_equal(one.scores, other.scores)
