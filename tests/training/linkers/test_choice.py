"""Data without a choice: no mention has several candidates, so that a head has nothing to learn."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.errors import UsageError
from kgkit.training.linkers.head import HeadConfig
from kgkit.training.linkers.train import train_linker
from tests.training.linkers.test_linkers import corpus, encoder, folder, kb, training

__all__ = ["corpus", "encoder", "folder", "kb"]


def test_it_is_refused_before_anything_is_encoded(kb, corpus, monkeypatch):
    settings = {"type": "head", "head": HeadConfig()}

    def read(*_):
        raise AssertionError("it is read")

    data, gold = corpus
    keys = [line for line in gold.read_text().splitlines(keepends=True) if "tree" in line]
    gold.write_text("".join(keys))
    monkeypatch.setattr("kgkit.training.linkers.train.TrainingSet", read)
    with pytest.raises(UsageError, match=r"no mention has several candidates .* link with --model prior"):
        train_linker(kb, "m", training((data, gold), **settings), device="cpu")
    with pytest.raises(AssertionError, match="it is read"):  # the examples have one
        train_linker(kb, "m", training((data, gold), examples=True, **settings), device="cpu")
    with pytest.raises(AssertionError, match="it is read"):  # means learn from every mention
        train_linker(kb, "m", training((data, gold)), device="cpu")
