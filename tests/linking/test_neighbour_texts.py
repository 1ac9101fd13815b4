"""Texts of neighbours behind those of entities: what stands in a row, and whose texts are made."""

import numpy as np
import pytest

import kgkit
from kgkit.building.edit import edit_kb
from kgkit.errors import UnknownName
from kgkit.linking import neighbour_texts
from kgkit.linking.neighbour_texts import NeighbourTexts, own_texts, with_neighbours
from kgkit.types import Entity, Triple
from kgkit.vectors.scan import unit
from tests.small_kb import build

KEYS = ("dog", "cat", "animal", "thing", "bone")
RECORDS = (
    *(Entity(key, key) for key in KEYS),
    Triple("dog", "kind", "animal"),
    Triple("cat", "kind", "animal"),
    Triple("animal", "kind", "thing"),
    Triple("dog", "likes", "bone"),
    Triple("dog", "likes", "cat"),
    Triple("dog", "likes", "animal"),
)


class Rows:
    """Vectors of five entities, which remember whose rows were made."""

    name, width, manifest = "pets/text", 3, None

    def __init__(self, kb):
        self.matrix = np.random.default_rng(0).normal(size=(len(KEYS), 3)).astype(np.float32)
        self.matrix[kb.id("bone")] = 0
        self.prepared = []

    def gather(self, ids):
        return self.matrix[np.asarray(ids, np.int64)]

    def prepare(self, ids):
        self.prepared += np.asarray(ids).tolist()


@pytest.fixture
def kb(tmp_path):
    with build(tmp_path, RECORDS, name="pets") as kb:
        yield kb


@pytest.fixture
def rows(kb):
    return Rows(kb)


def unit_of(rows, kb, key):
    row = rows.matrix[kb.id(key)]
    return row / max(1e-9, np.linalg.norm(row))


def test_each_relation_has_the_mean_of_its_neighbours_texts(kb, rows):
    texts = NeighbourTexts(kb, rows, ["kind", "likes"])
    assert texts.width == 9 and texts.own_width == 3 and texts.name == "pets/text"
    expected = [
        unit_of(rows, kb, "dog"),
        unit_of(rows, kb, "animal"),
        (unit_of(rows, kb, "cat") + unit_of(rows, kb, "animal")) / 2,  # the bone has no text
    ]
    np.testing.assert_allclose(texts.gather([kb.id("dog")])[0], np.concatenate(expected), atol=1e-6)


def test_what_has_no_neighbour_has_zeros_in_their_place(kb, rows):
    row = NeighbourTexts(kb, rows, ["likes", "kind"]).gather(kb.id("animal"))
    assert row.shape == (9,) and not row[3:6].any() and row[6:].any()
    assert not NeighbourTexts(kb, rows, ["likes"]).gather([kb.id("thing"), kb.id("bone")])[:, 3:].any()


def test_ids_come_in_any_shape_and_more_than_once(kb, rows):
    texts = NeighbourTexts(kb, rows, ["kind"])
    ids = np.array([[kb.id("dog"), kb.id("cat")], [kb.id("cat"), kb.id("dog")]])
    several = texts.gather(ids)
    assert several.shape == (2, 2, 6)
    np.testing.assert_array_equal(several[0, 0], several[1, 1])
    np.testing.assert_array_equal(several[0, 1], texts.gather(kb.id("cat")))
    assert texts.gather(np.empty(0, np.uint32)).shape == (0, 6)


def test_of_very_many_neighbours_the_first_ones_are_read(kb, rows, monkeypatch):
    monkeypatch.setattr(neighbour_texts, "_MOST", 2)
    row = NeighbourTexts(kb, rows, ["likes"]).gather(kb.id("dog"))[3:]
    expected = unit_of(rows, kb, "cat")  # of the two, the bone has no text
    np.testing.assert_allclose(row, expected, atol=1e-6)


def test_neighbours_without_a_text_do_not_count(kb, rows):
    ids = [kb.id(key) for key in ("dog", "cat", "animal", "bone")]
    before = NeighbourTexts(kb, rows, ["likes"]).gather(ids)
    rows.matrix[kb.id("cat")] = 0
    texts = NeighbourTexts(kb, rows, ["likes"]).gather(ids)
    np.testing.assert_array_equal(texts[0, 3:], unit_of(rows, kb, "animal"))
    rows.matrix[kb.id("animal")] = 0
    assert not NeighbourTexts(kb, rows, ["likes"]).gather(ids)[:, 3:].any() and before[0, 3:].any()


def test_where_all_neighbours_have_texts_the_mean_is_that_of_all_to_the_bit(kb, rows):
    rows.matrix = np.random.default_rng(1).normal(size=rows.matrix.shape).astype(np.float32)
    for relation, keys in (("likes", ("bone", "cat", "animal")), ("kind", ("animal",))):
        neighbours = kb.neighbors(kb.id("dog"), relation)
        assert sorted(neighbours) == sorted(kb.id(key) for key in keys)
        texts = unit(rows.gather(neighbours))
        row = NeighbourTexts(kb, rows, [relation]).gather(kb.id("dog"))[3:]
        mean = np.add.reduceat(texts, [0]) / np.array([[len(keys)]])
        np.testing.assert_array_equal(row, mean[0].astype(np.float32))


def test_texts_of_neighbours_are_made_with_those_of_entities(kb, rows):
    NeighbourTexts(kb, rows, ["kind", "likes"]).prepare([kb.id("dog"), kb.id("cat")])
    assert sorted(rows.prepared) == sorted(kb.id(key) for key in ("dog", "cat", "animal", "bone"))


def test_a_retired_entity_has_no_neighbours(tmp_path, kb, rows):
    edit_kb("pets", [{"key": "cat", "retire": True}], home=tmp_path)
    with kgkit.open_kb("pets", home=tmp_path) as edited:
        texts = NeighbourTexts(edited, rows, ["kind", "likes"])
        ids = np.arange(len(KEYS))
        texts.prepare(ids)
        joined = texts.gather(ids)
    assert not joined[kb.id("cat"), 3:].any() and joined[kb.id("dog"), 3:].any()


def test_neighbours_that_are_forgotten_are_looked_up_again(kb, rows, monkeypatch):
    ids = [kb.id(key) for key in KEYS]
    expected = NeighbourTexts(kb, rows, ["kind", "likes"]).gather(ids)
    monkeypatch.setattr(neighbour_texts, "_CACHE_BYTES", 500)
    texts = NeighbourTexts(kb, rows, ["kind", "likes"])
    for _ in range(2):
        np.testing.assert_array_equal(texts.gather(ids), expected)
    assert len(texts._neighbours) <= 2


def test_a_relation_that_the_kb_lacks_is_refused_with_those_it_has(kb, rows):
    with pytest.raises(UnknownName, match="no relation in 'pets' named 'kinds'; there are: kind, likes"):
        NeighbourTexts(kb, rows, ["kinds"])


def test_without_relations_the_rows_are_as_they_were(kb, rows):
    assert with_neighbours(kb, rows, ()) is rows
    joined = with_neighbours(kb, rows, ["kind"])
    texts = joined.gather([kb.id("dog"), kb.id("cat")])
    np.testing.assert_array_equal(own_texts(texts, joined), texts[:, :3])
    np.testing.assert_array_equal(own_texts(rows.matrix, rows), rows.matrix)
