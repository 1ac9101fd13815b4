"""Vectors, indexes and linkers that were made before a KB was edited, with the edited KB."""

import pickle

import numpy as np
import pytest

import kgkit
from kgkit.building.edit import edit_kb
from kgkit.candidates import AliasGenerator
from kgkit.candidates.dense import DenseConfig, DenseGenerator
from kgkit.embedding.embed import update
from kgkit.embedding.remapping import take_over
from kgkit.vectors import Vectors, find_vectors
from kgkit.vectors.indexing import build_index
from tests.vector_toys import DIRECTIONS, built, made

RETIRED = "Apple_Inc."  # id 1, the nearest but one to Apple


@pytest.fixture(params=[None, "exact", "hnsw"])
def home(request, tmp_path):
    """A home whose vectors, and index, were made before an entity was retired."""
    folder, _ = built(tmp_path)
    vectors = made(folder)
    if request.param is not None:
        if request.param == "hnsw":
            pytest.importorskip("faiss", reason="faiss is not installed")
        build_index(vectors.matrix, vectors.folder, kind=request.param)
    edit_kb("toy", [{"key": RETIRED, "retire": True}], home=folder)
    return folder


def opened(home):
    return kgkit.open_kb("toy", home=home)


def test_a_retired_entity_is_not_near_anything(home):
    with opened(home) as kb:
        assert [each.entity.key for each in kb.nearest("Apple", 2)] == ["Fruit", "New_York_City"]
        assert [each.entity.key for each in kb.nearest(DIRECTIONS[1], 5)] == [
            "Fruit",
            "Apple",
            "New_York_City",
            "Road",
        ]
        scores, ids = kb.vectors().nearest(DIRECTIONS, 6)
        assert 1 not in ids and (ids[:, 4:] == -1).all() and np.isneginf(scores[:, 4:]).all()
        assert kb.vectors().nearest(DIRECTIONS[1], 2, among=[1, 2, 4]).ids.tolist() == [[2, 4]]


def test_the_row_of_a_retired_entity_counts_as_zeros_and_all_others_stay(home):
    with opened(home) as kb:
        vectors = kb.vectors("plane")
        expected = DIRECTIONS.copy()
        expected[1] = 0
        for each in (vectors, pickle.loads(pickle.dumps(vectors))):
            np.testing.assert_array_equal(each.gather(range(6)), expected)
        assert vectors.matrix[1].tolist() == [3, 1]  # on the disk it is what it was
        assert vectors.gather([[1, 0], [6, 1]]).tolist() == [[[0, 0], [4, 0]], [[0, 0], [0, 0]]]


def test_after_an_update_the_row_is_empty_and_the_others_are_as_they_were(home):
    update("toy", "plane", home=home, index=False)
    with opened(home) as kb:
        vectors = Vectors.open(find_vectors(kb.home, "plane"))
        assert vectors.manifest.build == kb.build
        expected = DIRECTIONS.copy()
        expected[1] = 0
        np.testing.assert_array_equal(vectors.matrix, expected)
        assert vectors.keys[1] == 0 and vectors.manifest.covered == 4


def test_an_entity_that_comes_again_gets_a_row_of_its_own(home):
    take_over_after = {"key": RETIRED, "label": "Apple Computer"}
    kgkit.add_to_kb("toy", [take_over_after], home=home)
    with opened(home) as kb:
        assert kb[RETIRED].id == 7
        vectors = take_over(kb, "plane")
        assert vectors.gather(1).tolist() == [0, 0]
        assert vectors.gather(7).tolist() == [3, 1]  # the vector of that key


def test_vectors_are_as_ever_where_nothing_was_retired(tmp_path):
    folder, _ = built(tmp_path)
    made(folder)
    edit_kb("toy", [{"key": "Apple", "description": "a fruit"}], home=folder)
    with opened(folder) as kb:
        assert len(kb.vectors().hidden) == 0
        assert [each.entity.key for each in kb.nearest("Apple", 2)] == ["Fruit", "Apple_Inc."]


class Encoder:
    """Gives each text the direction of Apple_Inc."""

    def encode(self, texts):
        return np.tile(DIRECTIONS[1], (len(texts), 1))


@pytest.mark.parametrize("by_folder", [False, True])
def test_a_dense_candidate_is_never_a_retired_entity(home, by_folder):
    with opened(home) as kb:
        vectors = Vectors.open(find_vectors(kb.home, "plane")) if by_folder else kb.vectors("plane")
        generator = DenseGenerator(AliasGenerator(kb), Encoder(), vectors, DenseConfig(max_candidates=3))
        documents = [*generator([kgkit.Document("d", "Apple", mentions=[kgkit.Mention(0, 5, "Apple")])])]
        candidates = documents[0].mentions[0].candidates
        assert len(candidates) and 1 not in candidates.ids


def test_a_linker_of_before_links_with_the_edited_kb(tmp_path):
    folder, _ = built(tmp_path)
    made(folder)
    before = kgkit.Linker.open("toy", model="prior", home=folder)
    linked = linked_by(before)
    edit_kb("toy", [{"key": key, "retire": True} for key in linked], home=folder)
    assert linked_by(before) == linked  # it has the build it was opened with
    assert linked_by(pickle.loads(pickle.dumps(before))) == linked
    assert linked.isdisjoint(linked_by(kgkit.Linker.open("toy", model="prior", home=folder)))


def linked_by(linker):
    [document] = linker(["Apple"])
    return {link.entity for link in document.links}
