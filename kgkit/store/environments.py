"""One LMDB environment per build and process.

py-lmdb refuses to open one path twice in a process, and in a forked child of
it; so handles on the same build share an environment, counted here, and a
child starts by closing what it inherited. Published builds never change, so
environments are opened without locks: no reader table to fill, nothing
written, and a read-only file system will do.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet

import lmdb

from kgkit.errors import DamagedKB
from kgkit.store.layout import TABLES


class Environment:
    """An open LMDB environment and its tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users = 0
        try:
            self.lmdb = lmdb.open(
                str(folder), readonly=True, lock=False, create=False, max_dbs=len(TABLES), readahead=False
            )
            self.tables = {name: self.lmdb.open_db(name.encode(), create=False) for name in TABLES}
        except lmdb.Error as error:
            raise DamagedKB(f"{folder} is not a readable knowledge base: {error}; build it again") from error


class Gets(threading.local):
    """A thread's own read transaction; `get(key, default, table)` is LMDB's."""

    def __init__(self, env: lmdb.Environment) -> None:
        self.transaction = env.begin()
        self.get: Callable[..., bytes | None] = self.transaction.get


_open: dict[Path, Environment] = {}
_lock = threading.RLock()
_forgetful: WeakSet["Forgets"] = WeakSet()


class Forgets:
    """Something that holds an environment and must let go of it in a forked child."""

    def __init__(self) -> None:
        _forgetful.add(self)

    def forget(self) -> None:
        """Drop what was inherited; open it again when it is needed."""
        raise NotImplementedError


def acquire(folder: Path) -> Environment:
    """Return the environment of *folder*, opened if this process has not done so."""
    folder = folder.resolve()
    with _lock:
        environment = _open.get(folder)
        if environment is None:
            environment = _open[folder] = Environment(folder)
        environment.users += 1
        return environment


def release(environment: Environment) -> None:
    """Give back what `acquire` returned; the last user closes it."""
    with _lock:
        environment.users -= 1
        if environment.users == 0 and _open.get(environment.folder) is environment:
            del _open[environment.folder]
            environment.lmdb.close()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it
    for holder in list(_forgetful):
        holder.forget()
    for environment in _open.values():
        environment.lmdb.close()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
