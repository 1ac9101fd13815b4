"""Batches of a training: every item once an epoch, in an order that follows from seed and epoch alone."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.training.batches import Shuffled


def shuffled(count, size, seed=0, lengths=None):
    return Shuffled(range(count), size, tuple, seed, lengths)


def epoch(batches, number):
    return [*batches.epoch(number, range(len(batches)))]


@pytest.mark.parametrize(
    ("count", "size", "batches"), [(0, 3, 0), (1, 3, 1), (3, 3, 1), (4, 3, 2), (9, 3, 3)]
)
def test_the_last_batch_may_be_shorter_than_the_others(count, size, batches):
    made = shuffled(count, size)
    assert len(made) == batches
    assert [len(batch) for batch in epoch(made, 0)] == [size] * (count // size) + [count % size] * bool(
        count % size
    )


@given(
    st.integers(0, 300), st.integers(1, 12), st.integers(0, 5), st.integers(0, 3), st.booleans(), st.randoms()
)  # fmt: skip
def test_every_item_is_in_one_batch_of_an_epoch(count, size, seed, number, sorted_by_length, random):
    lengths = [random.randint(1, 50) for _ in range(count)] if sorted_by_length else None
    made = epoch(shuffled(count, size, seed, lengths), number)
    assert Counter(item for batch in made for item in batch) == Counter(range(count))
    assert all(len(batch) == size for batch in made[:-1])


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = {
        tuple(item for batch in epoch(shuffled(50, 4, seed), number) for item in batch)
        for seed in range(3)
        for number in range(3)
    }
    assert len(orders) == 9


@pytest.mark.parametrize("lengths", [None, [number % 7 for number in range(41)]])
def test_an_epoch_is_the_same_whenever_it_is_asked_for(lengths):
    made = shuffled(41, 4, 3, lengths)
    first = epoch(made, 2)
    epoch(made, 0)
    np.random.default_rng().random(5)
    assert epoch(made, 2) == first == epoch(shuffled(41, 4, 3, lengths), 2)


def test_some_batches_of_an_epoch_are_those_of_the_whole_epoch():
    made = shuffled(41, 4)
    every = epoch(made, 1)
    assert [*made.epoch(1, [0, 3, 7, 10, 10])] == [every[index] for index in (0, 3, 7, 10, 10)]
    assert [*made.epoch(1, [])] == []


def test_only_batches_that_are_asked_for_are_made():
    made = []
    batches = Shuffled(range(20), 2, made.append)
    stream = batches.epoch(0, [4, 5, 6])
    next(stream)
    assert len(made) == 1


def test_items_of_a_batch_are_of_like_lengths():
    lengths = np.random.default_rng(0).integers(1, 500, 4000)
    spread = [np.ptp(lengths[[*batch]]) for batch in epoch(shuffled(4000, 8, 0, lengths), 0)]
    plain = [np.ptp(lengths[[*batch]]) for batch in epoch(shuffled(4000, 8), 0)]
    assert np.mean(spread) < 0.1 * np.mean(plain)


def test_batches_of_like_lengths_come_in_no_order_of_lengths():
    lengths = [*range(1, 2001)]
    means = [np.mean(batch) for batch in epoch(shuffled(2000, 10, 0, lengths), 0)]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.3


def test_like_lengths_leave_the_partners_of_an_item_to_chance():
    lengths = [*range(400)]
    made = shuffled(400, 4, 0, lengths)
    partners = {frozenset(next(batch for batch in epoch(made, number) if 7 in batch)) for number in range(20)}
    assert len(partners) > 15
