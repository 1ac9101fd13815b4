"""Columns of names: read, reconciled, downloaded."""

import csv
import io

import pytest

from kgkit.reconciling.reconciler import EntityScore, NameMatch
from kgkit.serving.page.addresses import address
from kgkit.serving.page.column_views import read_table, table_csv
from kgkit.serving.problems import Problem
from tests.serving.page.conftest import HTML


def rows_of(content):
    return list(csv.reader(io.StringIO(content)))


# -- reading ----------------------------------------------------------------


def test_lines_are_names_whatever_is_in_them():
    table = read_table('Smith, John\n\n "x"\u2028y \nlast\n\n', "lines", "", 10)
    assert table.names == ["Smith, John", None, '"x"\u2028y', "last"]
    assert table.columns == ["name"]


@pytest.mark.parametrize(
    ("text", "layout", "column", "field", "message"),
    [
        ("", "lines", "", "names", "there is no name"),
        ("a,b\n", "table", "", "names", "there is no name"),
        ("a,b\n1,2\n", "table", "c", "column", "no column 'c'; there are: a, b"),
        ("a,b\n1\n", "table", "", "names", "line 2: expected 2 fields, as the header has them, found 1"),
        ('a,b\n"1,2\n', "table", "", "names", "a quote in the row that begins in line 2 is not closed"),
        ("a\x00b\n", "table", "", "names", "a NUL byte"),
        ("a\n", "cells", "", "layout", "layout is 'cells'"),
        ("a\n" * 11, "lines", "", "names", "more than 10 names"),
        ("a\n" * 12, "table", "", "names", "more than 10 names"),
    ],
)
def test_what_is_no_column_is_refused(text, layout, column, field, message):
    with pytest.raises(Problem, match=message) as caught:
        read_table(text, layout, column, 10)
    assert caught.value.status == (413 if "more than" in message else 422)
    assert caught.value.field == field


# -- writing ----------------------------------------------------------------


def matches(*keys):
    return [
        NameMatch("x", (EntityScore(key, key.title(), 0.123456),) if key else (), bool(key)) for key in keys
    ]


def test_a_table_gets_columns_of_matches():
    table = read_table("id,name\n1,dog\n2,none\n", "table", "name", 10)
    assert rows_of(table_csv(table, matches("dog", ""), 1)) == [
        ["id", "name", "key", "label", "score", "match"],
        ["1", "dog", "dog", "Dog", "0.1235", "true"],
        ["2", "none", "", "", "0.0", "false"],
    ]


def test_columns_of_these_names_keep_their_cells():
    table = read_table("key,score\na,1\n", "table", "", 10)
    header = rows_of(table_csv(table, matches("dog"), 1))[0]
    assert header == ["key", "score", "kb_key", "kb_label", "kb_score", "kb_match"]


# -- the view ---------------------------------------------------------------


def test_names_are_matched_through_typing_errors(read):
    page = read(address("/column", kb="facts", names="dog\nmosue\n\nqqqq"))
    assert "of 4 names matched" in page.words
    assert [row[0].strip() for row in page.rows] == ["name", "dog", "mosue", "empty", "qqqq"]
    assert address("/entity", kb="facts", key="mouse") in page.links


def test_a_least_score_decides_what_matches(read):
    every = read(address("/column", kb="facts", names="dog\nmosue", threshold="0"))
    none = read(address("/column", kb="facts", names="dog\nmosue", threshold="1"))
    assert ("2 of 2" in every.words, "0 of 2" in none.words) == (True, True)
    assert "threshold is" in read(address("/column", kb="facts", names="dog", threshold="x"), 422).words


def test_a_kind_decides_what_may_match(read):
    assert "1 of 1" in read(address("/column", kb="facts", names="thing", kind="thing")).words
    assert "0 of 1" in read(address("/column", kb="facts", names="thing", kind="node")).words
    assert (
        "ATTRIBUTE=VALUE in 'facts'" in read(address("/column", kb="facts", names="a", kind="x"), 422).words
    )


def test_a_posted_column_leads_to_its_address(browser):
    fields = {"names": "dog\r\ncat", "kb": "facts", "layout": "lines"}
    answer = browser.post("/column", data=fields, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == address("/column", names="dog\ncat", layout="lines", kb="facts")


def test_a_file_is_a_table_which_is_downloaded_with_its_matches(browser):
    table = "n,animal\n1,dog\n2,cta\n".encode("utf-8-sig")
    fields = {"kb": "facts", "column": "animal"}
    answer = browser.post("/column", data=fields, files={"file": ("animals.csv", table, "text/csv")})
    assert answer.status_code == 200
    assert "2 names matched" in answer.text
    download = browser.post("/column.csv", data=fields, files={"file": ("animals.csv", table, "text/csv")})
    assert download.headers["content-type"] == "text/csv; charset=utf-8"
    assert download.headers["content-disposition"] == 'attachment; filename="column.csv"'
    rows = rows_of(download.text)
    assert rows[0][:6] == ["n", "animal", "key", "label", "score", "match"]
    assert [row[2] for row in rows[1:]] == ["dog", "cat"]


def test_the_button_of_a_result_downloads_what_it_shows(browser, read):
    page = read(address("/column", kb="strange", names=f'"{HTML}"\nmark'))
    hidden = {
        values["name"]: values["value"] for values in page.named("input") if values.get("type") == "hidden"
    }
    rows = rows_of(browser.post("/column.csv", data=hidden).text)
    assert [row[0] for row in rows] == ["name", f'"{HTML}"', "mark"]


def test_a_file_of_another_encoding_is_refused_as_a_page(browser):
    answer = browser.post("/column", data={"kb": "facts"}, files={"file": ("a.csv", "né".encode("latin-1"))})
    assert answer.status_code == 422
    assert "the file is no text in UTF-8" in answer.text


def test_more_names_than_a_request_may_have_are_refused(browser):
    answer = browser.post("/column", data={"kb": "facts", "names": "dog\n" * 21})
    assert answer.status_code == 413
    assert "kgkit reconcile" in answer.text
