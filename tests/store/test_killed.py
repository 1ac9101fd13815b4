"""Builds that are killed, again and again: at every step that touches the disk, and at any time at all."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import kgkit
from kgkit.home import Home
from kgkit.store import verify, writer
from tests.toys import build_toy, entities, run_python

# What a build does to the disk, but for LMDB's own writing.
STEPS = ("fsync", "mkdir", "rename", "replace", "rmdir", "symlink", "unlink")
OLD, NOW, NEW, OTHER = entities(3), entities(4), entities(5), entities(6)


def kill_before(moment: int) -> None:
    """Let this process die before or after the step of that number."""
    passed = 0

    def dies(step):
        def wrapped(*args, **kwargs):
            tick()
            done = step(*args, **kwargs)
            tick()
            return done

        return wrapped

    def tick():
        nonlocal passed
        passed += 1
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    for step in STEPS:
        setattr(os, step, dies(getattr(os, step)))
    for step in ("_write", "finish"):
        setattr(writer.StoreWriter, step, dies(getattr(writer.StoreWriter, step)))
    for step in ("remove",):
        setattr(writer.StoreEditor, step, dies(getattr(writer.StoreEditor, step)))


def die_at_every_step_of(
    change: Callable[[Path], object], base: Path, report: Callable[[Path], dict[str, object]]
) -> list[dict[str, object]]:
    """Return what *report* says of a copy of the home *base* after a child died at each step of *change*.

    The last report is of a change that came to its end. This process forks.
    """
    reports: list[dict[str, object]] = []
    status: int = signal.SIGKILL
    while status:
        home = base.parent / "dead"
        shutil.copytree(base, home, symlinks=True)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            kill_before(len(reports) + 1)
            change(home)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), status
        reports.append(report(home))
        shutil.rmtree(home)
    return reports


def build_until(moment: int, folder: Path, home: Path) -> bool:
    """Build in a child that dies at that moment; return whether it lived to the end."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        kill_before(moment)
        build_toy(folder, home=home, all=NEW)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0


def die_at_every_step(folder: str) -> None:
    """Print, for every step of a build, what is left when it dies there; this process forks."""
    where = Path(folder)
    base = where / "base"
    builds = {
        name: build_toy(where, home=base, all=records).build for name, records in (("old", OLD), ("now", NOW))
    }
    builds |= {
        name: build_toy(where, home=where / name, all=r).build for name, r in (("new", NEW), ("other", OTHER))
    }
    names = {build: name for name, build in builds.items()}
    reports, moment, ended = [], 0, False
    after: dict[str, object]
    while not ended:
        moment += 1
        dead = where / "dead"
        shutil.copytree(base, dead, symlinks=True)
        ended = build_until(moment, where, dead)
        with kgkit.open_kb("toy", home=dead) as kb:
            report = {
                "current": names[kb.build],
                "answers": [entity.key for entity in kb],
                "means": len(kb.candidates("name 1")),
                "wrong": verify(kb.store.folder),
                "after": (after := {}),
            }
        for name, records in (("now", NOW), ("new", NEW), ("other", OTHER)):
            home = where / "next"
            shutil.copytree(dead, home, symlinks=True)
            built = build_toy(where, home=home, all=records)
            there = Home(home).kb("toy")
            after[name] = {
                "current": names[str(there.published())],
                "left": sorted(names.get(path.name, path.name) for path in there.builds.iterdir()),
                "beside": sorted(path.name for path in there.path.iterdir()),
                "wrong": verify(built.path),
            }
            shutil.rmtree(home)
        shutil.rmtree(dead)
        reports.append(report)
    print(json.dumps(reports))


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    code = "import sys; from tests.store.test_killed import die_at_every_step as f; f(sys.argv[1])"
    done = run_python(code, tmp_path_factory.mktemp("killed"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 40  # steps there were, or this tests nothing
    return found


@pytest.mark.slow
def test_the_published_kb_answers_after_a_kill_at_every_step(reports):
    size = {"now": 4, "new": 5}
    for report in reports:
        assert report["current"] in size
        assert len(report["answers"]) == size[report["current"]]
        assert report["means"] == 1
        assert report["wrong"] == []


@pytest.mark.slow
def test_a_killed_build_is_published_wholly_or_not_at_all(reports):
    published = [report["current"] == "new" for report in reports]
    assert published == sorted(published)  # once there, it stays
    assert not published[0]
    assert published[-1]


@pytest.mark.slow
def test_the_next_build_succeeds_after_a_kill_at_every_step(reports):
    for report in reports:
        for name, after in report["after"].items():
            assert after["current"] == name
            assert after["wrong"] == []


@pytest.mark.slow
def test_only_published_builds_remain_after_the_build_that_follows_a_kill(reports):
    for report in reports:
        was = report["current"]
        for name, after in report["after"].items():
            # The build that was current stays as the previous one; built again, it keeps the one it had.
            kept = {name, was} if name != was else {name, "old" if was == "now" else "now"}
            assert after["left"] == sorted(kept)
            assert after["beside"] == ["builds", "current", "lock"]


def test_a_build_that_is_killed_before_the_first_was_published_leaves_nothing_behind(tmp_path):
    code = """if True:
        import os, signal, sys
        from pathlib import Path
        from tests.toys import build_toy, entities

        class Deadly(list):
            def __iter__(self):
                yield from super().__iter__()
                os.kill(os.getpid(), signal.SIGKILL)

        build_toy(Path(sys.argv[1]), all=Deadly(entities(3)))
    """
    assert run_python(code, tmp_path).returncode == -signal.SIGKILL
    kb = Home(tmp_path / "home").kb("toy")
    assert [path.name[:5] for path in kb.builds.iterdir()] == [".new-"]
    assert kb.published() is None
    assert kb.build_names() == []
    with pytest.raises(kgkit.errors.NotThere):
        kgkit.open_kb("toy", home=tmp_path / "home")

    built = build_toy(tmp_path, all=entities(3))
    assert [path.name for path in kb.builds.iterdir()] == [built.build]


def test_what_a_killed_build_left_is_swept_before_the_next_one_needs_the_room(tmp_path):
    built = build_toy(tmp_path, all=OLD)
    leftover = built.path.parent / ".new-1-dead"
    leftover.mkdir()
    (leftover / "data.mdb").write_bytes(b"x" * 100)

    class Looks(list):
        def __iter__(self):
            seen.append(leftover.exists())
            return super().__iter__()

    seen: list[bool] = []
    build_toy(tmp_path, all=Looks(NOW))
    assert seen == [False]
