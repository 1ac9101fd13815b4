"""What a builder is, and how it is found."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Protocol, Self

from kgkit.errors import BuildFailed, SourceError, UnknownName, UsageError
from kgkit.plugins import entry_point_names, find_entry_point, load_object, owner_of
from kgkit.store import SourceInfo
from kgkit.text import Folding
from kgkit.types import Alias, BadRecord, Entity, Form, Occurrences, Record, Redirect, Triple

__all__ = [
    "MAX_COUNT",
    "Builder",
    "Files",
    "KBRecords",
    "Prose",
    "SourceInfo",
    "Step",
    "KBProperties",
    "builder_names",
    "find_builder",
]

MAX_COUNT: Final = 1e30
"""The greatest count of an alias: the sum of many still has to be a 32-bit float."""

_GROUP = "kgkit.builders"


class KBProperties(NamedTuple):
    """What a build has to know beyond the records; `Builder` says what each of them does."""

    inverses: Mapping[str, str] = {}
    smoothing: float = 0.0
    generator: str = "alias"
    language: str = ""
    url_pattern: str = ""
    identifiers: Sequence[str] = ()


class Files(NamedTuple):
    """What a builder found at a source.

    Attributes:
        info: description of the source; the build adds the path and the checksum.
        read: files whose content decides the KB; the checksum is taken over them.
        properties: properties that the source states itself; None leaves them to the builder.
    """

    info: SourceInfo
    read: Sequence[Path]
    properties: KBProperties | None = None


class Step(NamedTuple):
    """Yielded between records: so many pages, or lines, of the source have been read since the last one.

    The display counts them, and `--limit` does.
    """

    units: int = 1


class Prose(NamedTuple):
    """A text in which surfaces are counted.

    Attributes:
        text: text as people read it; an empty line ends a paragraph, and no surface goes on behind it.
        links: links in it as `(start, end)` code points.
        own: surface of what it is about, which is not counted in it: a page does not link to itself.
    """

    text: str
    links: Sequence[tuple[int, int]] = ()
    own: str = ""


class KBRecords(Protocol):
    """The records of a published KB, for a builder that makes another one of them."""

    @property
    def name(self) -> str:
        """The name of the KB."""

    @property
    def build(self) -> str:
        """The name of its build."""

    @property
    def info(self) -> SourceInfo:
        """Where it came from."""

    @property
    def properties(self) -> KBProperties:
        """What its build was told beyond the records."""

    @property
    def folding(self) -> Folding:
        """The folding of its surfaces, by which the aliases are in order."""

    def entities(self, kind: str | None = None) -> Iterator[Entity]:
        """Yield the entities, or those of *kind*, in the order of their ids."""

    def aliases(self) -> Iterator[Alias]:
        """Yield every (surface, entity) pair, surfaces as they were written, counts as they were given."""

    def triples(self, relation: str | None = None) -> Iterator[Triple]:
        """Yield the triples that say everything, symmetric ones from both ends; or those of *relation*."""

    def redirects(self) -> Iterator[Redirect]:
        """Yield the other keys of entities."""

    def forms(self) -> Iterator[Form]:
        """Yield the irregular forms."""

    def occurrences(self) -> Iterator[Occurrences]:
        """Yield how often surfaces occur, folded, as far as that is known."""


class Builder(ABC):
    """A reader of one kind of source, to derive from.

    A builder is made without arguments. The build calls `look`, then `parts`,
    then `observe` on each part, possibly in other processes.

    Attributes:
        name: name of its entry point, and of a KB that nobody names; unless given,
            the class's own in lower case, without `Builder`.
        version: number that is raised whenever the records of one source change.
        inverses: mapping of a relation to the name of its other direction (or its own name,
            if it is symmetric). Yield both directions as the source has them:
            where they agree throughout, or the source gives only the named
            one, the build stores one and answers both; otherwise both are kept
            as written. A relation is the inverse of one other at most.
        smoothing: number that is added to the count of every (surface, entity) pair before
            priors are formed, so that what nobody counted is not impossible.
        generator: name of the candidate generator that suits the KB: `alias`, or `lemma`
            for a lexical database of English lemmas.
        language: BCP 47 tag of the surfaces; empty when mixed.
        url_pattern: pattern of the addresses of entities on the web, as
            `https://en.wikipedia.org/wiki/{key:_}`; see `kgkit.urls.UrlPattern`.
        identifiers: names of the attributes that are identifiers of entities elsewhere; links carry them.
        engine: engine that groups the records unless the user names one: `memory` (large sources use
            `local` instead), or `local` for every source.
        pieces: whether entities are told in pieces: those of one key are then one
            entity, of the first text that is given for each field and of all types
            and attributes. Else a key that comes twice is an error. Wants another
            engine than `memory`, as `Attribute` does.
        unit: noun for what a `Step` counts, in the plural: `pages`.
        has_texts: whether the source has texts in which surfaces are to be counted: `texts` gives them.
        reads_records: whether it reads JSON lines, so that a list of dictionaries is a source, too.
        reads_columns: whether it reads tables, of which `with_columns` says what each column is.
        reads_lines: whether it reads its source line by line, or row by row, and gives errors of single ones
            to `bad_record`.
        skips_bad: whether lines that cannot be read are left out, as `skipping_bad` sets it.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    inverses: ClassVar[Mapping[str, str]] = {}
    smoothing: ClassVar[float] = 0.0
    generator: ClassVar[str] = "alias"
    language: ClassVar[str] = ""
    url_pattern: ClassVar[str] = ""
    identifiers: ClassVar[Sequence[str]] = ()
    engine: ClassVar[str] = "memory"
    pieces: ClassVar[bool] = False
    unit: ClassVar[str] = "records"
    has_texts: ClassVar[bool] = False
    reads_records: ClassVar[bool] = False
    reads_columns: ClassVar[bool] = False
    reads_lines: ClassVar[bool] = False
    skips_bad: bool = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.removesuffix("Builder").lower()

    @property
    def properties(self) -> KBProperties:
        """What the class says beside its records."""
        return KBProperties(
            self.inverses, self.smoothing, self.generator, self.language, self.url_pattern, self.identifiers
        )

    def with_columns(self, columns: Mapping[str, str | Sequence[str]]) -> Self:
        """Return a builder that reads these columns of a table.

        Args:
            columns: name of a column, or several, by what is in it, as `{"key": "id", "label": "name"}`.

        Raises:
            UsageError: if this builder reads no tables, or a column of a table is no such thing.
        """
        raise UsageError(f"the builder {self.name} takes no columns ({', '.join(columns)}): 'table' does")

    def skipping_bad(self) -> Self:
        """Return a builder that leaves out lines that cannot be read.

        Raises:
            UsageError: if this builder does not read line by line.
        """
        if not self.reads_lines:
            raise UsageError(
                f"the builder {self.name} does not read line by line, so it cannot leave out a line that "
                "cannot be read: build without --bad skip"
            )
        builder = copy(self)
        builder.skips_bad = True
        return builder

    def bad_record(self, error: SourceError) -> BadRecord:
        """Return the record that a builder yields in the place of a line that cannot be read.

        Args:
            error: what is wrong with it.

        Raises:
            SourceError: unless such lines are left out.
        """
        if not self.skips_bad:
            raise (error.with_remedy() if self.reads_lines else error) from None
        return BadRecord(str(error).replace("\n    ", ": ", 1))

    def preview(self, source: Path) -> Iterator[str]:
        """Yield sentences on how *source* is read; of most builders there is nothing to say.

        The first one says how; further ones show the first entities.

        Raises:
            NotThere, SourceError: as `look` does.
        """
        return iter(())

    def obtain(self, cache: Path) -> Path:
        """Return a source for users who named none, fetched into *cache* if need be.

        Raises:
            UsageError: if this builder has to be told where its source is.
        """
        raise UsageError(
            f"the builder {self.name} needs to know its source: `kgkit build-kb {self.name} PATH --name NAME`"
        )

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
    def observe(self, source: Path, part: str) -> Iterator[Record | Step]:
        """Yield the records of *part*, and a `Step` behind those of each page or so, if it has such.

        Entities are numbered in the order they come. Aliases and triples name
        entities by key and may come before them, or from another part; what
        names no entity in the end is dropped and counted.

        Raises:
            SourceError: at the first thing that is not as it should be.
        """

    def texts(self, source: Path, part: str) -> Iterator[Prose | Step]:
        """Yield the texts of *part*, and the same steps as `observe`, if the builder `has_texts`.

        Called once all surfaces are known: how often each occurs in the texts of all parts, and how often
        as a link, gives its link probability.

        Raises:
            SourceError: as `observe` does.
        """
        return iter(())

    def derive(self, kb: KBRecords) -> Iterator[Record | Step]:
        """Yield the records of a KB that is made of another one (source `kb:NAME`).

        Raises:
            UsageError: if this builder reads files.
        """
        raise UsageError(
            f"the builder {self.name} reads files, no knowledge base: name a path instead of kb:{kb.name}"
        )


def builder_names() -> list[str]:
    """Return the names of the installed builders."""
    return entry_point_names(_GROUP)


def find_builder(name: str) -> Builder:
    """Return the builder installed under *name* in the entry-point group `kgkit.builders`.

    Raises:
        UnknownName: if there is none.
        BuildFailed: if several packages have one of that name, its package cannot be imported, or what it
            names is no class of builders.
    """
    if (entry := find_entry_point(_GROUP, name, BuildFailed)) is not None:
        owner = owner_of(entry)
        cls = load_object(entry.value, owner, BuildFailed)
        if not (isinstance(cls, type) and issubclass(cls, Builder)):
            raise BuildFailed(f"{owner} names {entry.value}, which is no class that derives from Builder")
        try:
            return cls()
        except Exception as problem:  # whatever a stranger's package does
            raise BuildFailed(
                f"{owner} names {entry.value}, which cannot be made without arguments "
                f"({type(problem).__name__}: {problem})"
            ) from problem
    names = builder_names()
    if not names:
        raise UsageError(
            "no builder is installed, not even kgkit's own: from a checkout, run `pip install -e .` first"
        )
    raise UnknownName("builder", name, names)
