"""Models and vectors are replaced as a whole: by several at once, killed, on a full disk, under readers."""

import errno
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import filelock
import numpy as np
import pytest

import kgkit.versions as module
from kgkit.errors import KBBusy, NotThere, UnknownName, WriteFailed
from kgkit.home import Home
from kgkit.models.folder import find_model_folder, find_trained, has_model, model_names, names_with
from kgkit.models.kinds import TAGGER
from kgkit.models.publishing import (
    older,
    read_trained,
    remove_model,
    stage_model,
    work_folder,
)
from kgkit.vectors import open_vectors, vectors_names
from kgkit.versions import current_version, find_content, read_current
from tests.stress_publishing import publish_model, read_model, write_model
from tests.toys import child_env, run_python
from tests.vector_toys import DIRECTIONS, built, made


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def plain_model(home, number=7):
    """A model as older versions of kgkit wrote it: no versions, no link."""
    folder = home.models / "m"
    folder.mkdir(parents=True)
    write_model(folder, number)
    return folder


# -- models -----------------------------------------------------------------


def test_a_model_is_a_version_and_a_link_to_it(home):
    publish_model(home.path, 1)
    folder = find_trained(home, "m")
    assert names(home.models / "m") == sorted([folder.name, "current", "lock"])
    assert (home.models / "m" / "current").readlink() == Path(folder.name)
    assert find_model_folder("m", home) == find_model_folder(str(home.models / "m"), home) == folder
    assert find_model_folder(str(folder), home) == folder
    publish_model(home.path, 2)
    assert find_trained(home, "m") != folder
    assert not folder.exists()
    assert read_model(home.path) == 2


def test_a_model_of_an_older_kgkit_opens_is_listed_replaced_and_removed(home):
    folder = plain_model(home)
    assert find_model_folder("m", home) == find_model_folder(str(folder), home) == folder
    assert "m" in model_names(home)
    assert names_with(TAGGER, home) == ["m", "names-minilm"]
    assert has_model(home, "m")
    assert older(folder) == "the older m (tagger)"
    publish_model(home.path, 2)
    assert read_model(home.path) == 2
    assert names(folder) == sorted([find_trained(home, "m").name, "current", "lock"])
    remove_model(home, "m")
    assert not folder.exists()
    plain_model(home)
    remove_model(home, "m")
    assert not folder.exists()
    with pytest.raises(NotThere, match="no model 'm' in"):
        remove_model(home, "m")


def test_copies_of_a_model_open_whether_they_follow_the_link_or_not(home, tmp_path):
    publish_model(home.path, 3)
    for symlinks in (True, False):
        copy = Home(tmp_path / f"copy {symlinks}")
        shutil.copytree(home.models, copy.models, symlinks=symlinks)
        assert read_model(copy.path) == 3
        publish_model(copy.path, 4)
        assert read_model(copy.path) == 4
        assert names(copy.models / "m") == sorted([find_trained(copy, "m").name, "current", "lock"])
    bare = shutil.copytree(find_trained(home, "m"), home.models / "bare")
    assert find_model_folder("bare", home) == bare


def test_while_a_model_is_written_the_older_one_is_there_and_no_other_is_listed(home):
    publish_model(home.path, 1)
    with stage_model(home.models / "m") as (staged, _):
        write_model(staged, 2)
        assert read_model(home.path) == 1
    assert read_model(home.path) == 2
    with stage_model(home.models / "first") as (staged, _):
        write_model(staged, 2)
        assert model_names(home) == ["links-minilm", "m", "names-minilm", "wsd-minilm"]
        with pytest.raises(UnknownName, match="no model named 'first'"):
            find_model_folder("first", home)
    assert model_names(home) == ["first", "links-minilm", "m", "names-minilm", "wsd-minilm"]


def test_an_error_while_a_model_is_written_leaves_what_was_there(home):
    for number in (0, 1):
        with pytest.raises(RuntimeError), stage_model(home.models / "m") as (staged, _):
            write_model(staged, 2)
            raise RuntimeError
        if not number:
            assert not (home.models / "m").exists()
            publish_model(home.path, 1)
    assert read_model(home.path) == 1
    assert len(names(home.models / "m")) == 3


@pytest.mark.parametrize("step", ["fsync", "rename", "symlink", "replace"])
@pytest.mark.parametrize("plain", [False, True])
def test_a_full_disk_leaves_the_older_model_and_nothing_else(home, monkeypatch, step, plain):
    if plain:
        plain_model(home, 1)
    else:
        publish_model(home.path, 1)
    before = set(names(home.models / "m")) | {"lock"}

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(WriteFailed, match="No space left"), stage_model(home.models / "m") as (staged, _):
        write_model(staged, 2)
        real = getattr(os, step)
        monkeypatch.setattr(os, step, full)
        monkeypatch.setattr(module, "set_aside", _with(monkeypatch, step, real, module.set_aside))
    monkeypatch.undo()
    assert read_model(home.path) == 1
    assert set(names(home.models / "m")) == before
    publish_model(home.path, 2)
    assert read_model(home.path) == 2


