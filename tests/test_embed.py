"""From a KB's name to vectors with an index: what is refused before the work, and what is lost by nothing."""

import logging
import sys

import numpy as np
import pytest

import kgkit
from kgkit.embedding import embed as module
from kgkit.embedding.concat import ConcatConfig
from kgkit.embedding.embed import embed, update
from kgkit.errors import MissingExtra, NotThere, UnknownName, UsageError
from kgkit.vectors import find_vectors, kinds, vectors_names
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


@pytest.fixture
def no_faiss(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(kinds, "_installed", lambda package: False)


def test_an_index_that_cannot_be_built_is_told_before_the_work(home, no_faiss):
    with pytest.raises(UnknownName, match="no kind of index named 'best'"):
        embed("toy", BOTH, home=home, index="best")
    with pytest.raises(MissingExtra, match=r"kgkit\[cpu\]"):
        embed("toy", BOTH, home=home, index="hnsw")
    assert names(home) == ["other", "plane"]


def test_an_index_that_fails_leaves_the_vectors_and_says_how_to_build_it(home, monkeypatch, caplog):
    def stopped(*_, **__):
        raise KeyboardInterrupt

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


def test_an_update_after_a_rebuild_builds_the_index_that_there_was(home, tmp_path):
    embed("toy", BOTH, home=home, index="exact")
    built(tmp_path, pages=PAGES[1:])
    assert index_manifest(update("toy", "both", home=home).folder).kind == "exact"
    assert index_manifest(update("toy", "plane", home=home).folder) is None  # it had none


def test_an_update_does_not_need_faiss_to_keep_an_index(home, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    rows = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    vectors = made(home, rows, name="wide")
    monkeypatch.setattr("kgkit.vectors.indexing._FEW", 1)
    build_index(vectors.matrix, vectors.folder, kind="sq8")
    more = tmp_path / "more.jsonl"
    more.write_text('{"key": "Pear", "label": "Pear"}\n')
    kgkit.add_to_kb("toy", more, builder="jsonl", home=home)
    monkeypatch.setattr(module, "faiss_module", None)
    monkeypatch.setattr(kinds, "_installed", lambda package: False)
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert index_manifest(update("toy", "wide", home=home).folder).kind == "sq8"


def test_an_update_builds_an_index_of_the_kind_and_recall_that_there_was(home, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr("kgkit.vectors.indexing._FEW", 1)
    vectors = made(home, np.eye(7, 4, dtype=np.float32) + 1, name="wide")
    build_index(vectors.matrix, vectors.folder, kind="sq8", recall=0.5)
    built(tmp_path, pages=PAGES[1:])
    found = index_manifest(update("toy", "wide", home=home).folder)
    assert (found.kind, found.recall.target) == ("sq8", 0.5)
    assert found.created.endswith("+00:00")


def test_vectors_that_others_have_taken_the_place_of_are_not_indexed(home, monkeypatch):
    def overtaken(kb, config, resume, progress):
        first = made(home, name="both")
        made(home, -DIRECTIONS, name="both")
        return first

    monkeypatch.setattr(module, "_made", overtaken)
    with pytest.raises(NotThere):
        embed("toy", BOTH, home=home)
    with kgkit.open_kb("toy", home=home) as kb:
        assert index_manifest(find_vectors(kb.home, "both")) is None
