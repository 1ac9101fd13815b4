"""Threads that answer requests, and how much work runs and waits there.

Work is counted by its cost, in look-ups. What nobody waits for ends at its next pause: loops that may
be long call `kgkit.pauses.pause`.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kgkit.pauses import pausing
from kgkit.serving.problems import Busy

Result = TypeVar("Result")


class Abandoned(Exception):
    """Nobody waits for a request any more."""


class Lane:
    """Threads for one kind of work.

    Args:
        name: name of the threads, and of the work in the message of a lane that is full.
        threads: number of threads.
        most: largest cost of all that runs and waits; a call that costs more is taken by an empty lane only.

    Attributes:
        cost: cost of what runs and waits.
    """

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._name, self._most, self.cost = name, most, 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()

    async def call(self, cost: int, function: Callable[[], Result]) -> Result:
        """Return the result of a blocking function, called in a thread; if the caller is cancelled, it ends.

        Args:
            cost: number of look-ups that it makes, roughly.
            function: the function.

        Raises:
            Busy: if too much work waits.
        """
        self._add(cost)
        abandoned = threading.Event()

        def pause() -> None:
            """End the work if nobody waits for it."""
            if abandoned.is_set():
                raise Abandoned

        def work() -> Result:
            """Call the function."""
            with pausing(pause):
                return function()

        future = self._pool.submit(work)
        future.add_done_callback(lambda _: self._subtract(cost))
        try:
            return await asyncio.wrap_future(future)
        finally:
            abandoned.set()

    def close(self) -> None:
        """Finish what runs and waits, and end the threads."""
        self._pool.shutdown(wait=True, cancel_futures=False)

    def _add(self, cost: int) -> None:
        with self._lock:
            if self.cost and self.cost + cost > self._most:
                raise Busy(f"too many requests for {self._name} are waiting")
            self.cost += cost

    def _subtract(self, cost: int) -> None:
        with self._lock:
            self.cost -= cost
