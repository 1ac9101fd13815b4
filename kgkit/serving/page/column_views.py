"""Views of a column of names, pasted or uploaded: reconciled as a page, and as a file to download."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final

from fastapi import APIRouter, Form, Query, UploadFile
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, StringConstraints

from kgkit.errors import KgkitError, SourceError
from kgkit.reconciling.columns import added_columns, match_cells
from kgkit.reconciling.reconciler import NameMatch, ReconcileConfig
from kgkit.serving.forms import parse_number
from kgkit.serving.page.addresses import address, fits_address, kb_name
from kgkit.serving.page.rendering import render
from kgkit.serving.problems import Problem, problem_of
from kgkit.serving.service import Service
from kgkit.tables import csv_cell, csv_line, csv_rows_of

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
        for _, row in islice(csv_rows_of(content, keep_blank=True), most + 2):
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


_ROWS: Final = 10  # of the table on the page that take as long as a name
CANDIDATES: Final = 3
THRESHOLD: Final = 0.5


class ColumnForm(BaseModel):
    """The fields of the form.

    Attributes:
        names: names or a table, as text.
        layout: `lines` or `table`.
        column: name of the column of names; empty for the first one.
        kb: name of the knowledge base; empty for the first one.
        kind: kind, type or `ATTRIBUTE=VALUE` of the only entities; empty for any.
        threshold: least score of a match, as text.
    """

    names: str = ""
    layout: str = "lines"
    column: str = ""
    kb: str = ""
    kind: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    threshold: str = ""


class _PostedColumn(ColumnForm):
    """The fields of a posted form; a file stands for a table in their place."""

    file: UploadFile | None = None

    async def read(self) -> ColumnForm:
        """Return the fields, with the content of the file.

        Raises:
            Problem: if the file is no text in UTF-8.
        """
        fields = ColumnForm(**self.model_dump(exclude={"file"}))
        fields.names = fields.names.replace("\r\n", "\n")
        if self.file is not None and self.file.filename:
            fields.layout = "lines" if self.file.filename.lower().endswith(".txt") else "table"
            try:
                fields.names = (await self.file.read()).decode("utf-8-sig")
            except UnicodeDecodeError:
                raise Problem(
                    422, "the file is no text in UTF-8", field="file", remedy="save it as CSV in UTF-8"
                ) from None
        return fields


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the views of a column to a router."""

    @routes.get("/column")
    async def show_column(fields: Annotated[ColumnForm, Query()]) -> Response:
        """Show a form, and what the names of its column mean."""
        return await _page(service, fields)

    @routes.post("/column")
    async def post_column(form: Annotated[_PostedColumn, Form()]) -> Response:
        """Lead to the address of a column, or show it where it is too long for an address."""
        fields = await form.read()
        target = address("/column", **fields.model_dump())
        if fields.names.strip() and fits_address(target):
            return RedirectResponse(target, status_code=303)
        return await _page(service, fields)

    @routes.post("/column.csv")
    async def download_column(form: Annotated[_PostedColumn, Form()]) -> Response:
        """Return the table with the columns that were added, as CSV."""
        fields = await form.read()
        table, matches = await _matches(service, fields, kb_name(service, fields.kb))
        headers = {"Content-Disposition": 'attachment; filename="column.csv"'}
        content = table_csv(table, matches, CANDIDATES)
        return Response(content.encode("utf-8", "replace"), media_type="text/csv", headers=headers)


async def _page(service: Service, fields: ColumnForm) -> Response:
    name = kb_name(service, fields.kb)
    table, matches, problem = None, None, None
    if fields.names.strip():
        try:
            table, matches = await _matches(service, fields, name)
        except (KgkitError, Problem) as error:
            problem = problem_of(error, service.home)
    return await service.call_weighed(  # in a thread: of many names it takes a while
        len(matches or ()) // _ROWS, render, "column.html", "column", error=problem,
        kb_names=service.kb_names(), kb=name, fields=fields,
        layouts=LAYOUTS, table=table, matches=matches, most=service.limits.names, threshold=THRESHOLD,
        hidden_fields=fields.model_dump(),
    )  # fmt: skip


async def _matches(service: Service, fields: ColumnForm, kb: str) -> tuple[ColumnTable, list[NameMatch]]:
    """Return the table of a form, and what its names mean."""
    threshold = parse_number("threshold", fields.threshold, THRESHOLD)
    table = await service.call(read_table, fields.names, fields.layout, fields.column, service.limits.names)
    matches = await service.call_weighed(
        len(table.names),
        service.reconcile,
        table.names,
        kb,
        kind=fields.kind or None,
        k=CANDIDATES,
        threshold=threshold,
    )
    return table, matches
