"""`kgkit serve` as processes: workers, signals, builds that are published, and clients that behave badly."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from kgkit.home import Home
from kgkit.serving.running import with_default_kb
from kgkit.serving.settings import ServiceSettings
from tests.cli_helpers import run, started
from tests.serving.test_resources import records
from tests.small_kb import build, facts_kb

PATIENCE = 300


class RunningService:
    """A service as a process, and what is asked of it."""

    def __init__(self, child, url):
        self.child, self.url = child, url
        host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
        self.address = host, int(port)

    def ask(self, path, body=None, **headers):
        """Return status and JSON of an answer; of metrics the text."""
        request = urllib.request.Request(self.url + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                content = answer.read()
                return answer.status, json.loads(content) if content[:1] in b"{[" else content.decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def link(self, text):
        status, record = self.ask("v1/link", json.dumps({"text": text}).encode())
        return status, [link["entity"] for link in record.get("links", [])]

    def workers(self):
        """Return the process ids of the workers."""
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text()
        commands = {}
        for pid in children.split():
            with suppress(OSError):  # it may have ended since
                commands[int(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes()
        return [pid for pid, command in commands.items() if b"spawn_main" in command]

    def descriptors(self):
        """Return the number of open files of the supervisor."""
        return len([*Path(f"/proc/{self.child.pid}/fd").iterdir()])

    def connect(self):
        return socket.create_connection(self.address, timeout=PATIENCE)

    def wait_until(self, condition):
        """Return the seconds until something holds."""
        begin = time.monotonic()
        while not condition():
            assert time.monotonic() - begin < PATIENCE
            time.sleep(0.05)
        return time.monotonic() - begin


@contextlib.contextmanager
def running(home, *args, **env):
    """Run a service until the end of the block, and kill what is left of it."""
    env = {"KGKIT_MODEL": "prior", **env}
    with started("serve", "--home", home, "--port", "0", *args, stderr=subprocess.PIPE, env=env) as child:
        line = child.stderr.readline().decode()
        assert line.startswith("serving http://"), line + child.stderr.read().decode()
        try:
            yield RunningService(child, line.split()[1])
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.communicate(timeout=PATIENCE)
            finally:
                child.kill()


@pytest.fixture(scope="module")
def facts_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("facts")
    facts_kb(home).close()
    return home


@pytest.fixture(scope="module")
def service(facts_home):
    """A service of two workers, which tests do not end."""
    with running(facts_home, "--workers", "2") as service:
        yield service


def test_all_workers_answer(service):
    assert len(service.workers()) == 2
    assert service.ask("health/ready")[1]["status"] == "ready"
    assert service.link("a dog and a cat") == (200, ["dog", "cat"])
    service.wait_until(lambda: "kgkit_workers 2.0" in service.ask("metrics")[1])


def test_a_worker_that_is_killed_is_replaced_and_its_gauges_go(service):
    for _ in range(2):
        before = service.workers()
        descriptors = service.descriptors()
        os.kill(before[0], signal.SIGKILL)
        service.wait_until(
            lambda: len(service.workers()) == 2 and before[0] not in service.workers()  # noqa: B023
        )
        assert service.link("a dog") == (200, ["dog"])
        service.wait_until(lambda: service.descriptors() <= descriptors)  # noqa: B023
    service.wait_until(lambda: "kgkit_workers 2.0" in service.ask("metrics")[1])


def test_a_chunked_body_without_a_length_is_refused_when_it_is_too_large(service):
    with service.connect() as client:
        client.sendall(b"POST /v1/link HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n" % 60_000 + b"x" * 60_000 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(40):
                client.sendall(chunk)
            client.sendall(b"0\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 413"
    assert service.link("a dog") == (200, ["dog"])


@pytest.mark.parametrize(
    "head",
    [
        b"\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /v1/link HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=range(7),
)
def test_a_head_that_is_no_head_is_answered_and_harms_nobody(service, head):
    with service.connect() as client, contextlib.suppress(ConnectionError):
        client.sendall(head)
        assert client.recv(12)[9:10] == b"4"
    assert service.ask("health/live")[0] == 200


def test_many_open_connections_keep_nobody_from_asking(service):
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(service.connect())
        for _ in range(5):
            assert service.link("a dog") == (200, ["dog"])


def test_on_sigterm_what_is_under_way_is_answered_and_the_code_is_0(facts_home):
    with running(facts_home) as service:
        with service.connect() as client:
            body = b'{"text": "a dog"}'
            head = f"POST /v1/link HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body[:5])
            time.sleep(0.3)
            service.child.send_signal(signal.SIGTERM)
            time.sleep(1.0)
            client.sendall(body[5:])
            with client.makefile("rb") as answer:
                lines = answer.read().decode()
        assert lines.startswith("HTTP/1.1 200")
        assert service.child.wait(PATIENCE) == 0


@pytest.mark.parametrize("args", [(), ("--workers", "2")])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_without_requests_ends_soon_and_its_workers_with_it(facts_home, args, number):
    with running(facts_home, *args) as service:
        workers = service.workers()
        service.child.send_signal(number)
        assert service.child.wait(PATIENCE) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_connection_that_sends_no_whole_head_is_closed(service):
    with service.connect() as silent, service.connect() as slow:
        begin = time.monotonic()
        slow.sendall(b"GET /health/live HTTP/1.1\r\n")
        assert (silent.recv(1), slow.recv(1)) == (b"", b"")
        assert time.monotonic() - begin > 10


def test_workers_end_when_their_supervisor_is_killed(facts_home):
    with running(facts_home, "--workers", "2") as service:
        workers = service.workers()
        service.child.kill()

        def ended(pid):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
            except FileNotFoundError:
                return True
            return stat.rsplit(")", 1)[1].split()[0] == "Z"

        service.wait_until(lambda: all(map(ended, workers)))


def test_a_build_that_is_published_is_served_by_all_workers(tmp_path):
    with build(tmp_path, records("apple")):
        pass
    with running(tmp_path, "--workers", "2") as service:
        assert service.link("apple and pear") == (200, ["apple"])
        with build(tmp_path, records("apple", "pear")) as kb:
            build_name = kb.build
        service.wait_until(lambda: service.ask("health/ready")[1]["kbs"]["small"] == build_name)
        service.wait_until(lambda: service.link("apple and pear") == (200, ["apple", "pear"]))
        shutil.rmtree(tmp_path / "kbs")
        time.sleep(1.5)
        assert service.link("apple and pear")[0] == 200


@pytest.mark.slow
def test_the_token_of_the_variable_is_asked_for(facts_home):
    token = "0123456789abcdef"
    with running(facts_home, "--host", "127.0.0.1", KGKIT_TOKEN=token) as service:
        assert service.ask("v1/kbs")[0] == 401
        assert service.ask("v1/kbs", Authorization=f"Bearer {token}")[0] == 200
        assert service.ask("health/ready")[0] == 200


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--kb", "nothing"], 3, "no knowledge base 'nothing'"),
        (["--kb", "facts=nothing"], 3, "no model named 'nothing'"),
        (["--kb", "facts="], 2, "--kb 'facts='"),
        (["--kb", "facts", "--kb", "=prior"], 2, "--kb '=prior'"),
        (["--host", "0.0.0.0"], 2, "a token is needed"),
        (["--host", "203.0.113.1"], 2, "a token is needed"),
        (["--token-file", "/nowhere"], 3, "no token in /nowhere"),
    ],
)
def test_what_cannot_be_served_is_one_line(facts_home, args, code, message):
    done = run("serve", "--home", facts_home, "--port", "0", *args)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: ") and message in done.err
    assert done.err.count("\n") == 1


def test_an_empty_home_says_how_to_build_something(tmp_path):
    done = run("serve", "--home", tmp_path, "--port", "0")
    assert done.code == 3
    assert "`kgkit build-kb wordnet`" in done.err


def test_a_port_that_is_taken_is_named(facts_home):
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        done = run("serve", "--home", facts_home, "--port", port)
    assert done.code == 2
    assert f"cannot listen at 127.0.0.1, port {port}" in done.err and "--port" in done.err


def test_the_only_knowledge_base_stays_the_default_when_another_is_published(tmp_path):
    build(tmp_path, records("apple"), name="first").close()
    home, settings = Home(tmp_path), ServiceSettings()
    assert with_default_kb(settings, home).default_kb == "first"
    assert with_default_kb(ServiceSettings(kbs={"x": ("prior",)}), home).default_kb == "x"
    assert with_default_kb(ServiceSettings(default_kb="y"), home).default_kb == "y"
    build(tmp_path, records("apple"), name="second").close()
    assert with_default_kb(settings, home) is settings
