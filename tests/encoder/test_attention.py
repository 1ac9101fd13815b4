"""The owner of transformers' attention interface: functions with their masks, and models apart."""

import copy
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: E402
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask  # noqa: E402
from transformers.modeling_utils import AttentionInterface  # noqa: E402

from kgkit.encoder import attention as module  # noqa: E402
from kgkit.encoder.attention import (  # noqa: E402
    additive_mask,
    attention,
    attention_of,
    register_attention,
    set_attention,
    set_attention_dropout,
    visibility_mask,
)
from kgkit.errors import UsageError  # noqa: E402

WORDS = 20


@pytest.fixture(autouse=True)
def tables(monkeypatch):
    """The tables of a test are its own."""
    for interface in (AttentionInterface, AttentionMaskInterface):
        monkeypatch.setattr(interface, "_global_mapping", dict(interface._global_mapping))
    monkeypatch.setattr(module, "_REGISTERED", {})


def config(**settings):
    return transformers.BertConfig(
        vocab_size=WORDS, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=16, initializer_range=0.5, **settings,
    )  # fmt: skip


def bert(settings=None):
    torch.manual_seed(0)
    return transformers.BertModel(settings or config()).eval()


def states(model, padding=0):
    """What comes out for five words, with so much padding behind them."""
    ids = torch.arange(5, 10)[None]
    mask = torch.nn.functional.pad(torch.ones_like(ids), (0, padding))
    with torch.no_grad():
        ids = torch.nn.functional.pad(ids, (0, padding), value=3)
        return model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :5]


def times(factor):
    """Attention to values that are multiplied."""

    def multiplied(module, query, key, value, attention_mask, **others):
        return sdpa_attention_forward(module, query, key, factor * value, attention_mask, **others)

    return multiplied


twice = times(2)


def test_a_function_is_registered_with_its_mask_so_padding_changes_nothing():
    register_attention("twice", twice, sdpa_mask)
    model, plain = bert(), states(bert())
    assert set_attention(model, "twice") == "sdpa"
    assert not torch.allclose(states(model), plain)
    torch.testing.assert_close(states(model, padding=4), states(model))


def test_a_function_that_stands_in_one_table_alone_is_given_to_no_model():
    AttentionInterface.register("alone", twice)
    model = bert()
    model.config._attn_implementation = "alone"  # past the owner: padding is attended to, and nothing says so
    assert not torch.allclose(states(model, padding=4), states(model))
    with pytest.raises(UsageError, match="'alone' has a function or a mask function, not both"):
        set_attention(bert(), "alone")
    AttentionMaskInterface.register("masked", sdpa_mask)
    with pytest.raises(UsageError, match="register both together"):
        set_attention(bert(), "masked")


@pytest.mark.parametrize("pair", [(twice, None), (None, sdpa_mask), (twice, "sdpa")])
def test_a_function_cannot_be_registered_alone(pair):
    with pytest.raises(UsageError, match="without a mask transformers would attend to padding"):
        register_attention("half", *pair)
    assert "half" not in AttentionInterface._global_mapping
    assert "half" not in AttentionMaskInterface._global_mapping


@pytest.mark.parametrize("name", ["eager", "sdpa", "flex_attention", "flash_attention_2", "mine"])
def test_no_name_is_given_to_other_functions(name):
    if name == "mine":
        register_attention(name, twice, sdpa_mask)
        register_attention(name, twice, sdpa_mask)  # the same again
    with pytest.raises(UsageError, match="other functions are registered under this name"):
        register_attention(name, sdpa_attention_forward, sdpa_mask)


def test_many_threads_register_and_choose_and_each_model_has_its_own():
    wanted, shared = [f"attention {number % 4}" for number in range(32)], config()
    models = [bert(shared) for _ in wanted]
    functions = {name: times(factor) for factor, name in enumerate(dict.fromkeys(wanted), 1)}

    def work(number):
        register_attention(wanted[number], functions[wanted[number]], sdpa_mask)
        return set_attention(models[number], wanted[number])

    with ThreadPoolExecutor(8) as threads:
        assert {*threads.map(work, range(len(wanted)))} == {"sdpa"}
    assert [attention_of(model) for model in models] == wanted
    first = {name: states(models[wanted.index(name)]) for name in functions}
    for model, name in zip(models, wanted, strict=True):
        assert torch.equal(states(model), first[name])
    assert len({round(float(one.abs().sum()), 4) for one in first.values()}) == 4


