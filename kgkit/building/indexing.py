"""The index of similar surfaces for a build that was made without it."""

import os

import lmdb

from kgkit.building.registering import register
from kgkit.errors import WriteFailed
from kgkit.home import Home
from kgkit.store import Staging, find_build
from kgkit.store.damage import damage_error
from kgkit.store.layout import TRIGRAMS
from kgkit.store.manifest import read_manifest
from kgkit.store.publish import PublishedBuild
from kgkit.store.surface_index import write_index
from kgkit.store.validate import require_undamaged
from kgkit.versions import free_space

__all__ = ["index_kb"]


def index_kb(name: str, home: str | os.PathLike[str] | None = None) -> tuple[PublishedBuild, bool]:
    """Give a build the index of its surfaces, by which names are found through typing errors.

    Every build has one from the first; those that older versions of kgkit made have not. Its data and its
    name stay as they are, and handles that are open read on.

    Args:
        name: `NAME`, or `NAME@BUILD`.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.

    Returns:
        The build, and whether it had no index.

    Raises:
        NotThere: if there is no such KB, or build.
        DamagedKB: if its files are not as they were written.
        KBBusy: if another process is building or removing this KB.
        WriteFailed: if the disk refuses.
    """
    where = Home.find(home)
    build = find_build(where, name)
    with Staging(where.kb(build.name)) as staging:
        manifest = read_manifest(build.folder)
        if TRIGRAMS in manifest.files:
            return build, False
        require_undamaged(build.folder)
        try:
            staging.folder.mkdir()
            write_index(build.folder, staging.folder)
            staging.add_index(build.build)
        except lmdb.Error as error:
            raise damage_error(build.folder, f"a table cannot be read ({error})") from error
        except OSError as error:
            free = free_space(staging.folder)
            raise WriteFailed(str(error), written=0, free=free, where=build.folder) from error
    register(where, build.name, build.build)  # the build is larger now
    return build, True
