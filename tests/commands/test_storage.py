"""`kgkit du`, `kgkit clean` and `kgkit kb rm`: what takes how much, what can go, and what depends on it."""

import json
import os
import time
from pathlib import Path

import msgspec
import pytest

import kgkit
from kgkit.home import Home
from kgkit.models.manifest import FORMAT, MANIFEST
from kgkit.models.storage import disk_usage, leftovers, remove_leftover
from kgkit.versions import lock_folder
from tests.cli_helpers import on_terminal, run

DAY = 86_400


@pytest.fixture
def home(tmp_path):
    """A home with a KB, its vectors, a model that needs them, and what stopped jobs have left."""
    kgkit.build_kb("jsonl", [{"key": "a", "aliases": ["A"]}], name="names", home=tmp_path)
    model = tmp_path / "models" / "mine"
    model.mkdir(parents=True)
    needs = {"kbs": {"names": "0"}, "vectors": ["names/text"], "exact": False, "linker": "", "models": []}
    header = {"format": FORMAT, "kind": "linker", "name": "mine", "needs": needs}
    (model / MANIFEST).write_bytes(msgspec.json.encode(header))
    for folder, days in (
        ("runs/linker-mine-0123456789ab", 9),
        ("runs/linker-mine-ba9876543210", 1),
        ("cache/parts/names/0123456789abcdef", 30),
        ("cache/vectors/names/text-0123456789ab", 8),
        ("kbs/names/builds/.new-1-ab", 0),
        ("models/mine/.old-12", 0),
    ):
        path = tmp_path / folder
        path.mkdir(parents=True)
        (path / "file").write_bytes(bytes(1_000))
        then = time.time() - days * DAY
        os.utime(path / "file", (then, then))
    return tmp_path


def names_of(paths):
    return sorted(Path(path).name for path in paths)


OLD = [".new-1-ab", ".old-12", "0123456789abcdef", "linker-mine-0123456789ab", "text-0123456789ab"]


def test_what_takes_how_much_is_listed(home):
    usage = {(entry.kind, entry.name): entry.size for entry in disk_usage(Home.find(home))}
    build = kgkit.kbs(home)[0].build
    assert usage["run", "linker-mine-0123456789ab"] == 1_000
    assert usage["build", f"names@{build}"] > 10_000 and ("model", "mine") in usage
    listed = json.loads(run("du", "--json", "--home", home).out)
    assert listed["size"] == sum(usage.values()) == sum(entry["size"] for entry in listed["entries"])
    assert run("du", "--home", home).out.splitlines()[1].startswith(f"build\tnames@{build}\t")


def test_old_work_of_stopped_jobs_and_temporary_folders_can_go(home):
    assert names_of(leftover.path for leftover in leftovers(Home.find(home), days=7)) == OLD
    assert len(leftovers(Home.find(home))) == 6
    shown = run("clean", "--dry-run", "--json", "--home", home)
    assert names_of(entry["path"] for entry in json.loads(shown.out)) == OLD
    assert shown.err == "5 folders, 0.0 MB, can go\n"
    assert len(leftovers(Home.find(home))) == 6


def test_what_a_process_works_on_stays(home):
    run_folder = home / "runs" / "linker-mine-0123456789ab"
    [training, *_] = leftovers(Home.find(home))
    with lock_folder(run_folder):
        assert run_folder not in [leftover.path for leftover in leftovers(Home.find(home))]
        assert not remove_leftover(training)
    assert run_folder.exists() and remove_leftover(training) and not run_folder.exists()


def test_cleaning_removes_what_it_has_listed_and_wants_an_answer(home):
    refused = run("clean", "--home", home)
    assert refused.code == 2 and "Nobody can be asked here: add --yes" in refused.err
    done = run("clean", "--yes", "--home", home)
    assert done.code == 0 and done.err == "removed 5 folders, 0.0 MB\n"
    assert names_of(leftover.path for leftover in leftovers(Home.find(home))) == ["linker-mine-ba9876543210"]
    assert run("clean", "--home", home).err == f"nothing to remove in {home}\n"
    with kgkit.open_kb("names", home) as kb:
        assert len(kb) == 1


def test_removing_a_kb_names_what_depends_on_it_and_asks_on_a_terminal(home):
    (home / "kbs/names/vectors/text/1").mkdir(parents=True)
    (home / "kbs/names/vectors/text/current").symlink_to("1")
    refused = on_terminal("kb", "rm", "names", "--home", home, keys=b"n\n")
    assert refused.code == 1 and "Remove the knowledge base names? [y/N]" in refused.out
    assert "models that need it, and stay: mine" in refused.out and (home / "kbs/names").exists()
    done = run("kb", "rm", "names", "--home", home)
    assert done.code == 0 and "models that need it, and stay: mine\nremoved names\n" in done.err


def test_what_a_killed_first_build_has_left_can_go(tmp_path):
    (tmp_path / "kbs/ghost/builds/.new-1-ab").mkdir(parents=True)
    [leftover] = leftovers(Home.find(tmp_path), days=7)
    assert leftover.kind == "temporary" and remove_leftover(leftover)


def test_a_stopped_build_of_a_kb_that_is_not_there_makes_no_kb(tmp_path):
    (tmp_path / "cache/parts/ghost/0123").mkdir(parents=True)
    assert len(leftovers(Home.find(tmp_path))) == 1
    assert not (tmp_path / "kbs").exists()
