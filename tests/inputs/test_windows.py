"""Windows: nothing left out, nothing twice, and no more than fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import UsageError
from kgkit.inputs import Window, windows


def test_sentences_are_put_together_as_long_as_there_is_room():
    assert windows(9, [0, 3, 6], size=6, context=0) == [Window(0, 6, 0, 6), Window(6, 9, 6, 9)]


def test_a_window_reads_what_stands_around_it():
    assert windows(9, [0, 3, 6], size=5, context=1) == [
        Window(0, 4, 0, 3),
        Window(2, 7, 3, 6),
        Window(5, 9, 6, 9),
    ]


def test_each_sentence_alone_does_not_read_the_others():
    found = windows(9, [0, 3, 6], size=5, context=1, scope="sentence")
    assert found == [Window(0, 3, 0, 3), Window(3, 6, 3, 6), Window(6, 9, 6, 9)]


def test_a_long_sentence_is_cut_with_overlap():
    found = windows(10, [0], size=6, context=1)
    assert found == [Window(0, 5, 0, 4), Window(3, 9, 4, 8), Window(7, 10, 8, 10)]
    alone = windows(12, [0, 2], size=6, context=1, scope="sentence")
    assert alone == [Window(0, 2, 0, 2), Window(2, 7, 2, 6), Window(5, 11, 6, 10), Window(9, 12, 10, 12)]


@given(
    st.integers(0, 200), st.lists(st.integers(0, 220), max_size=30), st.integers(1, 40), st.integers(0, 12),
    st.sampled_from(["sentence", "document"]),
)  # fmt: skip
def test_every_piece_is_exactly_one_window_s_own(pieces, sentences, room, context, scope):
    size = room + 2 * context
    found = windows(pieces, sentences, size=size, context=context, scope=scope)
    assert [place for window in found for place in range(window.own, window.own_end)] == list(range(pieces))
    for window in found:
        assert 0 <= window.begin <= window.own < window.own_end <= window.end <= pieces
        assert window.end - window.begin <= size


def test_windows_without_room_are_refused():
    with pytest.raises(UsageError, match="windows of 10 pieces with 5 of context on each side"):
        windows(3, [], size=10, context=5)
