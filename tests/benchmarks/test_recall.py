"""The score of recalled facts, counted by hand."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.recall import RecallScore, score_recall
from kgkit.errors import UsageError


def test_every_hidden_piece_counts_however_many_its_instance_has():
    found = score_recall([("P36", [1, 2, 4]), ("P19", [1]), ("P36", np.array([2, 2]))])
    capital = 1 + 1 / 2 + 1 / 4 + 1 / 2 + 1 / 2
    assert found == RecallScore(
        mrr=pytest.approx((capital + 1) / 6),
        relations={"P19": (1.0, 1), "P36": (pytest.approx(capital / 5), 2)},
        instances=3,
        pieces=6,
    )
    assert list(found.relations) == ["P19", "P36"]
    assert score_recall([]) == RecallScore(0, {}, 0, 0)


@pytest.mark.parametrize(("ranks", "told"), [([], "no ranks"), ([3, 0], "the rank 0")])
def test_ranks_that_are_none_are_told(ranks, told):
    with pytest.raises(UsageError, match=f"instance 2, of 'P19', has {told}"):
        score_recall([("P19", [1]), ("P19", ranks)])
