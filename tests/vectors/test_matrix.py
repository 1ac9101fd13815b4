"""Matrices with a row for each entity: reading them, finding what is near, refusing what does not fit."""

import json
import os
import pickle
import shutil
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest

import kgkit
from kgkit.errors import (
    DamagedVectors,
    MissingExtra,
    NotThere,
    StaleVectors,
    UnknownEntity,
    UnknownName,
    UsageError,
)
from kgkit.store import prune
from kgkit.vectors import Vectors, damages, find_vectors, remove_vectors, vectors_names
from kgkit.vectors.layout import key_digest
from tests.toys import LINKS, PAGES, run_python
from tests.vector_toys import DIRECTIONS, built, made


@pytest.fixture
def home(tmp_path):
    """A home with the toy and its vectors `plane`."""
    where, _ = built(tmp_path)
    made(where)
    return where


@pytest.fixture
def kb(home):
    with kgkit.open_kb("toy", home=home) as open_inner:
        yield open_inner


def near(kb, *args, **settings):
    return [(found.entity.key, round(found.score, 3)) for found in kb.nearest(*args, **settings)]


# -- reading -----------------------------------------------------------------------------------------------


def test_row_i_belongs_to_entity_i(kb):
    assert np.array_equal(kb.vectors("plane").gather(kb.id("Apple_Inc.")), [3, 1])


def test_an_entity_without_a_vector_has_zeros_whether_or_not_there_is_a_row(kb):
    found = kb.vectors("plane").gather([kb.id("York"), kb.id("Company"), 0])
    assert np.array_equal(found, [[0, 0], [0, 0], [4, 0]])


def test_ids_of_any_shape_are_gathered_in_that_shape(kb):
    vectors = kb.vectors("plane")
    assert vectors.gather([[0, 1], [2, 6]]).shape == (2, 2, 2)
    assert vectors.gather([]).shape == (0, 2)
    assert vectors.gather(np.uint32(5)).tolist() == DIRECTIONS[5].tolist()
    assert vectors.gather(np.array([0, 2**64 - 1], np.uint64)).tolist() == [[4, 0], [0, 0]]


@pytest.mark.parametrize("wrong", [-1, [0, -3], 1.5, ["Apple"]])
def test_what_is_no_id_is_refused(kb, wrong):
    with pytest.raises(UsageError, match="integers from 0"):
        kb.vectors("plane").gather(wrong)


