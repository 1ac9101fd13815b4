"""What stands before every request: who may ask, how much, and for how long.

    Host        is a name of this service, or a page of another site could ask through its own name
    Origin      is the service's own, or one that the settings allow, or there is none
    token       `Authorization: Bearer TOKEN`, or Basic with TOKEN as the password, compared in constant time
    body        is counted as it arrives
    rate        of a client's address, where there is a limit
    time        in which a request is to arrive and to be answered; one whose client leaves is given up

Answers get headers that keep a browser from loading anything from elsewhere. `/health/…` and the
page's style sheet need no token.
"""

import asyncio
import binascii
import hmac
import logging
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request

from kgkit.serving.answers import ErrorPage, problem_response
from kgkit.serving.metrics import ServiceMetrics
from kgkit.serving.problems import Busy, Problem, problem_of
from kgkit.serving.service import Service

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Any, Receive, Send], Awaitable[None]]

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
"""What pages may load, unless an answer has a policy of its own."""

_SECURITY_HEADERS: Final = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_OPEN_PATHS: Final = ("/health/live", "/health/ready")
_STATIC_PATH: Final = "/static/"
_PREFLIGHT: Final = b"access-control-request-method"
_READ_HEADERS: Final = frozenset(
    (b"host", b"origin", b"authorization", b"content-length", b"transfer-encoding", _PREFLIGHT)
)
# Of several schemes in a header Chrome reads the first: with Basic it asks for a password.
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="kgkit", Bearer realm="kgkit"'}
_DRAINED_BODIES: Final = 64
"""Of a body that is too large, this many times the limit is read: clients read no answer while they send."""
_DRAIN_SECONDS: Final = 2.0
_RECONNECT_SECONDS: Final = 1.0
"""Time between two answers of a worker that ask their connections to close."""


