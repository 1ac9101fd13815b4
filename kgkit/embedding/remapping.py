"""Vectors that were made for another build, taken over by key."""

import logging
import shutil
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.kb import KnowledgeBase
from kgkit.types import Progress
from kgkit.vectors import Vectors, Work, find_vectors
from kgkit.vectors.layout import KEYS, MATRIX, key_digests
from kgkit.versions import read_current

_BLOCK: Final = 16_384  # rows

_INDEX_KEY: Final = "wanted_index"  # in the manifest's results

_log = logging.getLogger(__name__)


class IndexSpec(NamedTuple):
    """An index that vectors are to have.

    Vectors are published before their index is built; what is wanted stands in
    their manifest, so that a job stopped in between can be finished.

    Attributes:
        kind: kind of index, see `kgkit.vectors.kinds`.
        recall: recall that its settings are chosen for.
    """

    kind: str
    recall: float

    @classmethod
    def of(cls, vectors: Vectors) -> "IndexSpec | None":
        """Return what the manifest of *vectors* says; None if nothing."""
        fields = vectors.manifest.results.get(_INDEX_KEY)
        return None if fields is None else cls(**fields)


def index_note(index: IndexSpec | None) -> dict[str, Any]:
    """Return *index* as a manifest's results have it."""
    return {} if index is None else {_INDEX_KEY: index._asdict()}


class RowMapping(NamedTuple):
    """Where the entities of a build had their row.

    Attributes:
        old: (n,) int64, rows of the old matrix.
        new: (n,) int64, ids in the build, ascending.
    """

    old: NDArray[np.int64]
    new: NDArray[np.int64]


def old_vectors(kb: KnowledgeBase, name: str) -> Vectors:
    """Open the vectors KB/*name*, whatever build they were made for.

    Raises:
        NotThere, DamagedVectors: if there are none, or they cannot be used.
    """
    return read_current(lambda: find_vectors(kb.home, name), Vectors.open)


def row_mapping(kb: KnowledgeBase, old: Vectors) -> RowMapping:
    """Say which entities of *kb* have a row in *old*, by the digest of their key."""
    digests, had = key_digests(kb.id_keys(), kb.id_count), np.asarray(old.keys)
    order = np.argsort(had, kind="stable")
    at = np.searchsorted(had[order], digests)
    mask = (at < len(had)) & (digests != 0)  # 0: retired
    mask[mask] = had[order[at[mask]]] == digests[mask]
    return RowMapping(order[at[mask]].astype(np.int64), np.flatnonzero(mask))


def take_over(
    kb: KnowledgeBase,
    name: str,
    *,
    index: IndexSpec | None = None,
    progress: Progress | None = None,
) -> Vectors:
    """Publish the vectors KB/*name* for the build of *kb*: each entity keeps its row, found by its key.

    Entities that are new have no vector then, nor those that had none; how many
    is logged. Vectors that are this build's already are returned as they are.

    Args:
        kb: knowledge base, open on the build that the vectors are for.
        name: name of the vectors.
        index: index that the caller is going to build for them.
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
    mapping = row_mapping(kb, old)
    rows = int(mapping.new[-1]) + 1 if len(mapping.new) else 0
    if not rows:
        raise UsageError(f"no entity of {kb.name}@{kb.build} has a vector in {old.name}: make them anew")
    with Work(kb, name, settings, resume=False) as work:
        matrix = work.matrix(rows, old.width)
        for begin in range(0, len(mapping.new), _BLOCK):
            these = slice(begin, begin + _BLOCK)
            matrix[mapping.new[these]] = old.matrix[mapping.old[these]]
            if progress is not None:
                progress("taking over", min(begin + _BLOCK, len(mapping.new)), len(mapping.new))
        files = [file for file in old.manifest.files if file not in (MATRIX, KEYS)]
        for file in files:
            shutil.copyfile(old.folder / file, work.folder / file)
        vectors = work.publish(
            old.manifest.method,
            files=files,
            results=_results(old.manifest.results, mapping, len(kb)) | index_note(index),
            extends=old,
        )
    if without := len(kb) - vectors.manifest.covered:
        _log.warning("%s entities of %s have no vector in %s", f"{without:,}", kb.name, vectors.name)
    return vectors


def _results(old: dict[str, Any], mapping: RowMapping, entities: int) -> dict[str, Any]:
    own = {key: value for key, value in old.items() if key != _INDEX_KEY}
    return {**own, "taken_over": len(mapping.new), "new_entities": entities - len(mapping.new)}
