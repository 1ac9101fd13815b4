"""The files of commands that read texts, and write JSON lines, tables and pages of them."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import flag
from kgkit.errors import UsageError
from kgkit.files import COMPRESSIONS, check_output_path, plain_name

STDIN: Final = Path("-")
"""What stands for standard input, and for standard output."""

_WRITTEN: Final = (".jsonl", ".ndjson", ".parquet")
_SUFFIX: Final = re.compile(r"\.(?!\d+$)\w{1,8}")  # not a date or a version, nor what `mktemp` appends

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
        help="What a record that cannot be read does: stop with an error, or be left out and listed (skip).",
    ),
]


def report_terminal(files: Sequence[Path], messages: Messages) -> None:
    """Say how a text ends, where it is typed on a terminal."""
    if STDIN in files and sys.stdin.isatty():
        messages.write("reading from the terminal; Ctrl-D on a line of its own ends it")


class TextStreams(NamedTuple):
    """What a command reads, and where it writes.

    Attributes:
        files: files to read; `STDIN` is standard input.
        output: file for JSON lines; None: they go to standard output, if anywhere.
        jsonl: whether JSON lines are asked for.
    """

    files: list[Path]
    output: Path | None
    jsonl: bool


def check_streams(
    files: list[Path] | None, output: Path | None, html: Path | None, *, jsonl: bool
) -> TextStreams:
    """Return what a command reads and where it writes, with standard input where no file is named.

    Raises:
        UsageError: if standard input is named twice, or a file that is to be written cannot be, is named
            twice, is one of *files*, or has the suffix of a format that is not written.
    """
    files = files or [STDIN]
    if files.count(STDIN) > 1:
        raise UsageError("standard input can be read once only: name - once")
    if output == STDIN:
        jsonl, output = True, None
    for path in (output, html):
        if path is not None:
            check_output_path(path, files)
    if output is not None:
        _check_suffix(output)
    if output is not None and html is not None and output.resolve() == html.resolve():
        raise UsageError(f"--output and --html both name {html}; give each a file of its own")
    return TextStreams(files, output, jsonl)


def _check_suffix(output: Path) -> None:
    """Refuse a file whose suffix is of another format than those that are written.

    A name without a suffix is JSON lines; a device or a pipe may have any name.
    """
    if output.exists() and not output.is_file():
        return
    name = Path(plain_name(output.name))
    if name.suffix.lower() not in _WRITTEN and _SUFFIX.fullmatch(name.suffix):
        compressed = ", ".join(COMPRESSIONS)
        raise UsageError(
            f"{output}: links and names are not written as {name.suffix}: name a file of JSON lines (.jsonl "
            f"or .ndjson, perhaps compressed: {compressed}) or of Parquet (.parquet)"
        )
