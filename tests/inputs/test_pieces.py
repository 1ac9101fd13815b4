"""Word pieces of a word inside a text, by tokenizers of several kinds."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoder
from kgkit.inputs import PieceTokenizer
from tests.tiny_encoder import tiny_encoder


def byte_tokenizer(*, trim_offsets=True):
    """Return a tokenizer of bytes, as RoBERTa's, with the word `dog` inside a text as one piece."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("d", "o"), ("Ġ", "do"), ("Ġdo", "g")]
    vocabulary = {piece: n for n, piece in enumerate([*letters, "do", "Ġdo", "Ġdog"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    return tokenizer


@pytest.mark.parametrize("trim_offsets", [True, False])
def test_a_word_inside_a_text_has_the_pieces_that_it_has_behind_white_space(trim_offsets):
    tokenizer = byte_tokenizer(trim_offsets=trim_offsets)
    tokens = PieceTokenizer(tokenizer)
    assert [*map(tokenizer.id_to_token, tokens("dog").ids)] == ["do", "g"]
    assert [*map(tokenizer.id_to_token, tokens.inside("dog"))] == ["Ġdog"]
    assert tokens.inside("dog") == tuple(tokens("the dog").ids[-1:])


def test_word_pieces_of_a_word_are_the_same_everywhere(tmp_path):
    encoder = Encoder.load(str(tiny_encoder(tmp_path)), device="cpu", dtype="float32")
    tokens = PieceTokenizer(encoder.pieces)
    for word in ("dogs", "cat", "unheard", ""):
        assert list(tokens.inside(word)) == list(tokens(word).ids)
