"""Memory of this machine and of this process, as far as the system says it."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from kgkit.building.options import LEAST_MEMORY

__all__ = ["MOST_BY_DEFAULT", "default_memory", "free_memory", "used_memory"]

MOST_BY_DEFAULT: Final = 4_000_000_000
"""Bytes that a build may use unless it is told, on a machine that has twice as much."""

_MEMINFO: Final = Path("/proc/meminfo")
_STATM: Final = Path("/proc/self/statm")
_CGROUP: Final = Path("/proc/self/cgroup")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_LIMITS: Final = {"": "memory.max", "memory": "memory/memory.limit_in_bytes"}
"""File with the limit of a cgroup, by controller; version 2 names none."""


def default_memory() -> int:
    """Return the bytes that a build may use unless it is told: half of what is free, at most 4 GB."""
    free = free_memory()
    return MOST_BY_DEFAULT if free is None else max(LEAST_MEMORY, min(MOST_BY_DEFAULT, free // 2))


def free_memory() -> int | None:
    """Return the bytes that are free on this machine, or the limit of this cgroup if that is less.

    None where the system does not say (elsewhere than on Linux).
    """
    sizes = [*_cgroup_limits()]
    with suppress(OSError, ValueError):
        lines = (line.split() for line in _MEMINFO.read_text().splitlines())
        sizes += [int(line[1]) << 10 for line in lines if line[0] == "MemAvailable:"]
    return min(sizes, default=None)


def _cgroup_limits() -> list[int]:
    """Return the limits of this process's cgroup and of those that it is in."""
    limits = []
    with suppress(OSError):
        for line in _CGROUP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                if controller not in _LIMITS:
                    continue
                folder, _, name = f"{_CGROUPS}/{_LIMITS[controller]}".rpartition("/")
                # In a container the path may be that of the host: then only the root is there.
                inner = Path(folder) / path.strip("/")
                for group in (inner, *inner.parents):
                    if group.is_relative_to(folder):
                        with suppress(OSError, ValueError):  # `max` is no limit
                            limits.append(int((group / name).read_text()))
    return limits


def used_memory() -> int:
    """Return the bytes of memory of this process that no file backs; 0 where the system does not say.

    Elsewhere than on Linux, the most that it ever was.
    """
    try:
        _, resident, shared, *_ = map(int, _STATM.read_bytes().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
