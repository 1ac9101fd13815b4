"""The head of E-BERT-MLM: equation (2) by hand, what is frozen, and what is refused."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import save_file
from transformers import (
    AutoModelForPreTraining,
    BertForMaskedLM,
    BertLMHeadModel,
    BertModel,
    GPT2LMHeadModel,
    RobertaConfig,
    RobertaForMaskedLM,
    T5ForConditionalGeneration,
)

from kgkit.errors import DamagedModel, UsageError
from kgkit.heads import EBert, EBertConfig, EBertInputs
from kgkit.heads.ebert_linker import EBertLinker, EBertLinkerConfig, EBertLinkerInputs
from kgkit.heads.settings import WEIGHTS
from tests.ebert_linking_toys import masked_lm
from tests.tiny_encoder import WIDTH

STORED = 5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return masked_lm(tmp_path_factory.mktemp("lm"))


def linker_of(model, *, null=True):
    weight = torch.randn(WIDTH, STORED, generator=generator())
    ebert = EBert(model.eval(), EBertConfig(stored=STORED, width=WIDTH), weight)
    return EBertLinker(ebert, EBertLinkerConfig(width=WIDTH, null=null), generator(1)).eval()


def inputs(vocabulary=30):
    """Two sequences of seven pieces; three masks; the mean of two candidates stands at the first."""
    drawn = generator(2)
    ids = torch.randint(4, vocabulary, (2, 7), generator=drawn)
    rows = torch.full((2, 7), -1)
    rows[0, 2] = 0
    vectors = torch.randn(4, STORED, generator=drawn)
    text = EBertInputs(ids, torch.ones(2, 7, dtype=torch.bool), rows, vectors[:2].mean(0, keepdim=True))
    candidates = torch.tensor([[0, 1, -1], [2, -1, -1], [3, 1, 0]])
    log_priors = torch.randn(3, 3, generator=drawn)
    return EBertLinkerInputs(text, torch.tensor([[0, 2], [1, 1], [1, 5]]), vectors, candidates, log_priors)


@torch.no_grad()
@pytest.mark.parametrize("around", [BertForMaskedLM, AutoModelForPreTraining])
def test_scores_are_those_of_the_paper_by_hand(folder, around):
    model = around.from_pretrained(folder)
    linker, batch = linker_of(model), inputs()
    scores = linker(batch)
    words = model.get_input_embeddings()(batch.text.ids)
    weight = linker.ebert.weight
    words[0, 2] = weight @ batch.text.vectors[0]
    hidden = model.base_model(inputs_embeds=words, attention_mask=torch.ones(2, 7)).last_hidden_state
    transformed = model.cls.predictions.transform(hidden)
    for n, (row, position) in enumerate(batch.masks.tolist()):
        read = transformed[row, position]
        for c, candidate in enumerate(batch.candidates[n].tolist()):
            expected = (weight @ batch.vectors[candidate]) @ read + batch.log_priors[n, c]
            assert float(scores[n, c]) == (
                -np.inf if candidate < 0 else pytest.approx(float(expected), abs=1e-4)
            )
        assert float(scores[n, -1]) == pytest.approx(float(linker.null_vector @ read), abs=1e-4)


@torch.no_grad()
def test_a_word_piece_in_the_place_of_an_entity_scores_as_the_masked_language_model_does(folder):
    model = BertForMaskedLM.from_pretrained(folder).eval()
    table = model.get_input_embeddings().weight
    ebert = EBert(model, EBertConfig(stored=WIDTH, width=WIDTH), torch.eye(WIDTH))
    linker = EBertLinker(ebert, EBertLinkerConfig(width=WIDTH, null=False)).eval()
    ids = torch.tensor([[2, 5, 6, 7, 3]])
    none = torch.zeros(0, WIDTH)
    text = EBertInputs(ids, ids > 0, torch.full_like(ids, -1), none)
    words = torch.tensor([[8, 9, 10]])
    bias = model.cls.predictions.bias[words]
    batch = EBertLinkerInputs(
        text, torch.tensor([[0, 2]]), table[words[0]].detach(), torch.tensor([[0, 1, 2]]), bias.detach()
    )
    logits = model(input_ids=ids).logits[0, 2, words[0]]
    assert linker(batch)[0].tolist() == pytest.approx(logits.tolist(), abs=1e-5)
    assert model(input_ids=ids).logits.shape == (1, 5, len(table))  # the hooks leave other calls alone


def test_another_architecture_of_masked_language_models_links_too():
    config = RobertaConfig(
        vocab_size=40, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=20, pad_token_id=1,
    )  # fmt: skip
    assert linker_of(RobertaForMaskedLM(config))(inputs()).shape == (3, 4)


def test_the_null_entity_begins_as_published_and_without_one_there_is_no_score_of_it(folder):
    linker = linker_of(BertForMaskedLM.from_pretrained(folder))
    assert 0 < float(linker.null_vector.detach().abs().max()) <= 0.02
    assert float(linker.null_bias.detach()) == 0
    assert linker(inputs()).shape == (3, 4)
    bare = linker_of(BertForMaskedLM.from_pretrained(folder), null=False)
    assert bare(inputs()).shape == (3, 3)
    assert not hasattr(bare, "null_vector")


def test_the_tables_are_frozen_and_the_rest_is_trained(folder):
    linker = linker_of(BertForMaskedLM.from_pretrained(folder)).train()
    scores = linker(inputs())
    torch.log_softmax(scores, -1)[:, 0].sum().backward()
    trained = {name for name, weight in linker.named_parameters() if weight.grad is not None}
    assert not any("word_embeddings" in name or "decoder" in name for name in trained)
    assert {"null_vector", "null_bias"} < trained
    assert any("position_embeddings" in name for name in trained)
    assert any("transform.dense" in name for name in trained)
    assert all(torch.isfinite(weight.grad).all() for weight in linker.parameters() if weight.grad is not None)
    assert not linker.ebert.weight.requires_grad


def test_a_model_without_a_decoder_or_with_an_untied_one_is_refused(folder, tmp_path):
    with pytest.raises(UsageError, match="predicts no masked words"):
        linker_of(BertModel.from_pretrained(folder))
    untied = BertForMaskedLM.from_pretrained(masked_lm(tmp_path, tied=False))
    with pytest.raises(UsageError, match="weights of its own"):
        linker_of(untied)


@pytest.mark.parametrize("around", [GPT2LMHeadModel, BertLMHeadModel, T5ForConditionalGeneration])
def test_a_model_that_generates_words_is_refused(around):
    config = around.config_class(vocab_size=30, hidden_size=WIDTH, num_attention_heads=2, num_hidden_layers=1)
    config.bos_token_id, config.eos_token_id, config.is_decoder = 1, 2, around is BertLMHeadModel
    model = around(config)
    message = f"{around.__name__} generates words, and predicts no masked words"
    with pytest.raises(UsageError, match=f"{message}.*: begin as a masked language model"):
        linker_of(model)


@pytest.mark.parametrize("null", [True, False])
def test_a_head_survives_the_disk(folder, tmp_path, null):
    linker = linker_of(BertForMaskedLM.from_pretrained(folder), null=null)
    linker.save_pretrained(tmp_path)
    loaded = EBertLinker.from_pretrained(tmp_path, device="cpu")
    assert all(torch.equal(weight, loaded.state_dict()[name]) for name, weight in linker.state_dict().items())
    torch.testing.assert_close(loaded(inputs()), linker(inputs()))
    save_file({"null_vector": torch.zeros(99)}, tmp_path / "null" / WEIGHTS)
    with pytest.raises(DamagedModel):
        EBertLinker.from_pretrained(tmp_path, device="cpu")
