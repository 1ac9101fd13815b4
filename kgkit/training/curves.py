"""What a training has beside its loop: settings, batches, the curves that come of it.

    curve.jsonl     a line for every `curve_every` steps: step, epoch, loss (the mean since the line before),
                    norm (of the gradients, before clipping), lr (of each group of parameters), seconds;
                    and one for each evaluation: step, epoch, what `evaluate` returned
    tensorboard/    the same, if it was asked for

A line is written when it is known, so that the curve of a running training can be looked at.
Nothing here loads torch before it is called.
"""

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import MissingExtra, UsageError
from kgkit.training.resuming import replace

if TYPE_CHECKING:
    import torch

CURVE: Final = "curve.jsonl"
TENSORBOARD: Final = "tensorboard"

POOL: Final = 50
"""Batches that are drawn together, at most, and then made of items of like lengths."""

_POOLS: Final = 8  # of an epoch at least: of few texts batches would be the same each time, or of one label


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train. Learning rates are the optimizers': they are the peaks that the schedule leads to."""

    epochs: int = 1
    steps: int | None = None  # instead of epochs
    schedule: Literal["linear", "cosine", "one-cycle", "constant"] = "linear"  # see `rate`
    warmup: float = 0.1  # of the steps, in [0, 1): while the rate grows
    accumulate: int = 1  # batches of a process in a step
    clip: float | None = 1.0  # longest gradient, of all parameters together; None: any
    bf16: bool | Literal["auto"] = "auto"  # products in bfloat16; auto: where the device is made for it
    device: str = "auto"  # several processes have those that `accelerate launch` gives them
    seed: int = 0  # of dropout and the like
    evaluate_every: int | None = None  # steps; None: after each epoch; and at the end in any case
    patience: int = 0  # stop after so many evaluations in a row without a gain; 0: never
    min_gain: float = 0.0  # a smaller one is kept as the best, but buys no more time
    keep_best: bool = True  # end with the weights of the best evaluation, not the last
    checkpoint_seconds: float = 600.0
    curve_every: int = 10  # steps
    tensorboard: bool = False  # curves for it too

    def __post_init__(self) -> None:
        for name in ("epochs", "steps", "accumulate", "evaluate_every", "curve_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}; it is 1 or more")
        if not 0 <= self.warmup < 1:
            raise UsageError(f"warmup is {self.warmup}; it is a part of the steps, at least 0 and below 1")
        if self.clip is not None and self.clip <= 0:
            raise UsageError(f"clip is {self.clip}; it is above 0, or None")
        if self.schedule not in (known := ("linear", "cosine", "one-cycle", "constant")):
            raise UsageError(f"schedule is {self.schedule!r}; it is one of {', '.join(known)}")

    def rate(self, done: int, total: int) -> float:
        """Return what to multiply the learning rates with in the step after *done* of *total*.

        linear, cosine: up to 1 in a line, then down towards 0 in a line, or half a wave. constant: up, and it
        stays. one-cycle (Smith and Topin 2018): half a wave from 1/25 up to 1, another down to 1/250,000.

        Departures:
            One-cycle leaves momentum alone: most of what is trained here is trained by Adam.
        """
        rising = round(self.warmup * total)
        if done < rising:
            if self.schedule == "one-cycle":
                return 1 - 24 / 25 * _wave(done / rising)
            return (done + 1) / (rising + 1)  # no step is lost to a rate of 0, the first or the last
        passed = (done - rising) / max(total - rising, 1)  # in [0, 1)
        if self.schedule == "linear":
            return 1 - passed
        if self.schedule == "constant":
            return 1.0
        low = 0.0 if self.schedule == "cosine" else 1 / 250_000
        return low + (1 - low) * _wave(passed)


class Batches(Protocol):
    """The batches of every epoch, in an order that follows from the epoch's number and a seed.

    Nothing may be drawn from the random generators of Python, NumPy or torch that everybody shares.
    """

    def __len__(self) -> int:
        """Return how many batches an epoch has."""
        ...

    def epoch(self, number: int, places: Sequence[int]) -> Iterable[Any]:
        """Give the batches at these places of the order of epoch *number* (from 0), and make no others.

        They are tensors, or lists, tuples and dictionaries of them, or have a method `to(device)`. Places
        are numbers below the length, growing; the last may come twice.
        """
        ...


