"""What a format of exchange is: how it is called, what it cannot carry, how it is written.

What reads a format is a builder like any other, under the name that
`Format.builder` gives; `kgkit kb import` is `kgkit build-kb` with it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from kgkit.building.contract import MAX_COUNT, Files, KBProperties, KBRecords, SourceInfo
from kgkit.errors import SourceError
from kgkit.types import Entity
from kgkit.urls import check_url_pattern

__all__ = ["Format", "chunks", "files_of", "head_of"]

_CHUNK: Final = 1 << 18


class Format(ABC):
    """A way to write a knowledge base into a file or a folder.

    Attributes:
        name: name that `--format` takes.
        title: name that people use.
        suffixes: suffixes of its files, the first one preferred; empty where the name of a folder says
            nothing.
        builder: the builder that reads it.
        losses: things that do not come back when an export is imported again, a phrase each.
        folder: whether it is a folder of files.
        has_occurrences: whether it says how often surfaces occur in texts, where that is known.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    builder: ClassVar[str]
    losses: ClassVar[tuple[str, ...]] = ()
    folder: ClassVar[bool] = False
    has_occurrences: ClassVar[bool] = False

    @abstractmethod
    def files(self, records: KBRecords) -> Mapping[str, Iterator[bytes]]:
        """Return the content of each file by its name; of a format of one file, under the name "".

        The files are to be read one after the other, each once.

        Raises:
            MissingExtra: if the package that the format needs is not installed.
        """


class LineFormat(Format):
    """A format of one text file, written a line at a time."""

    @abstractmethod
    def lines(self, records: KBRecords) -> Iterator[str]:
        """Yield the lines of the file, without their ends."""

    def files(self, records: KBRecords) -> Mapping[str, Iterator[bytes]]:
        """Return the content of the file."""
        return {"": chunks(f"{line}\n" for line in self.lines(records))}


def chunks(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield *lines* as UTF-8, a good many at a time."""
    batch: list[str] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size > _CHUNK:
            yield "".join(batch).encode()
            batch, size = [], 0
    if batch:
        yield "".join(batch).encode()


def entity_of(
    key: str, label: str, fields: Mapping[str, str], types: tuple[str, ...], attributes: dict[str, Any]
) -> Entity:
    """Return an entity; *fields* have its description, kind and part of speech, as far as it has them."""
    description, kind, pos = (fields.get(name, "") for name in ("description", "kind", "pos"))
    return Entity(key, label, description, kind, pos, types, attributes)


def head_of(records: KBRecords) -> dict[str, Any]:
    """Return what a knowledge base is beyond its records, as JSON lines have it in their first line."""
    info, properties = records.info, records.properties
    head = {
        "name": info.name,
        "version": info.version,
        "licence": info.licence,
        "url": info.url,
        "date": info.date,
        "language": properties.language,
        "generator": properties.generator,
        "smoothing": properties.smoothing,
        "inverses": dict(properties.inverses),
    }
    if properties.url_pattern:
        head["url_pattern"] = properties.url_pattern
    if properties.identifiers:
        head["identifiers"] = list(properties.identifiers)
    return head


class _Head(SourceInfo, frozen=True, kw_only=True):
    """What `head_of` writes: of the source, and of the whole."""

    name: str = ""
    language: str = ""
    generator: Literal["alias", "lemma"] = "alias"
    smoothing: Annotated[float, msgspec.Meta(ge=0, le=MAX_COUNT)] = 0.0
    inverses: dict[str, str] = msgspec.field(default_factory=dict)
    url_pattern: str = ""
    identifiers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.url_pattern:
            check_url_pattern(self.url_pattern)


def files_of(path: Path, head: Mapping[str, Any] | None, files: Iterable[Path] | None = None) -> Files:
    """Return what a source is, by its *head* if it has one.

    Raises:
        SourceError: if the head is not as `head_of` writes it.
    """
    read = list(files) if files is not None else [path]
    if head is None:
        return Files(SourceInfo(name=path.name.split(".")[0]), read)
    try:
        about = msgspec.convert(head, _Head)
    except msgspec.ValidationError as error:
        raise SourceError(
            f"what it says of the whole is not as kgkit writes it: {error}", path=path
        ) from None
    info = SourceInfo(
        name=about.name, version=about.version, licence=about.licence, url=about.url, date=about.date
    )
    properties = KBProperties(
        about.inverses,
        about.smoothing,
        about.generator,
        about.language,
        about.url_pattern,
        about.identifiers,
    )
    return Files(info, read, properties)
