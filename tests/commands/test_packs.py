"""`kgkit pack` and `kgkit unpack` on the command line."""

import json

import pytest

from tests.cli_helpers import process, run
from tests.pack_toys import toy_home
from tests.toys import build_toy
from tests.vector_toys import made


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with the toy and its vectors: not to be changed."""
    return toy_home(tmp_path_factory.mktemp("origin"))


@pytest.fixture
def pack(home, tmp_path):
    """A pack of the toy's vectors, and so of the toy."""
    path = tmp_path / "toy.tar.gz"
    assert run("pack", "toy/plane", "-o", path, "--home", home, "--quiet").code == 0
    return path


def test_what_is_packed_is_listed_with_its_size(home, tmp_path):
    done = run("pack", "vectors:toy/plane", "--output", tmp_path / "a.tar", "--home", home)
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert done.code == 0 and [line[0] for line in lines] == ["kb:toy", "vectors:toy/plane"]
    assert lines[0][1].endswith("(needed)") and "wrote " in done.err


def test_in_json_are_the_versions_of_all_items(home, tmp_path):
    written = json.loads(run("pack", "toy", "-o", tmp_path / "a.tar", "--home", home, "--json").out)
    assert written["bytes"] == (tmp_path / "a.tar").stat().st_size and written["encoders"] == []
    [item] = written["items"]
    assert (item["kind"], item["name"], item["requested"]) == ("kb", "toy", True)
    read = json.loads(run("unpack", tmp_path / "a.tar", "--home", tmp_path / "other", "--json").out)
    assert read["items"] == [{**item, "action": "add"}] and read["missing"] == []
    assert read["card"].startswith("# `kb:toy`")


def test_what_is_unpacked_is_listed_and_what_is_there_is_kept(pack, tmp_path):
    target = tmp_path / "other"
    assert run("unpack", pack, "--home", target).out.count("\tadded\t") == 2
    assert run("unpack", pack, "--home", target).out.count("\tis here already\t") == 2
    assert run("show", "Apple", "--kb", "toy", "--home", target).code == 0


def test_a_name_of_two_things_is_a_wrong_command_line_with_the_choices(tmp_path):
    home = toy_home(tmp_path / "origin")
    made(home, name="toy")
    done = run("pack", "toy", "-o", tmp_path / "a.tar", "--home", home)
    assert done.code == 2 and "kb:toy or vectors:toy/toy" in " ".join(done.err.split())


def test_a_name_that_is_taken_is_refused_with_the_options_that_help(pack, tmp_path):
    (tmp_path / "x").mkdir()
    target = build_toy(tmp_path / "x", pages=(), links=(), more=build_records()).path.parents[3]
    done = run("unpack", pack, "--home", target)
    assert done.code == 2 and "--replace" in " ".join(done.err.split())
    assert "replaced" in run("unpack", pack, "--home", target, "--replace").out


def build_records():
    from tests.toys import entities

    return entities(3)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["pack"], 2, "NAME"),
        (["pack", "nobody", "-o", "x.tar"], 3, "no knowledge base and no model 'nobody'"),
        (["unpack"], 2, "FILE"),
        (["unpack", "nowhere.tar"], 3, "no file nowhere.tar"),
        (["unpack", "x.tar", "--max-size", "much"], 2, "'much' is no size"),
        (["unpack", "hf:nobody"], 2, "hf:ORG/NAME@REV"),
    ],
)
def test_a_wrong_command_line_is_told_in_a_sentence(home, tmp_path, monkeypatch, args, code, message):
    monkeypatch.chdir(tmp_path)
    done = run(*args, *(["--home", home] if len(args) > 1 else []))
    assert done.code == code and message in " ".join(done.err.split())


def test_a_pack_that_is_damaged_is_one_line_and_leaves_nothing(pack, tmp_path):
    content = bytearray(pack.read_bytes())
    content[300] ^= 1
    pack.write_bytes(content)
    done = run("unpack", pack, "--home", tmp_path / "other")
    assert done.code == 1 and "was not unpacked" in done.err and done.out == ""
    assert not (tmp_path / "other").exists()


def test_a_size_that_is_allowed_is_an_option(pack, tmp_path):
    done = run("unpack", pack, "--home", tmp_path / "other", "--max-size", "1KB")
    assert done.code == 2 and "--max-size" in " ".join(done.err.split())


@pytest.mark.slow
def test_a_real_process_packs_and_unpacks(home, tmp_path):
    assert process("pack", "toy", "-o", tmp_path / "a.tar", "--home", home).code == 0
    assert process("unpack", tmp_path / "a.tar", "--home", tmp_path / "other").code == 0
