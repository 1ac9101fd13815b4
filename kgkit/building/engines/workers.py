"""What every worker process begins with."""

import os
import signal
from multiprocessing import parent_process
from threading import Thread

__all__ = ["outlive_no_parent"]


def outlive_no_parent() -> None:
    """Leave Ctrl-C to the parent, which stops its workers, and end this process when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it would wait for work for ever."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
