"""Builds that meet the end of the disk, a limit on the size of files, or a disk that fails at any step."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kgkit
from kgkit.errors import SourceError, StoreError, WriteFailed
from kgkit.home import Home
from kgkit.store import StoreWriter, verify, writer
from tests.toys import build_toy, child_env, entities, run_python

BIG = """if True:
    import json, resource, shutil, signal, sys
    from pathlib import Path
    from kgkit.errors import WriteFailed
    from kgkit.home import Home
    from tests.toys import build_toy, entities, listing

    def told(folder, home):
        try:
            build_toy(folder, home=home, all=entities(500, size=4000))
        except WriteFailed as error:
            where = str(error.where)
            return {"written": error.written, "free": error.free, "where": where, "says": str(error)}
        return {}
"""


def test_a_limit_on_file_size_is_an_error_that_says_how_much_was_written_how_much_is_free_and_where(tmp_path):
    old = build_toy(tmp_path, all=entities(3))
    code = BIG + (
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "    print(json.dumps(told(Path(sys.argv[1]), Path(sys.argv[2]))))"
    )
    done = run_python(code, tmp_path, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert 0 < told["written"] <= 1_000_000
    assert abs(told["free"] - shutil.disk_usage(tmp_path).free) < 1e9
    assert Path(told["where"]).is_relative_to(tmp_path / "home/kbs/toy")
    assert f"{told['written'] / 1e6:.1f} MB of this build written" in told["says"]
    assert "MB free" in told["says"]
    assert told["where"] in told["says"]
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        assert (kb.build, len(kb)) == (old.build, 3)
    assert [path.name for path in old.path.parent.iterdir()] == [old.build]


def test_where_nobody_may_write_room_is_not_what_is_asked_for(tmp_path):
    for code, remedy in (
        (errno.EROFS, "give this user the right to write there"),
        (errno.ENOSPC, "make room"),
    ):
        error = WriteFailed(str(OSError(code, os.strerror(code))), written=0, free=5_000_000, where=tmp_path)
        assert f"{remedy}, or name another folder with --home or KGKIT_HOME" in str(error)
        assert ("5.0 MB free" in str(error)) == (code == errno.ENOSPC)


def test_whatever_the_limit_a_build_fails_with_a_sentence_and_the_old_kb_stays(tmp_path):
    old = build_toy(tmp_path, all=entities(3))
    code = BIG + (
        "    folder, home = Path(sys.argv[1]), Path(sys.argv[2])\n"
        "    kb, report = Home(home).kb('toy'), []\n"
        "    for limit in [0, 1, 4096, 8192, 10_000, *range(20_000, 3_000_000, 200_000)]:\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))\n"
        "        failed = told(folder, home)\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "        left = sorted(path.name for path in kb.builds.iterdir())\n"
        "        report.append([bool(failed), kb.published(), left])\n"
        "        if not failed: break\n"
        "    print(json.dumps(report))"
    )
    done = run_python(code, tmp_path, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    *failed, last = json.loads(done.stdout)
    assert len(failed) > 8
    assert all(report == [True, old.build, [old.build]] for report in failed)
    assert last[0] is False
    assert last[1] != old.build


def in_small_disk(folder: Path, size: str, code: str, *args: object) -> "subprocess.CompletedProcess[str]":
    """Run *code* where *folder* is a disk of that size, which nobody else sees."""
    if not shutil.which("unshare") or sys.platform != "linux":
        pytest.skip("needs Linux's `unshare` to make a small disk")
    script = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
    flags = "-m" if os.getuid() == 0 else "-rm"
    tried = subprocess.run(
        ["unshare", flags, "sh", "-c", script, "sh", size, folder, "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        pytest.skip(f"a small disk may not be mounted here: {tried.stderr.strip()}")
    command = ["sh", "-c", script, "sh", size, str(folder), sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(
        ["unshare", flags, *command],
        env=child_env(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_full_disk_is_an_error_that_says_how_much_is_free_and_the_old_kb_stays(tmp_path):
    code = (
        BIG
        + """
    disk, source = Path(sys.argv[1]), Path(sys.argv[2])
    old = build_toy(source, home=disk, all=entities(3))
    failed = told(source, disk)
    import kgkit
    with kgkit.open_kb("toy", home=disk) as kb:
        print(json.dumps([failed, kb.build == old.build, len(kb), len(list(old.path.parent.iterdir()))]))
    new = build_toy(source, home=disk, all=entities(4))  # the room is there again
    """
    )
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_small_disk(disk, "1m", code, disk, tmp_path)
    assert done.returncode == 0, done.stderr
    failed, same, count, left = json.loads(done.stdout)
    assert failed["written"] > 500_000
    assert failed["free"] < 500_000
    assert failed["where"].startswith(str(disk))
    assert "No space left on device" in failed["says"], failed["says"]
    assert (same, count, left) == (True, 3, 1)


def test_a_disk_that_is_full_to_the_last_byte_is_a_sentence_too(tmp_path):
    code = (
        BIG
        + """
    disk, source = Path(sys.argv[1]), Path(sys.argv[2])
    old = build_toy(source, home=disk, all=entities(3))
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(b"x" * 4096): pass
        except OSError: pass
    failed = told(source, disk)
    import kgkit
    with kgkit.open_kb("toy", home=disk) as kb:
        print(json.dumps([failed, len(kb), len(list(old.path.parent.iterdir()))]))
    """
    )
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_small_disk(disk, "1m", code, disk, tmp_path)
    assert done.returncode == 0, done.stderr
    failed, count, left = json.loads(done.stdout)
    assert failed["free"] == 0
    assert (count, left) == (3, 1)


def steps_that_fail(step: str, monkeypatch: pytest.MonkeyPatch, at: int) -> list[int]:
    """Let the *at*-th call of a function of `os` fail as a full disk does."""
    calls, real = [0], getattr(os, step)

    def fails(*args, **kwargs):
        calls[0] += 1
        if calls[0] == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, step, fails)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("step", ["fsync", "mkdir", "rename", "symlink", "replace"])
def test_a_disk_that_fails_at_any_step_of_publishing_leaves_one_whole_kb(step, tmp_path, monkeypatch):
    at, failures = 0, 0
    while True:
        at += 1
        home = tmp_path / str(at)
        old = build_toy(tmp_path, home=home, all=entities(3))
        with monkeypatch.context() as patched:
            calls = steps_that_fail(step, patched, at)
            try:
                build_toy(tmp_path, home=home, all=entities(4))
            except WriteFailed as error:
                failures += 1
                assert "No space left on device" in str(error)
        kb = Home(home).kb("toy")
        left = sorted(path.name for path in kb.builds.iterdir())
        assert verify(kb.builds / kb.published()) == []
        if kb.published() == old.build:
            assert left == [old.build]
        assert sorted(path.name for path in kb.path.iterdir()) == ["builds", "current", "lock"]
        if calls[0] < at:
            break
    assert failures


def test_a_build_that_fails_for_any_reason_takes_its_staging_with_it(tmp_path):
    old = build_toy(tmp_path, all=entities(3))

    class Breaks(list):
        def __iter__(self):
            yield from super().__iter__()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_toy(tmp_path, all=Breaks(entities(4)))
    with pytest.raises(SourceError):
        build_toy(tmp_path, all=[*entities(4), *entities(4)])
    assert [path.name for path in old.path.parent.iterdir()] == [old.build]


def test_a_home_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(WriteFailed, match="Not a directory"):
        build_toy(tmp_path, home=tmp_path / "file", all=entities(3))


def test_a_build_larger_than_the_map_it_begins_with_grows_the_map(tmp_path, monkeypatch):
    small = build_toy(tmp_path, name="small", all=entities(500, size=4000))
    monkeypatch.setattr(writer, "_FIRST_MAP", 1 << 16)
    grown = build_toy(tmp_path, name="grown", all=entities(500, size=4000))
    assert (grown.path / "data.mdb").stat().st_size > 16 << 16
    assert grown.manifest.tables == small.manifest.tables
    assert grown.build == small.build
    assert verify(grown.path) == []


def test_a_map_that_cannot_grow_is_a_sentence(tmp_path):
    code = """if True:
        import resource, sys
        from pathlib import Path
        from kgkit.errors import WriteFailed
        from kgkit.store import writer
        writer._FIRST_MAP = 1 << 30
        store = writer.StoreWriter(Path(sys.argv[1]))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), resource.RLIM_INFINITY))
        try:
            store._grow()
        except WriteFailed as error:
            print(error.reason)
    """
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    done = run_python(code, tmp_path / "staging")
    assert done.returncode == 0, done.stderr
    assert "Cannot allocate memory" in done.stdout


def test_keys_that_do_not_ascend_are_refused(tmp_path):
    with StoreWriter(tmp_path / "down") as store, pytest.raises(StoreError, match="do not ascend"):
        store.append("keys", [(b"b", b"1"), (b"a", b"2")])
    with StoreWriter(tmp_path / "twice") as store, pytest.raises(StoreError, match="do not ascend at b'a'"):
        store.append("keys", [(b"a", b"1"), (b"a", b"2")])
    with StoreWriter(tmp_path / "later") as store:
        store.append("keys", [(b"b", b"1")])
        with pytest.raises(StoreError, match="do not ascend"):
            store.append("keys", [(b"a", b"2")])
