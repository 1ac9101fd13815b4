"""KAM-BERT's attention: what the equations say, what padding does not change, what is the encoder's."""

import copy

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from kgkit.encoder.attention import attention_of, set_attention
from kgkit.errors import DamagedModel, UsageError
from kgkit.heads import KamBert, KamBertConfig, KamBertInputs

WIDTH, HEADS = 16, 2
MAPS = ("entity", "correlation")
DISTILBERT = {"dim": WIDTH, "n_layers": 2, "n_heads": HEADS, "hidden_dim": 24}
MODERNBERT = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}


def bert(kind="Bert", layers=2, **settings):
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        **{
            "vocab_size": 30, "hidden_size": WIDTH, "num_hidden_layers": layers, "num_attention_heads": HEADS,
            "intermediate_size": 24, "max_position_embeddings": 32, "initializer_range": 0.5, **settings,
        }
    )  # fmt: skip
    return getattr(transformers, f"{kind}Model")(config).eval().double()


def texts(length=6, padding=0, auxiliary=3, seed=0):
    """Return a text with the cells of two maps, and auxiliary word pieces behind an empty place."""
    drawn = torch.Generator().manual_seed(seed)
    size = length + padding
    ids = torch.randint(4, 30, (1, length), generator=drawn)
    ids = torch.cat([ids, torch.zeros(1, padding).long()], 1)
    real = torch.arange(size)[None] < length
    cells = [(0, 0, row, column) for row in (1, 2) for column in (1, 2)]
    cells += [(0, 1, 0, length - 1), (0, 1, length - 1, 0), (0, 1, length - 1, length - 2)]
    pieces = torch.randint(4, 30, (1, auxiliary), generator=drawn)
    behind = torch.cat([torch.zeros(1, 1).long(), pieces], 1) if auxiliary else torch.zeros(1, 0).long()
    if auxiliary:
        cells += [(0, 1, 2, size + 1), (0, 1, size + 1, 2), (0, 1, size + auxiliary, length - 1)]
    values = torch.linspace(0.2, 1, len(cells)).double()
    shown = torch.arange(behind.shape[1])[None] > 0
    return KamBertInputs(ids, real, torch.tensor(cells), values, behind, shown, torch.zeros(1, size).long())


def joined(*parts):
    """Return a batch of texts of one length."""
    columns = [torch.cat([part[index] for part in parts]) for index in range(7)]
    owners = torch.repeat_interleave(
        torch.arange(len(parts)), torch.tensor([len(part.cells) for part in parts])
    )
    columns[2] = torch.cat([owners[:, None], columns[2][:, 1:]], 1)
    return KamBertInputs(*columns)


def head_of(model, **settings):
    """Return a head whose weights have moved from where they began."""
    head = KamBert(model, KamBertConfig.of(model, maps=MAPS, **settings)).double().eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in head.mixing.parameters():
            parameter += torch.randn_like(parameter) * 0.3
    return head


def plain(model, inputs):
    return model(
        input_ids=inputs.ids, attention_mask=inputs.real.long(), token_type_ids=inputs.types
    ).last_hidden_state


# -- equations --------------------------------------------------------------


def convolved(channels, weight):
    """Return a 3 × 3 convolution of (c, M, M), cell by cell."""
    count, size = len(weight), channels.shape[1]
    out = torch.zeros(count, size, size).double()
    for head in range(count):
        for row in range(size):
            for column in range(size):
                for down in (-1, 0, 1):
                    for step in (-1, 0, 1):
                        y, x = row + down, column + step
                        if 0 <= y < size and 0 <= x < size:
                            out[head, row, column] += weight[head, :, down + 1, step + 1] @ channels[:, y, x]
    return out


