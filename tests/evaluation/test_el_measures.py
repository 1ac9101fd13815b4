"""What is computed of counts for `kgkit evaluate el`: measures and comparisons."""

import pytest

from kgkit.evaluation import Labelled
from kgkit.evaluation.el_files import plain_title
from kgkit.evaluation.matching import MEASURES, RATIOS, DocumentCounts, compare_counts, measures

GOLD = [Labelled(0, 2, "A"), Labelled(3, 5, "B"), Labelled(6, 8, None)]
ALL = [Labelled(0, 2, "A"), Labelled(3, 5, "B"), Labelled(6, 8, None)]
HALF = [Labelled(0, 2, "A"), Labelled(3, 4, "B"), Labelled(6, 8, "C")]


def counts(*systems):
    """Return counts of documents, each linked as it is said."""
    result = DocumentCounts()
    for links in systems:
        result.add(GOLD, links, plain_title)
    return result


def test_a_perfect_system_has_every_ratio_at_1_and_an_interval_up_to_it():
    expected = (pytest.approx(0.05 ** (1 / 3)), 1)  # of three documents that are all perfect
    for scopes in measures(counts(ALL, ALL, ALL)).values():
        for score in scopes.values():
            assert all(score[name] == 1 and score["intervals"][name] == expected for name in RATIOS)


def test_measures_are_those_of_the_counts():
    found = measures(counts(HALF, HALF))
    shares = {
        (matching, scope): tuple(found[matching][scope][name] for name in ("precision", "recall"))
        for matching, scope in MEASURES
    }
    assert shares == {
        ("strong", "inkb"): (pytest.approx(1 / 3), pytest.approx(1 / 2)),
        ("strong", "nil"): (pytest.approx(1 / 3), pytest.approx(1 / 3)),
        ("weak", "inkb"): (pytest.approx(2 / 3), 1),
        ("weak", "nil"): (pytest.approx(2 / 3), pytest.approx(2 / 3)),
    }


def test_a_comparison_has_both_scores_their_difference_and_p():
    compared = compare_counts(counts(*[HALF] * 8), counts(*[ALL] * 8))
    for matching, scope in MEASURES:
        score = compared[matching][scope]["f1"]
        assert score.score == 1 and score.versus < 1
        assert score.difference == pytest.approx(1 - score.versus)
        unseen = 1 - 0.05 ** (1 / 8)  # of eight documents with one difference
        ends = [score.difference + unseen * (bound - score.difference) for bound in (-1, 1)]
        assert score.interval == pytest.approx(ends)
        assert score.p == pytest.approx(2 / 2**8)
