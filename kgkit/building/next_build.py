"""From a published build to the next one: its checksums are compared, a copy is changed and published."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kgkit.building.build import Built, stamp
from kgkit.building.sources import name_source
from kgkit.errors import UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.kb.lineage import ancestry
from kgkit.store import Manifest, Staging, StoreEditor, find_build
from kgkit.store.damage import report_damage
from kgkit.store.manifest import MOST_BASES, read_manifest

__all__ = ["changing", "publish_change"]


@contextmanager
def changing(
    name: str, home: str | os.PathLike[str] | None, verb: str
) -> Iterator[tuple[Staging, KnowledgeBase]]:
    """Give the right to write the next build of a KB, and its published one, open.

    Args:
        name: name of the KB.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        verb: words for what happens to the published build, for an error.

    Raises:
        UsageError: if *name* names a build.
        NotThere: if there is no such KB.
        KBBusy: if another process is building or removing it.
        DamagedKB: if its files are not as they were written.
    """
    where = Home.find(home)
    if "@" in name:
        raise UsageError(f"{name!r} names one build; {verb} the published one: name the KB alone")
    find_build(where, name)
    with Staging(where.kb(name)) as staging, open_kb(name, where.path, verify=True) as base:
        yield staging, base


def publish_change(
    staging: Staging, base: KnowledgeBase, path: Path, change: Callable[[StoreEditor], Manifest]
) -> Built | None:
    """Publish a copy of *base* with what *change* writes over it; None if that says nothing new.

    Args:
        staging: right to write the next build.
        base: published build.
        path: path by which errors name the source of the change.
        change: function that writes the rows that change, and returns the manifest with its counts.

    Raises:
        SourceError, DamagedKB, WriteFailed: as additions and edits do.
    """
    old = base.manifest
    with (
        StoreEditor(staging.folder, base.store.folder, old.tables) as store,
        name_source(path),
        report_damage(base.store.folder),
    ):
        manifest = change(store)
        if not store.has_changed:
            return None
        tables = store.finish()
    manifest = msgspec.structs.replace(
        manifest, tables=tables, base=base.build, bases=tuple(ancestry(base)[:MOST_BASES]), build=""
    )
    published = staging.publish(stamp(manifest, staging.folder))
    return Built(*published, read_manifest(published.folder), {}, {})  # read while nobody else can sweep it
