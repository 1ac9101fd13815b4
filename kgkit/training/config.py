"""How to train: the settings of the loop. Nothing here loads torch before it is called."""

import math
from dataclasses import dataclass
from typing import Final, Literal

from kgkit.errors import UsageError
from kgkit.ranges import check_range

LARGEST_SEED: Final = 2**32 - 1
"""The largest seed that NumPy takes."""


def check_seed(seed: int, count: int = 1) -> None:
    """Make sure that a seed is one that NumPy takes, and so are those that follow it.

    Args:
        seed: first seed.
        count: number of seeds, each greater by 1 than the one before.

    Raises:
        UsageError: if not.
    """
    if not 0 <= seed <= LARGEST_SEED + 1 - count:
        each = f", as there are {count} of them, one after the other" if count > 1 else ""
        raise UsageError(f"seed is {seed}; it is from 0 to {LARGEST_SEED + 1 - count}{each}")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train. Learning rates are the optimizers': they are the peaks that the schedule leads to."""

    epochs: int = 1
    steps: int | None = None  # instead of epochs
    schedule: Literal["linear", "cosine", "one-cycle", "constant"] = "linear"  # see `rate`
    warmup: float = 0.1  # of the steps, in [0, 1): while the rate grows
    clip: float | None = 1.0  # longest gradient, of all parameters together; None: any
    bf16: bool | Literal["auto"] = "auto"  # products in bfloat16; auto: where the device is made for it
    device: str = "auto"
    seed: int = 0  # of dropout and the like
    patience: int = 0  # stop after so many evaluations in a row without a gain; 0: never
    checkpoint_seconds: float = 600.0
    curve_every: int = 10  # steps

    def __post_init__(self) -> None:
        check_range(self, "epochs", "steps", "curve_every", least=1)
        check_seed(self.seed)
        if not 0 <= self.warmup < 1:
            raise UsageError(f"warmup is {self.warmup}; it is a part of the steps, at least 0 and below 1")
        if self.clip is not None and self.clip <= 0:
            raise UsageError(f"clip is {self.clip}; it is above 0, or None")
        if self.schedule not in (schedules := ("linear", "cosine", "one-cycle", "constant")):
            raise UsageError(f"schedule is {self.schedule!r}; it is one of {', '.join(schedules)}")

    def rate(self, step: int, total: int) -> float:
        """Return what to multiply the learning rates with in the step after *step* of *total*.

        linear, cosine: up to 1 in a line, then down towards 0 in a line, or half a wave. constant: up, and it
        stays. one-cycle (Smith and Topin 2018): half a wave from 1/25 up to 1, another down to 1/250,000.

        Departures:
            One-cycle leaves momentum alone: most of what is trained here is trained by Adam.
        """
        rising = round(self.warmup * total)
        if step < rising:
            if self.schedule == "one-cycle":
                return 1 - 24 / 25 * _wave(step / rising)
            return (step + 1) / (rising + 1)  # no step is lost to a rate of 0, the first or the last
        passed = (step - rising) / max(total - rising, 1)  # in [0, 1)
        if self.schedule == "linear":
            return 1 - passed
        if self.schedule == "constant":
            return 1.0
        low = 0.0 if self.schedule == "cosine" else 1 / 250_000
        return low + (1 - low) * _wave(passed)


def _wave(part: float) -> float:
    return (1 + math.cos(math.pi * part)) / 2
