"""Jobs that make vectors: gone on with, published whole, never two at once."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kgkit
from kgkit.errors import BuildFailed, KBBusy, NotThere, UsageError, WriteFailed
from kgkit.vectors import Vectors, Work, find_vectors, remove_vectors, vectors_names
from kgkit.vectors.work import sweep_unfinished
from tests.toys import child_env, listing
from tests.vector_toys import DIRECTIONS, built, made

SETTINGS = {"method": "hand"}

DIES = """
import os, signal, sys
import numpy as np
import kgkit, kgkit.versions, kgkit.vectors.work
from kgkit.vectors import Work
step = sys.argv[2]
module = kgkit.versions if step == "link_current" else kgkit.vectors.work
def dies(*args, **named):
    os.kill(os.getpid(), signal.SIGKILL)
if step == "rename":
    module.Path.rename = dies
elif step == "link":
    os.link = dies
else:
    setattr(module, step, dies)
with kgkit.open_kb("toy", home=sys.argv[1]) as kb, Work(kb, "plane", {"method": "hand"}) as work:
    matrix = work.matrix(2, 2)
    matrix[:] = 5
    matrix.flush()
    work.publish("hand")
"""


@pytest.fixture
def home(tmp_path):
    return built(tmp_path)[0]


@pytest.fixture
def kb(home):
    with kgkit.open_kb("toy", home=home) as open_inner:
        yield open_inner


def test_a_job_that_was_stopped_finds_what_it_has_done(kb):
    with pytest.raises(RuntimeError), Work(kb, "plane", SETTINGS) as work:
        work.matrix(6, 2)[:3] = 7
        (work.folder / "state.json").write_text("{}")
        raise RuntimeError("stopped")
    with Work(kb, "plane", SETTINGS) as work:
        assert work.matrix(6, 2)[:, 0].tolist() == [7, 7, 7, 0, 0, 0]
        assert (work.folder / "state.json").exists()


def test_other_settings_or_a_wish_to_begin_anew_make_another_job(kb):
    for settings, resume in ((SETTINGS, True), ({"method": "other"}, True), (SETTINGS, False)):
        with Work(kb, "plane", settings, resume=resume) as work:
            assert not work.matrix(6, 2).any()
            work.matrix(6, 2)[:] = 7


def test_a_matrix_of_another_shape_begins_anew(kb):
    with Work(kb, "plane", SETTINGS) as work:
        work.matrix(6, 2)[:] = 7
        assert work.matrix(6, 3).shape == (6, 3)
        assert not work.matrix(6, 3).any()


def test_what_is_published_is_whole_and_the_job_is_swept(kb):
    with Work(kb, "plane", SETTINGS) as work:
        work.matrix(6, 2)[:] = DIRECTIONS
        (work.folder / "words.txt").write_text("a\n")
        (work.folder / "scratch").write_text("b\n")
        vectors = work.publish("hand", files=["words.txt"], results={"seconds": 1.5})
    assert not work.folder.exists()
    assert sorted(path.name for path in vectors.folder.iterdir()) == [
        "keys.npy", "matrix.npy", "vectors.json", "words.txt",
    ]  # fmt: skip
    assert vectors.manifest.results == {"seconds": 1.5}
    assert set(vectors.manifest.files) == {"keys.npy", "matrix.npy", "words.txt"}


def test_a_version_is_named_by_its_content(kb, home):
    one = made(home)
    with Work(kb, "plane", SETTINGS) as work:
        work.matrix(6, 2)[:] = DIRECTIONS
        again = work.publish("hand", results={"seconds": 99})
    assert again.folder == one.folder
    assert made(home, 2 * DIRECTIONS).folder != one.folder
    assert made(home, DIRECTIONS, seed=1).folder != one.folder


def test_the_same_vectors_again_keep_their_index(home):
    one = made(home)
    (one.folder / "index.json").write_text("{}")
    (one.folder / "index-1.faiss").write_text("x")
    again = made(home)
    assert (again.folder / "index.json").exists()
    assert (again.folder / "index-1.faiss").exists()
    assert not (made(home, -DIRECTIONS).folder / "index.json").exists()


def test_only_one_version_stays(kb, home):
    for factor in (1, 2, 3):
        made(home, factor * DIRECTIONS)
    folder = kb.home.vectors / "plane"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["current", find_vectors(kb.home, "plane").name]
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_not_published(kb, home, bad):
    made(home)
    rows = DIRECTIONS.copy()
    rows[2, 1] = bad
    with pytest.raises(BuildFailed, match="row 2 of the vectors holds a number that is not finite"):
        made(home, rows)
    assert np.array_equal(kb.vectors("plane").matrix, DIRECTIONS)


def test_two_jobs_on_the_same_vectors_do_not_meet_but_others_do(kb):
    with Work(kb, "plane", SETTINGS):
        with pytest.raises(KBBusy, match="toy/plane; wait"), Work(kb, "plane", {"method": "other"}):
            pass
        with Work(kb, "other", SETTINGS):
            pass
    with Work(kb, "plane", SETTINGS):
        pass


def test_a_job_that_did_nothing_leaves_nothing(kb):
    with Work(kb, "plane", SETTINGS) as work:
        pass
    assert not work.folder.exists()


@pytest.mark.parametrize("name", ["", "a/b", "..", ".x", "x" * 65, "a b"])
def test_a_name_that_no_folder_can_have_is_refused(kb, name):
    with pytest.raises(UsageError, match="cannot name vectors"):
        Work(kb, name, SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["key_digests", "file_sha256", "link", "rename", "link_current"])
def test_a_job_that_is_killed_while_it_publishes_leaves_the_old_vectors_and_can_go_on(home, step):
    made(home, -DIRECTIONS)
    done = subprocess.run(
        [sys.executable, "-c", DIES, home, step],
        env=child_env(),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with kgkit.open_kb("toy", home=home) as kb:
        assert np.array_equal(kb.vectors("plane").matrix, -DIRECTIONS)
        with Work(kb, "plane", SETTINGS) as work:
            assert work.matrix(2, 2).tolist() == [[5, 5], [5, 5]]
            vectors = work.publish("hand")
        assert sorted(path.name for path in vectors.folder.parent.iterdir()) == sorted(
            ["current", vectors.folder.name]
        )


def test_a_disk_without_room_for_the_matrix_is_told_before_it_is_filled(kb):
    with Work(kb, "plane", SETTINGS) as work, pytest.raises(WriteFailed, match="no room"):
        work.matrix(10**9, 10**6)


def test_a_disk_that_refuses_leaves_what_was_published(kb, home, monkeypatch):
    made(home)
    before = listing(find_vectors(kb.home, "plane"))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with Work(kb, "plane", {"method": "new"}) as work:
        work.matrix(6, 2)[:] = 1
        monkeypatch.setattr(os, "link", full)
        monkeypatch.setattr("shutil.copyfile", full)
        with pytest.raises(WriteFailed, match="No space left"):
            work.publish("hand")
        monkeypatch.undo()
        assert listing(find_vectors(kb.home, "plane")) == before
        assert len(list((kb.home.vectors / "plane").iterdir())) == 2
        work.publish("hand")


def test_what_stopped_jobs_left_is_swept_but_not_under_a_job_at_work(kb):
    with Work(kb, "idle", SETTINGS) as idle:
        idle.matrix(6, 2)
    with Work(kb, "busy", SETTINGS) as busy:
        busy.matrix(6, 2)
        sweep_unfinished(kb.home)
        assert busy.folder.exists()
        assert not idle.folder.exists()


def test_removing_a_kb_removes_its_vectors(kb, home):
    made(home)
    with Work(kb, "idle", SETTINGS) as idle:
        idle.matrix(6, 2)
    kgkit.store.remove(kb.home)
    assert vectors_names(kb.home) == []
    assert not kb.home.unfinished_vectors.exists()


def test_a_kb_that_was_removed_meanwhile_does_not_come_back_as_vectors(kb):
    with (
        pytest.raises(NotThere, match="was removed while its vectors were made"),
        Work(kb, "plane", {}) as work,
    ):
        work.matrix(6, 2)[:] = 1
        kgkit.store.remove(kb.home)
        work.publish("hand")
    assert not kb.home.path.exists()


def test_a_matrix_of_more_rows_than_entities_is_refused(kb):
    with Work(kb, "plane", SETTINGS) as work:
        work.matrix(len(kb) + 1, 2)[:] = 1
        with pytest.raises(UsageError, match="8 rows, 'toy' has 7 entities"):
            work.publish("hand")


def test_a_job_killed_behind_its_publishing_does_not_write_into_what_readers_have_mapped(kb, home):
    with Work(kb, "plane", SETTINGS) as work:
        work.matrix(6, 2)[:] = DIRECTIONS
        published = work.publish("hand")
        kept = work.folder.with_name("kept")
        shutil.copytree(work.folder, kept, copy_function=os.link)  # as if it had not been swept
    kept.rename(work.folder)
    with Work(kb, "plane", SETTINGS) as work:
        work.matrix(6, 2)[:] = 9
    assert np.array_equal(published.matrix, DIRECTIONS)


def test_the_same_vectors_again_are_there_at_every_moment(kb, home, monkeypatch):
    made(home)
    seen = []
    for name in ("rename", "replace"):
        real = getattr(Path, name)

        def watched(path, target, real=real):
            done = real(path, target)
            seen.append(np.array_equal(Vectors.open(find_vectors(kb.home, "plane")).matrix, DIRECTIONS))
            return done

        monkeypatch.setattr(Path, name, watched)
    made(home)
    assert len(seen) >= 4 and all(seen)


def test_a_full_disk_is_told_where_the_matrix_is_made_not_where_it_is_written(kb, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with Work(kb, "plane", SETTINGS) as work:
        with pytest.raises(WriteFailed, match="No space left"):
            work.matrix(6, 2)
        assert list(work.folder.iterdir()) == []


def test_an_emptied_cache_does_not_hide_the_error_that_ended_the_job(kb):
    with pytest.raises(RuntimeError, match="stopped"), Work(kb, "plane", SETTINGS) as work:
        shutil.rmtree(work.folder)
        raise RuntimeError("stopped")
    with Work(kb, "plane", SETTINGS):  # and the lock is free
        pass


def test_a_copy_that_followed_links_is_read_published_over_and_removed(kb, home):
    made(home)
    current = kb.home.vectors / "plane" / "current"
    copied = current.with_name("copied")
    shutil.copytree(current, copied)
    current.unlink()
    copied.rename(current)
    assert np.array_equal(kb.vectors("plane").matrix, DIRECTIONS)
    made(home, -DIRECTIONS)
    assert current.is_symlink()
    with kgkit.open_kb("toy", home=home) as again:
        assert np.array_equal(again.vectors("plane").matrix, -DIRECTIONS)
    shutil.copytree(current, copied)
    current.unlink()
    copied.rename(current)
    remove_vectors(kb.home, "plane")
    assert vectors_names(kb.home) == []
