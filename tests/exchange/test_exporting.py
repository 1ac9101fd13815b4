"""`kgkit.export_kb` and `kgkit.import_kb`: what the commands do, in Python."""

import gzip

import pytest

import kgkit
from kgkit.errors import NotThere, UsageError
from kgkit.exchange import FORMATS
from kgkit.kb import differences


@pytest.mark.parametrize("name", [name for name, made in FORMATS.items() if not made.losses])
def test_a_kb_goes_out_and_comes_in(name, toy, tmp_path):
    target = tmp_path / f"toy{(*FORMATS[name].suffixes, '')[0]}"
    format = name if FORMATS[name].folder else None
    assert kgkit.export_kb(toy, target, format=format) == []
    kgkit.import_kb(target, "again", home=tmp_path)
    with kgkit.open_kb("again", home=tmp_path) as again:
        assert list(differences(toy, again)) == []


def test_an_export_says_what_the_format_cannot_carry(toy, tmp_path):
    assert kgkit.export_kb(toy, tmp_path / "toy.tsv") == list(FORMATS["tsv"].losses)


def test_the_name_of_the_file_may_ask_for_compression_and_names_the_kb(toy, tmp_path):
    written = []
    kgkit.export_kb(toy, tmp_path / "plain.jsonl", progress=lambda stage, count, total: written.append(count))
    kgkit.export_kb(toy, tmp_path / "toy.jsonl.gz")
    assert (
        gzip.decompress((tmp_path / "toy.jsonl.gz").read_bytes()) == (tmp_path / "plain.jsonl").read_bytes()
    )
    assert written[-1] == (tmp_path / "plain.jsonl").stat().st_size
    assert kgkit.import_kb(tmp_path / "toy.jsonl.gz", home=tmp_path).name == "toy"


def test_what_cannot_be_written_or_read_is_said_before_the_work(toy, tmp_path):
    with pytest.raises(UsageError, match="does not say its format"):
        kgkit.export_kb(toy, tmp_path / "toy.docx")
    with pytest.raises(NotThere, match="no folder"):
        kgkit.export_kb(toy, tmp_path / "nowhere" / "toy.nt")
    with pytest.raises(NotThere, match="no file"):
        kgkit.import_kb(tmp_path / "nothing.nt", home=tmp_path)
