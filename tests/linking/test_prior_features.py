"""The features of candidates: ranks of those that are level."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.linking.prior_features import candidate_features, prior_features


def test_shared_ranks_are_the_mean_of_those_of_level_candidates():
    priors = np.array([0.4, 0.1, 0.4, 0.1, 0.7, 0.2], np.float32)
    features = prior_features(priors, np.array([4, 0, 2]))
    assert features[:, 2] == pytest.approx([3 / 4, 7 / 24, 3 / 4, 7 / 24, 1, 1 / 2])
    assert features[:, 3].tolist() == [0.5, 0, 0.5, 0, 1, 0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.randoms())
def test_shared_ranks_say_nothing_of_the_order_of_level_candidates(counts, random):
    """The order of a knowledge base may have been counted on the document that is learnt from."""
    order = random.sample(range(len(counts)), len(counts))
    likeness, sizes = np.zeros(len(counts), np.float32), np.array([len(counts)])
    weights = np.array(counts, np.float32)
    for function in (
        lambda values: candidate_features(values, likeness, sizes),
        lambda values: prior_features(values + 1, sizes),
    ):
        features = function(weights)
        np.testing.assert_allclose(function(weights[order]), features[order], rtol=1e-6)
        assert features[:, -1 if features.shape[1] == 4 else 4].sum() == pytest.approx(1)


def test_no_candidates_have_no_features():
    assert prior_features(np.empty(0, np.float32), np.array([0, 0])).shape == (0, 4)
