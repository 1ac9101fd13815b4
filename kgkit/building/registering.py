"""Telling the catalog what is on disk: builds, vectors, indexes.

The manifests are the truth, the catalog is an index over them. A build is published first and registered
then, and so are vectors; whatever comes in between, and whatever people copy or remove by hand, `reconcile`
puts right.
"""

import datetime
import logging
import os
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kgkit.errors import KgkitError
from kgkit.home import CATALOG_URL, Home, KBHome
from kgkit.store import Manifest
from kgkit.store.manifest import read_manifest
from kgkit.vectors.layout import INDEX, VectorsManifest
from kgkit.versions import read_current

if TYPE_CHECKING:  # SQLAlchemy takes a third of a second to load
    from kgkit.catalog import Changes, KBOnDisk

__all__ = ["agrees", "reconcile", "register", "register_vectors"]

CATCHES_UP: Final = "`kgkit kb list` will catch up"

_NAMES: Final = """
    SELECT kbs.name, builds.name, builds.published FROM builds JOIN kbs ON kbs.id = builds.kb_id
    WHERE kbs.home = '.' AND builds.gone IS NULL
"""

_EVER: Final = (
    "SELECT kbs.name, builds.name FROM builds JOIN kbs ON kbs.id = builds.kb_id WHERE kbs.home = '.'"
)

_VECTORS: Final = """
    SELECT kbs.name, builds.name, vectors.name, indexes.kind FROM vectors
    JOIN builds ON builds.id = vectors.build_id JOIN kbs ON kbs.id = builds.kb_id
    LEFT JOIN indexes ON indexes.vectors_id = vectors.id AND indexes.gone IS NULL
    WHERE kbs.home = '.' AND vectors.gone IS NULL
"""

log = logging.getLogger(__name__)


def register(home: Home, name: str, build: str) -> None:
    """Tell the catalog of a KB's newly published build, and of what became of the KB's other builds.

    That the catalog cannot be told takes nothing from the build: it is logged as a warning.
    """
    from kgkit.catalog import Catalog

    kb = home.kb(name)
    try:
        with Catalog.open(home) as catalog:
            catalog.reconcile(lambda: [_kb_on_disk(kb)], kb=name)
    except (KgkitError, OSError) as error:
        log.warning("%s@%s is published but not in the catalog; %s: %s", name, build, CATCHES_UP, error)


def register_vectors(home: Home, kb: str) -> None:
    """Tell the catalog of a KB's newly made vectors, or their index.

    That the catalog cannot be told takes nothing from them: it is logged as a warning.
    """
    from kgkit.catalog import Catalog

    try:
        with Catalog.open(home) as catalog:
            catalog.reconcile(lambda: [_kb_on_disk(home.kb(kb))], kb=kb)
    except (KgkitError, OSError) as error:
        log.warning("the vectors of %s are published but not in the catalog; %s: %s", kb, CATCHES_UP, error)


def agrees(home: Home) -> bool:
    """Say whether the catalog in *home* names the builds and vectors on disk, no more and no fewer.

    This asks the file itself: SQLAlchemy takes longer to load than a list of
    KBs takes to print. Of a catalog elsewhere, or one that cannot be read, it
    says no, and leaves it to `reconcile` to find out. Where nothing is, and no
    catalog either, all is well, and looking leaves nothing behind.
    """
    if os.environ.get(CATALOG_URL):
        return False
    import sqlite3

    named: set[tuple[str, str, int]] = set()
    ever: set[tuple[str, str]] = set()
    vectors_in_catalog: set[tuple[str, str, str, str | None]] = set()
    if home.catalog.exists():
        try:
            address = f"{home.catalog.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, timeout=0, uri=True)) as catalog:
                named.update(catalog.execute(_NAMES))
                ever.update(catalog.execute(_EVER))
                vectors_in_catalog.update(catalog.execute(_VECTORS))
        except sqlite3.Error:
            return False
    on_disk = {(kb.name, build, build == kb.published()) for kb in home.kbs() for build in kb.build_names()}
    # What another kgkit made cannot be read and has no row.
    if not named <= on_disk or any(_describe(home.kb(kb), build) for kb, build, _ in on_disk - named):
        return False
    return vectors_in_catalog == {
        (kb.name, vectors.build, name, vectors.indexed["kind"] if vectors.indexed else None)
        for kb in home.kbs()
        for name, vectors in _vectors_of(kb).items()
        if (kb.name, vectors.build) in ever
    }


