"""`kgkit kb export` and `kgkit kb import`."""

import msgspec
import pytest

import kgkit
from kgkit.commands.kb import export
from kgkit.exchange import FORMATS
from kgkit.kb import differences
from tests.cli_helpers import process, run
from tests.doc_pages import ROOT


def test_the_help_lists_the_formats_there_are():
    assert list(export.FORMATS) == list(FORMATS)
    for verb in ("export", "import"):
        shown = " ".join(run("kb", verb, "--help").out.replace("│", " ").split())
        assert all(name in shown for name in FORMATS)


@pytest.mark.parametrize("name", [name for name, made in FORMATS.items() if not made.losses])
def test_a_kb_goes_out_and_comes_in_by_the_name_of_its_file(name, toy, toy_home, tmp_path):
    target = tmp_path / f"toy{(*FORMATS[name].suffixes, '')[0]}"
    format = ["--format", name] if FORMATS[name].folder else []
    out = run("kb", "export", "toy", "-o", target, *format, "--home", toy_home)
    assert (out.code, out.out) == (0, "") and out.err.startswith(f"wrote toy as {FORMATS[name].title}")
    assert "does not carry" not in out.err
    back = run("kb", "import", target, "--name", "again", "--home", tmp_path)
    assert back.code == 0 and back.out.startswith("again@")
    with kgkit.open_kb("again", home=tmp_path) as again:
        assert list(differences(toy, again)) == []
        assert again.manifest.builder == FORMATS[name].builder


@pytest.mark.parametrize("name", ["tsv", "wn-lmf"])
def test_what_a_format_loses_is_said_once(name, toy_home, tmp_path):
    target = tmp_path / f"toy{FORMATS[name].suffixes[0]}"
    said = run("kb", "export", "toy", "-o", target, "--home", toy_home).err.splitlines()
    assert said[0] == f"{FORMATS[name].title} does not carry: {'; '.join(FORMATS[name].losses)}"
    assert len(said) == 2
    quiet = run("kb", "export", "toy", "-o", target, "--home", toy_home, "--quiet")
    assert (quiet.code, quiet.err) == (0, "")


def test_the_manual_lists_every_loss():
    page = " ".join((ROOT / "docs" / "exchange.md").read_text(encoding="utf-8").split())
    for made in FORMATS.values():
        for loss in made.losses:
            assert loss in page


def test_standard_output_takes_any_format_of_one_file(toy_home, tmp_path):
    done = process("kb", "export", "toy", "-o", "-", "--format", "jsonl", "--home", toy_home)
    assert done.code == 0
    first, second, *_ = done.out.splitlines()
    assert msgspec.json.decode(first)["kgkit"]["name"] == "Toy"
    assert msgspec.json.decode(second)["key"] == "Apple"


def test_standard_output_needs_a_format_of_one_file(toy_home):
    none = run("kb", "export", "toy", "-o", "-", "--home", toy_home)
    assert none.code == 2 and "--format FORMAT, one of graphml" in none.err
    folder = run("kb", "export", "toy", "-o", "-", "--format", "neo4j", "--home", toy_home)
    assert folder.code == 2 and "is a folder of files" in folder.err


def test_a_file_is_replaced_whole_and_a_folder_never(toy_home, tmp_path):
    target = tmp_path / "toy.nt"
    target.write_text("old")
    assert run("kb", "export", "toy", "-o", target, "--home", toy_home).code == 0
    assert target.read_text() != "old"
    folder = tmp_path / "toy"
    folder.mkdir()
    refused = run("kb", "export", "toy", "-o", folder, "--format", "neo4j", "--home", toy_home)
    assert refused.code == 2 and "is there already" in refused.err
    assert list(folder.iterdir()) == [] and {path.name for path in tmp_path.iterdir()} == {"toy.nt", "toy"}


@pytest.mark.parametrize("name", ["neo4j", "ntriples"])
def test_an_export_that_fails_leaves_nothing(name, toy_home, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "kgkit.building.records.StoredRecords.aliases",
        lambda self: (_ for _ in ()).throw(OSError(28, "disk is full")),
    )
    target = tmp_path / ("toy" if name == "neo4j" else "toy.nt")
    done = run("kb", "export", "toy", "-o", target, "--format", name, "--home", toy_home)
    assert done.code == 1 and "disk is full" in done.err
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_said_with_its_code(toy_home, tmp_path):
    assert run("kb", "export", "toy", "-o", tmp_path / "no" / "toy.nt", "--home", toy_home).code == 3
    assert (
        run("kb", "export", "toy", "-o", tmp_path / "no" / "t", "-f", "neo4j", "--home", toy_home).code == 3
    )
    assert run("kb", "export", "ghost", "-o", tmp_path / "toy.nt", "--home", toy_home).code == 3
    assert run("kb", "import", tmp_path / "toy.nt", "--home", tmp_path).code == 3
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_a_wrong_command_line(toy_home, tmp_path):
    (tmp_path / "toy.owl").write_text("x")
    for command in (
        ("export", "toy", "-o", tmp_path / "toy.nt", "--format", "owl", "--home", toy_home),
        ("export", "toy", "-o", tmp_path / "toy.owl", "--home", toy_home),
        ("import", tmp_path / "toy.owl", "--home", tmp_path),
        ("import", tmp_path / "toy.owl", "--format", "owl", "--home", tmp_path),
    ):
        done = run("kb", *command)
        assert done.code == 2 and all(name in done.err for name in FORMATS)


def test_a_bad_file_is_one_line_and_nothing_is_published(tmp_path):
    (tmp_path / "bad.nt").write_text("<http://a> <http://b> .\n")
    done = run("kb", "import", tmp_path / "bad.nt", "--home", tmp_path)
    assert done.code == 1 and done.err.count("error: ") == 1 and "bad.nt:1: " in done.err
    assert not any((tmp_path / "kbs").glob("*/current"))


def test_an_import_goes_by_the_name_of_its_file(tmp_path):
    (tmp_path / "fruit.tsv").write_text("apple\tis_a\tfruit\n")
    done = run("kb", "import", tmp_path / "fruit.tsv", "--home", tmp_path)
    assert done.code == 0 and done.out.startswith("fruit@")
