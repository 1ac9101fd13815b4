"""`kgkit reconcile`: a column of a table in a file, with its entities behind it."""

import csv
import gzip
import io
import json
from datetime import date

import pyarrow
import pytest
from pyarrow import parquet

from tests.cli_helpers import run
from tests.reconciling.test_reconciler import RECORDS
from tests.small_kb import build
from tests.toys import run_python

TABLE = 'row,name,note\n1,Missisippi,"a, ""b"""\n2,,"two\nlines"\n3,Berlin,\n4,zzzz,d\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with one KB, `places`."""
    folder = tmp_path_factory.mktemp("home")
    build(folder, RECORDS, name="places").close()
    return folder


def reconcile(home, path, *arguments, column="name"):
    return run("reconcile", path, "--column", column, "--home", home, *arguments)


def file_of(folder, content: str, name="names.csv"):
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


# -- formats ------------------------------------------------------------------------------


def test_csv_comes_with_its_rows_in_order_and_the_new_columns_behind(home, tmp_path):
    done = reconcile(home, file_of(tmp_path, TABLE))
    assert done.code == 0
    assert done.err == "4 names, 2 of them matched\n"
    before, after = list(csv.reader(io.StringIO(TABLE))), list(csv.reader(io.StringIO(done.out)))
    assert [row[:3] for row in after] == before
    assert after[0][3:] == ["key", "label", "score", "match"]
    assert [row[3] for row in after[1:]] == ["Q4", "", "Q64", ""]
    assert [row[6] for row in after[1:]] == ["true", "false", "true", "false"]
    assert after[3][5] == "0.784"


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_of_a_table_stays(home, tmp_path, delimiter):
    content = f"row{delimiter}name\n1{delimiter}Berlin, New Hampshire\n"
    done = reconcile(home, file_of(tmp_path, content, "names.tsv"))
    header, row = done.out.splitlines()
    assert header.split(delimiter) == ["row", "name", "key", "label", "score", "match"]
    assert row.split(delimiter)[:3] == ["1", "Berlin, New Hampshire", "Q821"]


def test_json_lines_keep_fields_of_any_kind(home, tmp_path):
    lines = ['{"name":"Missisippi","n":[1,{"a":null}]}', '{"other":1.5}', '{"name":null}']
    done = reconcile(home, file_of(tmp_path, "\n".join(lines) + "\n", "names.jsonl"))
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record.pop("key") for record in records] == ["Q4", None, None]
    assert [record.pop("match") for record in records] == [True, False, False]
    for record, line in zip(records, lines, strict=True):
        assert record.pop("label") in ("Mississippi", None)
        assert isinstance(record.pop("score"), float)
        assert record == json.loads(line)


def test_parquet_keeps_the_types_of_its_columns(home, tmp_path):
    columns = {
        "day": pyarrow.array([date(2020, 1, 2), None], pyarrow.date32()),
        "name": pyarrow.array(["Missisippi", None]),
        "list": pyarrow.array([[1, 2], []], pyarrow.list_(pyarrow.int8())),
    }
    source = pyarrow.table(columns).replace_schema_metadata({"origin": "test"})
    parquet.write_table(source, tmp_path / "names.parquet")
    done = reconcile(home, tmp_path / "names.parquet", "--output", tmp_path / "out.parquet", "--top", 2)
    assert (done.code, done.out) == (0, "")
    result = parquet.read_table(tmp_path / "out.parquet")
    assert result.select(list(columns)).equals(source.select(list(columns)))
    assert result.schema.metadata[b"origin"] == b"test"
    assert result["key"].to_pylist() == ["Q4", None]
    assert result["match"].to_pylist() == [True, False]
    assert [str(field.type) for field in result.schema][3:7] == ["string", "string", "double", "bool"]
    assert result.column_names[7:] == ["key_2", "label_2", "score_2"]


def test_compressed_tables_are_read_and_written(home, tmp_path):
    path = tmp_path / "names.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    done = reconcile(home, path, "-o", tmp_path / "out.csv.gz")
    assert (done.code, done.out) == (0, "")
    with gzip.open(tmp_path / "out.csv.gz", "rt", newline="") as file:
        assert file.read() == reconcile(home, file_of(tmp_path, TABLE)).out


