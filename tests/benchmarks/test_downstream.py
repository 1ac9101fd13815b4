"""WiC in folds: pairs that have sentences in common, which change sides together in the paired test."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from benchmarks.downstream import joined, summed
from kgkit.evaluation.examples import Example


def test_pairs_that_are_linked_by_sentences_are_summed():
    pairs = [("a", "b"), ("c", "d"), ("b", "e"), ("f", "e"), ("g", "h")]
    groups = joined([Example(str(number), pair) for number, pair in enumerate(pairs)])
    assert groups.tolist() == [0, 1, 0, 0, 2]
    counts = np.arange(2 * 5 * 3).reshape(2, 5, 3)
    sums = summed(counts, groups)
    assert sums.shape == (2, 3, 3)
    np.testing.assert_array_equal(sums[:, 0], counts[:, [0, 2, 3]].sum(1))
    np.testing.assert_array_equal(sums[:, 1:], counts[:, [1, 4]])
