"""A linker that was trained before its knowledge base was edited, with the edited one."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit import edit_kb, open_kb
from kgkit.embedding.text import update_text
from kgkit.linking import Linker
from kgkit.training.linkers.train import train_linker
from tests.training.linkers.test_linkers import TEXT, corpus, encoder, folder, kb, training

__all__ = ["corpus", "encoder", "folder", "kb"]

EDITS = [
    {"key": "dog.n.02", "retire": True},
    {"key": "dog%2", "retire": True},
    {"key": "tree.n.01", "description": "a green tree grows"},
]


def entities(kb, model):
    [linked] = Linker.open(kb, model=model, device="cpu")([TEXT])
    return [link.entity for link in linked.links]


@pytest.mark.parametrize("model_type", ["ridge", "head"])
def test_it_still_serves_and_proposes_no_retired_entity(kb, corpus, model_type, monkeypatch):
    monkeypatch.setattr("kgkit.training.linkers.train.FEWEST", 1 if model_type == "head" else 5_000)
    train_linker(kb, "m", training(corpus), device="cpu")
    assert entities(kb, "m") == ["dog.n.01", "dog.n.02", "dog.n.01", "tree.n.01"]
    home = kb.home.path.parents[1]
    edit_kb(kb.name, EDITS, home=home)
    with open_kb(kb.name, home) as edited:
        assert entities(edited, "m") == ["dog.n.01", "dog.n.01", "dog.n.01", "tree.n.01"]
        assert not edited.vectors("text").gather(kb.id("dog.n.02")).any()
        vectors = update_text(edited, "text", device="cpu")
        assert vectors.manifest.results["encoded"] == 1  # the text that has changed
        assert not vectors.matrix[kb.id("dog.n.02")].any() and vectors.matrix[kb.id("tree.n.01")].any()
        assert entities(edited, "m") == ["dog.n.01", "dog.n.01", "dog.n.01", "tree.n.01"]
    assert entities(kb, "m")[1] == "dog.n.02"  # which is open on the build of before
