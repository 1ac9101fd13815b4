"""SIGTERM as an error, which closes what is open on its way."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kgkit.errors import Terminated


def raise_terminated(*_: Any) -> None:
    """Handle SIGTERM as Python handles Ctrl-C.

    Raises:
        Terminated: always.
    """
    raise Terminated


@contextmanager
def terminations() -> Iterator[None]:
    """Let SIGTERM end the block by `Terminated`, so that what it holds is closed and kept.

    In the main thread, where nobody handles SIGTERM.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
