"""From a published knowledge base and new records to its next build."""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kgkit.building.addition import Addition
from kgkit.building.build import Built, silent
from kgkit.building.contract import Builder, SourceInfo, find_builder
from kgkit.building.next_build import changing, publish_change
from kgkit.building.registering import register
from kgkit.building.sources import KB_SOURCE, batches, name_source, open_source
from kgkit.home import Home
from kgkit.store import Manifest, StoreEditor
from kgkit.store.damage import report_damage
from kgkit.types import Progress

__all__ = ["add_to_kb", "add_records"]

log = logging.getLogger(__name__)


def add_to_kb(
    name: str,
    source: str | os.PathLike[str] | Sequence[Mapping[str, Any]],
    *,
    builder: str | Builder | None = None,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Built:
    """Add the records of a source to a published KB, as a new build of it.

    Entities keep their ids, new ones are numbered from where they end: a matrix
    of vectors made for the old build fits the first rows of the new one. Counts
    of an alias that is there are added up. What has been added before, says
    nothing new, or is the KB itself, leaves it as it is. The base's files are
    read whole and compared with their checksums first, about 1 GB a second, then
    copied; of the rows, only those that change are read. Of records that cannot be kept, such as an alias of
    no entity, a warning says how many there are; so does `dropped` of what is returned.

    Args:
        name: name of the KB.
        source: source that *builder* reads: a path, or `kb:NAME` for another KB; for `jsonl` a list of
            dictionaries, too.
        builder: the name of an installed builder, or a builder; unless given, `jsonl` reads a file, and
            another KB is added as it is.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        progress: callback that is told how far it is.

    Raises:
        NotThere: no such KB, or nothing at *source*.
        SourceError: the source is not as the builder expects, or contradicts the KB.
        KBBusy: another process is building or removing this KB.
        DamagedKB: the KB's files, or those of the KB at *source*, are not as they were written.
        WriteFailed: no room on the disk.
    """
    built = add_records(name, source, builder=builder, home=home, progress=progress)
    for reason, count in built.dropped.items():
        shown = "; ".join(built.examples.get(reason, ()))
        log.warning("added to %s, dropped: %d × %s%s", name, count, reason, f": {shown}" if shown else "")
    return built


def add_records(
    name: str,
    source: str | os.PathLike[str] | Sequence[Mapping[str, Any]],
    *,
    builder: str | Builder | None = None,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Built:
    """Do what `add_to_kb` does, for callers that report themselves what was dropped."""
    tell = progress or silent
    if builder is None and not (
        isinstance(source, str | os.PathLike) and os.fspath(source).startswith(KB_SOURCE)
    ):
        builder = "jsonl"
    reader = find_builder(builder) if isinstance(builder, str) else builder
    with changing(name, home, "records are added to") as (staging, base):
        where = Home.find(home)
        with open_source(reader, source, where) as material:
            addition, read = Addition(base, material.properties.inverses), 0
            for batch in batches(material):
                with name_source(material.path), report_damage(base.store.folder):
                    addition.take(batch)
                read += len(batch)
                tell("reading", read, 0)
            tell("writing", 0, 0)
            info = material.info()
        old = base.manifest
        unchanged = Built(name, base.build, base.store.folder, old, {}, {})
        itself = {f"{KB_SOURCE}{name}@{build}" for build in (base.build, old.base)}
        if info.path in itself or any(_same(info, earlier) for earlier in (old.source, *old.added)):
            return unchanged

        def change(store: StoreEditor) -> Manifest:
            return msgspec.structs.replace(addition.write(store), added=(*old.added, info))

        built = publish_change(staging, base, material.path, change) or unchanged
    if built is not unchanged:
        register(where, built.name, built.build)
    return built._replace(dropped=addition.dropped, examples=addition.examples)


def _same(info: SourceInfo, other: SourceInfo) -> bool:
    """Say whether two sources are the same files, or the same build of a KB."""
    if info.sha256 or other.sha256:
        return info.sha256 == other.sha256
    return (info.name, info.version, info.path) == (other.name, other.version, other.path)
