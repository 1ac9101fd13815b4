"""The paired test of the benchmarks beside all swaps by hand; which texts of a test part are new."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("torch")

from benchmarks.chinese import documents
from benchmarks.injected import counts, new_examples
from benchmarks.significance import chance, chance_over_seeds, correct_counts, f1_of, seeds_cell, spread
from kgkit.evaluation.examples import Example


def by_hand(first, second):
    """All ways to swap the answers to examples, one after the other."""
    seeds, examples, _ = first.shape

    def apart(swapped):
        totals = np.zeros((2, seeds, 3), int)
        for place in range(examples):
            one, other = (first, second) if not swapped[place] else (second, first)
            totals[0] += one[:, place]
            totals[1] += other[:, place]
        return f1_of(totals[1]).mean() - f1_of(totals[0]).mean()

    every = [abs(apart(swapped)) for swapped in product((False, True), repeat=examples)]
    return np.mean(np.array(every) >= abs(apart((False,) * examples)) - 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_difference_is_as_likely_as_all_swaps_say(seed):
    drawn = np.random.default_rng(seed)
    meant = drawn.integers(0, 4, (1, 6, 1)).repeat(2, 0)
    models = []
    for _ in range(2):
        told = drawn.integers(0, 4, (2, 6, 1))
        right = np.minimum(drawn.integers(0, 4, (2, 6, 1)), np.minimum(told, meant))
        models.append(np.concatenate([right, told, meant], -1))
    models[1][:, 0] = models[0][:, 0]  # one that both answer alike
    assert chance(*models) == pytest.approx(by_hand(*models))


def test_where_nothing_differs_chance_is_certain_and_one_answer_is_no_evidence():
    right = np.array([[True, False, True]])
    assert chance(correct_counts(right), correct_counts(right)) == 1.0
    assert chance(correct_counts(right), correct_counts(~right[:, :1] | [[True, False, True]])) == 1.0


def test_a_difference_is_tested_over_seeds_too():
    first, second = np.array([83.62, 84.02, 84.64]), np.array([85.75, 85.55, 85.10])
    differences = second - first
    t = differences.mean() / (differences.std(ddof=1) / np.sqrt(3))
    by_hand = 1 - t / np.sqrt(2 + t**2)  # Student's distribution of two degrees of freedom, both sides
    assert chance_over_seeds(first, second) == pytest.approx(by_hand) == pytest.approx(0.1066, abs=1e-4)
    assert chance_over_seeds(second, first) == pytest.approx(by_hand)
    assert seeds_cell(first, second) == "0.1066 (n = 3)"


def test_one_seed_or_seeds_that_do_not_vary_say_nothing_of_others():
    first = np.array([70.0, 71.0, 72.5])
    assert chance_over_seeds(first[:1], first[:1] + 1) is None
    assert chance_over_seeds(first, first) is chance_over_seeds(first, first + 0.1) is None
    assert seeds_cell(first, first + 0.1) == ""


def test_equal_methods_are_told_apart_over_seeds_as_rarely_as_p_says():
    generator = np.random.default_rng(0)
    p = [chance_over_seeds(*generator.normal(80, 1, (2, 3))) for _ in range(1000)]
    assert 0.03 <= np.mean(np.array(p) <= 0.05) <= 0.07


def test_the_deviation_is_that_of_a_sample():
    assert spread(np.array([1.0, 2.0, 3.0])) == "2.00 ± 1.00"
    assert spread(np.array([1.0])) == "1.00"


def test_answers_are_counted_by_name_in_tagging_and_by_text_elsewhere():
    named = [
        Example("1", ("a b",), tokens=((0, 1), (2, 3)), gold=("B-X", "O")),
        Example("2", ("c",), tokens=((0, 1),), gold=("O",)),
    ]
    assert counts(named, {"1": "B-X B-X", "2": "O"}).tolist() == [[1, 2, 1], [0, 0, 0]]
    plain = [Example("1", ("a",), gold="0"), Example("2", ("b",), gold="1")]
    assert counts(plain, {"1": "0", "2": "0"}).tolist() == [[1, 1, 1], [0, 1, 1]]


def test_a_text_is_new_that_was_not_learnt_and_did_not_come_before():
    some = [Example(f"{place}", texts) for place, texts in enumerate([("a",), ("b",), ("b",), ("c", "d")])]
    assert new_examples(some, [Example("x", ("a",))]).tolist() == [False, True, False, True]
    assert new_examples(some, [Example("x", ("d", "e"))]).tolist() == [True, True, False, False]


def test_documents_leave_texts_out():
    assert [*documents([["a", "b", "c"], ["d"]], without={"b"})] == [["a", "c"], ["d"]]
