"""A column of names, pasted or uploaded: parsed, reconciled, and written as CSV."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kgkit.errors import SourceError
from kgkit.linking.name_columns import added_columns, match_cells
from kgkit.linking.reconciler import NameMatch, ReconcileConfig
from kgkit.serving.problems import Problem
from kgkit.tables import csv_cell, csv_line, csv_rows_of

__all__ = ["LAYOUTS", "ColumnTable", "read_table", "table_csv"]

LAYOUTS: Final = (("lines", "one name a line"), ("table", "CSV or TSV, with a header"))
"""How a pasted text is read."""

PREFIX: Final = "kb_"
"""Beginning of the names of the new columns, where the table has columns of these names already."""


@dataclass(frozen=True, kw_only=True)
class ColumnTable:
    """A table with a column of names.

    Attributes:
        columns: names of the columns.
        rows: cells of each row.
        position: position of the column of names.
    """

    columns: Sequence[str]
    rows: list[list[str]]
    position: int

    @property
    def names(self) -> list[str | None]:
        """Names of the column; None for an empty cell."""
        return [row[self.position].strip() or None for row in self.rows]


def read_table(text: str, layout: str, column: str, most: int) -> ColumnTable:
    """Return the table of a text.

    Args:
        text: names or a table.
        layout: `lines` or `table`.
        column: name of the column of names; empty for the first one.
        most: largest number of rows.

    Raises:
        Problem: if it is no table, has no such column, or has more rows.
    """
    if layout == "lines":
        names = text.rstrip().split("\n") if text.strip() else []
        table = ColumnTable(columns=["name"], rows=[[name] for name in names], position=0)
    elif layout == "table":
        rows = _table_rows(text, most)
        columns = next(rows, [])
        if column and column not in columns:
            raise Problem(
                422, f"no column {column[:80]!r}; there are: {', '.join(columns)[:400]}", field="column"
            )
        position = columns.index(column) if column else 0
        table = ColumnTable(columns=columns, rows=[*rows], position=position)
    else:
        raise Problem(422, f"layout is {layout[:40]!r}; it is 'lines' or 'table'", field="layout")
    if len(table.rows) > most:
        raise Problem(
            413, f"the column has more than {most:,} names", field="names",
            remedy=f"send {most:,} at most; `kgkit reconcile` takes a file of any length",
        )  # fmt: skip
    if not table.rows:
        remedy = "paste names, one in each line, or choose a file"
        raise Problem(422, "there is no name", field="names", remedy=remedy)
    return table


def _table_rows(text: str, most: int) -> Iterator[list[str]]:
    """Yield the rows of CSV or TSV, the header first, one more than *most* at the most."""
    content = io.BytesIO(text.encode("utf-8", "replace"))
    try:
        for _, row in islice(csv_rows_of(content), most + 2):
            yield row
    except SourceError as error:
        where = "" if error.line is None else f"line {error.line:,}: "
        raise Problem(422, f"{where}{error.message}", title="no table", field="names") from None


def table_csv(table: ColumnTable, matches: Sequence[NameMatch], top: int) -> str:
    """Return a table as CSV with the columns `key`, `label`, `score` and `match`.

    Args:
        table: table with its column of names.
        matches: match of each row.
        top: number of candidates of each name that have columns.
    """
    config = ReconcileConfig(top=top)
    clashes = set(added_columns([], config)) & set(table.columns)
    columns = added_columns(table.columns, config, PREFIX if clashes else "")
    lines = [csv_line([*table.columns, *columns])]
    for row, match in zip(table.rows, matches, strict=True):
        lines.append(csv_line([*row, *map(csv_cell, match_cells(match, top))]))
    return "".join(lines)