@dataclass(frozen=True)
class Shuffled:
    """Items, in another order each epoch, `size` at a time; *collate* makes a batch of a list of them.

    Attributes:
        lengths: one to an item. With them the items of a batch are about as long as each other, so that
            little is padded: up to `POOL` batches are drawn together; their shortest items make one, the next
            ones another. Which items a step has then depends on `size`: two processes with half of it read
            others. Without, any items make a batch.
    """

    items: Sequence[Any]
    size: int
    collate: Callable[[list[Any]], Any]
    seed: int = 0
    lengths: Sequence[int] | None = None

    def __len__(self) -> int:
        return math.ceil(len(self.items) / self.size)

    def epoch(self, number: int, places: Sequence[int]) -> Iterator[Any]:
        drawn = np.random.default_rng([self.seed, number])
        order = drawn.permutation(len(self.items))
        if self.lengths is not None:
            order = self._alike(order, np.asarray(self.lengths), drawn)
        for place in places:
            yield self.collate([self.items[i] for i in order[place * self.size : (place + 1) * self.size]])

    def _alike(
        self, order: NDArray[np.int64], lengths: NDArray[np.int64], drawn: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return an order in which items of like lengths make a batch; one that is not full is last."""
        full = len(order) // self.size * self.size
        step = max(1, min(POOL, full // self.size // _POOLS)) * self.size
        pools = [order[begin : min(begin + step, full)] for begin in range(0, full, step)]
        alike = [pool[lengths[pool].argsort(kind="stable")] for pool in pools]
        batches = np.concatenate([*alike, order[:0]]).reshape(-1, self.size)
        return np.concatenate([drawn.permutation(batches).ravel(), order[full:]])


@dataclass
class Trained:
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
        keep: lines that stay of a curve that lies there: those that the checkpoint knows.
        step: after which a training goes on; TensorBoard forgets what came later.
        tensorboard: write for it too.

    Raises:
        MissingExtra: if it is not installed.
    """

    def __init__(self, folder: Path, keep: int = 0, step: int = 0, *, tensorboard: bool = False) -> None:
        self._board = _board(folder / TENSORBOARD, step) if tensorboard else None
        path = folder / CURVE
        known = path.read_text(encoding="utf-8").splitlines(keepends=True)[:keep] if path.exists() else []
        replace(path, lambda new: new.write_text("".join(known), encoding="utf-8"))
        self.lines = len(known)
        self._file = path.open("a", encoding="utf-8")

    def add(self, step: int, **values: Any) -> None:
        """Write a line: numbers, or lists of them."""
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        self._file.flush()
        self.lines += 1
        if self._board is not None:
            for name, value in _flat(values).items():
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def forget(folder: Path, *others: str) -> None:
    """Remove the curves in *folder*, and files of these names."""
    for name in (CURVE, *others):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / TENSORBOARD, ignore_errors=True)


def computes_bf16(wanted: bool | Literal["auto"], device: "torch.device") -> bool:
    """Say whether to multiply in bfloat16: `auto` does where the device is made for it.

    Raises:
        UsageError: if a GPU cannot; a CPU always can, if slowly.
    """
    from kgkit.encoder.encoder import _has_bf16

    if wanted is True and device.type == "cuda" and not _has_bf16(device):
        raise UsageError(f"the device {device} does not compute in bfloat16: train without bf16")
    return _has_bf16(device) if wanted == "auto" else wanted


def _wave(part: float) -> float:
    return (1 + math.cos(math.pi * part)) / 2


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("tensorboard", "train", "or train without it") from error
    return SummaryWriter(folder, purge_step=step + 1 if step else None)


def _flat(values: Mapping[str, Any]) -> dict[str, float]:
    """Give each number a name of its own: `lr` of two groups becomes `lr/0` and `lr/1`."""
    flat: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, list):
            flat |= {f"{name}/{place}": number for place, number in enumerate(value)}
        elif isinstance(value, int | float):
            flat[name] = value
    return flat
