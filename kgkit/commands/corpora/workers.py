"""Worker processes, each with a pipe of its own, that answer requests in order.

    requests ──▶ worker: a thread receives, the main one answers ──▶ results, in the order of the requests

The pool of the standard library shares one pipe among its workers: one that is killed while it writes leaves
a part of a message there, and the reader waits for the rest for ever. Here the end of a process is the end of
its pipe. There are no locks either, which a signal could leave behind.

Warnings of libraries come with the next result, and are logged here: each text once, whichever worker has it.
"""

import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from copy import copy
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Protocol, TypeVar, cast

from kgkit.errors import KgkitError, UsageError
from kgkit.signals import interrupts_blocked

Request = TypeVar("Request", contravariant=True)
Result = TypeVar("Result", covariant=True)

_WAITING: Final = 3  # requests for each worker that are answered, or wait for it
_MAX_WARNINGS: Final = 10_000  # that are remembered, so that none is logged twice
_SECONDS: Final = 10.0  # in which a process ends whose pipe is closed

log = logging.getLogger(__name__)


class WorkerTask(Protocol[Request, Result]):
    """What a worker does; it travels to the process, and is opened there for the first request."""

    def open(self, stack: ExitStack) -> Callable[[Request], Result]:
        """Return what answers requests, until *stack* is closed."""


def map_in_workers(
    task: WorkerTask[Request, Result], requests: Iterable[Request], *, workers: int
) -> Iterator[Result]:
    """Yield the results of requests, in order, from worker processes.

    Args:
        task: what the workers do.
        requests: requests, which are read a few ahead.
        workers: number of processes.

    Raises:
        KgkitError: if a worker was killed.
        Exception: what the task raises, after the results before it.
    """
    with ExitStack() as stack:
        warnings: set[str] = set()
        pool = [_Worker(task, stack, workers, warnings) for _ in range(workers)]
        pending: deque[_Worker] = deque()  # the worker of each request that has no result yet
        for request in requests:
            worker = min(pool, key=pending.count)
            worker.send(request)
            pending.append(worker)
            if len(pending) >= _WAITING * workers:
                yield pending.popleft().result(pool)
        while pending:
            yield pending.popleft().result(pool)


class _Worker:
    """A worker process, seen from its parent.

    Args:
        task: what it does.
        stack: what ends the process when it is closed.
        workers: number of processes in the pool.
        warnings: warnings that were logged, of all workers of the pool.
    """

    def __init__(
        self, task: WorkerTask[Any, Any], stack: ExitStack, workers: int, warnings: set[str]
    ) -> None:
        # Spawned, not forked: this process may have threads, and what they hold would be held for ever.
        context = get_context("spawn")
        self._pipe, end = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(end, task, workers))
        self._results: deque[tuple[bool, Any]] = deque()
        self._ended, self._warnings = False, warnings
        with end, interrupts_blocked():  # only the process has the end open, so that its own end is seen
            self._process.start()
        stack.callback(self._end)

    def send(self, request: Any) -> None:
        """Send a request; a thread of the worker receives it whatever else the worker does."""
        with suppress(OSError):  # the process has ended, which the result will say
            self._pipe.send(request)

    def result(self, pool: "Iterable[_Worker]") -> Any:
        """Return the result of the first request that has none yet; meanwhile receive those of *pool*."""
        while not self._results:
            if self._ended:
                raise self._killed()
            workers = {worker._pipe: worker for worker in pool if not worker._ended}
            for pipe in wait([*workers]):
                workers[cast("Connection[Any, Any]", pipe)]._receive()
        succeeded, value = self._results.popleft()
        if not succeeded:
            raise value
        return value

    def _receive(self) -> None:
        try:
            succeeded, value, warnings = self._pipe.recv()
        except (EOFError, OSError):
            self._ended = True
            return
        self._results.append((succeeded, value))
        for level, text in warnings:
            if text in self._warnings:
                continue
            if len(self._warnings) >= _MAX_WARNINGS:
                self._warnings.clear()
            self._warnings.add(text)
            log.log(level, "%s", text)

    def _killed(self) -> KgkitError:
        """Return the error that says by what signal the process ended."""
        self._process.join(_SECONDS)
        code = self._process.exitcode or 0
        if code in (0, -signal.SIGKILL):
            reason = "was killed, most often because memory ran out: try fewer workers, and --resume"
        else:
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            reason = f"ended by {name}: --resume goes on behind what is written"
        return KgkitError(f"a worker process {reason}")

    def _end(self) -> None:
        self._pipe.close()  # at which the process ends, whatever it does
        self._process.join(_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class _WarningList(logging.Handler):
    """Handler that keeps warnings and errors: their level and text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the level and text of a record."""
        try:
            self.records.append((record.levelno, record.getMessage()))
        except Exception:  # noqa: BLE001  # of a library's format, as handlers of the standard library do
            self.handleError(record)

    def take(self) -> list[tuple[int, str]]:
        """Return what came since the last call."""
        records, self.records = self.records, []
        return records


def _serve(pipe: "Connection[Any, Any]", task: WorkerTask[Any, Any], workers: int) -> None:
    """Answer requests, as a worker, until the parent closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    # Each has its share of the cores; torch reads this when it is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    warnings = _WarningList()
    logging.getLogger().addHandler(warnings)
    requests: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_receive_requests, args=(pipe, requests), daemon=True).start()
    answer: Callable[[Any], Any] | None = None
    with ExitStack() as stack:
        while True:
            request = requests.get()
            try:
                answer = answer or task.open(stack)
                message = True, answer(request)
            except Exception as error:  # noqa: BLE001  # the parent raises it
                message = False, _portable(error)
            try:
                pipe.send((*message, warnings.take()))
            except OSError:  # the parent has closed the pipe: nobody waits
                return


def _portable(error: Exception) -> Exception:
    """Return an error that travels between processes: itself, or one with its text."""
    try:
        copy(error)  # as pickle does it
        return error
    except Exception:  # noqa: BLE001  # whatever its class does
        return (UsageError if isinstance(error, UsageError) else KgkitError)(str(error))


def _receive_requests(pipe: "Connection[Any, Any]", requests: "SimpleQueue[Any]") -> None:
    """Receive requests until there are no more; then nobody waits for results, and the process ends."""
    with suppress(EOFError, OSError):
        while True:
            requests.put(pipe.recv())
    os._exit(0)
