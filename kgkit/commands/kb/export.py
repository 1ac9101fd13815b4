"""`kgkit kb export`: a knowledge base as a file of another program."""

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from kgkit.commands.completion import complete_kb
from kgkit.commands.messages import Messages
from kgkit.commands.output import write_bytes
from kgkit.errors import UsageError

FORMATS: Final = ("graphml", "jsonl", "kgtk", "neo4j", "ntriples", "tsv", "turtle", "wn-lmf")
"""As the help lists them; a test compares them with those there are."""

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"One of {', '.join(FORMATS)}; by default chosen by the name of the file.",
    ),
]


def export(
    name: Annotated[
        str, typer.Argument(metavar="KB", autocompletion=complete_kb, help="NAME or NAME@BUILD.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write; `-` is standard output; of neo4j a folder.",
        ),
    ],
    format: FormatOption = None,
) -> None:
    """Write a knowledge base in the format of another program.

    `kgkit kb import` reads it back; for tsv and wn-lmf a message names what is lost.
    """
    from kgkit.exchange.exporting import check_target, chosen_format, export_kb, losses_of
    from kgkit.kb import open_kb

    messages = Messages()
    to_stdout = str(output) == "-"
    if to_stdout and format is None:
        raise UsageError(f"to standard output in which format? --format FORMAT, one of {', '.join(FORMATS)}")
    file_format = chosen_format(output, format)
    if to_stdout and file_format.folder:
        raise UsageError(f"{file_format.title} is a folder of files: name one with --output")
    if not to_stdout:
        check_target(output, file_format)
    began = time.monotonic()
    with (
        open_kb(name, verify=True) as kb,
        messages.progress(f"writing {file_format.title}") as tell,
    ):
        if losses := losses_of(file_format, kb):
            messages.write(f"{file_format.title} does not carry: {'; '.join(losses)}")
        if to_stdout:
            from kgkit.building.records import StoredRecords

            for content in file_format.files(StoredRecords(kb))[""]:
                write_bytes(content)
        else:
            export_kb(kb, output, format=format, progress=lambda _, count, __: tell(f"{count / 1e6:,.0f} MB"))
    if not to_stdout:
        messages.write(f"wrote {name} as {file_format.title} in {time.monotonic() - began:.1f} s: {output}")
