"""Where nobody names an engine, the size of the source and the memory decide; none is killed for memory."""

import bz2
import gzip
import itertools
import json
import logging

import pytest

from kgkit.building import build, find_builder
from kgkit.building import engine_choice as choice
from kgkit.building.build import build_kb
from kgkit.building.engine_choice import choose_engine, readable_size
from kgkit.building.options import LEAST_MEMORY, bytes_of
from kgkit.building.sources import open_source
from kgkit.errors import BuildFailed, MissingExtra
from kgkit.home import Home
from tests.cli_helpers import run
from tests.toys import ToyBuilder, build_toy, source_file

GB = 10**9


@pytest.mark.parametrize(
    ("size", "memory_size", "engine"),
    [
        (0, 4 * GB, "memory"),  # nobody knows
        (35_000_000, 4 * GB, "memory"),  # WordNet
        (100_000_000, 4 * GB, "memory"),
        (100_000_001, 400 * GB, "local"),
        (789_000_000, 2 * GB, "local"),
        (35_000_000, LEAST_MEMORY, "local"),
        (60_000_000, GB // 2, "local"),
    ],
)
def test_a_source_that_is_large_for_the_memory_is_grouped_on_the_disk(size, memory_size, engine):
    assert choose_engine(ToyBuilder(), size, memory_size).engine == engine


def test_a_builder_that_needs_the_disk_has_it_whatever_the_size():
    assert choose_engine(find_builder("wikipedia"), 1, 4 * GB).engine == "local"


def test_without_its_packages_local_is_chosen_only_where_memory_cannot_do(monkeypatch):
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    assert choose_engine(ToyBuilder(), 200_000_000, 4 * GB).engine == "memory"
    with pytest.raises(MissingExtra):
        choose_engine(ToyBuilder(), 200_000_000, GB)


@pytest.mark.parametrize("size", [0, 7, 999, 94_000, 256_000_000, 1_500_000_000, 10_250_000_000])
def test_a_size_is_written_as_it_is_read(size):
    assert bytes_of(readable_size(size)) == pytest.approx(size, rel=0.05)


def test_the_size_of_a_source_is_that_of_its_text(tmp_path):
    line = json.dumps({"key": "a", "label": "Apple"}).encode() + b"\n"
    content = b"".join(line.replace(b'"a"', b'"a%d"' % number) for number in range(2_000))
    sizes = []
    for name, pack in (("x.jsonl", bytes), ("x.jsonl.gz", gzip.compress), ("x.jsonl.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(pack(content))
        with open_source(find_builder("jsonl"), tmp_path / name, Home(tmp_path)) as material:
            sizes.append(material.size)
    assert sizes[0] == len(content)
    assert sizes[1] > (tmp_path / "x.jsonl.gz").stat().st_size
    with open_source(
        find_builder("jsonl"), [tmp_path / "x.jsonl", tmp_path / "x.jsonl.gz"], Home(tmp_path)
    ) as material:
        assert material.size == sizes[0] + sizes[1]
    build_kb("jsonl", tmp_path / "x.jsonl", name="x", home=tmp_path / "home")
    with open_source(None, "kb:x", Home(tmp_path / "home")) as material:
        assert material.size > 0


def test_a_large_source_is_built_on_the_disk_and_the_command_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "LARGEST_IN_MEMORY", 10)
    (tmp_path / "x.jsonl").write_text('{"key": "a", "label": "Apple"}\n')
    done = run("build-kb", "jsonl", tmp_path / "x.jsonl", "--name", "x", "--home", tmp_path / "home")
    assert done.code == 0
    assert "local" in done.err
    monkeypatch.undo()
    again = run("build-kb", "jsonl", tmp_path / "x.jsonl", "--name", "x", "--home", tmp_path / "home")
    assert "local" not in again.err
    assert again.out == done.out  # the name of the build among it


def test_a_source_that_proves_too_large_for_the_memory_is_built_on_the_disk(tmp_path, monkeypatch, caplog):
    expected = build_toy(tmp_path, home=tmp_path / "other")
    used = itertools.count(0, GB)
    monkeypatch.setattr(build, "used_memory", lambda: next(used))
    notes = []
    with caplog.at_level(logging.INFO, "kgkit"):
        built = build_kb(
            ToyBuilder(),
            source_file(tmp_path),
            name="toy",
            home=tmp_path / "home",
            progress=lambda stage, *_: notes.append(stage),
            memory="1GB",
        )
    assert built.build == expected.build
    assert any(note.startswith(choice.ENGINE_CHOSEN) for note in notes)
    assert "local" in caplog.text
    assert not [*(tmp_path / "home").rglob(".new-*")]


def test_the_engine_in_memory_that_was_asked_for_ends_before_the_memory_does(tmp_path, monkeypatch):
    used, home = itertools.count(0, GB), tmp_path / "home"
    monkeypatch.setattr(build, "used_memory", lambda: next(used))
    with pytest.raises(BuildFailed):
        build_kb(ToyBuilder(), source_file(tmp_path), name="toy", home=home, engine="memory", memory="1GB")
    assert not [*home.rglob("data.mdb")]


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("0::/a/b\n", {"a/memory.max": "3000000000", "a/b/memory.max": "max"}, 1_500_000_000),
        ("0::/a/b\n", {"memory.max": "2000000000"}, 1_000_000_000),  # in a container: the path is the host's
        ("4:memory:/x\n0::/\n", {"memory/x/memory.limit_in_bytes": "1000000000"}, 500_000_000),
        ("4:cpu,memory:/x\n", {"memory/memory.limit_in_bytes": "100000000"}, LEAST_MEMORY),
        ("0::/a\n", {"a/memory.max": "max"}, 4_000_000_000),
        ("0::/a\n", {"a/memory.max": "64000000000"}, 4_000_000_000),
        ("", {}, 4_000_000_000),
    ],
)
def test_half_of_what_is_free_may_be_used_unless_told_and_a_cgroup_limits_that(
    tmp_path, monkeypatch, cgroup, files, expected
):
    (tmp_path / "cgroup").write_text(cgroup)
    (tmp_path / "meminfo").write_text("MemTotal: 99999999 kB\nMemAvailable: 64000000 kB\n")
    for name, content in files.items():
        file = tmp_path / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    monkeypatch.setattr(choice, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(choice, "_CGROUPS", tmp_path / "fs")
    monkeypatch.setattr(choice, "_MEMINFO", tmp_path / "meminfo")
    assert choice.default_memory() == expected
