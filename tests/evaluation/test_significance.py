"""Intervals by the bootstrap: how often they hold the true score; the paired test beside all swaps."""

from itertools import product

import numpy as np
import pytest

from kgkit.errors import UsageError
from kgkit.evaluation import significance
from kgkit.evaluation.matching import ratios
from kgkit.evaluation.significance import Interval, bootstrap_intervals, difference_interval, paired_test

LEVEL = 0.95


def f1(sums):
    """(…, 1) F1 of sums of (correct, links, mentions)."""
    return (2 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1))[..., None]


def documents(generator, size, quality=0.8):
    """(D, 8) columns of documents of unlike length and difficulty, as those of news are."""
    gold = generator.poisson(generator.gamma(2.0, 10.0, size)) + 1
    correct = generator.binomial(gold, generator.beta(6 * quality, 6 * (1 - quality), size))
    links = correct + generator.binomial(gold, 0.2)
    counts = np.stack([correct, links, correct, gold], 1).astype(float)
    own = ratios(np.concatenate([counts, np.zeros((size, 3)), np.ones((size, 1))], 1))[:, :3]
    return np.concatenate([counts, own, np.ones((size, 1))], 1)


def coverage(size, sets, seed, **settings):
    """The share of simulated data sets whose interval holds the population's score, of each ratio."""
    generator = np.random.default_rng(seed)
    population = documents(generator, 100_000)
    true = ratios(population.sum(0))
    hits = np.zeros(len(true))
    for number in range(sets):
        sample = population[generator.integers(0, len(population), size)]
        intervals = bootstrap_intervals(sample, ratios, seed=number, **settings)
        hits += [low <= score <= high for (low, high), score in zip(intervals, true, strict=True)]
    return hits / sets


@pytest.mark.slow
def test_of_a_thousand_simulated_sets_95_percent_of_intervals_hold_the_true_score():
    """Slow: a thousand sets of 216 documents, as many as testa has, with 2,000 samples each."""
    assert all(0.93 <= share <= 0.97 for share in coverage(216, 1000, seed=1))


@pytest.mark.slow
def test_most_intervals_of_smaller_sets_hold_the_true_score():
    # Of 600 sets the deviation of a share of 95 % is 0.9 %; 600 samples cost about 1 % of coverage.
    assert all(0.91 <= share <= 0.975 for share in coverage(60, 600, seed=2, draws=600))


def test_an_interval_holds_the_score_and_narrows_with_more_documents():
    generator = np.random.default_rng(3)
    widths = []
    for size in (50, 5000):
        columns = documents(generator, size)
        intervals = bootstrap_intervals(columns, ratios)
        for (low, high), score in zip(intervals, ratios(columns.sum(0)), strict=True):
            assert 0 <= low <= score <= high <= 1
        widths.append(intervals[2].high - intervals[2].low)
    assert widths[1] < widths[0] / 5


def test_a_higher_level_is_a_wider_interval_and_a_seed_gives_it_again():
    columns = documents(np.random.default_rng(4), 60)
    usual, wide = (bootstrap_intervals(columns, ratios, level=level) for level in (0.95, 0.99))
    assert all(a.low >= b.low and a.high <= b.high for a, b in zip(usual, wide, strict=True))
    assert bootstrap_intervals(columns, ratios, seed=7) == bootstrap_intervals(columns, ratios, seed=7)
    assert bootstrap_intervals(columns, ratios, seed=7) != bootstrap_intervals(columns, ratios, seed=8)


@pytest.mark.parametrize(("size", "unseen"), [(2, 0.776), (10, 0.259), (60, 0.049), (300, 0.010)])
def test_documents_that_are_all_alike_leave_room_for_others_that_were_not_drawn(size, unseen):
    columns = np.tile([3.0, 4.0, 5.0], (size, 1))
    [interval] = bootstrap_intervals(columns, f1)
    assert interval.low == pytest.approx(6 / 9 * (1 - unseen), abs=0.001)
    assert interval.high == pytest.approx(6 / 9 + unseen / 3, abs=0.001)
    [perfect] = bootstrap_intervals(np.tile([2.0, 2.0, 2.0], (size, 1)), f1)
    assert perfect.low == pytest.approx(1 - unseen, abs=0.001) and perfect.high == 1.0
    [difference] = difference_interval(columns, np.tile([4.0, 4.0, 5.0], (size, 1)), f1)
    assert difference.low == pytest.approx(2 / 9 - unseen * 11 / 9, abs=0.002)
    assert difference.high == pytest.approx(2 / 9 + unseen * 7 / 9, abs=0.002)


def test_systems_that_answer_alike_in_all_documents_have_no_difference():
    columns = documents(np.random.default_rng(0), 5)
    assert set(difference_interval(columns, columns.copy(), ratios)) == {Interval(0.0, 0.0)}


def test_equal_documents_of_a_higher_level_have_a_wider_interval_whatever_the_rounding():
    columns = np.tile([0.1, 0.3, 0.7], (3, 1))
    columns[1] *= 1 + 1e-15
    narrow, wide = (bootstrap_intervals(columns, f1, level=level)[0] for level in (0.9, 0.99))
    assert wide.low < narrow.low < 0.2 < narrow.high < wide.high
    assert narrow.high - narrow.low == pytest.approx(1 - 0.1 ** (1 / 3))


@pytest.mark.parametrize("size", [0, 1])
def test_a_single_document_says_nothing_of_others(size):
    assert bootstrap_intervals(np.ones((size, 3)), f1) == [Interval(0.0, 1.0)]
    assert difference_interval(np.ones((size, 3)), np.ones((size, 3)), f1) == [Interval(-1.0, 1.0)]


