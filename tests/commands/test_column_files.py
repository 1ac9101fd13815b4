"""Tables in files: read batch by batch, written in their own format with columns added."""

import gzip
import json
import lzma
from pathlib import Path

import pytest

import kgkit.commands.column_files as module
from kgkit.commands.column_files import check_format, open_columns
from kgkit.errors import NotThere, SourceError, UsageError

NEW = {"entity": str, "score": float, "match": bool}
CELLS = ["q1", 0.123456789, True]


@pytest.fixture(params=["names.csv", "names.tsv", "names.jsonl", "names.parquet"])
def table(request, tmp_path):
    """A table of three rows in each format; the second name is empty."""
    path = tmp_path / request.param
    rows = [{"id": "1", "name": "Oslo"}, {"id": "2", "name": None}, {"id": "3", "name": "Bergen, old"}]
    write_table(path, rows)
    return path


def write_table(path: Path, rows):
    """Write rows in the format that the name of a file says."""
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        lines = [[*rows[0]], *([f'"{cell}"' if cell else "" for cell in row.values()] for row in rows)]
        path.write_text("".join(delimiter.join(line) + "\n" for line in lines))


def read_rows(path):
    """Return the rows of a written table as dictionaries of strings and numbers."""
    table = open_columns(path)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path).to_pylist()
    rows = [row for batch, _ in table.batches(table.columns[0]) for row in batch]
    return [row[1] if path.suffix == ".jsonl" else dict(zip(table.columns, row, strict=True)) for row in rows]


def copy(path, output, new=None, cells=None):
    """Copy a table with added cells."""
    table = open_columns(path)
    with table.writer(output, NEW if new is None else new) as write:
        for rows, names in table.batches("name"):
            write(rows, [CELLS if cells is None else cells for _ in names])


def test_the_cells_of_a_column_come_in_their_order_with_none_for_empty(table):
    opened = open_columns(table)
    assert [*opened.columns] == ["id", "name"]
    assert [cell for _, cells in opened.batches("name") for cell in cells] == ["Oslo", None, "Bergen, old"]


def test_rows_are_copied_in_their_order_with_new_columns_behind(table, tmp_path):
    output = tmp_path / f"out{table.suffix}"
    copy(table, output)
    rows = read_rows(output)
    assert [row["id"] for row in rows] == ["1", "2", "3"] and [*rows[0]] == ["id", "name", *NEW]
    assert rows[2]["name"] == "Bergen, old" and rows[0]["entity"] == "q1"
    assert float(rows[0]["score"]) == pytest.approx(0.123456789, abs=1e-4)
    assert str(rows[0]["match"]).lower() == "true"


def test_a_table_is_read_in_batches(table, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 2)
    batches = [cells for _, cells in open_columns(table).batches("name")]
    assert [cell for cells in batches for cell in cells] == ["Oslo", None, "Bergen, old"]
    assert table.suffix == ".parquet" or [len(cells) for cells in batches] == [2, 1]


def test_an_output_of_another_format_is_refused_before_anything_is_read(table):
    opened = open_columns(table)
    check_format(Path(f"x{table.suffix}"), opened)
    others = {".csv": "x.jsonl", ".tsv": "x.parquet", ".jsonl": "x.csv", ".parquet": "x.jsonl"}
    with pytest.raises(UsageError, match=f"would be .*{opened.format}: a table is written in the format"):
        check_format(Path(others[table.suffix]), opened)


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.CSV", "x", "x.txt", "x.csv.gz", "x.gz"])
def test_names_without_a_suffix_of_their_own_are_delimited(tmp_path, name):
    path = tmp_path / name
    content = b"id,name\n1,Oslo\n"
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert open_columns(path).format == "CSV or TSV"
    assert [*open_columns(path).columns] == ["id", "name"]


@pytest.mark.parametrize(("suffix", "decompress"), [(".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_compressed_tables_are_read_and_written(tmp_path, suffix, decompress):
    path, output = tmp_path / f"in.jsonl{suffix}", tmp_path / f"out.jsonl{suffix}"
    compress = gzip.compress if suffix == ".gz" else lzma.compress
    path.write_bytes(compress(b'{"name": "Oslo"}\n'))
    copy(path, output, {"entity": str}, ["q1"])
    assert json.loads(decompress(output.read_bytes())) == {"name": "Oslo", "entity": "q1"}


def test_the_delimiter_of_the_input_is_that_of_the_output(tmp_path):
    path, output = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text('id;name\n1;"a;b"\n')
    copy(path, output, {"entity": str}, ["q;1"])
    assert output.read_text().splitlines() == ["id;name;entity", '1;"a;b";"q;1"']


def test_an_empty_cell_is_added_where_nothing_was_matched(table, tmp_path):
    output = tmp_path / f"out{table.suffix}"
    copy(table, output, {"entity": str}, [None])
    assert {row["entity"] or None for row in read_rows(output)} == {None}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", " , \n1,2\n", "the first row names the columns, and this one is empty"),
        ("x.csv", "", "x.csv"),
        ("x.jsonl", "", "x.jsonl"),
        ("x.jsonl", "[1]\n", "expected an object of JSON"),
        ("x.jsonl", '{"name": }\n', "expected an object of JSON"),
        ("x.jsonl", "[" * 100_000 + "\n", "expected an object of JSON"),
        ("x.parquet", "PAR1", "x.parquet"),
    ],
)
def test_a_table_that_is_not_of_its_format_is_refused_when_it_is_opened(tmp_path, name, content, message):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(SourceError, match=message):
        open_columns(path)


def test_an_absent_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(NotThere, match=r"absent\.csv"):
        open_columns(tmp_path / "absent.csv")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_cell_that_is_no_string_is_named_by_its_row(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    write_table(path, [{"name": "Oslo", "n": 1}, {"name": "Bergen", "n": 2}])
    with pytest.raises(SourceError, match=r"expected a string as 'n'.*found 1") as caught:
        [*open_columns(path).batches("n")]
    assert (":1:" if suffix == ".jsonl" else "in row 1") in str(caught.value)


def test_a_bad_record_behind_good_ones_is_named_by_its_line(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"name": "Oslo"}\n{"name": "Bergen"}\nno record\n')
    with pytest.raises(SourceError, match=r"x\.jsonl:3: expected an object of JSON"):
        [*open_columns(path).batches("name")]


def test_a_record_with_a_field_of_a_new_name_is_an_error_that_names_the_option(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"name": "Oslo"}\n{"name": "Bergen", "entity": "mine"}\n')
    with pytest.raises(SourceError, match=r"x\.jsonl:2: it has a field 'entity' already.*--prefix"):
        copy(path, tmp_path / "out.jsonl")


def test_parquet_is_not_written_to_standard_output(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    write_table(path, [{"name": "Oslo"}])
    with pytest.raises(UsageError, match="name a file by --output"):
        copy(path, None)


def test_columns_of_parquet_keep_their_types_and_metadata(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path, output = tmp_path / "x.parquet", tmp_path / "out.parquet"
    fields = [pyarrow.field("name", pyarrow.large_string()), pyarrow.field("n", pyarrow.int8())]
    schema = pyarrow.schema(fields, metadata={b"source": b"hand"})
    parquet.write_table(pyarrow.table([["Oslo"], [3]], schema=schema), path)
    copy(path, output)
    written = parquet.read_schema(output)
    assert written.names == ["name", "n", *NEW] and written.metadata[b"source"] == b"hand"
    assert [str(field.type) for field in written] == ["large_string", "int8", "string", "double", "bool"]
