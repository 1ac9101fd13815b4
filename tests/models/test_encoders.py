"""The encoder that a name stands for: a trained model's own goes first."""

import shutil

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import numpy as np

from kgkit.encoder import Encoder
from kgkit.errors import NotThere, UsageError
from kgkit.home import Home
from kgkit.methods.kbert_settings import KBertManifest
from kgkit.methods.knowbert_settings import KnowBertManifest
from kgkit.models.encoders import load_encoder
from kgkit.models.kinds import LinkerManifest, TaggerManifest
from kgkit.models.manifest import FORMAT, MANIFEST
from tests.tiny_encoder import tiny_encoder

LINKER = {"vectors": "text", "version": "", "fingerprint": "", "reader": {}, "temperature": 1.0}
KINDS = {
    "linker": ("encoder", LinkerManifest, {**LINKER, "type": "head"}),
    "tagger": ("head/encoder", TaggerManifest, {"types": ("PER",), "fingerprint": "", "reader": {}}),
    "knowbert": ("knowbert/encoder", KnowBertManifest, {"kbs": {}, "size": 16, "start": "", "task": "mlm"}),
    "kbert": (
        "kbert/encoder", KBertManifest,
        {"size": 16, "query": "longest", "max_facts": 1, "relations": False},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("tiny"), seed=3)


def model(home, kind, folder, **fields):
    """Write a model of *kind* called `mine`, with the encoder in *folder*, if there is one."""
    path, manifest, own = KINDS[kind]
    written = home.models / "mine"
    written.mkdir(parents=True)
    if folder is not None:
        shutil.copytree(folder, written / path)
    content = manifest(format=FORMAT, kind=kind, name="mine", **{**own, **fields})
    (written / MANIFEST).write_bytes(msgspec.json.encode(content))
    return written


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_each_kind_gives_the_encoder_that_it_has_with_it(tmp_path, folder, kind):
    home = Home(tmp_path)
    written = model(home, kind, folder)
    expected = Encoder.load(str(folder), device="cpu").word_pieces()[1]
    for name in ("mine", str(written)):
        encoder = load_encoder(name, home, device="cpu")
        assert encoder.name == name
        np.testing.assert_array_equal(encoder.word_pieces()[1], expected)


def test_a_name_that_is_no_models_is_looked_for_as_an_encoder(tmp_path, folder):
    assert load_encoder(str(folder), Home(tmp_path), device="cpu").name == str(folder)
    with pytest.raises(NotThere, match="no encoder 'nowhere/none/at-all'"):
        load_encoder("nowhere/none/at-all", Home(tmp_path))


def test_a_model_without_an_encoder_names_the_one_that_it_takes(tmp_path):
    home = Home(tmp_path)
    model(home, "linker", None, type="ridge", encoder="minilm")
    with pytest.raises(
        UsageError, match=r"a linker \(type ridge\), and has no encoder of its own: name minilm"
    ):
        load_encoder("mine", home)
