"""A process that answers: uvicorn over a socket that all workers listen at.

SIGTERM    answers from then on ask connections to close; after a moment no connection is taken any more, what
           is under way is finished, and the process ends
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kgkit.home import Home
from kgkit.serving.answers import problem_response
from kgkit.serving.app import make_app
from kgkit.serving.logs import RequestLog
from kgkit.serving.problems import Problem
from kgkit.serving.service import Service
from kgkit.serving.settings import ServiceSettings

BACKLOG: Final = 2048
"""Connections that wait until a worker takes them."""

CLOSING_SECONDS: Final = 0.5
"""Time in which answers ask connections to close, before no more are taken."""

MAX_CHUNKS: Final = 10_000
"""Chunks of a body, however small they are: h11 reads them in less than a tenth of a second."""

CHUNK_BYTES: Final = 64
"""Of a larger body, so many bytes make another chunk."""

_SILENT_TICKS: Final = 100
"""Ticks, ten a second, between two looks for silent connections; one that is silent at both is closed."""


class SharedSocket(socket.socket):
    """A listening socket of several processes.

    asyncio takes as many connections at once as it asks the kernel to queue: with 1, connections are shared
    out among the workers, and the queue stays as long as it is.
    """

    def listen(self, backlog: int = BACKLOG, /) -> None:
        """Listen, with the queue that all workers have."""
        super().listen(BACKLOG)


def open_socket(host: str, port: int) -> SharedSocket:
    """Return a socket that listens at an address.

    Raises:
        OSError: if it cannot.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = SharedSocket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


class ChunkCountingConnection(h11.Connection):
    """The server's side of a connection, which refuses a body in very many chunks.

    A chunk takes h11 some microseconds, however small it is. While it reads all that have arrived, nobody
    else is answered.

    Attributes:
        chunks, chunk_bytes: numbers of chunks, and of bytes in them, of the request that is being read.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self.chunks = self.chunk_bytes = 0

    @property
    def has_too_many_chunks(self) -> bool:
        """Whether the request has more chunks than a body of its size may have."""
        return self.chunks > MAX_CHUNKS + self.chunk_bytes // CHUNK_BYTES

    def next_event(self) -> Any:
        """Return the next event.

        Raises:
            h11.RemoteProtocolError: if the bytes are no valid request, or are a body in too many chunks.
        """
        event = super().next_event()
        if isinstance(event, h11.Data):
            self.chunks += event.chunk_start
            self.chunk_bytes += len(event.data)
            if self.has_too_many_chunks:
                raise h11.RemoteProtocolError("too many chunks")
        elif isinstance(event, h11.Request):
            self.chunks = self.chunk_bytes = 0
        return event


class ProblemProtocol(H11Protocol):
    """The h11 protocol of uvicorn, which answers a malformed request with problem+json."""

    conn: ChunkCountingConnection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = ChunkCountingConnection()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not a valid HTTP request, and close the connection.

        Args:
            msg: message of uvicorn, which is not sent.
        """
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer has begun
            self.transport.close()
            return
        if self.conn.has_too_many_chunks:
            problem = Problem(
                400, f"the body came in more than {MAX_CHUNKS:,} chunks", headers={"Connection": "close"},
                field="body", remedy=f"send chunks of {CHUNK_BYTES} bytes or more, or a Content-Length",
            )  # fmt: skip
        else:
            problem = Problem(
                400, "the request is not valid HTTP/1.1", headers={"Connection": "close"},
                remedy="send a method, an address and headers of ASCII, in 64 kB at most",
            )  # fmt: skip
        response = problem_response(problem)
        for event in (
            h11.Response(status_code=400, headers=response.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class WorkerServer(uvicorn.Server):
    """uvicorn's server, which says when it answers, ends in two steps, and closes silent connections.

    Args:
        config: uvicorn's configuration.
        service: service behind the application.
        announce: function that is called once connections are taken.
    """

    def __init__(self, config: uvicorn.Config, service: Service, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._announce = service, announce
        self._exit_time: float | None = None
        self._silent: dict[Any, Any] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open all that is served, and take connections."""
        await super().startup(sockets)
        self._announce()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to end: at once if it is asked for a second time."""
        if self._exit_time is None:
            self._service.closing = True
            self._exit_time = time.monotonic() + CLOSING_SECONDS
        else:
            self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Look, ten times a second, whether to end."""
        if counter % _SILENT_TICKS == 0:
            self._close_silent()
        if self._exit_time is not None and time.monotonic() >= self._exit_time:
            self.should_exit = True
        return await super().on_tick(counter)

    def _close_silent(self) -> None:
        """Close connections that have sent no head of a request since the last time.

        Those that were to be closed by then, and whose client does not read, are cut off.
        """
        silent = {}
        for connection in list(self.server_state.connections):
            cycle, transport = connection.cycle, connection.transport  # type: ignore[union-attr]
            closing = transport.is_closing()
            if not closing and cycle is not None and not cycle.response_complete:
                continue
            former = self._silent.get(connection)
            if former is not None and former[0] is cycle and former[1] == closing:
                transport.abort()
            else:
                silent[connection] = cycle, closing  # the cycle itself: its id may come again
        self._silent = silent


def run_worker(
    settings: ServiceSettings,
    home: Home,
    listening: socket.socket,
    *,
    announce: Callable[[], None],
    log_requests: bool = True,
) -> None:
    """Answer requests until SIGTERM comes.

    Args:
        settings: settings of the service.
        home: folder of knowledge bases and models.
        listening: socket that is listened at.
        announce: function that is called once connections are taken.
        log_requests: whether a line is written for each request.

    Raises:
        KgkitError: if what is to be served cannot be opened.
    """
    service = Service(settings, home)
    service.start()  # here, and not in the application: an error has to reach the supervisor as it is
    if log_requests:
        service.request_log = RequestLog()
    config = uvicorn.Config(
        make_app(service), log_config=None, access_log=False, lifespan="on", ws="none", backlog=1,
        http=ProblemProtocol, proxy_headers=False, server_header=False, timeout_keep_alive=15,
        timeout_graceful_shutdown=_shutdown_seconds(settings),
    )  # fmt: skip
    WorkerServer(config, service, announce).run([listening])


def follow_parent(alive: int) -> None:
    """End this process, as SIGTERM does, when the process that started it has ended.

    Args:
        alive: file descriptor of a pipe that the other process holds open.
    """

    def wait() -> None:
        """Wait for the end of the pipe."""
        while os.read(alive, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _shutdown_seconds(settings: ServiceSettings) -> int:
    """Return the seconds after which what is under way is given up: longer than any answer may take."""
    return int(settings.limits.seconds) + 5
