"""The options of commands that read corpora. Loads nothing that a help would wait for."""

from typing import Annotated, Literal

import typer

from kgkit.commands.options import flag

WorkersOption = Annotated[
    int,
    typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="Processes that work on chunks of the documents; the output has their order.",
    ),
]
ResumeOption = Annotated[
    bool, flag("--resume", help="Go on where a run into the same file was stopped, whatever stopped it.")
]
BadOption = Annotated[
    Literal["stop", "skip"],
    typer.Option(
        "--bad",
        help="What a record that cannot be read does: stop with an error, or be left out and listed (skip).",
    ),
]
