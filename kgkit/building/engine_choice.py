"""The engine that groups the records of a source, where nobody names one, and the memory that it may use."""

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from kgkit.building.contract import Builder
from kgkit.building.options import LEAST_MEMORY
from kgkit.errors import MissingExtra

__all__ = [
    "ENGINE_CHOSEN",
    "EngineChoice",
    "MOST_BY_DEFAULT",
    "READING_SHARE",
    "choose_engine",
    "default_memory",
    "free_memory",
    "readable_size",
    "used_memory",
]

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


ENGINE_CHOSEN: Final = "engine"
"""Prefix of the progress message that names the chosen engine."""

LARGEST_IN_MEMORY: Final = 100_000_000
"""Largest source, in bytes, that is grouped in memory; above it `local` is faster too."""

MEMORY_FACTOR: Final = 13
"""Bytes of memory that grouping takes for a byte of a source: of JSON lines of entities with short names."""

READING_SHARE: Final = 0.25
"""Part of the memory that is in use when all is read and grouping begins."""

_PACKAGES: Final = ("duckdb", "marisa_trie", "pyarrow")


class EngineChoice(NamedTuple):
    """An engine, and why it was chosen."""

    engine: str
    reason: str


def choose_engine(builder: Builder, size: int, memory: int) -> EngineChoice:
    """Return the engine for a source: `memory` if it is small enough.

    Args:
        builder: builder that reads it.
        size: bytes of the source, uncompressed; 0 if nobody knows.
        memory: bytes that may be used.

    Raises:
        MissingExtra: if it is too large for `memory`, and what `local` needs is not installed.
    """
    if builder.engine != "memory":
        return EngineChoice(builder.engine, f"the builder {builder.name} needs it")
    need = MEMORY_FACTOR * size
    source, budget = f"the source has {readable_size(size)}", f"--memory {readable_size(memory)}"
    if size <= LARGEST_IN_MEMORY and need <= memory:
        return EngineChoice("memory", source)
    missing = [package for package in _PACKAGES if find_spec(package) is None]
    if missing and need > memory:
        raise MissingExtra(
            missing[0],
            "scale",
            f"{source}, about {readable_size(need)} in memory, and {budget} allows less; without the "
            f"package: --engine memory --memory {readable_size(need)}",
        )
    if missing:
        return EngineChoice("memory", source)
    if need > memory:
        return EngineChoice("local", f"{source}, about {readable_size(need)} in memory; {budget} allows less")
    return EngineChoice("local", f"{source}, more than {readable_size(LARGEST_IN_MEMORY)}")


def readable_size(size: int) -> str:
    """Return a number of bytes as `--memory` takes it: `1.5GB`."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size >= unit:
            return f"{size / unit:.2g}{name}" if size < 100 * unit else f"{size / unit:.0f}{name}"
    return f"{size}B"
