"""What a line of the benchmarks on a GPU is: a function that yields rows, in a process of its own.

The process that starts the lines imports none of the measured libraries: a line's function imports what it
needs. Rows are written as they are measured, so that a line which is stopped at its limit keeps those it has.
"""

import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.harness import JobFailed, call, run
from benchmarks.report import Table, figures

MODULES: Final = ("heads", "vectors")
"""The modules of `benchmarks.gpu` that register lines."""

COLUMNS: Final = ("", "measured", "control", "over control", "GPU memory, MB", "")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a line is measured with.

    Attributes:
        device: torch's name of it.
        small: tiny sizes, to try the line on a CPU.
        home: folder with knowledge bases; empty: none, stand-ins are made.
        data: folder with data sets, which may be missing.
        scratch: folder for what is made on the way.
        wordnet: folder with WordNet's database files, for lines that need it where no home has it; or empty.
        limit: seconds that the line may take.
    """

    device: str
    small: bool
    scratch: str
    home: str = ""
    data: str = ""
    wordnet: str = ""
    limit: float = 600.0

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device != "cpu"

    @property
    def name(self) -> str:
        """The device as tables name it."""
        return "GPU" if self.on_gpu else "CPU"

    def size(self, full: int, small: int) -> int:
        """Return a size as it is, or that of a trial."""
        return small if self.small else full


@dataclass(frozen=True, kw_only=True)
class Row:
    """A figure beside its control.

    Attributes:
        what: what was measured.
        value: the figure, None if there is none: the note says why.
        unit: of it and of the control's: `ms`, `texts/s`, …
        control: what it is compared with.
        control_value: figure of the control.
        memory: bytes of the device's memory that it took at most, beside what was there before.
        note: Markdown.
    """

    what: str
    value: float | None = None
    unit: str = ""
    control: str = ""
    control_value: float | None = None
    memory: int | None = None
    note: str = ""

    def cells(self) -> list[str]:
        """Return the cells of the table's row."""
        ratio, control = "", self.control
        if self.control_value:
            control = f"{self.control}: {figures(self.control_value)} {self.unit}"
            ratio = "" if self.value is None else f"{figures(self.value / self.control_value)} ×"
        value = "–" if self.value is None else f"{figures(self.value)} {self.unit}"
        memory = "" if self.memory is None else f"{self.memory / 1e6:,.0f}"
        return [self.what, value, control, ratio, memory, self.note.replace("|", "/")]


Measure = Callable[[Setting], Iterator[Row]]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the benchmarks.

    Attributes:
        name: what `--only` takes.
        title: of its table.
        notes: above the table, in paragraphs.
        limit: seconds after which it is stopped.
        order: lines are measured in this order, and the last are left out where time is short.
        needs: modules that it imports.
        stand_ins: whether it reads the knowledge base that `stand_ins.make` makes.
        function: `module:function`.
    """

    name: str
    title: str
    notes: str
    limit: float
    order: int
    needs: tuple[str, ...]
    stand_ins: bool
    function: str

    def missing(self) -> list[str]:
        """Return the modules that it needs and that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


_LINES: Final[dict[str, Line]] = {}


def line(
    name: str,
    title: str,
    *,
    limit: float,
    order: int,
    notes: str = "",
    needs: Sequence[str] = ("torch",),
    stand_ins: bool = False,
) -> Callable[[Measure], Measure]:
    """Register a function that yields the rows of a line: see `Line`."""

    def register(function: Measure) -> Measure:
        where = f"{function.__module__}:{function.__name__}"
        _LINES[name] = Line(
            name=name, title=title, notes=notes, limit=limit, order=order, needs=tuple(needs),
            stand_ins=stand_ins, function=where,
        )  # fmt: skip
        return function

    return register


def registered_lines() -> list[Line]:
    """Return all lines, the most important first."""
    for module in MODULES:
        importlib.import_module(f"benchmarks.gpu.{module}")
    return sorted(_LINES.values(), key=lambda each: each.order)


# -- in the measured process ------------------------------------------------


def measure(function: str, rows: str, setting: dict[str, object]) -> None:
    """Write the rows of a line to a file, a line of JSON each, as they come."""
    module, _, name = function.partition(":")
    measured: Measure = getattr(importlib.import_module(module), name)
    with Path(rows).open("w", encoding="utf-8") as out:
        for row in measured(Setting(**setting)):  # type: ignore[arg-type]
            out.write(json.dumps(asdict(row)) + "\n")
            out.flush()


def attempt(what: str, measured: Callable[[], Row]) -> Row:
    """Return the row that is measured, or, where that fails, one that says why: the next may do."""
    try:
        return measured()
    except Exception as error:  # noqa: BLE001  whatever a driver, a compiler or a package may raise
        return Row(what=what, note=f"not measured: {reason_of(error)}")


def reason_of(error: BaseException) -> str:
    """Return the first line of an error, short enough for a table."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:200]


# -- in the process that starts them ----------------------------------------


def rows_of(measured: Line, setting: Setting, limit: float) -> list[Row]:
    """Measure a line in a process of its own, and return its rows; the last says what went wrong, if it did.

    Args:
        measured: line.
        setting: what it is measured with.
        limit: seconds that it may take.
    """
    if missing := measured.missing():
        return [Row(what=measured.title, note=f"not measured: not installed: {', '.join(missing)}")]
    path = Path(setting.scratch) / f"{measured.name}.rows"
    threads = "1" if setting.small else str(os.cpu_count() or 1)
    variables = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), threads)
    variables |= {"TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1"}
    arguments = {
        "function": measured.function,
        "rows": path,
        "setting": asdict(replace(setting, limit=limit)),
    }
    failed = None
    try:
        run(call(measured.name, "benchmarks.gpu.lines:measure", arguments, variables, limit=limit))
    except JobFailed as error:
        failed = Row(what="the rest", note=f"not measured: {last_line(str(error))}")
    written = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [Row(**json.loads(each)) for each in written if each.endswith("}")]
    return [*rows, failed] if failed else rows


def last_line(error: str) -> str:
    """Return the last line of what a process wrote, which names its error."""
    return ([each.strip() for each in error.splitlines() if each.strip()] or [""])[-1][:300]


def table_of(measured: Line, rows: Sequence[Row]) -> Table:
    """Return the table of a line."""
    cells = [row.cells() for row in rows]
    return Table(title=f"(u) {measured.title}", notes=measured.notes, columns=COLUMNS, rows=cells)
