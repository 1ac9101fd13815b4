"""Whether scores are probabilities: the temperature that makes them so, and how far they are from it.

Guo et al. (2017), "On Calibration of Modern Neural Networks": p = softmax(s / T), T by the likelihood of what
was held out (their 4.2); the expected calibration error is the gap between confidence and accuracy in bins of
equal width, weighted by how much is in each (their 2).

    C  candidates of a mention    B  bins
"""

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scored = Sequence[tuple[NDArray[np.float32], NDArray[np.bool_]]]
"""For each mention the scores (C,) of its candidates, and which of them are right."""

log = logging.getLogger(__name__)

_BINS: Final = 15
_FEWEST: Final = 100  # mentions
_TRIED, _ROUNDS = 13, 4  # temperatures in a round; 3 digits after the last


class Reliability(NamedTuple):
    """Confidence and accuracy in bins of equal width.

    Attributes:
        confidence, accuracy: (B,) float64, means of a bin; nan where it is empty.
        counts: (B,) int64.
    """

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error, in [0, 1]."""
        filled = self.counts > 0
        gaps = np.abs(self.confidence[filled] - self.accuracy[filled]) * self.counts[filled]
        return float(gaps.sum() / max(1, self.counts.sum()))


def best_temperature(scored: Scored, usual: float = 1.0) -> float:
    """Return the temperature, from 0.001 to 1,000, under which the right candidates are likeliest.

    Mentions none of whose candidates is right say nothing and are left out. *usual* is returned where nothing
    can be learnt: of fewer than 100 mentions, and where the likeliest temperature has no end, as that of a
    model that is right on all of them, and would be sure of everything, or of one whose scores tell nothing.
    Of none at all nothing is logged: who has held none out says why.
    """
    if not scored:
        return usual
    labelled = [(scores, right) for scores, right in scored if right.any() and len(right) > 1]
    if len(labelled) < _FEWEST:
        log.warning(
            "%d held-out mentions are too few to calibrate scores with, %d are needed (of several "
            "candidates, one of them right): scores may be too high or too low", len(labelled), _FEWEST,
        )  # fmt: skip
        return usual
    low, high = np.log(1e-3), np.log(1e3)
    for number in range(_ROUNDS):
        # The surprise has one valley: it lies within a step of the best of these.
        tried = np.linspace(low, high, _TRIED)
        best = int(np.argmin([_surprise(labelled, float(np.exp(logarithm))) for logarithm in tried]))
        if number == 0 and best in (0, _TRIED - 1):
            what = "the scores tell nothing of" if best else "the best candidate is right for nearly all of"
            log.warning("scores cannot be calibrated: %s %d held-out mentions", what, len(labelled))
            return usual
        low, high = tried[max(0, best - 1)], tried[min(_TRIED - 1, best + 1)]
    return float(np.exp((low + high) / 2))


def reliability(scored: Scored, temperature: float, bins: int = _BINS) -> Reliability:
    """Return how sure the best candidates are, and how often they are right."""
    return binned(
        [float(_softmax(scores, temperature).max()) for scores, _ in scored if len(scores)],
        [bool(right[scores.argmax()]) for scores, right in scored if len(scores)],
        bins,
    )


def binned(confidence: Sequence[float], answers: Sequence[bool], bins: int = _BINS) -> Reliability:
    """Return how sure answers are, and how often they are right.

    Args:
        confidence: of each answer, in [0, 1].
        answers: whether each is right.
        bins: B, of equal width.
    """
    sure, right = np.array(confidence, np.float64), np.array(answers, np.bool_)
    bin_of = np.minimum((sure * bins).astype(np.int64), bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(
            np.bincount(bin_of, sure, bins) / counts, np.bincount(bin_of, right, bins) / counts, counts
        )


def calibration_error(scored: Scored, temperature: float) -> float:
    """Return the expected calibration error of the best candidates, in [0, 1]."""
    return reliability(scored, temperature).error


def _surprise(scored: Scored, temperature: float) -> float:
    likelihoods = [_softmax(scores, temperature)[right].sum() for scores, right in scored]
    return float(-np.log(np.maximum(likelihoods, 1e-12)).mean())


def _softmax(scores: NDArray[np.floating], temperature: float) -> NDArray[np.float64]:
    weights = np.exp((scores.astype(np.float64) - scores.max()) / temperature)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares
