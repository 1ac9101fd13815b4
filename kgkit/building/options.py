"""How a build is to be done, as a user says it."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kgkit.errors import UnknownName, UsageError
from kgkit.urls import check_url_pattern

__all__ = ["ENGINES", "LEAST_MEMORY", "BuildOptions", "bytes_of", "cores", "path_list"]

ENGINES: Final = ("memory", "local", "spark")

GOING_ON: Final = "going on from"
"""So the progress of a build begins that has found parts which a stopped one has read."""

LEAST_MEMORY: Final = 256 << 20
_UNITS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)


class BuildOptions(NamedTuple):
    """How a build is to be done.

    Attributes:
        engine: `memory`, `local` or `spark`; None leaves it to the builder.
        workers: processes that read, and threads that group.
        memory: bytes that grouping may use; what does not fit goes to the disk.
        limit: largest number of pages, or lines, of the source; for trying out.
        types: kinds or types of the only entities to be taken.
        min_count: least count of a pair of surface and entity; those that were counted less often are left
            out.
        resume: whether to go on from the parts that a build which was stopped has read.
        priors: tables of further counts.
        master: address of Spark's master.
        url_pattern: pattern of the addresses of entities; None leaves it to the source and its builder.
        identifiers: names of the attributes that are identifiers; None leaves them to the source and its
            builder.
        language: BCP 47 tag of the surfaces, empty when mixed; None leaves it to the source and its builder.
        columns: names of the columns of a table by what they are.
        bad: what a line that cannot be read does: `stop` with an error, or be left out (`skip`).
    """

    engine: str | None = None
    workers: int = 1
    memory: int = 4_000_000_000
    limit: int | None = None
    types: Sequence[str] = ()
    min_count: float = 0
    resume: bool = True
    priors: Sequence[Path] = ()
    master: str | None = None
    url_pattern: str | None = None
    identifiers: Sequence[str] | None = None
    language: str | None = None
    columns: Mapping[str, Sequence[str]] = {}
    bad: str = "stop"

    def check(self) -> "BuildOptions":
        """Return them, if they make sense.

        Raises:
            UsageError: if one of them is out of range.
        """
        if self.engine is not None and self.engine not in ENGINES:
            raise UnknownName("engine", self.engine, ENGINES)
        if self.bad not in ("stop", "skip"):
            raise UsageError(f"bad is {self.bad!r}; it is 'stop' or 'skip'")
        if self.workers < 1:
            raise UsageError(f"workers is {self.workers}; a build needs at least one")
        if self.memory < LEAST_MEMORY:
            raise UsageError(f"memory is {self.memory:,} bytes; grouping needs {LEAST_MEMORY:,} at least")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"limit is {self.limit}; it is 1 at least, or left out")
        if not 0 <= self.min_count < float("inf"):
            raise UsageError(f"min_count is {self.min_count}; it is a count, or 0 for all")
        if self.master is not None and self.engine != "spark":
            raise UsageError("a master is for the engine spark")
        if self.url_pattern:
            try:
                check_url_pattern(self.url_pattern)
            except ValueError as error:
                raise UsageError(str(error)) from None
        if self.language and not _LANGUAGE.fullmatch(self.language):
            raise UsageError(
                f"language is {self.language!r}; it is a tag of BCP 47 (en for English, zh for Chinese), or "
                "empty for names of several languages"
            )
        return self

    def language_of(self, stated: str) -> str:
        """Return the language of the surfaces, which the source and its builder have *stated*."""
        return stated if self.language is None else self.language

    def deciding_options(self) -> dict[str, object]:
        """Return those that decide what is in the KB, where they are not as they are by themselves."""
        priors = [str(path.absolute()) for path in self.priors]
        values = {
            "limit": self.limit,
            "types": sorted(self.types),
            "min_count": self.min_count,
            "priors": priors,
            "bad": self.bad if self.bad != "stop" else "",
            "columns": [f"{role}={name}" for role, names in sorted(self.columns.items()) for name in names],
        }
        return {name: value for name, value in values.items() if value}


def path_list(values: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return one thing or several as a list: a text is one, not as many as it has letters."""
    return (
        [os.fspath(values)] if isinstance(values, str | os.PathLike) else [os.fspath(path) for path in values]
    )


def bytes_of(size: int | str) -> int:
    """Return the bytes of a size such as `4GB`, `500MB` or `2GiB`.

    Raises:
        UsageError: if it is none.
    """
    if isinstance(size, int):
        return size
    match = _SIZE.fullmatch(size.strip())
    if match is None:
        raise UsageError(f"{size!r} is no size of memory: write it as 4GB, 500MB or 2GiB")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit.upper()])


def cores() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
