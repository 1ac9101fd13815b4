"""Building an index, and choosing how it is to be searched.

R  rows of the matrix    N  of them vectors    D  width    Q  queries
"""

import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from kgkit.errors import UsageError, WriteFailed
from kgkit.types import Matrix, Numbers, Progress
from kgkit.vectors.index import FORMAT, Index, IndexManifest, Recall, open_inner, sample
from kgkit.vectors.kinds import (
    AUTO,
    KINDS,
    RECALL,
    IndexKind,
    describe_kind,
    faiss_module,
    find_kind,
    lists_for,
    set_seed,
    turn,
)
from kgkit.vectors.layout import INDEX
from kgkit.vectors.scan import lengths_of, unit
from kgkit.vectors.tuning import AT, sampled_queries, tune

_BLOCK: Final = 16_384  # rows that are copied at once
_TRAINING: Final = 64  # rows a list; faiss warns below 39, and more changes little
_LEAST_TRAINING, _MOST_TRAINING = 1 << 15, 1 << 18
_QUERIES: Final = 1000
_WIDE: Final = 100  # a search that keeps more than one vector of so many at hand
_FEW: Final = 1000  # vectors: quantisers cannot learn from fewer, and comparing all of them takes no time

_log = logging.getLogger(__name__)


def build_index(
    matrix: Matrix,
    folder: Path,
    *,
    kind: str = AUTO,
    recall: float = RECALL,
    queries: Matrix | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Index:
    """Build the index over *matrix* in *folder*, in place of the one that is there.

    The matrix is read where it is mapped; in memory are faiss's own index (a quarter of the matrix at most,
    and links), a sample to train with and a block of rows.

    Args:
        matrix: (R, D) float32, rows of any length.
        folder: folder of the vectors.
        kind: `auto` chooses by size, see `kgkit.vectors.kinds`; without faiss it is `exact`, with a warning.
            Under 1,000 vectors it is always `exact`.
        recall: share of the 10 true neighbours to be found; the cheapest setting that does is kept.
        queries: (Q, D) to choose and measure with, if there are real ones; else a thousand rows, moved.
        seed: seed of what is drawn at random.
        progress: callback that is told how many rows are done.

    Raises:
        UnknownName: if there is no such kind.
        UsageError: if *recall* is not within 0 and 1, or the queries have another width.
        MissingExtra: if a kind was named that needs faiss, and it is not installed.
        WriteFailed: if the disk refuses; the old index is as it was.
    """
    if not 0 < recall <= 1:
        raise UsageError(f"a recall of {recall}: it is above 0 and at most 1")
    if queries is not None and (queries.ndim != 2 or queries.shape[1] != matrix.shape[1]):
        raise UsageError(f"the vectors have width {matrix.shape[1]}, the queries have shape {queries.shape}")
    began = time.perf_counter()
    rows = np.flatnonzero(lengths_of(matrix) > 0)
    chosen = find_kind(kind, len(rows), matrix.shape[1])
    if len(rows) < _FEW or (kind == AUTO and chosen.factory and not _has_faiss(chosen)):
        chosen = KINDS["exact"]
    manifest = IndexManifest(
        format=FORMAT,
        kind=chosen.name,
        rows=len(matrix),
        vectors=len(rows),
        width=matrix.shape[1],
        sample=sample(matrix, len(matrix)),
        seed=seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    bare = msgspec.structs.replace(manifest, kind="exact")
    if chosen.factory:
        manifest = _train(manifest, chosen, matrix, rows, folder, progress)
        tuned_manifest = _with_setting(manifest, chosen, matrix, rows, folder, queries, recall)
        hopeless = chosen.knob == "efSearch" and tuned_manifest.setting * _WIDE > len(rows)
        # No neighbourhoods here: a graph that must be searched so widely is slower than comparing all.
        manifest = bare if kind == AUTO and hopeless else tuned_manifest
    manifest = msgspec.structs.replace(manifest, seconds=round(time.perf_counter() - began, 3))
    with _writing(folder):
        _put(folder / INDEX, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    _sweep(folder, manifest)
    return open_inner(folder, manifest, matrix)


def _has_faiss(kind: IndexKind) -> bool:
    try:
        faiss_module()
    except UsageError as error:
        _log.warning(
            "searches will compare every vector, for an index %s cannot be built: %s", kind.name, error
        )
        return False
    return True


def _train(
    manifest: IndexManifest,
    kind: IndexKind,
    matrix: Matrix,
    rows: Numbers,
    folder: Path,
    progress: Progress | None,
) -> IndexManifest:
    """Train, fill and write faiss's index; return the manifest that names its files."""
    faiss = faiss_module()
    factory = describe_kind(kind, len(rows), matrix.shape[1])
    inner = faiss.index_factory(matrix.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    set_seed(faiss, inner, manifest.seed)
    inner.train(_training(matrix, rows, kind, manifest.seed))
    for count, block in _unit_blocks(matrix, rows):
        inner.add(block)
        if progress is not None:
            progress("indexing", count, len(rows))
    stem = f"index-{kind.name}-{secrets.token_hex(4)}"
    files = [f"{stem}.faiss"]
    with _writing(folder):
        _write(faiss, inner, folder / files[0])
        if rows[-1] != len(rows) - 1:  # zeros lie between
            files.append(f"{stem}.npy")
            np.save(folder / files[1], rows)
    return msgspec.structs.replace(
        manifest,
        factory=factory,
        knob=kind.knob,
        file=files[0],
        row_file=files[1] if len(files) > 1 else "",
        sizes={name: (folder / name).stat().st_size for name in files},
        faiss=faiss.__version__,
    )


def _with_setting(
    manifest: IndexManifest,
    kind: IndexKind,
    matrix: Matrix,
    rows: Numbers,
    folder: Path,
    queries: Matrix | None,
    target: float,
) -> IndexManifest:
    """Choose how the index in *folder* is searched."""
    faiss = faiss_module()
    index = open_inner(folder, manifest, matrix)

    def propose(sought: Matrix, many: int, setting: int) -> Numbers:
        """Return the rows that the index proposes with one setting of its knob."""
        turn(faiss, index.inner, kind.knob, setting)
        return index.propose(sought, many)

    if queries is None:
        queries = sampled_queries(matrix, rows, _QUERIES, manifest.seed)
    most = lists_for(len(rows)) if kind.knob == "nprobe" else len(rows)
    result = tune(propose, kind, most, matrix[: manifest.rows], queries, target)
    if result.recall < target - 0.02:  # the half it is measured with has some luck of its own
        _log.warning(
            "the index %s finds %.3f of the true neighbours, not %.3f: another kind may do better",
            kind.name,
            result.recall,
            target,
        )
    return msgspec.structs.replace(
        manifest,
        setting=result.setting,
        proposals=result.proposals,
        recall=Recall(at=AT, target=target, value=round(result.recall, 4), queries=result.queries),
    )


def _training(matrix: Matrix, rows: Numbers, kind: IndexKind, seed: int) -> Matrix:
    """Return the sample that quantisers are trained with, at length 1."""
    most = min(_MOST_TRAINING, max(_LEAST_TRAINING, _TRAINING * lists_for(len(rows))))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    return unit(np.asarray(matrix).take(rows, axis=0))


def _unit_blocks(matrix: Matrix, rows: Numbers) -> Iterator[tuple[int, Matrix]]:
    """Yield the vectors at length 1, block by block, and how many have been yielded."""
    plain = np.asarray(matrix)
    for at in range(0, len(rows), _BLOCK):
        block = unit(plain.take(rows[at : at + _BLOCK], axis=0))
        yield at + len(block), block


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Let a disk that refuses be told as such, and leave no new file behind."""
    before = set(folder.glob("index*"))
    try:
        yield
    except OSError as error:
        new = set(folder.glob("index*")) - before
        written = sum(path.stat().st_size for path in new)
        for path in new:
            path.unlink(missing_ok=True)
        free = shutil.disk_usage(folder).free
        raise WriteFailed(str(error), written=written, free=free, where=folder) from error


def _write(faiss: Any, inner: Any, path: Path) -> None:
    try:
        faiss.write_index(inner, str(path))
    except RuntimeError as error:  # faiss's own, whatever the system said
        raise OSError(str(error).strip().splitlines()[0]) from error
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _put(path: Path, content: bytes) -> None:
    """Write *content* beside *path* and rename it into place."""
    staged = path.with_name(f"index-{secrets.token_hex(4)}.part")
    with staged.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)


def _sweep(folder: Path, manifest: IndexManifest) -> None:
    """Remove what older indexes and killed builds have left; who has them open reads on."""
    for path in folder.glob("index-*"):
        if path.name not in manifest.sizes:
            with suppress(OSError):
                path.unlink()
