"""Which builds a build is made of, by additions and edits, and which serve what was made with another.

Entities keep their ids from build to build of one line; nothing else may be taken for granted.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from kgkit.errors import NotThere, StoreError
from kgkit.home import KBHome
from kgkit.store.manifest import read_manifest

if TYPE_CHECKING:
    from kgkit.kb.handle import KnowledgeBase
    from kgkit.store import Manifest


def ancestry(kb: "KnowledgeBase") -> list[str]:
    """Return the BUILD and those that it extends, the latest first: their ids are its own.

    Builds of older versions name the one before them alone: of these as far as they are on disk.
    """
    return _line(kb.home, kb.manifest)


def serving_builds(home: KBHome, build: str) -> list[str]:
    """Return the builds on disk that serve what was made with *build*: those made of it, and itself.

    The published one comes first, if it serves; then *build* itself; then others, the latest first.
    """
    names = home.build_names()
    serving = [name for name in reversed(names) if name == build or build in _line_of(home, name)]
    published = home.published()
    return sorted(serving, key=lambda name: (name != published, name != build))


def _line_of(home: KBHome, build: str) -> list[str]:
    """Return a build on disk and those that it extends; none where it cannot be read."""
    with suppress(StoreError, NotThere):
        return _line(home, read_manifest(home.builds / build))
    return []


def _line(home: KBHome, manifest: "Manifest") -> list[str]:
    builds = [manifest.build]
    while not manifest.bases and manifest.base and manifest.base not in builds:
        builds.append(manifest.base)
        try:
            manifest = read_manifest(home.builds / manifest.base)
        except (StoreError, NotThere):
            return builds
    return [*builds, *manifest.bases]
