"""What goes to standard error: messages, progress, errors."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from kgkit.commands.output import printable
from kgkit.errors import NotThere, UsageError

if TYPE_CHECKING:
    from kgkit.candidates.memory import Omissions


class ProgressCallback(Protocol):
    """Takes one line on how far the work is; may be called as often as it suits."""

    def __call__(self, text: str, count: int = 0, total: int = 0) -> None:
        """Show a line, and the time that is left where that is known.

        Args:
            text: text of the line.
            count: number of items that are done; 0: there is nothing to count.
            total: number of items that there are to be; 0: unknown.
        """


_SECONDS_ON_TERMINAL = 0.05
_SECONDS_IN_LOG = 30.0
_MAX_EXAMPLES = 3  # surfaces, of many


@dataclass(frozen=True, kw_only=True)
class Messages:
    """What a command writes apart from its result.

    Attributes:
        quiet: say nothing but errors; set for all commands at once.
        bars: show progress, if standard error is a terminal.
    """

    quiet: ClassVar[bool] = False
    bars: bool = True

    def write(self, text: str) -> None:
        """Write one line, unless the user wants quiet."""
        if not self.quiet:
            write_line(text)

    def write_dropped(self, dropped: Mapping[str, int], examples: Mapping[str, Sequence[str]]) -> None:
        """Write a line for each reason why records could not be kept, with some of these."""
        for reason, count in dropped.items():
            shown = "; ".join(examples.get(reason, ()))
            self.write(f"dropped: {count:,} × {reason}" + (f": {shown}" if shown else ""))

    def write_omissions(self, surfaces: "Iterable[Omissions]") -> None:
        """Write a line, if generators left out surfaces by their spelling, with some of these.

        Function words, and surfaces that are hardly ever links, are not counted: every text has some.
        """
        examples: list[str] = []
        count, lower_bound = 0, ""
        for of_generator in surfaces:
            count += len(of_generator)
            examples += of_generator
            lower_bound = "more than " if of_generator.full else lower_bound
        if count:
            subject = "surface in lower case was" if count == 1 else "surfaces in lower case were"
            listed = ", ".join(examples[:_MAX_EXAMPLES]) + (", …" if count > _MAX_EXAMPLES else "")
            pronoun = "it" if count == 1 else "them"
            self.write(
                f"{lower_bound}{count:,} {subject} left out ({listed}): "
                f"a knowledge base writes {pronoun} with capitals; "
                f"an alias in lower case, or `kgkit link --mentions all`, brings {pronoun} back"
            )

    @contextmanager
    def progress(self, title: str) -> Iterator[ProgressCallback]:
        """Show a line with the progress of the block, and write the warnings of the library.

        Where standard error is no terminal, a line is written every half minute.
        """
        with self._warnings(), self._line(title) as tell:
            yield tell

    @contextmanager
    def _warnings(self) -> Iterator[None]:
        import logging  # here: two milliseconds

        write, written = self.write, set[str]()

        class Handler(logging.Handler):
            """Handler that writes the warnings of libraries as messages, each once."""

            def emit(self, record: logging.LogRecord) -> None:
                if (text := record.getMessage()) not in written:
                    written.add(text)
                    write(f"warning: {text}")

        handler = Handler(logging.WARNING)
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)

    @contextmanager
    def _line(self, title: str) -> Iterator[ProgressCallback]:
        if self.quiet or not self.bars:
            yield _ignore
            return
        if not sys.stderr.isatty():
            yield _write_periodically(title)
            return
        from rich.console import Console
        from rich.progress import (
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(),
            TimeRemainingColumn(),
        )  # fmt: skip
        # Transient: what remains on the screen is the result.
        with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as shown:
            task, due = shown.add_task(printable(title), total=None), 0.0

            def tell(text: str, count: int = 0, total: int = 0) -> None:
                """Show *text* on the line of the terminal, unless another was shown shortly before."""
                nonlocal due
                if (now := time.monotonic()) >= due:
                    due = now + _SECONDS_ON_TERMINAL
                    shown.tasks[0].total = total or None
                    shown.update(task, description=printable(f"{title}: {text}"), completed=count)

            yield tell


def _write_periodically(title: str) -> ProgressCallback:
    """Return a callback that writes a line every half minute: a log of a long build must show progress."""
    due = time.monotonic() + _SECONDS_IN_LOG

    def tell(text: str, count: int = 0, total: int = 0) -> None:
        """Write a line, unless another was written shortly before."""
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + _SECONDS_IN_LOG
            write_line(f"{title}: {text}")

    return tell


def report(error: Exception) -> int:
    """Write in one sentence what went wrong and return the exit code."""
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        write_line(f"error: {where}{error.strerror or error}")
        return 1
    write_line(f"error: {error}")
    return 3 if isinstance(error, NotThere) else 2 if isinstance(error, UsageError) else 1


def report_usage(message: str, command: str) -> None:
    """Write what is wrong with a command line, in the form of our other errors."""
    sentence = " ".join(message.split()).rstrip(".")
    write_line(f"error: {sentence[:1].lower()}{sentence[1:]}; see `{command} --help`")


def write_line(text: str) -> None:
    """Write a line to standard error, whatever it can encode, without what a terminal would obey."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(printable(text).encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stderr.flush()


def _ignore(text: str, count: int = 0, total: int = 0) -> None:
    """Write nothing."""
