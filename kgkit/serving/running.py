"""Running the service: uvicorn's server in this process, or its supervisor over several workers."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from kgkit.errors import KgkitError, UsageError
from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.logs import RequestLog, configure_logging
from kgkit.serving.resources import check_resources
from kgkit.serving.service import Service
from kgkit.serving.settings import METRICS_FOLDER_VARIABLE, ServiceSettings
from kgkit.signals import interrupts_blocked

log = logging.getLogger(__name__)

_BACKLOG: Final = 2048  # connections that wait until a worker takes them
_SILENT_SECONDS: Final = 15
_HUNG_SECONDS: Final = 30  # without an answer of a worker to its supervisor, who replaces it then
_MAX_FILES: Final = 65_536


def run_service(
    settings: ServiceSettings, home: Home, announce: Callable[[str], None], *, quiet: bool = False
) -> None:
    """Answer requests until SIGTERM or SIGINT comes, and requests under way then are finished.

    Args:
        settings: settings of the service.
        home: folder of knowledge bases and models.
        announce: function that gets the address of the service, once it answers.
        quiet: whether only warnings and errors are logged.

    Raises:
        KgkitError: if a knowledge base or model that is to be served cannot be opened.
        UsageError: if the address cannot be listened at.
    """
    check_resources(settings, home)
    settings = with_default_kb(settings, home)
    with _ended_by_signals(), _listen(settings) as listening:
        _raise_file_limit()
        host = f"[{settings.host}]" if ":" in settings.host else settings.host or "0.0.0.0"
        tell = partial(announce, f"http://{host}:{listening.getsockname()[1]}/")
        if settings.workers == 1:
            configure_logging(quiet=quiet)
            app = _open_app(settings, home, quiet=quiet)
            tell()
            uvicorn.Server(_config(app, settings)).run([listening])
            return
        with tempfile.TemporaryDirectory(prefix="kgkit-metrics-") as folder:
            os.environ[METRICS_FOLDER_VARIABLE] = folder
            worker_app = partial(_open_worker_app, settings, home, quiet=quiet)
            _Workers(_config(worker_app, settings, factory=True), [listening], tell).run()


class _Workers(Multiprocess):
    """uvicorn's supervisor of workers, which tells when all of them answer."""

    def __init__(
        self, config: uvicorn.Config, sockets: list[socket.socket], announce: Callable[[], None]
    ) -> None:
        super().__init__(config, sockets)
        self._announce = announce

    def init_processes(self) -> None:
        """Start the workers, and wait until all of them answer.

        Raises:
            KgkitError: if one ends before.
        """
        with interrupts_blocked():  # the supervisor ends the workers
            super().init_processes()
        while not self.should_exit.is_set() and not all(each.is_ready(1) for each in self.processes):
            self.handle_signals()
            if any(each.exitcode is not None for each in self.processes):
                self.terminate_all()
                self.join_all()
                raise KgkitError(
                    "a worker ended before it answered; the log on standard error says why, "
                    "unless the system killed it: see whether its memory suffices for the workers"
                )
            time.sleep(0.1)
        if not self.should_exit.is_set():
            self._announce()

    def keep_subprocess_alive(self) -> None:
        """Start a worker in the place of each that has ended."""
        with interrupts_blocked():
            super().keep_subprocess_alive()


class _Protocol(H11Protocol):
    """uvicorn's protocol, which also closes connections that send no request."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of a head that is not complete do not lengthen the time that it has."""
        timer, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.ERROR) or self.cycle.response_complete:
            self.timeout_keep_alive_task = timer
        elif timer is not None:
            timer.cancel()


def _config(app: Any, settings: ServiceSettings, *, factory: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        app, factory=factory, workers=settings.workers, log_config=None, access_log=False, lifespan="on",
        ws="none", http=_Protocol, proxy_headers=False, server_header=False, backlog=_BACKLOG,
        timeout_keep_alive=_SILENT_SECONDS, timeout_worker_healthcheck=_HUNG_SECONDS,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 5,  # longer than any answer may take
    )  # fmt: skip


def _open_app(settings: ServiceSettings, home: Home, *, quiet: bool) -> FastAPI:
    """Return the application of a service whose knowledge bases and models are open."""
    service = Service(settings, home)
    service.start()
    if not quiet:
        service.request_log = RequestLog()
    return make_app(service)


def _open_worker_app(settings: ServiceSettings, home: Home, *, quiet: bool) -> FastAPI:
    """Return the application of a worker, which ends with its supervisor; log why it cannot be opened."""

    def end_with_parent() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    configure_logging(quiet=quiet)
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        return _open_app(settings, home, quiet=quiet)
    except (KgkitError, OSError) as error:
        log.error("a worker cannot start: %s", error)
        sys.exit(1)


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
        settings: settings of the service.
        home: folder of knowledge bases and models.
    """
    names = [kb.name for kb in home.kbs()]
    return bool(settings.default_kb or settings.kbs) or len(names) == 1 or home.chosen_default in names


def _listen(settings: ServiceSettings) -> socket.socket:
    """Return the socket of the service.

    Raises:
        UsageError: if the address cannot be listened at.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = str(error) if error.errno is None or error.errno < 0 else os.strerror(error.errno)
        raise UsageError(
            f"cannot listen at {settings.host}, port {settings.port}: {reason}; "
            "name another one with --host and --port"
        ) from None


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """End the block without an error at SIGTERM or SIGINT, where nobody else handles them."""

    def stop(*_: Any) -> None:
        raise SystemExit(0)

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
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
