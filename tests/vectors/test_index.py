import json
import logging
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from kgkit.errors import DamagedVectors, MissingExtra, UnknownName, UsageError, WriteFailed
from kgkit.vectors import kinds
from kgkit.vectors.index import open_index, read_index_manifest
from kgkit.vectors.indexing import build_index, recall_of, sampled_queries
from kgkit.vectors.kinds import KINDS, describe_kind, find_kind
from kgkit.vectors.scan import scan
from tests.toys import child_env

faiss = pytest.importorskip("faiss")

STORED = [name for name, kind in KINDS.items() if kind.factory]


def clustered(rows=3000, width=16, seed=0):
    """Rows around forty centres, the same ones for every seed, of lengths between 1 and 9."""
    drawn = np.random.default_rng(seed)
    centres = np.random.default_rng(77).standard_normal((40, width))
    matrix = centres[drawn.integers(0, 40, rows)] + 0.5 * drawn.standard_normal((rows, width))
    return (matrix * drawn.uniform(1, 9, (rows, 1))).astype(np.float32)


def with_holes(matrix):
    matrix = matrix.copy()
    matrix[100:150] = 0
    return matrix


@pytest.fixture(autouse=True)
def one_thread():
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


# -- what is found ----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_finds_nearly_what_comparing_every_row_finds(kind, tmp_path):
    matrix = clustered()
    build_index(matrix, tmp_path, kind=kind)
    asked = clustered(50, seed=1)
    found = open_index(tmp_path, matrix).search(asked, 10)
    truth = scan(matrix, asked, 10)
    assert recall_of(found.rows, truth.rows) >= 0.9
    assert (found.scores[:, 0] == truth.scores[:, 0]).mean() >= 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_of_every_kind_are_the_same_numbers(kind, tmp_path):
    matrix, asked = clustered(), clustered(20, seed=1)
    found = build_index(matrix, tmp_path, kind=kind).search(asked, 5)
    everything = scan(matrix, asked, len(matrix))
    for place, (scores, rows) in enumerate(zip(*found, strict=True)):
        known = dict(zip(everything.rows[place].tolist(), everything.scores[place].tolist(), strict=True))
        assert [known[row] for row in rows.tolist()] == scores.tolist()
        assert scores.tolist() == sorted(scores.tolist(), reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_are_never_found_wherever_they_lie(kind, tmp_path):
    matrix = with_holes(clustered())
    index = build_index(matrix, tmp_path, kind=kind)
    assert index.manifest.vectors == 2950
    rows = index.search(matrix[90:160], 10).rows
    assert not np.isin(rows, np.arange(100, 150)).any()
    assert (rows[:10, 0] == np.arange(90, 100)).mean() >= 0.9
    assert (rows[60:, 0] == np.arange(150, 160)).mean() >= 0.9
    assert (rows[10:60] == -1).all()


def test_zeros_at_the_end_need_no_list_of_rows(tmp_path):
    matrix = clustered()
    matrix[2500:] = 0
    index = build_index(matrix, tmp_path, kind="hnsw")
    assert index.manifest.row_file == ""
    assert index.search(matrix[:50], 5).rows.max() < 2500


@pytest.mark.parametrize("kind", KINDS)
def test_rows_added_behind_are_found_without_a_rebuild(kind, tmp_path):
    matrix = with_holes(clustered())
    build_index(matrix, tmp_path, kind=kind)
    longer = np.concatenate([matrix, 3 * matrix[:2], np.zeros((1, 16), np.float32), clustered(5, seed=5)])
    index = open_index(tmp_path, longer)
    assert index.stale_rows == 8
    found = index.search(longer[[0, 1, 3003]], 4)
    assert 3000 in found.rows[0, :2]
    assert 3001 in found.rows[1, :2]
    assert found.rows[2, 0] == 3003
    assert 3002 not in found.rows


def test_an_index_over_nothing_finds_nothing(tmp_path):
    for matrix in (np.zeros((0, 4), np.float32), np.zeros((9, 4), np.float32)):
        found = build_index(matrix, tmp_path, kind="hnsw").search(np.ones((2, 4), np.float32), 3)
        assert found.rows.tolist() == [[-1] * 3] * 2
        assert np.isneginf(found.scores).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 50])