def test_many_rows_come_in_their_order(home, tmp_path):
    names = ["Berlin", "Bern", "Missisippi", "zzzz", ""]
    rows = [(str(row), names[row % 5]) for row in range(2_503)]
    content = "row,name\n" + "".join(f"{row},{name}\n" for row, name in rows)
    done = reconcile(home, file_of(tmp_path, content))
    written = list(csv.reader(io.StringIO(done.out)))[1:]
    assert [tuple(row[:2]) for row in written] == rows
    assert [row[2] for row in written] == [["Q64", "Q2", "Q4", "", ""][row % 5] for row in range(2_503)]
    assert done.err == "2,503 names, 1,503 of them matched\n"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_table(home, tmp_path):
    code = """if True:
        import sys
        from contextlib import suppress
        from pathlib import Path
        from kgkit.commands import main
        with suppress(SystemExit):
            main()
        print(next(line for line in Path("/proc/self/status").open() if line.startswith("VmHWM")).split()[1])
    """
    peaks = []
    for size in (3_000, 60_000):
        path = file_of(tmp_path, "name,filler\n" + f"Berlin,{'x' * 200}\n" * size)
        output = tmp_path / "out.csv"
        done = run_python(code, "reconcile", path, "--column", "name", "--home", home, "-o", output)
        peaks.append(int(done.stdout))
        assert len(output.read_text().splitlines()) == size + 1
    assert peaks[1] - peaks[0] < 6_000  # KB; the larger table has 12 MB


# -- options -------------------------------------------------------------------------------


def test_kind_threshold_and_top_are_options(home, tmp_path):
    path = file_of(tmp_path, "name\nBerlin\n")
    done = reconcile(home, path, "--kind", "country=USA", "--threshold", "0.99", "--top", "2", "--quiet")
    assert done.out == (
        "name,key,label,score,match,key_2,label_2,score_2\n"
        'Berlin,Q821,"Berlin, New Hampshire",0.8802,false,,,\n'
    )
    assert done.err == ""


def test_a_prefix_keeps_columns_apart(home, tmp_path):
    path = file_of(tmp_path, "name,key\nBern,x\n")
    done = reconcile(home, path)
    assert (done.code, "has a column 'key' already" in done.err, done.out) == (2, True, "")
    done = reconcile(home, path, "--prefix", "kb_")
    assert done.out.splitlines()[0] == "name,key,kb_key,kb_label,kb_score,kb_match"


def test_a_field_that_a_later_record_has_is_not_written_over(home, tmp_path):
    path = file_of(tmp_path, '{"name":"Bern"}\n{"name":"Bern","label":"x"}\n', "names.jsonl")
    done = reconcile(home, path, "-o", tmp_path / "out.jsonl")
    assert (done.code, "names.jsonl:2: it has a field 'label' already" in done.err) == (1, True)
    assert not (tmp_path / "out.jsonl").exists()


# -- errors --------------------------------------------------------------------------------


def test_a_column_that_is_not_there_is_an_error_with_those_that_are(home, tmp_path):
    done = reconcile(home, file_of(tmp_path, TABLE), column="nmae")
    assert done.code == 2
    assert done.err == ("error: no column named 'nmae'; there are: row, name, note; did you mean 'name'?\n")


