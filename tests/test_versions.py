"""Folders with versions: which is current, what readers see while it changes, and what a failure leaves."""

import errno
import itertools
import os
import threading

import pytest

import kgkit.versions as module
from kgkit.errors import DamagedModel, UnsupportedPlatform
from kgkit.versions import (
    COPIED,
    CURRENT,
    LOCK,
    acquire_lock,
    check_platform,
    current_version,
    file_sha256,
    find_content,
    free_space,
    link_current,
    link_file,
    lock_folder,
    publish_version,
    read_current,
    remove,
    set_aside,
    set_usual_modes,
    sweep,
    write_once,
)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "a folder"
    path.mkdir()
    return path


def publish(folder, version, content="x"):
    """Publish a version with one file."""
    staged = folder / ".new-1"
    staged.mkdir()
    (staged / "file").write_text(content)
    return publish_version(folder, staged, version)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read(folder):
    """Return the content of the current version, as a reader does."""
    return read_current(lambda: current_version(folder), lambda version: (version / "file").read_text())


# -- which version is current -----------------------------------------------


def test_a_folder_without_versions_has_no_current_version(folder, tmp_path):
    assert current_version(folder) is None is current_version(tmp_path / "absent")


def test_each_publication_moves_the_link_and_older_versions_stay(folder):
    publish(folder, "1", "first")
    assert publish(folder, "2", "second") == folder / "2" == current_version(folder)
    assert names(folder) == ["1", "2", CURRENT] and read(folder) == "second"


def test_a_version_of_the_same_name_is_replaced_and_never_absent(folder):
    publish(folder, "1", "first")
    publish(folder, "1", "second")
    assert read(folder) == "second" and (folder / CURRENT).readlink().name == "1"
    sweep(folder)
    assert names(folder) == ["1", CURRENT]


def test_a_link_that_leads_nowhere_is_no_version(folder):
    (folder / CURRENT).symlink_to("absent")
    assert current_version(folder) is None
    publish(folder, "1")
    assert current_version(folder) == folder / "1"


@pytest.mark.parametrize("name", [CURRENT, COPIED])
def test_a_copy_that_followed_links_has_its_content_in_a_folder(folder, name):
    (folder / name).mkdir()
    (folder / name / "file").write_text("copied")
    assert current_version(folder) == folder / name
    publish(folder, "1", "new")
    assert current_version(folder) == folder / "1" and (folder / CURRENT).is_symlink()
    sweep(folder)
    assert names(folder) == ["1", CURRENT]


def test_content_is_that_of_the_version_else_of_the_folder_itself(folder):
    assert find_content(folder, "file") is None
    (folder / "file").write_text("plain")
    assert find_content(folder, "file") == folder
    publish(folder, "1")
    assert find_content(folder, "file") == folder / "1"
    assert find_content(folder, "absent") is None
    (folder / "1" / "file").unlink()
    assert find_content(folder, "file") is None


# -- reading while another process writes -----------------------------------


def test_a_reader_whose_version_is_swept_reads_the_next_version_and_closes_the_first(folder):
    publish(folder, "1", "first")
    closed = []

    class Reader:
        """Content that says when it is closed."""

        def __init__(self, text):
            self.text = text

        def close(self):
            closed.append(self.text)

    def slow_read(version):
        """Read a version, after which another is published and the first one swept."""
        content = Reader((version / "file").read_text())
        if content.text == "first":
            publish(folder, "2", "second")
            sweep(folder)
        return content

    assert read_current(lambda: current_version(folder), slow_read).text == "second"
    assert closed == ["first"]


@pytest.mark.parametrize("error", [DamagedModel("torn"), FileNotFoundError("file")])
def test_an_error_is_raised_once_where_nothing_was_replaced(folder, error):
    publish(folder, "1")
    calls = []

    def refuse(version):
        calls.append(version)
        raise error

    with pytest.raises(type(error)):
        read_current(lambda: current_version(folder), refuse)
    assert calls == [folder / "1"]


def test_an_error_of_a_version_that_was_replaced_meanwhile_is_not_raised(folder):
    publish(folder, "1", "first")

    def read_late(version):
        if version.name == "1":
            publish(folder, "2", "second")
            sweep(folder)
        return (version / "file").read_text()

    assert read_current(lambda: current_version(folder), read_late) == "second"


# -- failures ---------------------------------------------------------------


@pytest.mark.parametrize("step", ["rename", "symlink_to", "replace"])
def test_a_disk_that_refuses_leaves_the_older_version_current(folder, monkeypatch, step):
    publish(folder, "1", "first")

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.Path, step, refuse)
    with pytest.raises(OSError, match="No space"):
        publish(folder, "2", "second")
    monkeypatch.undo()
    assert read(folder) == "first"
    sweep(folder)
    assert names(folder) == ["1", CURRENT]


def test_a_link_that_cannot_be_replaced_restores_a_copied_folder(folder, monkeypatch):
    (folder / CURRENT).mkdir()
    (folder / CURRENT / "file").write_text("copied")
    (folder / "1").mkdir()
    monkeypatch.setattr(module.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("refused")))
    with pytest.raises(OSError, match="refused"):
        link_current(folder, "1")
    assert names(folder) == ["1", CURRENT] and read(folder) == "copied"


def test_of_two_who_write_the_same_content_the_first_stays(folder):
    target = folder / "content"
    with write_once(target) as mine:
        (mine / "file").write_text("slow")
        with write_once(target) as faster:
            (faster / "file").write_text("fast")
    assert (target / "file").read_text() == "fast" and names(folder) == ["content"]