class Guard:
    """ASGI middleware that refuses what may not ask, and ends what takes too long.

    Args:
        app: application behind it.
        service: service, whose settings say who may ask.
        metrics: metrics in which requests are counted.
        error_page: function that returns a problem as a page, where the request asks for HTML; None: all are
            JSON.
    """

    def __init__(
        self, app: ASGIApp, service: Service, metrics: ServiceMetrics, error_page: ErrorPage | None = None
    ) -> None:
        self.app, self.service, self.metrics, self.error_page = app, service, metrics, error_page
        settings = service.settings
        self._limits = settings.limits
        self._hosts = settings.host_names
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.allowed_origins)
        self._token = None if settings.token is None else settings.token.encode()
        self._rates = ClientRates(settings.limits.rate)
        self._next_reconnect = time.monotonic()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request = GuardedRequest(self, scope, receive, send)
        try:
            async with asyncio.timeout(self._limits.seconds):
                await request.answer()
        except TimeoutError:
            await request.refuse(request.timeout_problem())
        except ClientDisconnect:  # no failure of the service, and nobody to answer: counted with status 0
            log.debug("a client left before its request was there")
        except asyncio.CancelledError:
            if not request.is_abandoned:
                raise
            log.debug("a client left before its request was answered")
        except Exception as error:  # noqa: BLE001 - no error ends a worker, and each is logged
            await request.refuse(problem_of(error, self.service.home), error)
        finally:
            request.end()
            self._count(scope, request)

    def _count(self, scope: Any, request: "GuardedRequest") -> None:
        """Count a request, by the pattern of its address, and log it."""
        seconds = time.perf_counter() - request.begin
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.count_request(scope["method"], route, request.status, seconds)
        if self.service.request_log is not None:
            self.service.request_log.write(scope["method"], route, request.status, seconds)

    def check(self, headers: Mapping[bytes, bytes], scope: Any) -> None:
        """Refuse a request that may not ask.

        Args:
            headers: headers by name; values of a header that comes twice are joined with a comma.
            scope: ASGI scope of the request.

        Raises:
            Problem: if the request is refused.
        """
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._hosts is not None and _host_name(host) not in self._hosts:
            raise Problem(
                421, "the Host of the request is no name of this service", field="Host",
                remedy="ask by the address that it listens at, or start it with --allow-host",
            )  # fmt: skip
        if (origin := headers.get(b"origin")) is not None:
            self._check_origin(origin.decode("latin-1").lower(), host)
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._limits.body_bytes:
            raise self.too_large()
        # A browser sends no token with a preflight request.
        preflight = scope["method"] == "OPTIONS" and _PREFLIGHT in headers
        if self._token is not None and not is_open_path(scope["path"]) and not preflight:
            self._check_token(headers.get(b"authorization", b""))
        self._rates.check((scope.get("client") or ("",))[0])

    def _check_origin(self, origin: str, host: str) -> None:
        if origin in self._origins:
            return
        scheme, _, name = origin.partition("://")
        if name != host or scheme not in ("http", "https"):
            raise Problem(
                403, "pages of another site may not ask", field="Origin",
                remedy="start the service with --allow-origin, where its pages are yours",
            )  # fmt: skip

    def _check_token(self, authorization: bytes) -> None:
        assert self._token is not None
        scheme, _, value = authorization.partition(b" ")
        sent = value.strip()
        if scheme.lower() == b"basic":
            try:
                sent = b64decode(sent, validate=True).partition(b":")[2]
            except binascii.Error:
                sent = b""
        elif scheme.lower() != b"bearer":
            sent = b""
        if not hmac.compare_digest(sent, self._token):
            reason = "the token is another one" if sent else "no token came with the request"
            raise Problem(
                401, reason, field="Authorization", headers=_CHALLENGE,
                remedy="send the header `Authorization: Bearer TOKEN`; a browser sends the token as the "
                "password, under any name",
            )  # fmt: skip

    def asks_to_close(self) -> bool:
        """Say whether an answer asks its connection to close.

        All do while the service ends. Of several workers each lets one connection a second go, which another
        may take: else all would stay with those that were there when a worker was replaced.
        """
        if self.service.closing:
            return True
        now = time.monotonic()
        if self.service.settings.workers == 1 or now < self._next_reconnect:
            return False
        self._next_reconnect = now + _RECONNECT_SECONDS
        return True

    def too_large(self) -> Problem:
        """Return the problem of a body with too many bytes."""
        most = self._limits.body_bytes
        return Problem(
            413, f"the body has more than {most:,} bytes", field="body", headers={"Connection": "close"},
            remedy="send the texts in several requests",
        )  # fmt: skip

    def cors_headers(self, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Return the headers that let a page of an allowed origin read the answer."""
        origin = headers.get(b"origin", b"")
        if origin.decode("latin-1").lower() not in self._origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


class GuardedRequest:
    """A request on its way through the guard.

    Args:
        guard: the guard.
        scope: ASGI scope.
        receive: ASGI function that returns the next message of the client.
        send: ASGI function that sends a message to the client.

    Attributes:
        begin: time at which the request began, in seconds of `time.perf_counter`.
        status: status of the answer; 0 as long as there is none.
        is_abandoned: whether the client left before there was one, so that the task was cancelled.
    """

    def __init__(self, guard: Guard, scope: Any, receive: Receive, send: Send) -> None:
        self._guard, self._scope, self._receive, self._send = guard, scope, receive, send
        self.begin, self.status = time.perf_counter(), 0
        self._bytes, self._complete = 0, False
        self._headers: dict[bytes, bytes] = {}
        self.is_abandoned = False
        self._task = asyncio.current_task()
        self._watch: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Stop waiting for the client to leave."""
        if self._watch is not None:
            self._watch.cancel()

    async def answer(self) -> None:
        """Pass the request on to the application, if the guard lets it.

        Raises:
            Problem: if the guard refuses it.
        """
        headers = self._headers
        for name, value in self._scope["headers"]:
            if name in _READ_HEADERS:
                headers[name] = headers[name] + b"," + value if name in headers else value
        try:
            self._guard.check(headers, self._scope)
        except Problem as problem:
            if problem.status == 413 or self._scope["method"] not in ("GET", "HEAD"):
                await self._drain()
            raise
        if self._scope["method"] == "OPTIONS" and _PREFLIGHT in headers:
            await self._answer_preflight()
        else:
            receive: Receive = self._receive_counted
            if not (headers.get(b"content-length", b"0").strip(b"0") or b"transfer-encoding" in headers):
                receive = _replaying(await receive(), receive)  # there is no body to wait for
            await self._guard.app(self._scope, receive, self._send_secured)

    async def _answer_preflight(self) -> None:
        allowed = self._guard.cors_headers(self._headers)
        if allowed:
            allowed += [
                (b"access-control-allow-methods", b"GET, POST"),
                (b"access-control-allow-headers", b"Authorization, Content-Type"),
                (b"access-control-max-age", b"600"),
            ]
        await self._send_secured({"type": "http.response.start", "status": 204, "headers": allowed})
        await self._send_secured({"type": "http.response.body", "body": b""})

    async def refuse(self, problem: Problem, error: Exception | None = None) -> None:
        """Answer with a problem, unless an answer is under way.

        Args:
            problem: the problem.
            error: error behind the problem; it is logged if the status is 500 or above.
        """
        if problem.status >= 500 and not isinstance(problem, Busy):
            log.error("%s: %s", problem.title, type(error).__name__, exc_info=error)
        if self.status:
            return  # the server closes the connection of an answer that is cut off
        error_page = self._guard.error_page
        page = None if error_page is None else error_page(Request(self._scope), problem)
        response = page or problem_response(problem)
        headers = list(response.raw_headers)
        if not self._complete and self._scope["method"] not in ("GET", "HEAD"):
            headers = [header for header in headers if header[0] != b"connection"]
            headers.append((b"connection", b"close"))
        await self._send_secured(
            {"type": "http.response.start", "status": problem.status, "headers": headers}
        )
        await self._send_secured({"type": "http.response.body", "body": response.body})

    def timeout_problem(self) -> Problem:
        """Return the problem of a request that took too long to arrive, or to be answered."""
        seconds = self._guard.service.limits.seconds
        if not self._complete and self._bytes_expected():
            return Problem(
                408, f"the body did not arrive within {seconds:g} s", field="body",
                headers={"Connection": "close"},
            )  # fmt: skip
        return Busy(f"there was no answer within {seconds:g} s", 5)

    def _bytes_expected(self) -> bool:
        return self._scope["method"] not in ("GET", "HEAD", "OPTIONS")

    async def _receive_counted(self) -> Message:
        """Receive a message, and count the bytes of the body.

        Raises:
            Problem: if there are too many.
        """
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            if self._bytes > self._guard.service.limits.body_bytes:
                await self._drain()
                raise self._guard.too_large()
            if self._complete and self._watch is None:
                self._watch = asyncio.create_task(self._wait_for_leave())
        return message

    async def _wait_for_leave(self) -> None:
        """Cancel the request when its client leaves before an answer has begun."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.status and self._task is not None:
            self.is_abandoned = True
            self._task.cancel()

    async def _drain(self) -> None:
        """Read on for a while, so that a client that is still sending hears the answer."""
        count, most = 0, _DRAINED_BODIES * self._guard.service.limits.body_bytes
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._complete and count < most:
                    message = await self._receive()
                    count += len(message.get("body", b""))
                    self._complete = not message.get("more_body", False)
        except TimeoutError:
            return

    async def _send_secured(self, message: Message) -> None:
        """Send a message, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            names = {name for name, _ in headers}
            headers += [header for header in _SECURITY_HEADERS if header[0] not in names]
            if b"origin" in self._headers:
                headers += self._guard.cors_headers(self._headers)
            if b"connection" not in names and self._guard.asks_to_close():
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        await self._send(message)


def _replaying(message: Message, receive: Receive) -> Receive:
    """Return a function that returns a message that has been received, and then receives others."""
    messages = [message]

    async def replay() -> Message:
        """Return the next message."""
        return messages.pop() if messages else await receive()

    return replay


def is_open_path(path: str) -> bool:
    """Return whether a path needs no token: health, and static files, which pages of errors load."""
    return path in _OPEN_PATHS or path.startswith(_STATIC_PATH)


_MAX_CLIENTS: Final = 10_000
"""Addresses of clients whose requests are counted, those that came last."""


class ClientRates:
    """Counts the requests of clients' addresses: a bucket for each, of as many as come in two seconds.

    Args:
        rate: requests a second; 0: any number.
        clock: function that returns seconds.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._size = max(1.0, 2 * rate)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str) -> None:
        """Count a request of a client.

        Raises:
            Problem: if it asks too often.
        """
        if not self._rate:
            return
        now = self._clock()
        level, before = self._buckets.pop(client, (self._size, now))
        level = min(self._size, level + (now - before) * self._rate)
        self._buckets[client] = (level - 1 if level >= 1 else level), now
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if level < 1:
            seconds = max(1, round((1 - level) / self._rate))
            raise Problem(
                429, f"more than {self._rate:g} requests a second came from this address",
                remedy=f"ask again in {seconds} s", headers={"Retry-After": str(seconds)},
            )  # fmt: skip


def _host_name(host: str) -> str:
    """Return the name in a header `Host`, without the port: `[::1]:80` gives `::1`; of no such header all."""
    name, colon, port = host.rpartition(":")
    if not colon or (port and not port.isdecimal()):
        name = host
    if name.startswith("[") and name.endswith("]"):
        return name[1:-1]
    return host if ":" in name else name
