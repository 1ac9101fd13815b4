"""Knowledge bases on disk: one LMDB environment per build, written once, read by many.

Promises, each with a test that tries to break it:

- A build is complete or absent. It is written beside the published one and
  appears by the atomic replacement of one symbolic link; a build killed at
  any moment leaves the published KB as it was.
- A published build never changes. Readers take no locks, leave nothing on the
  disk, and keep their build while a new one lands.
- Reading is memory-mapped: any number of processes and threads, and only the
  rows asked for are copied.
- One source, builder version and format give equal content in equal order,
  and therefore the same BUILD name.
- What is damaged, stale or of another format is refused with a sentence.
"""

from kgkit.store.damage import damage_error
from kgkit.store.layout import FORMAT, Counts, Manifest, SourceInfo
from kgkit.store.publish import (
    PublishedBuild,
    Staging,
    find_build,
    open_build,
    prune,
    publish_build,
    read_build,
    remove,
)
from kgkit.store.reader import StoreReader
from kgkit.store.validate import verify
from kgkit.store.writer import StoreEditor, StoreWriter

__all__ = [
    "FORMAT",
    "Counts",
    "Manifest",
    "PublishedBuild",
    "SourceInfo",
    "Staging",
    "StoreEditor",
    "StoreReader",
    "StoreWriter",
    "damage_error",
    "find_build",
    "open_build",
    "prune",
    "publish_build",
    "read_build",
    "remove",
    "verify",
]
