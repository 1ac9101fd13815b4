"""What counts as a leftover of which job, how old it is, and what a home takes: folders by hand."""

import os
import time

import pytest

import kgkit.models.storage as module
from kgkit.home import Home
from kgkit.models.storage import DiskUsage, disk_usage, leftovers, remove_leftover
from kgkit.vectors.work import making
from kgkit.versions import LOCK, lock_folder

DAY = 86_400
RUN = "runs/linker-mine-0123456789ab"
VECTORS = "cache/vectors/names/text-0123456789ab"


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def write(home, folder, days=0.0, size=1_000, name="file"):
    """Write a file of *size* bytes into a folder of the home, *days* old; return the folder."""
    path = home.path / folder
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(bytes(size))
    modified = time.time() - days * DAY
    os.utime(path / name, (modified, modified))
    return path


def kinds(home, days=0.0):
    """Return the leftovers of a home as pairs of type and folder."""
    return sorted((leftover.kind, leftover.path.name) for leftover in leftovers(home, days=days))


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        (RUN, "training"),
        ("cache/parts/names/0123456789abcdef", "build"),
        (VECTORS, "vectors"),
        (".unpack-0123", "temporary"),
        ("runs/.old-0123", "temporary"),
        ("kbs/.new-0123", "temporary"),
        ("kbs/names/builds/.new-0123", "temporary"),
        ("kbs/names/vectors/text/.old-0123", "temporary"),
        ("models/mine/.new-0123", "temporary"),
    ],
)
def test_each_type_of_leftover_is_recognized_and_removed(home, folder, kind):
    path = write(home, folder)
    [leftover] = leftovers(home)
    assert (leftover.kind, leftover.path, leftover.size) == (kind, path, 1_000)
    assert remove_leftover(leftover) and not path.exists() and leftovers(home) == []


@pytest.mark.parametrize(
    "folder",
    [
        "runs/.hidden",
        "cache/downloads/names",
        "kbs/names/builds/0123456789ab",
        "models/mine/1",
        "notes/.new-1",
    ],
)
def test_finished_and_foreign_folders_are_no_leftovers(home, folder):
    write(home, folder)
    assert leftovers(home) == []


def test_a_home_that_does_not_exist_has_nothing_and_is_not_created(tmp_path):
    home = Home(tmp_path / "absent")
    assert leftovers(home) == [] == disk_usage(home)
    assert not home.path.exists()


@pytest.mark.parametrize(("days", "count"), [(0, 1), (4.9, 1), (5.1, 0)])
def test_work_counts_from_an_age_on(home, days, count):
    write(home, RUN, days=5)
    assert len(leftovers(home, days=days)) == count


def test_temporary_folders_count_at_any_age(home):
    write(home, "models/mine/.new-1", days=0)
    assert kinds(home, days=1_000) == [("temporary", ".new-1")]


def test_the_newest_file_dates_a_folder_and_its_lock_does_not(home):
    write(home, RUN, days=9)
    write(home, RUN, days=3, name="newer")
    write(home, RUN, days=0, name=LOCK)
    [leftover] = leftovers(home, days=2)
    assert leftover.to_dict() == {
        "kind": "training", "path": str(home.path / RUN), "size": 3_000, "days": 3.0,
    }  # fmt: skip
    assert leftovers(home, days=4) == []


def test_an_empty_folder_is_dated_by_itself(home):
    path = home.path / RUN
    path.mkdir(parents=True)
    os.utime(path, (time.time() - 7 * DAY,) * 2)
    [leftover] = leftovers(home, days=6)
    assert leftover.size == 0 and leftover.to_dict()["days"] == 7.0


def test_a_file_from_the_future_has_no_negative_age(home):
    write(home, RUN, days=-2)
    [leftover] = module._candidates(home)
    assert leftover.to_dict()["days"] == 0 and leftovers(home) == []


def test_files_that_vanish_while_sizes_are_added_up_are_skipped(home, monkeypatch):
    path = write(home, RUN, name="first")
    write(home, RUN, name="second")
    walk = os.walk

    def removing(folder):
        """Remove the first file of a folder after its names were read."""
        for parent, folders, names in walk(folder):
            (path / "first").unlink(missing_ok=True)
            yield parent, folders, sorted(names)

    monkeypatch.setattr(module.os, "walk", removing)
    [leftover] = leftovers(home)
    assert leftover.size == 1_000


def test_links_are_neither_followed_nor_counted(home, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "large").write_bytes(bytes(50_000))
    path = write(home, RUN)
    (path / "link").symlink_to(outside / "large")
    (path / "folder").symlink_to(outside)
    (path / "nowhere").symlink_to("absent")
    [leftover] = leftovers(home)
    assert leftover.size == 1_000
    assert remove_leftover(leftover) and (outside / "large").stat().st_size == 50_000


@pytest.mark.parametrize("folder", [RUN, "kbs/names/builds/.new-1", "models/mine/.old-1"])
def test_nothing_goes_that_a_process_holds_the_lock_of(home, folder):
    path = write(home, folder)
    owner = path if folder == RUN else path.parents[1] if "builds" in folder else path.parent
    [leftover] = leftovers(home)
    with lock_folder(owner):
        assert leftovers(home) == [] and not remove_leftover(leftover)
        assert path.is_dir()
    assert [entry.path for entry in leftovers(home)] == [path]


def test_unfinished_vectors_are_locked_by_name(home):
    path = write(home, VECTORS)
    kb = home.kb("names")
    with making(kb, "plane"):
        assert kinds(home) == [("vectors", path.name)]
    with making(kb, "text"):
        assert kinds(home) == []


def test_a_folder_that_no_job_can_have_named_is_no_leftover(home):
    write(home, "cache/vectors/names/my notes of last week")
    write(home, "cache/vectors/a b/text-0123456789ab")
    write(home, RUN)
    assert kinds(home) == [("training", "linker-mine-0123456789ab")]


def test_a_leftover_that_is_gone_counts_as_removed(home):
    path = write(home, RUN)
    [leftover] = leftovers(home)
    assert remove_leftover(leftover) and remove_leftover(leftover)
    assert not path.exists()


def test_usage_is_by_type_and_name_and_hidden_folders_have_none(home):
    write(home, "models/mine/1", size=7)
    write(home, "models/mine/1", size=3, name="more")
    write(home, "runs/a", size=5)
    write(home, "cache/downloads", size=2)
    write(home, "models/.hidden", size=100)
    assert disk_usage(home) == [
        DiskUsage("model", "mine", 10, home.models / "mine"),
        DiskUsage("run", "a", 5, home.path / "runs" / "a"),
        DiskUsage("cache", "downloads", 2, home.cache / "downloads"),
    ]
