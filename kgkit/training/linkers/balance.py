"""How much a mention counts while a linker learns: the rarer its meaning among those of its name, the more.

A mention counts p^-balance, p being the share of its right meaning: with a balance of 0 each mention counts
alike, with 1 each meaning of a name, however often the data have it.

B  sentences    M  mentions    C  candidates of one    F  features
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.linking.prior_features import FEATURES, OF_PRIORS
from kgkit.types import Matrix

if TYPE_CHECKING:
    from torch import Tensor

    from kgkit.heads.entity_linker import LinkerInputs

LEAST_SHARE: Final = 0.01
"""Lower shares are raised to this one, so that no single mention decides."""


def balanced_counts(gold_shares: NDArray[np.float64], balance: float) -> list[float]:
    """Return how much each mention counts in the loss, (M,), 1 on average: more if its meaning is rare.

    Args:
        gold_shares: (M,) share of the right meanings among those of the name, raised to `LEAST_SHARE`.
        balance: exponent: see `LinkerData`.
    """
    counts = np.maximum(gold_shares, LEAST_SHARE) ** -balance
    return (counts / counts.mean()).tolist() if len(counts) else []


class MentionCounts:
    """How much each mention of a batch counts, by the share of its right meaning among those of its name.

    Args:
        scale: (2, F) mean and deviation of the features.
        balance: exponent: see `LinkerData`.
    """

    def __init__(self, scale: Matrix, balance: float) -> None:
        column = (FEATURES if scale.shape[1] > len(OF_PRIORS) else OF_PRIORS).index("share")
        self.column, self.balance = column, balance
        self.mean, self.deviation = map(float, scale[:, column])

    def __call__(self, inputs: "LinkerInputs", gold: "Tensor", counted: "Tensor") -> "Tensor":
        """Return (B, M), 1 on average over mentions that are *counted* (B, M), and 0 for the others."""
        if not self.balance:
            return counted.float()
        shares = inputs.features[..., self.column] * self.deviation + self.mean  # (B, M, C)
        gold_shares = (shares * gold).sum(-1).clamp(min=LEAST_SHARE)  # (B, M)
        counts = gold_shares**-self.balance * counted
        return counts * (counted.sum() / counts.sum().clamp(min=LEAST_SHARE))
