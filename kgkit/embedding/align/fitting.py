"""Fitting a linear map between two spaces, and measuring it.

A   anchors: rows that belong together
S   numbers of a source row
T   numbers of a target row
V   rows of the target
Q   queries
B   rows of the target that are compared at once
"""

import logging
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.embedding.align.anchors import Anchors
from kgkit.errors import UsageError
from kgkit.types import Matrix, Progress
from kgkit.vectors.scan import unit

Wide = NDArray[np.float64]

_BLOCK = 4096  # anchors, or rows of the target, that are taken at once
_LARGEST = 1e18  # its square is a number in float32
_RESOLUTION = float(np.finfo(np.float32).eps)
_ENOUGH = 10  # anchors for each number of a vector, beyond which more of them would not raise the rank
_WILD = 1.5  # an error on held-out anchors beyond which a map is said to fit noise
_HELD_OUT = 0.1  # of the anchors, for the check
_NEIGHBOURS = (1, 5, 10)  # k of Acc@k
_MOST_CHECKED = 10_000  # anchors of each part whose neighbours are looked for

_log = logging.getLogger(__name__)


class Norms(msgspec.Struct, frozen=True, kw_only=True):
    """How long some rows are.

    Attributes:
        mean: mean of their Euclidean norms.
        deviation: standard deviation of these.
    """

    mean: float
    deviation: float


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """How well a map does on some anchors.

    Attributes:
        anchors: number of anchors.
        accuracy: mapping of k to the share whose own target is among the k nearest to what they are mapped
            to, by cosine, of all rows of the target.
        error: ‖W F − E‖ / ‖E‖ (Frobenius): 0 is perfect, 1 is what a map to nothing has.
        norms: norms of what they are mapped to; None in a report of an older kgkit.
    """

    anchors: int
    accuracy: dict[int, float]
    error: float
    norms: Norms | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was found when a map was fitted.

    Attributes:
        anchors: all of them: what the map is fitted on.
        rank: rank of the source rows of the anchors; below their width, the map is the smallest of many.
        candidates: rows of the target that can be a neighbour.
        train: check of a map fitted on the anchors that are not held out, on these.
        held_out: check of the same map on the others; None if none is held out.
        target: norms of the target rows of the anchors.
        entities: norms of the vectors of entities once they are mapped.
        labels: check of the map that is kept on entities whose label is a word of the target, against its
            piece; None where labels were not looked at, or are none.
    """

    anchors: int
    rank: int
    candidates: int
    train: Check
    held_out: Check | None
    target: Norms | None = None
    entities: Norms | None = None
    labels: Check | None = None


def fit_map(
    source: Matrix,
    target: Matrix,
    anchors: Anchors,
    *,
    rescale: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Matrix, Report]:
    """Fit W (T, S), checked on a tenth of the anchors that was held out, then on all of them.

    Args:
        source: (·, S) float32.
        target: (V, T) float32.
        anchors: pairs of rows that belong together; those with a row of zeros are left out.
        rescale: whether all that is mapped gets the mean norm of the target's anchors.
        seed: seed of the choice of those held out.
        progress: callback with the number of steps that are done, of how many.

    Raises:
        UsageError: if there is no anchor.
    """
    anchors = without_zeros(source, target, anchors)
    count = len(anchors.source)
    if not count:
        raise UsageError("the two spaces share nothing: name anchors in a file of pairs (`--pairs`)")
    train, held_out = split(anchors, seed)
    tell = progress or (lambda stage, step, total: None)
    tell("fitting", 0, 4)
    weight, rank = solve(source, target, train)
    target_norms = norms_of(target, anchors.target)
    norm = target_norms.mean if rescale else None
    tell("fitting", 1, 4)
    on_train = check(weight, source, target, train, norm)
    tell("fitting", 2, 4)
    on_held_out = check(weight, source, target, held_out, norm) if len(held_out.source) else None
    tell("fitting", 3, 4)
    if len(held_out.source):
        weight, rank = solve(source, target, anchors)
    tell("fitting", 4, 4)
    candidates = int(sum(block.any(axis=1).sum() for block in _blocks(target)))
    report = Report(
        anchors=count, rank=rank, candidates=candidates, train=on_train, held_out=on_held_out,
        target=target_norms,
    )  # fmt: skip
    _warn(report, source.shape[1])
    return weight, report


def _warn(report: Report, width: int) -> None:
    """Warn of a map that its anchors do not decide or that fits their noise.

    Vectors of a text encoder may lie in fewer dimensions than they have numbers: then more anchors decide no
    more, and nothing is wrong.
    """
    if report.rank < width and report.anchors < _ENOUGH * width:
        _log.warning(
            "%s anchors of rank %s cannot decide a map of vectors of width %s: it is the smallest of many",
            f"{report.anchors:,}", report.rank, width,
        )  # fmt: skip
    elif report.held_out is not None and report.held_out.error > _WILD:
        _log.warning(
            "few anchors for vectors of width %s: on those held out it errs by %.1f, no map at all by 1",
            width, report.held_out.error,
        )  # fmt: skip


def split(anchors: Anchors, seed: int) -> tuple[Anchors, Anchors]:
    """Return the anchors to fit on, at least one, and the tenth that is held out, drawn by *seed*."""
    count = len(anchors.source)
    many = min(round(count * _HELD_OUT), count - 1)
    order = np.random.default_rng(seed).permutation(count)
    parts = np.sort(order[many:]), np.sort(order[:many])
    first, second = [Anchors(anchors.source[part], anchors.target[part]) for part in parts]
    return first, second


def solve(source: Matrix, target: Matrix, anchors: Anchors) -> tuple[Matrix, int]:
    """Return W (T, S) of least squares and the rank of the source rows.

    [F | E] is reduced to its triangle R block by block, in float64, so that no
    more than a block of anchors is in memory; F's part of R has the singular
    values of F, and least squares with it are those with F. Forming FᵀF instead
    would square its condition. Of several solutions it is the smallest.

    Directions in which the rows are smaller than float32 resolves beside the largest are left out: encoders
    have numbers that are the same for all texts but for rounding, and W would fit that to the target.

    Raises:
        UsageError: if a number is not finite, or its square is none in float32.
    """
    width = source.shape[1]
    triangle: Wide = np.zeros((0, width + target.shape[1]))
    for begin in range(0, len(anchors.source), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        both = np.hstack([source[anchors.source[rows]], target[anchors.target[rows]]]).astype(np.float64)
        if not (np.abs(both) < _LARGEST).all():
            raise UsageError(
                "vectors have numbers that are not finite, or too large to be squared: make them anew "
                "(`kgkit embed`, or the encoder)"
            )
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, both]), mode="r"))
    factor, right = triangle[:width, :width], triangle[:width, width:]
    solution, _, rank, _ = np.linalg.lstsq(factor, right, rcond=_RESOLUTION)
    return np.ascontiguousarray(solution.T, np.float32), int(rank)


def map_rows(weight: Matrix, rows: Matrix, norm: float | None = None) -> Matrix:
    """Return W v for each v in *rows*, (…, S) -> (…, T), at the norm *norm* if given; zeros stay zeros."""
    mapped: Matrix = np.asarray(rows, np.float32) @ weight.T
    if norm is None:
        return mapped
    return (unit(mapped.reshape(-1, len(weight))) * np.float32(norm)).reshape(mapped.shape)


def norms_of(
    rows: Matrix, chosen: NDArray[np.int64], weight: Matrix | None = None, norm: float | None = None
) -> Norms:
    """Measure the norms of the *chosen* rows, or of what a map makes of them; rows of zeros are left out."""
    lengths = []
    for begin in range(0, len(chosen), _BLOCK):
        block = np.asarray(rows[chosen[begin : begin + _BLOCK]], np.float32)
        block = block[block.any(axis=1)]
        mapped = block if weight is None else map_rows(weight, block, norm)
        lengths.append(np.linalg.norm(mapped, axis=1).astype(np.float64))
    every = np.concatenate(lengths) if lengths else np.zeros(0)
    if not len(every):
        return Norms(mean=0.0, deviation=0.0)
    return Norms(mean=float(every.mean()), deviation=float(every.std()))


def spread_evenly(count: int, most: int) -> NDArray[np.int64]:
    """Return *most* of the numbers below *count*, or all of them, at even distances."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)


