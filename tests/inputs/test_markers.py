"""Special pieces in a text: every other piece stays what it was, and so does every mention."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgkit.inputs.mentions import MentionSpans
from kgkit.inputs.texts import TokenizedText
from kgkit.methods.knowbert_reading import insert_markers, marker_positions
from kgkit.types import NO_CANDIDATES


def text_of(ids, spans=(), types=None):
    known = MentionSpans(
        np.array(spans, np.int64).reshape(-1, 2), [NO_CANDIDATES] * len(spans),
        np.arange(len(spans)) % 2 == 1, np.arange(len(spans)),
    )  # fmt: skip
    types = [0] * len(ids) if types is None else types
    special = np.arange(len(ids)) % (len(ids) - 1 or 1) == 0
    return TokenizedText(np.array(ids, np.int64), np.array(types, np.int64), special, {"a": known})


def one_by_one(text, markers):
    """The slow twin: a text is a list of pieces, and a mention is those that bear its name."""
    spans = text.mentions["a"].spans.tolist()
    pieces = [
        (int(one), int(kind), bool(special), {m for m, (first, end) in enumerate(spans) if first <= n < end})
        for n, (one, kind, special) in enumerate(zip(text.ids, text.types, text.special, strict=True))
    ]
    found, where = [], {}
    for place in range(len(pieces) + 1):
        for number, (before, marker) in enumerate(markers):
            if before == place:
                where[number] = len(found)
                found.append((marker, pieces[min(place, len(pieces) - 1)][1], True, set()))
        found += pieces[place : place + 1]
    own = [[n for n, one in enumerate(found) if m in one[3]] for m in range(len(spans))]
    return found, [[some[0], some[-1] + 1] for some in own], [where[n] for n in range(len(markers))]


@st.composite
def texts_and_markers(draw):
    count = draw(st.integers(1, 8))
    spans = [
        (first, draw(st.integers(first + 1, count)))
        for first in draw(st.lists(st.integers(0, count - 1), max_size=4))
    ]
    types = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    markers = draw(st.lists(st.tuples(st.integers(0, count), st.integers(100, 105)), max_size=6))
    return text_of(list(range(10, 10 + count)), spans, types), markers


@given(texts_and_markers())
def test_marking_agrees_with_marking_one_by_one(drawn):
    text, markers = drawn
    found = insert_markers(text, markers)
    pieces, spans, where = one_by_one(text, markers)
    assert found.ids.tolist() == [one for one, _, _, _ in pieces]
    assert found.types.tolist() == [kind for _, kind, _, _ in pieces]
    assert found.special.tolist() == [special for _, _, special, _ in pieces]
    assert found.mentions["a"].spans.tolist() == spans
    assert marker_positions(markers) == where
    assert found.special.dtype == np.bool_ and found.ids.dtype == found.types.dtype == np.int64
    for name in ("candidates", "masked", "indices"):
        assert getattr(found.mentions["a"], name) is getattr(text.mentions["a"], name)


def test_markers_around_a_mention_stand_outside_and_one_within_makes_it_longer():
    text = text_of([2, 10, 11, 12, 3], [(1, 3), (2, 4)])
    found = insert_markers(text, [(1, 90), (3, 91)])
    assert found.ids.tolist() == [2, 90, 10, 11, 91, 12, 3]
    assert found.mentions["a"].spans.tolist() == [[2, 4], [3, 6]]


def test_what_is_given_is_left_as_it_was_and_no_marker_changes_nothing():
    text = text_of([2, 10, 3], [(1, 2)])
    assert insert_markers(text, []) is text
    insert_markers(text, [(1, 90)])
    assert text.ids.tolist() == [2, 10, 3] and text.mentions["a"].spans.tolist() == [[1, 2]]