def test_samples_are_drawn_in_blocks_that_fit_into_memory(monkeypatch):
    columns = documents(np.random.default_rng(5), 40)
    in_one = bootstrap_intervals(columns, ratios, draws=400)
    monkeypatch.setattr(significance, "_CELLS", 40 * 7)
    in_blocks = bootstrap_intervals(columns, ratios, draws=400)
    for first, second in zip(in_one, in_blocks, strict=True):
        assert first == pytest.approx(second, abs=0.02)
    assert paired_test(columns[:, :3], columns[:, :3] + 1, lambda sums: f1(sums)[..., 0]) <= 1


def test_the_interval_of_a_difference_is_narrower_than_those_of_the_scores():
    generator = np.random.default_rng(6)
    first = documents(generator, 200)
    second = first.copy()
    better = generator.random(200) < 0.3
    second[better, 0] = second[better, 2] = np.minimum(first[better, 0] + 1, first[better, 3])
    second[:, 1] = np.maximum(second[:, 1], second[:, 0])
    [low, high] = difference_interval(first, second, ratios)[2]
    [own_low, own_high] = bootstrap_intervals(first, ratios)[2]
    assert 0 < low < high
    assert high - low < (own_high - own_low) / 3
    difference = (ratios(second.sum(0)) - ratios(first.sum(0)))[2]
    assert low <= difference <= high


# -- the paired test


def total_f1(sums):
    return f1(sums)[..., 0]


def by_hand(first, second):
    """All ways to swap the answers to documents, one after the other."""
    observed = abs(total_f1(second.sum(0)) - total_f1(first.sum(0)))
    gaps = []
    for swapped in product((False, True), repeat=len(first)):
        mask = np.array(swapped)[:, None]
        sides = np.where(mask, second, first).sum(0), np.where(mask, first, second).sum(0)
        gaps.append(abs(total_f1(sides[1]) - total_f1(sides[0])))
    return np.mean(np.array(gaps) >= observed - 1e-12)


def small(generator, size=7):
    gold = generator.integers(1, 6, size)
    links = generator.integers(1, 6, size)
    return np.stack([generator.integers(0, np.minimum(links, gold) + 1), links, gold], 1)


@pytest.mark.parametrize("seed", range(6))
def test_all_swaps_of_seven_documents_are_tried(seed):
    generator = np.random.default_rng(seed)
    first = small(generator)
    second = np.stack([small(generator)[:, 0], first[:, 1], first[:, 2]], 1)
    assert paired_test(first, second, total_f1) == pytest.approx(by_hand(first, second))


def test_drawn_swaps_come_near_to_all_swaps(monkeypatch):
    generator = np.random.default_rng(11)
    first, second = small(generator, 10), small(generator, 10)
    exact = paired_test(first, second, total_f1)
    monkeypatch.setattr(significance, "SWAPS", 1000)
    assert paired_test(first, second, total_f1) == pytest.approx(exact, abs=0.06)


def test_runs_of_a_system_change_sides_together():
    generator = np.random.default_rng(12)
    first, second = (np.stack([small(generator, 6) for _ in range(3)]) for _ in range(2))
    same = first.copy()
    assert paired_test(first, same, total_f1) == 1.0
    repeated = paired_test(np.stack([first[0]] * 3), np.stack([second[0]] * 3), total_f1)
    assert repeated == paired_test(first[0], second[0], total_f1)


def test_equal_systems_differ_by_chance_and_a_clear_difference_does_not():
    generator = np.random.default_rng(13)
    first = documents(generator, 300)[:, [0, 1, 3]]
    assert paired_test(first, first, total_f1) == 1.0
    worse = first.copy()
    worse[:, 0] = np.floor(first[:, 0] * 0.8)
    assert paired_test(first, worse, total_f1) == paired_test(worse, first, total_f1) < 0.001
    assert paired_test(first, worse, total_f1) > 0  # never nought


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((5,), (5,), r"both systems have the shape \(5,\); expected \(D, C\)"),
        ((5, 3), (4, 3), r"the shapes \(5, 3\) and \(4, 3\); expected the same"),
        ((5, 3), (5, 2), r"the shapes \(5, 3\) and \(5, 2\)"),
        ((5, 3), (2, 5, 3), r"the shapes \(5, 3\) and \(2, 5, 3\)"),
        ((1, 2, 5, 3), (1, 2, 5, 3), r"have the shape \(1, 2, 5, 3\)"),
    ],
)
def test_columns_of_other_shapes_are_refused_by_their_shapes(first, second, message):
    for compare in (paired_test, difference_interval):
        with pytest.raises(UsageError, match=message):
            compare(np.zeros(first), np.zeros(second), total_f1)


def test_an_interval_of_columns_of_another_shape_is_refused():
    for refuse in (np.zeros(5), np.zeros((2, 5, 3))):
        with pytest.raises(UsageError, match=r"the columns have the shape \(.*\); expected \(D, C\)"):
            bootstrap_intervals(refuse, f1)
    with pytest.raises(UsageError, match=r"expected \(D, C\): of each"):
        difference_interval(np.zeros((2, 5, 3)), np.zeros((2, 5, 3)), f1)


def test_a_difference_of_correlations_may_be_two():
    columns = np.ones((1, 3))
    assert difference_interval(columns, columns, f1, bounds=Interval(-1.0, 1.0)) == [Interval(-2.0, 2.0)]


def test_where_systems_are_alike_small_p_are_rare():
    generator, small_p = np.random.default_rng(14), 0
    for _ in range(60):
        first, second = (documents(generator, 12)[:, [0, 1, 3]] for _ in range(2))
        swap = generator.random(12)[:, None] < 0.5
        sides = np.where(swap, first, second), np.where(swap, second, first)
        small_p += paired_test(*sides, total_f1) <= 0.05
    assert small_p <= 9