def check(
    weight: Matrix,
    source: Matrix,
    target: Matrix,
    anchors: Anchors,
    norm: float | None = None,
) -> Check:
    """Measure W on *anchors*, or on 10,000 of them, spread evenly."""
    count = len(anchors.source)
    step = spread_evenly(count, _MOST_CHECKED)
    ranks, wrong, total = [], 0.0, 0.0
    for begin in range(0, len(step), _BLOCK):
        part = step[begin : begin + _BLOCK]
        mapped = map_rows(weight, source[anchors.source[part]], norm)
        gold = np.asarray(target[anchors.target[part]], np.float32)
        wrong += float(np.square(mapped - gold, dtype=np.float64).sum())
        total += float(np.square(gold, dtype=np.float64).sum())
        ranks.append(ranks_of(mapped, target, anchors.target[part]))
    rank = np.concatenate(ranks)
    accuracy = {k: float((rank <= k).mean()) for k in _NEIGHBOURS}
    norms = norms_of(source, anchors.source[step], weight, norm)
    return Check(anchors=count, accuracy=accuracy, error=float(np.sqrt(wrong / total)), norms=norms)


def ranks_of(mapped: Matrix, target: Matrix, gold: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (Q,) int64: as which neighbour of its query, by cosine, each gold row comes; 1 is the nearest.

    Args:
        mapped: (Q, T), the queries.
        target: (V, T); rows of zeros are nobody's neighbours.
        gold: (Q,) rows of *target*.
    """
    sought, own = unit(mapped), unit(np.asarray(target[gold], np.float32))
    mark = np.einsum("qt,qt->q", sought, own)
    rank = np.ones(len(gold), np.int64)
    for begin, block in zip(range(0, len(target), _BLOCK), _blocks(target), strict=True):
        scores = sought @ unit(block).T  # (Q, B)
        scores[:, ~block.any(axis=1)] = -np.inf
        here = gold - begin
        inside = (here >= 0) & (here < len(block))
        scores[np.flatnonzero(inside), here[inside]] = -np.inf  # not its own rival
        rank += (scores >= mark[:, None]).sum(axis=1)  # a tie is not won
    return rank


def without_zeros(source: Matrix, target: Matrix, anchors: Anchors) -> Anchors:
    """Return the anchors of which neither row is zeros, which stand for no vector."""
    is_real = np.ones(len(anchors.source), bool)
    for begin in range(0, len(is_real), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        is_real[part] = source[anchors.source[part]].any(axis=1) & target[anchors.target[part]].any(axis=1)
    return Anchors(anchors.source[is_real], anchors.target[is_real])


def _blocks(rows: Matrix) -> Iterator[Matrix]:
    for begin in range(0, len(rows), _BLOCK):
        yield np.asarray(rows[begin : begin + _BLOCK], np.float32)
