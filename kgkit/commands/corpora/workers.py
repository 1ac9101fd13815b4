"""Worker processes, each with a pipe of its own, that answer requests; results come in the order of these.

The pool of the standard library shares one pipe among its workers: one that is killed while it writes leaves
a part of a message there, and the reader waits for the rest for ever. Here the end of a process is the end of
its pipe. There are no locks either, which a signal could leave behind.

Warnings of libraries come with the next result, and are logged here: each text once, whichever worker has it.
"""

import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from copy import copy
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol, TypeVar, cast

from kgkit.errors import KgkitError, UsageError
from kgkit.signals import interrupts_blocked

Request = TypeVar("Request", contravariant=True)
Result = TypeVar("Result", covariant=True)

_WAITING: Final = 3  # requests for each worker that are answered, or wait for the results before them
_SECONDS: Final = 10.0  # in which a process ends whose pipe has ended

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
        idle = [_start_worker(task, stack, workers) for _ in range(workers)]
        busy: dict[Any, tuple[_Worker, int]] = {}  # worker and number of the request, by pipe
        results: dict[int, Result | Exception] = {}  # those that wait for the results before them
        numbered, due, exhausted = enumerate(requests), 0, False
        while True:
            while idle and len(busy) + len(results) < _WAITING * workers:
                number, request = next(numbered, (-1, None))
                if exhausted := number < 0:
                    break
                worker = idle.pop()
                with suppress(OSError):  # it has ended, which its pipe will say
                    worker[1].send(request)
                busy[worker[1]] = worker, number
            while due in results:
                result = results.pop(due)
                if isinstance(result, Exception):
                    raise result
                yield result
                due += 1
            if not busy and exhausted:
                return
            for pipe in wait([*busy]) if busy else []:
                worker, number = busy.pop(pipe)
                try:
                    results[number], logged = cast("Connection[Any, Any]", pipe).recv()
                except (EOFError, OSError):
                    results[number] = _killed(worker[0])
                else:
                    _log(logged, warnings)
                    idle.append(worker)


_Worker = tuple[BaseProcess, "Connection[Any, Any]"]


def _start_worker(task: WorkerTask[Any, Any], stack: ExitStack, workers: int) -> _Worker:
    """Return a process and the pipe to it, both of which end with *stack*."""
    # Spawned, not forked: this process may have threads, and what they hold would be held for ever.
    context = get_context("spawn")
    pipe, end = context.Pipe()
    process = context.Process(target=_serve, args=(end, task, workers))
    with end, interrupts_blocked():  # only the process has the end open, so that its own end is seen
        process.start()
    stack.callback(process.join)
    stack.callback(process.kill)
    stack.callback(pipe.close)
    return process, pipe


def _killed(process: BaseProcess) -> KgkitError:
    """Return the error that says by what signal a process ended."""
    process.join(_SECONDS)
    code = process.exitcode or 0
    if code in (0, -signal.SIGKILL):
        return KgkitError(
            "a worker process was killed, most often because memory ran out: try fewer workers, and --resume"
        )
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return KgkitError(f"a worker process ended by {name}: --resume goes on behind what is written")


def _log(records: Iterable[tuple[int, str]], warnings: set[str]) -> None:
    """Log the records of a worker whose texts are not among *warnings*, and add them there."""
    for level, text in records:
        if text not in warnings:
            warnings.add(text)
            log.log(level, "%s", text)


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


def _serve(pipe: "Connection[Any, Any]", task: WorkerTask[Any, Any], workers: int) -> None:
    """Answer requests, as a worker, until the parent closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    # Each has its share of the cores; torch reads this when it is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    warnings = _WarningList()
    logging.getLogger().addHandler(warnings)
    answer: Callable[[Any], Any] | None = None
    with suppress(EOFError, OSError), ExitStack() as stack:  # the parent has ended
        while True:
            request = pipe.recv()
            warnings.records = []
            try:
                answer = answer or task.open(stack)
                result = answer(request)
            except Exception as error:  # noqa: BLE001  # the parent raises it
                result = _portable(error)
            pipe.send((result, warnings.records))


def _portable(error: Exception) -> Exception:
    """Return an error that travels between processes: itself, or one with its text."""
    try:
        copy(error)  # as pickle does it
        return error
    except Exception:  # noqa: BLE001  # whatever its class does
        return (UsageError if isinstance(error, UsageError) else KgkitError)(str(error))
