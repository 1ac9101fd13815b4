"""`kgkit reconcile`: a column of names to entities."""

from pathlib import Path
from typing import Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import RecentKBOption, open_chosen_kb
from kgkit.commands.output import counted
from kgkit.files import check_output_path


def reconcile(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Table: CSV, TSV, JSON lines or Parquet. May be compressed."),
    ],
    column: Annotated[
        str, typer.Option("--column", metavar="NAME", help="Column of the table that has the names.")
    ],
    kb: RecentKBOption = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", metavar="KIND", help="Only entities of this kind or type, or ATTRIBUTE=VALUE."
        ),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0, max=1, metavar="SCORE", help="Least score of a match."),
    ] = 0.5,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="K", help="Candidates of each name, with their columns.")
    ] = 1,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="Beginning of the names of the new columns.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write, instead of standard output."),
    ] = None,
) -> None:
    """Find the entities that the names in a column of a table mean, through typing errors.

    Writes the same rows, in the format of FILE, with the columns key, label, score and match.
    """
    from kgkit.commands.column_files import check_format, open_columns
    from kgkit.reconciling.columns import added_columns, added_types, check_column, match_cells
    from kgkit.reconciling.reconciler import ReconcileConfig, Reconciler

    config = ReconcileConfig(kind=kind, top=top, threshold=threshold)
    table = open_columns(file)
    check_column(column, table.columns)
    new_columns = dict(zip(added_columns(table.columns, config, prefix), added_types(top), strict=True))
    if output is not None:
        check_output_path(output, [file])
        check_format(output, table)
    messages = Messages(bars=output is not None)
    count = matches = 0
    with open_chosen_kb(kb) as base:
        reconciler = Reconciler(base, config)
        with messages.progress("reconciling") as tell, table.writer(output, new_columns) as write:
            for rows, names in table.batches(column):
                results = [*reconciler.pipe(names)]
                write(rows, [match_cells(result, top) for result in results])
                count += len(results)
                matches += sum(result.match for result in results)
                tell(f"{counted(count, 'name')}, {counted(matches, 'match')}", count)
    messages.write(f"{counted(count, 'name')}, {matches:,} of them matched")
