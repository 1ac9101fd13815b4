"""The owner of transformers' attention interface: functions with their masks, and models apart."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: E402
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask  # noqa: E402
from transformers.modeling_utils import AttentionInterface  # noqa: E402

from kgkit.encoder.attention import (  # noqa: E402
    additive_mask,
    attention_of,
    register_attention,
    set_attention,
)
from kgkit.errors import UsageError  # noqa: E402

WORDS = 20


@pytest.fixture(autouse=True)
def tables(monkeypatch):
    """The tables of a test are its own."""
    for interface in (AttentionInterface, AttentionMaskInterface):
        monkeypatch.setattr(interface, "_global_mapping", dict(interface._global_mapping))


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
    set_attention(model, "twice")
    assert not torch.allclose(states(model), plain)
    torch.testing.assert_close(states(model, padding=4), states(model))


def test_many_threads_register_and_choose_and_each_model_has_its_own():
    wanted, shared = [f"attention {number % 4}" for number in range(32)], config()
    models = [bert(shared) for _ in wanted]
    functions = {name: times(factor) for factor, name in enumerate(dict.fromkeys(wanted), 1)}

    def work(number):
        register_attention(wanted[number], functions[wanted[number]], sdpa_mask)
        set_attention(models[number], wanted[number])

    with ThreadPoolExecutor(8) as threads:
        assert len([*threads.map(work, range(len(wanted)))]) == 32
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


def test_what_no_model_can_use_is_refused_and_nothing_changes():
    model = bert()
    with pytest.raises(UsageError, match="sdp"):
        set_attention(model, "sdp")
    with pytest.raises(UsageError, match="BertModel cannot use the attention 'flash_attention_3'"):
        set_attention(model, "flash_attention_3")
    assert attention_of(model) == "sdpa"


def test_a_mask_is_of_the_type_of_what_it_is_added_to():
    matrix = torch.tensor([[[True, False]]])
    mask = additive_mask(matrix, torch.float64)
    assert mask.dtype == torch.float64 and mask.tolist() == [[[[0.0, torch.finfo(torch.float64).min]]]]
    with torch.autocast("cpu", torch.bfloat16):
        assert additive_mask(matrix, torch.float32).dtype == torch.bfloat16
