"""A knowledge base as kgkit wrote it in an older format."""

from functools import partial
from pathlib import Path

import msgspec

from kgkit.home import Home
from kgkit.store import PublishedBuild, Staging, StoreReader, StoreWriter
from kgkit.store.layout import SINCE, TABLES, build_name, readable_formats
from kgkit.store.writer import checksums


def publish_in_older_format(folder: Path, home: Path, name: str, number: int) -> PublishedBuild:
    """Publish the build in *folder* as the KB *name*, in format *number*.

    Args:
        folder: folder of a build of today.
        home: home of the other KB; may be the same.
        name: name of that KB.
        number: 2 or 3.
    """
    reader = StoreReader.open(folder)
    tables = [table for table in TABLES if number >= SINCE.get(table, 0)]
    with Staging(Home(home).kb(name)) as staging:
        with StoreWriter(staging.folder, tables) as store:
            for table in tables:
                store.append(table, reader.items(table))
            digests = store.finish()
        sizes, sums = checksums(staging.folder, {})
        fingerprint = readable_formats()[number]
        manifest = msgspec.structs.replace(
            reader.manifest,
            tables=digests,
            files=sizes,
            sha256=sums,
            format=number,
            fingerprint=fingerprint,
        )
        reader.close()
        return staging.publish(msgspec.structs.replace(manifest, build=build_name(manifest)))


publish_as_format_2 = partial(publish_in_older_format, number=2)
