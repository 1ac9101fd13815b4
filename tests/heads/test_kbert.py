"""K-BERT beside plain loops over one tree, and what a token can and cannot reach."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from kgkit.encoder.attention import set_attention  # noqa: E402
from kgkit.errors import DamagedModel, NotThere, UsageError  # noqa: E402
from kgkit.heads import KBert, KBertInputs  # noqa: E402
from kgkit.heads.kbert import visible_matrix  # noqa: E402
from kgkit.trees import visible  # noqa: E402

WIDTH, WORDS = 16, 40
# [CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now
POSITIONS = [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6]
BRANCHES = [0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 3, 3, 0]
HOOKS = [0, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2, 0]


def bert(kind="Bert", layers=2, seed=0, **others):
    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, initializer_range=0.5, type_vocab_size=2, **others,
    )  # fmt: skip
    return getattr(transformers, f"{kind}Model")(config).double().eval()


def tree(seed=0, padding=0):
    """The sentence of the paper, its words drawn."""
    drawn = torch.Generator().manual_seed(seed)
    count = len(POSITIONS)
    ids = torch.randint(5, WORDS, (1, count), generator=drawn)
    rows = [ids, *(torch.tensor([row]) for row in (POSITIONS, BRANCHES, HOOKS))]
    rows = [torch.nn.functional.pad(row, (0, padding)) for row in rows]
    real = torch.arange(count + padding)[None] < count
    return KBertInputs(*rows, real, torch.zeros_like(rows[0]))


def joined(*trees):
    return KBertInputs(*(torch.cat(rows) for rows in zip(*trees, strict=True)))


def test_the_visible_matrix_is_that_of_the_tree():
    seen = visible_matrix(tree(padding=2))[0]
    wanted = visible(torch.tensor(BRANCHES).numpy(), torch.tensor(HOOKS).numpy())
    assert torch.equal(seen[:13, :13], torch.from_numpy(wanted))
    assert torch.equal(seen[13:], torch.eye(15, dtype=torch.bool)[13:]) and not seen[:13, 13:].any()


@pytest.mark.parametrize("kind", ["Albert", "Camembert", "Electra", "Ernie", "XLMRoberta"])
def test_what_is_injected_moves_nothing_that_does_not_see_it(kind):
    model = bert(kind, layers=1, **({"embedding_size": WIDTH} if kind in ("Albert", "Electra") else {}))
    inputs = tree()._replace(types=None)
    text = inputs.branches[0] == 0
    without = KBertInputs(*(None if tensor is None else tensor[:, text] for tensor in inputs))
    whole, plain = (KBert(model)(batch).last_hidden_state[0] for batch in (inputs, without))
    apart = inputs.hooks[0, text] == 0  # mentions see their facts
    torch.testing.assert_close(whole[text][apart], plain[apart])


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_layer_is_what_the_equations_say(attention):
    model = bert(layers=1, attn_implementation=attention)
    inputs = tree(padding=1)
    found = KBert(model)(inputs).last_hidden_state[0]
    seen = visible_matrix(inputs)[0]
    embedded = model.embeddings(
        input_ids=inputs.ids, position_ids=inputs.positions, token_type_ids=inputs.types
    )[0]
    layer = model.encoder.layer[0]
    mine, width = layer.attention.self, WIDTH // 2
    for token in range(13):
        heads = []
        for head in range(2):
            part = slice(head * width, (head + 1) * width)
            query = mine.query(embedded[token])[part]
            others = [place for place in range(14) if seen[token, place]]
            scores = torch.stack([query @ mine.key(embedded[place])[part] for place in others]) / width**0.5
            values = torch.stack([mine.value(embedded[place])[part] for place in others])
            heads.append(scores.softmax(0) @ values)
        attended = layer.attention.output(torch.cat(heads)[None], embedded[token][None])
        torch.testing.assert_close(found[token], layer.output(layer.intermediate(attended), attended)[0])


def reach(model, inputs, token, layers=None):
    """Return (N,) bool, whose input embedding has a gradient of what comes out for *token*."""
    kbert = KBert(model)
    found = []
    handle = model.embeddings.register_forward_hook(lambda *call: found.append(call[2]))
    output = kbert(inputs).last_hidden_state
    handle.remove()
    (gradient,) = torch.autograd.grad(output[0, token].sum() + output[0, token].square().sum(), found)
    return gradient[0].abs().sum(-1) > 0


def test_in_a_layer_a_token_hears_what_it_sees_and_nothing_else():
    inputs = tree(padding=2)
    seen, model = visible_matrix(inputs)[0], bert(layers=1)
    for token in range(13):
        assert torch.equal(reach(model, inputs, token), seen[token])


def test_a_branch_changes_the_text_through_its_mention_alone():
    inputs = tree()
    deep = reach(bert(layers=2), inputs, 0)  # [CLS] hears Tim and Cook, who hear CEO and Apple
    assert deep.all()
    blind = inputs._replace(hooks=torch.tensor([[0, 0, 0, 1, 1, 0, 0, 2, 2, 2, 2, 2, 0]]))
    heard = reach(bert(layers=4), blind, 0)
    assert not heard[3:5].any() and heard[8:12].all()


def test_without_facts_it_is_the_encoder_bit_for_bit():
    for attention in ("eager", "sdpa"):
        model = bert(attn_implementation=attention).float()
        inputs = tree(padding=3)
        plain = inputs._replace(
            positions=torch.arange(16)[None],
            branches=torch.zeros(1, 16).long(),
            hooks=torch.zeros(1, 16).long(),
        )
        wanted = model(input_ids=inputs.ids, attention_mask=inputs.real.long()).last_hidden_state
        assert torch.equal(KBert(model)(plain).last_hidden_state, wanted)


def test_what_stands_beside_in_a_batch_and_padding_change_nothing():
    kbert = KBert(bert())
    first, second = tree(), tree(seed=1)
    alone = [kbert(batch).last_hidden_state[0] for batch in (first, second)]
    plain = tree(seed=2, padding=4)._replace(
        hooks=torch.zeros(1, 17).long(), branches=torch.zeros(1, 17).long()
    )
    both = kbert(joined(tree(padding=4), tree(seed=1, padding=4), plain)).last_hidden_state
    for row, wanted in enumerate(alone):
        torch.testing.assert_close(both[row, :13], wanted)


def test_roberta_counts_positions_from_behind_its_padding():
    model = bert("Roberta", pad_token_id=1)
    inputs = tree()._replace(types=None)
    wanted = model(
        input_ids=inputs.ids, position_ids=inputs.positions + 2,
        attention_mask=torch.zeros(1, 1, 13, 13).double().masked_fill(
            ~visible_matrix(inputs)[:, None], torch.finfo(torch.float64).min
        ),
    ).last_hidden_state  # fmt: skip
    torch.testing.assert_close(KBert(model)(inputs).last_hidden_state, wanted)


def test_under_autocast_it_stays_near():
    model = bert().float()
    wanted = KBert(model)(tree()).last_hidden_state
    with torch.autocast("cpu", torch.bfloat16):
        found = KBert(model)(tree()).last_hidden_state
    torch.testing.assert_close(found.float(), wanted, atol=0.2, rtol=0.2)


def test_what_does_not_fit_is_told():
    config = transformers.T5Config(vocab_size=9, d_model=8, d_kv=4, num_layers=1, num_heads=2, d_ff=8)
    with pytest.raises(UsageError, match="T5EncoderModel cannot be told by a table alone where tokens stand"):
        KBert(transformers.T5EncoderModel(config))
    with pytest.raises(UsageError, match="MPNetModel cannot be told"):  # it counts distances too
        KBert(bert("MPNet"))
    flex = bert(attn_implementation="sdpa").train()
    set_attention(flex, "flex_attention")
    with pytest.raises(UsageError, match="flex_attention"):
        KBert(flex)


def test_what_is_no_saved_model_is_refused(tmp_path):
    pytest.importorskip("safetensors")
    KBert(bert().float()).save_pretrained(tmp_path / "new")
    with pytest.raises(NotThere):
        KBert.from_pretrained(tmp_path)
    with pytest.raises(UsageError, match="transformers has no class Nope"):
        KBert.from_pretrained(tmp_path / "new", model="Nope", device="cpu")
    (tmp_path / "new" / "encoder" / "config.json").unlink()
    with pytest.raises(DamagedModel, match="the encoder of the head in"):
        KBert.from_pretrained(tmp_path / "new", device="cpu")


def test_the_encoder_is_not_changed():
    model = bert()
    before = copy.deepcopy(model.state_dict())
    KBert(model)(tree())
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert not any(part._forward_hooks for part in model.modules())
