"""Passages of plain text: nothing is lost, nothing is too long, and pairs are what they say they are."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.inputs import PieceTokenizer
from kgkit.inputs.passages import (
    MeasuredSentence,
    Passage,
    measure_sentences,
    passage_pairs,
    single_passages,
)
from tests.inputs.test_knowbert import encoder
from tests.tiny_encoder import WORDS

__all__ = ["encoder"]

SAME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def tokens(encoder):
    return PieceTokenizer(encoder.pieces)


@st.composite
def corpora(draw, longest=8, fewest=1):
    """Documents whose sentences all differ: their first words say which document, and which sentence."""
    lengths = draw(st.lists(st.integers(1, 7), min_size=fewest, max_size=5))
    words = st.sampled_from([*WORDS, "dogs", "cats"])
    sizes = st.integers(0, longest - 4)  # a word has two pieces at most
    return [
        [
            " ".join((WORDS[number], WORDS[place], *[draw(words) for _ in range(draw(sizes) // 2)]))
            for place in range(length)
        ]
        for number, length in enumerate(lengths)
    ]


def long_documents(tokens, count=20, sentences=60, longest=8):
    drawn = np.random.default_rng(0)
    plain = [
        [
            " ".join((WORDS[number], *drawn.choice(WORDS, drawn.integers(1, longest))))
            for _ in range(sentences)
        ]
        for number in range(count)
    ]
    return list(measure_sentences(plain, tokens, longest))


# -- sentences --------------------------------------------------------------


def test_what_is_too_long_is_cut_between_words(tokens):
    [[*found]] = measure_sentences([["the dogs of the big city", "a tree"], [""], [" "]], tokens, 4)
    assert found == [
        MeasuredSentence("the dogs of", 4),
        MeasuredSentence("the big city", 3),
        MeasuredSentence("a tree", 2),
    ]
    [[*found]] = measure_sentences([["the dogs"]], tokens, 2)
    assert found == [MeasuredSentence("the", 1), MeasuredSentence("dogs", 2)]


@given(corpora(longest=20), st.integers(2, 9))
@SAME
def test_the_parts_of_a_sentence_are_all_of_it(tokens, documents, longest):
    for plain, found in zip(documents, measure_sentences(documents, tokens, longest), strict=True):
        assert " ".join(one.text for one in found) == " ".join(plain)
        assert all(len(tokens(one.text)) == one.pieces <= longest for one in found)


def test_where_no_word_ends_it_is_cut_all_the_same(tokens):
    [found] = measure_sentences([["." * 7]], tokens, 3)
    assert found == [MeasuredSentence("...", 3), MeasuredSentence("...", 3), MeasuredSentence(".", 1)]


# -- single ones ------------------------------------------------------------


@given(corpora(), st.integers(8, 16))
@SAME
def test_each_sentence_is_in_one_passage_as_long_as_there_is_room(tokens, documents, room):
    wanted = []
    for document in documents:
        texts = [document[0]]
        for sentence in document[1:]:
            together = f"{texts[-1]} {sentence}"
            if len(tokens(together)) <= room:
                texts[-1] = together
            else:
                texts.append(sentence)
        wanted += [Passage((text,)) for text in texts]
    assert list(single_passages(measure_sentences(documents, tokens, room), room)) == wanted


# -- pairs ------------------------------------------------------------------


def places_of(text, sentences):
    """The range of sentences that *text* is."""
    for begin in range(len(sentences)):
        for end in range(begin + 1, len(sentences) + 1):
            if text == " ".join(one.text for one in sentences[begin:end]):
                return begin, end
    return None


@given(corpora(fewest=2), st.integers(16, 24), st.integers(0, 9))
@SAME
def test_pairs_follow_each_other_or_are_of_two_documents(tokens, documents, room, seed):
    known = list(measure_sentences(documents, tokens, room // 2))
    own = Counter()
    for passage in passage_pairs(known, tokens, room, np.random.default_rng(seed)):
        first, second = passage.texts
        assert sum(len(tokens(text)) for text in passage.texts) <= room
        number = WORDS.index(first.split()[0])
        begin, end = places_of(first, known[number])
        own.update((number, place) for place in range(begin, end))
        if passage.follows:
            after, last = places_of(second, known[number])
            assert after == end
            own.update((number, place) for place in range(after, last))
        else:
            assert passage.follows is False
            other = known[WORDS.index(second.split()[0])]
            assert other is not known[number]
            assert any(
                " ".join(one.text for one in other[at:]).startswith(second) for at in range(len(other))
            )
    assert own == Counter({(n, at): 1 for n, document in enumerate(known) for at in range(len(document))})


def test_half_of_the_pairs_follow_each_other_whatever_their_length(tokens):
    room = 32
    known = long_documents(tokens)
    found = list(passage_pairs(known, tokens, room, np.random.default_rng(0)))
    lengths = np.array([sum(len(tokens(text)) for text in one.texts) for one in found])
    follows = np.array([one.follows for one in found])
    assert lengths.max() <= room
    assert follows.mean() == pytest.approx(0.5, abs=0.1)
    for some in (lengths < 0.6 * room, lengths >= 0.6 * room):
        assert some.sum() > 20 and 0.2 < follows[some].mean() < 0.7
    assert 0.02 < (lengths < 0.6 * room).mean() < 0.2


def test_a_second_text_that_is_too_long_is_cut(tokens):
    documents = [[MeasuredSentence("a dog", 2)], [MeasuredSentence("the big red dogs", 5)]]
    found = {one.texts for seed in range(9)
             for one in passage_pairs(documents, tokens, 5, np.random.default_rng(seed))}  # fmt: skip
    assert ("a dog", "the big red") in found


def test_the_same_numbers_make_the_same_pairs(tokens):
    known = long_documents(tokens, count=4)
    first, again, other = (
        list(passage_pairs(known, tokens, 32, np.random.default_rng(seed))) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_of_one_document_all_pairs_follow_each_other(tokens):
    [known] = long_documents(tokens, count=1)
    found = list(passage_pairs([known], tokens, 32, np.random.default_rng(0)))
    assert all(one.follows for one in found) and len(found) > 9
    assert list(passage_pairs([[MeasuredSentence("a dog", 2)]], tokens, 32, np.random.default_rng(0))) == []
