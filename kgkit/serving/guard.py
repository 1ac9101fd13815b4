"""Middleware before every request: the token, the size of the body, and the time.

    token       `Authorization: Bearer TOKEN`, or Basic with TOKEN as the password, compared in constant time
    body        is read before the application is called, up to the limit
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
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Send

from kgkit.errors import SourceError
from kgkit.files import without_mark
from kgkit.serving.metrics import ServiceMetrics
from kgkit.serving.problems import Busy, ErrorPage, Problem, problem_of, problem_response
from kgkit.serving.service import Service

log = logging.getLogger(__name__)

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
# Of several schemes in a header Chrome reads the first: with Basic it asks for a password.
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="kgkit", Bearer realm="kgkit"'}


class Guard:
    """ASGI middleware that refuses requests without the token, and ends those that take too long.

    Args:
        app: application behind it.
        service: service, whose settings have the token and the limits.
        metrics: metrics in which requests are counted.
        error_page: function that returns a problem as a page, where the request asks for HTML; None: all are
            JSON.
    """

    def __init__(
        self, app: ASGIApp, service: Service, metrics: ServiceMetrics, error_page: ErrorPage | None = None
    ) -> None:
        self.app, self.service, self.metrics, self.error_page = app, service, metrics, error_page
        self._limits = service.settings.limits
        self._token = None if service.settings.token is None else service.settings.token.encode()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begin, answer, seconds = time.perf_counter(), _Answer(send), self._limits.seconds
        body: bytes | None = None
        try:
            async with asyncio.timeout(seconds):
                self._check_token(scope)
                body = await self._read_body(scope, receive)
                await self._answer(scope, body, receive, answer)
        except TimeoutError as error:
            problem: Problem = Busy(f"there was no answer within {seconds:g} s", 5)
            if body is None:
                problem = Problem(408, f"the body did not arrive within {seconds:g} s", field="body")
            await self._refuse(scope, answer, problem, error)
        except ClientDisconnect:  # no failure of the service, and nobody to answer: counted with status 0
            log.debug("a client left before its request was answered")
        except Exception as error:  # noqa: BLE001 - no error ends a worker, and each is logged
            await self._refuse(scope, answer, problem_of(error, self.service.home), error)
        finally:
            method, route = scope["method"], getattr(scope.get("route"), "path", "other")
            elapsed = time.perf_counter() - begin
            self.metrics.count_request(method, route, answer.status, elapsed)
            if self.service.request_log is not None:
                self.service.request_log.write(method, route, answer.status, elapsed)

    def _check_token(self, scope: Any) -> None:
        """Refuse a request without the token, if one is asked for.

        Raises:
            Problem: if it has none, or another one.
        """
        path = scope["path"]
        if self._token is None or path in _OPEN_PATHS or path.startswith(_STATIC_PATH):
            return
        scheme, _, value = Headers(scope=scope).get("authorization", "").encode("latin-1").partition(b" ")
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

    async def _read_body(self, scope: Any, receive: Receive) -> bytes:
        """Return the body of a request, without a byte order mark.

        Raises:
            Problem: if it has too many bytes, or is UTF-16.
            ClientDisconnect: if the client leaves before it is there.
        """
        body, most = bytearray(), self._limits.body_bytes
        length, more = Headers(scope=scope).get("content-length", ""), True
        too_large = length.isdecimal() and int(length[:20]) > most
        while more and not too_large:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            more, too_large = message.get("more_body", False), len(body) > most
        if too_large:  # the server reads and drops the rest, so that the client hears the answer
            raise Problem(
                413, f"the body has more than {most:,} bytes", field="body",
                remedy="send the texts in several requests",
            )  # fmt: skip
        try:
            return without_mark(bytes(body))
        except SourceError:
            raise Problem(422, "the body is UTF-16", field="body", remedy="send UTF-8") from None

    async def _answer(self, scope: Any, body: bytes, receive: Receive, answer: "_Answer") -> None:
        """Let the application answer a request, until its client leaves.

        Raises:
            ClientDisconnect: if it leaves before an answer has begun.
        """

        async def left() -> Message:
            """Wait until the client leaves."""
            while (message := await receive())["type"] != "http.disconnect":
                pass
            return message

        async def replay() -> Message:
            """Return the body, and then that the client has left."""
            return messages.pop() if messages else await asyncio.shield(leave)

        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        leave = asyncio.create_task(left())
        work = asyncio.ensure_future(self.app(scope, replay, answer.send))
        try:
            await asyncio.wait((work, leave), return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not answer.status:
                raise ClientDisconnect
            await work
        finally:
            leave.cancel()
            if work.cancel():
                await asyncio.wait((work,))

    async def _refuse(self, scope: Any, answer: "_Answer", problem: Problem, error: Exception) -> None:
        """Answer with a problem, unless an answer is under way; log errors of the service."""
        if problem.status >= 500 and not isinstance(problem, Busy):
            log.error("%s: %s", problem.title, type(error).__name__, exc_info=error)
        if answer.status:
            return  # the server closes the connection of an answer that is cut off
        page = None if self.error_page is None else self.error_page(Request(scope), problem)
        response = page or problem_response(problem)
        start = {"type": "http.response.start", "status": problem.status, "headers": response.raw_headers}
        await answer.send(start)
        await answer.send({"type": "http.response.body", "body": response.body})


class _Answer:
    """The answer to a request, with the headers that every answer has.

    Attributes:
        status: status of the answer; 0 as long as there is none.
    """

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, 0

    async def send(self, message: Message) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            names = {name for name, _ in headers}
            message["headers"] = headers + [each for each in _SECURITY_HEADERS if each[0] not in names]
        await self._send(message)
