"""Data of a training: counted while they are read, and a tenth held out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.training.data import count_items, held_out_interval, hold_out_each_tenth


def test_items_are_counted_behind_each_with_the_stage_and_no_total():
    calls = []
    assert [*count_items("abc", "reading", lambda *call: calls.append(call))] == ["a", "b", "c"]
    assert calls == [("reading", 1, 0), ("reading", 2, 0), ("reading", 3, 0)]


def test_an_item_is_counted_when_the_next_one_is_asked_for():
    calls = []
    items = count_items("ab", "reading", lambda *call: calls.append(call))
    next(items)
    assert calls == []
    next(items)
    assert calls == [("reading", 1, 0)]


def test_items_without_anybody_to_tell_pass_through():
    assert [*count_items(iter([1, 2]), "reading", None)] == [1, 2]


def test_an_error_of_the_source_passes_through_behind_what_was_read():
    def source():
        yield 1
        raise OSError("the disk is gone")

    calls = []
    items = count_items(source(), "reading", lambda *call: calls.append(call))
    assert next(items) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(items)
    assert calls == [("reading", 1, 0)]


@pytest.mark.parametrize("count", [0, 1, 9])
def test_of_fewer_than_ten_items_none_is_held_out(count):
    assert hold_out_each_tenth(range(count)) == ([*range(count)], [])


def test_each_tenth_item_is_held_out():
    learn, held_out = hold_out_each_tenth(range(1, 32))
    assert held_out == [10, 20, 30]
    assert learn == [number for number in range(1, 32) if number % 10]


@given(st.lists(st.integers(), max_size=60))
def test_both_parts_together_are_all_items_in_order(items):
    learn, held_out = hold_out_each_tenth([*enumerate(items)])
    assert sorted([*learn, *held_out]) == [*enumerate(items)]
    assert learn == sorted(learn) and held_out == sorted(held_out) and len(held_out) == len(items) // 10


@pytest.mark.parametrize(
    ("documents", "mentions", "interval"),
    [(9, 100, 10), (40, 300_000, 40), (352, 226_036, 45), (1_000, 10_000, 10)],
)
def test_one_document_is_held_out_at_least_where_there_are_ten(documents, mentions, interval):
    assert held_out_interval(documents, mentions) == interval
