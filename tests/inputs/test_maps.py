"""Maps of hand-made sentences, and how they are spread over word pieces."""

import numpy as np
import pytest

from kgkit.building import Alias, Entity, Triple
from kgkit.inputs import maps
from kgkit.inputs.maps import (
    PhraseSpan,
    WordMap,
    auxiliary_words,
    correlation_map,
    join_maps,
    knowledge_map,
    phrase_map,
    word_ranges,
)
from kgkit.text import token_spans
from tests.pmi_toys import PMI
from tests.small_kb import build


def span_map(size, spans):
    return phrase_map(size, [PhraseSpan(*span) for span in spans])


def test_words_share_a_character_with_a_span():
    words = token_spans("Tim Cook's in Beijing")
    assert word_ranges(words, [(0, 8), (2, 5), (14, 21), (3, 4), (21, 30)]).tolist() == [
        [0, 2], [0, 2], [4, 5], [1, 1], [5, 5],
    ]  # fmt: skip
    assert word_ranges([], [(0, 3)]).tolist() == [[0, 0]]


def test_the_words_of_one_name_belong_together():
    """Equation (5)."""
    dense = span_map(5, [(0, 2), (4, 5), (3, 3)]).dense()
    assert dense.tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ]


def test_two_words_have_the_level_of_the_lowest_phrase_with_both():
    """Equation (6)."""
    half = 0.5
    assert span_map(4, [(0, 4, 2), (0, 2), (2, 4), (2, 4, 3)]).dense().tolist() == [
        [1, 1, half, half], [1, 1, half, half], [half, half, 1, 1], [half, half, 1, 1],
    ]  # fmt: skip


def test_words_are_joined_by_their_pmi_and_none_with_itself():
    """Equation (7)."""
    correlations = correlation_map(["dog", "barks", "it", "dog"], PMI, ["bone"])
    dense = correlations.dense()
    assert correlations.size == 5 and np.array_equal(dense, dense.T)
    np.testing.assert_allclose(dense[0], [0, 0.9, 0, 1, 0.4])
    np.testing.assert_allclose(dense[4], [0.4, 0.3, 0, 0.4, 0])
    assert correlation_map([], PMI).nonzero() == 0


def test_auxiliary_words_have_the_highest_mean_pmi_and_are_not_in_the_text():
    # dog cat barks: bone has (.4 + 0 + .3) / 3, milk .6 / 3
    assert auxiliary_words(["dog", "cat", "barks"], PMI, 5) == ["bone", "milk"]
    assert auxiliary_words(["dog", "cat", "barks"], PMI, 1) == ["bone"]
    assert auxiliary_words(["dog"], PMI, 0) == [] and auxiliary_words([], PMI, 3) == []


@pytest.fixture
def kb(tmp_path):
    records = [
        *(Entity(key, key) for key in ("tim", "apple", "beijing", "china")),
        *(Alias(key, key) for key in ("tim", "apple", "beijing", "china")),
        Triple("tim", "leads", "apple"), Triple("beijing", "in", "china"), Triple("tim", "is", "tim"),
    ]  # fmt: skip
    with build(tmp_path, records, name="facts") as built:
        yield built


def test_the_words_of_neighbours_in_a_knowledge_base_belong_together(kb):
    """Equation (8)."""
    # apple is led by tim cook ; beijing
    ids = [kb.id(key) for key in ("apple", "tim", "beijing", "tim")]
    dense = knowledge_map(7, [(0, 1), (3, 5), (6, 7), (2, 2)], ids, kb).dense()
    assert sorted(zip(*map(list, np.nonzero(dense)), strict=True)) == [(0, 3), (0, 4), (3, 0), (4, 0)]
    assert knowledge_map(3, [], [], kb).nonzero() == 0


def test_of_blocks_that_overlap_the_first_holds_and_each_cell_comes_once():
    overlapping = WordMap.of(3, [(0, 2, 0, 2), (1, 3, 1, 3), (0, 1, 0, 1)], [0.5, 0.25, 0.75])
    assert overlapping.dense().tolist() == [[0.5, 0.5, 0], [0.5, 0.5, 0.25], [0, 0.25, 0.25]]
    assert overlapping.nonzero() == 7 and overlapping.cells().rows.tolist() == [0, 0, 1, 1, 1, 2, 2]
    both = join_maps([overlapping, WordMap.of(3, [(0, 1, 2, 3)], [2.0])])
    assert both.dense()[0, 2] == 2


def test_blocks_with_many_cells_in_common_take_no_more_than_the_cells(monkeypatch):
    drawn = np.random.default_rng(1)
    for _ in range(50):
        corners = np.sort(drawn.integers(0, 9, (6, 2, 2)), 2).reshape(6, 4)
        overlapping = WordMap.of(9, corners.tolist(), drawn.integers(1, 5, 6) / 4)
        with monkeypatch.context() as patch:
            patch.setattr(maps, "_MOST_CELLS", 0)
            disjoint = overlapping.cells()
        for expected, cells in zip(overlapping.cells(), disjoint, strict=True):
            np.testing.assert_array_equal(expected, cells)
    nested = span_map(300, [(0, end, end) for end in range(1, 301)])  # 9 million cells
    assert nested.nonzero() == 90_000 and nested.cells().values[-1] == np.float32(1 / 300)
    assert len(span_map(4, [(0, 4)] * 100).blocks) == 1


def test_word_pieces_have_what_their_words_have():
    # [CLS] 0  words: 1-2, none, 3, 4-6  [SEP] 7
    begins, ends = np.array([1, 3, 3, 4]), np.array([3, 3, 4, 7])
    pieces = span_map(4, [(0, 3), (3, 4), (1, 2)]).spread(begins, ends, 8)
    expected = np.zeros((8, 8))
    expected[1:4, 1:4] = expected[4:7, 4:7] = 1
    assert np.array_equal(pieces.dense(), expected)
    assert span_map(4, []).spread(begins, ends, 8).nonzero() == 0


def test_spreading_agrees_with_the_definition():
    drawn = np.random.default_rng(0)
    for _ in range(50):
        lengths = drawn.integers(0, 4, 6)  # pieces of each word
        ends = 1 + np.cumsum(lengths)
        begins = ends - lengths
        spans = [sorted(drawn.integers(0, 7, 2).tolist()) for _ in range(3)]
        words = span_map(6, [(*span, int(drawn.integers(1, 4))) for span in spans])
        owner = np.repeat(np.arange(6), lengths)
        dense, size = words.dense(), int(ends[-1]) + 1
        expected = np.zeros((size, size), np.float32)
        expected[1:-1, 1:-1] = dense[owner][:, owner]
        assert np.array_equal(words.spread(begins, ends, size).dense(), expected)
