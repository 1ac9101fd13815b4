"""Correlations and the area under the curve: beside their definitions, and beside SciPy and scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import UsageError
from kgkit.evaluation.correlation import auc, matthews, pearson, ranks, spearman

numbers = st.floats(-1e3, 1e3).map(lambda number: round(number, 3)) | st.integers(0, 3).map(float)
columns = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30)
shares = st.lists(st.tuples(st.booleans(), numbers), min_size=2, max_size=30).filter(
    lambda rows: len({right for right, _ in rows}) == 2
)


def defined_pearson(x, y):
    """The slow twin: covariance over both deviations."""
    a, b = sum(x) / len(x), sum(y) / len(y)
    spread = math.sqrt(sum((one - a) ** 2 for one in x) * sum((one - b) ** 2 for one in y))
    return sum((one - a) * (other - b) for one, other in zip(x, y, strict=True)) / spread


def defined_rank(x):
    return [sum(other < one for other in x) + (sum(other == one for other in x) + 1) / 2 for one in x]


@given(columns)
def test_correlations_are_what_their_definitions_say(rows):
    x, y = map(list, zip(*rows, strict=True))
    if len({*x}) == 1 or len({*y}) == 1:
        assert pearson(x, y) == spearman(x, y) == 0
        return
    assert pearson(x, y) == pytest.approx(defined_pearson(x, y), abs=1e-9)
    assert ranks(np.array(x)).tolist() == defined_rank(x)
    assert spearman(x, y) == pytest.approx(defined_pearson(defined_rank(x), defined_rank(y)), abs=1e-9)


def test_correlations_are_those_of_scipy():
    stats, random = pytest.importorskip("scipy.stats"), np.random.default_rng(0)
    for size in range(5, 60):
        x, y = random.integers(0, size, size) / 4, random.normal(size=size)
        expected = stats.pearsonr(x, y).statistic, stats.spearmanr(x, y).statistic
        assert (pearson(x, y), spearman(x, y)) == pytest.approx(expected, abs=1e-9)


def test_matthews_and_the_area_are_those_of_scikit_learn():
    metrics, random = pytest.importorskip("sklearn.metrics"), np.random.default_rng(0)
    for size in range(5, 60):
        gold, answers = ([*map(str, random.integers(0, 2 + size % 2, size))] for _ in range(2))
        assert matthews(gold, answers) == pytest.approx(metrics.matthews_corrcoef(gold, answers), abs=1e-9)
        positive, scores = random.random(size) < 0.5, random.integers(0, 9, size) / 9
        positive[:2] = True, False
        assert auc([*positive], scores) == pytest.approx(metrics.roc_auc_score(positive, scores))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_matthews_of_two_labels_is_what_its_definition_says(right, missed, wrong, other):
    gold = "1" * (right + missed) + "0" * (wrong + other)
    answers = "1" * right + "0" * missed + "1" * wrong + "0" * other
    spread = math.sqrt((right + wrong) * (right + missed) * (other + wrong) * (other + missed))
    expected = (right * other - wrong * missed) / spread if spread else 0
    assert matthews(gold, answers) == pytest.approx(expected)


@given(shares)
def test_the_area_is_the_share_of_pairs_in_the_right_order(rows):
    right = [number for positive, number in rows if positive]
    wrong = [number for positive, number in rows if not positive]
    pairs = [(one > other) + (one == other) / 2 for one in right for other in wrong]
    assert auc(*map(list, zip(*rows, strict=True))) == pytest.approx(sum(pairs) / len(pairs))


def test_columns_without_variance_have_no_correlation():
    assert pearson([1, 1, 1], [1, 2, 3]) == spearman([1, 2, 3], [2, 2, 2]) == pearson([], []) == 0
    assert matthews("aab", "aaa") == matthews("", "") == 0


def test_large_and_small_numbers_have_the_correlation_of_others():
    assert pearson([1e300, 2e300, 3e300], [1e-300, 2e-300, 4e-300]) == pytest.approx(
        pearson([1, 2, 3], [1, 2, 4])
    )


def test_columns_that_do_not_fit_are_errors():
    with pytest.raises(UsageError, match="expected two columns of as many numbers"):
        pearson([1, 2], [1])
    with pytest.raises(UsageError, match="a number is not finite"):
        spearman([1, 2], [1, math.nan])
    with pytest.raises(UsageError, match="2 labels and 1 answers"):
        matthews("ab", "a")
    with pytest.raises(UsageError, match="2 positive and 0 negative examples: expected some of both"):
        auc([True, True], [0.1, 0.2])
