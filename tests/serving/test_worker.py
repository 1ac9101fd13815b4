"""A worker and its supervisor by their parts: how they end, silent connections, workers that cannot start."""

import asyncio
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import h11
import pytest
import uvicorn

from kgkit.errors import KgkitError, NotThere, UsageError
from kgkit.home import Home
from kgkit.serving import running
from kgkit.serving.running import Supervisor, WorkerProcess
from kgkit.serving.service import Service
from kgkit.serving.settings import Limits, ServiceSettings
from kgkit.serving.worker import (
    CLOSING_SECONDS,
    MAX_CHUNKS,
    ChunkCountingConnection,
    ProblemProtocol,
    WorkerServer,
    open_socket,
)
from tests.small_kb import facts_kb


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    facts_kb(folder).close()
    return Home(folder)


class Transport:
    def __init__(self, closing=False):
        self.closing, self.aborted = closing, False

    def is_closing(self):
        return self.closing

    def abort(self):
        self.aborted = True


def connection(cycle=None, *, closing=False):
    """Return what stands for a connection of uvicorn's."""
    return type("Connection", (), {"cycle": cycle, "transport": Transport(closing)})()


def cycle(*, complete):
    return SimpleNamespace(response_complete=complete)


@pytest.fixture
def server(home):
    service = Service(ServiceSettings(kbs={"facts": ("prior",)}), home)
    return WorkerServer(uvicorn.Config(lambda: None, log_config=None), service, lambda: None)


# -- what is no HTTP ----------------------------------------------------------


async def answer_of(server, content):
    """Return the answer of a protocol to bytes, after which it closes the connection."""
    config = uvicorn.Config(lambda *_: None, http=ProblemProtocol, lifespan="off", log_config=None, ws="none")
    config.load()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: config.http_protocol_class(config=config, server_state=server.server_state, app_state={}),
        "127.0.0.1", 0,
    )  # fmt: skip
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    writer.write(content)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    listening.close()
    return answer


