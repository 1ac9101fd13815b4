"""Handles: across rebuilds, shared, closed, dropped, and how little they take and leave."""

import gc
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import kgkit
from kgkit.errors import ClosedKB, NotThere, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.store import StoreReader, environments, find_build, open_build, prune, read_build, remove, verify
from tests.toys import ENTITIES, build_toy, child_env, entities, listing, run_python


def keys(kb):
    return [entity.key for entity in kb]


@pytest.fixture
def no_handle_left():
    """Whether every build that was opened since the test began has been closed."""
    before = set(environments._open)
    return lambda: set(environments._open) == before


# -- while builds come and go -------------------------------------------------


def test_an_open_handle_keeps_its_build_and_a_new_one_gets_the_new_build(tmp_path):
    home = tmp_path / "home"
    first = build_toy(tmp_path, all=entities(3))
    with kgkit.open_kb("toy", home=home) as before:
        second = build_toy(tmp_path, all=entities(4))
        with kgkit.open_kb("toy", home=home) as after:
            assert (before.build, len(before), len(keys(before))) == (first.build, 3, 3)
            assert (after.build, len(after), len(keys(after))) == (second.build, 4, 4)
            assert "e3" not in before
            assert "e3" in after


def test_an_iteration_that_has_begun_goes_on_across_a_rebuild(tmp_path):
    build_toy(tmp_path, all=entities(50))
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        running = iter(kb)
        first = next(running)
        build_toy(tmp_path, all=entities(4))
        prune(Home(tmp_path / "home").kb("toy"))
        assert [first, *running] == list(kb)
        assert len(keys(kb)) == 50


def test_a_handle_reads_on_after_its_build_was_pruned(tmp_path):
    first = build_toy(tmp_path, all=entities(300, size=1000))
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        build_toy(tmp_path, all=entities(4))
        assert prune(Home(tmp_path / "home").kb("toy")) == [first.build]
        assert not first.path.exists()
        assert len(keys(kb)) == 300
        assert kb.candidates("name 299").ids.tolist() == [299]
        assert [entity.key for entity in kb.neighbors("e7")] == ["e8"]


def test_a_handle_reads_on_after_its_kb_was_removed_and_opens_by_name_no_more(tmp_path):
    build_toy(tmp_path, all=entities(30))
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        remove(Home(tmp_path / "home").kb("toy"))
        assert len(keys(kb)) == 30
        assert list((tmp_path / "home/kbs").iterdir()) == []
        with pytest.raises(NotThere, match="kgkit build-kb BUILDER --name toy"):
            kgkit.open_kb("toy", home=tmp_path / "home")


def test_a_build_that_was_removed_and_built_again_is_opened_anew_while_the_first_is_still_read(tmp_path):
    first = build_toy(tmp_path, all=entities(3))
    with kgkit.open_kb("toy", home=tmp_path / "home") as before:
        remove(Home(tmp_path / "home").kb("toy"))
        second = build_toy(tmp_path, all=entities(3))
        assert second.path == first.path
        with kgkit.open_kb("toy", home=tmp_path / "home") as after:
            assert keys(before) == keys(after)
            assert before.store._environment is not after.store._environment


def test_two_builds_stay_until_they_are_pruned_and_each_opens_by_its_name(tmp_path):
    builds = [build_toy(tmp_path, all=entities(count)).build for count in (3, 4, 5)]
    home = Home(tmp_path / "home")
    assert home.kb("toy").build_names() == builds[1:]
    with kgkit.open_kb(f"toy@{builds[1]}", home=home.path) as kb:
        assert (kb.build, len(kb)) == (builds[1], 4)
    with pytest.raises(NotThere, match=builds[0]):
        kgkit.open_kb(f"toy@{builds[0]}", home=home.path)
    assert prune(home.kb("toy")) == [builds[1]]
    assert prune(home.kb("toy")) == []
    assert home.kb("toy").build_names() == [builds[2]]