@pytest.mark.parametrize(
    "content, name, message",
    [
        ("", "a.csv", "a.csv:1: is empty"),
        (",,\n", "a.csv", "the first row names the columns, and this one is empty"),
        ("name,b\nBern\n", "a.csv", "a.csv:2: expected 2 fields, as the header has them, found 1"),
        ('name\n"Bern\n', "a.csv", "is not closed"),
        ("[1]\n", "a.jsonl", "a.jsonl:1: expected an object of JSON"),
        ('{"name":"Bern"}\n{"name"\n', "a.jsonl", "a.jsonl:2: expected an object of JSON"),
        ('{"name":"Bern"}\n{"name":7}\n', "a.jsonl", "a.jsonl:2: expected a string as 'name', found 7"),
        ("no parquet", "a.parquet", "is no Parquet file"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_named_with_its_line(home, tmp_path, content, name, message):
    done = reconcile(home, file_of(tmp_path, content, name), "-o", tmp_path / f"out{name}")
    assert done.code == 1
    assert message in done.err
    assert not (tmp_path / f"out{name}").exists()


def test_a_column_of_numbers_in_parquet_is_an_error_with_its_row(home, tmp_path):
    parquet.write_table(pyarrow.table({"name": [1, 2]}), tmp_path / "names.parquet")
    done = reconcile(home, tmp_path / "names.parquet", "-o", tmp_path / "out.parquet")
    assert (done.code, "expected a string as 'name' in row 1, found 1" in done.err) == (1, True)
    assert not (tmp_path / "out.parquet").exists()


def test_no_other_format_is_written_than_was_read(home, tmp_path):
    path = file_of(tmp_path, TABLE)
    done = reconcile(home, path, "-o", tmp_path / "out.parquet")
    assert (done.code, "out.parquet would be Parquet" in done.err, "is CSV or TSV" in done.err) == (
        2,
        True,
        True,
    )
    parquet.write_table(pyarrow.table({"name": ["Bern"]}), tmp_path / "names.parquet")
    done = reconcile(home, tmp_path / "names.parquet")
    assert (done.code, "not written to standard output: name a file by --output" in done.err) == (2, True)


def test_the_table_that_is_read_is_not_written_over(home, tmp_path):
    path = file_of(tmp_path, TABLE)
    done = reconcile(home, path, "-o", path)
    assert (done.code, "is one of the files to read" in done.err) == (2, True)
    assert path.read_text() == TABLE.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (("--kind", "village"), 2, "there are: band, city, river"),
        (("--kb", "plaices"), 3, "did you mean 'places'"),
        (("--threshold", "2"), 2, "--threshold"),
        (("--top", "0"), 2, "--top"),
    ],
)
def test_an_option_that_cannot_be_met_is_an_error(home, tmp_path, arguments, code, message):
    done = reconcile(home, file_of(tmp_path, TABLE), *arguments)
    assert (done.code, message in done.err, done.out) == (code, True, "")


def test_a_file_that_is_not_there_is_an_error(home, tmp_path):
    done = reconcile(home, tmp_path / "names.csv")
    assert (done.code, "no file" in done.err) == (3, True)


@pytest.mark.parametrize(
    "cells",
    [
        ["Bern", "", "Berlin", "", "", "Bern"],
        ["", "", "Bern"],
        ["Bern", "", ""],
        ["", ""],
        ["New York City", "  ", "Bern"],
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_blank_line_of_a_single_column_is_a_row_in_its_place(home, tmp_path, cells, end):
    done = reconcile(home, file_of(tmp_path, end.join(["name", *cells]) + end))
    rows = list(csv.reader(io.StringIO(done.out)))[1:]
    assert [row[0] for row in rows] == cells
    assert [row[-1] for row in rows] == [str(bool(cell.strip())).lower() for cell in cells]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_blank_line_between_rows_is_a_row_of_empty_cells(home, tmp_path, delimiter, end):
    lines = ["name,row", "Bern,1", "", "", '"two', 'lines",2', "", "Berlin,3", "", ""]
    content = end.join(lines).replace(",", delimiter) + end
    done = reconcile(home, file_of(tmp_path, content))
    rows = list(csv.reader(io.StringIO(done.out, newline=""), delimiter=delimiter))[1:]
    assert [row[1] for row in rows] == ["1", "", "", "2", "", "3"]
    assert [row[2] for row in rows] == ["Q2", "", "", "", "", "Q64"]
    assert rows[1] == ["", "", "", "", *rows[1][4:5], "false"]


def test_a_damaged_row_behind_blank_lines_is_named_by_its_line(home, tmp_path):
    done = reconcile(home, file_of(tmp_path, "name,row\nBern,1\n\n\nBerlin\n"))
    assert (done.code, ".csv:5" in done.err) == (1, True)


def test_a_blank_line_of_json_lines_is_a_row_of_empty_cells(home, tmp_path):
    content = '\n{"name": "Bern", "row": 1}\n\n \n{"name": "Berlin", "row": 2}\n\n'
    done = reconcile(home, file_of(tmp_path, content, "names.jsonl"))
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["row"] for row in rows] == [None, 1, None, None, 2]
    assert [row["key"] for row in rows] == [None, "Q2", None, None, "Q64"]
    assert [row["match"] for row in rows] == [False, True, False, False, True]


def test_a_cell_that_is_a_key_means_its_entity(home, tmp_path):
    done = reconcile(home, file_of(tmp_path, "name\nQ64\n Q3 \nQ65\n"))
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["key"], row["match"]) for row in rows][:2] == [("Q64", "true"), ("Q3", "true")]
    assert rows[2]["match"] == "false"
    done = reconcile(home, file_of(tmp_path, "name\nQ64\n"), "--kind", "river")
    assert [row["match"] for row in csv.DictReader(io.StringIO(done.out))] == ["false"]
