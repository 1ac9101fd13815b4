"""Tables of the manual that are rows and columns of the measured figures."""

from pathlib import Path
from typing import Final

import pytest

from benchmarks.extracts import RESULTS, UnknownResult, extract, fill, tables

PAGES: Final = ["does-knowledge-help.md"]
MEASURED: Final = """# Benchmarks

## (a) Speed

Some words.

| | s | MB |
|---|--:|--:|
| one | 1 | 10 |
| two, `x \\| y` | 2 | |

Another table:

| task | facts | F1 |
|---|---|--:|
| ner | none | 50 |
| ner | graph | 60 |

### Details

| | detail |
|---|--:|
| one | 7 |

## (b) Memory

| | GB |
|---|--:|
| one | 3 |
"""


def test_a_part_reaches_to_the_next_heading_of_its_level() -> None:
    assert [table.columns for table in tables("(a) Speed", MEASURED)] == [
        ["", "s", "MB"],
        ["task", "facts", "F1"],
        ["", "detail"],
    ]
    assert [table.columns for table in tables("Details", MEASURED)] == [["", "detail"]]


def test_rows_and_columns_come_in_the_order_of_the_reference() -> None:
    reference = {"part": "(a) Speed", "rows": ["two, `x \\| y`", "one"], "columns": ["", "MB", "s"]}
    assert extract(reference, MEASURED).splitlines() == [
        "| | MB | s |",
        "| --- | --: | --: |",
        "| two, `x \\| y` | | 2 |",
        "| one | 10 | 1 |",
    ]


def test_a_row_may_be_named_by_several_cells() -> None:
    reference = {"part": "(a) Speed", "rows": [["ner", "graph"], [None, "none"]], "columns": ["task", "F1"]}
    assert extract(reference, MEASURED).splitlines()[2:] == ["| ner | 60 |", "| ner | 50 |"]


def test_a_later_table_is_taken_where_the_first_lacks_a_row() -> None:
    results = MEASURED.replace("Another table:", "| | s |\n|---|--:|\n| three | 9 |")
    reference = {"part": "(a) Speed", "rows": ["three"], "columns": ["", "s"]}
    assert extract(reference, results).splitlines()[2:] == ["| three | 9 |"]


def test_the_first_column_may_have_another_name() -> None:
    reference = {"part": "(b) Memory", "rows": ["one"], "columns": ["", "GB"], "first": "KB"}
    assert extract(reference, MEASURED).startswith("| KB | GB |")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"part": "(c) Gone"}, "no part '\\(c\\) Gone'"),
        ({"columns": ["", "watts"]}, "no table of '\\(a\\) Speed' has the columns '', 'watts'"),
        ({"rows": ["three"]}, "0 rows of '\\(a\\) Speed' begin with \\['three'\\]"),
        ({"rows": ["ner"], "columns": ["task", "F1"]}, "2 rows"),
    ],
)
def test_a_reference_to_what_was_not_measured_is_an_error(change: dict[str, object], message: str) -> None:
    reference = {"part": "(a) Speed", "rows": ["one"], "columns": ["", "s"]} | change
    with pytest.raises(UnknownResult, match=message):
        extract(reference, MEASURED)


def test_filling_replaces_the_table_behind_a_reference_and_nothing_else() -> None:
    reference = '<!-- results {"part": "(b) Memory", "rows": ["one"], "columns": ["", "GB"]} -->'
    page = f"# Page\n\n{reference}\n| | GB |\n|---|--:|\n| one | 2 |\n\n| own | table |\n|---|---|\n"
    filled = fill(page, MEASURED)
    assert (
        filled
        == f"# Page\n\n{reference}\n| | GB |\n| --- | --: |\n| one | 3 |\n\n| own | table |\n|---|---|\n"
    )
    assert fill(filled, MEASURED) == filled


@pytest.mark.parametrize("name", PAGES)
def test_the_manual_says_what_was_measured(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8")
    assert page.count("<!-- results ") > 1
    assert fill(page, RESULTS.read_text(encoding="utf-8")) == page, (
        f"python -m benchmarks.extracts docs/{name}"
    )
