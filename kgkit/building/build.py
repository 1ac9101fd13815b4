"""From a source to a published knowledge base."""

import datetime
import gc
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from kgkit.building.contract import Builder, Files, find_builder
from kgkit.building.grouping import Grouped, Grouper
from kgkit.errors import SourceError
from kgkit.home import Home
from kgkit.store import FORMAT, Manifest, SourceInfo, Staging, StoreWriter
from kgkit.store.layout import DATA, build_name, fingerprint
from kgkit.store.reader import read_manifest
from kgkit.types import Record

Progress = Callable[[str, int], None]
"""Called now and then with what is being done and how many records have been read."""

_EVERY = 2_000


class Built(NamedTuple):
    """A published build: the KB's name, the BUILD, its folder and its manifest."""

    name: str
    build: str
    path: Path
    manifest: Manifest


def build_kb(
    builder: str | Builder,
    source: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Built:
    """Build a knowledge base and publish it.

    Until the last step the KB of that name, if there is one, stays as it is;
    a build that fails or is killed leaves it so.

    Args:
        builder: the name of an installed builder, or a builder.
        source: what it reads; None lets the builder obtain it.
        name: of the KB; the builder's name unless given.
        home: where knowledge bases lie; `KGKIT_HOME` or the platform's place unless given.
        progress: told how far the build is.

    Raises:
        UnknownName: no such builder.
        NotThere: nothing at *source*.
        SourceError: the source is not as the builder expects; says where.
        KBBusy: another process is building this KB.
        WriteFailed: no room on the disk.

    Example:
        >>> build_kb("wordnet").manifest.counts.entities
        {'synset': 117659, 'lemma': 206949}
    """
    tell = progress or _silent
    found = find_builder(builder) if isinstance(builder, str) else builder
    builder_name = builder if isinstance(builder, str) else found.name
    where = Home.find(home)
    kb = where.kb(name if name is not None else builder_name)
    with Staging(kb) as staging, _no_garbage():
        with _readable("fetched"):
            path = Path(source) if source is not None else found.obtain(where.cache)
        with _readable("read", path):
            files = found.look(path)
        with StoreWriter(staging.folder) as store:
            grouper = Grouper(store, inverses=found.inverses, smoothing=found.smoothing)
            read = 0
            for batch in _batches(found, path):
                with _encodable(path):
                    grouper.take(batch)
                read += len(batch)
                tell("reading", read)
            tell("writing", 0)
            with _encodable(path):
                grouped = grouper.write()
            tables = store.finish()
        if not grouped.entities:
            raise SourceError("holds no entity: nothing to build", path=path)
        with _readable("read", path):
            described = _source(files, path)
        published = staging.publish(
            _manifest(found, builder_name, described, grouped, tables, staging.folder)
        )
    return Built(published.name, published.build, published.folder, read_manifest(published.folder))


def _batches(builder: Builder, source: Path) -> Iterator[list[Record]]:
    with _readable("read", source):
        records = chain.from_iterable(builder.observe(source, part) for part in builder.parts(source))
    while True:
        with _readable("read", source):
            batch = list(islice(records, _EVERY))
        if not batch:
            return
        yield batch


@contextmanager
def _readable(done: str, path: Path | None = None) -> Iterator[None]:
    """Say of a file that cannot be read that it is the source that cannot."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot be {done}: {error}", path=path) from error


@contextmanager
def _encodable(path: Path) -> Iterator[None]:
    """Say of text that UTF-8 cannot hold (a lone surrogate) that the source has it."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise SourceError("holds text that is not Unicode", path=path, text=str(error.object)) from error


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Records form no cycles: spare the collector from walking millions of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _source(files: Files, path: Path) -> SourceInfo:
    digest = hashlib.sha256()
    for file in sorted(files.read):
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return msgspec.structs.replace(files.info, path=str(path.absolute()), sha256=digest.hexdigest())


def _manifest(
    builder: Builder,
    builder_name: str,
    source: SourceInfo,
    grouped: Grouped,
    tables: dict[str, str],
    folder: Path,
) -> Manifest:
    try:
        kgkit_version = version("kgkit")
    except PackageNotFoundError:
        kgkit_version = "unknown"
    data = folder / DATA
    with data.open("rb") as content:
        checksum = hashlib.file_digest(content, "sha256").hexdigest()
    manifest = Manifest(
        format=FORMAT,
        fingerprint=fingerprint(),
        build="",
        builder=builder_name,
        builder_version=builder.version,
        kgkit_version=kgkit_version,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        source=source,
        entities=grouped.entities,
        triples=grouped.triples,
        aliases=grouped.aliases,
        alias_rows=grouped.alias_rows,
        counts=grouped.counts,
        tables=tables,
        files={DATA: data.stat().st_size},
        sha256={DATA: checksum},
        smoothing=builder.smoothing,
        generator=builder.generator,
        language=builder.language,
    )
    return msgspec.structs.replace(manifest, build=build_name(manifest))


def _silent(stage: str, done: int) -> None:
    """Tell nobody."""


__all__ = ["Built", "Progress", "build_kb"]
