"""Corpora: files of any form in, one file out, whole, in order, and after a stop from where it was."""

import bz2
import csv
import gzip
import json
import lzma
import os
import resource
import signal
import subprocess
import time

import pytest

from kgkit.commands.corpora.answers import open_answers
from kgkit.commands.corpora.chunks import SkippedRecord, chunked
from kgkit.commands.corpora.documents import (
    find_files,
    input_format_of,
    is_read,
    parse_entry,
    read_entries,
)
from kgkit.commands.corpora.parquet import write_parquet
from kgkit.commands.messages import Messages
from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.files import opened
from tests.cli_helpers import COMMAND, build_mini, process, read_documents, run
from tests.toys import child_env

RECORD = b'{"id": "x", "text": "A dog."}\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return build_mini(tmp_path_factory.mktemp("mini"))


def jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def many(path, count):
    return jsonl(path, *({"id": number, "text": f"Dog {number} chased mice."} for number in range(count)))


def linked(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def texts(path, form="auto"):
    return [(document.id, document.text) for document in read_documents([path], form)]


# -- files ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.txt", "text"), ("a.MD", "text"), ("a.ndjson.gz", "jsonl"), ("a.csv.bz2", "csv"), ("a.tsv", "csv"),
        ("a.parquet", "parquet"), ("a.parquet.gz", None), ("a.png", None), ("a.gz", None), ("a", None),
    ],
)  # fmt: skip
def test_the_name_of_a_file_says_what_it_is(tmp_path, name, form):
    assert input_format_of(tmp_path / name) == form


def test_a_folder_is_read_with_every_form_in_it_in_the_order_of_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".c").mkdir()
    for name in ("b/x.txt", "a.txt", "c.jsonl", ".c/y.txt", "b/.z.txt", "d.png", "e.csv.gz"):
        (tmp_path / name).touch()
    names = [path.relative_to(tmp_path).as_posix() for path in find_files([tmp_path])]
    assert names == ["a.txt", "b/x.txt", "c.jsonl", "e.csv.gz"]
    assert is_read(tmp_path / "a.txt", [tmp_path]) and is_read(tmp_path / "d.png", [tmp_path / "d.png"])
    assert not is_read(tmp_path / "d.png", [tmp_path]) and not is_read(tmp_path / "new.jsonl", [tmp_path])
    with pytest.raises(NotThere, match="no text in"):
        find_files([tmp_path / ".c"] if (tmp_path / ".c/y.txt").unlink() is None else [])


def test_rows_of_a_table_are_records_and_their_other_columns_are_carried(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,text,note\r\n1,"a ""dog""\r\nruns",x\r\n,mice,"y,z"\r\n')
    first, second = (parse_entry(entry) for entry in read_entries([path], "auto"))
    assert (first.document.id, first.document.text) == ("1", 'a "dog"\r\nruns')
    assert (second.document.id, bytes(second.fields["note"])) == (f"{path}:4", b'"y,z"')
    path.write_text('sep=;\ntext;mentions\na dog;"[{""start"": 2, ""end"": 5}]"\ncat;\n')
    first, second = read_documents([path], "auto")
    assert [mention.text for mention in first.mentions] == ["dog"] and second.mentions is None


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"id,body\n1,x\n", 1, "no column text; its columns are: id, body"),
        (b"text,text\nx,y\n", 1, "two columns are called text"),
        (b"", 1, "no column text; its columns are: none"),
        (b"id,\x7fELF\rtext\n", 1, "new-line character seen in unquoted field"),
        (b"id,text\n1,x\n2\n3,z\n", 3, "expected 2 fields"),
        (b"id,text\n1,x\n2,\xe9\n3,z\n", 3, "not UTF-8"),
        (b'id,text\n1,x\n2,"y" z\n3,z\n', 3, "written twice"),
        (b'id,text,mentions\n1,x,\n2,y,{\n3,z,\n', 3, "expected"),
    ],
)  # fmt: skip
def test_a_bad_row_of_a_table_is_an_error_of_its_line_and_the_next_is_read(tmp_path, content, line, message):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    errors, documents = [], []
    for entry in read_entries([path], "auto"):
        try:
            documents.append(parse_entry(entry).document.id)
        except SourceError as error:
            errors.append((error.line, error.message))
    [(number, problem)] = errors
    assert number == line and message in problem
    assert documents == (["1", "3"] if line == 3 else [])