@pytest.mark.parametrize("made", ["of one config", "copied"])
def test_two_models_of_a_process_do_not_change_each_other(made):
    register_attention("twice", twice, sdpa_mask)
    settings = config()
    one = bert(settings)
    two = bert(settings) if made == "of one config" else copy.deepcopy(one)
    before = states(two)
    set_attention(one, "twice")
    assert (attention_of(one), attention_of(two)) == ("twice", "sdpa")
    assert torch.equal(states(two), before) and not torch.equal(states(one), before)
    set_attention(two, "eager")
    assert attention_of(one) == "twice"


def test_a_model_around_an_encoder_has_one_attention_in_all_of_it():
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(config())
    set_attention(model, "eager")
    configs = [part.config for part in model.modules() if hasattr(part, "config")]
    assert {one._attn_implementation for one in configs} == {"eager"} and len({*map(id, configs)}) == 1


def test_behind_the_block_a_model_attends_as_before():
    register_attention("twice", twice, sdpa_mask)
    model, plain = bert(), states(bert())
    with pytest.raises(ZeroDivisionError), attention(model, "twice"):
        assert not torch.equal(states(model), plain)
        raise ZeroDivisionError
    assert torch.equal(states(model), plain)


def test_what_no_model_can_use_is_refused_and_nothing_changes():
    model = bert()
    with pytest.raises(UsageError, match="there is no attention 'sdp'; there is: eager, flash_attention_2"):
        set_attention(model, "sdp")
    with pytest.raises(UsageError, match="BertModel cannot use the attention 'flash_attention_3'"):
        set_attention(model, "flash_attention_3")
    assert attention_of(model) == "sdpa"


def test_a_matrix_reaches_every_function_that_takes_one():
    register_attention("mine", sdpa_attention_forward, sdpa_mask)
    model, matrix = bert(), torch.eye(5, dtype=torch.bool)[None]

    def rule(row, head, query, key):
        return query == key

    found = []
    for name in ("eager", "sdpa", "mine"):
        with attention(model, name), torch.no_grad():
            mask = visibility_mask(model, lambda: matrix, rule, (1, 5))
            found.append(model(input_ids=torch.arange(5, 10)[None], attention_mask=mask).last_hidden_state)
    for one in found:
        torch.testing.assert_close(one, found[0], atol=1e-5, rtol=1e-5)
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    set_attention(model, "flex_attention")
    blocks = visibility_mask(model, lambda: pytest.fail("a matrix was made"), rule, (1, 5))
    assert torch.equal(flex.create_mask(blocks.mask_mod, 1, None, 5, 5, device="cpu")[0], matrix)
    model.config._attn_implementation = "flash_attention_2"  # as where it is installed
    with pytest.raises(UsageError, match=r"'flash_attention_2' takes no matrix .* choose one of eager, sdpa"):
        visibility_mask(model, lambda: matrix, rule, (1, 5))


@pytest.mark.parametrize(
    ("name", "shape", "dropout"),
    [
        ("Bert", {"num_hidden_layers": 1}, "attention_probs_dropout_prob"),
        ("DistilBert", {"n_layers": 1}, "attention_dropout"),
        ("ModernBert", {"num_hidden_layers": 1, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
                        "cls_token_id": 1, "sep_token_id": 2}, "attention_dropout"),
    ],
)  # fmt: skip
def test_flexattention_is_refused_where_a_model_trains_with_dropout_of_attention(name, shape, dropout):
    pytest.importorskip("torch.nn.attention.flex_attention")
    settings = getattr(transformers, f"{name}Config")(
        vocab_size=WORDS, hidden_size=8, num_attention_heads=2, intermediate_size=8, **shape
    )
    setattr(settings, dropout, 0.3)
    model = getattr(transformers, f"{name}Model")(settings).train()
    model.config._attn_implementation = "flex_attention"

    def rule(row, head, query, key):
        return query == key

    def mask():
        return visibility_mask(model, lambda: pytest.fail("a matrix was made"), rule, (1, 5))

    with pytest.raises(UsageError, match="FlexAttention has no dropout: train with sdpa"):
        mask()
    setattr(model.config, dropout, 0.0)
    assert mask() is not None
    setattr(model.config, dropout, 0.3)
    model.eval()
    assert mask() is not None