def test_a_disk_that_is_full_while_weights_are_written_is_told_as_such(home):
    """Safetensors tells of it with an error of its own."""
    pytest.importorskip("safetensors")
    publish_model(home.path, 1)
    done = run_python(
        """if True:
        import resource, sys
        from pathlib import Path
        import numpy as np
        from safetensors.numpy import save_file
        from kgkit.errors import WriteFailed
        from kgkit.models.publishing import stage_model

        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            with stage_model(Path(sys.argv[1])) as (staged, _):
                save_file({"weight": np.zeros(10_000)}, staged / "model.safetensors")
        except WriteFailed as error:
            print(error)
        """,
        home.models / "m",
    )
    assert "cannot write to" in done.stdout and "File too large" in done.stdout, done.stderr
    assert read_model(home.path) == 1
    assert len(names(home.models / "m")) == 3


def _with(monkeypatch, step, real, function):
    """Let *function* do its work: what is taken away needs no room."""

    def restored(*args):
        monkeypatch.setattr(os, step, real)
        return function(*args)

    return restored


def test_all_of_a_version_is_on_the_disk_before_it_is_current(home, monkeypatch):
    synced, seen, fsync, replace = set(), [], os.fsync, os.replace

    def syncs(handle):
        synced.add(os.fstat(handle).st_ino)
        return fsync(handle)

    def replaces(link, current, **more):
        folder = Path(current).parent
        version = folder / Path(link).readlink()
        seen.append({path.stat().st_ino for path in (folder, version, *version.rglob("*"))} <= synced)
        synced.clear()
        return replace(link, current, **more)

    monkeypatch.setattr(os, "fsync", syncs)
    monkeypatch.setattr(os, "replace", replaces)
    publish_model(home.path, 1)
    assert seen == [True]
    assert (home.models / "m").stat().st_ino in synced  # and so is the link


def test_who_publishes_a_model_waits_for_another_who_does(home):
    done = []
    with stage_model(home.models / "m") as (staged, first):
        write_model(staged, 1)
        other = threading.Thread(target=lambda: done.append(publish_model(home.path, 2)))
        other.start()
        other.join(0.2)
        assert not done
    other.join()
    assert read_model(home.path) == 2
    assert not first.exists()
    assert read_trained(home, "m", first, TAGGER).encoder == "2"  # what is told at the end of the first


def test_who_waits_for_the_lock_of_a_folder_that_is_made_anew_takes_the_new_one(tmp_path, monkeypatch):
    folder, acquire, remade = tmp_path / "m", filelock.FileLock.acquire, []

    def remade_meanwhile(lock, *args, **options):
        proxy = acquire(lock, *args, **options)
        if not remade:
            shutil.rmtree(folder)
            folder.mkdir()
            (tmp_path / "held").touch()  # or the file system may give the number of the lock again
            (folder / "lock").touch()
            remade.append(folder)
        return proxy

    with module.lock_folder(folder):
        pass
    monkeypatch.setattr(filelock.FileLock, "acquire", remade_meanwhile)
    with module.lock_folder(folder):
        assert remade
        with pytest.raises(TimeoutError), module.lock_folder(folder, 0):
            pass  # what is held is the lock that is there


def test_a_reader_whose_version_is_swept_reads_the_next_one(home):
    publish_model(home.path, 1)
    read = []

    def slowly(folder):
        """Open the model while another takes its place: before a file that may be missing is looked for."""
        if not read:
            publish_model(home.path, 2)
        read.append((folder / "model.json").is_file())
        return folder

    assert read_current(lambda: find_trained(home, "m"), slowly) == find_trained(home, "m")
    assert read == [False, True]


def test_a_reader_of_a_plain_model_that_is_replaced_meanwhile_reads_the_next_one(home):
    plain_model(home)
    read = []

    def slowly(folder):
        if not read:
            publish_model(home.path, 2)
        read.append(folder)
        return folder

    assert read_current(lambda: find_trained(home, "m"), slowly) == find_trained(home, "m")
    assert len(read) == 2


def test_a_model_that_is_damaged_is_read_once(home):
    publish_model(home.path, 1)
    (find_trained(home, "m") / "head" / "weights").write_bytes(b"")
    read = []

    def once(folder):
        read.append(folder)
        return TAGGER.read(folder)

    with pytest.raises(Exception, match="is not the file of"):
        read_current(lambda: find_trained(home, "m"), once)
    assert len(read) == 1


