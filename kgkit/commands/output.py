"""What goes to standard output and into files: the results.

A table is drawn on a terminal, as wide as it is; in a pipe it becomes lines
of tab-separated fields under the same headings, nothing cut. JSON is UTF-8
whatever the locale.
"""

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kgkit.errors import NotThere, UsageError

if TYPE_CHECKING:
    from rich.console import Console

Write = Callable[[bytes], object]
"""Takes the next bytes of a file."""

# White space, which breaks a line of a table, C0 and C1 but tabs and the ends of lines, and what turns the
# direction of the text behind it: none of these may
# reach a terminal from a text, a KB or a model.
_SPACE = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_GAP = 2  # columns of a terminal between two of a table
_NARROWEST = 6


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        heading: what stands above it.
        align: of its cells.
        wide: it takes the width that the others leave.
        fit: what a cell that is too long for its column does: end in …, go on below, or keep its width. Cells
            on the right, which are numbers, keep it always.
        most: its greatest width, if it has one.
    """

    heading: str
    align: Literal["left", "right"] = "left"
    wide: bool = False
    fit: Literal["cut", "wrap", "keep"] = "cut"
    most: int | None = None

    @property
    def keeps_width(self) -> bool:
        """Whether its cells are shown as they are, however narrow the terminal is."""
        return self.align == "right" or self.fit == "keep"


class TwoLines(tuple[str, str]):
    """A cell of two lines, the second of less weight; in a pipe only the first."""


def on_terminal() -> bool:
    """Return whether a person sees the results as they come."""
    return sys.stdout.isatty()


def in_pipe() -> bool:
    """Return whether another program reads the results, perhaps onto the same terminal."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False  # not a real file


def write_json(value: Any) -> None:
    """Write one JSON value, laid out for people."""
    import msgspec

    write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def write_line(text: str = "") -> None:
    """Write a line of text, as far as the locale can encode it, without what a terminal would obey."""
    encoding = sys.stdout.encoding or "utf-8"
    write_bytes(printable(text).encode(encoding, "replace") + b"\n")


def write_bytes(line: bytes) -> None:
    """Write and hand on at once, so that whoever reads the pipe need not wait."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard()  # else the flush at the end would fail, and say so, again
        raise OSError(error.errno, error.strerror, "standard output") from error


def write_table(columns: Sequence[Column], rows: Iterable[Sequence[str | TwoLines]]) -> None:
    """Draw a table on a terminal that is wide enough, else write its tab-separated lines.

    Args:
        columns: headings, and how cells fit.
        rows: cells, one for each column.
    """
    widths = None
    if on_terminal():
        rows = [*rows]
        widths = _fitting_widths(columns, rows, console().width)
    if widths is None:
        if any(column.heading for column in columns):
            write_line("\t".join(column.heading for column in columns))
        for row in rows:
            write_line("\t".join(plain(cell[0] if isinstance(cell, TwoLines) else cell) for cell in row))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.heading,
            justify=column.align,
            no_wrap=column.fit != "wrap",
            overflow="fold" if column.fit == "wrap" else "ellipsis",
            width=width,
        )
    for row in rows:
        table.add_row(
            *(
                Text.assemble(plain(cell[0]), ("\n" + plain(cell[1]), "dim"))
                if isinstance(cell, TwoLines)
                else Text(plain(cell))
                for cell in row
            )
        )
    console().print(table)


class TitledTables:
    """Draws a table for each document, under its name.

    Args:
        columns: headings, and how cells fit.
        titled: whether the names of the documents are shown.
        empty: what stands for a table without rows.
    """

    def __init__(self, columns: Sequence[Column], *, titled: bool, empty: str) -> None:
        self.columns, self.titled, self.empty = columns, titled, empty
        self.count = 0

    def write(self, title: str, rows: Iterable[Sequence[str | TwoLines]]) -> None:
        """Draw the table of a document."""
        if self.titled:
            write_line(("\n" if self.count else "") + plain(title))
        self.count += 1
        cells = [*rows]
        if cells:
            write_table(self.columns, cells)
        else:
            write_line(self.empty)


def _fitting_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str | TwoLines]], available: int
) -> list[int] | None:
    """Return the widths of the columns of a table; None if those that keep theirs leave too little room.

    A column is as wide as its longest cell; the wide one has what the others leave. Where that is too much,
    those that may be cut or wrapped lose width, the widest first.
    """
    widths = [
        _NARROWEST if each.wide else _natural_width(each, rows, index) for index, each in enumerate(columns)
    ]
    flexible = [index for index, column in enumerate(columns) if not column.keeps_width]
    excess = sum(widths) + _GAP * (len(widths) - 1) - available
    while excess > 0:
        widest = max(flexible, key=lambda index: widths[index], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            return None
        widths[widest] -= 1
        excess -= 1
    for index, column in enumerate(columns):
        if column.wide:
            widths[index] -= excess
            break
    return widths


def _natural_width(column: Column, rows: Sequence[Sequence[str | TwoLines]], index: int) -> int:
    """Return the width of the longest cell of a column, or of its heading."""
    from rich.cells import cell_len

    cells = [row[index] for row in rows]
    lines = [plain(line) for cell in cells for line in ([cell] if isinstance(cell, str) else cell)]
    longest = max(map(cell_len, [column.heading, *lines]))
    return longest if column.most is None or column.keeps_width else min(longest, column.most)


def confirm(question: str, *, yes: bool, required: bool = False) -> None:
    """Ask on a terminal whether to go on.

    Args:
        question: question that is answered with y or n.
        yes: whether the command line has answered it.
        required: whether it has to, where nobody can be asked; else that goes for a yes.

    Raises:
        typer.Exit: with the code 1 if the answer is no.
        UsageError: if nobody can be asked, and an answer is required.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if required:
            raise UsageError(f"{question} Nobody can be asked here: add --yes")
        return
    import typer

    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Exit(1)


def console() -> "Console":
    """Return rich's view of the terminal; it honours NO_COLOR and COLUMNS."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def printable(text: str) -> str:
    """Return *text* without anything that a terminal would obey, but tabs and the ends of lines."""
    return _CONTROL.sub("�", text)


def plain(text: str) -> str:
    """Return *text* on one line, without anything that a terminal would obey."""
    return printable(_SPACE.sub(" ", text))


def number(value: int) -> str:
    """Return an integer with its thousands apart; bare in a pipe, where programs read it."""
    return f"{value:,}" if on_terminal() else str(value)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 link`, `2 links`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size(value: int) -> str:
    """Return a number of bytes for people; bare in a pipe."""
    return f"{value / 1e6:,.1f} MB" if on_terminal() else str(value)


def discard() -> None:
    """Stop writing: whoever read the pipe has closed it, or its disk is full."""
    try:
        handle = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # not a real file
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)


def check_files(paths: Iterable[Path], *, instead: str = "name the files in it") -> None:
    """Refuse what is no file where files of data are wanted, before anything is read.

    Args:
        paths: the files.
        instead: what to do instead of naming a folder.

    Raises:
        UsageError: for a folder.
        NotThere: where there is nothing.
    """
    for path in paths:
        if not path.exists():
            raise NotThere(f"no file {path}")
        if path.is_dir():
            raise UsageError(f"{path} is a folder; {instead}")


def typed() -> str:
    """Return the command as it was typed, for the diary of runs."""
    import shlex

    return shlex.join(["kgkit", *sys.argv[1:]])
