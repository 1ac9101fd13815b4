"""Batches of words for KALM: each word is predicted once, from its own context, however rows are cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from kgkit.inputs.kalm import Stretches, window_batch, word_windows  # noqa: E402

QUICK = settings(max_examples=30, deadline=None)


def sequence_of(count):
    return np.arange(100, 100 + count)


def predictions(batch):
    """Return (word, word before it, word behind it) of each word that is predicted."""
    both = batch.targets.shape[1] == batch.words.shape[1] - 2
    rows = []
    for row, column in batch.real.nonzero().tolist():
        behind = int(batch.words[row, column + 2]) if both else None
        rows.append((int(batch.targets[row, column]), int(batch.words[row, column]), behind))
    return rows


@QUICK
@given(st.integers(2, 60), st.integers(1, 7), st.integers(1, 25), st.one_of(st.none(), st.integers(0, 9)))
def test_stretches_predict_each_word_but_the_first_once_from_the_word_before(count, rows, length, seed):
    stretches = Stretches(sequence_of(count), rows, length, seed)
    batches = list(stretches.epoch(3, range(len(stretches))))
    predicted = sorted(row for batch in batches for row in predictions(batch))
    assert predicted == [(word, word - 1, None) for word in sequence_of(count).tolist()[1:]]
    assert [batch.first for batch in batches] == [number == 0 for number in range(len(batches))]
    assert all(batch.lengths.tolist() == [batch.words.shape[1]] * len(batch.words) for batch in batches)


@QUICK
@given(st.integers(2, 60), st.integers(1, 7), st.integers(1, 25), st.integers(0, 9))
def test_a_row_goes_on_in_the_next_stretch_where_it_ended(count, rows, length, seed):
    stretches = Stretches(sequence_of(count), rows, length, seed)
    batches = list(stretches.epoch(0, range(len(stretches))))
    assert torch.equal(torch.cat([batch.words for batch in batches], 1), stretches.read)
    assert torch.equal(torch.cat([batch.targets for batch in batches], 1), stretches.targets)
    assert all(batch.words.shape[1] for batch in batches)


def test_the_ends_of_stretches_move_with_the_epoch_and_the_seed_by_a_tenth_at_most():
    stretches, again = (Stretches(sequence_of(1001), 2, 50, seed=4) for _ in range(2))

    def widths(source, epoch):
        return [batch.words.shape[1] for batch in source.epoch(epoch, range(len(source)))]

    assert widths(stretches, 0) == widths(again, 0) != widths(stretches, 1)
    assert widths(stretches, 0) != widths(Stretches(sequence_of(1001), 2, 50, seed=5), 0)
    ends = np.cumsum(widths(stretches, 2))[:-1]
    assert (np.abs(ends - 50 * np.arange(1, 10)) <= 5).all() and ends.tolist() != list(range(50, 500, 50))
    assert widths(Stretches(sequence_of(1001), 2, 50), 7) == [50] * 10


def test_an_epoch_that_is_resumed_has_the_stretches_that_are_left():
    stretches = Stretches(sequence_of(300), 3, 20, seed=1)
    every = list(stretches.epoch(2, range(len(stretches))))
    later = list(stretches.epoch(2, range(2, len(stretches))))
    for batch, expected in zip(later, every[2:], strict=True):
        assert all(torch.equal(part, own) for part, own in zip(batch[:4], expected[:4], strict=True))
        assert batch.first == expected.first and not batch.first


@QUICK
@given(st.integers(0, 60), st.integers(0, 5), st.integers(1, 12), st.integers(1, 5))
def test_windows_predict_each_inner_word_once_from_both_neighbours(count, context, own, rows):
    length = 2 * max(context, 1) + own
    parts = word_windows(count, length=length, context=max(context, 1))
    predicted = []
    for begin in range(0, len(parts), rows):
        chosen = parts[begin : begin + rows]
        batch = window_batch([sequence_of(count)] * len(chosen), chosen)
        predicted += predictions(batch)
        assert batch.words.shape[1] == int(batch.lengths.max()) <= length
    words = sequence_of(count).tolist()[1:-1]
    assert sorted(predicted) == [(word, word - 1, word + 1) for word in words]


def test_windows_of_several_sequences_are_padded_behind():
    long, short = sequence_of(7), sequence_of(3)
    parts = [*word_windows(7, length=20, context=1), *word_windows(3, length=20, context=1)]
    batch = window_batch([long, short], parts)
    assert batch.words.tolist() == [long.tolist(), [*short.tolist(), 0, 0, 0, 0]]
    assert batch.lengths.tolist() == [7, 3]
    assert batch.real.tolist() == [[True] * 5, [True, *[False] * 4]]
    moved = batch.to(torch.device("cpu"))
    assert all(torch.equal(part, own) for part, own in zip(moved[:4], batch[:4], strict=True))
    assert moved.first == batch.first


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_sequence_without_inner_words_has_no_window(count):
    assert word_windows(count, length=9, context=2) == []
