"""`.spo` files that are none: one error that names file and line, and nothing is published."""

import pytest

import kgkit
from kb_builders.spo import SpoBuilder
from kgkit.errors import NotThere, SourceError
from tests.cli_helpers import install_builder, run

GOOD = "苹果\t义原\t水果\n".encode()
BAD = {
    "a short line": (GOOD + "苹果\t是\n".encode(), 2, "expected 3 tab-separated fields, found 2"),
    "a line of one field": (GOOD + "苹果 是 水果\n".encode(), 2, "expected 3 tab-separated fields, found 1"),
    "a long line": (GOOD + b"a\tb\tc\td\n" + GOOD, 2, "expected 3 tab-separated fields, found 4"),
    "no subject": (GOOD + GOOD + b"\tis\tc\n", 3, "the subject is empty"),
    "no predicate": (b"a\t \tc\n", 1, "the predicate is empty"),
    "no object": (b"\n\na\tis\t\n", 3, "the object is empty"),
    "a NUL byte": (GOOD + b"a\ti\0s\tc\n", 2, "a NUL byte"),
    "Latin-1": (GOOD + "fraîche\test\tpomme\n".encode("latin-1"), 2, "not UTF-8"),
    "half a character": (GOOD + "苹".encode()[:2] + b"\tis\tc\n", 2, "not UTF-8"),
    "a line of 50 MB": (GOOD + b"a\tis\t" + b"b" * 50_000_000, 2, "a line of more than"),
    "an empty file": (b"", 1, "is empty"),
    "empty lines alone": (b"\n\n\n", 1, "is empty"),
}


@pytest.fixture(autouse=True)
def site(tmp_path_factory, monkeypatch):
    """A folder of installed packages with the builder, wherever the tests run."""
    folder = tmp_path_factory.mktemp("site")
    install_builder(folder, "spo", "kb_builders.spo:SpoBuilder")
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture(params=BAD)
def bad(request, tmp_path):
    """A bad file, the line that is wrong in it, and what is said of it."""
    content, line, said = BAD[request.param]
    path = tmp_path / "bad.spo"
    path.write_bytes(content)
    return path, line, said


def test_the_error_says_what_is_wrong_in_which_file_and_line(bad, tmp_path):
    path, line, said = bad
    with pytest.raises(SourceError, match=said) as caught:
        kgkit.build_kb(SpoBuilder(), path, name="bad", home=tmp_path / "home")
    assert (caught.value.path, caught.value.line) == (path, line)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert len(str(caught.value)) < 1000
    with pytest.raises(NotThere):
        kgkit.open_kb("bad", home=tmp_path / "home")


def test_the_command_line_says_so_with_exit_code_1_and_lists_no_kb(bad, tmp_path):
    path, line, said = bad
    home = ("--home", tmp_path / "home")
    done = run("build-kb", "spo", path, "--name", "bad", *home)
    assert (done.code, done.out) == (1, "")
    assert f"{path}:{line}: " in done.err and said in done.err
    assert not (tmp_path / "home/kbs/bad/current").exists()
    assert list((tmp_path / "home").glob("kbs/bad/builds/*")) == []
    listed = run("kb", "list", "--json", *home)
    assert "bad" not in listed.out


def test_a_folder_is_no_file_of_triples(tmp_path):
    done = run("build-kb", "spo", tmp_path, "--home", tmp_path / "home")
    assert done.code == 1
    assert f"{tmp_path}: is a folder; name a file in it" in done.err
    assert run("kb", "list", "--home", tmp_path / "home", "--json").out.strip() in ("", "[]")


def test_a_file_that_is_not_there_is_another_matter(tmp_path):
    done = run("build-kb", "spo", tmp_path / "no.spo", "--home", tmp_path / "home")
    assert (done.code, "no.spo" in done.err) == (3, True)
