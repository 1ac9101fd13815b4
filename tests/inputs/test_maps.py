"""Maps of hand-made sentences, how they are spread over word pieces, and the brackets of a treebank."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from kgkit.building import Alias, Entity, Triple
from kgkit.errors import UsageError
from kgkit.inputs import maps
from kgkit.inputs.maps import (
    PhraseSpan,
    WordMap,
    auxiliary_words,
    correlation_map,
    entity_map,
    join_maps,
    knowledge_map,
    phrase_map,
    word_ranges,
)
from kgkit.inputs.parses import read_brackets
from kgkit.text import token_spans
from tests.pmi_toys import PMI
from tests.small_kb import build

TREEBANK = Path(__file__).parents[3] / "shared" / "data" / "treebank" / "treebank.zip"


def test_words_share_a_character_with_a_span():
    words = token_spans("Tim Cook's in Beijing")
    assert word_ranges(words, [(0, 8), (2, 5), (14, 21), (3, 4), (21, 30)]).tolist() == [
        [0, 2], [0, 2], [4, 5], [1, 1], [5, 5],
    ]  # fmt: skip
    assert word_ranges([], [(0, 3)]).tolist() == [[0, 0]]


def test_the_words_of_one_name_belong_together():
    """Equation (5)."""
    dense = entity_map(5, [(0, 2), (4, 5), (3, 3)]).dense()
    assert dense.tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ]


def test_two_words_have_the_level_of_the_lowest_phrase_with_both():
    """Equation (6)."""
    phrases = [PhraseSpan(0, 4, 2), PhraseSpan(0, 2), PhraseSpan(2, 4), PhraseSpan(2, 4, 3)]
    half = 0.5
    assert phrase_map(4, phrases).dense().tolist() == [
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


def test_of_blocks_that_overlap_the_greatest_value_holds_and_each_cell_comes_once():
    blocks = [(0, 2, 0, 2), (1, 3, 1, 3), (0, 1, 0, 1)]
    overlapping = WordMap.of(3, blocks, [0.5, 0.25, 0.125])
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
    nested = phrase_map(300, [PhraseSpan(0, end, end) for end in range(1, 301)])  # 9 million cells
    assert nested.nonzero() == 90_000 and nested.cells().values[-1] == np.float32(1 / 300)
    assert len(phrase_map(4, [PhraseSpan(0, 4, level) for level in range(1, 100)]).blocks) == 1


def test_word_pieces_have_what_their_words_have():
    # [CLS] 0  words: 1-2, none, 3, 4-6  [SEP] 7
    begins, ends = np.array([1, 3, 3, 4]), np.array([3, 3, 4, 7])
    pieces = entity_map(4, [(0, 3), (3, 4), (1, 2)]).spread(begins, ends, 8)
    expected = np.zeros((8, 8))
    expected[1:4, 1:4] = expected[4:7, 4:7] = 1
    assert np.array_equal(pieces.dense(), expected)
    assert entity_map(4, []).spread(begins, ends, 8).nonzero() == 0


def test_spreading_agrees_with_the_definition():
    drawn = np.random.default_rng(0)
    for _ in range(50):
        lengths = drawn.integers(0, 4, 6)  # pieces of each word
        ends = 1 + np.cumsum(lengths)
        begins = ends - lengths
        spans = [sorted(drawn.integers(0, 7, 2).tolist()) for _ in range(3)]
        words = phrase_map(6, [PhraseSpan(*span, int(drawn.integers(1, 4))) for span in spans])
        owner = np.repeat(np.arange(6), lengths)
        dense, size = words.dense(), int(ends[-1]) + 1
        expected = np.zeros((size, size), np.float32)
        expected[1:-1, 1:-1] = dense[owner][:, owner]
        assert np.array_equal(words.spread(begins, ends, size).dense(), expected)


# -- brackets ---------------------------------------------------------------


def test_brackets_are_phrases_with_their_levels():
    eats = "(VP (VBZ eats) (NP (NP (DT a) (NN bone)) (PP (IN of) (NP (-NONE- *)))))"
    words, phrases = read_brackets(f"( (S (NP-SBJ (DT The) (NN dog) ) {eats} (. .) ))")
    assert words == "The dog eats a bone of .".split()
    assert [*map(tuple, phrases)] == [
        (0, 2, 1), (3, 5, 1), (5, 6, 1), (3, 6, 2), (2, 6, 3), (0, 7, 4), (0, 7, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(("tree", "sentence"), [
    ("(S (NN dog)", "a tree lacks 1 closing brackets"),
    ("(S (NN dog)))", "has '\\)' outside of its brackets"),
    ("dog", "has 'dog' outside of its brackets"),
])  # fmt: skip
def test_brackets_that_do_not_match_are_refused(tree, sentence):
    with pytest.raises(UsageError, match=sentence):
        read_brackets(tree)


@pytest.mark.skipif(not TREEBANK.is_file(), reason="the sample of the Penn Treebank is not there")
def test_the_phrases_of_a_treebank_nest_and_its_words_are_those_of_the_tagged_text():
    """A slow twin reads the words by a pattern; levels are compared with those of the phrases inside."""
    with zipfile.ZipFile(TREEBANK) as archive:
        text = "".join(
            archive.read(f"treebank/combined/wsj_000{number}.mrg").decode() for number in (1, 2, 3)
        )
    trees = [tree for tree in re.split(r"\n(?=\( ?\()", text) if tree.strip()]
    assert len(trees) > 10
    for tree in trees:
        words, phrases = read_brackets(tree)
        tagged = re.findall(r"\(([^\s()]+) ([^\s()]+)\)", tree.replace(" )", ")"))
        assert words == [word for tag, word in tagged if tag != "-NONE-"]
        for phrase in phrases:
            below = [
                other.level for other in phrases
                if phrase.first <= other.first and other.end <= phrase.end and other[:2] != phrase[:2]
            ]  # fmt: skip
            assert phrase.level >= max(below, default=0) + 1
        dense = phrase_map(len(words), phrases).dense()
        assert (dense > 0).all() and np.array_equal(dense, dense.T)  # the root has every word


def test_a_tree_that_is_deeper_than_any_sentence_s_is_refused():
    assert read_brackets("(" * 1_000 + "X a" + ")" * 1_000).words == ["a"]
    with pytest.raises(UsageError, match="a tree has more than 1,000 brackets in each other"):
        read_brackets("(" * 240_000 + "X a" + ")" * 240_000)
