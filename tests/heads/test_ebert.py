"""E-BERT beside a plain loop: entities among word pieces, the encoder as it is, weights on disk."""

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from kgkit.errors import DamagedModel, UsageError  # noqa: E402
from kgkit.heads import EBert, EBertConfig, EBertInputs  # noqa: E402

WIDTH, WORDS, STORED = 16, 40, 5


def bert(kind="Bert", model="Model", **others):
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, initializer_range=0.5, **others,
    )  # fmt: skip
    return getattr(transformers, f"{kind}{model}")(config).eval()


def head(model=None, **config):
    model = bert() if model is None else model
    weight = torch.randn(WIDTH, STORED, generator=torch.Generator().manual_seed(1))
    return EBert(model, EBertConfig(stored=STORED, width=WIDTH, **config), weight).eval()


def inputs(rows, ids=None):
    """Sequences of seven word pieces, with vectors where *rows* says so."""
    drawn = torch.Generator().manual_seed(2)
    rows = torch.tensor(rows)
    ids = torch.randint(5, WORDS, rows.shape, generator=drawn) if ids is None else ids
    count = int(rows.max()) + 1
    vectors = torch.randn(count, STORED if count else 0, generator=drawn)
    return EBertInputs(ids, torch.ones_like(rows, dtype=torch.bool), rows, vectors, torch.zeros_like(rows))


def plain(model, read):
    return model(input_ids=read.ids, attention_mask=read.real.long(), token_type_ids=read.types)


def test_without_an_entity_it_is_the_plain_encoder_bit_for_bit():
    model, read = bert(), inputs([[-1] * 7, [-1] * 7])
    for ebert in (head(model), EBert(model)):
        with torch.no_grad():
            assert torch.equal(ebert(read).last_hidden_state, plain(model, read).last_hidden_state)


def test_a_text_without_an_entity_is_read_as_plain_beside_one_with_entities():
    model = bert()
    both = inputs([[-1] * 7, [-1, 0, -1, 1, -1, -1, -1]])
    with torch.no_grad():
        hidden = head(model)(both).last_hidden_state
        words = plain(model, both).last_hidden_state
    assert torch.equal(hidden[0], words[0]) and not torch.allclose(hidden[1], words[1])


def test_an_entity_takes_the_place_of_a_word_piece_before_positions_are_added():
    ebert, read = head(), inputs([[-1, 0, -1, 1, 0, -1, -1]])
    model, weight = ebert.model, ebert.weight
    rows = []
    for position, row in enumerate(read.rows[0].tolist()):  # the slow twin
        word = model.embeddings.word_embeddings.weight[read.ids[0, position]]
        rows.append(word if row < 0 else weight @ read.vectors[row])
    summed = (
        torch.stack(rows)
        + model.embeddings.position_embeddings.weight[:7]
        + model.embeddings.token_type_embeddings.weight[0]
    )
    embedded = model.embeddings.LayerNorm(summed)[None]
    wanted = model.encoder(embedded).last_hidden_state
    torch.testing.assert_close(ebert(read).last_hidden_state, wanted)


def test_the_word_piece_under_an_entity_is_not_read():
    ebert, rows = head(), [[-1, 0, -1, -1, -1, -1, -1]]
    read = inputs(rows)
    other = read._replace(ids=read.ids.clone())
    other.ids[0, 1] = 3
    assert torch.equal(ebert(read).last_hidden_state, ebert(other).last_hidden_state)


@pytest.mark.parametrize("kind", ["Roberta", "MPNet", "DistilBert"])
def test_other_encoders_read_entities_too(kind):
    names = {"dim": WIDTH, "n_heads": 2, "n_layers": 2, "hidden_dim": 32} if kind == "DistilBert" else {}
    model = bert(kind, **names)
    ebert, read = head(model), inputs([[-1] * 7, [-1, 0, -1, -1, -1, -1, -1]])._replace(types=None)
    with torch.no_grad():
        words = model(input_ids=read.ids, attention_mask=read.real.long()).last_hidden_state
        hidden = ebert(read).last_hidden_state
    torch.testing.assert_close(hidden[0], words[0])
    assert not torch.allclose(hidden[1], words[1])


