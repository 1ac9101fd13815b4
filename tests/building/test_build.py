"""From a source to a published build: names, repeatability, errors, and two builds at once."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest

import kgkit
from kgkit.building import Builder, Entity, Files, SourceInfo, Triple, builder_names, find_builder
from kgkit.building.build import build_kb
from kgkit.errors import BuildFailed, KBBusy, SourceError, UnknownName, UsageError
from kgkit.home import Home
from kgkit.store import StoreReader, layout, publish
from tests.toys import LINKS, PAGES, ToyBuilder, build_toy, child_env, entities, run_python, source_file

# -- one source, one build ----------------------------------------------------------


def contents(built):
    reader = StoreReader.open(built.path)
    try:
        return {table: list(reader.items(table)) for table in layout.TABLES}
    finally:
        reader.close()


def test_two_builds_of_one_source_are_equal_byte_for_byte(tmp_path):
    first, second = (build_toy(tmp_path, home=tmp_path / name) for name in ("one", "two"))
    assert first.build == second.build
    assert contents(first) == contents(second)
    assert (first.path / "data.mdb").read_bytes() == (second.path / "data.mdb").read_bytes()


@pytest.mark.slow
def test_the_hash_seed_does_not_matter(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tests.toys import build_toy\n"
        "built = build_toy(Path(sys.argv[1]), home=Path(sys.argv[2]))\n"
        "print(built.build, built.manifest.sha256)"
    )
    source_file(tmp_path)
    told = {
        seed: run_python(code, tmp_path, tmp_path / f"home{seed}", PYTHONHASHSEED=seed).stdout
        for seed in "0123"
    }
    assert told["0"] and len(set(told.values())) == 1


def test_a_build_is_not_named_by_when_or_where_it_was_made_or_what_the_kb_is_called(tmp_path):
    first = build_toy(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    second = build_toy(tmp_path / "elsewhere", name="other")
    assert first.build == second.build
    assert first.manifest.source.path != second.manifest.source.path


def test_a_build_is_named_by_its_content_its_source_and_its_builder(tmp_path):
    class Newer(ToyBuilder):
        version = "2"

    class Smoother(ToyBuilder):
        smoothing = 1.0

    class Lexical(ToyBuilder):
        generator = "lemma"

    source = source_file(tmp_path)
    other = tmp_path / "other.txt"
    other.write_text("another source")

    def name(builder, path=source):
        return build_kb(builder, path, name="toy", home=tmp_path / "home").build

    builders = [ToyBuilder(), ToyBuilder(all=[*PAGES, *LINKS]), Newer(), Smoother(), Lexical()]
    names = [name(builder) for builder in builders] + [name(ToyBuilder(), other)]
    assert len(set(names)) == len(names)
    assert name(ToyBuilder()) == names[0]


def test_the_build_that_is_there_already_is_not_written_again_and_its_own_manifest_is_told(tmp_path):
    first = build_toy(tmp_path)
    inode = (first.path / "data.mdb").stat().st_ino
    manifest = (first.path / "manifest.json").read_bytes()
    second = build_toy(tmp_path)
    assert (first.path / "data.mdb").stat().st_ino == inode
    assert (first.path / "manifest.json").read_bytes() == manifest
    assert second == first


def test_the_manifest_says_what_was_built_from_what(tmp_path):
    manifest = build_toy(tmp_path).manifest
    source = manifest.source
    assert (source.name, source.licence, Path(source.path)) == ("Toy", "CC0-1.0", tmp_path / "source.txt")
    assert len(source.sha256) == 64
    assert (manifest.builder, manifest.builder_version, manifest.format) == ("toy", "1", layout.FORMAT)
    assert manifest.counts.entities == {"page": 5, "category": 2}
    folder = tmp_path / f"home/kbs/toy/builds/{manifest.build}"
    names = ("data.mdb", "surfaces.trigrams")
    assert manifest.files == {name: (folder / name).stat().st_size for name in names}


# -- one at a time --------------------------------------------------------------------


def test_of_two_builds_of_one_kb_at_once_one_is_told_that_the_other_is_busy(tmp_path):
    code = """if True:
        import sys
        from pathlib import Path
        from tests.toys import build_toy, entities

        class Waits(list):
            def __iter__(self):
                print("begun", flush=True)
                sys.stdin.readline()
                return super().__iter__()

        print(build_toy(Path(sys.argv[1]), all=Waits(entities(3))).build)
    """
    source_file(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path],
        env=child_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout.readline() == "begun\n"
        with pytest.raises(KBBusy, match="'toy'"):
            build_toy(tmp_path, all=entities(4))
        with pytest.raises(KBBusy):
            kgkit.store.prune(Home(tmp_path / "home").kb("toy"))
        with pytest.raises(KBBusy):
            kgkit.store.remove(Home(tmp_path / "home").kb("toy"))
        assert build_toy(tmp_path, name="another", all=entities(4)).name == "another"  # another KB is free
        told, _ = other.communicate("go\n", timeout=300)
    assert Home(tmp_path / "home").kb("toy").published() == told.strip()
    assert build_toy(tmp_path, all=entities(4)).build != told.strip()  # and now it is free again


def test_a_build_begun_while_the_kb_is_removed_begins_anew_and_does_not_speak_of_the_disk(
    tmp_path, monkeypatch
):
    kb = Home(tmp_path / "home").kb("toy")
    build_toy(tmp_path, all=entities(3))
    removals = [kb]
    lock_file = Path.touch

    def removed_before_locked(path, **options):
        while path == kb.lock and removals:
            kgkit.store.remove(removals.pop())
        lock_file(path, **options)

    monkeypatch.setattr(Path, "touch", removed_before_locked)
    built = build_toy(tmp_path, all=entities(4))
    assert not removals
    assert kb.build_names() == [built.build]


def test_a_build_that_got_the_lock_of_a_removed_kb_takes_that_of_the_new_one(tmp_path, monkeypatch):
    kb = Home(tmp_path / "home").kb("toy")
    build_toy(tmp_path, all=entities(3))
    removals = [kb]
    status = Path.stat

    def removed_after_locked(path, **options):
        found = status(path, **options)
        if path == kb.lock and removals:
            kgkit.store.remove(removals.pop())
        return found

    monkeypatch.setattr(Path, "stat", removed_after_locked)
    with kgkit.store.Staging(kb):
        assert not removals
        assert kb.lock.exists()
        with pytest.raises(KBBusy):
            kgkit.store.remove(kb)


def test_removing_takes_nothing_from_a_build_that_begins_before_it_ends(tmp_path, monkeypatch):
    kb = Home(tmp_path / "home").kb("toy")
    build_toy(tmp_path, all=entities(3))
    delete, builds = publish.shutil.rmtree, []

    def built_before_deleted(path, **options):
        if Path(path).parent == kb.path.parent and not builds:
            builds.append(None)
            builds.append(build_toy(tmp_path, all=entities(4)))
        delete(path, **options)

    monkeypatch.setattr(publish.shutil, "rmtree", built_before_deleted)
    kgkit.store.remove(kb)
    assert kb.build_names() == [builds[1].build]
    assert kgkit.store.verify(builds[1].path) == []


def test_what_a_killed_removal_left_is_swept_by_the_next_build(tmp_path):
    left = tmp_path / "home/kbs/.old-12345678/builds"
    left.mkdir(parents=True)
    built = build_toy(tmp_path, all=entities(3))
    assert [path.name for path in built.path.parents[2].iterdir()] == ["toy"]


def test_a_child_that_leaves_a_build_by_accident_takes_nothing_with_it(tmp_path):
    # A builder may read with several processes; a child that ends as a program does runs `__exit__`.
    code = """if True:
        import os, sys
        from pathlib import Path
        from tests.toys import build_toy, entities

        class Forks(list):
            def __iter__(self):
                pid = os.fork()
                if pid == 0:
                    sys.exit(5)
                assert os.waitpid(pid, 0)[1] == 5 << 8
                return super().__iter__()

        print(build_toy(Path(sys.argv[1]), all=Forks(entities(3))).manifest.entities)
    """
    source_file(tmp_path)
    done = run_python(code, tmp_path)
    assert (done.stdout, done.stderr) == ("3\n", "")


# -- when the source is not as it should be ---------------------------------------------


class Fails(Builder):
    """Raises what it is told to, where it is told to."""

    where: ClassVar[str] = ""
    error: ClassVar[Exception] = OSError(5, "Input/output error")

    def fail(self, where):
        if where == self.where:
            raise self.error

    def obtain(self, cache):
        self.fail("obtain")
        return cache

    def look(self, source):
        self.fail("look")
        return Files(SourceInfo(name="Fails"), [source / "gone"] if self.where == "checksum" else [])

    def parts(self, source):
        self.fail("parts")
        return ["all"]

    def observe(self, source, part):
        self.fail("observe")
        yield Entity("a")
        yield Triple("a", "r", "a")
        self.fail("later")


@pytest.mark.parametrize("where", ["obtain", "look", "parts", "observe", "later", "checksum"])
@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")]
)
def test_a_source_that_cannot_be_read_is_told_as_such_wherever_it_happens(tmp_path, where, error):
    builder = type("Fails", (Fails,), {"where": where, "error": error})()
    with pytest.raises(SourceError, match=r"cannot be (read|fetched)"):
        build_kb(builder, None if where == "obtain" else tmp_path, home=tmp_path / "home")
    assert not Home(tmp_path / "home").kb("fails").path.exists()


def test_progress_is_told(tmp_path):
    told = []
    build_kb(
        ToyBuilder(all=entities(10_000)), source_file(tmp_path), home=tmp_path / "home",
        progress=lambda *news: told.append(news),
    )  # fmt: skip
    reading = [done for stage, done, _ in told if stage == "reading"]
    assert reading == sorted(set(reading)) and reading[-1] == 30_000
    assert told[-2:] == [("writing", 0, 0), ("checksums", 0, 0)]


def test_a_builder_that_has_to_be_told_its_source_says_so(tmp_path):
    with pytest.raises(UsageError, match="kgkit build-kb toy"):
        build_kb(ToyBuilder(), home=tmp_path / "home")


# -- finding a builder ---------------------------------------------------------------------


def entries(monkeypatch, *points):
    """Let packages have these entry points: name, object and package, which may be none."""

    def entry_points(*, group, name=None):
        assert group == "kgkit.builders"
        found = (EntryPoint(each, value, group)._for(package) for each, value, package in points)
        return [entry for entry in found if name in (None, entry.name)]

    monkeypatch.setattr("kgkit.plugins.entry_points", entry_points)


class Package(NamedTuple):
    """A distribution, as far as a look-up goes."""

    name: str


TOY = "tests.toys:ToyBuilder"


def test_builders_are_found_by_entry_point_and_by_no_other_door(monkeypatch, tmp_path):
    entries(monkeypatch, ("toy", TOY, None), ("ash", TOY, None))
    assert builder_names() == ["ash", "toy"]
    assert type(find_builder("toy")) is ToyBuilder
    with pytest.raises(UnknownName, match=r"'tyo'.*ash, toy"):
        find_builder("tyo")
    for other in (ToyBuilder, source_file(tmp_path)):
        with pytest.raises(UsageError, match="the builder is"):
            build_kb(other, source_file(tmp_path), home=tmp_path / "home")
    built = build_kb("toy", source_file(tmp_path), home=tmp_path / "home")
    assert (built.name, built.manifest.builder) == ("toy", "toy")


def test_a_builder_that_is_not_installed_is_named():
    with pytest.raises(UnknownName, match="did you mean 'wordnet'"):
        find_builder("wordnet-3.1")
    with pytest.raises(UnknownName, match=r"names\.csv"):
        find_builder("names.csv")


class Fussy(ToyBuilder):
    def __init__(self):
        raise ValueError("which dialect?")


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("json:dumps", "names json:dumps, which is no class that derives from Builder"),
        ("json:JSONDecoder", "names json:JSONDecoder, which is no class that derives from Builder"),
        (f"{__name__}:Fussy", "cannot be made without arguments (ValueError: which dialect?)"),
        ("kgkit.building:Builder", "cannot be made without arguments (TypeError: "),
    ],
)
def test_what_is_no_builder_is_an_error_that_names_its_package(monkeypatch, target, what):
    entries(monkeypatch, ("toy", target, Package("ash")))
    with pytest.raises(BuildFailed) as caught:
        find_builder("toy")
    assert str(caught.value).startswith("the entry point toy of the package ash in the group kgkit.builders")
    assert what in str(caught.value)


def test_a_kb_of_other_sources_is_replaced_with_a_warning(tmp_path, caplog):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text('{"key": "main", "label": "Main"}\n')
    second.write_text('{"key": "oder", "label": "Oder"}\n')
    kgkit.build_kb("jsonl", first, home=tmp_path)
    first.write_text('{"key": "main", "label": "Main (river)"}\n')
    (tmp_path / "copy.jsonl").write_bytes(first.read_bytes())
    for path in (first, tmp_path / "copy.jsonl"):
        kgkit.build_kb("jsonl", path, name="copied", home=tmp_path)
    old = kgkit.build_kb("jsonl", first, home=tmp_path).build
    assert not caplog.messages  # the same file, as it is now, and the same content
    kgkit.build_kb("jsonl", second, home=tmp_path)
    [message] = caplog.messages
    assert message == (
        f"jsonl is built in the place of the older jsonl (source {first}): `kgkit kb publish jsonl@{old}` "
        "brings that back, and another name builds both"
    )


def test_records_of_a_program_are_replaced_by_others_of_it_without_a_warning(tmp_path, caplog):
    kgkit.build_kb("jsonl", [{"key": "main", "label": "Main"}], name="mine", home=tmp_path)
    kgkit.build_kb("jsonl", [{"key": "oder", "label": "Oder"}], name="mine", home=tmp_path)
    assert not caplog.messages
