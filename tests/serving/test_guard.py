"""The guard: who may ask, how much, for how long, and what every answer has."""

import asyncio
import base64
import re
import time

import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.testclient import TestClient

from kgkit.home import Home
from kgkit.serving.app import make_app
from kgkit.serving.guard import Guard
from kgkit.serving.metrics import ServiceMetrics
from kgkit.serving.service import Service
from kgkit.serving.settings import Limits, ServiceSettings

TOKEN = "0123456789abcdef0123"
LINK = b'{"text": "dog"}'


def make_client(home, base_url="http://127.0.0.1:8077", **settings):
    """Return a client of a service of its own settings, which is to be entered."""
    service = Service(ServiceSettings(kbs={"mini": ("prior",)}, **settings), Home(home))
    return TestClient(make_app(service), base_url=base_url, raise_server_exceptions=False)


@pytest.fixture(scope="module")
def guarded(served_home):
    with make_client(served_home, token=TOKEN, allowed_origins=("https://mine.example",)) as client:
        yield client


@pytest.mark.parametrize("path", ["/v1/link", "/v1/reconcile"])
def test_a_byte_order_mark_before_a_body_is_read_past(client, path):
    body = LINK if path == "/v1/link" else b'{"names": ["dog"]}'
    assert client.post(path, content=b"\xef\xbb\xbf" + body).json() == client.post(path, content=body).json()
    answer = client.post(path, content=body.decode().encode("utf-16"))
    assert answer.status_code == 422 and "UTF-16" in answer.json()["detail"]


# -- errors for people --------------------------------------------------------

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_a_browser_without_the_token_gets_a_page_that_says_what_to_do(guarded):
    answer = guarded.get("/", headers=BROWSER)
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "Basic" in answer.headers["www-authenticate"]
    assert "a browser sends the token as the password" in answer.text
    assert "content-security-policy" in answer.headers


def test_the_style_sheet_of_such_a_page_needs_no_token(guarded):
    address = re.search('href="(/static/style.css[^"]*)"', guarded.get("/", headers=BROWSER).text)[1]
    assert guarded.get(address).status_code == 200
    assert guarded.get("/static/nothing.css").status_code == 404
    assert guarded.get("/static").status_code == 401


def test_a_refusal_is_a_page_for_browsers_and_a_problem_for_programs(served_home):
    with make_client(served_home, limits=Limits(body_bytes=100)) as client:
        page = client.post("/", headers=BROWSER, content=b"x" * 101)
        assert (page.status_code, page.headers["content-type"][:9]) == (413, "text/html")
        assert "more than 100 bytes" in page.text and 'role="alert"' in page.text
        problem = client.post("/", content=b"x" * 101)
        assert problem.headers["content-type"] == "application/problem+json"
        assert problem.json()["status"] == 413
        assert client.get("/", headers=BROWSER).status_code == 200


def test_a_request_for_options_needs_the_token_unless_it_is_a_preflight(guarded):
    headers = {"Origin": "https://mine.example"}
    for path in ("/v1/link", "/v1/entity", "/reconcile", "/"):
        assert guarded.options(path, headers=headers).status_code == 401
        assert guarded.options(path).status_code == 401
        preflight = guarded.options(path, headers=headers | {"Access-Control-Request-Method": "POST"})
        assert (preflight.status_code, preflight.text) == (200, "OK")
    with_token = guarded.options("/v1/link", headers=headers | {"Authorization": f"Bearer {TOKEN}"})
    assert with_token.status_code == 405


# -- Host and Origin ----------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8077", "localhost:1", "LocalHost", "[::1]:8077", "[::1]"],
)
def test_the_names_of_loopback_are_served(client, host):
    assert client.get("/v1/kbs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8077", "127.0.0.1.evil.example", "localhost.evil.example", "[::2]",
     "127.0.0.1@evil.example", "evil.example#localhost", "127.0.0.1, evil.example", "[::1]evil.example",
     "[::1", "[::1].evil.example:80", "localhost:evil.example", "localhost:80:80", "localhost:-1"],
)  # fmt: skip
def test_a_foreign_host_is_refused_even_on_loopback(client, host):
    answer = client.get("/v1/kbs", headers={"Host": host})
    assert answer.status_code == 400


