"""Comparing queries with every row of a matrix, and the final scores of rows that something else proposed.

    Q  queries          R  rows of the matrix    D  width
    k  rows wanted      C  candidates a query

All kinds of index end in `rescore`, so the scores of two kinds are the same numbers. Rows and queries need
not be of length 1; a row of zeros is no vector and is never found; a query of zeros finds nothing.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from kgkit.types import Matrix, Numbers

_SCORES: Final = 1 << 21  # scores held at once while comparing: 8 MiB
_GATHERED: Final = 1 << 20  # numbers of candidates held at once while scoring: 4 MiB, a cache's worth
_QUERIES: Final = 1024
_LEAST_BLOCK, _MOST_BLOCK = 1024, 1 << 15  # rows
_COPIED: Final = 16_384  # rows that are copied at once
_SPARE: Final = 8  # a product of matrices rounds by position: rows within rounding of the last are kept too


class NearRows(NamedTuple):
    """Rows near each query, best first, the lower row first of equal ones.

    Attributes:
        scores: (Q, k) float32, cosines in [-1, 1]; -inf where there is no row.
        rows: (Q, k) int64; -1 where there is none.
    """

    scores: Matrix
    rows: Numbers


def scan(
    matrix: Matrix, queries: Matrix, k: int, *, begin: int = 0, lengths: Matrix | None = None
) -> NearRows:
    """Compare each query with every row from *begin* on.

    Args:
        matrix: (R, D) float32.
        queries: (Q, D) float32, of any length.
        k: number of rows for each query.
        begin: the first row.
        lengths: (R,), what `lengths_of` says of the matrix; saves a third of the time for a single query.
    """
    plain, sought = np.asarray(matrix), unit(queries)
    most = max(1, min(k, len(plain) - begin)) + _SPARE
    parts = [
        _scan(plain, sought[at : at + _QUERIES], most, begin, lengths)
        for at in range(0, len(sought), _QUERIES)
    ]
    rows = np.concatenate(parts) if parts else np.empty((0, k), np.int64)
    rows[~sought.any(axis=1)] = -1
    return rescore(plain, sought, rows, k)


def _scan(matrix: Matrix, sought: Matrix, k: int, begin: int, lengths: Matrix | None) -> Numbers:
    """Return (Q, k), the best rows, but for rounding in their order."""
    wide = len(sought)
    best = np.full((wide, k), -np.inf, np.float32)
    rows = np.full((wide, k), -1, np.int64)
    step = min(_MOST_BLOCK, max(_LEAST_BLOCK, _SCORES // wide))
    at, until = begin, begin + _LEAST_BLOCK  # a short block first: from then on there is something to beat
    while at < len(matrix):
        block = matrix[at:until]
        length = lengths_of(block) if lengths is None else lengths[at:until]
        scores = _products(sought, block)  # (Q, B)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores /= length
        scores[:, length == 0] = -np.inf
        # What is no better than the worst that is kept can be passed over at the cost of a comparison.
        which, where = np.nonzero(scores > best[:, -1:])
        if len(which):
            more, theirs = _spread(which, scores[which, where], where + at, wide)
            best, rows = np.concatenate([best, more], axis=1), np.concatenate([rows, theirs], axis=1)
            # Rows stand in order, so of equal ones a stable sort keeps the lower first.
            order = np.argsort(-best, axis=1, kind="stable")[:, :k]
            best, rows = np.take_along_axis(best, order, 1), np.take_along_axis(rows, order, 1)
        at, until = until, until + step
    return rows


def _products(sought: Matrix, block: Matrix) -> Matrix:
    """Return (Q, B), the products of each query with each row, by whichever way is fastest for so many."""
    if len(sought) <= 3:  # half the time of the matrix product, a third for one
        products: Matrix = np.einsum("qd,bd->qb", sought, block)
        return products
    if len(sought) <= 32:
        return np.ascontiguousarray((block @ sought.T).T)
    return sought @ block.T


def _spread(which: Numbers, values: Matrix, positions: Numbers, wide: int) -> tuple[Matrix, Numbers]:
    """Return what belongs to each of *wide* queries as rows of two tables; *which* is sorted."""
    counts = np.bincount(which, minlength=wide)
    column = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    scores = np.full((wide, counts.max()), -np.inf, np.float32)
    rows = np.full(scores.shape, -1, np.int64)
    scores[which, column], rows[which, column] = values, positions
    return scores, rows


def rescore(matrix: Matrix, sought: Matrix, rows: Numbers, k: int) -> NearRows:
    """Return the k best of each query's candidates, with their scores.

    Args:
        matrix: (R, D) float32.
        sought: (Q, D), of length 1.
        rows: (Q, C) candidates, -1 where there is none, as for a query of zeros.
    """
    plain, (wide, many) = np.asarray(matrix), rows.shape
    step = max(1, _GATHERED // max(1, many * plain.shape[1]))
    if wide <= step and many >= k and len(plain):
        return _score(plain, sought, rows, k)
    result = NearRows(np.full((wide, k), -np.inf, np.float32), np.full((wide, k), -1, np.int64))
    for at in range(0, wide if many and len(plain) else 0, step):
        best = _score(plain, sought[at : at + step], rows[at : at + step], k)
        result.scores[at : at + step, :many] = best.scores
        result.rows[at : at + step, :many] = best.rows
    return result


def _score(plain: Matrix, sought: Matrix, rows: Numbers, k: int) -> NearRows:
    """Do the work of `rescore` for as many queries as fit into memory; there may be fewer than k columns."""
    wide, many = rows.shape
    step = max(1, _GATHERED // max(1, wide * plain.shape[1]))
    if many <= step:
        scores, length = _compare(plain, sought, rows)
    else:
        parts = [_compare(plain, sought, rows[:, at : at + step]) for at in range(0, many, step)]
        scores, length = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    some = rows.min(initial=0) < 0 or not length.all()
    if some:
        nothing = (rows < 0) | (length == 0)
        length[nothing] = 1
    scores /= length
    np.minimum(np.maximum(scores, -1, out=scores), 1, out=scores)
    if some:
        scores[nothing] = -np.inf
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    if wide == 1:  # half the time of what serves many
        result = NearRows(scores[:, order[0]], rows[:, order[0]])
    else:
        result = NearRows(np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1))
    if some:
        result.rows[np.isneginf(result.scores)] = -1
    return result


def _compare(plain: Matrix, sought: Matrix, rows: Numbers) -> tuple[Matrix, Matrix]:
    """Return (Q, C) the products of queries and candidates, and the candidates' lengths."""
    near = plain.take(rows, axis=0, mode="clip")  # (Q, C, D); -1 is read as row 0, then put out
    # vecdot adds each row up in the same order wherever it stands: equal rows have equal scores.
    products: Matrix = np.vecdot(near, sought[:, None])
    return products, np.sqrt(np.vecdot(near, near))


def merge(first: NearRows, second: NearRows) -> NearRows:
    """Return the best of two results of one search over different rows."""
    k = first.rows.shape[1]
    scores = np.concatenate([first.scores, second.scores], axis=1)
    rows = np.concatenate([first.rows, second.rows], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    each = np.arange(len(rows))[:, None]
    return NearRows(scores[each, order], rows[each, order])


def lengths_of(rows: Matrix) -> Matrix:
    """Return the Euclidean length of each of *rows* (R, D)."""
    plain = np.asarray(rows)
    lengths: Matrix = np.sqrt(np.vecdot(plain, plain))
    return lengths


def unit(rows: Matrix) -> Matrix:
    """Return *rows* (R, D) at length 1; zeros stay zeros."""
    length = lengths_of(rows)[:, None]
    units: Matrix = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return units


def unit_blocks(matrix: Matrix, rows: Numbers) -> Iterator[tuple[int, Matrix]]:
    """Yield the *rows* of a matrix at length 1, block by block, and how many have been yielded."""
    plain = np.asarray(matrix)
    for at in range(0, len(rows), _COPIED):
        block = unit(plain.take(rows[at : at + _COPIED], axis=0))
        yield at + len(block), block
