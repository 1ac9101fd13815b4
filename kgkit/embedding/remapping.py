"""Vectors that were made for another build, taken over by key."""

import logging
import shutil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.sorted_ids import match_sorted
from kgkit.types import Progress
from kgkit.vectors import Vectors, Work, find_vectors
from kgkit.vectors.layout import KEYS, MATRIX, key_digests
from kgkit.versions import read_current

_BLOCK: Final = 16_384  # rows

_log = logging.getLogger(__name__)


def old_vectors(kb: KnowledgeBase, name: str) -> Vectors:
    """Open the vectors KB/*name*, whatever build they were made for.

    Raises:
        NotThere, DamagedVectors: if there are none, or they cannot be used.
    """
    return read_current(lambda: find_vectors(kb.home, name), Vectors.open)


def row_mapping(kb: KnowledgeBase, old: Vectors) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows in *old* of those entities of *kb* that have one, and their ids (n,), ascending."""
    digests = key_digests(kb.id_keys(), kb.id_count)
    had = np.asarray(old.keys)
    positions, exists = match_sorted(had, digests, order=np.argsort(had, kind="stable"))
    ids = np.flatnonzero(exists & (digests != 0))  # 0: retired
    return positions[ids].astype(np.int64), ids


def take_over(
    kb: KnowledgeBase,
    name: str,
    *,
    progress: Progress | None = None,
) -> Vectors:
    """Publish the vectors KB/*name* for the build of *kb*: each entity keeps its row, found by its key.

    Entities that are new have no vector then, nor those that had none; how many
    is logged. Vectors that are this build's already are returned as they are.

    Args:
        kb: knowledge base, open on the build that the vectors are for.
        name: name of the vectors.
        progress: callback that is told (rows done, of how many).

    Raises:
        NotThere, DamagedVectors: if there are no such vectors, or they cannot be used.
        UsageError: if no entity of the build has one.
    """
    old = old_vectors(kb, name)
    if old.manifest.build == kb.build:
        return old
    settings = {
        **old.manifest.config,
        "taken_over": {"build": old.manifest.build, "version": old.manifest.version},
    }
    old_rows, ids = row_mapping(kb, old)
    if not len(ids):
        raise UsageError(f"no entity of {kb.name}@{kb.build} has a vector in {old.name}: make them anew")
    with Work(kb, name, settings, resume=False) as work:
        matrix = work.matrix(int(ids[-1]) + 1, old.width)
        for begin in range(0, len(ids), _BLOCK):
            these = slice(begin, begin + _BLOCK)
            matrix[ids[these]] = old.matrix[old_rows[these]]
            if progress is not None:
                progress("taking over", min(begin + _BLOCK, len(ids)), len(ids))
        files = [file for file in old.manifest.files if file not in (MATRIX, KEYS)]
        for file in files:
            shutil.copyfile(old.folder / file, work.folder / file)
        results = {
            **old.manifest.results,
            "taken_over": len(ids),
            "new_entities": len(kb) - len(ids),
        }
        vectors = work.publish(old.manifest.method, files=files, results=results, extends=old)
    if without := len(kb) - vectors.manifest.covered:
        _log.warning("%s entities of %s have no vector in %s", f"{without:,}", kb.name, vectors.name)
    return vectors
