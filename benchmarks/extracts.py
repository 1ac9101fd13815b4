"""Tables of a page of the manual that are rows and columns of `benchmarks/RESULTS.md`.

    python -m benchmarks.extracts docs/does-knowledge-help.md

A line of the page says which, and the table stands behind it, up to the next line that is no part of a table:

    <!-- results {"part": "(p) Word senses", "rows": ["`prior`", "`gloss`"], "columns": ["model", "five"]} -->

`part` is a heading of the results. The table is the first below it that has all `columns` and `rows`; `""`
is a column without a name. A row is named by its first cells: a text for its first, or a list, in which null
is any cell. `first` is the name of the first column on the page, if it is to have another.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.harness import REPOSITORY

RESULTS: Final = REPOSITORY / "benchmarks" / "RESULTS.md"

_REFERENCE = re.compile(r"^<!-- results (\{.*\}) -->$")
_CELLS = re.compile(r"(?<!\\)\|")


class ResultTable(NamedTuple):
    """A table of Markdown.

    Attributes:
        columns: names of the columns.
        alignment: cells of the line below them.
        rows: cells of each row, as many as columns.
    """

    columns: list[str]
    alignment: list[str]
    rows: list[list[str]]


class UnknownResult(Exception):
    """What a page refers to is not in the results."""


def tables(part: str, results: str) -> list[ResultTable]:
    """Return the tables below a heading, up to the next heading of that level or a higher level.

    Raises:
        UnknownResult: if there is no such heading.
    """
    match = re.search(rf"^(#+) {re.escape(part)}$", results, re.MULTILINE)
    if match is None:
        raise UnknownResult(f"no part {part!r} in the results")
    level = len(match[1])
    text = re.split(rf"^#{{1,{level}}} ", results[match.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    return [_table(lines) for lines in _blocks(text)]


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each table of a text."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            yield lines
            lines = []


def _table(lines: Sequence[str]) -> ResultTable:
    columns, alignment, *rows = [
        [cell.strip() for cell in _CELLS.split(line.strip()[1:-1])] for line in lines
    ]
    return ResultTable(columns, alignment, rows)


def extract(reference: Mapping[str, Any], results: str) -> str:
    """Return the rows and columns that *reference* names, as a table of Markdown without a last line break.

    Raises:
        UnknownResult: if the results have no such part, column or row, or several rows of that name.
    """
    part, columns = reference["part"], reference["columns"]
    candidates = [table for table in tables(part, results) if set(columns) <= {*table.columns}]
    if not candidates:
        raise UnknownResult(f"no table of {part!r} has the columns {', '.join(map(repr, columns))}")
    prefixes = [[name] if isinstance(name, str) else name for name in reference["rows"]]
    matches = [[_matching(table, prefix) for prefix in prefixes] for table in candidates]
    rows, table = next(
        ((rows, table) for rows, table in zip(matches, candidates, strict=True) if all(rows)),
        (matches[0], candidates[0]),
    )
    for prefix, matching in zip(prefixes, rows, strict=True):
        if len(matching) != 1:
            raise UnknownResult(f"{len(matching)} rows of {part!r} begin with {prefix}, not 1")
    numbers = [table.columns.index(column) for column in columns]
    chosen = [[row[number] for number in numbers] for [row] in rows]
    names = [reference.get("first", columns[0]), *columns[1:]]
    lines = [names, [table.alignment[number] for number in numbers], *chosen]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def _matching(table: ResultTable, prefix: Sequence[str | None]) -> list[list[str]]:
    """Return the rows that begin with the cells of *prefix*; None is any cell."""
    return [
        row
        for row in table.rows
        if all(cell in (None, value) for cell, value in zip(prefix, row, strict=False))
    ]


def fill(page: str, results: str) -> str:
    """Return *page* with the table below each reference as the results have it."""
    lines: list[str] = []
    in_extract = False  # whether lines of a table are those of a reference
    for line in page.splitlines():
        if in_extract and line.startswith("|"):
            continue
        in_extract = False
        lines.append(line)
        if (match := _REFERENCE.match(line)) is not None:
            lines += extract(json.loads(match[1]), results).splitlines()
            in_extract = True
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the tables of the pages that the command line names."""
    results = RESULTS.read_text(encoding="utf-8")
    for path in map(Path, sys.argv[1:]):
        path.write_text(fill(path.read_text(encoding="utf-8"), results), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
