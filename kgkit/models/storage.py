"""What a home takes on the disk, and what in it is of no use any more.

Leftovers are the checkpoints and partial work of trainings, builds and vector jobs that were stopped, and
folders that a killed process was writing or removing. What another process works on is none: its lock tells.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from stat import S_ISLNK
from typing import Any, Final, Literal, NamedTuple

from kgkit.errors import KBBusy
from kgkit.home import Home, KBHome, is_name
from kgkit.vectors import vectors_names
from kgkit.vectors.work import making
from kgkit.versions import LOCK, lock_folder, set_aside

__all__ = ["DiskUsage", "Leftover", "disk_usage", "leftovers", "remove_leftover"]

UNPACKING: Final = ".unpack-"
"""What the name of a folder in a home begins with into which a pack is unpacked."""

_TEMPORARY: Final = (".new-*", ".old-*")
_DIGEST: Final = 13  # letters at the end of a job's folder: a dash, and a digest
_SECONDS_OF_DAY: Final = 86_400


class DiskUsage(NamedTuple):
    """What something takes.

    Attributes:
        kind: `build`, `vectors`, `model`, `run` or `cache`.
        name: KB@BUILD, KB/NAME, or the name of a model or a folder.
        size: bytes on disk.
        path: its folder.
    """

    kind: str
    name: str
    size: int
    path: Path


class Leftover(NamedTuple):
    """A folder that is of no use any more, unless somebody goes on with what was stopped.

    Attributes:
        kind: `training`, `build`, `vectors` (stopped jobs), or `temporary`.
        path: its folder.
        size: bytes on disk.
        modified: time at which a file in it was written last, in seconds since the epoch.
        lock: function that returns the lock of whoever works on it.
    """

    kind: Literal["training", "build", "vectors", "temporary"]
    path: Path
    size: int
    modified: float
    lock: Callable[[], AbstractContextManager[Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON, with the age in days."""
        days = (time.time() - self.modified) / _SECONDS_OF_DAY
        return {"kind": self.kind, "path": str(self.path), "size": self.size, "days": round(max(0, days), 1)}


def disk_usage(home: Home) -> list[DiskUsage]:
    """Return what the builds, vectors, models, trainings and the parts of the cache in a home take."""
    entries: list[DiskUsage] = []
    for kb in home.kbs():
        entries += [_usage("build", f"{kb.name}@{build}", kb.builds / build) for build in kb.build_names()]
        entries += [_usage("vectors", f"{kb.name}/{name}", kb.vectors / name) for name in vectors_names(kb)]
    for kind, folder in (("model", home.models), ("run", home.path / "runs"), ("cache", home.cache)):
        entries += [_usage(kind, path.name, path) for path in _entries(folder)]
    return entries


def leftovers(home: Home, *, days: float = 0) -> list[Leftover]:
    """Return what is of no use any more in a home, but for what a process works on.

    Args:
        home: home that is searched.
        days: age from which on the work of a stopped job counts; temporary folders always do.
    """
    latest = time.time() - days * _SECONDS_OF_DAY
    return [
        leftover
        for leftover in _candidates(home)
        if (leftover.kind == "temporary" or leftover.modified <= latest) and not _is_locked(leftover)
    ]


def remove_leftover(leftover: Leftover) -> bool:
    """Remove a leftover, unless a process works on it by now; return whether it is gone."""
    try:
        with leftover.lock():
            set_aside(leftover.path)
    except (TimeoutError, KBBusy):
        return False
    return not leftover.path.exists()


def sweep_unpacking(home: Home) -> None:
    """Remove what killed processes left of packs in a home, but for what a process is unpacking."""
    for leftover in _unpacking(home):
        with suppress(OSError):  # of another user
            remove_leftover(leftover)


def _unpacking(home: Home) -> Iterator[Leftover]:
    for path in sorted(home.path.glob(f"{UNPACKING}*")):
        yield _leftover("temporary", path, partial(lock_folder, path, 0))


def _candidates(home: Home) -> Iterator[Leftover]:
    """Yield what may be a leftover, whether or not a process works on it."""
    for run in _entries(home.path / "runs"):
        yield _leftover("training", run, partial(lock_folder, run, 0))
    for folder in _entries(home.cache / "parts"):
        kb = _kb(home, folder.name)
        yield from (_leftover("build", path, partial(_lock_of_kb, kb)) for path in _entries(folder))
    for folder in _entries(home.cache / "vectors"):
        kb = _kb(home, folder.name)
        if kb is not None:
            for path in _entries(folder):
                name = path.name[:-_DIGEST] or path.name
                if is_name(name):
                    yield _leftover("vectors", path, partial(making, kb, name))
    yield from _unpacking(home)
    yield from _temporary(home.path / "runs", nullcontext)
    yield from _temporary(home.path / "kbs", nullcontext)
    for kb in filter(None, (_kb(home, folder.name) for folder in _entries(home.path / "kbs"))):
        yield from _temporary(kb.builds, partial(_lock_of_kb, kb))
        for vectors in filter(_is_named, _entries(kb.vectors)):  # unfinished ones too
            yield from _temporary(vectors, partial(making, kb, vectors.name))
    for model in _entries(home.models):
        yield from _temporary(model, partial(lock_folder, model, 0))


def _temporary(folder: Path, lock: Callable[[], AbstractContextManager[Any]]) -> Iterator[Leftover]:
    for pattern in _TEMPORARY:
        for path in sorted(folder.glob(pattern)):
            yield _leftover("temporary", path, lock)


def _leftover(
    kind: Literal["training", "build", "vectors", "temporary"],
    path: Path,
    lock: Callable[[], AbstractContextManager[Any]],
) -> Leftover:
    states = dict(_files(path))
    times = [state.st_mtime for file, state in states.items() if file.name != LOCK]
    if not times:
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    size = sum(state.st_size for state in states.values())
    return Leftover(kind, path, size, max(times, default=time.time()), lock)


def _is_locked(leftover: Leftover) -> bool:
    try:
        with leftover.lock():
            return False
    except (TimeoutError, KBBusy):
        return True
    except OSError:
        return True  # a disk that cannot be written: nothing goes


def _lock_of_kb(kb: KBHome | None) -> AbstractContextManager[Any]:
    """Return the lock of a KB; nothing where there is no such KB, as none may be made by looking."""
    return nullcontext() if kb is None or not kb.path.is_dir() else lock_folder(kb.path, 0)


def _is_named(folder: Path) -> bool:
    return is_name(folder.name)


def _kb(home: Home, name: str) -> KBHome | None:
    return home.kb(name) if is_name(name) else None


def _usage(kind: str, name: str, path: Path) -> DiskUsage:
    return DiskUsage(kind, name, sum(state.st_size for _, state in _files(path)), path)


def _entries(folder: Path) -> list[Path]:
    """Return the folders in a folder, by name, but for hidden ones."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in paths if path.is_dir() and not path.name.startswith(".")]


def _files(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files in a folder with their state; omits links, and files that are removed meanwhile."""
    for parent, _, names in os.walk(path):
        for name in names:
            file = Path(parent, name)
            with suppress(OSError):
                state = file.lstat()
                if not S_ISLNK(state.st_mode):
                    yield file, state