def test_few_rows_are_compared_whatever_kind_is_asked_for(kind, rows, tmp_path):
    matrix = clustered(rows)
    assert build_index(matrix, tmp_path, kind=kind).manifest.kind == "exact"
    found = build_index(matrix, tmp_path, kind=kind).search(matrix, 60)
    assert (found.rows[:, 0] == np.arange(rows)).all()
    assert (found.rows[:, rows:] == -1).all()


@pytest.mark.parametrize("kind", STORED)
def test_who_asks_for_nearly_everything_gets_everything(kind, tmp_path):
    matrix = clustered(2000)
    found = build_index(matrix, tmp_path, kind=kind).search(matrix[:2], 2000)
    assert np.sort(found.rows, axis=1).tolist() == [list(range(2000))] * 2


# -- how it is built --------------------------------------------------------


def test_auto_goes_by_size():
    assert find_kind("auto", 10_000, 384).name == "exact"
    assert find_kind("auto", 117_659, 384).name == "hnsw"
    assert find_kind("auto", 5_000_000, 300).name == "ivfpq"
    with pytest.raises(UnknownName, match="no kind of index named 'flat'; there are: auto, exact"):
        find_kind("flat", 10, 10)


def test_auto_compares_every_row_where_vectors_have_no_neighbourhoods(tmp_path, monkeypatch):
    monkeypatch.setattr(kinds, "suitable_kind", lambda rows, width: "hnsw")
    noise = np.random.default_rng(0).standard_normal((4000, 64)).astype(np.float32)
    assert build_index(noise, tmp_path, kind="hnsw").manifest.kind == "hnsw"
    assert build_index(noise, tmp_path).manifest.kind == "exact"
    assert [path.name for path in tmp_path.iterdir()] == ["index.json"]


def test_an_exact_index_is_its_manifest_alone_and_does_not_need_faiss(tmp_path):
    matrix = clustered(100)
    np.save(tmp_path / "m.npy", matrix)
    script = f"""
import sys, numpy as np
from pathlib import Path
sys.modules["faiss"] = None
from kgkit.vectors.indexing import build_index, recall_of, sampled_queries
matrix = np.load({str(tmp_path / "m.npy")!r})
print(build_index(matrix, Path({str(tmp_path)!r}), kind="exact").search(matrix[:1], 1).rows[0, 0])
"""
    done = subprocess.run([sys.executable, "-c", script], env=child_env(), capture_output=True, check=True)
    assert done.stdout == b"0\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", "m.npy"]


@pytest.mark.slow
def test_recall_is_measured_and_stored_with_the_setting_that_reaches_it(tmp_path):
    matrix = clustered()
    for kind in STORED:
        build_index(matrix, tmp_path, kind=kind)
        manifest = read_index_manifest(tmp_path)
        assert manifest.recall.at == 10
        assert manifest.recall.target == 0.95
        assert manifest.recall.queries == 500
        queries = sampled_queries(matrix, np.arange(3000), 2000, seed=9)
        found = open_index(tmp_path, matrix).search(queries, 10)
        assert abs(recall_of(found.rows, scan(matrix, queries, 10).rows) - manifest.recall.value) < 0.04


def test_a_higher_recall_costs_a_higher_setting(tmp_path):
    matrix = np.random.default_rng(0).standard_normal((4000, 48)).astype(np.float32)
    low = build_index(matrix, tmp_path, kind="ivfpq", recall=0.5).manifest
    high = build_index(matrix, tmp_path, kind="ivfpq", recall=0.99).manifest
    assert (low.setting, low.proposals) < (high.setting, high.proposals)
    assert low.recall.value < high.recall.value


def test_a_recall_that_is_not_reached_is_warned_of(tmp_path, caplog, monkeypatch):
    matrix = np.random.default_rng(0).standard_normal((4000, 48)).astype(np.float32)
    from dataclasses import replace

    monkeypatch.setitem(KINDS, "ivfpq", replace(KINDS["ivfpq"], settings=(1, 2)))
    with caplog.at_level(logging.WARNING):
        index = build_index(matrix, tmp_path, kind="ivfpq")
    assert index.manifest.setting == 2
    assert "of the true neighbours, not 0.950" in caplog.text


