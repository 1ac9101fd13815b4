"""Encoders by OpenVINO: each architecture gives what transformers gives, and torch is not needed."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("openvino")

from kgkit.encoder import Encoder  # noqa: E402
from kgkit.encoder.batches import TokenBatch  # noqa: E402
from kgkit.encoder.graph import EncoderGraph, reason_against  # noqa: E402
from kgkit.encoder.network import Network  # noqa: E402
from kgkit.errors import MissingExtra, SourceError  # noqa: E402
from tests.tiny_encoder import POSITIONS, byte_level_encoder, tiny_encoder, write  # noqa: E402
from tests.toys import run_python  # noqa: E402

SHAPE = {
    "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 30, "initializer_range": 0.5,
}  # fmt: skip
ROBERTA = {**SHAPE, "type_vocab_size": 1, "pad_token_id": 1}
KINDS = {
    "bert": ("BertConfig", SHAPE),
    "bert with tanh": ("BertConfig", {**SHAPE, "hidden_act": "gelu_new"}),
    "bert with relu": ("BertConfig", {**SHAPE, "hidden_act": "relu"}),
    "roberta": ("RobertaConfig", ROBERTA),
    "xlm-roberta": ("XLMRobertaConfig", ROBERTA),
    "mpnet": ("MPNetConfig", SHAPE),
    "distilbert": (
        "DistilBertConfig",
        {
            "vocab_size": 40, "dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32,
            "max_position_embeddings": 30, "initializer_range": 0.5,
        },
    ),
    "albert": ("AlbertConfig", {**SHAPE, "embedding_size": 8}),
    "albert of groups": ("AlbertConfig", {**SHAPE, "num_hidden_layers": 4, "num_hidden_groups": 2}),
    "electra": ("ElectraConfig", {**SHAPE, "embedding_size": 8}),
    "electra of one width": ("ElectraConfig", {**SHAPE, "embedding_size": 16}),
}  # fmt: skip


def written(folder, kind, seed=0):
    """Write a model with random weights, none of them a 0 or a 1, into *folder*, and return it."""
    name, settings = KINDS[kind]
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(getattr(transformers, name)(**settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")  # is not read by the graph
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("kind", KINDS)
def test_all_layers_are_those_of_transformers(tmp_path, kind):
    model = written(tmp_path, kind)
    assert reason_against(tmp_path) == ""
    network = Network(tmp_path)
    ids = torch.randint(3, 40, (3, 28 if kind == "mpnet" else 12))
    padding = model.config.pad_token_id
    ids[1, 4] = padding  # a text may have the word for padding in it
    ids[1, 8:], mask = padding, torch.ones_like(ids)
    mask[1, 8:] = 0
    with torch.inference_mode():
        expected = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    assert len(expected) == network.graph.depth + 1 and network.graph.width == 16
    batch = TokenBatch(np.arange(3), ids.numpy(), mask.numpy())
    real = mask.numpy()[..., None]
    for number, states in enumerate(expected):
        found = network(batch, [number], "float32")
        np.testing.assert_allclose(found * real, states.numpy() * real, atol=1e-4)
    joined = network(batch, [1, -1], "float32")
    np.testing.assert_allclose(
        joined * real, torch.cat([expected[1], expected[-1]], dim=-1).numpy() * real, atol=1e-4
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_text_has_the_same_numbers_in_any_batch_without_padding(folder, dtype):
    network, rng = Network(folder), np.random.default_rng(0)
    for length in (3, 8, 17, POSITIONS):
        ids = rng.integers(4, 28, (40, length))
        whole = network(TokenBatch(np.arange(40), ids, None), [1, -1], dtype)
        for count in (1, 2, 3, 7, 16, 31):
            part = network(TokenBatch(np.arange(count), ids[:count], None), [1, -1], dtype)
            assert np.array_equal(part, whole[:count])


def test_threads_may_read_at_once(folder):
    network, ids = Network(folder), np.random.default_rng(0).integers(4, 28, (8, 20))
    batches = [TokenBatch(np.arange(8), ids[:, :length], None) for length in range(2, 20)]
    alone = [network(batch, [-1], "float32") for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda batch: network(batch, [-1], "float32"), batches))
    assert all(map(np.array_equal, alone, together))


def test_vectors_are_those_of_torch(folder):
    texts = ["a dog barks", "", "the big red cat and the small dog", "an apple", "a dog barks"]
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    assert repr(encoder).endswith("on cpu>")
    found, hidden = encoder.encode(texts), dict(_layers(encoder))
    pieces, table = encoder.word_pieces()
    assert encoder.model.training is False  # torch reads from now on
    np.testing.assert_allclose(encoder.encode(texts), found, atol=2e-6)
    for row, states in _layers(encoder):
        np.testing.assert_allclose(states, hidden[row], atol=1e-5)
    assert encoder.word_pieces()[0] == pieces and np.array_equal(encoder.word_pieces()[1], table)


def _layers(encoder):
    tokens = [[2, 5, 7, 3], [2, 3], [2, 9, 9, 9, 9, 9, 3]]
    for rows, states in encoder.layers(tokens, [0, 1, -1]):
        for row, numbers in zip(rows.tolist(), states, strict=True):
            yield row, numbers[: len(tokens[row])]


def test_what_is_trained_is_read_by_what_it_has_learnt(folder):
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    before = encoder.encode(["a dog"])
    with torch.no_grad():
        encoder.model.encoder.layer[0].output.dense.bias.add_(torch.arange(16.0))
    assert not np.allclose(encoder.encode(["a dog"]), before, atol=0.01)


def test_a_tokenizer_of_bytes_has_its_padding(tmp_path):
    encoder = Encoder.load(str(byte_level_encoder(tmp_path)), device="cpu", dtype="float32")
    assert (encoder.padding, encoder.window) == (1, 58)
    assert encoder.tokenizer.pad_token_id == 1
    found = encoder.encode(["a dog", "a <pad> dog"])
    assert encoder.model is not None
    np.testing.assert_allclose(encoder.encode(["a dog", "a <pad> dog"]), found, atol=2e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "roformer"}, {"hidden_act": "mish"}, {"is_decoder": True},
        {"auto_map": {"AutoModel": "x.Y"}}, {"position_embedding_type": "relative_key"},
    ],
)  # fmt: skip
def test_what_is_not_built_here_is_left_to_transformers(tmp_path, monkeypatch, settings):
    folder = tiny_encoder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    write(folder / "config.json", {**config, **settings})
    reason = reason_against(folder)
    assert str(next(iter(settings.values()))) in reason
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra) as caught:
        Encoder.load(str(folder), device="cpu")
    assert caught.value.extra == "train" and reason in str(caught.value)


def test_weights_in_a_pickle_are_left_to_transformers(tmp_path):
    folder = tiny_encoder(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "safetensors" in reason_against(folder)


@pytest.mark.parametrize("name, number", [("hidden_size", 8), ("vocab_size", 31), ("num_attention_heads", 5)])
def test_weights_of_another_config_are_refused(tmp_path, name, number):
    folder = tiny_encoder(tmp_path)
    write(folder / "config.json", {**json.loads((folder / "config.json").read_text()), name: number})
    with pytest.raises(SourceError, match=str(number)):
        EncoderGraph(folder)


@pytest.mark.parametrize("number", [-1, "many", None, True])
def test_a_config_without_a_number_that_is_needed_is_refused(tmp_path, number):
    folder = tiny_encoder(tmp_path)
    write(folder / "config.json", {**json.loads((folder / "config.json").read_text()), "hidden_size": number})
    with pytest.raises(SourceError, match="hidden_size"):
        EncoderGraph(folder)


def test_weights_of_half_precision_and_of_old_names_are_read(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tiny_encoder(tmp_path)
    expected = Encoder.load(str(folder), device="cpu", dtype="float32").encode(["a dog barks"])
    weights = load_file(folder / "model.safetensors")
    old = {
        f"bert.{name}".replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): weight
        for name, weight in weights.items()
    }
    for kind in (torch.float64, torch.bfloat16, torch.float16):
        save_file({name: weight.to(kind) for name, weight in old.items()}, folder / "model.safetensors")
        found = Encoder.load(str(folder), device="cpu", dtype="float32").encode(["a dog barks"])
        assert (found * expected).sum() > 0.9999


def test_an_encoder_reads_texts_without_torch(folder):
    code = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from kgkit.encoder import Encoder
encoder = Encoder.load(sys.argv[1])
print(encoder.encode(["a dog", "the cat"]).shape)
"""
    done = run_python(code, folder)
    assert (done.returncode, done.stdout) == (0, "(2, 16)\n"), done.stderr
