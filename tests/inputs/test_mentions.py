"""Mentions in word pieces: those that a part of a document has, and parts around those that a cut divides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import UsageError
from kgkit.inputs.mentions import find_mentions, join_spans, parts_around_cuts, spans_within
from kgkit.inputs.pieces import WordPieces
from kgkit.inputs.texts import fit_pieces
from kgkit.types import CANDIDATE, Candidates, Document, Mention


def pieces(*spans):
    starts, ends = (np.array(ends, np.int64) for ends in (zip(*spans, strict=True) if spans else ((), ())))
    return WordPieces(np.arange(len(spans)), starts, ends)


def document(*spans):
    mentions = [Mention(start, end, "x" * (end - start)) for start, end in spans]
    return Document("d", "x" * 100, mentions=mentions)


# -- pieces -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "expected"),
    [((0, 3), (0, 1)), ((0, 4), (0, 1)), ((1, 5), (0, 2)), ((3, 4), (1, 1)), ((6, 9), (1, 3)),
     ((0, 99), (0, 3)), ((10, 12), (3, 3))],
)  # fmt: skip
def test_the_pieces_of_a_span_are_those_that_share_a_code_point_with_it(span, expected):
    assert pieces((0, 3), (4, 7), (7, 9)).within(*span) == expected


@given(
    st.lists(st.integers(1, 4), max_size=12), st.lists(st.integers(0, 2), min_size=12, max_size=12), st.data()
)
def test_the_pieces_of_a_span_are_found_as_one_by_one(lengths, gaps, data):
    spans, at = [], 0
    for length, gap in zip(lengths, gaps, strict=False):
        spans.append((at + gap, at + gap + length))
        at += gap + length
    start = data.draw(st.integers(0, at + 1))
    end = data.draw(st.integers(start + 1, at + 3))
    first, last = pieces(*spans).within(start, end)
    assert [*range(first, last)] == [
        index for index, (begin, stop) in enumerate(spans) if begin < end and start < stop
    ]


def test_mentions_without_pieces_have_empty_ranges_and_no_mentions_an_empty_array():
    cut = pieces((0, 3), (4, 7))
    assert cut.of([Mention(0, 7, ""), Mention(3, 4, "")]).tolist() == [[0, 2], [1, 1]]
    assert cut.of([]).shape == (0, 2) and pieces().of([Mention(0, 3, "")]).tolist() == [[0, 0]]


# -- parts of a document ----------------------------------------------------


def test_a_part_has_the_mentions_that_lie_in_it_whole():
    ranges = np.array([[0, 2], [2, 4], [3, 6], [5, 5], [5, 7]])
    spans = spans_within(ranges, document(*[(n, n + 1) for n in range(5)]), 2, 6, 1)
    assert spans.indices.tolist() == [1, 2]
    assert spans.spans.tolist() == [[1, 3], [2, 5]]
    assert not spans.masked.any() and len(spans.candidates) == 2


def test_mentions_keep_their_candidates_and_their_indices():
    own = Candidates(np.array([(7, 0, 1.0)], CANDIDATE))
    mentions = [Mention(0, 1, "x"), Mention(1, 2, "x", own), Mention(2, 3, "x")]
    spans = spans_within(np.array([[0, 1], [1, 2], [2, 3]]), Document("d", "xxx", mentions=mentions), 1, 3, 0)
    assert spans.indices.tolist() == [1, 2]
    assert spans.candidates[0] is own and len(spans.candidates[1]) == 0


def test_a_document_without_mentions_gives_none():
    spans = spans_within(np.zeros((0, 2), np.int64), Document("d", "xx"), 0, 2, 0)
    assert spans.spans.shape == (0, 2) and spans.candidates == []


def test_the_mentions_of_a_pair_stand_behind_each_other():
    ranges = np.array([[0, 1], [1, 3]])
    parts = [spans_within(ranges, document((0, 1), (1, 3)), 0, 3, shift) for shift in (1, 6)]
    joined = join_spans(parts)
    assert joined.spans.tolist() == [[1, 2], [2, 4], [6, 7], [7, 9]]
    assert joined.indices.tolist() == [0, 1, 0, 1] and len(joined.candidates) == len(joined.masked) == 4


# -- cuts -------------------------------------------------------------------


def test_mentions_that_no_cut_divides_need_no_part():
    assert parts_around_cuts(np.array([[0, 2], [4, 6]]), [0, 4], 8, 4) == []
    assert parts_around_cuts(np.zeros((0, 2), np.int64), [0], 8, 4) == []


def test_a_part_stands_around_the_mention_that_a_cut_divides():
    assert parts_around_cuts(np.array([[9, 11]]), [0, 10], 20, 6) == [(7, 13)]


def test_a_part_at_the_end_stays_inside_of_the_document():
    assert parts_around_cuts(np.array([[18, 20]]), [0, 19], 20, 6) == [(14, 20)]
    assert parts_around_cuts(np.array([[0, 2]]), [0, 1], 20, 6) == [(0, 6)]


def test_mentions_longer_than_a_part_are_left_out():
    assert parts_around_cuts(np.array([[2, 12]]), [0, 6], 20, 8) == []


@given(
    st.integers(10, 60), st.integers(4, 9),
    st.lists(st.tuples(st.integers(0, 59), st.integers(0, 12)), max_size=12),
)  # fmt: skip
def test_each_divided_mention_that_fits_is_whole_in_a_part(count, room, drawn):
    ranges = np.array(
        sorted((min(first, count), min(first + length, count)) for first, length in drawn), np.int64
    ).reshape(-1, 2)
    begins = [*range(0, count, room)]
    parts = parts_around_cuts(ranges, begins, count, room)
    for begin, end in parts:
        assert 0 <= begin < end <= max(count, room) and end - begin == room
    for first, last in ranges.tolist():
        divided = any(first < begin < last for begin in begins)
        if divided and last - first <= room:
            assert any(begin <= first and last <= end for begin, end in parts)


# -- texts and pairs --------------------------------------------------------


class Numbered:
    """A generator that gives each text one mention, and counts how often it is called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, documents):
        self.calls += 1
        for each in documents:
            yield Document(each.id, each.text, mentions=[Mention(0, len(each.text), each.text)])