def test_parquet_is_read_and_a_file_that_is_none_is_one_error(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a dog", None], "when": pa.array([0, 1], pa.date32()), "n": [1.5, 2.5]})
    parquet.write_table(table, path)
    first, second = read_entries([path], "auto")
    parsed = parse_entry(first)
    assert (parsed.document.id, parsed.document.text) == (f"{path}:1", "a dog")
    assert {name: bytes(value) for name, value in parsed.fields.items()} == {
        "when": b'"1970-01-01"', "n": b"1.5",
    }  # fmt: skip
    with pytest.raises(SourceError, match=r"a\.parquet:2: expected .*got `null`"):
        parse_entry(second)
    parquet.write_table(pa.table({"body": ["x"]}), path)
    with pytest.raises(SourceError, match="no column text; its columns are: body"):
        texts(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="no Parquet file"):
        texts(path)


def test_a_compressed_file_that_is_cut_short_ends_with_an_error_and_the_next_file_is_read(tmp_path):
    lines = b"".join(json.dumps({"text": str(number) * 50}).encode() + b"\n" for number in range(20_000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines)[:-2000])
    (tmp_path / "b.jsonl").write_bytes(RECORD)
    *entries, end, following = read_entries([tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"], "auto")
    assert len(entries) > 100 and end.line == len(entries) + 1
    with pytest.raises(SourceError, match="cannot be read"):
        parse_entry(end)
    assert parse_entry(following).document.id == "x"


# -- mentions ---------------------------------------------------------------

DOG = {"start": 2, "end": 5}


@pytest.mark.parametrize(
    "fields",
    [
        {"mentions": [DOG | {"type": "ANIMAL"}]},
        {"ents": [DOG | {"label": "ANIMAL"}], "tokens": [{"id": 0, "start": 0, "end": 1}], "sents": []},
        {"entities": [DOG | {"text": "dog", "label": "ANIMAL"}]},
        {"entities": [[2, 5, "ANIMAL"]]},
        {"spans": [DOG | {"label": "ANIMAL", "token_start": 1, "token_end": 1}]},
        {"mentions": None, "ents": [DOG], "entities": [[0, 1, "x"]], "spans": {"sc": []}},
    ],
)
def test_mentions_are_read_in_the_layouts_of_those_who_find_them(tmp_path, fields):
    path = jsonl(tmp_path / "a.jsonl", {"text": "a dog", **fields})
    [document] = read_documents([path], "auto")
    assert [(mention.start, mention.end, mention.text) for mention in document.mentions] == [(2, 5, "dog")]
    [parsed] = (parse_entry(entry) for entry in read_entries([path], "auto"))
    assert {name: json.loads(bytes(value)) for name, value in parsed.fields.items()} == {
        name: value for name, value in fields.items() if name != "mentions"
    }


def test_a_score_of_a_mention_makes_it_one_of_a_tagger_with_its_label(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": "a dog", "entities": [DOG | {"label": "x", "score": 0.5}]})
    [document] = read_documents([path], "auto")
    assert (document.mentions[0].type, document.mentions[0].score) == ("x", 0.5)


def test_a_field_of_mentions_that_has_none_is_an_error_that_says_how_to_go_on(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": "a dog", "entities": ["dog"]})
    with pytest.raises(SourceError, match=r"\$\.entities.*a field entities that has no mentions needs ano"):
        texts(path)
    [entry] = read_entries([path], "auto")
    assert parse_entry(entry, ("mentions",)).document.mentions is None


def test_groups_of_spans_are_carried_and_no_mentions(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": "a dog", "spans": {"sc": [DOG]}})
    assert next(read_documents([path], "auto")).mentions is None


# -- output -----------------------------------------------------------------


def test_other_fields_of_a_record_come_out_as_they_were(home, tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text(
        '{"n": 1.50, "text": "A dog.", "model": "tagger", "big": 123456789012345678901, "l": [1 ]}\n'
    )
    line = run("link", source, "--home", home, "--model", "prior").out
    assert line.endswith('"n":1.50,"big":123456789012345678901,"l":[1 ]}\n')
    assert json.loads(line)["model"] == "prior"


def test_a_table_becomes_parquet_with_its_links_and_its_columns(home, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "a.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([["text", "note"], ["A dog.", "x"], ["Nothing", "y"]])
    assert run("link", source, "--home", home, "--model", "prior", "-o", tmp_path / "a.parquet").code == 0
    first, second = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert first["links"][0]["entity"] == "dog.n.01" and json.loads(first["links"][0]["ids"])["sense_key"]
    assert (first["id"], json.loads(first["fields"]), second["links"]) == (f"{source}:2", {"note": "x"}, [])
    assert run("link", tmp_path / "a.parquet", "--home", home, "-o", tmp_path / "b.jsonl").code == 0
    assert [row["text"] for row in linked(tmp_path / "b.jsonl")] == ["A dog.", "Nothing"]


@pytest.mark.parametrize(
    ("suffix", "decompress"), [(".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open)]
)
def test_the_suffix_of_the_output_compresses_it_to_the_same_bytes_each_time(
    home, tmp_path, suffix, decompress
):
    source, outputs = many(tmp_path / "a.jsonl", 300), []
    for name in ("b", "c"):
        output = tmp_path / f"{name}.jsonl{suffix}"
        assert run("link", source, "--home", home, "--model", "prior", "-o", output).code == 0
        outputs.append(output.read_bytes())
    plain = run("link", source, "--home", home, "--model", "prior").out
    assert decompress(tmp_path / f"b.jsonl{suffix}", "rt").read() == plain and outputs[0] == outputs[1]


def test_parquet_goes_to_files_only_and_is_not_compressed_again(home, tmp_path):
    done = run("link", "--home", home, "-o", tmp_path / "a.parquet.gz", given=b"dog")
    assert done.code == 2 and str(tmp_path / "a.parquet") in "".join(done.err.split())
    os.mkfifo(tmp_path / "a.parquet")
    done = run("link", "--home", home, "-o", tmp_path / "a.parquet", given=b"dog")
    assert done.code == 2 and "is no file, and Parquet is written to one" in done.err


@pytest.mark.parametrize(
    "name",
    [
        "a.tsv",
        "a.xlsx",
        "a.ttl",
        "a.html",
        "a.xml",
        "a.json",
        "a.txt",
        "a.tei.xml",
    ],
)
@pytest.mark.parametrize("command", ["link", "tag"])
def test_a_format_that_is_not_written_is_refused_before_anything_is_opened(home, tmp_path, command, name):
    model = ["--model", "none" if command == "tag" else "prior"]
    done = run(command, "--home", home, *model, "-o", tmp_path / name, given=b"A dog.")
    assert done.code == 2 and name in done.err and not (tmp_path / name).exists()


@pytest.mark.parametrize(
    "name", ["links", "a.ndjson", "a.JSONL", "a.2024", "a.gz", "tmp.AbCdEfGhIj", "a.v2.jsonl.xz"]
)
def test_json_lines_have_their_suffixes_or_none(home, tmp_path, name):
    done = run("link", "--home", home, "--model", "prior", "-o", tmp_path / name, given=b"A dog.")
    with opened(tmp_path / name) as file:
        assert (done.code, len(file.read().splitlines())) == (0, 1)


def test_a_device_or_a_pipe_may_have_any_name(home, tmp_path):
    (tmp_path / "a.csv").symlink_to("/dev/null")
    assert (
        run("link", "--home", home, "--model", "prior", "-o", tmp_path / "a.csv", given=b"A dog.").code == 0
    )
    told = process("link", "--home", home, "--model", "prior", "-o", "/dev/stdout", given=b"A dog.")
    assert told.code == 0 and json.loads(told.out)["links"]


def test_row_groups_of_parquet_are_bounded_and_hold_answers_in_their_order(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("kgkit.commands.corpora.parquet._ROWS", 3)
    lines = [
        json.dumps({"id": str(number), "text": "", "model": "m", "mentions": []}).encode()
        for number in range(8)
    ]
    write_parquet(lines, tmp_path / "a.parquet", "mentions")
    table = parquet.ParquetFile(tmp_path / "a.parquet")
    assert table.num_row_groups == 3
    assert table.read().column("id").to_pylist() == [str(number) for number in range(8)]


# -- chunks and workers -----------------------------------------------------


def test_chunks_have_bounds_by_number_and_by_size_and_are_read_as_they_are_needed(tmp_path):
    entries = read_entries([many(tmp_path / "a.jsonl", 600)], "auto")
    assert [len([*chunk]) for chunk in chunked(entries)] == [256, 256, 88]
    jsonl(tmp_path / "b.jsonl", *[{"text": 400_000 * "x"}] * 7)
    assert [len([*chunk]) for chunk in chunked(read_entries([tmp_path / "b.jsonl"], "auto"))] == [3, 3, 1]
    source = read_entries([tmp_path / "a.jsonl"], "auto")
    assert next(next(chunked(source))).line == 1 and next(source).line == 2


def test_two_workers_write_what_one_process_does(home, tmp_path):
    source = many(tmp_path / "a.jsonl", 700)
    with source.open("ab") as file:
        file.write(b"[]\n" + RECORD)
    arguments = ("link", source, "--home", home, "--model", "prior", "--bad", "skip")
    for workers in (1, 2):
        done = run(*arguments, "--workers", workers, "-o", tmp_path / f"{workers}.jsonl")
        assert (done.code, done.out) == (0, "")
        assert "2,101 links in 701 documents" in done.err and "1 record skipped" in done.err
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert linked(tmp_path / "1.jsonl.skipped") == linked(tmp_path / "2.jsonl.skipped")


def test_an_error_in_a_worker_is_that_of_one_process(home, tmp_path):
    source = many(tmp_path / "a.jsonl", 10)
    source.write_text(source.read_text() + "[]\n")
    for arguments in ([], ["--workers", "2"]):
        done = run("link", source, "--home", home, "--model", "prior", *arguments, "-o", tmp_path / "b.jsonl")
        assert done.code == 1 and f"{source}:11: expected" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl"]
    done = run("link", source, "--home", home, "--html", tmp_path / "a.html", "--workers", "2")
    assert done.code == 2 and "drawn by one process" in done.err


# -- bad records ------------------------------------------------------------

BAD = [
    b'{"text": "cut', b'{"text": "\xe9"}', b"[]", b"{}", b'{"text": 1}', b'{"text": null}',
    b'{"text": "\\ud800"}', b'{"text": "x", "y": ' + 5000 * b"[" + 5000 * b"]" + b"}",
    b'{"text": "x", "mentions": [{"start": 0, "end": 9}]}', b'{"text": "x", "id": []}',
]  # fmt: skip


def test_bad_records_of_ten_kinds_are_listed_by_file_and_line_and_the_others_answered(home, tmp_path):
    source, output = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_bytes(b"".join(RECORD + line + b"\n" for line in BAD))
    assert run("link", source, "--home", home, "--bad", "skip", "-o", output).code == 0
    assert len(linked(output)) == 10
    skipped = linked(output.with_name("b.jsonl.skipped"))
    assert [(record["file"], record["line"]) for record in skipped] == [
        (str(source), number) for number in range(2, 21, 2)
    ]
    assert all(record["error"] for record in skipped)
    source.write_bytes(RECORD)
    assert run("link", source, "--home", home, "--bad", "skip", "-o", output).code == 0
    assert not output.with_name("b.jsonl.skipped").exists()  # it was that of the earlier output


def test_without_a_file_skipped_records_are_named_on_standard_error(home, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    lines = RECORD + b"[]\n" + RECORD
    done = run(
        "link",
        "-",
        tmp_path / "a.txt",
        "--input-format",
        "jsonl",
        "--home",
        home,
        "--bad",
        "skip",
        given=lines,
    )
    assert done.code == 0 and done.out.count("\n") == 2
    assert "skipped: -:2: expected" in done.err and f"skipped: {tmp_path / 'a.txt'}:1: not UTF-8" in done.err
    assert "2 records skipped\n" in done.err
    assert str(SkippedRecord("a", None, "no")) == "a: no"


def test_a_record_that_cannot_be_read_is_an_error_that_says_how_to_leave_it_out(home):
    done = run("link", "-", "--input-format", "jsonl", "--home", home, given=b"[]\n")
    assert (done.code, done.out) == (1, "")
    assert "error: -:1: expected" in done.err and "; --bad skip leaves out what cannot be read" in done.err


# -- going on ---------------------------------------------------------------


def test_a_run_without_resume_says_what_it_drops(home, tmp_path, monkeypatch):
    source, output = many(tmp_path / "a.jsonl", 400), tmp_path / "b.jsonl"
    source.write_text(source.read_text() + "[]\n")
    arguments = ("link", source, "--home", home, "--model", "prior", "-o", output)
    done = run(*arguments)
    assert done.code == 1 and "256 documents are written so far; the same command with --resume" in done.err
    assert "beginning again" in run(*arguments).err
    done = run(*arguments, "--resume", "--bad", "skip")
    assert done.code == 0 and "going on behind 400 documents" in done.err
    assert [record["id"] for record in linked(output)] == [str(number) for number in range(400)]


def stopped(home, tmp_path, count=400):
    """The arguments of a run over *count* documents that a bad one behind them has stopped, and its files."""
    source, output = many(tmp_path / "a.jsonl", count), tmp_path / "b.jsonl"
    whole = source.read_text()
    source.write_text(whole + "[]\n")
    arguments = ("link", source, "--home", home, "--model", "prior", "-o", output)
    assert run(*arguments).code == 1
    source.write_text(whole)
    return arguments, output, tmp_path / ".b.jsonl.partial"


def test_a_finished_run_that_is_resumed_says_so_and_writes_nothing(home, tmp_path):
    source, output = many(tmp_path / "a.jsonl", 3), tmp_path / "b.jsonl"
    arguments = ("link", source, "--home", home, "--model", "prior", "-o", output, "--resume")
    output.touch()
    done = run(*arguments)
    assert done.code == 0 and f"3 documents: {output}" in done.err
    written, page = output.stat(), tmp_path / "page.html"
    for more in ([], ["--workers", "2"], ["--html", page]):
        done = run(*arguments, *more)
        assert (done.code, done.out) == (0, "") and f"{output} is finished" in done.err
        assert output.stat().st_ino == written.st_ino and not page.exists()
    assert run(*arguments[:-1]).code == 0 and output.stat().st_mtime_ns > written.st_mtime_ns


def test_a_stopped_run_beside_a_finished_one_goes_on_and_keeps_its_mode(home, tmp_path):
    (tmp_path / "b.jsonl").write_text("earlier")
    (tmp_path / "b.jsonl").chmod(0o600)
    arguments, output, partial = stopped(home, tmp_path)
    assert output.read_text() == "earlier" and partial.stat().st_mode & 0o777 == 0o600
    assert run(*arguments, "--resume").code == 0
    assert len(linked(output)) == 400 and output.stat().st_mode & 0o777 == 0o600 and not partial.exists()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
@pytest.mark.parametrize("cut", [0, 1, 20_000, -1])
def test_a_run_goes_on_behind_the_whole_chunks_that_are_written(home, tmp_path, suffix, cut, workers):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    source, plain, output = many(tmp_path / "a.jsonl", 300), tmp_path / f"b{suffix}", tmp_path / f"c{suffix}"
    with source.open("ab") as file:
        file.write(b"[]\n")
    arguments = ("link", source, "--home", home, "--model", "prior", "--bad", "skip", "--workers", workers)
    assert run(*arguments, "-o", plain).code == 0
    lines = run(*arguments[:-2], "--jsonl").out.encode()
    (tmp_path / f".{output.name}.partial").write_bytes(lines[:cut] if cut else lines + b'{"id": "x", "')
    assert run(*arguments, "-o", output, "--resume").code == 0
    assert output.read_bytes() == plain.read_bytes()
    assert len(linked(output.with_name(f"{output.name}.skipped"))) == 1
    assert not (tmp_path / f".{output.name}.partial").exists()


def test_a_line_that_is_damaged_and_what_follows_it_are_written_again(home, tmp_path):
    arguments, output, partial = stopped(home, tmp_path, 600)
    plain = tmp_path / "plain.jsonl"
    assert run(*arguments[:-1], plain).code == 0
    lines = partial.read_bytes().splitlines(keepends=True)
    lines[300] = b"\0" * len(lines[300])
    partial.write_bytes(b"".join(lines))
    assert run(*arguments, "--resume").code == 0 and output.read_bytes() == plain.read_bytes()


def test_a_run_with_another_input_or_another_model_does_not_go_on(home, tmp_path):
    arguments, output, partial = stopped(home, tmp_path)
    had = partial.read_bytes()
    partial.write_bytes(had.replace(b'"model":"prior"', b'"model":"other"'))
    done = run(*arguments, "--resume")
    assert done.code == 2 and "another model (other, not prior)" in done.err
    partial.write_bytes(had.replace(b'"id":"7"', b'"id":"eight"'))
    done = run(*arguments, "--resume")
    assert done.code == 2 and "another input" in done.err and "eight" in done.err
    assert not output.exists()


def test_two_runs_do_not_write_one_file(home, tmp_path):
    path, messages = tmp_path / "a.jsonl", Messages()
    with open_answers(path, "links", messages) as answers:
        answers.write(b"{}\n")
        with pytest.raises(UsageError, match="another run is writing"), open_answers(path, "links", messages):
            pass
    assert path.read_bytes() == b"{}\n" and [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]


def test_files_of_other_types_in_a_folder_are_counted(home, tmp_path):
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_text("A dog.")
    arguments = ("link", folder, "--home", home, "--model", "prior")
    assert "left out" not in run(*arguments).err
    for name in ("c.PDF", "b/d.pdf", "b/e.docx", "README", ".hidden.pdf"):
        (folder / name).touch()
    done = run(*arguments)
    assert "4 files of other types were left out: .pdf 2, " in done.err and ".docx 1" in done.err
    assert "without a suffix 1" in done.err
    assert len(done.out.splitlines()) == 1 and "left out" not in run(*arguments, "--quiet").err
    assert "left out" not in run("link", folder / "a.txt", *arguments[2:]).err
    for name in ("c.\x1b[31m", "c.d\ne", "c.pdf", "c. of May", f"c.{'d' * 200}"):
        (folder / name).touch()
    done = run(*arguments)
    assert "9 files of other types were left out: .pdf 3, " in done.err and "\x1b" not in done.err


def test_a_finished_run_of_a_tagger_says_so_before_a_model_is_opened(tmp_path):
    source, output = many(tmp_path / "a.jsonl", 1), tmp_path / "b.jsonl"
    output.write_text("{}\n")
    done = run("tag", source, "--model", "none", "--home", tmp_path, "-o", output, "--resume")
    assert (done.code, output.read_text()) == (0, "{}\n") and f"{output} is finished" in done.err


@pytest.mark.slow
def test_a_run_that_is_killed_and_resumed_writes_what_an_undisturbed_one_does(home, tmp_path):
    source, plain, output = many(tmp_path / "a.jsonl", 3000), tmp_path / "plain.jsonl", tmp_path / "b.jsonl"
    assert run("link", source, "--home", home, "--model", "prior", "-o", plain).code == 0
    command = [*COMMAND, "link", source, "--home", home, "--model", "prior", "-o", output, "--resume"]
    for _ in range(2):
        with subprocess.Popen([*map(str, command)], env=child_env(), stderr=subprocess.DEVNULL) as child:
            deadline = time.monotonic() + 60
            while not (tmp_path / ".b.jsonl.partial").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            child.send_signal(signal.SIGKILL)
    assert not output.exists()
    assert run(*command[3:]).code == 0
    assert output.read_bytes() == plain.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("signal_all", [False, True], ids=["the command", "its workers too"])
def test_a_run_with_workers_that_is_terminated_says_how_it_goes_on_and_nothing_else(
    home, tmp_path, signal_all
):
    """Python would warn of semaphores that the command has not removed."""
    source, output = many(tmp_path / "a.jsonl", 20_000), tmp_path / "b.jsonl"
    command = [*COMMAND, "link", source, "--home", home, "--model", "prior", "-o", output, "--workers", "2"]
    content = tmp_path / ".b.jsonl.partial"
    with subprocess.Popen(
        [*map(str, command)], env=child_env(), stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        deadline = time.monotonic() + 60
        while not (content.exists() and content.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGTERM) if signal_all else child.send_signal(signal.SIGTERM)
        lines = child.communicate(timeout=300)[1].splitlines()
    assert (child.returncode, lines[-1]) == (143, "terminated"), lines
    assert "are written so far; the same command with --resume goes on behind them" in lines[-2]
    assert len(lines) == 2 and not output.exists()
    assert content.stat().st_size > 0


def test_a_run_without_room_is_resumed_with_room(home, tmp_path, monkeypatch):
    source, plain, output = many(tmp_path / "a.jsonl", 1500), tmp_path / "plain.jsonl", tmp_path / "b.jsonl"
    assert run("link", source, "--home", home, "--model", "prior", "-o", plain).code == 0
    command = [*COMMAND, "link", source, "--home", home, "--model", "prior", "-o", output]
    size = plain.stat().st_size // 2
    done = subprocess.run(
        [*map(str, command)], env=child_env(), capture_output=True, text=True, timeout=300, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip
    assert done.returncode == 1 and f"error: {output}: File too large" in done.stderr
    assert not output.exists()
    assert run(*command[3:], "--resume").code == 0
    assert output.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume"], "--resume goes on writing a file: name it with --output FILE"),
        (["--resume", "-o", "out.jsonl"], "--resume reads its input again, and standard input is read once"),
        (["--workers", "0"], "invalid value for '--workers'"),
        (["--bad", "mend"], "invalid value for '--bad'"),
    ],
)
def test_options_that_exclude_each_other_are_refused(home, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = run("link", "--home", home, *arguments)
    assert done.code == 2 and message in done.err


def test_an_output_in_a_folder_that_is_read_is_refused(home, tmp_path):
    many(tmp_path / "a.jsonl", 2)
    output = tmp_path / "out.jsonl"
    assert run("link", tmp_path, "--home", home, "--model", "prior", "-o", output).code == 0
    done = run("link", tmp_path, "--home", home, "--model", "prior", "-o", output)
    assert done.code == 2 and "is one of the files to read" in done.err


# -- several knowledge bases ------------------------------------------------


def test_links_to_several_knowledge_bases_say_which(home, tmp_path):
    from kgkit.building import Alias, Entity
    from tests.small_kb import build

    build(
        home,
        [
            Entity("rex", "Rex", types=("person",)),
            *(Alias(name, "rex") for name in ("Rex", "Rex Kowal", "dog")),
        ],
        name="pets",
    ).close()
    arguments = ("link", "--home", home, "--kb", "mini=prior", "--kb", "pets", "--model", "prior", "--jsonl")
    [document] = [json.loads(run(*arguments, given=b"The dog Rex. He barked.").out)]
    links = [(link["text"], link["kb"], link["entity"]) for link in document["links"]]
    assert links[:3] == [("dog", "mini", "dog.n.01"), ("dog", "pets", "rex"), ("Rex", "pets", "rex")]
    assert document["model"] == "mini=prior, pets=prior"
    text = b"The dog Rex Kowal sat. Kowal barked."
    done = run(*arguments, "--references", given=text)
    assert ("Kowal", "pets", "rex") in [
        (link["text"], link["kb"], link["entity"]) for link in json.loads(done.out)["links"]
    ]
    alone = json.loads(run("link", "--home", home, "--kb", "pets", "--references", "--jsonl", given=text).out)
    assert [link["text"] for link in alone["links"]] == ["dog", "Rex Kowal", "Kowal"]
    page = run(*arguments[:-1], "--html", tmp_path / "a.html", given=b"The dog Rex.")
    assert page.code == 0 and "pets · score" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("kbs", "code", "message"),
    [
        (["mini", "mini=prior"], 2, "--kb mini: named twice"),
        (["mini="], 2, "--kb 'mini=': it is KB, or KB=MODEL"),
        (["=prior"], 2, "it is KB, or KB=MODEL"),
        (["mini=nope"], 3, "nope"),
        (["mini", "nope"], 3, "no knowledge base 'nope'"),
    ],
)
def test_a_wrong_choice_of_knowledge_bases_is_refused(home, kbs, code, message):
    arguments = [part for kb in kbs for part in ("--kb", kb)]
    done = run("link", "--home", home, *arguments, given=b"dog")
    assert done.code == code and message in done.err


def test_the_command_runs_as_a_process_with_workers_from_standard_input(home):
    lines = b"".join(b"A dog.\n" for _ in range(3))
    done = process(
        "link", "--input-format", "lines", "--home", home, "--workers", "2", "--model", "prior", given=lines
    )
    assert done.code == 0 and [json.loads(line)["id"] for line in done.out.splitlines()] == [
        "-:1",
        "-:2",
        "-:3",
    ]