def test_the_matrix_is_mapped_and_cannot_be_written_to(kb):
    vectors = kb.vectors("plane")
    assert isinstance(vectors.matrix, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        vectors.matrix[0] = 1
    vectors.gather([0])[:] = 7  # a copy: this harms nobody
    assert vectors.matrix[0].tolist() == [4, 0]


def test_the_manifest_tells_what_was_made_of_what(kb):
    manifest = kb.vectors("plane").manifest
    assert (manifest.kb, manifest.build, manifest.name, manifest.method) == ("toy", kb.build, "plane", "hand")
    assert (manifest.rows, manifest.covered, manifest.width) == (6, 5, 2)
    assert manifest.config == {"method": "hand"}
    assert manifest.versions["numpy"] == np.__version__


def test_keys_are_kept_as_digests(kb):
    vectors = kb.vectors("plane")
    assert vectors.keys.tolist() == [key_digest(kb.key(row)) for row in range(6)]


def test_vectors_are_opened_once_by_a_handle_and_the_only_ones_need_no_name(kb):
    assert kb.vectors("plane") is kb.vectors("plane")
    assert kb.vectors().name == kb.vectors("toy/plane").name == "toy/plane"


def test_of_several_vectors_one_must_be_named(home):
    made(home, name="other")
    with kgkit.open_kb("toy", home=home) as kb:
        assert vectors_names(kb.home) == ["other", "plane"]
        with pytest.raises(UsageError, match="toy/other, toy/plane: name one"):
            kb.vectors()


def test_vectors_that_are_not_there_are_told_with_those_that_are(kb):
    with pytest.raises(NotThere, match=r"no vectors 'text' \(there are: toy/plane\): `kgkit embed toy"):
        kb.vectors("text")
    with pytest.raises(UsageError, match="another knowledge base"):
        kb.vectors("wordnet/text")


def test_a_kb_without_vectors_says_how_to_make_some(toy):
    with pytest.raises(NotThere, match="`kgkit embed toy --method text` makes some"):
        toy.nearest("Apple")


@pytest.mark.parametrize("name", ["a/b/c", "..", "toy/", "x y", "-x", "é"])
def test_a_name_that_no_folder_can_have_is_not_looked_for(kb, name):
    with pytest.raises((UsageError, NotThere)):
        kb.vectors(name)


# -- what is near ------------------------------------------------------------------------------------------


def test_the_nearest_come_first_and_an_entity_is_not_near_itself(kb):
    assert near(kb, "Apple") == [
        ("Fruit", 1.0), ("Apple_Inc.", 0.949), ("New_York_City", 0.0), ("Road", -1.0),
    ]  # fmt: skip


def test_a_redirect_an_id_and_the_entity_itself_ask_the_same(kb):
    expected = near(kb, "Apple", 2)
    for query in ("Apples", 0, np.uint32(0), kb["Apple"]):
        assert near(kb, query, 2) == expected


def test_a_vector_is_near_the_entity_it_is(kb):
    assert near(kb, [8, 0], 1) == [("Apple", 1.0)]
    assert near(kb, np.array([0.0, 1.0]), 1) == [("New_York_City", 1.0)]


def test_only_entities_of_a_kind_are_told_when_asked_so(kb):
    assert near(kb, "Apple", 3, kind="category") == [("Fruit", 1.0)]
    with pytest.raises(UnknownName, match="category, page"):
        kb.nearest("Apple", kind="pages")


def test_of_a_rare_kind_as_many_are_found_as_there_are(home):
    with kgkit.open_kb("toy", home=home) as kb:
        for k in (1, 2, 10**12):
            assert near(kb, "Apple", k, kind="category") == [("Fruit", 1.0)]
        assert near(kb, "Fruit", 3, kind="category") == []
        assert len(near(kb, "Apple", 10**12)) == 4  # nothing so large is ever laid out


def test_only_the_ids_that_are_asked_for_are_compared(kb):
    found = kb.vectors("plane").nearest([[1, 0], [0, 0]], 3, among=[1, 3, 4, 6])
    assert found.ids.tolist() == [[1, 4, -1], [-1, -1, -1]]
    assert found.scores[0, :2].tolist() == kb.vectors("plane").nearest([1, 0], 5).scores[0, [2, 4]].tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_query_that_is_not_finite_is_refused(kb, bad):
    with pytest.raises(UsageError, match="not finite"):
        kb.nearest([bad, 1])


def test_an_entity_without_a_vector_is_near_nothing(kb):
    assert kb.nearest("York") == kb.nearest("Company") == []


def test_queries_that_do_not_fit_are_refused(kb):
    with pytest.raises(UsageError, match=r"width 2, the query has shape \(3,\)"):
        kb.nearest([1, 2, 3])
    with pytest.raises(UsageError, match="at least 1"):
        kb.nearest("Apple", 0)
    with pytest.raises(UnknownEntity):
        kb.nearest("Pear")
    with pytest.raises(UsageError, match="width 2"):
        kb.vectors("plane").nearest(np.zeros((2, 3)))


def test_several_queries_at_once_give_a_row_each(kb):
    found = kb.vectors("plane").nearest(DIRECTIONS[:3], 2)
    assert found.ids.tolist() == [[0, 5], [1, 5], [2, 1]]
    assert found.scores.shape == (3, 2)
    assert kb.vectors("plane").nearest(np.zeros((0, 2)), 2).ids.shape == (0, 2)


def test_where_there_are_fewer_the_rest_is_minus_one(kb):
    found = kb.vectors("plane").nearest([1, 0], 7)
    assert found.ids[0].tolist() == [0, 5, 1, 2, 4, -1, -1]
    assert np.isneginf(found.scores[0, 5:]).all()


def test_a_query_of_zeros_finds_nothing(kb):
    assert kb.vectors("plane").nearest([0, 0], 3).ids.tolist() == [[-1, -1, -1]]
    assert kb.nearest([0.0, 0.0]) == []


# -- sharing -----------------------------------------------------------------------------------------------


def test_a_pickle_opens_the_same_version_and_holds_no_numbers(home):
    vectors = made(home, np.ones((7, 500)))
    pickled = pickle.dumps(vectors)
    assert len(pickled) < 1000
    assert pickle.loads(pickled).manifest == vectors.manifest


def test_a_pickle_of_vectors_that_were_replaced_is_stale(home):
    pickled = pickle.dumps(made(home))
    made(home, 2 * DIRECTIONS)
    with pytest.raises(StaleVectors, match="open the vectors by name again"):
        pickle.loads(pickled)


def test_who_has_vectors_open_reads_on_when_new_ones_land(home, kb):
    old = kb.vectors("plane")
    made(home, -DIRECTIONS)
    assert old.gather(0).tolist() == [4, 0]
    with kgkit.open_kb("toy", home=home) as again:
        assert again.vectors("plane").gather(0).tolist() == [-4, 0]


def test_threads_share_one_handle(kb):
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.extend(near(kb, "Apple", 1) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[("Fruit", 1.0)]] * 200


def test_a_forked_child_reads_on(kb):
    near(kb, "Apple", 1)
    pid = os.fork()
    if not pid:
        os._exit(near(kb, "Apple", 1) != [("Fruit", 1.0)])
    assert os.waitpid(pid, 0)[1] == 0


def test_a_query_loads_neither_torch_nor_faiss_where_there_is_no_index(home):
    code = (
        "import sys, kgkit; kb = kgkit.open_kb('toy', home=sys.argv[1]); kb.nearest('Apple');"
        "print([name for name in ('torch', 'transformers', 'faiss', 'sqlalchemy') if name in sys.modules])"
    )
    assert run_python(code, home).stdout == "[]\n"


def test_a_handle_that_is_not_asked_for_vectors_does_not_load_their_room(home):
    code = (
        "import sys, kgkit; kgkit.open_kb('toy', home=sys.argv[1])['Apple'];"
        "print('kgkit.vectors' in sys.modules)"
    )
    assert run_python(code, home).stdout == "False\n"


# -- builds ------------------------------------------------------------------------------------------------


def test_vectors_of_another_build_are_refused(home, tmp_path):
    built(tmp_path, links=LINKS[:3], pages=PAGES)
    with kgkit.open_kb("toy", home=home) as kb, pytest.raises(StaleVectors, match="--update` takes over"):
        kb.nearest("Apple")


def test_vectors_of_a_build_fit_what_extends_it(home, tmp_path):
    with kgkit.open_kb("toy", home=home) as kb:
        size = len(kb)
    for number, key in enumerate(["Pear", "Plum"]):
        more = tmp_path / f"more-{number}.jsonl"
        more.write_text(f'{{"key": "{key}", "label": "{key}"}}\n')
        kgkit.add_to_kb("toy", more, builder="jsonl", home=home)
    with kgkit.open_kb("toy", home=home) as kb:
        assert len(kb) == size + 2
        assert near(kb, "Apple", 1) == [("Fruit", 1.0)]
        assert kb.nearest("Pear") == []


def test_where_the_extended_build_is_gone_vectors_serve_and_of_older_versions_an_update_is_asked_for(
    home, tmp_path
):
    for number, key in enumerate(["Pear", "Plum"]):
        more = tmp_path / f"more-{number}.jsonl"
        more.write_text(f'{{"key": "{key}", "label": "{key}"}}\n')
        kgkit.add_to_kb("toy", more, builder="jsonl", home=home)
    with kgkit.open_kb("toy", home=home) as kb:
        prune(kb.home)
    with kgkit.open_kb("toy", home=home) as kb:
        assert kb.nearest("Apple")
        path = kb.home.builds / kb.build / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["bases"]  # as it was before builds had them: nobody can tell
    path.write_text(json.dumps(manifest))
    with kgkit.open_kb("toy", home=home) as kb, pytest.raises(StaleVectors, match="--update"):
        kb.nearest("Apple")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_row_that_is_not_finite_is_named_where_it_is_gathered(kb, number):
    path = folder_of(kb) / "matrix.npy"
    matrix = np.load(path)
    matrix[1, 0] = number
    np.save(path, matrix)
    vectors = kb.vectors("plane")
    assert np.isfinite(vectors.gather([0, 2])).all()
    for ids in ([1], [[0, 1], [2, 2]]):
        with pytest.raises(DamagedVectors, match=r"plane have numbers that are not finite for .* of id 1 "):
            vectors.gather(ids)


# -- damage ------------------------------------------------------------------------------------------------


def folder_of(kb) -> Path:
    return find_vectors(kb.home, "plane")


def test_a_file_that_is_cut_short_is_refused_before_it_is_mapped(kb):
    path = folder_of(kb) / "matrix.npy"
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 8)
    with pytest.raises(DamagedVectors, match=r"matrix.npy has 168 bytes, its manifest says 176 bytes"):
        kb.vectors("plane")


