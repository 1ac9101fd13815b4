"""The service's log: lines of JSON on standard error, one for each event, without texts of requests.

Of an unexpected error the class and the lines of code are logged, not the message, which may quote a request.
Of a request the route is logged, not the address.
"""

import logging
import os
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_encode: Final = msgspec.json.Encoder().encode
_STANDARD_ERROR: Final = 2
_MAX_FRAMES: Final = 20


class JSONFormatter(logging.Formatter):
    """Formats records as JSON: time, level, logger, message; kind and lines of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line of JSON."""
        fields: dict[str, Any] = {
            "time": _iso_time(record.created),
            "level": record.levelname.lower(),
            "pid": record.process,
            "logger": record.name,
            "message": record.getMessage().encode("utf-8", "backslashreplace").decode(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])[-_MAX_FRAMES:]
            fields["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return _encode(fields).decode()


def configure_logging(*, quiet: bool = False) -> None:
    """Send all logs of the process to standard error as JSON.

    Args:
        quiet: whether only warnings and errors are written.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    level = logging.WARNING if quiet else logging.INFO
    logging.getLogger("kgkit").setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.WARNING)


class RequestLog:
    """Writes a line for each request: method, route, status, milliseconds.

    Args:
        file: file descriptor that is written to.
    """

    def __init__(self, file: int = _STANDARD_ERROR) -> None:
        self._file, self._pid = file, os.getpid()

    def write(self, method: str, route: str, status: int, seconds: float) -> None:
        """Write the line of a request.

        Args:
            method: method of the request.
            route: pattern of its address.
            status: status of the answer; 0: there was none.
            seconds: time that it took.
        """
        line = {
            "time": _iso_time(time.time()),
            "level": "info",
            "pid": self._pid,
            "message": "request",
            "method": method,
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 2),
        }
        try:
            os.write(self._file, _encode(line) + b"\n")
        except OSError:  # the disk under it is full, or its reader has left: the service goes on
            return


def _iso_time(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