def twin(head, inputs):
    """Return the vectors of one text, computed cell by cell from section 3.3 of the paper.

    With γ 1 the skip connection is the published sum.
    """
    model, config, mixing = head.model, head.config, head.mixing
    hidden = model.embeddings(input_ids=inputs.ids, token_type_ids=inputs.types)[0]  # (N, H)
    length = len(hidden)
    behind = model.embeddings.LayerNorm(model.embeddings.word_embeddings(inputs.auxiliary[0]))
    real = torch.cat([inputs.real[0], inputs.auxiliary_real[0]])
    maps = head.dense_maps(inputs)[0]
    before = None
    for number, layer in enumerate(model.encoder.layer):
        states, mine = torch.cat([hidden, behind]), layer.attention.self
        width = WIDTH // HEADS
        logits = torch.stack([
            mine.query(states)[:, part] @ mine.key(states)[:, part].T / width**0.5
            for part in (slice(head * width, (head + 1) * width) for head in range(HEADS))
        ])  # fmt: skip
        if before is not None:  # a sum: S + R′ is what is concatenated and convolved
            logits = logits + mixing.gamma[number - 1] * before
        unpadded = torch.stack([
            torch.stack([cell if real[i] and real[j] else cell * 0 for j, cell in enumerate(row)])
            for i, row in enumerate(logits.permute(1, 2, 0))
        ]).permute(2, 0, 1)  # fmt: skip
        every = torch.cat([unpadded, maps])
        mixed = convolved(every, mixing.weight[number])
        results = (1 - config.alpha) * logits + config.alpha * mixed
        before = results
        weights = results.masked_fill(~real, -torch.inf).softmax(-1)
        read = torch.cat([
            weights[head] @ mine.value(states)[:, head * width : (head + 1) * width] for head in range(HEADS)
        ], 1)  # fmt: skip
        attended = layer.attention.output(read, states)
        hidden = layer.output(layer.intermediate(attended), attended)[:length]
    return hidden


@pytest.mark.parametrize("auxiliary", [0, 3])
def test_it_computes_what_the_equations_say(auxiliary):
    head, inputs = head_of(bert(layers=3), alpha=0.4), texts(padding=1, auxiliary=auxiliary)
    hidden = head(inputs).last_hidden_state[0]
    torch.testing.assert_close(hidden[:6], twin(head, inputs)[:6])


def test_maps_are_made_dense_from_their_cells():
    model = bert()
    head, inputs = KamBert(model, KamBertConfig.of(model, maps=MAPS)), texts(auxiliary=0)
    maps = head.dense_maps(inputs)
    assert maps.shape == (1, 2, 6, 6) and int((maps > 0).sum()) == len(inputs.cells)
    assert maps[0, 1, 5, 4] == inputs.values[6]


# -- padding, batches, auxiliary words --------------------------------------


@pytest.mark.parametrize("auxiliary", [0, 3])
def test_padding_and_the_other_texts_of_a_batch_change_nothing(auxiliary):
    """The last word piece stands beside a padded one, which a kernel reads as zero, as it reads the edge."""
    head = head_of(bert())
    first, second = texts(auxiliary=auxiliary), texts(7, auxiliary=auxiliary, seed=1)
    alone = [head(inputs).last_hidden_state[0] for inputs in (first, second)]
    both = joined(texts(padding=5, auxiliary=auxiliary), texts(7, padding=4, auxiliary=auxiliary, seed=1))
    together = head(both).last_hidden_state
    for row, hidden in enumerate(alone):
        torch.testing.assert_close(together[row, : len(hidden)], hidden)


def test_a_text_with_fewer_auxiliary_words_is_read_as_alone():
    head, inputs = head_of(bert()), texts(auxiliary=2)
    alone = head(inputs).last_hidden_state
    longer = inputs._replace(
        auxiliary=torch.cat([inputs.auxiliary, torch.zeros(1, 2).long()], 1),
        auxiliary_real=torch.cat([inputs.auxiliary_real, torch.zeros(1, 2).bool()], 1),
    )
    torch.testing.assert_close(head(longer).last_hidden_state, alone)


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "Camembert", "Electra", "Ernie", "XLMRoberta"])
def test_auxiliary_words_are_read_by_each_layer_and_trimmed(kind):
    narrow = {"embedding_size": 8} if kind == "Electra" else {}
    head, inputs = head_of(bert(kind, **narrow)), texts()._replace(types=None)
    lengths = []
    layers = head.model.encoder.layer
    handles = [
        layer.attention.register_forward_hook(lambda *call: lengths.append(call[2][0].shape[1]))
        for layer in layers
    ]
    output = head(inputs, output_attentions=True)
    for handle in handles:
        handle.remove()
    assert lengths == [10, 10] and output.last_hidden_state.shape == (1, 6, WIDTH)
    assert [tuple(weights.shape) for weights in output.attentions] == [(1, HEADS, 10, 10)] * 2
    assert all((weights[..., 6] == 0).all() for weights in output.attentions)  # the empty place
    others = inputs._replace(auxiliary=inputs.auxiliary.flip(1).roll(1, 1))
    assert not torch.allclose(head(others).last_hidden_state, output.last_hidden_state)


# -- what is the encoder ----------------------------------------------------


def test_without_a_share_skip_and_auxiliary_words_it_is_eager_bert_bit_for_bit():
    for dtype in (torch.float32, torch.float64):
        model, inputs = bert().to(dtype), texts(padding=2, auxiliary=0)
        inputs = inputs._replace(values=inputs.values.to(dtype))
        set_attention(model, "eager")
        expected = plain(model, inputs)
        config = KamBertConfig.of(model, maps=MAPS, alpha=0.0)
        assert torch.equal(KamBert(model, config)(inputs).last_hidden_state, expected)


