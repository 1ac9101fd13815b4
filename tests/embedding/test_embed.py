"""From a KB's name to vectors with an index: what is refused before the work, and what is lost by nothing."""

import logging

import numpy as np
import pytest

import kgkit
from kgkit.building.registering import agrees
from kgkit.embedding import embed as module
from kgkit.embedding.concat import ConcatConfig
from kgkit.embedding.embed import embed, update
from kgkit.errors import NotThere, UsageError
from kgkit.home import Home
from kgkit.vectors import find_vectors, vectors_names
from kgkit.vectors.index import index_manifest
from kgkit.vectors.indexing import build_index
from tests.toys import PAGES
from tests.vector_toys import DIRECTIONS, built, made

BOTH = ConcatConfig(parts=("plane", "other"), name="both")


@pytest.fixture
def home(tmp_path):
    where, _ = built(tmp_path)
    made(where)
    made(where, -DIRECTIONS, name="other")
    return where


def names(home):
    with kgkit.open_kb("toy", home=home) as kb:
        return vectors_names(kb.home)


def stopped(*_, **__):
    raise KeyboardInterrupt


def test_an_index_that_fails_leaves_the_vectors_and_says_how_to_build_it(home, monkeypatch, caplog):
    monkeypatch.setattr("kgkit.vectors.indexing.build_index", stopped)
    with caplog.at_level(logging.WARNING), pytest.raises(KeyboardInterrupt):
        embed("toy", BOTH, home=home)
    assert names(home) == ["both", "other", "plane"]
    assert "toy/both is made, its index is not: `kgkit index toy/both` builds it" in caplog.text


def test_vectors_of_an_older_build_do_not_take_the_place_of_the_published_ones(home, tmp_path):
    with kgkit.open_kb("toy", home=home) as kb:
        old = f"toy@{kb.build}"
    embed("toy", BOTH, home=home)
    built(tmp_path, pages=PAGES[1:])
    for name in ("plane", "other", "both"):
        update("toy", name, home=home)
    with kgkit.open_kb("toy", home=home) as kb:
        before = find_vectors(kb.home, "both")
    with pytest.raises(UsageError, match="which would be lost: `kgkit kb publish toy@"):
        update(old, "both", home=home)
    with kgkit.open_kb(old, home=home) as kb:
        made(home, kb=old, name="first")
        made(home, kb=old, name="second")
        parts = ("first", "second")
        with pytest.raises(UsageError, match="would be lost: give the new ones a name of their own"):
            embed(kb, ConcatConfig(parts=parts, name="both"))
        assert embed(kb, ConcatConfig(parts=parts, name="older")).manifest.build == kb.build
        assert find_vectors(kb.home, "both") == before


def test_an_update_builds_an_index_of_the_kind_and_recall_that_there_was(home, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr("kgkit.vectors.indexing._FEW", 1)
    vectors = made(home, np.eye(7, 4, dtype=np.float32) + 1, name="wide")
    build_index(vectors.matrix, vectors.folder, kind="hnsw", recall=0.5)
    built(tmp_path, pages=PAGES[1:])
    found = index_manifest(update("toy", "wide", home=home).folder)
    assert (found.kind, found.recall.target) == ("hnsw", 0.5)
    assert index_manifest(update("toy", "plane", home=home).folder).kind == "exact"  # it had none


def test_an_update_that_was_stopped_before_the_index_is_finished_by_the_next(home, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("kgkit.vectors.indexing.build_index", stopped)
        update("toy", "plane", home=home)
    assert agrees(Home(home))
    assert index_manifest(update("toy", "plane", home=home, index=False).folder) is None
    folder = update("toy", "plane", home=home).folder
    assert index_manifest(folder).kind == "exact"
    monkeypatch.setattr("kgkit.vectors.indexing.build_index", stopped)
    assert update("toy", "plane", home=home).folder == folder  # nothing is left to do


def test_vectors_that_others_have_taken_the_place_of_are_not_indexed(home, monkeypatch):
    def overtaken(kb, config, resume, progress):
        first = made(home, name="both")
        made(home, -DIRECTIONS, name="both")
        return first

    monkeypatch.setattr(module, "_run_method", overtaken)
    with pytest.raises(NotThere):
        embed("toy", BOTH, home=home)
    with kgkit.open_kb("toy", home=home) as kb:
        assert index_manifest(find_vectors(kb.home, "both")) is None
