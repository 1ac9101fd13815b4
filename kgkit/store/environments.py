"""One LMDB environment per build and process.

py-lmdb refuses to open one file twice in a process, and in a forked child of
it; so handles on the same build share an environment, counted here. Published
builds never change, so environments are opened without locks: no reader table
to fill, nothing written, and a read-only file system will do.

A forked child reads on through what it inherited: without a reader table
nothing in it belongs to one process. It must not close it, though. Closing
waits for the calls that other threads have under way, and the threads that
were reading when the parent forked do not exist in the child.

A file is known by its inode: a build that was removed and built again is
another one, whoever still reads the first.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import lmdb

from kgkit.errors import DamagedKB, NotThere
from kgkit.store.layout import BY_ID, DATA, OPTIONAL, SINCE, TABLES


class Environment:
    """An open LMDB environment and its tables."""

    def __init__(self, folder: Path, file: tuple[int, int]) -> None:
        self.file = file
        self.users = 0
        self.pid = os.getpid()
        try:
            self.lmdb = lmdb.open(
                str(folder),
                readonly=True,
                lock=False,
                create=False,
                max_dbs=len(TABLES) + len(OPTIONAL),
                readahead=False,
            )
        except lmdb.Error as error:
            if not folder.exists():
                raise _missing_build(folder) from None
            raise _unreadable(folder, error) from error
        try:
            self.tables = {name: self._table(name) for name in TABLES if name not in SINCE}
            for name in (*SINCE, *OPTIONAL):
                with suppress(lmdb.NotFoundError):
                    self.tables[name] = self._table(name)
        except lmdb.Error as error:
            self.lmdb.close()
            raise _unreadable(folder, error) from error

    def _table(self, name: str) -> Any:
        return self.lmdb.open_db(name.encode(), create=False, integerkey=name in BY_ID)


class Gets(threading.local):
    """A thread's own read transaction; `get(key, default, table)` is LMDB's.

    LMDB refuses all further reads of a transaction in which one has failed: `renew` begins another.
    """

    def __init__(self, env: lmdb.Environment) -> None:
        self._env = env
        self.renew()

    def renew(self) -> None:
        """Begin a new transaction in the place of the thread's own."""
        self.transaction = self._env.begin()
        self.get: Callable[..., bytes | None] = self.transaction.get


_open: dict[tuple[int, int], Environment] = {}
_returned: deque[Environment] = deque()
_lock = threading.Lock()


def acquire(folder: Path) -> Environment:
    """Return the environment of *folder*, opened if this process has not done so."""
    try:
        status = (folder / DATA).stat()
    except OSError as error:
        if not folder.exists():
            raise _missing_build(folder) from None
        raise _unreadable(folder, error) from error
    with _lock:
        file = status.st_dev, status.st_ino
        environment = _open.get(file)
        if environment is None:
            environment = _open[file] = Environment(folder, file)
        environment.users += 1
    _settle()
    return environment


def release(environment: Environment) -> None:
    """Give back what `acquire` returned; the last user closes it.

    The garbage collector may call this anywhere, inside `acquire` too, so it
    never waits for the lock: whoever holds it settles when done.
    """
    _returned.append(environment)
    _settle()


def _settle() -> None:
    while _returned and _lock.acquire(blocking=False):
        try:
            while _returned:
                environment = _returned.popleft()
                environment.users -= 1
                if environment.users == 0 and environment.pid == os.getpid():
                    del _open[environment.file]
                    environment.lmdb.close()
        finally:
            _lock.release()


def _missing_build(folder: Path) -> NotThere:
    return NotThere(f"no knowledge base in {folder}: it was removed a moment ago")


def _unreadable(folder: Path, error: Exception) -> DamagedKB:
    return DamagedKB(f"{folder} is not a readable knowledge base: {error}; build it again")


if hasattr(os, "register_at_fork"):
    # Nobody forks in the middle of opening: the child could not open that file any more.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