def test_a_source_that_goes_back_to_what_it_was_brings_the_old_build_back(tmp_path):
    first, second = (build_toy(tmp_path, all=entities(count)) for count in (3, 4))
    before = listing(first.path)
    again = build_toy(tmp_path, all=entities(3))
    assert again == first
    assert listing(first.path) == before
    assert Home(tmp_path / "home").kb("toy").published() == first.build
    assert build_toy(tmp_path, all=entities(3)) == first  # and the other one is still kept
    assert {path.name for path in first.path.parent.iterdir()} == {first.build, second.build}


def test_a_build_that_is_swept_between_being_found_and_opened_gives_way_to_the_next(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    build_toy(tmp_path, all=entities(3))
    real = StoreReader.open
    rebuilds = [4, 5]

    def opens(folder):
        while rebuilds:
            build_toy(tmp_path, all=entities(rebuilds.pop(0)))
        return real(folder)

    monkeypatch.setattr(StoreReader, "open", opens)
    found, reader = open_build(home, "toy")
    assert (found.build, reader.manifest.entities) == (home.kb("toy").published(), 5)
    reader.close()
    (found.folder / "manifest.json").unlink()
    with pytest.raises(NotThere):  # and what is not there is not sought for ever
        open_build(home, "toy")


def test_a_link_that_changes_while_it_is_followed_is_read_again(tmp_path, monkeypatch):
    """Two rebuilds sweep the build that the link named a moment ago."""
    home = Home(tmp_path / "home")
    first = build_toy(tmp_path, all=entities(3))
    is_there, rebuilds = Path.is_dir, [5, 4]

    def rebuilt_before_asked(path, **options):
        if path.name == first.build and rebuilds:
            counts = [rebuilds.pop(), rebuilds.pop()]
            for count in counts:
                build_toy(tmp_path, all=entities(count))
        return is_there(path, **options)

    monkeypatch.setattr(Path, "is_dir", rebuilt_before_asked)
    found = find_build(home, "toy")
    assert not rebuilds
    assert found.folder.is_dir()
    assert home.kb("toy").build_names()[-1] == found.build


def test_a_link_that_never_stops_changing_is_not_read_for_ever(tmp_path, monkeypatch):
    home, reads = Home(tmp_path / "home"), []
    build_toy(tmp_path, all=entities(3))

    def changed(path):
        reads.append(path)
        path.unlink()
        path.symlink_to(f"builds/{len(reads):012}")
        return Path("builds") / f"{len(reads):012}"

    monkeypatch.setattr(Path, "readlink", changed)
    with pytest.raises(NotThere):
        find_build(home, "toy")
    assert 2 < len(reads) < 1000


def test_a_link_to_a_build_that_is_gone_is_read_twice(tmp_path):
    built = build_toy(tmp_path, all=entities(3))
    shutil.rmtree(built.path)
    with pytest.raises(NotThere, match="there is none"):
        find_build(Home(tmp_path / "home"), "toy")


def test_a_kb_that_was_copied_without_links_is_read_and_written_as_ever(tmp_path):
    build_toy(tmp_path, all=entities(3))
    copied = shutil.copytree(tmp_path / "home", tmp_path / "copy" / "home")
    home = Home(copied)
    assert [kb.name for kb in home.kbs()] == ["toy"]
    assert home.kb("toy").published() == Home(tmp_path / "home").kb("toy").published()
    with kgkit.open_kb("toy", home=copied, verify=True) as kb:
        assert len(keys(kb)) == 3
    build_toy(tmp_path / "copy", all=entities(4))
    assert home.kb("toy").current.is_symlink()
    with kgkit.open_kb("toy", home=copied) as kb:
        assert len(keys(kb)) == 4
    assert [path.name for path in home.kb("toy").builds.glob(".*")] == []
    assert sorted(path.name for path in home.kb("toy").path.iterdir()) == ["builds", "current", "lock"]


def test_verifying_gives_way_to_the_build_that_took_the_place(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    build_toy(tmp_path, all=entities(3))
    rebuilds = [4, 5]

    def problems(folder):
        while rebuilds:
            build_toy(tmp_path, all=entities(rebuilds.pop(0)))
        return verify(folder)

    found, wrong = read_build(home, "toy", problems)
    assert (found.build, wrong) == (home.kb("toy").published(), [])


# -- together -------------------------------------------------------------------


def test_eight_threads_read_one_handle_at_once_while_rebuilds_land(tmp_path, no_handle_left):
    build_toy(tmp_path, all=entities(40))
    wrong: list[object] = []
    stop = threading.Event()

    def read(kb):
        rounds = 0
        while not stop.is_set() or rounds < 3:
            rounds += 1
            for number in range(0, 40, 7):
                seen = kb[f"e{number}"].id, kb.key(number), kb.candidates(f"name {number}").ids.tolist()
                if seen != (number, f"e{number}", [number]):
                    wrong.append(seen)
            if keys(kb) != [f"e{number}" for number in range(40)]:
                wrong.append(keys(kb))
            with KnowledgeBase(open_build(Home(tmp_path / "home"), "toy")[1], "toy") as own:
                if len(keys(own)) != len(own):
                    wrong.append(own.build)

    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        threads = [threading.Thread(target=read, args=(kb,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for count in range(41, 46):
            build_toy(tmp_path, all=entities(count))
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
    assert no_handle_left()


def test_eight_processes_read_at_once_while_rebuilds_land(tmp_path):
    build_toy(tmp_path, all=entities(40))
    code = """if True:
        import sys, time
        from pathlib import Path
        import kgkit
        from kgkit.home import Home
        from kgkit.kb import KnowledgeBase
        from kgkit.store import open_build
        kb = kgkit.open_kb("toy", home=sys.argv[1])
        print("open", flush=True)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            assert len([entity.key for entity in kb]) == len(kb) == 40
            assert kb.candidates("name 39").ids.tolist() == [39]
            with KnowledgeBase(open_build(Home(Path(sys.argv[1])), "toy")[1], "toy") as new:
                assert len([entity.key for entity in new]) == len(new) >= 40
    """
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "home"], env=child_env(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(8)
    ]  # fmt: skip
    for reader in readers:
        assert reader.stdout.readline() == "open\n", reader.stderr.read()
    for count in range(41, 46):
        build_toy(tmp_path, all=entities(count))
    for reader in readers:
        _, complaints = reader.communicate(timeout=300)
        assert (reader.returncode, complaints) == (0, "")


# -- open, closed, dropped --------------------------------------------------------


def test_a_kb_opened_twice_and_closed_once_still_reads(toy_home, no_handle_left):
    first, second = (kgkit.open_kb("toy", home=toy_home) for _ in range(2))
    assert first.store._environment is second.store._environment
    first.close()
    first.close()
    assert keys(second) == ENTITIES
    second.close()
    assert no_handle_left()


def test_a_closed_handle_says_so_whatever_it_is_asked(tmp_path):
    build_toy(tmp_path)  # its own: other handles keep files open
    kb = kgkit.open_kb("toy", home=tmp_path / "home")
    running = iter(kb)
    next(running)
    kb.close()
    asked = [
        lambda: kb["Apple"], lambda: kb[0], lambda: "Apple" in kb, lambda: keys(kb), lambda: next(running),
        lambda: kb.candidates("apple"), lambda: kb.neighbors("Apple"), lambda: kb.neighbors(0),
        lambda: kb.key(0), lambda: kb.id("Apple"), lambda: list(kb.match()), lambda: list(kb.surfaces()),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(ClosedKB, match="closed"):
            ask()


def test_what_a_handle_has_given_outlives_it(toy_home):
    with kgkit.open_kb("toy", home=toy_home) as kb:
        apple, candidates, neighbours = kb["Apple"], kb.candidates("apple"), kb.neighbors(kb.id("Apple"))
    gc.collect()
    assert apple.description == "A fruit."
    assert candidates.ids.tolist() == [0, 1]
    assert neighbours.tolist() == [5]


def test_a_handle_that_nobody_holds_closes_by_itself(toy_home, no_handle_left):
    kb = kgkit.open_kb("toy", home=toy_home)
    assert keys(kb) == ENTITIES
    running = iter(kb)
    next(running)
    del kb
    gc.collect()
    assert next(running).key == ENTITIES[1]  # an iteration holds it
    del running
    gc.collect()
    assert no_handle_left()


def test_a_handle_dropped_in_the_middle_of_opening_another_is_closed_all_the_same(tmp_path, monkeypatch):
    # The garbage collector runs anywhere: here, while `acquire` holds its lock.
    build_toy(tmp_path, all=entities(3))
    (tmp_path / "other").mkdir()
    build_toy(tmp_path / "other")
    dropped = [kgkit.open_kb("toy", home=tmp_path / "other" / "home")]
    toy_environment = dropped[0].store._environment
    real = environments.Environment

    def opens(*args):
        dropped.clear()
        return real(*args)

    monkeypatch.setattr(environments, "Environment", opens)
    with kgkit.open_kb("toy", home=tmp_path / "home") as kb:
        assert toy_environment not in environments._open.values()
        assert len(keys(kb)) == 3


# -- what reading takes and leaves --------------------------------------------------


def test_reading_leaves_nothing_on_the_disk_and_needs_no_leave_to_write(tmp_path):
    built = build_toy(tmp_path)
    home = tmp_path / "home"
    for path in [home, *home.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o444 if path.is_file() else 0o555)
    before = listing(home)
    try:
        code = """if True:
            import os, sys, kgkit
            if os.getuid() == 0:
                os.setuid(65534)  # root may write anywhere
            from kgkit.store import verify
            with kgkit.open_kb("toy", home=sys.argv[1]) as kb:
                print(len(list(kb)), kb.candidates("apple").ids.tolist(), verify(kb.store.folder))
        """
        for folder in [tmp_path, *tmp_path.parents]:
            if os.getuid() == 0 and not folder.stat().st_mode & 0o001:
                code = code.replace("os.setuid(65534)", "pass")  # the tests' own folder is closed to others
        done = run_python(code, home)
        assert (done.stdout, done.stderr) == ("7 [0, 1] []\n", "")
        assert listing(home) == before
        names = {"data.mdb", "manifest.json", "surfaces.trigrams"}
        assert {path.name for path in built.path.iterdir()} == names
    finally:
        for path in [home, *home.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755)


def test_a_kb_on_a_read_only_file_system_is_read(tmp_path):
    if not shutil.which("unshare") or sys.platform != "linux":
        pytest.skip("needs Linux's `unshare` to make a file system read-only")
    build_toy(tmp_path)
    code = (
        "import sys, kgkit; from kgkit.store import verify\n"
        "with kgkit.open_kb('toy', home=sys.argv[1]) as kb: print(len(list(kb)), verify(kb.store.folder))\n"
        "open(sys.argv[1] + '/file', 'w')"
    )
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    flags = "-m" if os.getuid() == 0 else "-rm"
    command = ["unshare", flags, "sh", "-c", script, "sh", str(tmp_path / "home")]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"nothing may be mounted here: {tried.stderr.strip()}")
    done = subprocess.run(
        [*command, sys.executable, "-c", code, str(tmp_path / "home")],
        env=child_env(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "7 []\n"
    assert "Read-only file system" in done.stderr  # as it was meant to be


def test_the_alias_table_is_not_copied_into_the_heap(tmp_path):
    build_toy(tmp_path, all=entities(20_000, size=50))
    code = """if True:
        import sys, tracemalloc
        import kgkit
        from kgkit.candidates import AliasGenerator
        kgkit.open_kb("toy", home=sys.argv[1]).candidates("name 0", pos="n")  # imports
        tracemalloc.start()
        with kgkit.open_kb("toy", home=sys.argv[1]) as kb:
            for number in range(0, 20_000, 10):
                assert kb.candidates(f"name {number}").ids.tolist() == [number]
                kb[number], kb.neighbors(number)
            print(tracemalloc.get_traced_memory()[1])
    """
    done = run_python(code, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100_000  # the table has 800,000 bytes, the entities two million


# -- names and places -----------------------------------------------------------------


def test_a_home_behind_a_symbolic_link_is_the_same_kb(tmp_path, toy_home):
    (tmp_path / "link").symlink_to(toy_home)
    with (
        kgkit.open_kb("toy", home=toy_home) as straight,
        kgkit.open_kb("toy", home=tmp_path / "link") as linked,
    ):
        assert keys(linked) == keys(straight)
        assert linked.store._environment is straight.store._environment
    (tmp_path / "real").mkdir()
    (tmp_path / "away").symlink_to(tmp_path / "real")
    built = build_toy(tmp_path, home=tmp_path / "away")
    assert verify(built.path) == []
    with kgkit.open_kb("toy", home=tmp_path / "real") as kb:
        assert keys(kb) == ENTITIES


def test_a_home_that_was_moved_or_copied_still_reads(tmp_path):
    build_toy(tmp_path)
    shutil.copytree(tmp_path / "home", tmp_path / "copy", symlinks=True)
    (tmp_path / "home").rename(tmp_path / "moved")
    for home in ("copy", "moved"):
        with kgkit.open_kb("toy", home=tmp_path / home) as kb:
            assert keys(kb) == ENTITIES
            assert verify(kb.store.folder) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../toy",
        "a/b",
        "/etc",
        "a\\b",
        ".hidden",
        "-x",
        "a b",
        "a\n",
        "ä",
        "x" * 65,
        "a\0b",
        "@",
    ],
)
def test_a_name_that_could_lead_elsewhere_is_refused(name, tmp_path):
    with pytest.raises(UsageError, match="knowledge base"):
        kgkit.open_kb(name, home=tmp_path)
    if "@" not in name:
        with pytest.raises(UsageError, match="knowledge base"):
            build_toy(tmp_path, name=name)


@pytest.mark.parametrize("build", ["..", "../..", ".new-1", "/etc", "../../toy/current"])
def test_a_build_that_could_lead_elsewhere_is_refused(build, toy_home):
    with pytest.raises(NotThere, match="'toy' has no build"):
        kgkit.open_kb(f"toy@{build}", home=toy_home)


def test_what_is_no_kb_is_not_listed(tmp_path):
    build_toy(tmp_path, name="one")
    kbs = tmp_path / "home/kbs"
    (kbs / "empty").mkdir()
    (kbs / "file").write_text("")
    (kbs / "no name").mkdir()
    (kbs / "no name/current").mkdir()
    assert [kb.name for kb in Home(tmp_path / "home").kbs()] == ["one"]
    assert Home(tmp_path / "nowhere").kbs() == []


def test_pruning_or_removing_what_is_not_there_makes_nothing(tmp_path):
    home = Home(tmp_path)
    for verb in (prune, remove):
        with pytest.raises(NotThere, match="no knowledge base 'toy'"):
            verb(home.kb("toy"))
    assert listing(tmp_path) == {}


def test_a_build_is_found_only_where_there_is_one(tmp_path):
    with pytest.raises(NotThere, match="there is none"):
        find_build(Home(tmp_path), "toy")
    build_toy(tmp_path, name="other")
    with pytest.raises(NotThere, match="there are: other"):
        find_build(Home(tmp_path / "home"), "toy")
