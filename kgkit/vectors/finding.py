"""Which vectors there are, and whether they are a build's."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from kgkit.errors import DamagedVectors, KgkitError, NotThere, StaleVectors, UsageError
from kgkit.home import KBHome, is_name
from kgkit.vectors.layout import vectors_folder
from kgkit.vectors.matrix import Vectors, read_manifest
from kgkit.vectors.partial import partial_folders
from kgkit.versions import current_version, file_sha256, read_current, remove

_METHODS: Final = ("text", "tucker")
"""Ways to make vectors from a knowledge base alone; they are named after them unless told otherwise."""


def vectors_names(kb: KBHome) -> list[str]:
    """Return the names of a KB's vectors, in order."""
    paths = sorted(kb.vectors.iterdir()) if kb.vectors.is_dir() else []
    return [path.name for path in paths if is_name(path.name) and current_version(path) is not None]


def find_vectors(kb: KBHome, name: str | None = None) -> Path:
    """Return the folder of the published version of KB/*name*; of the only vectors, if *name* is None.

    Raises:
        NotThere: if there are none (of that name).
        UsageError: if there are several and none was named.
    """
    names = vectors_names(kb)
    if name is None:
        if len(names) > 1:
            existing = ", ".join(f"{kb.name}/{each}" for each in names)
            raise UsageError(f"which vectors of {kb.name!r}? There are {existing}: name one")
        name = names[0] if names else None
    if name in names and (version := current_version(kb.vectors / name)) is not None:
        return version
    if name is not None:
        vectors_folder(kb, name)  # a name that cannot be is told as such
    existing = ", ".join(f"{kb.name}/{each}" for each in names if each != name) or "none"
    method = name if name in _METHODS else "text"
    called = "" if name in (None, method) else f" --name {name}"
    raise NotThere(
        f"knowledge base {kb.name!r} has no vectors{'' if name is None else f' {name!r}'} (there are: "
        f"{existing}): `kgkit embed {kb.name} --method {method}{called}` makes some"
    )


def open_vectors(
    kb: KBHome, name: str | None, builds: Sequence[str], retired: Collection[int] = ()
) -> Vectors:
    """Open KB/*name* for a build.

    Args:
        kb: home of the KB whose vectors they are.
        name: name of the vectors; None for the only ones.
        builds: the build, then those that it extends, whose ids are therefore its own.
        retired: ids of the entities that the build has retired: their rows are hidden.

    Raises:
        NotThere, UsageError: as `find_vectors` does.
        StaleVectors: if they were made for another build.
        DamagedVectors: if they cannot be used as they are.
    """
    vectors = read_current(lambda: find_vectors(kb, name), Vectors.open)
    if vectors.manifest.build not in builds:
        raise StaleVectors(
            f"{vectors.name} was made for build {vectors.manifest.build} of {kb.name!r}, this is build "
            f"{builds[0]}: `kgkit embed {kb.name} --name {vectors.manifest.name} --update` takes over "
            "what fits"
        )
    vectors.hidden = np.array(sorted(retired), np.int64)
    return vectors


def damages(folder: Path) -> list[str]:
    """Return the problems of a version of vectors, one sentence each; none if it is sound."""
    try:
        manifest = read_manifest(folder)
    except KgkitError as error:
        return [str(error)]
    problems = []
    for name in manifest.files:
        try:
            digest = file_sha256(folder / name)
        except OSError as error:
            problems.append(f"file: {name} cannot be read: {error.strerror}")
            continue
        if digest != manifest.sha256.get(name):
            problems.append(f"file: {name} is damaged: its checksum is not the one that the manifest has")
    try:
        Vectors(folder, manifest).index  # noqa: B018 - that it opens is what is asked
    except DamagedVectors as error:
        problems.append(f"index: {error}")
    except UsageError:
        pass  # without faiss nobody can tell
    return problems


def remove_vectors(kb: KBHome, name: str) -> None:
    """Remove the vectors KB/*name* with their index and partial rows, and what stopped jobs have done.

    Raises:
        NotThere: if there are none of that name.
        KBBusy: if they are being made.
    """
    from kgkit.vectors.work import making, sweep_work

    folder = vectors_folder(kb, name)
    if not partial_folders(kb, name):
        find_vectors(kb, name)
    with making(kb, name):
        remove(folder)
        sweep_work(kb, name)