def test_an_allowed_host_is_served(served_home):
    with make_client(served_home, allowed_hosts=("kg.example",)) as client:
        assert client.get("/v1/kbs", headers={"Host": "KG.example:443"}).status_code == 200
        assert client.get("/v1/kbs", headers={"Host": "kg.example.org"}).status_code == 400


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8077", "HTTP://127.0.0.1:8077"])
def test_pages_of_the_service_may_ask(client, origin):
    assert client.post("/v1/link", content=LINK, headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://127.0.0.1:9999", "http://127.0.0.1", "file://127.0.0.1:8077",
     "http://localhost:8077", "https://127.0.0.1:8077.evil.example", "http://[bad"],
)  # fmt: skip
def test_pages_of_another_site_cannot_read_answers(guarded, origin):
    headers = {"Origin": origin, "Authorization": f"Bearer {TOKEN}"}
    answer = guarded.post("/v1/link", content=LINK, headers=headers)
    assert "access-control-allow-origin" not in answer.headers
    preflight = guarded.options("/v1/link", headers=headers | {"Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 400
    assert "access-control-allow-origin" not in preflight.headers


def test_pages_of_an_allowed_site_may_ask_and_read(guarded):
    headers = {"Origin": "https://mine.example", "Authorization": f"Bearer {TOKEN}"}
    answer = guarded.post("/v1/link", content=LINK, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://mine.example"
    assert answer.headers["vary"] == "Origin"
    without = guarded.post("/v1/link", content=LINK, headers={"Origin": "https://mine.example"})
    assert without.status_code == 401
    assert without.headers["access-control-allow-origin"] == "https://mine.example"


def test_a_preflight_is_answered_for_allowed_sites_without_a_token(guarded):
    headers = {"Origin": "https://mine.example", "Access-Control-Request-Method": "POST"}
    answer = guarded.options("/v1/link", headers=headers)
    assert (answer.status_code, answer.text) == (200, "OK")
    assert "Authorization" in answer.headers["access-control-allow-headers"]


def test_without_allowed_sites_no_preflight_is_answered(client, served_home):
    headers = {"Origin": "https://mine.example", "Access-Control-Request-Method": "POST"}
    assert client.options("/v1/link", headers=headers).status_code == 405
    with make_client(served_home, token=TOKEN) as closed:
        assert closed.options("/v1/link", headers=headers).status_code == 401


# -- the token ----------------------------------------------------------------


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "value",
    [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN} ", basic(f"me:{TOKEN}"), basic(f":{TOKEN}")],
)
def test_the_token_opens_the_service(guarded, value):
    assert guarded.get("/v1/kbs", headers={"Authorization": value}).status_code == 200


@pytest.mark.parametrize(
    "value",
    [None, "", TOKEN, "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}",
     f"Digest {TOKEN}", "Basic !!!", basic(TOKEN), basic(f"{TOKEN}:x"), "Bearer é", f"Bearer {TOKEN}, x"],
)  # fmt: skip
def test_without_the_token_nothing_is_answered(guarded, value):
    headers = {} if value is None else {"Authorization": value.encode("latin-1")}
    for path in ("/v1/kbs", "/metrics", "/v1/openapi.json", "/nothing"):
        answer = guarded.get(path, headers=headers)
        assert (answer.status_code, answer.json()["field"]) == (401, "Authorization")
        assert answer.headers["www-authenticate"] == 'Basic realm="kgkit", Bearer realm="kgkit"'
        assert TOKEN not in answer.text


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_is_asked_without_a_token(guarded, path):
    assert guarded.get(path).status_code == 200


def test_no_token_is_asked_for_where_there_is_none(client):
    assert client.get("/v1/kbs", headers={"Authorization": "Bearer whatever"}).status_code == 200


# -- headers ------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/kbs", "/nothing", "/metrics", "/v1/entity?key=x", "/v1/openapi.json"])
def test_no_answer_lets_a_browser_load_anything_from_elsewhere(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self'") and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


# -- bytes and time -----------------------------------------------------------


class Exchange:
    """A request as ASGI gives it, its body in parts, and the answer to it."""

    def __init__(self, *parts, path="/v1/link", method="POST", headers=(), pause=0.0):
        base = [(b"host", b"127.0.0.1")]
        self.scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": [*base, *headers], "client": ("127.0.0.1", 9), "http_version": "1.1", "scheme": "http",
            "server": ("127.0.0.1", 8077), "root_path": "",
        }  # fmt: skip
        self.parts, self.read, self.pause, self.messages = list(parts), 0, pause, []

    async def receive(self):
        await asyncio.sleep(self.pause)
        if self.read == len(self.parts):
            await asyncio.sleep(3600)
        self.read += 1
        more = self.read < len(self.parts) or self.parts[-1] is None
        return {"type": "http.request", "body": self.parts[self.read - 1] or b"", "more_body": more}

    async def send(self, message):
        self.messages.append(message)

    @property
    def status(self):
        return self.messages[0]["status"]

    @property
    def headers(self):
        return dict(self.messages[0]["headers"])


def pass_through(app, exchange, metrics=None, **limits):
    """Let a request through the guard before *app*, and return it with its answer."""
    service = Service(ServiceSettings(limits=Limits(**limits)), Home.find("/nowhere"))
    guard = Guard(app, service, metrics or ServiceMetrics(CollectorRegistry()))
    asyncio.run(asyncio.wait_for(guard(exchange.scope, exchange.receive, exchange.send), 20))
    return exchange


async def read_all(scope, receive, send):
    """Answer with the number of bytes."""
    count = len((await receive())["body"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(count).encode()})


def test_a_body_within_the_limit_is_passed_on():
    exchange = pass_through(read_all, Exchange(b"x" * 50, b"x" * 50), body_bytes=100)
    assert (exchange.status, exchange.messages[1]["body"]) == (200, b"100")


def test_bytes_are_counted_as_they_arrive_whatever_the_length_says():
    parts = [b"x" * 50] * 100
    exchange = pass_through(read_all, Exchange(*parts, headers=[(b"content-length", b"5")]), body_bytes=120)
    assert exchange.status == 413


def test_of_a_body_without_an_end_no_more_is_read_than_the_limit():
    exchange = pass_through(read_all, Exchange(*[b"x" * 100] * 100_000), body_bytes=100)
    assert exchange.status == 413
    assert exchange.read == 2


def test_a_length_over_the_limit_is_refused_before_the_application_sees_it():
    async def never(scope, receive, send):
        raise AssertionError

    headers = [(b"content-length", b"9" * 30)]
    exchange = pass_through(never, Exchange(b"x", headers=headers), body_bytes=100)
    assert exchange.status == 413


def test_a_sender_that_is_too_slow_is_told_so():
    begin = time.monotonic()
    exchange = pass_through(read_all, Exchange(b"x", None, pause=0.01), seconds=1)
    assert exchange.status == 408
    assert 0.9 < time.monotonic() - begin < 10


def test_a_client_that_goes_before_its_body_is_there_is_no_failure_of_the_service(caplog):
    async def read_body(scope, receive, send):
        await Request(scope, receive).body()

    class Gone(Exchange):
        async def receive(self):
            return await super().receive() if self.read < len(self.parts) else {"type": "http.disconnect"}

    metrics = ServiceMetrics(CollectorRegistry())
    exchange = pass_through(read_body, Gone(b"x", None), metrics=metrics)
    assert (exchange.messages, caplog.records) == ([], [])
    [row] = [row for row in metrics.exposition().decode().splitlines() if row.startswith("kgkit_requests_to")]
    assert 'status="500"' not in row


def test_an_answer_that_takes_too_long_is_given_up():
    async def sleep(scope, receive, send):
        await receive()
        await asyncio.sleep(3600)

    exchange = pass_through(sleep, Exchange(b"x"), seconds=1)
    assert exchange.status == 503
    assert b"retry-after" in {name.lower() for name in exchange.headers}


class Leaving(Exchange):
    """A request whose client leaves once it is sent."""

    async def receive(self):
        if self.read < len(self.parts):
            return await super().receive()
        await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}


@pytest.mark.parametrize(("method", "parts"), [("POST", [b"a", b"b"]), ("POST", [b""]), ("GET", [b""])])
def test_the_work_of_a_request_ends_when_its_client_leaves(method, parts):
    cancelled = []

    async def sleep(scope, receive, send):
        if method == "POST":
            assert await Request(scope, receive).body() == b"".join(parts)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    assert pass_through(sleep, Leaving(*parts, method=method)).messages == []
    assert cancelled


def test_an_answer_that_has_begun_is_finished_though_its_client_leaves():
    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.05)
        await send({"type": "http.response.body", "body": b"x"})

    exchange = pass_through(answer, Leaving(b"x"))
    assert [message["type"] for message in exchange.messages] == [
        "http.response.start",
        "http.response.body",
    ]


def test_an_error_that_nobody_expected_is_a_problem_without_its_text(caplog):
    async def fail(scope, receive, send):
        raise RuntimeError("the secret text")

    exchange = pass_through(fail, Exchange(b"x"))
    assert exchange.status == 500
    assert b"secret" not in exchange.messages[1]["body"]
    assert "secret" not in caplog.text.replace(str(caplog.records[0].exc_text), "")


def test_an_answer_that_is_cut_off_is_not_followed_by_another():
    async def half(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError

    assert [message["type"] for message in pass_through(half, Exchange(b"x")).messages] == [
        "http.response.start"
    ]


def test_a_websocket_is_not_passed_on():
    async def never(scope, receive, send):
        raise AssertionError

    exchange = Exchange(b"")
    exchange.scope["type"] = "websocket"
    assert pass_through(never, exchange).messages == []
