"""The process that starts workers, and starts others in the place of those that end.

    supervisor ──fork──▶ worker   worker   worker      all listen at one socket

It opens nothing itself, but has imported what workers need, so that a new one answers within a second or two.
"""

import gc
import logging
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Final

from kgkit.errors import KgkitError, MissingExtra, NotThere, UsageError
from kgkit.home import Home
from kgkit.linking.auto import named_model
from kgkit.models.folder import AUTO
from kgkit.serving.logs import configure_logging
from kgkit.serving.resources import PRIOR, check_resources
from kgkit.serving.settings import METRICS_FOLDER_VARIABLE, ServiceSettings

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.05
_RESTART_DELAYS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds until another worker is started after a first, a second, … failure in a row."""
_READY: Final = b"ready"
_ERRORS: Final = {"UsageError": UsageError, "NotThere": NotThere}  # those that the command line tells apart
_MAX_FILES: Final = 65_536
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """The service is to end before its workers have been started."""


class StopSignals:
    """SIGTERM and SIGINT that have come, true if there are any.

    Attributes:
        interrupts: whether the first raises `Stopped` in what is under way.
        numbers: numbers of the signals, in their order.
    """

    def __init__(self) -> None:
        self.interrupts = False
        self.numbers: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Take a signal.

        Raises:
            Stopped: if it is the first, and interrupts what is under way.
        """
        self.numbers.append(number)
        if self.interrupts and len(self.numbers) == 1:
            raise Stopped


@dataclass(eq=False)
class WorkerProcess:
    """A worker, as the supervisor sees it.

    Attributes:
        pid: process id.
        reports: file descriptor of the pipe on which the worker reports that it answers, or its error.
        ready: whether the worker answers.
        report: bytes that the worker has reported.
    """

    pid: int
    reports: int
    ready: bool = False
    report: bytes = b""

    def read(self) -> None:
        """Read what the worker has reported since."""
        with suppress(BlockingIOError):
            while part := os.read(self.reports, 65_536):
                self.report += part
        self.ready = self.ready or self.report == _READY

    def error(self) -> KgkitError | None:
        """Return the error with which the worker ended; None: it has reported none."""
        self.read()
        if self.report in (b"", _READY):
            return None
        kind, _, message = self.report.decode("utf-8", "replace").partition(" ")
        return _ERRORS.get(kind, KgkitError)(message)


@dataclass
class Supervisor:
    """Keeps a number of workers running.

    Attributes:
        settings: settings of the service.
        home: folder of knowledge bases and models.
        quiet: whether only warnings and errors are logged.
        workers: workers that run.
    """

    settings: ServiceSettings
    home: Home
    quiet: bool = False
    workers: list[WorkerProcess] = field(default_factory=list)

    def run(self, announce: Callable[[str], None]) -> None:
        """Answer requests until SIGTERM or SIGINT comes, and what is under way then is finished.

        Args:
            announce: function that gets the address of the service, once every worker answers.

        Raises:
            KgkitError: if the workers that are started first cannot open what is to be served.
            UsageError: if the address cannot be listened at.
        """
        with _metrics_folder(), suppress(Stopped), _stop_signals() as stops:
            stops.interrupts = True
            _raise_file_limit()
            check_resources(self.settings, self.home)
            self.settings = with_default_kb(self.settings, self.home)
            listening = _listen(self.settings)
            self._alive = os.pipe()
            try:
                _preload(self.settings)
                stops.interrupts = False
                self._start_first(listening, stops)
                if not stops:
                    announce(_address(self.settings, listening))
                self._watch(listening, stops)
            finally:
                listening.close()
                self._end_workers()
                for end in self._alive:
                    os.close(end)

    def _start_first(self, listening: socket.socket, stops: StopSignals) -> None:
        """Start the workers, and wait until all answer, or the service is to end.

        Raises:
            KgkitError: if one cannot open what is to be served.
        """
        for _ in range(self.settings.workers):
            self._start(listening)
        while not stops and not all(worker.ready for worker in self.workers):
            for worker in self.workers:
                worker.read()
                if not worker.ready and _has_ended(worker):
                    raise worker.error() or UsageError(
                        "a worker ended before it answered; the log on standard error says why, "
                        "unless the system killed it: see whether its memory suffices for the workers"
                    )
            time.sleep(_POLL_SECONDS)

    def _watch(self, listening: socket.socket, stops: StopSignals) -> None:
        """Start a worker in the place of each that ends, until the service is to end."""
        failures, due = 0, 0.0
        while not stops:
            for worker in [worker for worker in self.workers if _has_ended(worker)]:
                self._forget(worker)
                error = worker.error()
                if worker.ready:
                    failures = 0
                    log.warning("worker %d has ended; another one is started", worker.pid)
                else:
                    wait = _RESTART_DELAYS[min(failures, len(_RESTART_DELAYS) - 1)]
                    failures, due = failures + 1, time.monotonic() + wait
                    log.error("worker %d cannot start: %s", worker.pid, error or "it has ended")
            for worker in self.workers:
                worker.read()
            if len(self.workers) < self.settings.workers and time.monotonic() >= due:
                self._start(listening)
            time.sleep(_POLL_SECONDS)

    def _start(self, listening: socket.socket) -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # the worker would miss them
        try:
            pid = os.fork()
            if pid == 0:
                self._work(listening, writing)  # which does not return
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
        os.close(writing)
        self.workers.append(WorkerProcess(pid, reading))

    def _work(self, listening: socket.socket, reports: int) -> None:
        """Run a worker in this process, and end the process with it."""
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the supervisor, which asks to end
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
            from kgkit.serving.worker import follow_parent, run_worker

            os.close(self._alive[1])
            follow_parent(self._alive[0])
            configure_logging(quiet=self.quiet)
            run_worker(
                self.settings, self.home, listening, announce=lambda: _report(reports, _READY),
                log_requests=not self.quiet,
            )  # fmt: skip
            code = 0
        except (KgkitError, OSError) as error:
            kind = next((name for name, kind in _ERRORS.items() if isinstance(error, kind)), "KgkitError")
            _report(reports, f"{kind} {error}".encode("utf-8", "replace"))
        except Exception:
            log.exception("a worker ends")
        finally:
            os._exit(code)  # not through the supervisor's `finally`s

    def _forget(self, worker: WorkerProcess) -> None:
        from kgkit.serving.metrics import forget_worker

        self.workers.remove(worker)
        forget_worker(worker.pid)

    def _end_workers(self) -> None:
        """Ask the workers to end, and kill those that do not in time."""
        for worker in self.workers:
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGTERM)
        deadline = time.monotonic() + self.settings.limits.seconds + 10
        while self.workers:
            for worker in [worker for worker in self.workers if _has_ended(worker)]:
                self.workers.remove(worker)
            if self.workers and time.monotonic() > deadline:
                for worker in self.workers:
                    os.kill(worker.pid, signal.SIGKILL)
                deadline = float("inf")
            time.sleep(_POLL_SECONDS)


