"""Vectors of another build: each entity keeps its row, by its key."""

import logging

import numpy as np
import pytest

import kgkit
from kgkit.embedding import remapping
from kgkit.embedding.embed import update
from kgkit.embedding.remapping import row_mapping, take_over
from kgkit.errors import NotThere, UsageError
from kgkit.types import Entity
from tests.toys import PAGES
from tests.vector_toys import DIRECTIONS, built, made

TURNED = [record for record in PAGES if isinstance(record, Entity)][::-1]
"""The toy's entities, the last first: every id is another one."""


@pytest.fixture
def home(tmp_path):
    where, _ = built(tmp_path)
    made(where)
    return where


def rebuilt(tmp_path, *records):
    built(tmp_path, pages=records)


def rows_of(kb, name="plane"):
    return {key: kb.vectors(name).gather(number).tolist() for number, key in enumerate(kb.keys())}


def test_in_a_build_with_other_ids_each_entity_keeps_its_row(home, tmp_path):
    with kgkit.open_kb("toy", home=home) as kb:
        before = rows_of(kb)
    rebuilt(tmp_path, *TURNED)
    with kgkit.open_kb("toy", home=home) as kb:
        take_over(kb, "plane")
        assert rows_of(kb) == before
        assert kb.vectors("plane").manifest.build == kb.build
        assert [found.entity.key for found in kb.nearest("Apple", 1)] == ["Fruit"]


def test_what_is_new_has_no_vector_and_what_is_gone_leaves_none(home, tmp_path, caplog):
    rebuilt(tmp_path, Entity("Pear", "pear"), *TURNED[2:], Entity("Plum", "plum"))
    with kgkit.open_kb("toy", home=home) as kb, caplog.at_level(logging.WARNING):
        vectors = take_over(kb, "plane")
        rows = rows_of(kb)
    assert rows["Pear"] == rows["Plum"] == [0, 0]
    assert rows["Apple"] == [4, 0]
    assert vectors.manifest.results == {"taken_over": 5, "new_entities": 2}
    assert "3 entities of toy have no vector in toy/plane" in caplog.text  # York has none either


def test_the_files_beside_the_matrix_come_along(home, tmp_path):
    with kgkit.open_kb("toy", home=home) as kb, kgkit.vectors.Work(kb, "plane", {"epochs": 3}) as work:
        work.matrix(*DIRECTIONS.shape)[:] = DIRECTIONS
        (work.folder / "rest.bin").write_bytes(b"core")
        work.publish("tucker", files=["rest.bin"])
    rebuilt(tmp_path, *TURNED)
    with kgkit.open_kb("toy", home=home) as kb:
        vectors = take_over(kb, "plane")
    assert (vectors.folder / "rest.bin").read_bytes() == b"core"
    assert vectors.manifest.config["epochs"] == 3
    assert vectors.manifest.config["taken_over"]["build"] != kb.build


def test_a_map_into_another_space_comes_along_and_stays_when_equal_vectors_are_published(home, tmp_path):
    with kgkit.open_kb("toy", home=home) as kb:
        folder = kb.vectors("plane").folder / "align-bert"
        folder.mkdir()
        (folder / "map.safetensors").write_bytes(b"W")
    assert (made(home).folder / "align-bert/map.safetensors").read_bytes() == b"W"
    rebuilt(tmp_path, *TURNED)
    with kgkit.open_kb("toy", home=home) as kb:
        assert (take_over(kb, "plane").folder / "align-bert/map.safetensors").read_bytes() == b"W"


def test_vectors_of_this_very_build_are_left_as_they_are(home):
    with kgkit.open_kb("toy", home=home) as kb:
        assert take_over(kb, "plane").folder == kb.vectors("plane").folder


def test_vectors_of_entities_that_are_all_gone_are_not_published(home, tmp_path):
    rebuilt(tmp_path, Entity("Pear", "pear"))
    with kgkit.open_kb("toy", home=home) as kb:
        with pytest.raises(UsageError, match=r"no entity of toy@.* has a vector in toy/plane"):
            take_over(kb, "plane")
        with pytest.raises(NotThere, match="no vectors 'text'"):
            take_over(kb, "text")


def test_places_agree_with_looking_every_key_up(home, tmp_path):
    with kgkit.open_kb("toy", home=home) as kb:
        old_keys = list(kb.keys())
    rebuilt(tmp_path, Entity("Pear", "pear"), *TURNED[1:5])
    with kgkit.open_kb("toy", home=home) as kb:
        rows, ids = row_mapping(kb, remapping.old_vectors(kb, "plane"))
        had = old_keys[:6]
        slow = [(had.index(key), number) for number, key in enumerate(kb.keys()) if key in had]
    assert list(zip(rows.tolist(), ids.tolist(), strict=True)) == slow


def test_blocks_of_any_size_make_the_same_matrix(home, tmp_path, monkeypatch):
    rebuilt(tmp_path, *TURNED)
    monkeypatch.setattr(remapping, "_BLOCK", 2)
    told: list[tuple[int, int]] = []
    with kgkit.open_kb("toy", home=home) as kb:
        take_over(kb, "plane", progress=lambda stage, *done: told.append(done))
        assert np.array_equal(kb.vectors("plane").gather(kb.id("Apple")), [4, 0])
    assert told == [(2, 6), (4, 6), (6, 6)]


def test_after_an_addition_the_index_stays_in_use(home, tmp_path):
    pytest.importorskip("faiss")
    from kgkit.vectors.indexing import build_index

    with kgkit.open_kb("toy", home=home) as kb:
        vectors = kb.vectors("plane")
        build_index(vectors.matrix, vectors.folder, kind="exact")
        old = (vectors.folder / "index.json").read_bytes()
    more = tmp_path / "more.jsonl"
    more.write_text('{"key": "Pear", "label": "Pear"}\n')
    kgkit.add_to_kb("toy", more, builder="jsonl", home=home)
    new = update("toy", "plane", home=home)
    assert (new.folder / "index.json").read_bytes() == old
    with kgkit.open_kb("toy", home=home) as kb:
        assert kb.build == new.manifest.build
        assert [found.entity.key for found in kb.nearest("Apple", 1)] == ["Fruit"]
