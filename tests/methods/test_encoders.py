"""The encoder that a method begins as: its rows of special pieces."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.encoder import Encoder
from kgkit.methods.encoders import add_pieces
from tests.tiny_encoder import tiny_encoder

PIECES = ["[E]", "[/E]"]


def test_rows_of_special_pieces_are_drawn_from_the_seed_and_no_other_state_changes(tmp_path, monkeypatch):
    """A GPU's random state would not be restored, so nothing may seed all devices."""
    folder = str(tiny_encoder(tmp_path))
    encoder, expected = (Encoder.load(folder, device="cpu", dtype="float32") for _ in range(2))
    state = torch.get_rng_state()
    monkeypatch.setattr(torch, "manual_seed", lambda _: pytest.fail("all devices were seeded"))
    add_pieces(encoder, PIECES, 3)
    monkeypatch.undo()
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(3)
    expected.tokenizer.add_tokens(PIECES, special_tokens=True)
    expected.model.resize_token_embeddings(len(expected.tokenizer))
    tables = [part.model.get_input_embeddings().weight for part in (encoder, expected)]
    assert torch.equal(*tables) and len(tables[0]) == len(encoder.tokenizer)