def test_a_recall_that_cannot_be_is_refused(tmp_path):
    with pytest.raises(UsageError, match="95"):
        build_index(clustered(), tmp_path, recall=95)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORED)
def test_one_thread_gives_one_index(kind, tmp_path):
    matrix = with_holes(clustered())
    contents = []
    for _ in range(2):
        manifest = build_index(matrix, tmp_path, kind=kind).manifest
        contents.append((tmp_path / manifest.file).read_bytes())
    assert contents[0] == contents[1]


def test_progress_ends_with_all_rows(tmp_path):
    told = []
    build_index(with_holes(clustered()), tmp_path, kind="hnsw", progress=lambda *done: told.append(done))
    assert told[-1] == ("indexing", 2950, 2950)


# -- what lies on disk ------------------------------------------------------


def test_a_new_index_replaces_the_old_one_and_sweeps_what_killed_builds_left(tmp_path):
    matrix = clustered()
    build_index(matrix, tmp_path, kind="hnsw")
    (tmp_path / "index-hnsw-00000000.faiss").write_bytes(b"half a file")
    manifest = build_index(matrix, tmp_path, kind="hnsw").manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == [manifest.file, "index.json"]


def test_who_has_the_old_index_open_reads_on(tmp_path):
    matrix = clustered()
    old = build_index(matrix, tmp_path, kind="hnsw")
    before = old.search(matrix[:5], 5).rows.tolist()
    build_index(matrix, tmp_path, kind="exact")
    assert old.search(matrix[:5], 5).rows.tolist() == before


@pytest.mark.slow
def test_a_build_killed_at_any_step_leaves_the_old_index_in_use(tmp_path):
    matrix = clustered(1500)
    np.save(tmp_path / "m.npy", matrix)
    build_index(matrix, tmp_path, kind="ivfpq")
    script = f"""
import os, signal, sys, numpy as np
from pathlib import Path
import kgkit.vectors.indexing as indexing
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
setattr(indexing, sys.argv[1], die)
indexing.build_index(np.load({str(tmp_path / "m.npy")!r}), Path({str(tmp_path)!r}), kind="hnsw")
"""
    for step in ("_training", "_write", "_with_setting", "_put"):
        died = subprocess.run([sys.executable, "-c", script, step], env=child_env(), check=False)
        assert died.returncode == -signal.SIGKILL
        index = open_index(tmp_path, matrix)
        assert index.manifest.kind == "ivfpq"
        assert index.search(matrix[:3], 1).rows[:, 0].tolist() == [0, 1, 2]
    build_index(matrix, tmp_path, kind="hnsw")
    assert len(list(tmp_path.glob("index*"))) == 2


def test_a_full_disk_is_told_and_the_old_index_stays(tmp_path, monkeypatch):
    matrix = clustered(1500)
    old = build_index(matrix, tmp_path, kind="hnsw").manifest
    monkeypatch.setattr(faiss, "write_index", lambda index, path: _no_space(path))
    with pytest.raises(WriteFailed, match="No space left on device"):
        build_index(matrix, tmp_path, kind="hnsw")
    assert open_index(tmp_path, matrix).manifest == old
    assert len(list(tmp_path.iterdir())) == 2


def _no_space(path):
    from pathlib import Path

    Path(path).write_bytes(b"x" * 100)
    raise RuntimeError("Error in write: No space left on device")


@pytest.mark.parametrize("kind", STORED)
def test_a_damaged_file_is_told_with_the_command_that_builds_it_again(kind, tmp_path):
    folder = tmp_path / "kbs" / "wordnet" / "vectors" / "text" / "0123"
    folder.mkdir(parents=True)
    matrix = clustered(1500)
    file = folder / build_index(matrix, folder, kind=kind).manifest.file
    whole = file.read_bytes()
    for content in (b"", whole[:-1], whole + b"x", os.urandom(len(whole)), bytes(len(whole))):
        file.write_bytes(content)
        with pytest.raises(DamagedVectors, match="kgkit index wordnet/text"):
            open_index(folder, matrix)
    file.unlink()
    with pytest.raises(DamagedVectors, match="is not there"):
        open_index(folder, matrix)