def test_the_first_step_of_the_identity_has_the_attention_of_the_checkpoint():
    model, inputs = bert(), texts(padding=2, auxiliary=0)
    expected = plain(model, inputs)
    head = KamBert(model, KamBertConfig.of(model, maps=MAPS)).double()
    torch.testing.assert_close(head(inputs).last_hidden_state[:, :6], expected[:, :6])
    loss = head(inputs).last_hidden_state.square().sum()
    torch.autograd.backward(loss)
    assert all(parameter.grad.any() for parameter in head.mixing.parameters())
    assert head.mixing.weight.grad[:, :, -2:].any()  # maps are learnt from the first step on


def test_a_control_is_the_encoder_bit_for_bit_and_has_nothing_of_its_own():
    model, inputs = bert(), texts(padding=2)
    head = KamBert(model, KamBertConfig.of(model, maps=MAPS, plain=True))
    assert attention_of(model) == "eager" and not [*head.mixing.parameters()]
    assert torch.equal(head(inputs).last_hidden_state, plain(model, inputs))


@pytest.mark.parametrize(("kind", "settings"), [("DistilBert", DISTILBERT), ("ModernBert", MODERNBERT)])
def test_a_control_takes_encoders_whose_heads_cannot_be_mixed(kind, settings):
    model, inputs = bert(kind, **settings), texts(padding=2, auxiliary=0)._replace(types=None)
    assert attention_of(model) == "sdpa"
    head = KamBert(model, KamBertConfig.of(model, maps=MAPS, plain=True))
    assert attention_of(model) == "eager" and not [*head.mixing.parameters()]
    expected = model(input_ids=inputs.ids, attention_mask=inputs.real.long()).last_hidden_state
    assert torch.equal(head(inputs).last_hidden_state, expected)


def test_a_control_keeps_an_attention_that_cannot_be_set(monkeypatch):
    model = bert()
    monkeypatch.setattr(type(model), "_can_set_attn_implementation", lambda *_: False)
    KamBert(model, KamBertConfig.of(model, plain=True))
    assert attention_of(model) == "sdpa"
    with pytest.raises(UsageError, match="computes attention in a way that cannot be changed"):
        KamBert(model, KamBertConfig.of(model))
    with pytest.raises(UsageError, match="ModernBertModel"):
        head_of(bert("ModernBert", **MODERNBERT))


def test_an_encoder_that_is_called_by_itself_reads_without_maps():
    model, inputs = bert(), texts(padding=2)
    expected = plain(copy.deepcopy(model), inputs)
    head_of(model)
    torch.testing.assert_close(plain(model, inputs), expected)


def test_of_two_heads_around_one_encoder_each_reads_its_own_auxiliary_words():
    model, inputs = bert(), texts()
    first = head_of(model)
    expected = first(inputs).last_hidden_state
    head_of(model, alpha=0.5)
    assert torch.equal(first(inputs).last_hidden_state, expected)


def test_a_masked_language_model_is_read_as_well():
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(bert().config).eval().double()
    logits = head_of(model)(texts()).logits
    assert logits.shape == (1, 6, 30)


def test_under_autocast_it_stays_near():
    head, inputs = head_of(bert()).float(), texts()
    inputs = inputs._replace(values=inputs.values.float())
    expected = head(inputs).last_hidden_state
    with torch.autocast("cpu", torch.bfloat16):
        hidden = head(inputs).last_hidden_state
    torch.testing.assert_close(hidden.float(), expected, atol=0.3, rtol=0.3)


# -- what does not fit, and folders -----------------------------------------


def test_what_does_not_fit_is_refused():
    model = bert()
    head, inputs = head_of(model), texts()
    with pytest.raises(
        UsageError, match="the head is for 3 layers of 2 attention heads, BertModel has 2 of 2"
    ):
        KamBert(model, KamBertConfig(layers=3, heads=2))
    with pytest.raises(UsageError, match=r"alpha is 1\.5; it is from 0 to 1"):
        KamBertConfig.of(model, alpha=1.5)
    model.encoder.layer[0].gradient_checkpointing = True
    with pytest.raises(UsageError, match="which gradient checkpointing computes twice"):
        head.train()(inputs)


def test_weights_of_another_shape_are_refused(tmp_path):
    pytest.importorskip("safetensors")
    head_of(bert()).save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"layers": 2', '"layers": 2000000000'))
    with pytest.raises(DamagedModel):
        KamBert.from_pretrained(tmp_path, device="cpu")
