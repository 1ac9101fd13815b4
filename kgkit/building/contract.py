"""What a builder is, and how it is found."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar, NamedTuple

from kgkit.errors import UnknownName, UsageError
from kgkit.store import SourceInfo
from kgkit.types import Record

__all__ = ["Builder", "Files", "SourceInfo", "builder_names", "find_builder"]

_GROUP = "kgkit.builders"


class Files(NamedTuple):
    """What a builder found at a source.

    Attributes:
        info: what it is; the build adds the path and the checksum.
        read: the files whose content decides the KB; the checksum is taken over them.
    """

    info: SourceInfo
    read: Sequence[Path]


class Builder(ABC):
    """A reader of one kind of source, to derive from.

    A builder is made without arguments. The build calls `look`, then `parts`,
    then `observe` on each part, possibly in other processes.

    Attributes:
        name: that of its entry point, and of a KB that nobody names; unless given,
            the class's own in lower case, without `Builder`.
        version: raised whenever the records of one source change.
        inverses: relation -> the name of its other direction (or its own name,
            if it is symmetric). Yield both directions as the source has them:
            where they agree throughout, or the source gives only the named
            one, the build stores one and answers both; otherwise both are kept
            as written. A relation is the inverse of one other at most.
        smoothing: added to the count of every (surface, entity) pair before
            priors are formed, so that what nobody counted is not impossible.
        generator: which candidate generator suits the KB: `alias`, or `lemma`
            for a lexical database of English lemmas.
        language: BCP 47 tag of the surfaces; empty when mixed.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    inverses: ClassVar[Mapping[str, str]] = {}
    smoothing: ClassVar[float] = 0.0
    generator: ClassVar[str] = "alias"
    language: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.removesuffix("Builder").lower()

    def obtain(self, cache: Path) -> Path:
        """Return a source for users who named none, fetched into *cache* if need be.

        Raises:
            UsageError: if this builder has to be told where its source is.
        """
        raise UsageError(f"{type(self).__name__} needs to know its source: --source PATH")

    @abstractmethod
    def look(self, source: Path) -> Files:
        """Return what is at *source*.

        Raises:
            NotThere: if nothing is.
            SourceError: if it is nothing this builder reads.
        """

    def parts(self, source: Path) -> Sequence[str]:
        """Return the names of the pieces that can be read apart, in the order of their ids."""
        return ["all"]

    @abstractmethod
    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of *part*.

        Entities are numbered in the order they come. Aliases and triples name
        entities by key and may come before them, or from another part; what
        names no entity in the end is dropped and counted.

        Raises:
            SourceError: at the first thing that is not as it should be.
        """


def builder_names() -> list[str]:
    """Return the names of the installed builders."""
    return sorted({entry.name for entry in entry_points(group=_GROUP)})


def find_builder(name: str) -> Builder:
    """Return the builder installed under *name* in the entry-point group `kgkit.builders`.

    Raises:
        UnknownName: if there is none.
    """
    for entry in entry_points(group=_GROUP):
        if entry.name == name:
            builder: Builder = entry.load()()
            return builder
    names = builder_names()
    if not names:
        raise UsageError(
            "no builder is installed, not even kgkit's own: from a checkout, run `pip install -e .` first"
        )
    raise UnknownName("builder", name, names)
