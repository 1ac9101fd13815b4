"""Models in the catalog: a row for each name, the runs that made and measured it, and no catalog at all."""

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.catalog import Catalog
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import Needs
from kgkit.models.registering import catalogue
from kgkit.training.linkers.train import train_linker
from tests.cli_helpers import run
from tests.training.linkers.test_linkers import corpus, encoder, folder, kb, training

__all__ = ["corpus", "encoder", "folder", "kb"]


def models(home):
    from sqlalchemy import select

    from kgkit.catalog import Model

    with Catalog.open(home) as catalog, catalog.reading() as session:
        return list(session.scalars(select(Model).order_by(Model.name)).unique())


def test_a_training_and_an_evaluation_are_runs_of_the_model(kb, corpus, tmp_path, monkeypatch):
    home = kb.home.path.parents[1]
    monkeypatch.setenv("KGKIT_HOME", str(home))
    files = ["--data", corpus[0], "--gold", corpus[1]]
    train = ["train", "linker", "--name", "taught"]
    for command in (["kb", "list"], [*train, *files], [*train, *files]):
        assert run(*command).code == 0
    for model in ("taught", "prior"):
        assert run("evaluate", "wsd", "--model", model, *files).code == 0
    [row] = models(Home(home))
    assert (row.name, row.kind, row.gone) == ("taught", "linker", None)
    assert (row.build.name, row.vectors.name) == (kb.build, "text")
    assert row.config["temperature"] == LINKER.read(find_trained(Home(home), "taught")).temperature
    with Catalog.open(Home(home)) as catalog:
        assert len(catalog.runs("taught")) == 3
        assert [run_record.model for run_record in catalog.runs()].count(None) == 1


def test_a_model_whose_build_the_catalog_has_not_heard_of_is_kept_too(kb, corpus):
    home = Home(kb.home.path.parents[1])
    manifest = LINKER.read(train_linker(kb, "taught", training(corpus), device="cpu"))
    assert catalogue(home, msgspec.structs.replace(manifest, needs=Needs(kbs={"words": "0" * 12})))
    [row] = models(home)
    assert row.build is None and row.vectors is None


def test_a_catalog_out_of_reach_takes_nothing_from_a_model(kb, corpus, tmp_path, caplog, monkeypatch):
    manifest = LINKER.read(train_linker(kb, "taught", training(corpus), device="cpu"))
    monkeypatch.setenv("KGKIT_CATALOG_URL", f"sqlite:///{tmp_path}/no/such/folder/x.db")
    assert not catalogue(Home(kb.home.path.parents[1]), manifest)
    assert "the model taught is not in the catalog" in caplog.text
