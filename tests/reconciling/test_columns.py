"""`kgkit.reconcile`: names, lists, and the columns and tables of pandas, polars and Arrow."""

import sys

import pandas
import pyarrow
import pytest

import kgkit
from kgkit.errors import MissingExtra, NotThere, UnknownName, UsageError
from kgkit.reconciling.reconciler import NameMatch
from tests.reconciling.test_reconciler import RECORDS
from tests.small_kb import build

NAMES = ["Missisippi", None, "Berlin", "zzzz"]
KEYS = ["Q4", None, "Q64", None]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with one KB, `places`."""
    folder = tmp_path_factory.mktemp("home")
    build(folder, RECORDS, name="places").close()
    return folder


def table(kind, columns):
    if kind == "pandas":
        return pandas.DataFrame(columns)
    if kind == "arrow":
        return pyarrow.table(columns)
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.DataFrame(columns)


def rows(frame) -> dict:
    """Return the columns of a table as lists, None for what pandas has no value of."""
    if isinstance(frame, pyarrow.Table):
        return frame.to_pydict()
    if isinstance(frame, pandas.DataFrame):
        return {name: [None if cell != cell else cell for cell in frame[name]] for name in frame}
    return frame.to_dict(as_series=False)


# -- names and lists --------------------------------------------------------------------


def test_a_name_gives_a_match_and_several_give_a_list(home):
    match = kgkit.reconcile("Missisippi", "places", home=home)
    assert (match.key, match.label, match.match) == ("Q4", "Mississippi", True)
    assert [each.key for each in kgkit.reconcile(NAMES, "places", home=home)] == KEYS
    assert [each.key for each in kgkit.reconcile(iter(NAMES), "places", home=home)] == KEYS
    assert kgkit.reconcile([], "places", home=home) == []
    assert kgkit.reconcile(None, "places", home=home) == NameMatch(None, (), False)


def test_the_only_kb_need_not_be_named_and_a_handle_stays_open(home):
    assert kgkit.reconcile("Bern", home=home).key == "Q2"
    with kgkit.open_kb("places", home) as kb:
        assert kgkit.reconcile("Bern", kb).key == "Q2"
        assert len(kb) == 6


def test_settings_reach_the_reconciler(home):
    match = kgkit.reconcile("Berlin", "places", home=home, kind="city", top=2, threshold=1)
    assert ([each.key for each in match.candidates], match.match) == (["Q64", "Q821"], False)


@pytest.mark.parametrize("names", [7, b"Berlin", {"Berlin": 1}, 1.5])
def test_what_is_neither_names_nor_a_table_is_refused(home, names):
    with pytest.raises(TypeError, match="names are strings, a column or a table, not"):
        kgkit.reconcile(names, "places", home=home)


def test_a_kb_that_is_not_there_is_an_error(home):
    with pytest.raises(NotThere, match=r"no knowledge base 'plaices'.*did you mean 'places'"):
        kgkit.reconcile("Bern", "plaices", home=home)


# -- tables -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_a_table_comes_with_its_rows_and_columns_and_the_new_ones_behind(home, kind):
    frame = table(kind, {"row": [4, 3, 2, 1], "name": NAMES, "note": ["a", "b", None, "d"]})
    result = kgkit.reconcile(frame, "places", column="name", home=home)
    assert type(result) is type(frame)
    columns = rows(result)
    assert list(columns) == ["row", "name", "note", "key", "label", "score", "match"]
    assert (columns["row"], columns["name"], columns["note"]) == ([4, 3, 2, 1], NAMES, ["a", "b", None, "d"])
    assert (columns["key"], columns["match"]) == (KEYS, [True, False, True, False])
    assert columns["score"] == pytest.approx([0.9, 0, 0.784, 0], abs=0.1)


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_further_candidates_have_columns_of_their_own(home, kind):
    frame = table(kind, {"name": ["Berlin", "Mississippi"]})
    columns = rows(kgkit.reconcile(frame, "places", column="name", home=home, top=3))
    assert list(columns)[5:] == ["key_2", "label_2", "score_2", "key_3", "label_3", "score_3"]
    assert (columns["key_2"][0], columns["key_3"][0]) == ("Q821", "Q1")
    assert columns["key_2"][1] is columns["score_3"][1] is None


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_a_column_gives_a_table_with_the_names(home, kind):
    frame = table(kind, {"city": NAMES})
    result = kgkit.reconcile(frame["city"], "places", home=home)
    columns = rows(result)
    assert list(columns) == ["city" if kind != "arrow" else "name", "key", "label", "score", "match"]
    assert columns["key"] == KEYS


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_a_table_without_rows_has_the_columns_too(home, kind):
    frame = table(kind, {"name": ["Bern"]})[:0]
    result = kgkit.reconcile(frame, "places", column="name", home=home)
    assert list(rows(result)) == ["name", "key", "label", "score", "match"]


def test_the_index_of_a_data_frame_stays(home):
    frame = pandas.DataFrame({"name": ["Berlin", "Bern", "Missisippi"]}, index=[7, 3, 3])
    result = kgkit.reconcile(frame, "places", column="name", home=home)
    assert list(result.index) == [7, 3, 3]
    assert list(result["key"]) == ["Q64", "Q2", "Q4"]
    assert "key" not in frame


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA])
def test_what_pandas_calls_missing_is_an_empty_cell(home, missing):
    frame = pandas.DataFrame({"name": pandas.Series(["Bern", missing], dtype=object)})
    result = kgkit.reconcile(frame, "places", column="name", home=home)
    assert list(result["match"]) == [True, False]


def test_arrays_and_record_batches_of_arrow_are_read(home):
    array = pyarrow.array(NAMES)
    assert kgkit.reconcile(array, "places", home=home)["key"].to_pylist() == KEYS
    batch = pyarrow.RecordBatch.from_pydict({"name": NAMES})
    assert kgkit.reconcile(batch, "places", column="name", home=home)["key"].to_pylist() == KEYS


def test_a_lazy_table_is_refused_with_what_to_do(home):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with pytest.raises(UsageError, match="collect"):
        kgkit.reconcile(polars.LazyFrame({"name": NAMES}), "places", column="name", home=home)


# -- what is wrong with a table -------------------------------------------------------------


def test_a_column_that_is_not_there_is_refused_with_those_that_are(home):
    frame = table("pandas", {"nmae": NAMES, "row": [1, 2, 3, 4]})
    with pytest.raises(UnknownName, match="no column named 'name'; there are: nmae, row"):
        kgkit.reconcile(frame, "places", column="name", home=home)


def test_a_table_needs_the_name_of_a_column_and_nothing_else_has_one(home):
    frame = table("pandas", {"city": NAMES, "row": [1, 2, 3, 4]})
    with pytest.raises(UsageError, match=r"which column has the names.*there are city, row"):
        kgkit.reconcile(frame, "places", home=home)
    with pytest.raises(UsageError, match="this is one column"):
        kgkit.reconcile(frame["city"], "places", column="city", home=home)
    with pytest.raises(UsageError, match="is for a table; these names are of list"):
        kgkit.reconcile(NAMES, "places", column="city", home=home)


def test_a_column_that_would_be_written_over_is_refused_and_a_prefix_helps(home):
    frame = table("pandas", {"name": NAMES, "label": list("abcd")})
    with pytest.raises(UsageError, match=r"has a column 'label' already.*'kb_label'"):
        kgkit.reconcile(frame, "places", column="name", home=home)
    result = kgkit.reconcile(frame, "places", column="name", home=home, prefix="kb_")
    assert list(result) == ["name", "label", "kb_key", "kb_label", "kb_score", "kb_match"]


def test_cells_that_are_no_strings_are_refused(home):
    with pytest.raises(UsageError, match="column 'name' has 7, of the type int; names are strings"):
        kgkit.reconcile(table("pandas", {"name": [7]}), "places", column="name", home=home)


def test_without_narwhals_a_table_names_the_extra_and_lists_are_reconciled(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtra, match=r"narwhals.*kgkit\[columns\]"):
        kgkit.reconcile(table("pandas", {"name": NAMES}), "places", column="name", home=home)
    assert kgkit.reconcile("Bern", "places", home=home).key == "Q2"


# -- columns and cells ------------------------------------------------------------------------