@pytest.mark.parametrize("name", ["matrix.npy", "keys.npy"])
def test_a_file_that_is_not_there_is_told(kb, name):
    (folder_of(kb) / name).unlink()
    with pytest.raises(DamagedVectors, match=f"{name} is not there"):
        kb.vectors("plane")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"format": 1}', b'{"format": 99}', b"[1]"])
def test_a_manifest_that_cannot_be_read_is_told(kb, content):
    (folder_of(kb) / "vectors.json").write_bytes(content)
    with pytest.raises(DamagedVectors, match="make the vectors again with `kgkit embed`"):
        kb.vectors("plane")


def test_a_matrix_of_another_shape_is_refused(kb):
    folder = folder_of(kb)
    manifest = msgspec.json.decode((folder / "vectors.json").read_bytes())
    manifest["rows"], manifest["width"] = 2, 6
    (folder / "vectors.json").write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(DamagedVectors, match=r"its manifest says float32 \(2, 6\)"):
        kb.vectors("plane")


def test_a_changed_number_is_found_by_its_checksum(kb):
    folder = folder_of(kb)
    assert damages(folder) == []
    with (folder / "matrix.npy").open("rb+") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\0\0\0\1")
    assert damages(folder) == [
        "file: matrix.npy is damaged: its checksum is not the one that the manifest has"
    ]