@pytest.mark.parametrize("kind", ["Roberta", "XLMRoberta", "Camembert", "MPNet"])
def test_a_padding_piece_that_a_text_has_moves_no_position_beside_entities(kind):
    """These pass over such pieces where they count positions; an entity stands on one, and is counted."""
    model = bert(kind, pad_token_id=1)
    read = inputs([[-1] * 7, [-1] * 7, [-1, 0, -1, -1, -1, -1, -1]])._replace(types=None)
    read.ids[0, 2] = read.ids[2, 1] = read.ids[2, 4] = 1
    read.ids[1, 5:] = 1
    read.real[1, 5:] = False  # a shorter text
    word = read._replace(ids=read.ids.clone(), rows=torch.full_like(read.rows, -1), vectors=read.vectors[:0])
    word.ids[2, 1] = 8
    ebert = EBert(model, EBertConfig(stored=WIDTH, width=WIDTH), torch.eye(WIDTH)).eval()
    vectors = model.get_input_embeddings().weight[8:9].detach()  # the entity is read as the word piece 8
    with torch.no_grad():
        words = model(input_ids=word.ids, attention_mask=word.real.long()).last_hidden_state
        hidden = ebert(read._replace(vectors=vectors)).last_hidden_state
        alone = ebert(EBertInputs(*(part[:1] for part in word[:3]), vectors[:0])).last_hidden_state
        own = torch.zeros(3, 7, dtype=torch.long)
        chosen = ebert(read._replace(vectors=vectors), position_ids=own).last_hidden_state
    torch.testing.assert_close(alone[0], words[0])
    assert torch.equal(hidden[read.real], words[read.real])
    assert not torch.allclose(chosen, hidden)


def test_a_masked_language_model_guesses_words_among_entities():
    ebert = head(bert(model="ForMaskedLM"))
    assert ebert(inputs([[-1, 0, -1, -1, -1, -1, -1]])).logits.shape == (1, 7, WORDS)


def test_the_map_is_computed_in_float32_whatever_the_rest_is():
    ebert, vectors = head(), torch.randn(3, STORED)
    wanted = vectors @ ebert.weight.T
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(ebert.map(vectors), wanted)


def test_the_map_is_not_trained_and_the_encoder_is():
    ebert = head().train()
    ebert(inputs([[-1, 0, -1, -1, -1, -1, -1]])).last_hidden_state.sum().backward()
    assert not any(parameter is ebert.weight for parameter in ebert.parameters())
    assert ebert.model.embeddings.word_embeddings.weight.grad.any()


def test_weights_survive_the_round_trip(tmp_path):
    read = inputs([[-1, 0, -1, 1, -1, -1, -1]])
    for number, ebert in enumerate([head(bert(model="ForMaskedLM")), EBert(bert())]):
        folder = tmp_path / str(number)
        ebert.save_pretrained(folder)
        again = EBert.from_pretrained(folder, device="cpu")
        assert again.config.stored == ebert.config.stored and type(again.model) is type(ebert.model)
        if ebert.weight is not None:
            assert torch.equal(again(read).logits, ebert(read).logits)


def test_settings_that_no_ebert_has_are_refused_by_its_kind(tmp_path):
    head().save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(settings | {"stored": -1}))
    with pytest.raises(DamagedModel, match="width -1"):
        EBert.from_pretrained(tmp_path, device="cpu")


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(UsageError, match="input embeddings of width 8, BertModel has 16"):
        EBert(bert(), EBertConfig(stored=0, width=8))

    class Other(torch.nn.Module):
        def get_input_embeddings(self):
            return torch.nn.Embedding(3, WIDTH)

        def forward(self, input_ids):
            return input_ids

    with pytest.raises(UsageError, match="Other reads word pieces alone, and no input embeddings"):
        EBert(Other())
    head().save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    save_file({"map": load_file(path)["map"][:4]}, path)
    with pytest.raises(DamagedModel, match=r"\(4, 5\)"):
        EBert.from_pretrained(tmp_path, device="cpu")
