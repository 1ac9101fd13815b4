"""What E-BERT-MLM reads: the paper's sequence, packed spans, links as entities, split documents."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.inputs.ebert_linking import EBertLinkingReader
from kgkit.inputs.entity_sequences import ENTITY
from kgkit.inputs.entity_vectors import StoredEntityVectors
from kgkit.types import CANDIDATE, LEAST_PRIOR, NO_SENSE, Candidates, Document, Mention
from tests.ebert_linking_toys import masked_lm
from tests.tiny_encoder import byte_level_encoder, tiny_encoder

TEXT = "the big city grows and the dog eats fruit"


class Vectors:
    """Vectors of ten entities: row i is i, so that entity 0 has none."""

    width = 16

    def gather(self, ids):
        return np.repeat(np.asarray(ids, np.float32)[:, None], self.width, axis=1)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return Encoder.load(str(masked_lm(tmp_path_factory.mktemp("lm"))), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def reader(encoder):
    def make(size=24, **others):
        return EBertLinkingReader(encoder, StoredEntityVectors(Vectors()), size=size, **others)

    return make


def mentioned(text, *mentions, **others):
    """Return a document; a mention is its words, and the ids of its candidates with their priors."""
    made, at = [], 0
    for words, candidates in mentions:
        start = text.index(words, at)
        rows = np.array([(entity, NO_SENSE, prior) for entity, prior in candidates.items()], CANDIDATE)
        made.append(Mention(start, start + len(words), words, Candidates(rows)))
    return Document("x", text, mentions=made, **others)


def line(encoder, masked):
    """Return a sequence as a line: word pieces, and the ids of entities in brackets."""
    entities = iter(masked.sequence.entities)
    return " ".join(
        str(list(next(entities))) if piece == ENTITY else encoder.tokenizer.convert_ids_to_tokens(piece)
        for piece in masked.sequence.ids.tolist()
    )


def test_a_span_stands_behind_the_mean_of_its_candidates_between_a_slash_and_a_star(encoder, reader):
    read = reader()
    [part] = read.read(mentioned(TEXT, ("big city", {3: 0.5, 4: 0.25, 0: 0.25})))
    [spans] = read.passes(part, part.spans)
    masked = read.mask(part, spans)
    assert line(encoder, masked) == (
        "[CLS] the [3, 4] / big city * grows and the dog eats fruit [SEP]"  # 0 has no vector
    )
    assert masked.positions == (2,)
    inputs = read.batch([masked])
    assert inputs.masks.tolist() == [[0, 2]]
    assert inputs.text.vectors[inputs.text.rows[0, 2]].tolist() == [3.5] * 16
    assert inputs.vectors[inputs.candidates[0]][:, 0].tolist() == [3, 4]
    assert np.exp(inputs.log_priors.numpy()).round(4).tolist() == [[0.5, 0.25]]


def test_a_linked_span_is_its_entity_and_has_no_words(encoder, reader):
    read = reader()
    document = mentioned(TEXT, ("big city", {3: 1.0}), ("dog", {4: 1.0, 5: 1.0}), ("fruit", {6: 1.0}))
    [part] = read.read(document)
    city, dog, fruit = part.spans
    masked = read.mask(part, [dog], [(city, 3), (fruit, 6)])
    assert line(encoder, masked) == "[CLS] the [3] grows and the [4, 5] / dog * eats [6] [SEP]"


def test_packed_spans_that_do_not_overlap_share_a_sequence(encoder, reader):
    document = mentioned(
        TEXT,
        ("city", {5: 1.0}),
        ("big city", {3: 1.0, 4: 1.0}),
        ("big city grows", {7: 1.0}),
        ("dog", {6: 1.0}),
    )
    read = reader(packed=True)
    [part] = read.read(document)
    lines = [line(encoder, read.mask(part, spans)) for spans in read.passes(part, part.spans)]
    assert lines == [
        "[CLS] the [7] / big city grows * and the [6] / dog * eats fruit [SEP]",
        "[CLS] the [3, 4] / big city * grows and the dog eats fruit [SEP]",
        "[CLS] the big [5] / city * grows and the dog eats fruit [SEP]",
    ]
    assert [len(spans) for spans in reader().passes(part, part.spans)] == [1] * 4


def test_a_sequence_has_as_many_packed_spans_as_there_is_room_for(reader):
    words = "dog cat tree city fruit"
    document = mentioned(words, *((word, {3: 1.0}) for word in words.split()))
    read = reader(size=13, packed=True)
    parts = read.read(document)
    assert [len(part.ids) for part in parts] == [2, 1, 2]  # three pieces more for each span
    for part in parts:
        [spans] = read.passes(part, part.spans)
        assert len(read.mask(part, spans).sequence) <= 13
    part = parts[0]._replace(ids=np.zeros(6, np.int64))
    assert [len(spans) for spans in read.passes(part, part.spans)] == [1, 1]


def test_a_long_document_is_split_again_and_again_at_the_sentence_end_nearest_the_middle(encoder, reader):
    sentences = ["the dog barks", "a cat eats the fruit", "it grows", "the tree is big and red", "a company"]
    text = " ".join(sentences)
    begins = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)])
    spans = [(int(begin), int(begin) + len(words)) for begin, words in zip(begins, sentences, strict=False)]
    read = reader(size=16)  # 11 pieces of text
    document = mentioned(text, ("fruit", {3: 1.0}), ("company", {4: 1.0}), sentences=spans)
    texts = [" ".join(encoder.tokenizer.convert_ids_to_tokens(part.ids)) for part in read.read(document)]
    assert texts == [" ".join(sentences[:2]), " ".join(sentences[2:])]
    small = reader(size=12)
    texts = [" ".join(encoder.tokenizer.convert_ids_to_tokens(part.ids)) for part in small.read(document)]
    assert texts == sentences


def test_without_sentences_their_ends_are_sought_and_else_a_cut_goes_through_no_mention(encoder, reader):
    read = reader(size=12)

    def parts(text, *mentions):
        return [
            " ".join(encoder.tokenizer.convert_ids_to_tokens(part.ids))
            for part in read.read(mentioned(text, *mentions))
        ]

    assert parts("the dog\n\na cat eats the fruit that grows") == [
        "the dog",
        "a cat eats the fruit that grows",
    ]
    assert len(parts("狗吃水果。城市大！狗")) == 2  # no spaces behind full stops
    assert [len(part.ids) for part in read.read(mentioned("狗吃水果。”城市大！狗"))] == [6, 5]
    plain = "the dog barks and the big red city grows"
    assert parts(plain) == ["the dog barks and", "the big red city grows"]
    assert parts(plain, ("and the big red city", {3: 1.0})) == ["the dog barks", "and the big red city grows"]


def test_a_cut_goes_through_no_word_where_there_is_another(encoder, reader):
    read = reader(size=12)
    parts = read.read(mentioned("dog dogs dogsssss trees"))  # 1, 2, 6 and 2 word pieces
    assert [len(part.ids) for part in parts] == [3, 6, 2]
    assert [len(part.ids) for part in read.read(mentioned("dogsssssssss"))] == [5, 5]


def test_a_mention_longer_than_what_is_read_is_in_no_part_and_every_word_in_exactly_one(reader):
    text = " ".join(["dog", "cat", "tree", "city"] * 10)
    read = reader(size=12)
    long = mentioned(text, (text, {3: 1.0}), ("tree", {4: 1.0}))
    parts = read.read(long)
    assert [span.mention for part in parts for span in part.spans] == [1]
    assert sum(len(part.ids) for part in parts) == 40
    assert max(len(part.ids) for part in parts) <= 7
    assert [part.spans for part in read.read(Document("x", ""))] == [()]


def test_a_mention_without_a_vector_is_not_read_and_a_prior_of_zero_is_no_infinity(reader):
    [part] = reader().read(mentioned(TEXT, ("dog", {0: 1.0}), ("fruit", {3: 0.0})))
    [fruit] = part.spans
    assert fruit.mention == 1
    assert np.exp(fruit.log_priors) == pytest.approx([LEAST_PRIOR])


def test_slash_and_star_are_cut_as_between_words(tmp_path):
    folder = byte_level_encoder(tmp_path, words=("/", "*"))
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    reader = EBertLinkingReader(encoder, StoredEntityVectors(Vectors()), size=24)
    assert encoder.tokenizer.convert_ids_to_tokens([reader.slash, reader.star]) == ["Ġ/", "Ġ*"]


def test_what_cannot_mark_spans_is_refused(tmp_path, encoder, reader):
    without = Encoder.load(
        str(tiny_encoder(tmp_path, words=("/",), mask=True)), device="cpu", dtype="float32"
    )
    with pytest.raises(UsageError, match=r"no word piece \*"):
        EBertLinkingReader(without, StoredEntityVectors(Vectors()), size=20)
