"""What KAM-BERT reads: cells of maps at the pieces of their words, however texts are cut or padded."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.building import Alias, Entity, Triple
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.entity_spans import EntitySpan
from kgkit.inputs.kambert import WORDS, AnnotatedText, KamBertReader, MapBuilder, WordTextReader
from kgkit.inputs.maps import PhraseSpan
from kgkit.text import fold, token_spans
from tests.pmi_toys import PMI
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder

MAPS = ("entity", "phrase", "correlation")
VOCABULARY = ["the", "dog", "cat", "barks", "eats", "fruit", "tree", "dogs", "catss", "unheard", "."]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), words=("bone", "mi", "##lk"), mask=True)
    return Encoder.load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    records = [
        *(Entity(name, name) for name in ("dog", "cat", "fruit")), Triple("dog", "likes", "cat"),
        Alias("dog", "dog"),
    ]  # fmt: skip
    with build(tmp_path_factory.mktemp("home"), records, name="pets") as kb:
        yield kb


@st.composite
def annotated(draw):
    """A text of the vocabulary with names and phrases at its words."""
    words = draw(st.lists(st.sampled_from(VOCABULARY), max_size=7))
    text = " ".join(words)
    spans = token_spans(text)

    def ranges():
        bounds = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=3))
        chosen = [sorted(pair) for pair in bounds if max(pair) < len(spans)]
        return [(spans[first][0], spans[last][1]) for first, last in chosen]

    phrases = [PhraseSpan(*span, draw(st.integers(1, 3))) for span in ranges()]
    return AnnotatedText(text, names=ranges(), phrases=phrases)


def slow_value(name, texts, first, second, auxiliary):
    """Return the value of a map between two words, each (text, word), or (None, auxiliary word)."""

    def word_of(word):
        number, index = word
        if number is None:
            return auxiliary[index]
        return fold(texts[number].text[slice(*token_spans(texts[number].text)[index])])

    if name == "correlation":
        return 0.0 if first == second else float(PMI.values([word_of(first)], [word_of(second)])[0, 0])
    if first[0] is None or first[0] != second[0]:
        return 0.0
    text = texts[first[0]]
    bounds = [token_spans(text.text)[index] for _, index in (first, second)]
    spans = [(*span, 1) for span in text.names] if name == "entity" else text.phrases
    levels = [
        level for begin, end, level in spans if all(start < end and begin < stop for start, stop in bounds)
    ]
    return 1 / min(levels) if levels else 0.0


def owners(text, texts, tokens, auxiliary, length):
    """Return the word of each position of texts, of auxiliary words; None for special pieces."""
    positions = [None] * length
    words = text.text.mentions[WORDS]
    numbers = [
        (number, index) for number, own in enumerate(texts) for index in range(len(token_spans(own.text)))
    ]
    for (begin, end), index in zip(words.spans.tolist(), words.indices.tolist(), strict=True):
        positions[begin:end] = [numbers[index]] * (end - begin)
    positions.append(None)  # the empty place
    for index, word in enumerate(auxiliary):
        positions += [(None, index)] * len(tokens(word).ids)
    return positions


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(annotated(), min_size=1, max_size=2), min_size=1, max_size=3), st.integers(0, 2))
def test_pieces_have_what_their_words_have(encoder, batch, auxiliary):
    reader = KamBertReader(encoder, MapBuilder(MAPS, PMI, auxiliary=auxiliary), size=11)
    texts = [reader.read(own) for own in batch]
    inputs = reader.batch(texts)
    length, behind = inputs.ids.shape[1], inputs.auxiliary.shape[1]
    dense = torch.zeros(len(batch), len(MAPS), length + behind, length + behind)
    assert len({tuple(cell) for cell in inputs.cells.tolist()}) == len(inputs.cells), "each cell comes once"
    dense[tuple(inputs.cells.T)] = inputs.values
    for row, (text, own) in enumerate(zip(texts, batch, strict=True)):
        positions = owners(text, own, reader.tokens, text.maps.auxiliary, length)
        count = len(positions) - length if text.maps.auxiliary else 0
        assert inputs.auxiliary_real[row].sum() == max(0, count - 1)
        assert not dense[row, :, length + count :].any() and not dense[row, :, :, length + count :].any()
        for number, name in enumerate(MAPS):
            for i, first in enumerate(positions[: length + count]):
                for j, second in enumerate(positions[: length + count]):
                    value = 0.0
                    if first is not None and second is not None:
                        value = slow_value(name, own, first, second, text.maps.auxiliary)
                    assert float(dense[row, number, i, j]) == pytest.approx(value), (name, i, j)


def test_a_name_that_the_end_goes_through_keeps_the_pieces_that_are_read(encoder, caplog):
    reader = KamBertReader(encoder, MapBuilder(["entity"]), size=6)
    text = AnnotatedText("the dogs eats fruit tree", names=[(4, 19)])  # dog ##s, eats, fruit
    with caplog.at_level(logging.WARNING):
        inputs = reader.batch([reader.read([text])])
    assert encoder.tokenizer.convert_ids_to_tokens(inputs.ids[0]) == [
        "[CLS]", "the", "dog", "##s", "eats", "[SEP]",
    ]  # fmt: skip
    assert sorted(inputs.cells[:, 2:].tolist()) == [[i, j] for i in (2, 3, 4) for j in (2, 3, 4)]
    assert len(caplog.records) == 1


def test_entities_of_a_pair_are_neighbours_in_a_knowledge_base_in_either_direction(encoder, kb):
    dog, cat, fruit = (int(kb.id(name)) for name in ("dog", "cat", "fruit"))
    reader = KamBertReader(encoder, MapBuilder(["knowledge"], kbs={"pets": kb}), size=16)
    first = AnnotatedText(
        "a dog eats fruit", links={"pets": [EntitySpan(2, 5, dog), EntitySpan(11, 16, fruit)]}
    )
    second = AnnotatedText("two cat", links={"pets": [EntitySpan(4, 7, cat)], "films": [EntitySpan(0, 3, 0)]})
    inputs = reader.batch([reader.read([first, second])])
    tokens = encoder.tokenizer.convert_ids_to_tokens(inputs.ids[0])
    joined = {tokens[i]: tokens[j] for i, j in inputs.cells[:, 2:].tolist()}
    assert joined == {"dog": "cat", "cat": "dog"} and inputs.values.tolist() == [1.0, 1.0]


def test_words_are_those_of_both_texts_with_the_pieces_that_they_have(encoder):
    reader = WordTextReader(encoder, size=16)
    [pair] = reader([("dogs \u200b eats", "a cat")])
    words = pair.mentions[WORDS]
    tokens = encoder.tokenizer.convert_ids_to_tokens(pair.ids.tolist())
    assert [tokens[begin:end] for begin, end in words.spans.tolist()] == [
        ["dog", "##s"],
        ["eats"],
        ["a"],
        ["cat"],
    ]
    spans = token_spans("dogs \u200b eats")
    expected = [index for index, (begin, _) in enumerate(spans) if begin != 5]
    assert words.indices.tolist() == [*expected, len(spans), len(spans) + 1]


@pytest.mark.parametrize("texts", [(), ("a", "b", "c")])
def test_more_texts_than_two_or_none_are_refused(encoder, texts):
    reader = KamBertReader(encoder, MapBuilder(()), size=16)
    with pytest.raises(UsageError, match=f"a text or a pair of texts is read, not {len(texts)} texts"):
        reader.read([AnnotatedText(text) for text in texts])


# -- long texts, many auxiliary words ---------------------------------------


class CountingTable:
    """A table that notes how many words it is asked for."""

    def __init__(self, auxiliary=()):
        self.auxiliary, self.sizes = auxiliary, []

    def values(self, words, others=None):
        self.sizes.append(len(words))
        return PMI.values(words, others)

    def strongest(self, words, k=10):
        self.sizes.append(len([*words]))
        return [(word, 1.0) for word in self.auxiliary][:k] or PMI.strongest(words, k)


def test_maps_are_made_of_the_words_that_are_read(encoder):
    table = CountingTable()
    reader = KamBertReader(encoder, MapBuilder(MAPS, table, auxiliary=2), size=8)
    read, more = "the dog barks . ", "cat eats fruit . " * 5_000
    names = [(0, 7), (8, 23), (30, 40)]
    text = reader.read([AnnotatedText(read + more, names=names, phrases=[PhraseSpan(0, 80_000, 2)])])
    assert reader.words_read((read + more,)).tolist() == [0, 1, 2, 3, 4, 5]
    assert table.sizes == [6, 8]
    inputs = reader.batch([text])
    alone = reader.batch(
        [reader.read([AnnotatedText("the dog barks . cat eats", names=[(0, 7), (8, 23)],
                                    phrases=[PhraseSpan(0, 24, 2)])])]
    )  # fmt: skip
    assert text.maps.size == 4 + 4 * 5_000
    for field, other in zip(inputs, alone, strict=True):
        assert torch.equal(field, other)
    assert reader.words_read(("the dog", "barks " * 9)).tolist() == [0, 1, 2, 3, 4]


def test_words_without_a_piece_cost_nothing(encoder):
    """Zero-width spaces are words, and the tokenizer passes over them."""
    table = CountingTable()
    reader = KamBertReader(encoder, MapBuilder(MAPS, table, auxiliary=2), size=8)
    blank = "\u200b " * 2_000
    text = reader.read([AnnotatedText(f"{blank}dog barks", names=[(0, len(blank) + 3)])])
    assert table.sizes == [2, 4] and reader.words_read((f"{blank}dog",)).tolist() == [2_000]
    alone = reader.read([AnnotatedText("dog barks", names=[(0, 3)])])
    for field, other in zip(reader.batch([text]), reader.batch([alone]), strict=True):
        assert torch.equal(field, other)


def test_a_pair_of_long_texts_keeps_the_words_of_both(encoder):
    reader = KamBertReader(encoder, MapBuilder(MAPS, PMI), size=9)
    first, second = "dog cat " * 2_000, "barks eats fruit " * 2_000
    text = reader.read([AnnotatedText(first, names=[(0, 7)]), AnnotatedText(second, names=[(0, 10)])])
    short = reader.read([
        AnnotatedText("dog cat dog", names=[(0, 7)]), AnnotatedText("barks eats fruit", names=[(0, 10)])
    ])  # fmt: skip
    for field, other in zip(reader.batch([text]), reader.batch([short]), strict=True):
        assert torch.equal(field, other)


def test_auxiliary_words_have_no_more_pieces_than_texts(encoder):
    table = CountingTable(("bone", "s" * 5_000, "dogsss", "milk", "cat", "tree", "fruit", "eats"))
    reader = KamBertReader(encoder, MapBuilder(("correlation",), table, auxiliary=8), size=8)
    assert reader.tokens.inside("dogsss").__len__() == 4
    text = reader.read([AnnotatedText("the dog")])
    inputs = reader.batch([text])
    tokens = encoder.tokenizer.convert_ids_to_tokens(inputs.auxiliary[0][1:])
    assert tokens == ["bone", "[UNK]", "dog", "##s", "##s", "##s", "mi", "##lk"]
