"""Seconds and memory of a device, and how fast something is that reports its progress."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple


class Measured(NamedTuple):
    """What calls took.

    Attributes:
        seconds: of each counted call.
        first: seconds of the first call, which may compile, and is not counted.
        memory: bytes of the device's memory that a call took beside what was there before; None on a CPU.
    """

    seconds: list[float]
    first: float
    memory: int | None

    @property
    def median(self) -> float:
        """Seconds of the call in the middle."""
        return sorted(self.seconds)[len(self.seconds) // 2]


def synchronize(device: str) -> None:
    """Wait until the device has done all that it was given to do."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize(device)


def now(device: str) -> float:
    """Return the seconds of the clock, everything given to the device being done."""
    synchronize(device)
    return time.perf_counter()


def measure_calls(
    device: str, call: Callable[[], object], *, rounds: int, warm: int = 2, memory: bool = True
) -> Measured:
    """Call something again and again.

    Args:
        device: that it computes on.
        call: measured function.
        rounds: counted calls.
        warm: calls before them, one at least.
        memory: look at the device's memory too.
    """
    warmup = [timed(device, call) for _ in range(max(1, warm))]
    peak = peak_memory(device, call) if memory and device != "cpu" else None
    return Measured([timed(device, call) for _ in range(rounds)], warmup[0], peak)


def timed(device: str, call: Callable[[], object]) -> float:
    """Return the seconds of a call, with what it left the device to do."""
    began = now(device)
    call()
    return now(device) - began


def peak_memory(device: str, call: Callable[[], object]) -> int | None:
    """Call, and return the bytes of the device's memory that it takes beside what is there; None on a CPU."""
    if device == "cpu":
        call()
        return None
    import torch

    synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


class Enough(Exception):
    """Ends something that has been measured for long enough."""


class Pace:
    """Callback of progress that notes when the steps of a training were done, and ends it when it has enough.

    Args:
        device: device that the training is on.
        seconds: time after the first counted step when it is ended; it ends after the last step in any case.
        steps: number of steps after which it is ended.
        training: number of the training whose steps are noted, where one comes after the other, from 1.
        until: value of `time.perf_counter` after which whatever reports its progress is ended.

    Attributes:
        times: when the steps were done, from the first on.
        total: number of steps that the training has.
        stage: what was reported last.
    """

    def __init__(
        self,
        device: str,
        *,
        seconds: float = float("inf"),
        steps: int | None = None,
        training: int = 1,
        until: float = float("inf"),
    ) -> None:
        self.device, self.seconds, self.most, self.training = device, seconds, steps, training
        self.until = until
        self.total, self.stage = 0, "the beginning"
        self.times: list[float] = []  # by step, from the first
        self._number = self._completed = 0

    def __call__(self, stage: str, completed: int, total: int, /) -> None:
        """Take notice of a step."""
        self.stage = stage
        if time.perf_counter() >= self.until:
            raise Enough
        if not stage.startswith("training"):
            return
        if not self._number or completed <= self._completed:
            self._number += 1
        self._completed = completed
        if self._number != self.training:
            return
        self.total = total
        self.times.append(now(self.device))
        spent = self.times[-1] - self.times[0]
        if completed == total or spent >= self.seconds or len(self.times) == self.most:
            raise Enough

    def run(self, training: Callable[[], object]) -> "Pace":
        """Train until there is enough."""
        with suppress(Enough):
            training()
        return self

    def rate(self, first: int, last: int | None = None) -> float:
        """Return the steps a second, behind the step *first* and up to *last*, counted from 1.

        Raises:
            RuntimeError: if there were no such steps.
        """
        times = self.times[first - 1 : last]
        if len(times) < 2:
            raise RuntimeError(f"only {len(self.times)} steps were done in {self.seconds:.0f} s")
        return (len(times) - 1) / (times[-1] - times[0])
