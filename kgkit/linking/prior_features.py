"""The features of a candidate that a head receives beside vectors: how often training had it, and its rank.

R  candidates of all mentions together    M  mentions
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kgkit.types import LEAST_PRIOR, Matrix

FEATURES: Final = (
    "count",  # log(1 + n), n being the mentions of this meaning in training
    "share",  # (n + ½) / Σ (n + ½) over the mention's candidates
    "log share",
    "place",  # 1 / its rank among the candidates; those that are level have the mean of theirs
    "most",  # 1 for the candidate that was seen most often; several share it
    "seen",  # 1 if it was seen at all
    "like seen",  # q·c(e), 0 if it was not
)
"""The letters are those of `kgkit.linking.ridge`."""

OF_PRIORS: Final = ("share", "log share", "place", "most")
"""Those that a prior can stand for: the features of a head that knows nothing of single entities."""


def candidate_features(counts: Matrix, likeness: Matrix, sizes: NDArray[np.int64]) -> Matrix:
    """Return (R, 7), the features of candidates.

    Args:
        counts: (R,) n.
        likeness: (R,) q·c(e); any number where n is 0.
        sizes: (M,) candidates of each mention, R together.
    """
    positive = counts > 0
    share, log_share, place, most = _of_shares(counts + 0.5, sizes)
    columns = (np.log1p(counts), share, log_share, place, most, positive, likeness * positive)
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


def prior_features(priors: Matrix, sizes: NDArray[np.int64]) -> Matrix:
    """Return (R, 4), the features `OF_PRIORS`, by priors (R,), or by anything in proportion to them."""
    return np.stack(_of_shares(np.maximum(priors, LEAST_PRIOR), sizes), axis=1).astype(np.float32)


def _of_shares(weights: Matrix, sizes: NDArray[np.int64]) -> "tuple[NDArray[np.floating], ...]":
    """Return shares of weights (R,), their logarithms, 1 / rank, and which is the most of its mention."""
    mention = np.repeat(np.arange(len(sizes)), sizes)  # (R,)
    begins = np.cumsum(sizes) - sizes
    listed = np.arange(len(weights)) - begins[mention]
    share = weights / np.bincount(mention, weights, len(sizes))[mention]
    most = np.zeros(len(weights), np.float32)
    order = np.lexsort((listed, -weights, mention))
    most[order[begins[sizes > 0]]] = 1
    places = 1 / (1 + listed)
    is_next = np.diff(weights[order], prepend=np.nan) != 0  # a group has candidates that are level
    is_next[begins[sizes > 0]] = True
    group = np.cumsum(is_next) - 1  # (R,), in order
    level = np.bincount(group)
    places[order] = (np.bincount(group, places) / level)[group]
    most[order] = (np.bincount(group, most[order]) / level)[group]
    return share, np.log(share), places, most