def reconcile(home: Home) -> "Changes":
    """Make the catalog agree with what lies in *home*.

    Raises:
        CatalogError: if the catalog cannot be reached, written or understood.
        MissingExtra: if it is in PostgreSQL and the driver is not installed.
    """
    from kgkit.catalog import Catalog

    with Catalog.open(home) as catalog:
        return catalog.reconcile(lambda: [_kb_on_disk(kb) for kb in home.kbs()])


def _kb_on_disk(kb: KBHome) -> "KBOnDisk":
    from kgkit.catalog import KBOnDisk, VectorsOnDisk

    published = kb.published()
    # Without a published build there is no KB, whatever else lies there.
    builds = kb.build_names() if published else []
    described = {build: _describe(kb, build) for build in builds}
    vectors = _vectors_of(kb) if published else {}
    return KBOnDisk(
        kb.name, published, described, {name: VectorsOnDisk(*fields) for name, fields in vectors.items()}
    )


class _Vectors(NamedTuple):
    """What `VectorsOnDisk` says, without SQLAlchemy."""

    build: str
    columns: Mapping[str, Any]
    indexed: Mapping[str, Any] | None


def _vectors_of(kb: KBHome) -> dict[str, _Vectors]:
    """Return the vectors of *kb* by name; those that cannot be read are not among them."""
    from kgkit.vectors import find_vectors, vectors_names

    vectors = {}
    for name in vectors_names(kb):
        try:
            manifest, index = read_current(partial(find_vectors, kb, name), _read_vectors)
            columns = {
                "method": manifest.method,
                "rows": manifest.rows,
                "width": manifest.width,
                "dtype": manifest.dtype,
                "config": {**manifest.config, "results": manifest.results, "versions": manifest.versions},
                "created": _moment(manifest.created),
            }
        except (KgkitError, OSError, ValueError):
            continue
        vectors[name] = _Vectors(manifest.build, columns, index)
    return vectors


def _read_vectors(folder: Path) -> tuple[VectorsManifest, Mapping[str, Any] | None]:
    """Return what vectors say of themselves, and the columns of their index."""
    from kgkit.vectors.matrix import read_manifest as read_vectors

    manifest = read_vectors(folder)
    return manifest, _index(folder, manifest.created)


def _index(folder: Path, changed: str) -> Mapping[str, Any] | None:
    """Return the columns of the index in *folder*; None without one."""
    try:
        fields = msgspec.json.decode((folder / INDEX).read_bytes())
        return {
            "kind": fields["kind"],
            "params": fields,
            "created": _moment(fields.get("created") or changed),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _describe(kb: KBHome, build: str) -> Mapping[str, Any] | None:
    """Return the columns of a build; None if its manifest cannot be read."""
    try:
        return _columns(read_manifest(kb.builds / build))
    except (KgkitError, ValueError):
        return None


def _columns(manifest: Manifest) -> Mapping[str, Any]:
    source = manifest.source
    return {
        "base": manifest.base,
        "builder": manifest.builder,
        "builder_version": manifest.builder_version,
        "kgkit_version": manifest.kgkit_version,
        "format": manifest.format,
        "source": source.name,
        "source_version": source.version,
        "source_sha256": source.sha256,
        "licence": source.licence,
        "url_pattern": manifest.url_pattern,
        "identifiers": list(manifest.identifiers),
        "entities": manifest.entities,
        "triples": manifest.triples,
        "aliases": manifest.aliases,
        "size": sum(manifest.files.values()),
        "created": _moment(manifest.created),
    }


def _moment(written: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(written).astimezone(datetime.UTC)
