"""How much each term of a score counts: a conditional logistic regression over candidates.

McFadden (1974), "Conditional Logit Analysis of Qualitative Choice Behavior": p(e | m) = softmax(x(e) · w)
over the candidates of a mention, with the w under which the right ones are likeliest. Here each weight is
drawn to where it starts,

    w = argmin − Σ log p(right | m) + ½ Σ κᵢ (wᵢ − startᵢ)²        w ≥ 0

so that little data change it little, and no term ever speaks against what it was made to speak for. With more
than one right candidate, their probabilities are added.

Whether a meaning was seen elsewhere tells something of text as it comes: what is frequent is seen, and right.
Of sentences that were gathered so that each meaning has one or two, it tells the contrary, since the meaning
of the one that is left out is then the one that was not seen. So that this does not make the other weights
wrong, δ may fall below 0 while it is learnt; it counts as 0 then.

A mention may count more than another: for a rare meaning, say.

M  mentions    C  candidates of one    R  candidates of all together    F  terms
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.linking.ridge import START, YIELDING_START, Matrix

FIRM: Final = (10.0, 1.0, 1.0, 1.0, 10.0)
"""κ of α, β, γ, δ, ε: 1 / κ is the variance that each has before any data."""

_DELTA: Final = 3  # the place of δ
_ROUNDS: Final = 100
_ENOUGH: Final = 1e-7  # of the loss, what a step must gain for another one

Numbers = NDArray[np.float64]


def fit_weights(
    examples: Sequence[tuple[Matrix, NDArray[np.bool_]]],
    counts: Sequence[float] | None = None,
    *,
    yielding: bool = False,
) -> Matrix:
    """Return α, β, γ, δ, (4,) float32; with a prior that yields ε too, (5,).

    Args:
        examples: terms (C, F) of each mention's candidates, as if its document had not been seen, and
            which of them are right.
        counts: how much each mention counts; None: 1.
        yielding: whether there is an ε.
    """
    start = np.array(YIELDING_START if yielding else START)
    firm = np.array(FIRM)[: len(start)]
    weighted = zip(examples, [1.0] * len(examples) if counts is None else counts, strict=True)
    choices = [(terms, right, count) for (terms, right), count in weighted if right.any() and not right.all()]
    free = np.arange(len(start))
    weights = start.copy()
    if choices:
        terms = np.concatenate([terms for terms, _, _ in choices]).astype(np.float64)  # (R, F)
        right = np.concatenate([right for _, right, _ in choices])
        begins = np.cumsum([0, *(len(right) for _, right, _ in choices)])[:-1]
        each = np.array([count for _, _, count in choices], np.float64)  # (M,)
        while True:
            some = _Likelihood(terms[:, free], right, begins, each, start[free], firm[free]).minimum()
            below = np.where(free == _DELTA, 0, some)
            if below.min(initial=0) >= 0:
                break
            free = np.delete(free, below.argmin())
        weights[:] = 0
        weights[free] = np.maximum(some, 0)
    return weights.astype(np.float32)


class _Likelihood(NamedTuple):
    """The loss of weights, and what it is made of.

    Attributes:
        terms: (R, F).
        right: (R,) which candidates are right.
        begins: (M,) where the candidates of each mention begin.
        counts: (M,) how much each mention counts.
        start, firm: (F,).
    """

    terms: Numbers
    right: NDArray[np.bool_]
    begins: NDArray[np.int64]
    counts: Numbers
    start: Numbers
    firm: Numbers

    def at(self, weights: Numbers) -> tuple[float, Numbers, Numbers]:
        """Return the loss, p of each candidate, (R,), and p of each right one among the right ones."""
        scores = self.terms @ weights
        sizes = np.diff([*self.begins, len(scores)])
        scores = scores - np.repeat(np.maximum.reduceat(scores, self.begins), sizes)
        each = np.exp(np.maximum(scores, -500))
        every, rights = (np.add.reduceat(values, self.begins) for values in (each, each * self.right))
        penalty = 0.5 * (self.firm * (weights - self.start) ** 2).sum()
        loss = self.counts @ np.log(every / rights) + penalty
        return float(loss), each / np.repeat(every, sizes), each * self.right / np.repeat(rights, sizes)

    def minimum(self) -> Numbers:
        """Return w, (F,), by Newton's steps, each halved until it gains."""
        terms, begins = self.terms, self.begins
        weights = self.start.copy()
        of_each = np.repeat(self.counts, np.diff([*begins, len(terms)]))  # (R,)
        loss, likely, rightly = self.at(weights)
        for _ in range(_ROUNDS):
            slope = terms.T @ (of_each * (likely - rightly)) + self.firm * (weights - self.start)
            means = np.add.reduceat(likely[:, None] * terms, begins)  # (M, F)
            bend = (terms * (of_each * likely)[:, None]).T @ terms + np.diag(self.firm)
            bend -= (means * self.counts[:, None]).T @ means
            step, before = np.linalg.solve(bend, slope), loss
            while True:
                tried = weights - step
                loss, *probable = self.at(tried)
                if loss <= before or np.abs(step).max() < 1e-9:
                    break
                step = step / 2
            if loss <= before:
                weights, (likely, rightly) = tried, probable
            if before - loss < _ENOUGH * max(1.0, before):
                break
        return weights
