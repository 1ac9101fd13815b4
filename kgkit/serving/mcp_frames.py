"""Frames of the Model Context Protocol: the requests in them, and standard input and output as their streams.

The SDK drops a frame that it cannot read, and its client waits for ever. Here each is answered, as JSON-RPC
2.0 has it: what is no JSON by -32700, what is no request by -32600, a request whose parameters are no object
by -32602. Half of a surrogate pair, as programs send it that cut texts by UTF-16, is read as U+FFFD, which
keeps offsets.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, BinaryIO, Final

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from kgkit.errors import SourceError
from kgkit.files import raw_or_bad_lines

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602

_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_CANCELLED: Final = "notifications/cancelled"


class FrameError(Exception):
    """A frame that is no request.

    Args:
        code: code of JSON-RPC.
        message: sentence that says what is wrong.
        id: id of the request, where it has one.
    """

    def __init__(self, code: int, message: str, id: int | str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.id = code, message, id

    def answer(self) -> Any:
        """Return the answer of JSON-RPC."""
        import mcp_types as types

        error = types.ErrorData(code=self.code, message=self.message)
        return types.JSONRPCError(jsonrpc="2.0", id=self.id, error=error)


def without_half_pairs(content: bytes) -> str:
    """Return a text of JSON, in which U+FFFD stands for the escapes of half a surrogate pair.

    It also stands for bytes that are no UTF-8.
    """
    text = content.decode(errors="replace")
    return _ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], text) if r"\u" in text else text


def parse_frame(text: str) -> Any:
    """Return the message of a frame, as the SDK has it; None for one that nobody answers.

    Raises:
        FrameError: if it is no request, notification or answer.
    """
    import mcp_types as types
    from pydantic import ValidationError

    try:
        frame = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise FrameError(PARSE_ERROR, f"the frame is no JSON: {error}") from None
    if not isinstance(frame, dict):
        raise FrameError(INVALID_REQUEST, "the frame is no object of JSON")
    id = frame.get("id")
    name = id if isinstance(id, int | str) and not isinstance(id, bool) else None
    if "method" not in frame:
        with suppress(ValidationError):
            return types.jsonrpc_message_adapter.validate_python(frame, by_name=False)
        if "result" in frame or "error" in frame:
            return None  # an answer that nobody waits for
        raise FrameError(INVALID_REQUEST, "the request has no method", name)
    if "id" in frame and name is None:
        raise FrameError(INVALID_REQUEST, "the id of the request is neither a text nor a whole number")
    if frame.get("jsonrpc") != "2.0" or not isinstance(frame["method"], str):
        raise FrameError(
            INVALID_REQUEST, 'the request has no "jsonrpc": "2.0", or its method is no text', name
        )
    try:
        return (types.JSONRPCRequest if "id" in frame else types.JSONRPCNotification).model_validate(frame)
    except ValidationError:
        if "id" not in frame:
            return None  # a notification is never answered
        raise FrameError(INVALID_PARAMS, "the params of the request are no object", name) from None


# -- standard input and output -----------------------------------------------


class _OpenRequests:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._changed = anyio.Event()

    def begin(self, message: Any) -> None:
        """Take note of a request; one that is cancelled is not answered."""
        if getattr(message, "method", None) == _CANCELLED:
            self.end((message.params or {}).get("requestId"))
        elif hasattr(message, "method") and hasattr(message, "id"):
            self._counts[str(message.id)] += 1

    def end(self, id: object) -> None:
        """Take note that a request is answered."""
        self._counts[str(id)] -= 1
        self._counts = +self._counts
        self._changed.set()

    async def wait(self) -> None:
        """Wait until all are answered."""
        while self._counts:
            self._changed = anyio.Event()
            await self._changed.wait()


@asynccontextmanager
async def stdio_frames(
    most: int,
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[Any]]]:
    """Give the streams of messages, in and out, that a session of the SDK takes.

    The first one ends when standard input has ended and all requests are answered.

    Args:
        most: bytes of a frame, at most.
    """
    requests, read_stream = anyio.create_memory_object_stream[Any](0)
    write_stream, answers = anyio.create_memory_object_stream[Any](0)
    open_requests = _OpenRequests()
    with _own_output() as output:
        async with anyio.create_task_group() as tasks:

            async def write() -> None:
                """Write answers; where nobody reads them, end the session."""
                try:
                    await _write(answers, output, open_requests)
                except OSError:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(_read, most, requests, write_stream.clone(), open_requests)
            tasks.start_soon(write)
            yield read_stream, write_stream


async def _read(
    most: int,
    requests: MemoryObjectSendStream[Any],
    answers: MemoryObjectSendStream[Any],
    open_requests: _OpenRequests,
) -> None:
    """Send on the messages of standard input, and answer what is none."""
    from mcp.shared.message import SessionMessage

    frames = raw_or_bad_lines(sys.stdin.buffer, None, most)
    async with requests, answers:
        while (frame := await anyio.to_thread.run_sync(_next, frames, abandon_on_cancel=True)) is not None:
            try:
                if isinstance(frame, SourceError):
                    raise FrameError(INVALID_REQUEST, f"the frame cannot be read: {frame.message}")
                if not frame.strip():
                    continue
                message = parse_frame(without_half_pairs(frame))
            except FrameError as error:
                await answers.send(SessionMessage(error.answer()))
                continue
            if message is not None:
                open_requests.begin(message)
                await requests.send(SessionMessage(message))
        await open_requests.wait()


def _next(frames: Iterator[tuple[int, bytes | SourceError]]) -> bytes | SourceError | None:
    """Return the next frame, or its error; None at the end."""
    try:
        return next(frames, (0, None))[1]
    except SourceError as error:
        return error


async def _write(
    answers: MemoryObjectReceiveStream[Any], output: BinaryIO, open_requests: _OpenRequests
) -> None:
    async for item in answers:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await anyio.to_thread.run_sync(_write_line, output, text.encode())
        if not hasattr(item.message, "method"):
            open_requests.end(item.message.id)


def _write_line(output: BinaryIO, line: bytes) -> None:
    output.write(line + b"\n")
    output.flush()


@contextmanager
def _own_output() -> Iterator[BinaryIO]:
    """Give standard output as a stream; what anybody else prints goes to standard error meanwhile."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(own), "wb") as stream:
            yield stream
    finally:
        os.dup2(own, 1)
        os.close(own)
