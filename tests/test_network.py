"""Reading from the web: what is forbidden, what a server may say, and connections that are lost."""

import io
import threading
from http.client import IncompleteRead
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kgkit.errors import NetworkForbidden, NotThere
from kgkit.network import OFFLINE, Download, check_online, is_set, open_url


class Handler(BaseHTTPRequestHandler):
    """Serves `/file` of six bytes, `/large`, which says that it is larger, and `/short`, which is cut off."""

    def do_GET(self):
        if self.path == "/absent":
            self.send_error(404)
            return
        sizes = {"/large": "99999999999999999999999", "/short": "60", "/odd": "many"}
        self.send_response(200)
        self.send_header("Content-Length", sizes.get(self.path, "6"))
        self.send_header("X-Agent", self.headers["User-Agent"])
        self.end_headers()
        self.wfile.write(b"abcdef")

    def log_message(self, *_):
        """Write nothing."""


@pytest.fixture(scope="module")
def site():
    """The address of a server."""
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _online(monkeypatch):
    monkeypatch.delenv(OFFLINE, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("value", "switched_on"),
    [("1", True), ("on", True), ("Yes", True), ("TRUE", True), ("0", False), ("", False), ("no", False)],
)
def test_a_variable_is_switched_on_by_the_usual_words(monkeypatch, value, switched_on):
    monkeypatch.setenv(OFFLINE, value)
    assert is_set(OFFLINE) is switched_on
    if switched_on:
        with pytest.raises(NetworkForbidden, match="the file"):
            check_online("the file")
    else:
        check_online("the file")


def test_an_absent_variable_is_off():
    assert not is_set(OFFLINE)


def test_offline_no_address_is_opened(site, monkeypatch):
    monkeypatch.setenv(OFFLINE, "1")
    with pytest.raises(NetworkForbidden, match=OFFLINE), open_url(f"{site}/file", 100):
        pass


def test_a_file_is_read_in_pieces_to_its_end(site):
    with open_url(f"{site}/file", 6) as download:
        assert [download.read(4), download.read(4), download.read(4)] == [b"abcd", b"ef", b""]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/absent", "/absent cannot be fetched: .*404"),
        ("/large", r"/large has 99,999,999,999,999,999,999 bytes, and 100 are allowed"),
    ],
)
def test_files_that_a_server_lacks_or_announces_too_large_are_refused(site, path, message):
    with pytest.raises(NotThere, match=message), open_url(f"{site}{path}", 100):
        pass


def test_the_largest_size_is_allowed_and_a_byte_more_is_not(site):
    with pytest.raises(NotThere, match="6 bytes, and 5"), open_url(f"{site}/file", 5):
        pass


def test_a_connection_that_is_lost_is_an_error_with_the_address(site):
    with open_url(f"{site}/short", 100) as download:
        assert download.read(6) == b"abcdef"
        assert download.read(0) == b""
        with pytest.raises(NotThere, match=r"/short .*54 bytes"):
            download.read(100)


def test_without_an_announced_length_the_end_is_the_end(site):
    with open_url(f"{site}/odd", 100) as download:
        assert download.read(100) == b"abcdef" and download.read(100) == b""


@pytest.mark.parametrize(
    "error", [IncompleteRead(b"ab", 4), ConnectionResetError("reset"), ValueError("closed")]
)
def test_each_error_of_a_connection_names_the_file(error):
    class Broken(io.BytesIO):
        """A response that fails."""

        def read(self, size=-1):
            raise error

    with pytest.raises(NotThere, match="http://x/y"):
        Download(Broken(), "http://x/y").read(10)


@pytest.mark.parametrize("url", ["ftp://x/y", "file:///etc/passwd", "x", ""])
def test_addresses_of_unknown_protocols_are_refused(url):
    with pytest.raises(NotThere, match="http or https"), open_url(url, 100):
        pass


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "http://[::1", "http://"])
def test_servers_that_cannot_be_reached_are_errors_of_the_file(url):
    with pytest.raises(NotThere, match="cannot be fetched"), open_url(url, 100):
        pass