def test_a_mask_is_of_the_type_of_what_it_is_added_to():
    matrix = torch.tensor([[[True, False]]])
    mask = additive_mask(matrix, torch.float64)
    assert mask.dtype == torch.float64 and mask.tolist() == [[[[0.0, torch.finfo(torch.float64).min]]]]
    with torch.autocast("cpu", torch.bfloat16):
        assert additive_mask(matrix, torch.float32).dtype == torch.bfloat16


def test_nobody_else_speaks_with_the_interface():
    theirs = re.compile(r"AttentionInterface|ATTENTION_FUNCTIONS|AttentionMaskInterface|attn_implementation")
    room = Path(module.__file__).parents[1]
    assert [path.name for path in room.rglob("*.py") if theirs.search(path.read_text())] == ["attention.py"]


def drops(model):
    """The dropout of each layer's attention, as its forward passes it on; and of everything else."""
    shares = []

    def record(module, query, key, value, mask, dropout=0.0, **rest):
        shares.append(dropout)
        return sdpa_attention_forward(module, query, key, value, mask, dropout=dropout, **rest)

    name = f"recording{len(module._REGISTERED)}"
    register_attention(name, record, sdpa_mask)
    with attention(model, name):
        states(model.train())
    model.eval()
    others = [part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)]
    return shares, sorted(others)


@pytest.mark.parametrize(
    "name, shape",
    [
        ("Bert", {}),
        ("Roberta", {}),
        ("Electra", {"embedding_size": 8}),
        ("Albert", {"embedding_size": 8}),
        ("XLMRoberta", {}),
        ("DistilBert", {"dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 8}),
        ("ModernBert", {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
                        "sep_token_id": 2}),
    ],
)  # fmt: skip
def test_dropout_of_attention_is_set_and_no_other(name, shape):
    settings = getattr(transformers, f"{name}Config")(
        vocab_size=WORDS, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        **shape,
    )  # fmt: skip
    field = "attention_dropout" if hasattr(settings, "attention_dropout") else "attention_probs_dropout_prob"
    setattr(settings, field, 0.3)
    model = getattr(transformers, f"{name}Model")(settings)
    same = getattr(transformers, f"{name}Model")(settings)  # from the same config
    shares, others = drops(model)
    assert shares == [0.3]
    set_attention_dropout(model, 0.0)
    after, others_after = drops(model)
    assert after == [0.0] and drops(same) == ([0.3], others)
    kept = [share for share in others if share != 0.3]
    assert [share for share in others_after if share != 0.0] == [share for share in kept if share != 0.0]
    assert getattr(model.config, field) == 0.0 and getattr(settings, field) == 0.3


def test_dropout_of_attention_is_set_around_a_head_and_within_a_module():
    model = transformers.BertForMaskedLM(config())
    module = torch.nn.ModuleDict({"encoder": model, "other": torch.nn.Dropout(0.2)})
    set_attention_dropout(module, 0.05)
    assert model.config is model.bert.config and model.config.attention_probs_dropout_prob == 0.05
    assert model.config.hidden_dropout_prob == 0.1
    assert drops(model.bert)[0] == [0.05] and module["other"].p == 0.2


def test_a_module_without_dropout_of_attention_is_refused():
    with pytest.raises(UsageError, match="Linear has no encoder of transformers"):
        set_attention_dropout(torch.nn.Linear(2, 2), 0.0)
    model = transformers.FNetModel(
        transformers.FNetConfig(vocab_size=WORDS, hidden_size=8, num_hidden_layers=1, intermediate_size=8)
    )
    with pytest.raises(UsageError, match="FNetModel has no dropout of attention that can be set"):
        set_attention_dropout(model, 0.0)
