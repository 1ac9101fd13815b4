"""Vectors of mentions: those that reading each window alone gives, whatever stands in the same batch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoder  # noqa: E402
from kgkit.errors import UsageError  # noqa: E402
from kgkit.inputs import PieceTokenizer, SpanConfig, SpanReader  # noqa: E402
from kgkit.types import Document, Mention  # noqa: E402
from tests.tiny_encoder import WORDS, tiny_encoder  # noqa: E402


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("tiny"))), device="cpu", dtype="float32")


def document(words, name="d", every=1, sentence=5):
    text = " ".join(words)
    tokens, at = [], 0
    for word in words:
        tokens.append((at, at + len(word)))
        at += len(word) + 1
    sentences = [
        (tokens[i][0], tokens[min(i + sentence, len(tokens)) - 1][1]) for i in range(0, len(tokens), sentence)
    ]
    mentions = [Mention(start, end, text[start:end]) for start, end in tokens[::every]]
    return Document(name, text, sentences, tokens, mentions)


def read_alone(encoder, text, span, layers):
    """The slow twin: one text, as Hugging Face's tokenizer has it, and the mean over the span's pieces."""
    made = encoder.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = made.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        states = encoder.model(**made, output_hidden_states=True).hidden_states
    inside = [place for place, (a, b) in enumerate(offsets) if a < span[1] and b > span[0] and b > a]
    return torch.cat([states[layer][0, inside].mean(0) for layer in layers]).numpy()


def test_a_sentence_alone_is_read_as_the_tokenizer_reads_it(tiny):
    given = document(WORDS[:12])
    config = SpanConfig(layers=(-1, 1), size=16, context=0, scope="sentence")
    [(_, found)] = SpanReader(tiny, config)([given])
    for mention, vector in zip(given.mentions, found, strict=True):
        start, end = next(pair for pair in given.sentences if pair[0] <= mention.start < pair[1])
        span = mention.start - start, mention.end - start
        expected = read_alone(tiny, given.text[start:end], span, (-1, 1))
        np.testing.assert_allclose(vector, expected, atol=2e-5)


def test_what_stands_in_the_same_batch_changes_nothing(tiny):
    several = [document(WORDS[at : at + size], f"d{at}") for at, size in ((0, 3), (5, 17), (2, 1), (4, 30))]
    reader = SpanReader(tiny, SpanConfig(size=20, context=4))
    together = [vectors for _, vectors in reader(several)]
    for given, vectors in zip(several, together, strict=True):
        [(_, alone)] = reader([given])
        np.testing.assert_allclose(vectors, alone, atol=2e-5)


def test_documents_without_mentions_and_mentions_without_pieces_have_no_vectors(tiny):
    empty = Document("e", "", mentions=[])
    blank = Document("b", "dog   cat", mentions=[Mention(4, 5, " "), Mention(0, 3, "dog")])
    found = list(SpanReader(tiny, SpanConfig(size=20, context=2))([empty, blank, Document("u", "dog")]))
    (_, none), (_, vectors), (_, unasked) = found
    assert none.shape == (0, tiny.width)
    assert unasked.shape == (0, tiny.width)
    assert not vectors[0].any()
    assert vectors[1].any()


def test_a_layer_or_a_window_that_is_not_there_is_refused(tiny):
    with pytest.raises(UsageError, match=r"do not fit into the 24 that .*: choose a size of at most 22"):
        SpanReader(tiny, SpanConfig(size=24))
    reader = SpanReader(tiny, SpanConfig(layers=(-90,), size=20, context=2))
    with pytest.raises(UsageError, match=r"layers are \(-90,\)"):
        list(reader([document(WORDS[:3])]))


def test_offsets_are_those_of_the_text_whatever_lowercasing_does(tiny):
    text = "İİ dog"
    pieces = PieceTokenizer(tiny.pieces, lowercase=True)(text)
    first, last = pieces.within(3, 6)
    assert text[pieces.starts[first] : pieces.ends[last - 1]] == "dog"
