"""Views of a column of names: reconciled as a page, and as a file to download."""

from dataclasses import asdict, dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, File, Form, UploadFile
from fastapi.responses import RedirectResponse, Response

from kgkit.errors import KgkitError
from kgkit.linking.reconciler import NameMatch
from kgkit.serving.forms import parse_number
from kgkit.serving.page.addresses import address, fits_address
from kgkit.serving.page.column_tables import LAYOUTS, ColumnTable, read_table, table_csv
from kgkit.serving.page.inputs import kb_name
from kgkit.serving.page.rendering import render
from kgkit.serving.problems import Problem, problem_of
from kgkit.serving.service import Service

_ROWS: Final = 10  # of the table on the page that take as long as a name
CANDIDATES: Final = 3
THRESHOLD: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class ColumnForm:
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
    kind: str = ""
    threshold: str = ""


async def posted_form(
    names: Annotated[str, Form()] = "",
    layout: Annotated[str, Form()] = "lines",
    column: Annotated[str, Form()] = "",
    kb: Annotated[str, Form()] = "",
    kind: Annotated[str, Form()] = "",
    threshold: Annotated[str, Form()] = "",
    file: Annotated[UploadFile | None, File()] = None,
) -> ColumnForm:
    """Return the fields of a posted form; a file stands for a table in their place.

    Raises:
        Problem: if the file is no text in UTF-8.
    """
    names = names.replace("\r\n", "\n")
    if file is not None and file.filename:
        layout = "lines" if file.filename.lower().endswith(".txt") else "table"
        try:
            names = (await file.read()).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Problem(
                422, "the file is no text in UTF-8", field="file", remedy="save it as CSV in UTF-8"
            ) from None
    return ColumnForm(
        names=names, layout=layout, column=column, kb=kb, kind=kind.strip(), threshold=threshold
    )


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the views of a column to a router."""

    @routes.get("/column")
    async def show_column(
        names: str = "",
        layout: str = "lines",
        column: str = "",
        kb: str = "",
        kind: str = "",
        threshold: str = "",
    ) -> Response:
        """Show a form, and what the names of its column mean."""
        fields = ColumnForm(names=names, layout=layout, column=column, kb=kb, kind=kind, threshold=threshold)
        return await _page(service, fields)

    @routes.post("/column")
    async def post_column(fields: Annotated[ColumnForm, Depends(posted_form)]) -> Response:
        """Lead to the address of a column, or show it where it is too long for an address."""
        target = address("/column", **asdict(fields))
        if fields.names.strip() and fits_address(target):
            return RedirectResponse(target, status_code=303)
        return await _page(service, fields)

    @routes.post("/column.csv")
    async def download_column(fields: Annotated[ColumnForm, Depends(posted_form)]) -> Response:
        """Return the table with the columns that were added, as CSV."""
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
        hidden_fields=asdict(fields),
    )  # fmt: skip


async def _matches(service: Service, fields: ColumnForm, kb: str) -> tuple[ColumnTable, list[NameMatch]]:
    """Return the table of a form, and what its names mean."""
    threshold = parse_number("threshold", fields.threshold)
    table = await service.call(read_table, fields.names, fields.layout, fields.column, service.limits.names)
    matches = await service.call_weighed(
        len(table.names),
        service.reconcile,
        table.names,
        kb,
        kind=fields.kind or None,
        k=CANDIDATES,
        threshold=THRESHOLD if threshold is None else threshold,
    )
    return table, matches
