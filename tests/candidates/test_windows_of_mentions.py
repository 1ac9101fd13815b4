"""The mentions of windows, put together: as those of the whole text, and in batches of whole multiples."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.candidates.entries import drop_before, longest
from kgkit.candidates.long_texts import longest_of_windows, mention_batches
from kgkit.types import Mention


def mention(start, end):
    return Mention(start, end, "x" * (end - start))


SPANS = st.tuples(st.integers(0, 30), st.integers(1, 6)).map(lambda pair: (pair[0], sum(pair)))
MENTIONS = st.lists(SPANS, max_size=15, unique=True).map(
    lambda spans: [mention(*span) for span in sorted(spans)]
)


def spans(mentions):
    return [(each.start, each.end) for each in mentions]


def leftmost_longest(mentions):
    """The slow twin: from the left, the longest of those that begin first, then what begins behind it."""
    result, at = [], 0
    while rest := [each for each in mentions if each.start >= at]:
        first = min(each.start for each in rest)
        best = max((each for each in rest if each.start == first), key=lambda each: each.end)
        result.append(best)
        at = best.end
    return spans(result)


@given(MENTIONS)
def test_the_longest_of_those_that_begin_first_are_kept(mentions):
    assert spans(longest(mentions)) == leftmost_longest(mentions)


@given(MENTIONS, st.integers(0, 36))
def test_what_begins_before_a_position_is_dropped(mentions, begin):
    assert spans(drop_before(mentions, begin)) == [span for span in spans(mentions) if span[0] >= begin]


@given(MENTIONS, st.lists(st.integers(0, 15), max_size=5))
def test_windows_have_together_the_longest_of_all(mentions, cuts):
    edges = [0, *sorted(min(cut, len(mentions)) for cut in cuts), len(mentions)]
    windows = [mentions[first:last] for first, last in pairwise(edges)]
    found = [each for window in longest_of_windows(windows) for each in window]
    assert spans(found) == leftmost_longest(mentions)


def test_without_windows_there_are_no_mentions():
    assert [*longest_of_windows([])] == [[]]
    assert [*mention_batches([], 4)] == [([], True)]


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 5))
def test_batches_have_whole_multiples_and_all_mentions_in_order(counts, multiple):
    numbers = iter(range(1000))
    windows = [[mention(n, n + 1) for n, _ in zip(numbers, range(count), strict=False)] for count in counts]
    batches = [*mention_batches(windows, multiple)]
    assert [last for _, last in batches] == [False] * (len(batches) - 1) + [True]
    assert all(batch and len(batch) % multiple == 0 for batch, _ in batches[:-1])
    assert len(batches[-1][0]) < multiple
    assert spans(each for batch, _ in batches for each in batch) == spans(
        each for some in windows for each in some
    )


@pytest.mark.parametrize("multiple", [1, 3])
def test_a_batch_is_given_before_the_next_window_is_taken(multiple):
    taken = []

    def windows():
        for number in range(5):
            taken.append(number)
            yield [mention(3 * number + n, 3 * number + n + 1) for n in range(3)]

    stream = mention_batches(windows(), multiple)
    next(stream)
    assert taken == [0]
