"""From a KB's name to vectors with an index: what is refused before the work, and what is lost by nothing."""

import logging
import sys

import numpy as np
import pytest

import kgkit
from kgkit.building.registering import agrees
from kgkit.embedding import embed as module
from kgkit.embedding.concat import ConcatConfig
from kgkit.embedding.embed import embed, update
from kgkit.embedding.remapping import take_over
from kgkit.errors import MissingExtra, NotThere, UnknownName, UsageError
from kgkit.home import Home
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


@pytest.fixture
def indexless(home, tmp_path, monkeypatch):
    """Return the home after an update that was stopped before the index, `sq8` for a recall of 0.5."""
    pytest.importorskip("faiss")
    monkeypatch.setattr("kgkit.vectors.indexing._FEW", 1)
    vectors = made(home, np.eye(7, 4, dtype=np.float32) + 1, name="wide")
    build_index(vectors.matrix, vectors.folder, kind="sq8", recall=0.5)
    built(tmp_path, pages=PAGES[1:])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("kgkit.vectors.indexing.build_index", stopped)
        update("toy", "wide", home=home)
    return home


def stopped(*_, **__):
    raise KeyboardInterrupt


def test_an_update_that_was_stopped_before_the_index_is_finished_by_the_next(indexless):
    found = index_manifest(update("toy", "wide", home=indexless).folder)
    assert (found.kind, found.recall.target) == ("sq8", 0.5)


def test_the_index_of_a_stopped_update_is_not_forgotten_by_one_to_a_later_build(indexless, tmp_path):
    built(tmp_path, pages=PAGES[2:])
    found = index_manifest(update("toy", "wide", home=indexless).folder)
    assert (found.kind, found.recall.target) == ("sq8", 0.5)


def test_an_update_without_an_index_builds_none_and_needs_none(indexless, no_faiss):
    assert index_manifest(update("toy", "wide", home=indexless, index=None).folder) is None


def test_an_index_that_is_named_is_built_for_vectors_of_this_very_build(home):
    before = made(home, name="plain").folder
    vectors = update("toy", "plain", home=home, index="exact")
    assert vectors.folder == before
    assert index_manifest(before).kind == "exact"


def test_an_update_of_what_is_complete_builds_nothing(home, monkeypatch):
    folder = update("toy", "plane", home=home, index="exact").folder
    monkeypatch.setattr("kgkit.vectors.indexing.build_index", stopped)
    for index in ("auto", "exact", None):
        assert update("toy", "plane", home=home, index=index).folder == folder


def test_the_catalog_hears_of_vectors_whatever_becomes_of_their_index(home, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("kgkit.vectors.indexing.build_index", stopped)
        update("toy", "plane", home=home, index="exact")
    assert agrees(Home(home))
    built(tmp_path, pages=PAGES[1:])
    with kgkit.open_kb("toy", home=home) as kb:
        take_over(kb, "plane")
    assert not agrees(Home(home))
    update("toy", "plane", home=home)
    assert agrees(Home(home))


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
