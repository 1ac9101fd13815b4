"""Small things to train an E-BERT-MLM on: a masked language model, and what KnowBert's linkers learn from."""

from pathlib import Path

import torch
from transformers import AutoConfig, BertForMaskedLM

from kgkit.encoder import Encoder
from kgkit.kb import KnowledgeBase
from tests.ebert_toys import save_map
from tests.knowbert_toys import with_vectors
from tests.tiny_encoder import tiny_encoder


def masked_lm(folder: Path, *, seed: int = 0, tied: bool = True) -> Path:
    """Write a tiny masked language model into *folder*, whose tokenizer has a slash and a star."""
    tiny_encoder(folder, seed=seed, mask=True, words=("/", "*"))
    config = AutoConfig.from_pretrained(folder)
    config.tie_word_embeddings = tied
    torch.manual_seed(seed)
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def mapped_kb(home: Path, name: str, encoder: Encoder) -> KnowledgeBase:
    """Build `words` or `places` in *home*, with the vectors `text` and a map that changes nothing."""
    kb = with_vectors(home, name, encoder)
    save_map(kb.vectors("text"), encoder)
    return kb