def test_an_index_that_nobody_can_open_without_faiss_is_no_damage(kb, monkeypatch):
    (folder_of(kb) / "index.json").write_text("{}")

    def missing(*_):
        raise MissingExtra("faiss", "cpu")

    monkeypatch.setattr("kgkit.vectors.index.open_index", missing)
    assert damages(folder_of(kb)) == []


def test_who_has_vectors_open_and_no_index_yet_reads_on_when_they_are_removed_under_way(kb, monkeypatch):
    vectors = kb.vectors("plane")
    (vectors.folder / "index.json").write_text("{}")

    def gone(folder, matrix):
        shutil.rmtree(folder)
        raise DamagedVectors("the index cannot be read")

    monkeypatch.setattr("kgkit.vectors.index.open_index", gone)
    assert vectors.nearest([1, 0], 1).ids.tolist() == [[0]]


def test_removed_vectors_are_gone_whole_and_their_job_with_them(kb):
    remove_vectors(kb.home, "plane")
    assert vectors_names(kb.home) == []
    assert not (kb.home.vectors / "plane").exists()
    with pytest.raises(NotThere):
        remove_vectors(kb.home, "plane")


def test_a_version_whose_folder_was_removed_by_hand_is_not_there(kb):
    vectors = kb.vectors("plane")
    shutil.rmtree(vectors.folder)
    with pytest.raises(StaleVectors):
        _ = vectors.keys
    with pytest.raises(NotThere):
        Vectors.open(vectors.folder)
