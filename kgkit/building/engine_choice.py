"""Which engine groups the records of a source, where nobody names one."""

from importlib.util import find_spec
from typing import Final, NamedTuple

from kgkit.building.contract import Builder
from kgkit.errors import MissingExtra

__all__ = ["ENGINE_CHOSEN", "READING_SHARE", "EngineChoice", "choose_engine", "readable_size"]

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
