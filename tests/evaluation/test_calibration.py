"""Temperature and calibration error: against the definition, and against what was planted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.evaluation.calibration import best_temperature, calibration_error, reliability


def planted(temperature, count=4000, seed=0):
    """Return mentions of which the right candidate was drawn with p = softmax(s / T)."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        scores = rng.standard_normal(rng.integers(2, 6)).astype(np.float32)
        p = np.exp(scores / temperature)
        right = np.zeros(len(scores), np.bool_)
        right[rng.choice(len(scores), p=p / p.sum())] = True
        found.append((scores, right))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.2, 0.4, 1.0, 3.0])
def test_a_planted_temperature_is_found_and_calibrates(temperature):
    scored = planted(temperature)
    found = best_temperature(scored)
    assert found == pytest.approx(temperature, rel=0.15)
    assert calibration_error(scored, found) < 0.03
    assert calibration_error(scored, temperature / 8) > 0.05


def test_where_little_is_told_the_temperature_is_the_usual_one(caplog):
    nothing = [(np.array([1.0, 2.0], np.float32), np.array([False, False]))] * 200
    alone = [(np.array([1.0], np.float32), np.array([True]))] * 200
    for scored in ([], nothing, alone, planted(0.2, 99)):
        assert best_temperature(scored, 0.5) == 0.5
    assert (
        "99 held-out mentions are too few to calibrate scores with, 100 are needed (of several candidates"
        in caplog.text
    )
    assert best_temperature(planted(0.2, 1000), 0.5) == pytest.approx(0.2, rel=0.4)
    assert calibration_error([], 1.0) == 0.0


@pytest.mark.parametrize(
    ("right", "told"),
    [(True, "the best candidate is right for nearly all of 200"), (False, "the scores tell nothing of 200")],
)
def test_where_the_likeliest_temperature_has_no_end_it_is_the_usual_one(right, told, caplog):
    scored = [(np.array([2.0, 1.0], np.float32), np.array([right, not right])) for _ in range(200)]
    assert best_temperature(scored, 0.5) == 0.5
    assert f"scores cannot be calibrated: {told} held-out mentions" in caplog.text


@given(st.integers(0, 10_000), st.integers(1, 20))
def test_the_error_is_that_of_the_definition(seed, bins):
    scored = planted(1.0, 60, seed)
    shares = [np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum() for scores, _ in scored]
    total = 0.0
    for low in range(bins):
        inside = [
            place for place, share in enumerate(shares) if min(int(share.max() * bins), bins - 1) == low
        ]
        if inside:
            sure = sum(float(shares[place].max()) for place in inside) / len(inside)
            right = sum(bool(scored[place][1][scored[place][0].argmax()]) for place in inside) / len(inside)
            total += abs(sure - right) * len(inside) / len(scored)
    assert reliability(scored, 1.0, bins).error == pytest.approx(total, abs=1e-6)