def test_content_whose_writing_fails_is_absent(folder):
    with pytest.raises(ValueError, match="half"), write_once(folder / "content") as staged:
        (staged / "file").write_text("half")
        raise ValueError("half")
    assert names(folder) == []


def test_content_that_cannot_be_renamed_is_an_error(folder, monkeypatch):
    monkeypatch.setattr(module.Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("refused")))
    with pytest.raises(OSError, match="refused"), write_once(folder / "content"):
        pass
    assert names(folder) == []


# -- removing ---------------------------------------------------------------


def test_sweeping_a_folder_with_its_content_in_itself_removes_hidden_remains_alone(folder):
    (folder / "file").write_text("plain")
    (folder / ".new-1").mkdir()
    (folder / LOCK).touch()
    sweep(folder)
    assert names(folder) == ["file", LOCK]


def test_removing_a_folder_takes_versions_link_and_lock(folder):
    publish(folder, "1")
    with lock_folder(folder):
        remove(folder)
    assert not folder.exists()


def test_a_link_is_set_aside_and_its_target_stays(folder):
    (folder / "target").mkdir()
    (folder / "link").symlink_to("target")
    for name in ("link", "absent"):
        set_aside(folder / name)
    assert names(folder) == ["target"]


# -- locks ------------------------------------------------------------------


def test_a_lock_is_refused_at_once_or_waited_for(folder, caplog, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    locked, done = threading.Event(), threading.Event()

    def work():
        with lock_folder(folder):
            locked.set()
            done.wait(10)

    worker = threading.Thread(target=work)
    worker.start()
    assert locked.wait(10)
    with pytest.raises(TimeoutError):
        acquire_lock(folder, 0)
    threading.Timer(0.2, done.set).start()
    with lock_folder(folder):
        assert caplog.text.count("waiting for another process that is writing to") == 1
    worker.join()
    acquire_lock(folder, 0).release()


def test_the_folder_of_a_lock_is_created(folder):
    with lock_folder(folder / "a" / "b", 0):
        assert names(folder / "a" / "b") == [LOCK]


def test_a_lock_whose_folder_is_always_removed_is_an_error_in_the_end(folder, monkeypatch):
    monkeypatch.setattr(module.os.path, "samestat", lambda *_: False)
    with pytest.raises(TimeoutError, match="removed again and again"):
        acquire_lock(folder, 0)


def test_publishing_is_refused_on_windows_with_the_systems_that_serve(folder, monkeypatch):
    monkeypatch.setattr(module, "_PLATFORM", "win32")
    with pytest.raises(UnsupportedPlatform, match="WSL 2"):
        check_platform()
    with pytest.raises(UnsupportedPlatform):
        acquire_lock(folder)
    assert names(folder) == []


# -- files ------------------------------------------------------------------


def test_a_file_is_linked_or_else_copied(folder, monkeypatch):
    (folder / "file").write_bytes(b"abc")
    link_file(folder / "file", folder / "link")
    monkeypatch.setattr(module.os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links")))
    link_file(folder / "file", folder / "copy")
    inodes = {name: (folder / name).stat().st_ino for name in ("file", "link", "copy")}
    assert inodes["file"] == inodes["link"] != inodes["copy"]
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert {file_sha256(folder / name) for name in inodes} == {digest}


def test_folders_that_do_not_exist_yet_have_free_space(folder):
    assert free_space(folder / "a" / "b" / "c") > 0


# -- modes ------------------------------------------------------------------


@pytest.fixture
def umask():
    """Let new files be read by the group, and by nobody else."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def test_what_is_published_has_the_mode_of_new_files_where_a_library_left_it_to_its_owner(folder, umask):
    staged = folder / ".new-1"
    (staged / "weights").mkdir(parents=True)
    private, open_to_all, script = staged / "weights" / "a", staged / "b", staged / "c"
    for path, mode in ((private, 0o600), (open_to_all, 0o644), (script, 0o700)):
        path.touch()
        path.chmod(mode)
    (staged / "link").symlink_to("weights/a")
    version = publish_version(folder, staged, "1")
    modes = {path.name: path.stat().st_mode & 0o777 for path in version.rglob("*") if path.is_file()}
    assert modes == {"a": 0o640, "b": 0o644, "c": 0o700, "link": 0o640}
    assert names(version) == ["b", "c", "link", "weights"]


def test_files_stay_private_where_all_new_files_are(folder):
    before = os.umask(0o077)
    try:
        (folder / "a").touch()
        set_usual_modes(folder)
        assert (folder / "a").stat().st_mode & 0o777 == 0o600 and names(folder) == ["a"]
    finally:
        os.umask(before)


@pytest.mark.parametrize("copies", ["whole", "not at all", "a part, then fails"])
def test_a_file_is_copied_whether_or_not_the_file_system_shares_its_blocks(tmp_path, monkeypatch, copies):
    content = bytes(range(256)) * 1_000
    (tmp_path / "old").write_bytes(content)
    calls = itertools.count()

    def fails(source, target, size):
        if copies == "not at all" or next(calls):
            raise OSError(errno.EXDEV, "no")
        return os.sendfile(target, source, None, 1_000)

    if copies != "whole":
        monkeypatch.setattr(os, "copy_file_range", fails, raising=False)
    module.copy_file(tmp_path / "old", tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == content
