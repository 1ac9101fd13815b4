"""Compressed files: one table of suffixes for whatever reads and writes text."""

import bz2
import gzip
import json
import lzma
import shutil
from pathlib import Path

import pytest

import kgkit
from kgkit.building import text_lines
from kgkit.errors import UsageError
from kgkit.exchange import FORMATS
from kgkit.files import (
    COMPRESSIONS,
    check_output_path,
    compression_of,
    open_zstd,
    plain_name,
    replacing,
    written,
)
from tests.cli_helpers import run

OPEN = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open, ".zst": open_zstd}
ENTITIES = [{"key": "berlin", "label": "Berlin"}, {"key": "bonn", "label": "Bonn"},
            {"subject": "berlin", "relation": "near", "object": "bonn"}]  # fmt: skip
LINES = "".join(json.dumps(each) + "\n" for each in ENTITIES)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KGKIT_HOME", str(tmp_path / "home"))
    kgkit.build_kb("jsonl", ENTITIES, name="towns")
    return tmp_path


def test_the_table_has_every_compression_that_python_reads():
    assert {*COMPRESSIONS} == {*OPEN}


@pytest.mark.parametrize("name", ["x.csv.gz", "X.CSV.GZ", "x.zst", ".zst", "x.csv", "gz", "a.gz.b"])
def test_a_name_says_its_compression(name):
    compressed = {"x.csv.gz": ".gz", "X.CSV.GZ": ".gz", "x.zst": ".zst"}
    assert compression_of(Path(name)) == compressed.get(name, "")
    assert plain_name(name) == {"x.csv.gz": "x.csv", "X.CSV.GZ": "X.CSV", "x.zst": "x"}.get(name, name)


@pytest.mark.parametrize("suffix", OPEN)
def test_what_is_written_is_compressed_as_its_name_says(tmp_path, suffix):
    path = tmp_path / f"x.txt{suffix.upper()}"
    with written(path) as stream:
        stream.write(b"one\n")
        stream.write(b"two\n")
    with OPEN[suffix](path) as stream:
        assert stream.read() == b"one\ntwo\n"
    assert [line for _, line in text_lines(path)] == ["one", "two"]


@pytest.mark.parametrize("suffix", [".zip", ".lz4", ".7z", ".ZIP", ".zstd", ".br"])
def test_an_output_of_another_compression_is_refused(tmp_path, suffix):
    with pytest.raises(UsageError, match=suffix):
        check_output_path(tmp_path / f"x.csv{suffix}")


@pytest.mark.parametrize("suffix", [".tar.zst", ".tar.xz", ".tbz.bz2", ".zip"])
def test_a_pack_of_another_compression_is_refused(home, suffix):
    with pytest.raises(UsageError, match=suffix):
        kgkit.pack("kb:towns", home / f"towns{suffix}")


def test_without_its_library_zst_is_refused_before_the_work(tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("kgkit.files.import_module", missing)
    with pytest.raises(UsageError, match=r"backports\.zstd"):
        check_output_path(tmp_path / "x.csv.zst")
    (tmp_path / "x.csv.zst").touch()
    with pytest.raises(UsageError, match=r"backports\.zstd"):
        [*text_lines(tmp_path / "x.csv.zst")]


@pytest.mark.parametrize("suffix", OPEN)
def test_every_compression_is_built_from_reconciled_and_exported(home, suffix):
    for name, content in (("own.jsonl", LINES), ("names.csv", "name\nBerlin\n")):
        with OPEN[suffix](f"{name}{suffix}", "wb") as stream:
            stream.write(content.encode())
    assert run("build-kb", "jsonl", f"own.jsonl{suffix}", "--name", "own").code == 0
    assert run("build-kb", "table", f"names.csv{suffix}", "--name", "names").code == 0
    done = run("reconcile", f"names.csv{suffix}", "--column", "name", "--kb", "own", "-o", f"out.csv{suffix}")
    assert done.code == 0
    with OPEN[suffix](f"out.csv{suffix}") as stream:
        assert b"berlin" in stream.read()
    Path("fix.jsonl").write_text('{"key": "bonn", "label": "Bonn am Rhein"}\n')
    with Path("fix.jsonl").open("rb") as plain, OPEN[suffix](f"fix.jsonl{suffix}", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    assert run("kb", "add", "own", f"own.jsonl{suffix}").code == 0
    assert run("kb", "edit", "own", f"fix.jsonl{suffix}").code == 0


@pytest.mark.parametrize("format", [name for name, form in FORMATS.items() if not form.folder])
@pytest.mark.parametrize("suffix", OPEN)
def test_exports_of_every_format_are_compressed_and_read_again(home, format, suffix):
    path = home / f"towns{FORMATS[format].suffixes[0]}{suffix}"
    with kgkit.open_kb("towns") as kb:
        kgkit.export_kb(kb, path)
    with OPEN[suffix](path) as stream:
        assert b"erlin" in stream.read()
    assert kgkit.import_kb(path, "again").manifest.entities >= 2


@pytest.mark.parametrize("table", ["nodes.csv", "nodes.tsv"])
@pytest.mark.parametrize("suffix", OPEN)
def test_tables_of_a_folder_may_be_compressed(home, table, suffix):
    folder = home / "graph"
    folder.mkdir()
    delimiter = "\t" if table.endswith("tsv") else ","
    with OPEN[suffix](folder / f"{table}{suffix}", "wb") as stream:
        stream.write(delimiter.join([":ID", "label"]).encode() + b"\n")
        stream.write(delimiter.join(["berlin", "Berlin"]).encode() + b"\n")
    assert kgkit.import_kb(folder, "graph").manifest.entities == 1


def test_compressed_parquet_is_refused(home):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"name": ["Berlin"]}), "names.parquet")
    done = run("reconcile", "names.parquet", "--column", "name", "--kb", "towns", "-o", "out.parquet.gz")
    assert done.code == 2
    assert not Path("out.parquet.gz").exists()


def test_a_file_is_replaced_completely_or_not_at_all(tmp_path):
    path = tmp_path / "settings"
    for text in ("first", "second"):
        with replacing(path) as new:
            new.write_text(text)
    with pytest.raises(OSError, match="disk full"), replacing(path) as new:
        new.write_text("half")
        raise OSError("disk full")
    assert path.read_text() == "second" and [each.name for each in tmp_path.iterdir()] == ["settings"]