def test_each_text_of_a_pair_has_its_own_mentions():
    generator = Numbered()
    found = [*find_mentions([("a",), ("b", "cc"), ("ddd",)], {"kb": generator})]
    assert [texts for texts, _ in found] == [("a",), ("b", "cc"), ("ddd",)]
    assert [[each.mentions[0].text for each in own["kb"]] for _, own in found] == [
        ["a"],
        ["b", "cc"],
        ["ddd"],
    ]
    assert generator.calls == 1


def test_every_knowledge_base_is_asked_and_none_gives_no_documents():
    [(_, own)] = find_mentions([("a",)], {"one": Numbered(), "two": Numbered()})
    assert [*own] == ["one", "two"]
    assert [*find_mentions([("a",)], {})] == [(("a",), {})]


def test_many_texts_are_looked_up_in_chunks_and_as_they_are_asked_for():
    generator, taken = Numbered(), []

    def source():
        for number in range(1000):
            taken.append(number)
            yield (str(number),)

    stream = find_mentions(source(), {"kb": generator})
    next(stream)
    assert len(taken) < 1000
    assert sum(1 for _ in stream) == 999 and generator.calls == 4


@pytest.mark.parametrize("texts", [(), ("a", "b", "c")])
def test_neither_no_text_nor_three_are_read(texts):
    with pytest.raises(UsageError, match=f"a text or a pair of texts is read, not {len(texts)} texts"):
        [*find_mentions([("a",), texts], {})]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 50))
def test_of_a_pair_the_longer_text_is_cut_first(first, second, room):
    kept = [first, second]
    while sum(kept) > room:  # the slow twin: a piece at a time from the longer one, of equals from the first
        longer = 0 if kept[0] > kept[1] else 1 if kept[1] > kept[0] else 0
        kept[longer] -= 1
    found = fit_pieces([first, second], room)
    assert sum(found) == sum(kept) and sorted(found) == sorted(kept)


@given(st.integers(0, 40), st.integers(0, 50))
def test_one_text_is_cut_at_the_room(length, room):
    assert fit_pieces([length], room) == [min(length, room)]