def test_what_a_reader_has_open_it_reads_on_after_the_version_was_swept(home):
    with stage_model(home.models / "m") as (staged, _):
        write_model(staged, 1)
        np.save(staged / "numbers.npy", np.arange(100_000))
    mapped = np.load(find_trained(home, "m") / "numbers.npy", mmap_mode="r")
    publish_model(home.path, 2)
    assert mapped.sum() == sum(range(100_000))


def test_a_link_that_leads_nowhere_is_no_model(home):
    (home.models / "m").mkdir(parents=True)
    (home.models / "m" / "current").symlink_to("gone")
    assert find_content(home.models / "m", "model.json") is None
    publish_model(home.path, 1)
    assert read_model(home.path) == 1


# -- where trainings work ---------------------------------------------------


def test_a_training_that_ends_removes_what_stopped_ones_left_and_not_what_others_work_in(home):
    with pytest.raises(RuntimeError), work_folder(home, "tagger", "m", "stopped") as stopped:
        (stopped / "checkpoint.pt").touch()
        raise RuntimeError
    with pytest.raises(RuntimeError), work_folder(home, "tagger", "m", "nothing done") as nothing:
        raise RuntimeError
    assert stopped.exists()
    assert not nothing.exists()
    with work_folder(home, "tagger", "m", "runs") as running, work_folder(home, "tagger", "n", "x") as other:
        with work_folder(home, "tagger", "m", "ends") as ended:
            (ended / "checkpoint.pt").touch()
        assert not ended.exists()
        assert not stopped.exists()
        assert running.exists()
        assert other.exists()
    assert names(home.path / "runs") == []


def test_the_same_training_does_not_run_twice_at_once(home):
    with work_folder(home, "tagger", "m", "same") as work:
        busy = pytest.raises(KBBusy, match="training the same model with the same settings")
        with busy, work_folder(home, "tagger", "m", "same"):
            pass
        assert work.exists()
        with work_folder(home, "tagger", "m", "same", alone=False):
            pass
        assert work.exists()
    with work_folder(home, "tagger", "m", "same"):
        pass


def test_a_training_that_was_killed_holds_nothing(home):
    def killed():
        with work_folder(home, "tagger", "m", "same") as work:
            (work / "checkpoint.pt").touch()
            os._exit(9)

    child = multiprocessing.get_context("fork").Process(target=killed)
    child.start()
    child.join()
    with work_folder(home, "tagger", "m", "same") as work:
        assert (work / "checkpoint.pt").exists()


# -- vectors ----------------------------------------------------------------


def test_vectors_are_found_while_their_link_is_replaced(tmp_path, monkeypatch):
    home = built(tmp_path)[0]
    kb = Home(home).kb("toy")
    made(home)
    real, rows = os.readlink, []

    def overtaken(path, **more):
        """Read the link, and let other vectors take the place before it is followed."""
        target = real(path, **more)
        if rows and Path(path).parent.name == "plane":
            made(home, rows.pop())
        return target

    monkeypatch.setattr(os, "readlink", overtaken)
    rows.append(-DIRECTIONS)
    assert vectors_names(kb) == ["plane"]
    rows.append(DIRECTIONS)
    assert np.array_equal(open_vectors(kb, "plane", [str(kb.published())]).matrix, DIRECTIONS)
    assert not rows


def test_vectors_are_on_the_disk_before_they_are_current(tmp_path, monkeypatch):
    home, synced, fsync = built(tmp_path)[0], set(), os.fsync

    def syncs(handle):
        synced.add(os.fstat(handle).st_ino)
        return fsync(handle)

    monkeypatch.setattr(os, "fsync", syncs)
    vectors = made(home)
    found = current_version(vectors.folder.parent)
    assert found == vectors.folder
    assert {path.stat().st_ino for path in (found, found.parent, *found.iterdir())} <= synced


# -- many times -------------------------------------------------------------


def stressed(*words, timeout=300):
    done = subprocess.run(
        [sys.executable, "-m", "tests.stress_publishing", *words],
        env=child_env(), capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "promises broken: 0" in done.stdout


@pytest.mark.slow
def test_pairs_and_kills_break_no_promise():
    stressed("--pairs", "3", "--kills", "--every", "12")


@pytest.mark.slow
def test_hundreds_of_pairs_and_a_kill_at_each_event_break_no_promise():
    """Some minutes: 600 publishings of models and as many of vectors, and 500 kills."""
    stressed("--pairs", "300", "--kills", timeout=3000)
