import numpy as np
import pytest

from kgkit.vectors.scan import merge, rescore, scan, unit


def random_matrix(rows, width=8, seed=0):
    """Rows of lengths between 1 and 100, every tenth of them zeros."""
    drawn = np.random.default_rng(seed)
    matrix = drawn.standard_normal((rows, width)).astype(np.float32)
    matrix *= drawn.uniform(1, 100, (rows, 1)).astype(np.float32)
    matrix[9::10] = 0
    return matrix


def one_by_one(matrix, queries, k):
    """The slow twin: every cosine in double precision, sorted."""
    scores, rows = np.full((len(queries), k), -np.inf), np.full((len(queries), k), -1)
    for place, query in enumerate(queries.astype(np.float64)):
        found = []
        for row, vector in enumerate(matrix.astype(np.float64)):
            if vector.any() and query.any():
                cosine = vector @ query / np.sqrt(vector @ vector) / np.sqrt(query @ query)
                found.append((-round(cosine, 9), row))
        for column, (score, row) in enumerate(sorted(found)[:k]):
            scores[place, column], rows[place, column] = -score, row
    return scores, rows


@pytest.mark.parametrize("queries", [1, 4])
@pytest.mark.parametrize("rows", [0, 1, 7, 100, 1500])
def test_a_scan_finds_what_comparing_one_by_one_finds(rows, queries):
    matrix, asked = random_matrix(rows), random_matrix(queries, seed=1)
    scores, found = scan(matrix, asked, 5)
    true_scores, true_rows = one_by_one(matrix, asked, 5)
    assert found.tolist() == true_rows.tolist()
    np.testing.assert_allclose(scores, true_scores, atol=1e-6)
    assert (scores.dtype, found.dtype) == (np.float32, np.int64)


def test_more_queries_than_are_compared_at_once_are_answered_in_order():
    matrix, asked = random_matrix(50), random_matrix(1100, seed=1)
    found = scan(matrix, asked, 3)
    for place in (0, 1023, 1024, 1098):
        assert found.rows[place].tolist() == scan(matrix, asked[place : place + 1], 3).rows[0].tolist()


def test_equal_rows_come_in_the_order_of_their_rows():
    vector = np.arange(1, 8, dtype=np.float32)
    matrix = np.concatenate([np.tile(vector, (300, 1)), np.tile(2 * vector, (300, 1))])
    scores, rows = scan(matrix[:300], vector[None], 6)
    assert rows[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert len(set(scores[0].tolist())) == 1
    several = scan(matrix[:300], np.tile(vector, (50, 1)), 6).rows
    assert (several == np.arange(6)).all()
    np.testing.assert_allclose(scan(matrix, vector[None], 600).scores, 1, atol=1e-6)


def test_cosines_never_leave_their_range():
    matrix = random_matrix(500, width=3)
    scores, _ = scan(matrix, -matrix, 500)
    there = np.isfinite(scores)
    assert scores[there].min() >= -1
    assert scores[there].max() <= 1


def test_a_query_of_zeros_finds_nothing():
    found = scan(random_matrix(20), np.zeros((2, 8), np.float32), 3)
    assert (found.rows == -1).all()
    assert np.isneginf(found.scores).all()


@pytest.mark.parametrize("queries", [2, 3, 20, 33, 70])
def test_so_many_queries_at_once_are_answered_as_each_alone(queries):
    matrix, asked = random_matrix(5000), random_matrix(queries, seed=1)
    together = scan(matrix, asked, 4)
    for place in range(queries):
        alone = scan(matrix, asked[place : place + 1], 4)
        assert together.rows[place].tolist() == alone.rows[0].tolist()
        assert together.scores[place].tobytes() == alone.scores[0].tobytes()


def test_a_scan_may_begin_at_a_row():
    matrix = random_matrix(100)
    whole = scan(matrix, matrix[:3], 100)
    parts = merge(scan(matrix[:60], matrix[:3], 100), scan(matrix, matrix[:3], 100, begin=60))
    assert parts.rows.tolist() == whole.rows.tolist()
    assert parts.scores.tolist() == whole.scores.tolist()


def test_candidates_are_scored_as_a_scan_scores_them_bit_for_bit():
    matrix, asked = random_matrix(500), random_matrix(7, seed=1)
    whole = scan(matrix, asked, 10)
    shuffled = np.random.default_rng(2).permutation(whole.rows.T).T
    again = rescore(matrix, unit(asked), np.pad(shuffled, ((0, 0), (2, 3)), constant_values=-1), 10)
    assert again.rows.tolist() == whole.rows.tolist()
    assert again.scores.tobytes() == whole.scores.tobytes()


def test_candidates_in_pieces_are_scored_as_at_once(monkeypatch):
    matrix, asked = random_matrix(300), random_matrix(5, seed=1)
    whole = scan(matrix, asked, 300)
    monkeypatch.setattr("kgkit.vectors.scan._GATHERED", 100)
    pieces = scan(matrix, asked, 300)
    assert pieces.rows.tolist() == whole.rows.tolist()
    assert pieces.scores.tobytes() == whole.scores.tobytes()


def test_a_mapped_matrix_is_searched_where_it_lies(tmp_path):
    matrix = random_matrix(300)
    np.save(tmp_path / "m.npy", matrix)
    mapped = np.load(tmp_path / "m.npy", mmap_mode="r")
    assert scan(mapped, matrix[:5], 4).rows.tolist() == scan(matrix, matrix[:5], 4).rows.tolist()
