"""An encoder from nothing: its tokenizer and its weights."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.encoder import Encoder
from kgkit.encoder.fresh import EncoderShape, fresh_encoder, read_vocabulary
from kgkit.errors import NotThere, SourceError, UsageError
from tests.tiny_encoder import WORDS

SPECIAL = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SHAPE = EncoderShape(layers=2, width=16, heads=2, positions=32)


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL, *WORDS, "##s", "我", "喜", "欢", "e"]) + "\n", encoding="utf-8")
    return path


def test_texts_are_cut_as_bert_cuts_them(vocabulary, tmp_path):
    encoder = Encoder.load(str(fresh_encoder(tmp_path / "new", vocabulary, SHAPE)), device="cpu")
    assert (encoder.width, encoder.model.config.num_hidden_layers, encoder.max_length) == (16, 2, 32)
    assert encoder.model.config.intermediate_size == 64
    ids = encoder.tokenizer("Dogs 我喜欢 É", "barks")["input_ids"]
    pieces = encoder.tokenizer.convert_ids_to_tokens(ids)
    assert pieces == ["[CLS]", "dog", "##s", "我", "喜", "欢", "e", "[SEP]", "barks", "[SEP]"]
    assert encoder.tokenizer.mask_token_id == 5 and encoder.tokenizer.pad_token_id == 0
    vocabulary.write_text(vocabulary.read_text() + "Cat\n")
    cased = fresh_encoder(tmp_path / "cased", vocabulary, SHAPE)
    told = Encoder.load(str(cased), device="cpu").tokenizer("Dogs dogs")["input_ids"]
    assert told[1] == 2 and told[2] == 6 + WORDS.index("dog")


def test_one_seed_draws_the_same_weights_and_leaves_others_alone(vocabulary, tmp_path):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    weights = [
        Encoder.load(str(fresh_encoder(tmp_path / str(place), vocabulary, SHAPE, seed)), device="cpu")
        .model.embeddings.word_embeddings.weight
        for place, seed in enumerate((1, 1, 2))
    ]  # fmt: skip
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_a_file_that_is_no_vocabulary_is_told(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\na\na\n")
    with pytest.raises(SourceError, match=r"vocab\.txt:4: the piece is that of line 3 too"):
        read_vocabulary(path)
    path.write_text("[PAD]\n[UNK]\na\n")
    with pytest.raises(SourceError, match=r"no vocabulary of BERT: it lacks \[CLS\], \[SEP\], \[MASK\]"):
        read_vocabulary(path)
    with pytest.raises(NotThere):
        read_vocabulary(tmp_path / "no.txt")
    with pytest.raises(UsageError, match="3 heads do not divide a width of 16"):
        EncoderShape(width=16, heads=3)
    with pytest.raises(UsageError, match="layers is 0; it is 1 or more"):
        EncoderShape(layers=0)
