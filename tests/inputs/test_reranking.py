"""What a re-ranker reads: the mention in the middle, and each candidate as if it were the only one."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.reranking import RerankingReader
from kgkit.inputs.texts import TextReader
from kgkit.types import Document, Mention
from tests.tiny_encoder import tiny_encoder

TEXTS = {7: "the dog barks", 8: "a fruit", 9: "", 10: "a big red round small cat eats fruit"}
WORDS = "a big dog barks at the small red cat that eats round fruit in the city".split()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("tiny"))), device="cpu", dtype="float32")


@pytest.fixture
def asked():
    return []


@pytest.fixture
def reader(encoder, asked):
    def texts(ids):
        asked.append([*ids])
        return [TEXTS[entity] for entity in ids]

    return RerankingReader(encoder, texts, context=6, length=5)


def document(*numbers):
    """Return the sentence with mentions of the words with these numbers."""
    ends = np.cumsum([len(word) + 1 for word in WORDS]) - 1
    spans = [(int(ends[number]) - len(WORDS[number]), int(ends[number])) for number in numbers]
    text = " ".join(WORDS)
    return Document("d", text, mentions=[Mention(start, end, text[start:end]) for start, end in spans])


def test_a_mention_stands_in_the_middle_of_what_is_read_as_far_as_the_text_goes(reader):
    pieces = reader.tokens(" ".join(WORDS)).ids
    for number in range(len(WORDS)):
        [context] = reader.contexts(document(number))
        begin = min(max(0, number - 2), len(WORDS) - 6)
        assert context.ids.tolist() == pieces[begin : begin + 6].tolist()
        assert (context.first, context.end) == (number - begin, number - begin + 1)


def test_of_a_short_text_all_is_read_and_of_a_long_mention_its_beginning(reader):
    short = Document("d", "the dog barks", mentions=[Mention(4, 7, "dog")])
    [context] = reader.contexts(short)
    assert (len(context.ids), context.first, context.end) == (3, 1, 2)
    text = " ".join(WORDS)
    [context] = reader.contexts(Document("d", text, mentions=[Mention(2, len(text), text[2:])]))
    assert context.ids.tolist() == reader.tokens(text).ids[1:7].tolist()
    assert (context.first, context.end) == (0, 6)


def test_a_mention_without_a_piece_is_not_read(reader):
    assert reader.contexts(Document("d", "the  dog", mentions=[Mention(3, 4, " ")])) == [None]
    assert reader.contexts(Document("d", "")) == []


def test_each_candidate_stands_as_the_second_text_of_a_pair(reader, encoder):
    [context] = reader.contexts(document(2))
    inputs = reader.batch([reader.sequence(context, [7, 8, 9, 10], np.zeros(4, np.float32))]).text
    pairs = TextReader(encoder, size=14)
    for number, text in enumerate(TEXTS.values(), 1):
        pair, _ = pairs.tokenize([" ".join(WORDS[:6]), " ".join(text.split()[:5])])
        keep = (inputs.branches[0] == 0) | (inputs.branches[0] == number)
        assert inputs.ids[0, keep].tolist() == pair.ids.tolist()
        assert inputs.positions[0, keep].tolist() == list(range(len(pair.ids)))
        assert inputs.types[0, keep].tolist() == pair.types.tolist()
    assert inputs.real.all() and (inputs.hooks == 1).all()


def test_shorter_rows_are_padded_in_pieces_and_in_candidates(reader):
    first, second = reader.contexts(document(2, 8))
    rows = [
        reader.sequence(first, [7, 8], np.array([-0.5, -1], np.float32)),
        reader.sequence(second, [8, 9, 10], np.array([-1, -2, -3], np.float32)),
    ]
    both = reader.batch(rows)
    assert both.candidates.tolist() == [[True, True, False], [True, True, True]]
    assert both.first.tolist() == [[-0.5, -1, 0], [-1, -2, -3]]
    for number, row in enumerate(rows):
        alone = reader.batch([row])
        count = alone.text.ids.shape[1]
        for one, padded in zip(alone.text, both.text, strict=True):
            assert one[0].tolist() == padded[number, :count].tolist()
        assert alone.mentions[0].tolist() == both.mentions[number, :count].tolist()
        assert not both.text.real[number, count:].any() and not both.mentions[number, count:].any()
        assert rows[number].length == count - 3 - len(row.texts) + 1
    assert both.mentions.nonzero().tolist() == [[0, 3], [1, 3]]


def test_a_text_is_asked_for_once(reader, asked):
    first, second = reader.contexts(document(2, 8))
    reader.sequence(first, [7, 8, 7], np.zeros(3, np.float32))
    reader.sequence(second, [8, 10], np.zeros(2, np.float32))
    reader.sequence(second, [8, 7], np.zeros(2, np.float32))
    assert asked == [[7, 8], [10]]


def test_more_than_the_encoder_reads_is_refused(encoder):
    with pytest.raises(UsageError, match=r"a context and a candidate of 25 pieces; .* reads 5 to 24"):
        RerankingReader(encoder, lambda ids: [""] * len(ids), context=14, length=8)
