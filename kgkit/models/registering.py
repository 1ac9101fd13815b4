"""A row in the catalog for each trained model; a training of the same name changes it."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from kgkit.errors import KgkitError
from kgkit.home import Home

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from kgkit.models.manifest import ModelManifest

log = logging.getLogger(__name__)


def catalogue(home: Home, manifest: "ModelManifest") -> bool:
    """Write what a model says of itself to the catalog of *home*; say whether that succeeded.

    The catalog is an index: that it cannot be told takes nothing from the model. It is logged as a warning.
    """
    from sqlalchemy import select

    from kgkit.catalog import Catalog, Model
    from kgkit.catalog.database import LONG_PATIENCE

    try:
        with Catalog.open(home, patience=LONG_PATIENCE) as catalog, catalog.writing() as session:
            query = select(Model).where(Model.home == catalog.home, Model.name == manifest.name)
            row = session.scalar(query)
            if row is None:
                row = Model(home=catalog.home, name=manifest.name)
                session.add(row)
            for name, value in _columns(session, catalog.home, manifest).items():
                setattr(row, name, value)
    except (KgkitError, OSError) as error:
        log.warning("the model %s is not in the catalog: %s", manifest.name, error)
        return False
    return True


def mark_removed(home: Home, name: str) -> None:
    """Note in the catalog of *home* that a model was removed; if that fails, a warning is logged."""
    from sqlalchemy import select

    from kgkit.catalog import Catalog, Model
    from kgkit.catalog.database import LONG_PATIENCE

    try:
        with Catalog.open(home, patience=LONG_PATIENCE) as catalog, catalog.writing() as session:
            row = session.scalar(select(Model).where(Model.home == catalog.home, Model.name == name))
            if row is not None:
                row.gone = datetime.now(UTC)
    except (KgkitError, OSError) as error:
        log.warning("the catalog does not know that the model %s is gone: %s", name, error)


def _columns(session: "Session", home: str, manifest: "ModelManifest") -> dict[str, Any]:
    """Return the columns of a model; it may serve any KB, and the catalog may not have heard of its own."""
    from sqlalchemy import select

    from kgkit.catalog import KB, Build, Vectors

    plain, needs = msgspec.to_builtins(manifest), manifest.needs
    kb, version = next(iter(needs.kbs.items())) if len(needs.kbs) == 1 else (None, None)
    build = session.scalar(
        select(Build).join(Build.kb).where(KB.home == home, KB.name == kb, Build.name == version)
    )
    vectors = None
    if build is not None:
        named = next(iter(needs.vectors), "").rpartition("/")[2]
        vectors = session.scalar(select(Vectors).where(Vectors.build_id == build.id, Vectors.name == named))
    in_config = ("type", "reader", "config", "results", "data", "temperature", "kgkit_version")
    return {
        "kind": manifest.kind,
        "encoder": manifest.encoder or None,
        "build": build,
        "vectors": vectors,
        "config": {name: plain[name] for name in in_config if name in plain},
        "created": datetime.fromisoformat(manifest.created),
        "gone": None,
    }
