"""The engine that groups on the disk makes the KBs that the one in memory makes, and goes on after a stop."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import ClassVar

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyarrow import parquet

import kgkit
from benchmarks.tree import members
from kgkit.building import (
    Alias,
    Aliases,
    Attribute,
    Builder,
    Entity,
    Files,
    Redirect,
    SourceInfo,
    Step,
    Triple,
    Triples,
    aliases,
)
from kgkit.building.build import build_kb
from kgkit.building.engines import local, run, tables
from kgkit.building.engines.columns import SCHEMA
from kgkit.building.engines.local import DuckDBSession
from kgkit.candidates import AliasConfig, AliasGenerator
from kgkit.errors import BuildFailed, MissingExtra, SourceError, UnknownName, UsageError, WriteFailed
from kgkit.home import Home
from tests.building.test_records_of_a_kb import WHOLE, records
from tests.toys import LINKS, PAGES, REPOSITORY, ToyBuilder, entities, source_file


class Pieces(ToyBuilder):
    pieces: ClassVar[bool] = True


class Stepping(ToyBuilder):
    unit: ClassVar[str] = "pages"


class Source(Builder):
    """Reads a folder: each file is a part, each of its lines an entity; notes which parts it observed."""

    engine: ClassVar[str] = "local"

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="Source"), [file for file in source.iterdir() if file.suffix == ".txt"])

    def parts(self, source: Path) -> Sequence[str]:
        return sorted(file.name for file in source.glob("*.txt"))

    def observe(self, source: Path, part: str) -> Iterator[Entity | Alias]:
        with (source / "observed").open("a") as log:
            log.write(part + "\n")
        for number, line in enumerate((source / part).read_text().splitlines(), 1):
            if line == "bad":
                raise SourceError("this is bad", path=source / part, line=number, text=line)
            if line == "kill" and not (source / "survive").exists():
                while len([*source.parent.rglob("part-*.json")]) < 2:  # the others shall be done
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            yield Entity(line)
            yield Alias(line, line, 1)


def folder_of(path: Path, **parts: Sequence[str]) -> Path:
    path.mkdir(exist_ok=True)
    for name, lines in parts.items():
        (path / f"{name}.txt").write_text("\n".join(lines))
    return path


def observed_so_far(source: Path) -> list[str]:
    log = source / "observed"
    return sorted(log.read_text().split()) if log.exists() else []


def observed(source: Path) -> list[str]:
    found = observed_so_far(source)
    (source / "observed").unlink(missing_ok=True)
    return found


def build(folder, builder=None, source=None, **options):
    """Build with an engine of tables unless told otherwise."""
    return build_kb(
        builder or ToyBuilder(), source or source_file(Path(folder)), home=Path(folder) / "home",
        **{"engine": "local", "name": "kb", **options},
    )  # fmt: skip


def opened(folder, name="kb"):
    return kgkit.open_kb(name, home=Path(folder) / "home")


def leftovers(folder):
    return [*(Path(folder) / "home" / "cache").rglob("part-*")]


# -- the same KB --------------------------------------------------------------------


def test_the_toy_is_the_same_from_either_engine(tmp_path):
    one, other = build(tmp_path), build(tmp_path, engine="memory", name="other")
    assert one.build == other.build
    assert one.manifest.tables == other.manifest.tables
    assert one.dropped == other.dropped
    assert leftovers(tmp_path) == []
    assert Home(tmp_path / "home").unfinished() == []


def test_what_could_not_be_kept_is_shown_by_either_engine(tmp_path):
    lost = [Alias(f"x{number}", "nobody", 1) for number in range(9)]
    builder = ToyBuilder(links=LINKS, pages=PAGES, lost=lost)
    one, other = build(tmp_path, builder), build(tmp_path, builder, engine="memory", name="other")
    assert one.examples == other.examples
    long = build(tmp_path, ToyBuilder(all=[Entity("a"), Alias("x", "k" * 600)]), name="long")
    assert long.examples == {"alias of no entity": ["'x' → (a key of no or of more than 511 bytes)"]}


@pytest.mark.slow
def test_wordnet_is_the_same_from_either_engine(wordnet_files, wordnet_build, tmp_path):
    """Slow: all of WordNet twice; random records are compared in every run."""
    assert build(tmp_path, "wordnet", wordnet_files).build == wordnet_build.name


@given(records(WHOLE.map(float)))
@settings(max_examples=25, deadline=None)
def test_random_records_make_the_same_kb(given_records):
    with tempfile.TemporaryDirectory() as folder:
        builder = ToyBuilder(
            one=given_records[: len(given_records) // 2], two=given_records[len(given_records) // 2 :]
        )
        one = build(folder, builder)
        other = build(folder, builder, engine="memory", name="other")
        assert one.manifest.tables == other.manifest.tables
        assert one.dropped == other.dropped


def test_several_processes_make_the_same_kb(tmp_path):
    parts = {f"p{number}": entities(40)[40 * number : 40 * number + 40] for number in range(3)}
    one = build(tmp_path, ToyBuilder(**parts), workers=2)
    assert one.build == build(tmp_path, ToyBuilder(**parts), engine="memory", name="other").build


def test_another_kb_is_a_source_for_it_too(tmp_path):
    class Derived(ToyBuilder):
        def derive(self, kb):
            yield from kb.entities()
            yield from kb.aliases()

    build(tmp_path, name="base")
    one = build(tmp_path, Derived(), "kb:base")
    assert one.build == build(tmp_path, Derived(), "kb:base", engine="memory", name="other").build


@pytest.mark.parametrize("engine", ["local", "memory"])
def test_records_told_many_at_once_are_as_those_told_one_by_one(tmp_path, engine):
    pages = [record for record in PAGES if isinstance(record, Entity)]
    many = [
        *pages,
        Aliases({("apple", "Apple"): 60, ("Apple", "Apple"): 10}),
        Step(2),
        Triples("York", "near", ["Road", "Apple"]),
    ]
    single = [
        *pages,
        Alias("apple", "Apple", 60),
        Alias("Apple", "Apple", 10),
        Triple("York", "near", "Road"),
        Triple("York", "near", "Apple"),
    ]
    one = build(tmp_path, Stepping(all=many), engine=engine)
    other = build(tmp_path, ToyBuilder(all=single), engine="memory", name="other")
    assert one.manifest.tables == other.manifest.tables


@pytest.mark.parametrize("engine", ["local", "memory"])
def test_records_told_one_by_one_and_many_at_once_stay_in_their_order(tmp_path, engine):
    build(
        tmp_path,
        ToyBuilder(
            all=[
                Entity("a"), Entity("b"), Entity("c"),
                Aliases({("x", "c"): 1}), Alias("x", "a", 1), Aliases({("x", "b"): 1}),
                Triples("a", "r", ["c"]), Triple("a", "q", "a"), Triples("a", "r", ["b"]),
            ]
        ),
        engine=engine,
    )  # fmt: skip
    with opened(tmp_path) as kb:
        assert [kb.key(number) for number in kb.candidates("x").ids] == ["c", "a", "b"]
        assert [entity.key for entity in kb.neighbors("a")] == ["c", "a", "b"]


def test_names_at_the_end_of_unicode_and_beyond_the_length_of_a_key_stay_apart(tmp_path):
    last = "\U0010ffff"
    names = [last, last + "z" * 64, last + "0" * 64, last * 127, last * 128, "k" * 600, "\0", "a\0"]
    builder = ToyBuilder(all=[Entity(name) for name in names] + [Alias(name, name, 1) for name in names])
    found = build(tmp_path, builder)
    assert found.build == build(tmp_path, builder, engine="memory", name="other").build
    with opened(tmp_path) as kb:
        assert [kb.id(name) for name in names] == [*range(len(names))]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"min_count": 5}, {"types": ["company", "food"]}, {"limit": 30}])
def test_what_is_left_out_is_left_out_by_either_engine(tmp_path, options):
    builder = ToyBuilder(pages=PAGES, links=LINKS)
    one = build(tmp_path, builder, **options)
    other = build(tmp_path, builder, engine="memory", name="other", **options)
    assert one.build == other.build
    assert one.build != (whole := build(tmp_path, builder, name="all")).build
    assert (one.manifest.options, whole.manifest.options) == (options, {})


def test_pairs_that_were_seldom_counted_are_left_out_and_uncounted_ones_stay(tmp_path):
    build(
        tmp_path,
        ToyBuilder(
            all=[
                Entity("a"),
                Entity("b"),
                Alias("x", "a", 4),
                Alias("X", "a", 1),
                Alias("x", "b", 4),
                Alias("y", "b"),
            ]
        ),
        min_count=5,
    )
    with opened(tmp_path) as kb:
        assert [kb.key(number) for number in kb.candidates("x").ids] == ["a"]
        assert [kb.key(number) for number in kb.candidates("y").ids] == ["b"]


@pytest.mark.parametrize("engine", ["local", "memory"])
def test_a_limit_counts_the_steps_of_a_builder_that_steps(tmp_path, engine):
    parts = {
        "one": [Entity("a"), Step(), Entity("b"), Step()],
        "two": [Entity("c"), Entity("d"), Step(), Entity("e")],
    }
    build(tmp_path, Stepping(**parts), engine=engine, limit=3)
    with opened(tmp_path) as kb:
        assert [entity.key for entity in kb] == ["a", "b", "c", "d"]


def test_a_text_is_one_type_and_one_table_of_priors(tmp_path):
    table = tmp_path / "p_e_m.txt"
    table.write_text("apple\t1\t1,9,York\n")
    built = build(tmp_path, types="page", priors=str(table))
    assert built.manifest.options == {"types": ["page"], "priors": [str(table)]}
    assert built.manifest.counts.entities == {"page": 5}


# -- entities in pieces, and their attributes -----------------------------------------


def test_pieces_of_one_key_make_one_entity(tmp_path):
    build(
        tmp_path,
        Pieces(
            one=[Entity("b"), Entity("a", types=("x",), attributes={"n": "1"})],
            two=[
                Entity("a", "A", "text", types=("y", "x"), attributes={"n": "2", "m": "3"}),
                Entity("a", "B"),
            ],
        ),
    )
    with opened(tmp_path) as kb:
        assert [entity.key for entity in kb] == ["b", "a"]
        assert kb["a"] == Entity("a", "A", "text", types=("x", "y"), attributes={"n": "1", "m": "3"}, id=1)


def test_attributes_are_told_apart_through_redirects_and_make_lists(tmp_path):
    built = build(
        tmp_path,
        ToyBuilder(
            one=[Attribute("id:1", "wikidata", "Q1"), Attribute("a", "n", "2"), Attribute("?", "n", "2")],
            two=[
                Entity("a", attributes={"n": "1"}), Redirect("id:1", "a"),
                Attribute("a", "n", "2"), Attribute("a", "n", "3"),
            ],
        ),
    )  # fmt: skip
    with opened(tmp_path) as kb:
        assert kb["a"].attributes == {"n": ["1", "2", "3"], "wikidata": "Q1"}
    assert built.dropped == {"attribute of no entity": 1}


def test_entities_are_written_some_bytes_at_a_time(tmp_path, monkeypatch):
    builder = Pieces(all=[*entities(9, size=10), Attribute("e3", "n", "1")])
    one = build(tmp_path, builder)
    monkeypatch.setattr(tables, "_BYTES", 50)
    assert build(tmp_path, builder, name="other").build == one.build


def test_a_value_that_is_a_key_makes_a_triple_if_it_may(tmp_path):
    build(
        tmp_path,
        Pieces(
            all=[
                Entity("李娜"), Entity("武汉"), Redirect("江城", "武汉"),
                Attribute("李娜", "出生地", "江城", edge=True),
                Attribute("李娜", "中文名", "李娜", edge=True),  # itself: its name, no edge
                Attribute("李娜", "身高", "172", edge=True),
                Attribute("李娜", "别名", "武汉"),
            ]
        ),
    )  # fmt: skip
    with opened(tmp_path) as kb:
        assert [*kb.match("李娜")] == [Triple("李娜", "出生地", "武汉")]
        assert kb["李娜"].attributes == {"中文名": "李娜", "身高": "172", "别名": "武汉"}


@pytest.mark.parametrize("builder", [Pieces(), ToyBuilder(all=[Entity("a"), Attribute("a", "n", "1")])])
def test_the_engine_in_memory_says_what_it_cannot_put_together(tmp_path, builder):
    with pytest.raises(UsageError, match="--engine local"):
        build(tmp_path, builder, engine="memory")


# -- what is wrong ---------------------------------------------------------------------


def test_two_entities_of_one_key_are_refused(tmp_path):
    with pytest.raises(SourceError, match="the key 'a', in one and two") as caught:
        build(tmp_path, ToyBuilder(one=[Entity("a"), Entity("b")], two=[Entity("a"), Entity("b")]))
    assert caught.value.path == source_file(tmp_path)
    assert Home(tmp_path / "home").kbs() == []


def test_a_loop_of_ten_thousand_redirects_is_dropped_and_a_chain_followed(tmp_path):
    loop = [Redirect(f"l{number}", f"l{(number + 1) % 10_000}") for number in range(10_000)]
    chain = [Redirect(f"c{number}", f"c{number + 1}") for number in range(3_000)]
    found = build(tmp_path, ToyBuilder(all=[Entity("c3000"), *loop, *chain, Redirect("tail", "l7")]))
    assert found.dropped == {"redirect in a loop": 10_001}
    assert found.manifest.counts.redirects == 3_000
    with opened(tmp_path) as kb:
        assert kb["c0"].key == "c3000"
    assert (
        found.build
        == build(
            tmp_path,
            ToyBuilder(all=[Entity("c3000"), *loop, *chain, Redirect("tail", "l7")]),
            engine="memory",
            name="m",
        ).build
    )


@pytest.mark.parametrize("engine", ["local", "memory"])
def test_what_is_wrong_between_two_sources_is_blamed_on_both(tmp_path, engine):
    one, two = folder_of(tmp_path / "one", p=["a"]), folder_of(tmp_path / "two", p=["a"])
    with pytest.raises(SourceError, match="'a'") as caught:
        build(tmp_path, Source(), [one, two], engine=engine)
    assert str(caught.value).startswith(f"{one}{os.pathsep}{two}: ")


@pytest.mark.parametrize("engine", ["local", "memory"])
def test_an_alias_of_more_meanings_than_a_row_can_hold_is_refused(tmp_path, monkeypatch, engine):
    monkeypatch.setattr(aliases, "MAX_ROWS", 1)
    with pytest.raises(SourceError, match="means 2 entities"):
        build(
            tmp_path,
            ToyBuilder(all=[Entity("a"), Entity("b"), Alias("x", "a"), Alias("x", "b")]),
            engine=engine,
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_wrong_in_a_part_is_told_with_its_place(tmp_path, workers):
    source = folder_of(tmp_path / "s", one=["a"], two=["b", "bad"], three=["c"])
    with pytest.raises(SourceError, match="this is bad") as caught:
        build(tmp_path, Source(), source, workers=workers)
    assert (caught.value.path, caught.value.line) == (source / "two.txt", 2)
    assert Home(tmp_path / "home").kbs() == []


@pytest.mark.parametrize("surface", ["\ud800", "a\ud800"])
def test_text_that_is_no_unicode_is_blamed_on_the_source(tmp_path, surface):
    with pytest.raises(SourceError, match="not Unicode"):
        build(tmp_path, ToyBuilder(all=[Entity("a"), Alias(surface, "a", 1)]))


@pytest.mark.parametrize("count", [-1, float("nan"), 1e31])
def test_a_count_that_is_none_is_refused(tmp_path, count):
    with pytest.raises(SourceError, match="has the count"):
        build(tmp_path, ToyBuilder(all=[Entity("a"), Alias("x", "a", count)]))


@pytest.mark.parametrize(
    "options, error",
    [
        ({"engine": "cloud"}, UnknownName), ({"workers": 0}, UsageError), ({"memory": "much"}, UsageError),
        ({"memory": "1MB"}, UsageError), ({"limit": 0}, UsageError), ({"min_count": -1}, UsageError),
        ({"master": "local"}, UsageError), ({"min_count": float("nan")}, UsageError),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused_before_anything_is_read(tmp_path, options, error):
    with pytest.raises(error):
        build(tmp_path, Source(), tmp_path / "nothing here", **options)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("package", ["duckdb", "pyarrow", "marisa_trie"])
def test_without_its_packages_it_says_which_extra_brings_them(tmp_path, monkeypatch, package):
    for module in [name for name in sys.modules if name.startswith("kgkit.building.engines")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"kgkit\[scale\]"):
        build(tmp_path)


def test_a_disk_that_refuses_is_told_as_such(tmp_path):
    def full() -> Iterator[pa.RecordBatch]:
        yield from ()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with DuckDBSession(tmp_path, [written_part(tmp_path)], memory=1 << 28, threads=1) as session:
        with pytest.raises(WriteFailed, match="No space left"):
            session.put("ids", pa.schema([("key", pa.string())]), full())
        with pytest.raises(BuildFailed, match="more memory"), local._explain_errors(tmp_path):
            raise duckdb.OutOfMemoryException("could not allocate block")
        with pytest.raises(WriteFailed, match="offload"), local._explain_errors(tmp_path):
            raise duckdb.OutOfMemoryException("failed to offload: 'max_temp_directory_size'")
        assert (tmp_path / "grouping.duckdb").exists()
    assert [file.name for file in tmp_path.iterdir() if "grouping" in file.name] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["what?", "q?mode=memory", "st*r", "**", "br[a]c", "[", "a{b,c}", "back\\slash", '50% it\'s #1; "x"'],
)
def test_a_home_may_be_called_anything(name, tmp_path):
    for other in ("plain", "star", name):  # what a pattern could find beside
        source = folder_of(tmp_path / f"source {other}", one=["a", f"of {other}"])
        build_kb(Source(), source, name="t", home=tmp_path / other, workers=1)
        with kgkit.open_kb("t", tmp_path / other) as kb:
            assert [entity.key for entity in kb.entities()] == ["a", f"of {other}"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[:6] != "source") == sorted(
        {"plain", "star", name}
    )


def test_a_home_with_a_pattern_in_its_path_leaves_no_links_behind(tmp_path, monkeypatch):
    links, home = tmp_path / "links", tmp_path / "a*"
    links.mkdir()
    home.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(links))
    with DuckDBSession(home, [written_part(home)], memory=1 << 28, threads=1) as session:
        session.make("t", "SELECT 1 AS one")
        assert len([*links.iterdir()]) == 1 and [*session.rows("SELECT * FROM t")]
    assert [*links.iterdir()] == []


def test_a_query_that_the_user_interrupts_ends_as_any_program_does(tmp_path):
    endless = "SELECT count(*) FROM range(1000000000000) numbers WHERE range % 7 = 3"
    with DuckDBSession(tmp_path, [written_part(tmp_path)], memory=1 << 28, threads=1) as session:
        for run_it in (lambda: session.make("t", endless), lambda: [*session.rows(endless)]):
            Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                run_it()


def written_part(folder: Path) -> Path:
    file = folder / "part.parquet"
    parquet.write_table(SCHEMA.empty_table(), file)
    return file


# -- a build that was stopped ----------------------------------------------------------


def stopped(tmp_path):
    """A source of three parts of which the last one could not be read, and is mended."""
    source = folder_of(tmp_path / "s", p1=["a", "b"], p2=["c"], p3=["kill"])
    with pytest.raises(BuildFailed, match="the same command goes on"):
        build(tmp_path, Source(), source, workers=2)
    assert observed(source) == ["p1.txt", "p2.txt", "p3.txt"]
    assert Home(tmp_path / "home").kbs() == []
    (source / "survive").touch()
    return source


@pytest.mark.slow
def test_a_build_whose_worker_was_killed_goes_on_from_the_parts_that_are_done(tmp_path):
    source = stopped(tmp_path)
    found = build(tmp_path, Source(), source)
    assert observed(source) == ["p3.txt"]
    assert leftovers(tmp_path) == []
    assert found.build == build(tmp_path, Source(), source, engine="memory", name="other").build


@pytest.mark.slow
def test_workers_end_with_the_build_that_was_killed(tmp_path):
    source = folder_of(tmp_path / "s", p1=["a"], p2=["kill"])
    script = (
        "from tests.building.test_engines_local import *; import sys; from pathlib import Path\n"
        "if __name__ == '__main__': build(Path(sys.argv[1]), Source(), Path(sys.argv[1]) / 's', workers=2)"
    )
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}
    building = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", tmp_path], env=environment, start_new_session=True
    )
    while observed_so_far(source) != ["p1.txt", "p2.txt"]:  # the second one waits for a part more
        assert building.poll() is None
        time.sleep(0.05)
    building.kill()
    building.wait()
    end = time.monotonic() + 20
    while members(building.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert members(building.pid) == []


def test_a_build_begins_anew_when_it_is_told_to(tmp_path):
    source = stopped(tmp_path)
    build(tmp_path, Source(), source, resume=False)
    assert observed(source) == ["p1.txt", "p2.txt", "p3.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["source", "kgkit", "builder"])
def test_parts_that_were_read_of_or_by_something_else_are_read_again(tmp_path, monkeypatch, change):
    source = stopped(tmp_path)
    if change == "source":
        folder_of(source, p1=["A", "b", "c2"])
    elif change == "kgkit":
        monkeypatch.setattr(run, "kgkit_version", lambda: "another")
    else:
        module = tmp_path / "code" / "another.py"
        module.parent.mkdir()
        module.write_text("# this is how it is written now")
        monkeypatch.setattr(sys.modules[Source.__module__], "__file__", str(module))
    build(tmp_path, Source(), source)
    assert observed(source) == ["p1.txt", "p2.txt", "p3.txt"]


@pytest.mark.slow
def test_parts_that_were_read_with_other_options_do_not_count(tmp_path):
    source = stopped(tmp_path)
    build(tmp_path, Source(), source, limit=1)
    assert observed(source) == ["p1.txt"]
    assert leftovers(tmp_path)  # those of the build that was stopped
    build(tmp_path, Source(), source)
    assert observed(source) == ["p3.txt"]


@pytest.mark.slow
def test_it_says_that_it_goes_on(tmp_path):
    source = stopped(tmp_path)
    stages = []
    build(tmp_path, Source(), source, progress=lambda stage, read, total: stages.append(stage))
    assert stages[0] == "going on from 2 of 3 parts that were read before"


@pytest.mark.parametrize(
    "record",
    [Triples("a", "meets", "bc"), Attribute("a", "n", 5)],  # type: ignore[arg-type]
    ids=["objects", "value"],
)
def test_a_record_that_is_none_is_shown(tmp_path, record):
    with pytest.raises(TypeError, match="'a'"):
        build(tmp_path, ToyBuilder(all=[Entity("a"), record]))
    assert [*(tmp_path / "home").rglob("*.new")] == []


def test_sources_of_two_things_are_warned_of(tmp_path, caplog):
    class Named(Source):
        def look(self, source):
            return Files(SourceInfo(name="Source", version=source.name), [])

    one, two = folder_of(tmp_path / "one", p=["a"]), folder_of(tmp_path / "two", p=["b"])
    build(tmp_path, Named(), [one, two], engine="memory")
    assert "not of one thing: Source one; Source two" in caplog.text


def test_types_that_nothing_has_are_named(tmp_path):
    with pytest.raises(SourceError, match="nosuch"):
        build(tmp_path, types=["nosuch"])


@pytest.mark.slow
def test_a_part_that_was_cut_short_is_read_again(tmp_path):
    source = stopped(tmp_path)
    cut = next(path for path in leftovers(tmp_path) if path.name == "part-00000.parquet")
    cut.write_bytes(cut.read_bytes()[:-10])
    build(tmp_path, Source(), source)
    assert observed(source) == ["p1.txt", "p3.txt"]


# -- and the rest ------------------------------------------------------------------------


def test_several_sources_are_read_together(tmp_path):
    one, two = folder_of(tmp_path / "one", p=["a"]), folder_of(tmp_path / "two", p=["b"])
    for engine in ("local", "memory"):
        build(tmp_path, Source(), [one, two], engine=engine)
        with opened(tmp_path) as kb:
            assert [entity.key for entity in kb] == ["a", "b"]


def test_a_kb_of_many_aliases_is_matched_by_tries(tmp_path, monkeypatch):
    pairs = [Alias(f"big {word}", "a", 1) for word in ("apple", "bear", "x" * 600)]
    builder = ToyBuilder(all=[Entity("a"), *pairs])
    build(tmp_path, builder, name="few")
    monkeypatch.setattr(tables, "MANY", 2)
    many = build(tmp_path, builder)
    assert "surfaces.marisa" in many.manifest.files
    text = f"A big  bear and a big {'x' * 600}; big pears."
    with opened(tmp_path) as kb, opened(tmp_path, "few") as few:
        wanted = AliasGenerator(few, AliasConfig()).mentions(text)
        assert [mention.text for mention in wanted] == ["big  bear", f"big {'x' * 600}"]
        assert AliasGenerator(kb, AliasConfig()).mentions(text) == wanted


def test_aliases_that_are_left_out_do_not_count_as_many(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MANY", 2)
    pairs = [Alias(f"big {word}", "a", count) for count, word in enumerate(("apple", "bear", "cat"), 1)]
    builder = ToyBuilder(all=[Entity("a"), *pairs])
    assert "surfaces.marisa" in build(tmp_path, builder).manifest.files
    assert "surfaces.marisa" not in build(tmp_path, builder, min_count=2).manifest.files


def test_it_tells_how_far_it_is(tmp_path):
    source = folder_of(tmp_path / "s", p1=["a", "b"], p2=["c"])
    stages = []
    build(tmp_path, Source(), source, progress=lambda stage, read, total: stages.append(stage))
    assert stages[0] == "reading: 0 of 2 parts, 0 records"
    assert "reading: 2 of 2 parts, 6 records" in stages
    assert stages[-3:] == ["writing aliases", "writing surfaces", "checksums"]
