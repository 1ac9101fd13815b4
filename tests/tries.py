"""A knowledge base as the engine `local` would write it if it had more than a million aliases."""

from pathlib import Path

import msgspec

from kgkit.building.aliases import start_rows, starts
from kgkit.home import Home
from kgkit.store import PublishedBuild, Staging, StoreReader, StoreWriter, codec
from kgkit.store.layout import TABLES, build_name
from kgkit.store.surfaces import SurfaceWriter
from kgkit.store.writer import checksums


def with_tries(folder: Path, home: Path, name: str, size: int = 500_000) -> PublishedBuild:
    """Publish the build in *folder* as the KB *name*, with tries in the place of `starts`.

    Args:
        folder: of a build that has no tries.
        home: where the other one is published; may be the same.
        name: of that KB.
        size: surfaces of a trie.
    """
    reader = StoreReader.open(folder)
    tables_of = [*TABLES, *(reader.manifest.tables.keys() - TABLES.keys())]
    with Staging(Home(home).kb(name)) as staging:
        with StoreWriter(staging.folder) as store:
            tries = SurfaceWriter(staging.folder, size)
            tries.add(reader.iter_surfaces())
            long = [
                codec.spellings(row)[0].surface
                for key, row in reader.items("aliases")
                if key.startswith(codec.DIGEST)
            ]
            variants = (
                [key.decode() for key, _ in reader.items("variants")] if "variants" in tables_of else []
            )
            changed = {
                "starts": start_rows(starts([*tries.aside, *long, *variants], {}, reader.folding)),
                "meta": [*reader.items("meta"), tries.finish()],
            }
            for table in tables_of:
                store.append(table, changed.get(table, reader.items(table)))
            tables = store.finish()
        sizes, sums = checksums(staging.folder, {})
        manifest = msgspec.structs.replace(
            reader.manifest, tables=tables, files=sizes, sha256=sums, generator="alias"
        )
        reader.close()
        return staging.publish(msgspec.structs.replace(manifest, build=build_name(manifest)))
