"""A knowledge base as kgkit wrote it in an older format."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from kgkit.building.grouping import Grouper
from kgkit.building.records import StoredRecords
from kgkit.building.sources import single_records
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.store import PublishedBuild, Staging, StoreReader, StoreWriter
from kgkit.store.layout import MANIFEST, SINCE, TABLES, TRIGRAMS, Manifest, build_name, readable_formats
from kgkit.store.trigrams import TrigramIndex
from kgkit.store.writer import Item, checksums
from kgkit.text import folding
from kgkit.versions import file_sha256


class _OlderWriter(StoreWriter):
    """Writes the tables that a format has, and leaves out the others."""

    def __init__(self, folder: Path, number: int) -> None:
        self._newer = {table for table, since in SINCE.items() if number < since}
        super().__init__(folder, [table for table in TABLES if table not in self._newer])

    def append(self, table: str, items: Iterable[Item]) -> None:
        if table not in self._newer:
            super().append(table, items)


def publish_in_older_format(folder: Path, home: Path, name: str, number: int) -> PublishedBuild:
    """Publish the records of the build in *folder* as the KB *name*, in format *number*.

    Surfaces are folded and cut as they were then, by version 1.

    Args:
        folder: folder of a build of today.
        home: home of the other KB; may be the same.
        name: name of that KB.
        number: 2 or 3.
    """
    with KnowledgeBase(StoreReader.open(folder), name) as kb, Staging(Home(home).kb(name)) as staging:
        records, base = StoredRecords(kb), kb.manifest
        with _OlderWriter(staging.folder, number) as store:
            grouper = Grouper(
                store,
                inverses=records.properties.inverses,
                smoothing=base.smoothing,
                folding=folding(1, base.language),
            )
            grouper.take(single_records(records.everything()))
            grouped = grouper.write()
            digests = store.finish()
        sizes, sums = checksums(staging.folder, {})
        manifest = msgspec.structs.replace(
            base,
            aliases=grouped.aliases,
            alias_rows=grouped.alias_rows,
            tables=digests,
            files=sizes,
            sha256=sums,
            format=number,
            fingerprint=readable_formats()[number],
        )
        return staging.publish(msgspec.structs.replace(manifest, build=build_name(manifest)))


publish_as_format_2 = partial(publish_in_older_format, number=2)


def as_older_index(path: Path, version: int) -> None:
    """Make an index of surfaces one of an older version: without labels.

    Its grams stay as they are; those of the first version were other ones.

    Args:
        path: path of an index of today.
        version: 1, 2 or 3.
    """
    content, labels = path.read_bytes(), TrigramIndex(path).labels
    assert labels is not None
    sizes = [-(-part.nbytes // 8) * 8 for part in labels]
    postings = 4 * TrigramIndex(path).postings.size
    end = len(content) - 16 - sum(sizes)
    path.write_bytes(b"KGTRIG%d\n" % version + content[8 : end - -postings % 8])


def stamp_index(folder: Path) -> None:
    """Let the manifest of the build in *folder* list its index of surfaces as it is now."""
    path = folder / TRIGRAMS
    manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    changed = msgspec.structs.replace(
        manifest,
        files={**manifest.files, TRIGRAMS: path.stat().st_size},
        sha256={**manifest.sha256, TRIGRAMS: file_sha256(path)},
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(changed))
