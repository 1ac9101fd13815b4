"""The knowledge bases on this machine."""

import os
from typing import Any

import msgspec

from kgkit.errors import KgkitError
from kgkit.home import Home, KBHome
from kgkit.store.manifest import read_manifest

__all__ = ["KBSummary", "kbs"]


class KBSummary(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What the manifest of a knowledge base says.

    Of one that cannot be used `error` says why, and what its manifest would say is None.

    Attributes:
        name: name of the KB.
        build: name of its published build.
        builds: names of all builds on disk, oldest first.
        error: reason why the KB cannot be used; None for one that can.
        entities: number of entities.
        triples: number of stored triples.
        aliases: number of distinct folded surfaces.
        size: bytes on disk.
        created: time at which it was built, as ISO 8601.
        source: name and version of what it was built from.
    """

    name: str
    build: str | None
    builds: list[str]
    error: str | None = None
    entities: int | None = None
    triples: int | None = None
    aliases: int | None = None
    size: int | None = None
    created: str | None = None
    source: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON, without those that are None."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


def kbs(home: str | os.PathLike[str] | None = None) -> list[KBSummary]:
    """Return what the knowledge bases on this machine say of themselves, by name.

    Args:
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.

    Examples:
        >>> [kb.name for kb in kgkit.kbs()]
        ['hownet', 'wordnet']
    """
    return [_summary(kb) for kb in Home.find(home).kbs()]


def _summary(kb: KBHome) -> KBSummary:
    build = kb.published()
    try:
        manifest = read_manifest(kb.builds / str(build))
    except KgkitError as error:
        return KBSummary(kb.name, build, kb.build_names(), error=str(error))
    return KBSummary(
        kb.name,
        build,
        kb.build_names(),
        entities=manifest.entities,
        triples=manifest.triples,
        aliases=manifest.aliases,
        size=sum(manifest.files.values()),
        created=manifest.created,
        source=f"{manifest.source.name} {manifest.source.version}".strip(),
    )
