"""Whether the network may be used, and files that are read from it.

`KGKIT_OFFLINE=1` forbids every access of kgkit to the network. The variables of huggingface_hub and
transformers forbid theirs, see `kgkit.encoder.finding`.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from kgkit.errors import NetworkForbidden, NotThere

OFFLINE: Final = "KGKIT_OFFLINE"
"""The variable that forbids the network."""

_SECONDS: Final = 60.0  # without a byte, until a server counts as gone


def is_set(variable: str) -> bool:
    """Say whether a variable of the environment is switched on, as `1`, `on`, `yes` or `true`."""
    return os.environ.get(variable, "").upper() in ("1", "ON", "YES", "TRUE")


def check_online(target: str, hint: str = "") -> None:
    """Make sure that the network may be used.

    Args:
        target: what is to be fetched, for the error.
        hint: what one does instead.

    Raises:
        NetworkForbidden: if `KGKIT_OFFLINE` is set.
    """
    if is_set(OFFLINE):
        raise NetworkForbidden(target, hint)


class Download(io.RawIOBase):
    """A file on the web that is being read.

    Args:
        response: response of the server.
        url: address of the file, for errors.
        length: number of bytes that the server announced; None: it did not say.
    """

    def __init__(self, response: IO[bytes], url: str, length: int | None = None) -> None:
        self._response, self._url, self._missing = response, url, length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer.

        Raises:
            NotThere: if the connection is lost.
        """
        from http.client import HTTPException

        try:
            content = self._response.read(len(buffer))
        except (HTTPException, OSError, ValueError) as error:
            raise NotThere(f"{self._url} cannot be read to its end: {error}") from error
        if self._missing is not None:
            self._missing -= len(content)
            if len(buffer) and not content and self._missing > 0:  # which http.client takes for the end
                raise NotThere(f"{self._url} cannot be read to its end: {self._missing:,} bytes are missing")
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def open_url(url: str, max_bytes: int) -> Iterator[Download]:
    """Open a file on the web for reading.

    Args:
        url: address, of http or https.
        max_bytes: largest size that a server may announce.

    Raises:
        NetworkForbidden: if `KGKIT_OFFLINE` is set.
        NotThere: if the server cannot be reached, has no such file, or announces a larger one.
    """
    check_online(url)
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    if not url.lower().startswith(("http://", "https://")):
        raise NotThere(f"{url!r} is no address of http or https")
    try:
        response = urlopen(Request(url, headers={"User-Agent": "kgkit"}), timeout=_SECONDS)
    except (URLError, HTTPException, OSError, ValueError) as error:
        raise NotThere(f"{url} cannot be fetched: {error}") from error
    with response:
        length = response.headers.get("Content-Length", "")
        size = int(length[:20]) if length.isdecimal() else None
        if size is not None and size > max_bytes:
            raise NotThere(f"{url} has {size:,} bytes, and {max_bytes:,} are allowed")
        yield Download(response, url, size)
