"""Cells of Parquet that Python has no values for: no column that nobody asked for ends anything."""

import json
from datetime import date, datetime

import pytest

from kgkit.building.build import build_kb
from kgkit.errors import SourceError, UsageError
from kgkit.kb import open_kb
from kgkit.reconciling.columns import reconcile
from kgkit.tables import UnreadableCell, readable_cells
from tests.cli_helpers import run

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

LEAST, MOST = -(2**63), 2**63 - 1
FAR = 253_402_300_800  # seconds to the year 10000


def view(kind, *numbers):
    return pa.array(numbers, pa.int32() if kind == pa.date32() else pa.int64()).view(kind)


def not_utf8(*contents):
    return pa.Array.from_buffers(pa.string(), len(contents), pa.array(contents, pa.binary()).buffers())


UNREADABLE = [
    not_utf8(b"ok", b"\xff\xfe"),
    view(pa.duration("s"), 1, MOST),
    pa.ListArray.from_arrays([0, 1, 2], view(pa.date32(), 0, 3_000_000)),
    pa.StructArray.from_arrays([view(pa.date32(), 0, 3_000_000)], ["day"]),
    view(pa.timestamp("us"), 1, LEAST),
]
"""Columns whose second cell is no value of Python, and no date."""

DATES = [
    (view(pa.date32(), 0, -800_000, None), [date(1970, 1, 1), "-0221-09-04", None]),
    (view(pa.date32(), 2_932_897), ["10000-01-01"]),
    (view(pa.date64(), -281_475_043_200_000), ["-6950-05-31"]),
    (view(pa.timestamp("s"), FAR, 0), ["10000-01-01T00:00:00", datetime(1970, 1, 1)]),
    (view(pa.timestamp("ms"), -62_135_596_800_001), ["0000-12-31T23:59:59.999"]),
    (view(pa.timestamp("us", "Europe/Berlin"), FAR * 10**6), ["10000-01-01T00:00:00.000000+00:00"]),
    (view(pa.timestamp("ms", "Mars/Olympus"), 0), ["1970-01-01T00:00:00.000+00:00"]),
    (view(pa.timestamp("ns"), 1_000, None), [datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    (view(pa.timestamp("ns"), 1, None), ["1970-01-01T00:00:00.000000001", None]),
]


@pytest.mark.parametrize(("column", "values"), DATES, ids=lambda value: str(getattr(value, "type", "")))
def test_a_date_that_python_cannot_hold_is_a_text(column, values):
    assert readable_cells(column) == values


@pytest.mark.parametrize("column", UNREADABLE, ids=lambda column: str(column.type))
def test_a_cell_that_cannot_be_read_is_one_and_the_others_stay(column):
    first, second = readable_cells(column)
    assert not isinstance(first, UnreadableCell)
    assert isinstance(second, UnreadableCell)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, None, float("inf")]),
        pa.array([2**64 - 1, None], pa.uint64()),
        pa.array(["x", None, "x"]).dictionary_encode(),
        pa.array([[1, 2], None, []]),
        pa.array([b"\xff"]),
        pa.nulls(2),
    ],
    ids=lambda column: str(column.type),
)
def test_all_other_cells_are_as_pyarrow_gives_them(column):
    assert readable_cells(column) == column.to_pylist()


def write(path, odd):
    columns = {"id": ["a", "b"], "label": ["apple", "pear"], "text": ["apple", "pear"], "odd": odd}
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("column", UNREADABLE, ids=lambda column: str(column.type))
def test_a_table_is_built_unless_the_column_is_asked_for(tmp_path, column):
    source = write(tmp_path / "x.parquet", column)
    build_kb("table", source, name="x", home=tmp_path / "home", columns={"attribute": "text"})
    with open_kb("x", tmp_path / "home") as kb:
        assert kb["b"].attributes == {"text": "pear"}
    with pytest.raises(SourceError) as caught:
        build_kb("table", source, name="y", home=tmp_path / "home")
    assert "row 2" in str(caught.value)
    assert "'odd'" in str(caught.value)


def test_a_column_may_have_a_dot_in_its_name(tmp_path):
    columns = {
        "id": ["a"], "label": ["apple"], "s.f": ["red"], "s": [{"f": "no"}],
        "odd": view(pa.date32(), 3_000_000),
    }  # fmt: skip
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    build_kb("table", tmp_path / "x.parquet", name="x", home=tmp_path / "home", columns={"attribute": "s.f"})
    with open_kb("x", tmp_path / "home") as kb:
        assert kb["a"].attributes == {"s.f": "red"}


def test_dates_of_history_become_attributes(tmp_path):
    source = write(tmp_path / "x.parquet", view(pa.date32(), -735_525, 0))
    build_kb("table", source, name="x", home=tmp_path / "home")
    with open_kb("x", tmp_path / "home") as kb:
        assert [kb[key].attributes["odd"] for key in "ab"] == ["-0044-03-15", "1970-01-01"]


@pytest.mark.parametrize("column", UNREADABLE, ids=lambda column: str(column.type))
def test_a_bad_cell_of_a_text_is_a_bad_record(tmp_path, column):
    source, home = write(tmp_path / "x.parquet", column), tmp_path / "home"
    build_kb("table", source, name="x", home=home, columns={"attribute": "text"})
    link = ("link", source, "--home", home, "--model", "prior")
    done = run(*link)
    assert done.code == 1
    assert "x.parquet:2" in done.err
    assert "'odd'" in done.err
    done = run(*link, "--bad", "skip")
    assert done.code == 0
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["a"]


@pytest.mark.parametrize(("column", "values"), DATES, ids=lambda value: str(getattr(value, "type", "")))
def test_dates_are_carried_to_the_output_as_texts(tmp_path, column, values):
    cells = pa.concat_arrays([column.slice(0, 1), column.slice(0, 1)])
    source, home = write(tmp_path / "x.parquet", cells), tmp_path / "home"
    build_kb("table", source, name="x", home=home, columns={"attribute": "text"})
    done = run("link", source, "--home", home, "--model", "prior")
    assert done.code == 0
    written = [json.loads(line)["odd"] for line in done.out.splitlines()]
    expected = values[0] if isinstance(values[0], str) else values[0].isoformat()
    assert written[0] == written[1]
    assert written[0].startswith(expected)  # Parquet has no seconds: milliseconds follow


@pytest.mark.parametrize("column", [*UNREADABLE, view(pa.timestamp("ms", "Mars/Olympus"), 0, 1)], ids=str)
def test_names_are_reconciled_beside_any_column_and_a_column_of_no_names_is_an_error(tmp_path, column):
    source, home = write(tmp_path / "x.parquet", column), tmp_path / "home"
    build_kb("table", source, name="x", home=home, columns={"attribute": "text"})
    output = tmp_path / "out.parquet"
    settings = ("--home", home, "--prefix", "kb_", "-o", output)
    done = run("reconcile", source, "--column", "label", *settings)
    assert done.code == 0
    assert parquet.read_table(output, columns=["kb_key"]).to_pylist() == [{"kb_key": "a"}, {"kb_key": "b"}]
    assert run("reconcile", source, "--column", "odd", *settings).code == 1
    with pytest.raises(UsageError):
        reconcile(pa.table({"odd": column}), "x", column="odd", home=home)
