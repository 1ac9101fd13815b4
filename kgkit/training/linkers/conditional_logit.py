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

Corrections of scores that are there already are learnt in the same way, without a bound:
score(e) = offset(e) + x(e) · w.

M  mentions    C  candidates of one    R  candidates of all together    F  terms
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.linking.ridge import START
from kgkit.types import Matrix

PRECISIONS: Final = (10.0, 1.0, 1.0, 1.0)
"""κ of α, β, γ, δ: 1 / κ is the variance that each has before any data."""

_DELTA: Final = 3  # the place of δ
_ROUNDS: Final = 100
_ENOUGH: Final = 1e-7  # of the loss, what a step must gain for another one

Values = NDArray[np.float64]


def fit_weights(
    examples: Sequence[tuple[Matrix, NDArray[np.bool_]]],
    counts: Sequence[float] | None = None,
) -> Matrix:
    """Return α, β, γ, δ, (4,) float32.

    Args:
        examples: terms (C, F) of each mention's candidates, as if its document had not been seen, and
            which of them are right.
        counts: how much each mention counts; None: 1.
    """
    start, precisions = np.array(START), np.array(PRECISIONS)
    weighted = zip(examples, [1.0] * len(examples) if counts is None else counts, strict=True)
    choices = [
        (terms, correct, count) for (terms, correct), count in weighted if correct.any() and not correct.all()
    ]
    free = np.arange(len(start))
    weights = start.copy()
    if choices:
        terms = np.concatenate([terms for terms, _, _ in choices]).astype(np.float64)  # (R, F)
        correct = np.concatenate([correct for _, correct, _ in choices])
        begins = np.cumsum([0, *(len(correct) for _, correct, _ in choices)])[:-1]
        mention_counts = np.array([count for _, _, count in choices], np.float64)  # (M,)
        while True:
            estimates = _Likelihood(
                terms[:, free], correct, begins, mention_counts, start[free], precisions[free],
                np.zeros(len(correct)),
            ).maximum()  # fmt: skip
            constrained_estimates = np.where(free == _DELTA, 0, estimates)
            if constrained_estimates.min(initial=0) >= 0:
                break
            free = np.delete(free, constrained_estimates.argmin())
        weights[:] = 0
        weights[free] = np.maximum(estimates, 0)
    return weights.astype(np.float32)


def fit_corrections(
    terms: Matrix,
    offsets: Matrix,
    correct: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    precisions: Sequence[float],
) -> Matrix:
    """Return w of scores offset + x · w, (F,) float32, drawn to 0.

    Args:
        terms: (R, F), x of each candidate.
        offsets: (R,).
        correct: (R,) which of them are right: one or more of each mention.
        sizes: (M,) candidates of each mention, 1 or more.
        precisions: (F,) κ of each weight.
    """
    width = terms.shape[1]
    likelihood = _Likelihood(
        terms.astype(np.float64), correct, np.cumsum(sizes) - sizes, np.ones(len(sizes)), np.zeros(width),
        np.array(precisions, np.float64), offsets.astype(np.float64),
    )  # fmt: skip
    return likelihood.maximum().astype(np.float32)


class _Likelihood(NamedTuple):
    """What the likelihood of weights depends on.

    Attributes:
        terms: (R, F).
        correct: (R,) which candidates are correct.
        begins: (M,) where the candidates of each mention begin.
        counts: (M,) how much each mention counts.
        start, precisions: (F,).
        offsets: (R,) what is added to each score.
    """

    terms: Values
    correct: NDArray[np.bool_]
    begins: NDArray[np.int64]
    counts: Values
    start: Values
    precisions: Values
    offsets: Values

    def loss(self, weights: Values) -> tuple[float, Values, Values]:
        """Return the loss, p of each candidate, (R,), and p of each correct one among these."""
        scores = self.terms @ weights + self.offsets
        sizes = np.diff([*self.begins, len(scores)])
        scores = scores - np.repeat(np.maximum.reduceat(scores, self.begins), sizes)
        values = np.exp(np.maximum(scores, -500))
        correct_values = values * self.correct
        sums, correct_sums = (np.add.reduceat(each, self.begins) for each in (values, correct_values))
        penalty = 0.5 * (self.precisions * (weights - self.start) ** 2).sum()
        loss = self.counts @ np.log(sums / correct_sums) + penalty
        return float(loss), values / np.repeat(sums, sizes), correct_values / np.repeat(correct_sums, sizes)

    def maximum(self) -> Values:
        """Return the likeliest weights, (F,), by Newton's steps, each halved until it gains."""
        terms, begins = self.terms, self.begins
        weights = self.start.copy()
        candidate_counts = np.repeat(self.counts, np.diff([*begins, len(terms)]))  # (R,)
        loss, p, p_correct = self.loss(weights)
        for _ in range(_ROUNDS):
            gradient = terms.T @ (candidate_counts * (p - p_correct))
            gradient += self.precisions * (weights - self.start)
            means = np.add.reduceat(p[:, None] * terms, begins)  # (M, F)
            hessian = (terms * (candidate_counts * p)[:, None]).T @ terms + np.diag(self.precisions)
            hessian -= (means * self.counts[:, None]).T @ means
            step, before = np.linalg.solve(hessian, gradient), loss
            while True:
                trial = weights - step
                loss, *trial_p = self.loss(trial)
                if loss <= before or np.abs(step).max() < 1e-9:
                    break
                step = step / 2
            if loss <= before:
                weights, (p, p_correct) = trial, trial_p
            if before - loss < _ENOUGH * max(1.0, before):
                break
        return weights