@pytest.mark.parametrize(
    "content",
    [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nA B: c\r\n\r\n",
     b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", b"GET /" + b"a" * 100_000],
    ids=["TLS", "no version", "header", "length", "long"],
)  # fmt: skip
def test_bytes_that_are_no_request_are_answered_with_a_problem(server, content):
    answer = asyncio.run(answer_of(server, content))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"content-type: application/problem+json" in head.lower()
    assert head.lower().count(b"connection: close") == 1
    members = json.loads(body)
    assert (members["status"], members["title"]) == (400, "the request cannot be read")
    assert "headers of ASCII" in members["remedy"]


def chunked(*chunks):
    """Return a request whose body comes in chunks."""
    parts = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    return b"POST /v1/link HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(parts)


def events_of(content):
    """Return the events of bytes, and whether the connection refuses them."""
    connection, events = ChunkCountingConnection(), []
    connection.receive_data(content)
    try:
        while (event := connection.next_event()) is not h11.NEED_DATA:
            events.append(event)
    except h11.RemoteProtocolError:
        return events, True
    return events, False


@pytest.mark.parametrize("chunk", [b"x", b"xy", b"x" * 20])
def test_of_a_body_in_very_many_small_chunks_no_more_are_read(chunk):
    events, is_refused = events_of(chunked(*[chunk] * 60_000))
    assert is_refused
    assert len(events) <= 1 + 2 * MAX_CHUNKS


@pytest.mark.parametrize(("chunk", "count"), [(b"x", 10_000), (b"x" * 100, 20_000), (b"x" * 65_536, 16)])
def test_a_body_in_as_many_chunks_as_its_size_allows_is_read(chunk, count):
    events, is_refused = events_of(chunked(*[chunk] * count) + b"0\r\n\r\n")
    assert not is_refused
    assert sum(len(event.data) for event in events[1:-1]) == count * len(chunk)


def test_chunks_are_counted_for_each_request():
    connection = ChunkCountingConnection()
    for _ in range(3):
        connection.receive_data(chunked(*[b"x"] * (MAX_CHUNKS - 1)) + b"0\r\n\r\n")
        while type(connection.next_event()) is not h11.EndOfMessage:
            pass
        for event in (h11.Response(status_code=200, headers=[("content-length", "0")]), h11.EndOfMessage()):
            connection.send(event)
        connection.start_next_cycle()


def test_a_body_in_too_many_chunks_is_answered_with_a_problem(server):
    head, _, body = asyncio.run(answer_of(server, chunked(*[b"x"] * 20_000))).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["field"] == "body"


# -- silent connections -------------------------------------------------------


@pytest.mark.parametrize(
    "silent", [connection(), connection(cycle(complete=True)), connection(closing=True)], ids=range(3)
)
def test_a_connection_without_a_request_is_closed_at_the_second_look(server, silent):
    server.server_state.connections.add(silent)
    server._close_silent()
    assert not silent.transport.aborted
    server._close_silent()
    assert silent.transport.aborted


def test_a_connection_with_a_request_under_way_stays(server):
    busy = connection(cycle(complete=False))
    server.server_state.connections.add(busy)
    for _ in range(5):
        server._close_silent()
    assert not busy.transport.aborted


def test_a_connection_that_has_asked_since_the_last_look_stays(server):
    active = connection()
    server.server_state.connections.add(active)
    for _ in range(5):
        server._close_silent()
        active.cycle = cycle(complete=True)
    assert not active.transport.aborted


def test_connections_that_have_gone_are_forgotten(server):
    server.server_state.connections.add(short := connection())
    server._close_silent()
    server.server_state.connections.clear()
    server._close_silent()
    assert server._silent == {} and not short.transport.aborted


# -- the end ------------------------------------------------------------------


def test_a_first_signal_begins_the_end_and_a_second_one_is_at_once(server):
    assert not server._service.closing
    server.handle_exit(signal.SIGTERM, None)
    assert server._service.closing and not server.should_exit
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit


def test_after_a_moment_no_more_connections_are_taken(server):
    import asyncio

    async def ticks():
        server.handle_exit(signal.SIGTERM, None)
        first = await server.on_tick(1)
        await asyncio.sleep(CLOSING_SECONDS + 0.05)
        return first, await server.on_tick(1)

    assert asyncio.run(ticks()) == (False, True)


# -- the supervisor -----------------------------------------------------------


def worker(content):
    """Return a worker that has reported *content*, and has ended."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    os.set_blocking(reading, False)
    return WorkerProcess(0, reading)


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"UsageError k is 0", UsageError, "k is 0"),
        (b"NotThere no kb: \xff", NotThere, "no kb: \ufffd"),
        (b"KgkitError damaged", KgkitError, "damaged"),
        (b"something else", KgkitError, "else"),
    ],
)
def test_a_worker_reports_why_it_cannot_start(content, kind, message):
    error = worker(content).error()
    assert type(error) is kind and str(error) == message


@pytest.mark.parametrize("content", [b"", b"ready"])
def test_a_worker_that_is_killed_reports_nothing(content):
    ended = worker(content)
    assert ended.error() is None
    assert ended.ready == (content == b"ready")


def supervised(home, monkeypatch, run_worker, **settings):
    """Return a supervisor whose workers do *run_worker*."""
    monkeypatch.setattr("kgkit.serving.worker.run_worker", run_worker)
    settings = ServiceSettings(kbs={"facts": ("prior",)}, port=0, limits=Limits(seconds=1), **settings)
    return Supervisor(settings, home, quiet=True)


def stop_soon(condition):
    """Send SIGTERM to this process as soon as a condition holds."""

    def wait():
        deadline = time.monotonic() + 30
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def serve_until_sigterm(settings, home, listening, *, announce, log_requests):
    """Stand for a worker that answers nothing."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    announce()
    ended.wait(30)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_the_address_is_announced_once_all_workers_answer_and_sigterm_ends_them(home, monkeypatch):
    announced = []
    supervisor = supervised(home, monkeypatch, serve_until_sigterm, workers=3)
    thread = stop_soon(lambda: announced)
    supervisor.run(announced.append)
    thread.join()
    assert len(announced) == 1 and announced[0].startswith("http://127.0.0.1:")
    assert supervisor.workers == []
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_first_worker_that_cannot_start_is_the_error_of_the_command(home, monkeypatch):
    def fail(*args, **kwargs):
        raise NotThere("no vectors")

    with pytest.raises(NotThere, match="no vectors"):
        supervised(home, monkeypatch, fail, workers=2).run(lambda url: None)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_later_worker_that_cannot_start_is_tried_again(home, monkeypatch, tmp_path):
    monkeypatch.setattr(running, "_RESTART_DELAYS", (0.05,))
    starts = tmp_path / "starts"
    starts.touch()

    def serve_once(settings, home, listening, *, announce, log_requests):
        with starts.open("ab", buffering=0) as file:
            file.write(b"x")
        count = starts.stat().st_size
        if count == 1:
            announce()
            time.sleep(0.2)
            os._exit(9)
        if count in (2, 3):
            raise UsageError("not yet")
        serve_until_sigterm(settings, home, listening, announce=announce, log_requests=log_requests)

    supervisor = supervised(home, monkeypatch, serve_once)
    thread = stop_soon(
        lambda: starts.stat().st_size >= 4 and supervisor.workers and supervisor.workers[0].ready
    )
    supervisor.run(lambda url: None)
    thread.join()
    assert starts.stat().st_size == 4


def test_the_signals_of_the_process_are_what_they_were(home):
    former = signal.getsignal(signal.SIGTERM)
    with running._stop_signals() as stops:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
        assert stops.numbers == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is former


def test_the_folder_of_metrics_goes_with_the_service():
    with running._metrics_folder():
        folder = os.environ["PROMETHEUS_MULTIPROC_DIR"]
        assert Path(folder).is_dir()
    assert not Path(folder).exists()


def test_an_address_of_version_6_is_written_in_brackets():
    try:
        listening = open_socket("::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listening:
        address = running._address(ServiceSettings(host="::1"), listening)
    assert address.startswith("http://[::1]:")


def test_an_address_that_is_taken_cannot_be_listened_at():
    with (
        socket.create_server(("127.0.0.1", 0)) as occupied,
        pytest.raises(UsageError, match="cannot listen at 127\\.0\\.0\\.1, port"),
    ):
        running._listen(ServiceSettings(port=occupied.getsockname()[1]))
