"""SIGTERM as an error, which closes what is open on its way; processes that start without Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
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


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT for the processes that are started in the block, which keep it blocked.

    A terminal sends Ctrl-C to all of them. A process that is spawned imports modules before it can ignore the
    signal, and would end with a traceback. The calling thread gets the signal after the block.
    """
    if sys.platform == "win32":  # without masks of signals
        yield
        return
    resource_tracker.ensure_running()  # its start would unblock SIGINT, so it is started before
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
