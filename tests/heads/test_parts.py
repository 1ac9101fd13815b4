"""What heads are made of: the layers of an encoder."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import transformers

from kgkit.errors import UsageError
from kgkit.heads.parts import layers_of

SHAPE = {"vocab_size": 30, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}


def test_the_layers_of_an_encoder_are_apart_from_its_embeddings():
    config = transformers.BertConfig(**SHAPE, num_hidden_layers=3)
    model = transformers.BertForMaskedLM(config)
    embeddings, layers = layers_of(model)
    assert embeddings is model.bert.embeddings and layers == [*model.bert.encoder.layer] and len(layers) == 3


def test_an_encoder_that_computes_one_layer_again_and_again_is_refused():
    config = transformers.AlbertConfig(**SHAPE, embedding_size=8, num_hidden_layers=3)
    with pytest.raises(UsageError, match="AlbertModel has no 3 layers of its own to stand between"):
        layers_of(transformers.AlbertModel(config))