def test_a_manifest_that_cannot_be_read_is_told(tmp_path):
    matrix = clustered(100)
    build_index(matrix, tmp_path)
    manifest = json.loads((tmp_path / "index.json").read_bytes())
    for content in (b"", b"{", b"[]", json.dumps({**manifest, "format": 99}).encode(), b'{"format": 1}'):
        (tmp_path / "index.json").write_bytes(content)
        with pytest.raises(DamagedVectors, match="kgkit index"):
            open_index(tmp_path, matrix)


def test_an_index_over_other_vectors_is_refused(tmp_path):
    matrix = clustered(500)
    build_index(matrix, tmp_path)
    with pytest.raises(DamagedVectors, match="built over other vectors"):
        open_index(tmp_path, matrix + 1)
    with pytest.raises(DamagedVectors, match="is over 500 × 16"):
        open_index(tmp_path, matrix[:400])
    with pytest.raises(DamagedVectors, match="is over 500 × 16"):
        open_index(tmp_path, matrix[:, :8])


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_graph_is_mapped_not_copied(tmp_path):
    matrix = clustered(20_000, width=128)
    np.save(tmp_path / "m.npy", matrix)
    manifest = build_index(matrix, tmp_path, kind="hnsw").manifest
    size = manifest.sizes[manifest.file]
    script = f"""
import numpy as np, faiss
from pathlib import Path
from kgkit.vectors.index import open_index
def anonymous():
    for line in open("/proc/self/smaps_rollup"):
        if line.startswith("Anonymous:"): return int(line.split()[1]) * 1024
matrix = np.load({str(tmp_path / "m.npy")!r}, mmap_mode="r")
warm = faiss.index_factory(128, "SQ8", 0)  # what the library itself allocates is not counted
warm.train(matrix[:100])
warm.search(matrix[:1], 1)
before = anonymous()
open_index(Path({str(tmp_path)!r}), matrix).search(matrix[:1], 1)
print(anonymous() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], env=child_env(), capture_output=True, check=True)
    assert size > 2_000_000
    assert int(done.stdout) < size / 2


# -- threads, forks, what is installed --------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_threads_search_at_once_and_each_gets_its_own_answer(kind, tmp_path):
    matrix = clustered()
    index = build_index(matrix, tmp_path, kind=kind)
    asked = np.split(clustered(80, seed=2), 8)
    alone = [index.search(part, 5).rows.tolist() for part in asked]
    answers = [[] for _ in asked]

    def work(place):
        for _ in range(20):
            answers[place].append(index.search(asked[place], 5).rows.tolist())

    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answer == alone[place] for place in range(8) for answer in answers[place])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_searches_after_its_parent_used_several_threads(tmp_path):
    np.save(tmp_path / "m.npy", clustered(1200))
    script = f"""
import os, signal, numpy as np
from pathlib import Path
import kgkit.vectors.indexing as indexing
import faiss
faiss.omp_set_num_threads(2)
matrix = np.load({str(tmp_path / "m.npy")!r})
for kind in ("ivfpq", "hnsw"):
    index = indexing.build_index(matrix, Path({str(tmp_path)!r}), kind=kind)
    rows = index.search(matrix[:200], 5).rows
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # it would wait for ever
        os._exit(0 if (index.search(matrix[:200], 5).rows == rows).all() else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    env = child_env(OMP_NUM_THREADS="2")
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, check=True)
    assert done.stdout.split() == [b"0"] * 2


def test_without_faiss_the_extra_that_brings_it_is_named(tmp_path, monkeypatch):
    matrix = clustered(1500)
    build_index(matrix, tmp_path, kind="hnsw")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"kgkit\[cpu\]"):
        open_index(tmp_path, matrix)
    with pytest.raises(MissingExtra, match=r"kgkit\[cpu\]"):
        build_index(matrix, tmp_path, kind="hnsw")


def test_without_faiss_auto_compares_every_row_and_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(kinds, "_SMALL", 1)
    with caplog.at_level(logging.WARNING):
        index = build_index(clustered(1500), tmp_path)
    assert index.manifest.kind == "exact"
    assert "an index hnsw cannot be built: this needs the package 'faiss'" in caplog.text


def test_every_kind_is_one_that_faiss_can_make():
    for name in STORED:
        for width in (1, 2, 7, 384):
            assert faiss.index_factory(width, describe_kind(KINDS[name], 5000, width), 0).d == width
