"""From a source to a published knowledge base."""

import datetime
import gc
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import msgspec

from kgkit.building.contract import Builder, find_builder
from kgkit.building.grouping import Grouped, Grouper
from kgkit.building.registering import register
from kgkit.building.sources import Material, batches, blamed, opened
from kgkit.errors import SourceError
from kgkit.home import Home
from kgkit.store import FORMAT, Manifest, Staging, StoreWriter
from kgkit.store.layout import DATA, build_name, fingerprint
from kgkit.store.reader import read_manifest

Progress = Callable[[str, int], None]
"""Called now and then with what is being done and how many records have been read."""


class Built(NamedTuple):
    """A published build.

    Attributes:
        name: of the KB.
        build: the BUILD.
        path: its folder.
        manifest: what it says of itself.
        dropped: what could not be kept of the records that were just read, by reason.
        examples: some of it, by reason.
    """

    name: str
    build: str
    path: Path
    manifest: Manifest
    dropped: Mapping[str, int]
    examples: Mapping[str, Sequence[str]]


def build_kb(
    builder: str | Builder,
    source: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Built:
    """Build a knowledge base, publish it, and tell the catalog.

    Until the last step the KB of that name, if there is one, stays as it is;
    a build that fails or is killed leaves it so.

    Args:
        builder: the name of an installed builder, or a builder.
        source: what it reads: a path, or `kb:NAME` for another KB; None lets the builder obtain it.
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
    tell = progress or silent
    found = find_builder(builder) if isinstance(builder, str) else builder
    builder_name = builder if isinstance(builder, str) else found.name
    where = Home.find(home)
    kb = where.kb(name if name is not None else builder_name)
    with Staging(kb) as staging, no_garbage(), opened(found, source, where) as material:
        with StoreWriter(staging.folder) as store:
            traits = material.traits
            grouper = Grouper(store, inverses=traits.inverses, smoothing=traits.smoothing)
            read = 0
            for batch in batches(material):
                with blamed(material.path):
                    grouper.take(batch)
                read += len(batch)
                tell("reading", read)
            tell("writing", 0)
            with blamed(material.path):
                grouped = grouper.write()
            tables = store.finish()
        if not grouped.entities:
            raise SourceError("holds no entity: nothing to build", path=material.path)
        published = staging.publish(_manifest(found, builder_name, material, grouped, tables, staging.folder))
        # While nobody else can sweep it.
        manifest = read_manifest(published.folder)
        built = Built(*published, manifest, grouped.counts.dropped, grouped.examples)
    register(where, built.name, built.build)
    return built


@contextmanager
def no_garbage() -> Iterator[None]:
    """Records form no cycles: spare the collector from walking millions of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _manifest(
    builder: Builder,
    builder_name: str,
    material: Material,
    grouped: Grouped,
    tables: dict[str, str],
    folder: Path,
) -> Manifest:
    traits = material.traits
    return stamped(
        Manifest(
            format=FORMAT,
            fingerprint=fingerprint(),
            build="",
            builder=builder_name,
            builder_version=builder.version,
            kgkit_version="",
            created="",
            source=material.info(),
            entities=grouped.entities,
            triples=grouped.triples,
            aliases=grouped.aliases,
            alias_rows=grouped.alias_rows,
            counts=grouped.counts,
            tables=tables,
            files={},
            smoothing=traits.smoothing,
            generator=traits.generator,
            language=traits.language,
        ),
        folder,
    )


def stamped(manifest: Manifest, folder: Path) -> Manifest:
    """Return *manifest* with what is known once the data lie in *folder*: when, how large, its name."""
    try:
        kgkit_version = version("kgkit")
    except PackageNotFoundError:
        kgkit_version = "unknown"
    data = folder / DATA
    with data.open("rb") as content:
        checksum = hashlib.file_digest(content, "sha256").hexdigest()
    manifest = msgspec.structs.replace(
        manifest,
        kgkit_version=kgkit_version,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        files={DATA: data.stat().st_size},
        sha256={DATA: checksum},
    )
    return msgspec.structs.replace(manifest, build=build_name(manifest))


def silent(stage: str, done: int) -> None:
    """Tell nobody."""


__all__ = ["Built", "Progress", "build_kb", "no_garbage", "silent", "stamped"]
