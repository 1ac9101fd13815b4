"""Is a difference more than chance: a paired test over examples (approximate randomisation, Noreen 1989)."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import permutation_test

DRAWS: Final = 10_000


def chance(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return how often a difference in F1 as large comes by chance.

    For each example it is drawn which of the two models gave which answers, 10,000 times; the answers of all
    seeds to an example change places together.

    Args:
        first, second: (S, N, 3), for S seeds and N examples how many of a model's answers are right, how many
            it gave, and how many there are to give. Where each is answered once, F1 is accuracy.
    """
    apart = (first.sum(0) != second.sum(0)).any(1)  # the others can change places unnoticed
    if not apart.any():
        return 1.0
    counts = np.concatenate([first.sum(0)[apart], second.sum(0)[apart]])  # (2 M, 3)
    same = first.sum(0)[~apart].sum(0)  # (3,)

    def difference(one: NDArray[np.int64], other: NDArray[np.int64], **_: object) -> NDArray[np.float64]:
        found = [_f1(counts[places].sum(-2) + same) for places in (one, other)]
        return found[1] - found[0]

    places = np.arange(len(counts)).reshape(2, -1)
    tested: Any = permutation_test(
        (places[0], places[1]), difference, permutation_type="samples", vectorized=True,
        n_resamples=DRAWS, batch=250, axis=-1, rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(tested.pvalue)


def counted(right: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return (S, N, 3), as `chance` wants it, for answers that are right or not, one to an example."""
    return np.stack([right, np.ones_like(right), np.ones_like(right)], -1).astype(np.int64)


def _f1(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    right, told, meant = np.moveaxis(counts, -1, 0)
    f1: NDArray[np.float64] = 2 * right / np.maximum(told + meant, 1)
    return f1