def with_default_kb(settings: ServiceSettings, home: Home) -> ServiceSettings:
    """Return settings that name the only knowledge base as the default one, if neither they nor the home do.

    So requests that name none are answered by it when another one is published, by workers of later too.

    Args:
        settings: settings of the service.
        home: folder of knowledge bases and models.
    """
    names = list(settings.kbs) or [kb.name for kb in home.kbs()]
    if settings.default_kb is None and not home.chosen_default and len(names) == 1:
        return replace(settings, default_kb=names[0])
    return settings


def has_default_kb(settings: ServiceSettings, home: Home) -> bool:
    """Say whether requests that name no knowledge base are answered.

    Args:
        settings: settings of the running service.
        home: folder of knowledge bases and models.
    """
    if settings.default_kb or settings.kbs:
        return True
    return home.chosen_default in [kb.name for kb in home.kbs()]


def _has_ended(worker: WorkerProcess) -> bool:
    """Say whether a worker has ended."""
    try:
        return os.waitpid(worker.pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _report(reports: int, content: bytes) -> None:
    with suppress(OSError):
        os.write(reports, content)


def _listen(settings: ServiceSettings) -> socket.socket:
    """Return the socket of the service.

    Raises:
        UsageError: if the address cannot be listened at.
    """
    from kgkit.serving.worker import open_socket

    try:
        return open_socket(settings.host, settings.port)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {settings.host}, port {settings.port}: {error.strerror or error}; "
            "name another one with --host and --port"
        ) from None


def _address(settings: ServiceSettings, listening: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host or "0.0.0.0"
    return f"http://{host}:{listening.getsockname()[1]}/"


def _preload(settings: ServiceSettings) -> None:
    """Import what workers need, so that each begins with it."""
    auto = named_model() or AUTO
    models = {model for names in settings.kbs.values() for model in names} or {AUTO}
    models = {auto if model == AUTO else model for model in models}

    if models - {PRIOR}:
        from kgkit.encoder.import_stubs import only_encodes
        from kgkit.encoder.loading import import_packages

        only_encodes()
        with suppress(MissingExtra):  # the models that need it say so
            import_packages()
            import kgkit.embedding.partial
            import kgkit.linking.head  # noqa: F401
    gc.collect()
    gc.freeze()


@contextmanager
def _metrics_folder() -> Iterator[None]:
    """Name a folder in which workers keep their metrics, while the block lasts."""
    folder = tempfile.mkdtemp(prefix="kgkit-metrics-")
    os.environ[METRICS_FOLDER_VARIABLE] = folder
    try:
        yield
    finally:
        os.environ.pop(METRICS_FOLDER_VARIABLE, None)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _stop_signals() -> Iterator[StopSignals]:
    """Collect SIGTERM and SIGINT instead of ending the process, while the block lasts."""
    stops = StopSignals()
    handlers = {number: signal.signal(number, stops) for number in _STOP_SIGNALS}
    try:
        yield stops
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _raise_file_limit() -> None:
    """Let the process have as many connections as the system lets it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
