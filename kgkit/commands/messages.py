"""What goes to standard error: messages, progress, errors."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
        """Show a line, with the rate, and the time that is left where that is known.

        Args:
            text: text of the line.
            count: number of items that are done; 0: there is nothing to count.
            total: number of items that there are to be; 0: unknown.
        """


_JOINT = "\0"  # stands for a blank at which no line ends
_SECONDS_ON_TERMINAL = 0.05
_SECONDS_IN_LOG = 30.0
_SECONDS_TO_MEASURE = 2.0
_FAST = 100  # items a second, from which on their rate has no fraction
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

        write = self.write

        class Handler(logging.Handler):
            """Handler that writes the warnings of libraries as messages."""

            def emit(self, record: logging.LogRecord) -> None:
                write(f"warning: {record.getMessage()}")

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
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        # Transient: what remains on the screen is the result.
        with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as shown:
            task, due, pace = shown.add_task(printable(title)), 0.0, Pace()

            def tell(text: str, count: int = 0, total: int = 0) -> None:
                """Show *text* on the line of the terminal, unless another was shown shortly before."""
                nonlocal due
                if (now := time.monotonic()) >= due:
                    due = now + _SECONDS_ON_TERMINAL
                    line = f"{title}: {text}{pace.describe(count, total)}"
                    shown.update(task, description=printable(line))

            yield tell


class Pace:
    """The rate at which the items of a stage are done, and how long the rest of them takes.

    A stage begins where another total is told, or a smaller count.

    Args:
        clock: function that returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin, self._first, self._last, self._total = clock(), 0, 0, -1

    def describe(self, count: int, total: int = 0) -> str:
        """Return the rate and the time that is left, to stand behind a line; empty in the first seconds."""
        now = self._clock()
        if total != self._total or count < self._last:
            self._begin, self._first, self._total = now, count, total
        self._last = count
        seconds, items = now - self._begin, count - self._first
        if seconds < _SECONDS_TO_MEASURE or not items:
            return ""
        rate = items / seconds
        shown = f"{rate:,.0f}/s" if rate >= _FAST else f"{rate:.1f}/s"
        if rate < 1:
            shown = f"{1 / rate:.1f} s each"
        remaining = f", {format_duration((total - count) / rate)} left" if total > count else ""
        return f" ({shown}{remaining})"


def format_duration(seconds: float) -> str:
    """Return a duration for people: `45 s`, `12 min`, `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _write_periodically(title: str) -> ProgressCallback:
    """Return a callback that writes a line every half minute: a log of a long build must show progress."""
    due, pace = time.monotonic() + _SECONDS_IN_LOG, Pace()

    def tell(text: str, count: int = 0, total: int = 0) -> None:
        """Write a line, unless another was written shortly before."""
        nonlocal due
        described = pace.describe(count, total)
        if (now := time.monotonic()) >= due:
            due = now + _SECONDS_IN_LOG
            write_line(f"{title}: {text}{described}")

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
    text = printable(text)
    if sys.stderr.isatty():
        text = wrap_words(text, shutil.get_terminal_size().columns)
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stderr.flush()


def wrap_words(text: str, width: int) -> str:
    """Return a text with line ends between its words, so that a terminal breaks none of them.

    A command in backticks stands on one line where it fits, to be copied.

    Args:
        text: one line or several, each of which keeps its indentation.
        width: number of columns; a word that is wider stays as it is.
    """
    import textwrap  # here: a millisecond

    def join_words(command: "re.Match[str]") -> str:
        return command[0].replace(" ", _JOINT) if len(command[0]) <= width else command[0]

    lines = []
    for line in re.sub(r"`[^`]*`", join_words, text).split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line, max(width, len(indent) + 1), subsequent_indent=indent, expand_tabs=False,
            replace_whitespace=False, break_long_words=False, break_on_hyphens=False,
        ) or [line]  # fmt: skip
    return "\n".join(lines).replace(_JOINT, " ")


def _ignore(text: str, count: int = 0, total: int = 0) -> None:
    """Write nothing."""
