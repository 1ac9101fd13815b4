"""How much mentions count: a rare meaning as much as a frequent one, as far as the balance goes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kgkit.heads.entity_linker import LinkerInputs  # noqa: E402
from kgkit.linking.prior_features import FEATURES, OF_PRIORS  # noqa: E402
from kgkit.training.linkers.balance import LEAST_SHARE, MentionCounts, balanced_counts  # noqa: E402


def test_without_a_balance_each_mention_counts_alike():
    assert balanced_counts(np.array([0.9, 0.1, 0.001]), 0.0) == [1, 1, 1]
    assert balanced_counts(np.empty(0), 1.0) == []


def test_with_a_full_balance_each_meaning_of_a_name_counts_alike():
    shares = np.array([0.9] * 90 + [0.1] * 10)
    counts = np.array(balanced_counts(shares, 1.0))
    assert counts.mean() == pytest.approx(1)
    assert counts[:90].sum() == pytest.approx(counts[90:].sum())


def test_half_a_balance_is_between():
    frequent, rare = balanced_counts(np.array([0.8, 0.2]), 0.5)
    assert rare / frequent == pytest.approx(2)


def test_no_mention_counts_without_bounds():
    first, second = balanced_counts(np.array([LEAST_SHARE, 1e-9]), 1.0)
    assert first == second


def batch(names, shares, scale):
    """Return inputs of one sentence whose mentions have two candidates, with scaled features; and gold."""
    mentions = len(shares)
    features = torch.zeros(1, mentions, 2, len(names))
    column = names.index("share")
    raw = torch.tensor([[share, 1 - share] for share in shares])
    features[0, :, :, column] = (raw - scale[0, column]) / scale[1, column]
    inputs = LinkerInputs(
        hidden=torch.zeros(1, mentions, 1), spans=torch.zeros(1, mentions, 2, dtype=torch.int64),
        mentions=torch.ones(1, mentions, dtype=torch.bool), vectors=torch.zeros(1, mentions, 2, 1),
        features=features, candidates=torch.ones(1, mentions, 2, dtype=torch.bool),
    )  # fmt: skip
    gold = torch.zeros(1, mentions, 2, dtype=torch.bool)
    gold[..., 0] = True
    return inputs, gold


@pytest.mark.parametrize("names", [FEATURES, OF_PRIORS])
def test_a_batch_is_counted_by_the_share_of_what_is_right_in_it(names):
    scale = np.stack([np.full(len(names), 0.3), np.full(len(names), 0.2)]).astype(np.float32)
    inputs, gold = batch(names, [0.8, 0.2, 0.5], scale)
    counted = torch.tensor([[True, True, False]])
    counts = MentionCounts(scale, 1.0)(inputs, gold, counted)
    np.testing.assert_allclose(counts[0], [0.4, 1.6, 0], atol=1e-5)
    half = MentionCounts(scale, 0.5)(inputs, gold, counted)
    assert float(half[0, 1] / half[0, 0]) == pytest.approx(2, rel=1e-4)
    assert MentionCounts(scale, 0.0)(inputs, gold, counted).tolist() == [[1, 1, 0]]


def test_a_batch_without_gold_counts_nothing():
    scale = np.stack([np.zeros(4), np.ones(4)]).astype(np.float32)
    inputs, gold = batch(OF_PRIORS, [0.5], scale)
    counts = MentionCounts(scale, 1.0)(inputs, gold & False, torch.zeros(1, 1, dtype=torch.bool))
    assert counts.tolist() == [[0]]
