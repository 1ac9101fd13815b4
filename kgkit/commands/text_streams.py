"""Arguments and options of commands that read texts."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import flag

STDIN: Final = Path("-")
"""What stands for standard input, and for standard output."""

TextsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="Texts; - is standard input, which is also read if none is named."),
]
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
        help="What a record that cannot be read does: stop with an error, or be left out and counted (skip).",
    ),
]


def report_terminal(files: Sequence[Path], messages: Messages) -> None:
    """Say how a text ends, where it is typed on a terminal."""
    if STDIN in files and sys.stdin.isatty():
        messages.write("reading from the terminal; Ctrl-D on a line of its own ends it")
