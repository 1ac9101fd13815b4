"""Folders of encoders that make no sense: one error that names the file, and nothing is read for ever."""

import json
import os

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file, save_file

from kgkit.encoder import Encoder
from kgkit.encoder import folder as files
from kgkit.encoder.folder import fingerprint
from kgkit.encoder.loading import load_as, load_tokenizer
from kgkit.errors import SourceError
from tests.tiny_encoder import tiny_encoder, write


@pytest.fixture
def folder(tmp_path):
    return tiny_encoder(tmp_path / "tiny", mask=True)


def load(folder):
    return Encoder.load(str(folder), device="cpu", dtype="float32")


def with_settings(folder, **settings):
    write(folder / "config.json", {**json.loads((folder / "config.json").read_text()), **settings})


@pytest.mark.parametrize("act", [load, load_tokenizer, lambda f: load_as(f, "AutoModelForMaskedLM", "cpu")])
@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("hidden_dropout_prob", float("nan"), "hidden_dropout_prob is nan; expected a probability, 0 to 1"),
        ("attention_probs_dropout_prob", float("inf"), "is inf; expected a probability"),
        ("classifier_dropout", -0.5, "is -0.5; expected a probability"),
        ("layer_norm_eps", float("nan"), "layer_norm_eps is nan; expected a number of 0 or more"),
        ("layer_norm_eps", -1.0, "is -1.0; expected a number of 0 or more"),
        ("initializer_range", float("nan"), "initializer_range is nan; expected a number"),
        ("hidden_dropout_prob", "much", "hidden_dropout_prob is 'much'; expected a probability"),
    ],
)
def test_numbers_of_a_config_that_no_model_can_have_are_refused(folder, act, name, number, expected):
    with_settings(folder, **{name: number})
    with pytest.raises(SourceError, match=rf"config\.json: .*{expected}"):
        act(folder)


QUERY = "encoder.layer.0.attention.self.query.weight"


def with_weights(folder, name, change):
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights[name])
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize("act", [load, lambda f: load_as(f, "AutoModelForMaskedLM", "cpu")])
@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.complex64, torch.float8_e5m2])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_weights_that_are_no_floating_point_numbers_are_refused(folder, act, dtype, prefix):
    path = folder / "model.safetensors"
    whole = {f"{prefix}{name}": weight for name, weight in load_file(path).items()}
    save_file({name: weight.to(dtype) for name, weight in whole.items()}, path, metadata={"format": "pt"})
    with pytest.raises(
        SourceError, match=r"safetensors: the parameter '.*' has numbers of the type \w+, expec"
    ):
        act(folder)
    save_file({name: weight.double() for name, weight in whole.items()}, path, metadata={"format": "pt"})
    assert act(folder)


@pytest.mark.parametrize("act", [load, lambda f: load_as(f, "AutoModelForMaskedLM", "cpu")])
@pytest.mark.parametrize(
    "name", [QUERY, "embeddings.word_embeddings.weight", "encoder.layer.1.output.dense.bias"]
)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_weight_that_is_not_finite_is_refused(folder, act, name, number):
    with_weights(folder, name, lambda weight: weight.view(-1)[-1:].fill_(number))
    with pytest.raises(
        SourceError, match=rf"safetensors: 1 of the .* parameter '(bert\.)?{name}' are not finite"
    ):
        act(folder)


def test_infinities_of_both_signs_are_refused_too(folder):
    with_weights(folder, QUERY, lambda weight: weight[0, :2].copy_(torch.tensor([torch.inf, -torch.inf])))
    with pytest.raises(
        SourceError, match=f"2 of the 256 numbers of the parameter '{QUERY}' .* get the model again"
    ):
        load(folder)


def test_weights_whose_sum_overflows_are_no_damage(folder):
    with_weights(folder, QUERY, lambda weight: weight.fill_(3e38))
    assert load(folder).model.encoder.layer[0].attention.self.query.weight.min() == torch.tensor(3e38)


def test_word_pieces_that_the_model_has_no_embeddings_for_are_refused(folder):
    vocabulary = json.loads((folder / "tokenizer.json").read_text())
    vocabulary["model"]["vocab"]["dog"] = 70_000
    write(folder / "tokenizer.json", vocabulary)
    with pytest.raises(SourceError, match=r"tokenizer\.json: the word piece 'dog' has the id 70,000"):
        load(folder)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")  # noqa: PTH110
@pytest.mark.parametrize(
    "name",
    [
        "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors",
        "generation_config.json", "modules.json", "sentence_bert_config.json", "vocab.txt",
        "1_Pooling/config.json",
    ],
)  # fmt: skip
def test_a_file_that_is_a_link_to_a_device_is_refused_and_never_read(folder, name):
    modules = [{"idx": 0, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    if name.startswith("1_"):
        (folder / "1_Pooling").mkdir()
        write(folder / "modules.json", modules)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(SourceError, match=rf"{name}: is a .*device or a pipe"):
        load(folder)
    if name in ("config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"):
        with pytest.raises(SourceError, match="device"):
            fingerprint(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_that_is_a_pipe_is_refused_and_never_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(SourceError, match=rf"{name}: is a .*device or a pipe"):
        load(folder)


def test_a_config_that_is_too_long_is_refused_before_it_is_read(folder, monkeypatch):
    monkeypatch.setattr(files, "_LONGEST_JSON", 100)
    with pytest.raises(SourceError, match=r"config\.json: has .* bytes; expected 100 at most"):
        load(folder)


def test_files_may_be_links_to_files_as_in_the_cache_of_the_hub(folder, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in folder.iterdir():
        (linked / path.name).symlink_to(path)
    assert load(linked).width == load(folder).width
