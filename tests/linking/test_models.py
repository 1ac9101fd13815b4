"""Which models there are, what they need beside their folder, and what is told where that is missing."""

import json
import shutil

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.embedding.text import TextConfig, embed_text
from kgkit.errors import StaleModel, UnknownName, UsageError
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.linking import Linker
from kgkit.linking.models import find_scorer
from kgkit.models.folder import find_model_folder, find_trained, model_folder
from kgkit.models.kinds import TaggerManifest
from kgkit.models.manifest import FORMAT, MANIFEST
from kgkit.models.opening import open_model
from kgkit.models.publishing import write_manifest
from kgkit.training.linkers.train import train_linker
from tests.small_kb import build
from tests.tiny_encoder import tiny_encoder
from tests.toys import run_python
from tests.training.linkers.test_linkers import RECORDS, TEXT, corpus, encoder, folder, training

__all__ = ["corpus", "encoder", "folder"]

TEMPLATE = "{label}, {description}"


@pytest.fixture(scope="module")
def trained(tmp_path_factory, folder, encoder):
    """A home with the knowledge base `words`, its vectors `text`, and the trained model `tuned`."""
    home = tmp_path_factory.mktemp("trained")
    files = corpus.__wrapped__(tmp_path_factory.mktemp("corpus"))
    with build(home, RECORDS, name="words") as kb:
        text = TextConfig(encoder=str(folder), device="cpu", dtype="float32", template=TEMPLATE)
        embed_text(kb, text, encoder=encoder)
        train_linker(kb, "tuned", training(files), device="cpu")
    return home


@pytest.fixture
def kb(tmp_path, trained):
    shutil.copytree(trained, tmp_path / "home", symlinks=True)
    with open_kb("words", tmp_path / "home") as kb:
        yield kb


def linked(kb, model, **settings):
    [found] = Linker.open(kb, model=model, device="cpu", **settings)([TEXT])
    return [(link.entity, link.score) for link in found.links]


def tagger(home, name):
    """A tagger, as far as its manifest goes."""
    where = home / "models" / name
    where.mkdir(parents=True)
    manifest = TaggerManifest(
        format=FORMAT, kind="tagger", name=name, types=("PER",), encoder="x", fingerprint="x", reader={}
    )
    write_manifest(where, manifest)


def test_names_that_are_not_there_are_told_with_those_of_the_kind_that_was_asked_for(trained, tmp_path):
    shutil.copytree(trained / "models", tmp_path / "models")
    tagger(tmp_path, "names")
    for role, others in (("linker", {"prior", "gloss", "tuned"}), ("tagger", {"names"})):
        with pytest.raises(UnknownName, match="nope") as caught:
            find_model_folder("nope", Home(tmp_path), role)
        names = {*caught.value.names}
        assert names >= others and ("names" in names) == (role == "tagger")


@pytest.mark.parametrize("model", [None, 3, b"tuned"])
def test_a_model_that_is_neither_a_name_nor_a_path_is_told(kb, model):
    for opened in (lambda: open_model(model), lambda: find_scorer(model, kb)):
        with pytest.raises(UsageError, match="it is a name, or the path of a folder"):
            opened()


def test_a_model_is_opened_on_a_knowledge_base_that_is_open(kb):
    home = kb.home.path.parents[1]
    with pytest.raises(UsageError, match=r"kb is 'words'; .* kgkit\.open_kb\('words'\), .*model='tuned'\)"):
        open_model("tuned", "linker", home=home, kb="words")


@pytest.mark.parametrize("name", ["prior", "links-minilm", "wsd-minilm", "names-minilm"])
def test_no_model_is_trained_under_the_name_of_one_that_all_have(tmp_path, name):
    shipped = "prior, gloss, links-minilm, names-minilm, wsd-minilm"
    with pytest.raises(UsageError, match=f"'{name}' cannot name a model: .* {shipped}, which"):
        model_folder(Home(tmp_path), name)


def test_the_extra_that_is_missing_is_named_once_the_model_is_known_to_be_there(kb):
    home = kb.home.path.parents[1]
    tagger(home, "names")
    said = run_python(f"""
import sys
sys.modules["torch"] = sys.modules["openvino"] = None
from kgkit.errors import KgkitError
from kgkit.linking import Linker
from kgkit.tagging.tagger import Tagger
home = {str(home)!r}
for act in (
    lambda: Tagger.open("names", home=home),
    lambda: Tagger.open("nmaes", home=home),
    lambda: Linker.open("words", home=home, mentions="names"),
    lambda: Linker.open("words", home=home, model="tuned"),
    lambda: Linker.open("words", home=home, model="gloss", vectors="text"),
):
    try:
        act()
    except KgkitError as error:
        print(type(error).__name__, getattr(error, "extra", ""))
""")
    train, neural = "MissingExtra train", "MissingExtra neural"
    assert said.stdout.splitlines() == [train, "UnknownModel ", train, neural, neural]


# -- vectors of another encoder ---------------------------------------------


def test_vectors_of_another_encoder_are_told_with_what_makes_the_right_ones(kb, tmp_path):
    other = tiny_encoder(tmp_path / "other", seed=5)
    for name in ("text", "more"):
        embed_text(kb, TextConfig(encoder=str(other), name=name, dtype="float32", device="cpu"))
    again = "kgkit train linker --name tuned --kb words"
    with pytest.raises(StaleModel, match="--encoder ") as caught:
        linked(kb, "tuned")
    assert again in str(caught.value)
    with pytest.raises(StaleModel, match="--vectors more") as caught:
        linked(kb, "tuned", vectors="more")
    assert again in str(caught.value)


@pytest.mark.parametrize("removed", ["full", "rerank", "strange"])
def test_a_model_of_a_removed_type_is_refused_with_what_to_do(kb, removed):
    path = find_trained(Home(kb.home.path.parents[1]), "tuned") / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "type": removed}))
    with pytest.raises(StaleModel, match=f"'{removed}'"):
        linked(kb, "tuned")
