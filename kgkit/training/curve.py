"""How a training went: its state, and the curves of loss and metrics that it writes.

    curve.jsonl     a line for every `curve_every` steps: step, epoch, loss (the mean since the line before),
                    norm (of the gradients, before clipping), lr (of each group of parameters), seconds;
                    and one for each evaluation: step, epoch, what `evaluate` returned

A line is written as soon as its numbers exist, so that the curve of a running training can be looked at.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kgkit.files import replacing
from kgkit.versions import write_failures

CURVE: Final = "curve.jsonl"


@dataclass
class TrainingState:
    """How a training went, as far as it has gone.

    Attributes:
        steps: done.
        evaluations: each with `step`, `epoch`, and what `evaluate` returned.
        best: the best of them; None if there was none.
        stopped: whether patience ended it.
        seconds: of wall-clock time, in all runs.
    """

    steps: int = 0
    evaluations: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, float] | None = None
    stopped: bool = False
    seconds: float = 0.0
    waited: int = 0  # evaluations since the last gain
    losses: list[float] = field(default_factory=list)  # since the last line of the curve
    lines: int = 0  # of the curve


class Curve:
    """Writes the curve in a folder.

    Args:
        folder: there already.
        keep: number of lines of an existing curve that stay: those that the checkpoint counts.

    Raises:
        WriteFailed: if the disk refuses; so does `add`.
    """

    def __init__(self, folder: Path, keep: int = 0) -> None:
        path = folder / CURVE
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:keep] if path.exists() else []
        with write_failures(folder), replacing(path) as new:
            new.write_text("".join(lines), encoding="utf-8")
        self.folder, self.lines = folder, len(lines)
        self._file = path.open("a", encoding="utf-8")

    def add(self, step: int, **values: Any) -> None:
        """Write a line: numbers, or lists of them."""
        with write_failures(self.folder):
            self._file.write(json.dumps({"step": step, **values}) + "\n")
            self._file.flush()
        self.lines += 1

    def close(self) -> None:
        """Close the files."""
        with write_failures(self.folder):  # what could not be written is tried again
            self._file.close()
