"""What a build reads: a source as its builder sees it, or another knowledge base."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from kgkit.building.contract import Builder, KBProperties, Prose, SourceInfo, Step
from kgkit.building.options import path_list
from kgkit.building.record_lists import is_record_list, written_records
from kgkit.building.records import StoredRecords
from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.files import COMPRESSIONS
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.store.layout import DATA
from kgkit.types import Alias, Aliases, Attribute, Entity, Record, Single, Triple, Triples

__all__ = [
    "KB_SOURCE",
    "Material",
    "Part",
    "Source",
    "SourceTexts",
    "batches",
    "name_source",
    "open_source",
    "reading_errors",
    "single_records",
    "select",
]

KB_SOURCE: Final = "kb:"
"""How a source is written that is a knowledge base: `kb:NAME` or `kb:NAME@BUILD`."""

_EVERY = 2_000
_COMPRESSED: Final = frozenset((*COMPRESSIONS, ".parquet", ".pq", ".zip"))
_EXPANSION: Final = 8  # bytes of text for a byte of a compressed file

Content = TypeVar("Content", covariant=True)

log = logging.getLogger(__name__)


class SourcePart(NamedTuple, Generic[Content]):
    """A piece of a source that can be read apart from the others, in another process too.

    Attributes:
        path: path of its source.
        name: within the source.
        read: function that gives its content, from the first item.
    """

    path: Path
    name: str
    read: Callable[[], Iterator[Content]]


Part = SourcePart[Record | Step]
"""A piece with its records."""

SourceTexts = SourcePart[Prose | Step]
"""A piece with its texts."""


class Material(NamedTuple):
    """Sources, looked at.

    Attributes:
        path: path by which errors name them where it is not known in which of them it is.
        properties: what the build has to know beyond the records, as `KBProperties`.
        parts: function that gives what there is to be read, in the order of the ids.
        info: function that gives what the manifest says of it, once it has been read.
        files: files that were read, or will be.
        size: bytes of the source, uncompressed, roughly; 0 if nobody knows.
        texts: function that gives the texts in which surfaces are to be counted, as `parts` gives the
            records.
    """

    path: Path
    properties: KBProperties
    parts: Callable[[], Sequence[Part]]
    info: Callable[[], SourceInfo]
    files: Sequence[Path] = ()
    size: int = 0
    texts: Callable[[], Sequence[SourceTexts]] = tuple


Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Sequence[Mapping[str, Any]]


@contextmanager
def open_source(
    builder: Builder | None, source: Source | None, home: Home, priors: Sequence[Path] = ()
) -> Iterator[Material]:
    """Give what *builder* makes of *source*: of paths, of `kb:NAME`, or of what it obtains itself.

    Without a builder the source is a KB, and is taken as it is. The counts of *priors* come last.

    Raises:
        NotThere: nothing is there.
        SourceError: it is not what the builder reads.
        DamagedKB: it is a KB whose files are not as they were written.
        UsageError: the builder has to be told, or does not read such a source.
    """
    if is_record_list(source):
        if builder is None or not builder.reads_records:
            raise UsageError("a list of dictionaries is read by a builder of JSON lines: 'jsonl'")
        with (
            written_records(cast(Sequence[Mapping[str, Any]], source)) as path,
            open_source(builder, path, home, priors) as material,
        ):
            yield material._replace(info=lambda: msgspec.structs.replace(material.info(), path=""))
        return
    if isinstance(source, Sequence) and not source:
        raise UsageError(
            "the source is an empty list: give records or paths; None lets the builder obtain its source"
            if not isinstance(source, str)
            else "the source is an empty text: give a path; None lets the builder obtain its source"
        )
    sources = path_list(cast(Sequence[str], source or ()))
    named = [text for text in sources if text.startswith(KB_SOURCE)]
    if named:
        if len(sources) > 1:
            raise UsageError(f"{named[0]} has to be the only source; it is one of {len(sources)}")
        with open_kb(named[0].removeprefix(KB_SOURCE), home.path, verify=True) as kb:
            if priors:
                raise UsageError("--priors are added to what is read from files, not to a knowledge base")
            yield _of_kb(builder, StoredRecords(kb))
        return
    if builder is None:
        raise UsageError(f"{source} is no knowledge base: name a builder that reads it")
    with reading_errors("fetched"):
        paths = [*map(Path, sources)] or [builder.obtain(home.cache)]
    looks = []
    for path in paths:
        with reading_errors("read", path):
            looks.append(builder.look(path))
    releases = {f"{files.info.name} {files.info.version}".strip() for files in looks}
    if len(releases) > 1:
        log.warning("the sources are not of one thing: %s", "; ".join(sorted(releases)))
    for path in priors:
        if not path.is_file():
            raise NotThere(f"no file {path}")
    files = [*(file for files in looks for file in sorted(files.read)), *priors]
    stated = next((files.properties for files in looks if files.properties is not None), builder.properties)

    def pieces_of_sources() -> Iterator[tuple[Path, str]]:
        """Yield each source with each name of its parts."""
        for path in paths:
            with reading_errors("read", path):
                names = builder.parts(path)
            yield from ((path, name) for name in names)

    def texts() -> list[SourceTexts]:
        """Return the texts of each part, if the builder has some."""
        if not builder.has_texts:
            return []
        return [
            SourceTexts(path, name, partial(builder.texts, path, name)) for path, name in pieces_of_sources()
        ]

    def parts() -> list[Part]:
        """Return the parts of each source, then the files of further counts."""
        pieces = [
            Part(path, name, partial(builder.observe, path, name)) for path, name in pieces_of_sources()
        ]
        if priors:
            from kgkit.building.priors import priors_of

            pieces += [Part(path, "priors", partial(priors_of, path)) for path in priors]
        return pieces

    def described() -> SourceInfo:
        """Return the source with the checksum of its files, which are read for it."""
        digest = hashlib.sha256()
        for file in files:
            with reading_errors("read", file), file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        # Sources of no files are not all the same: there is no checksum to tell them apart by.
        checksum = digest.hexdigest() if files else ""
        where = os.pathsep.join(str(path.absolute()) for path in paths)
        return msgspec.structs.replace(looks[0].info, path=where, sha256=checksum)

    yield Material(
        Path(os.pathsep.join(map(str, paths))), stated, parts, described, files, _text_size(files), texts
    )


def _of_kb(builder: Builder | None, records: StoredRecords) -> Material:
    kb = records.kb
    name = f"{KB_SOURCE}{kb.name}@{kb.build}"
    info = SourceInfo(
        name=kb.name, version=kb.build, licence=records.info.licence, url=records.info.url, path=name
    )
    path = Path(name)
    observe = records.everything if builder is None else partial(builder.derive, records)
    properties = records.properties if builder is None else builder.properties
    size = kb.manifest.files[DATA]
    return Material(path, properties, lambda: [Part(path, "all", observe)], lambda: info, size=size)


def _text_size(files: Sequence[Path]) -> int:
    """Return how many bytes of text there are in *files*, roughly."""
    size = 0
    for file in files:
        with suppress(OSError):  # whoever reads it will say so
            size += file.stat().st_size * (_EXPANSION if file.suffix.lower() in _COMPRESSED else 1)
    return size


def batches(
    material: Material, *, limit: int | None = None, types: Sequence[str] = (), steps: bool = False
) -> Iterator[list[Single]]:
    """Yield the records of *material*, one by one, some thousands at a time.

    Args:
        material: material whose records are read.
        limit, types, steps: values as in `select`.

    Raises:
        UsageError: if one of them is an `Attribute`.
    """
    parts = _readable_parts(material)
    records = single_records(select(parts, limit=limit, types=types, steps=steps))
    while batch := list(islice(records, _EVERY)):
        yield batch


def _readable_parts(material: Material) -> Iterator[Record | Step]:
    for part in material.parts():
        with reading_errors("read", part.path):
            yield from part.read()


def select(
    records: Iterator[Record | Step], *, limit: int | None, types: Sequence[str], steps: bool
) -> Iterator[Record | Step]:
    """Yield *records*, up to the end of *limit* units, and of entities those of *types* only.

    Args:
        records: records of a builder.
        limit: largest number of units; None for all.
        types: kinds and types; none for all.
        steps: whether *records* come with `Step`; else each of them is a unit.
    """
    if limit is not None:
        records = _first_units(records, limit) if steps else islice(records, limit)
    if not types:
        return records
    kinds = frozenset(types)
    return (
        record
        for record in records
        if type(record) is not Entity or record.kind in kinds or not kinds.isdisjoint(record.types)
    )


def _first_units(records: Iterator[Record | Step], limit: int) -> Iterator[Record | Step]:
    units = 0
    for record in records:
        yield record
        if type(record) is Step:
            units += record.units
            if units >= limit:
                return


def single_records(records: Iterator[Record | Step]) -> Iterator[Single]:
    """Yield *records* without steps, and those that are told many at once one by one."""
    for record in records:
        if type(record) is Triple or type(record) is Entity or type(record) is Alias:  # as nearly all are
            yield record
            continue
        match record:
            case Aliases():
                for (surface, key), count in record.counts.items():
                    yield Alias(surface, key, count)
            case Triples():
                for other in record.objects:
                    yield Triple(record.subject, record.relation, other)
            case Attribute():
                raise UsageError(
                    f"the source tells attributes of its entities apart ({record.name!r} of {record.key!r}), "
                    "which can be put together by `build-kb --engine local` only"
                )
            case Step():
                pass
            case _:
                yield record


@contextmanager
def name_source(path: Path) -> Iterator[None]:
    """Say of records that cannot be taken that *path* has them: no Unicode, or a key that comes twice."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise SourceError("holds text that is not Unicode", path=path, text=str(error.object)) from error
    except OverflowError as error:
        if "serialize ints" not in str(error):
            raise
        raise SourceError(
            "holds an integer beyond 64 bits among the attributes of an entity: give it as a string",
            path=path,
        ) from error
    except SourceError as error:
        if error.path is not None:
            raise
        raise SourceError(error.message, path=path, text=error.text) from error


@contextmanager
def reading_errors(verb: str, path: Path | None = None) -> Iterator[None]:
    """Say of a file that cannot be read that it is the source that cannot."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot be {verb}: {error}", path=path) from error
