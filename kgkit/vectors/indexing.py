"""Building an index, and choosing how it is searched: the cheapest setting that finds enough.

R  rows of the matrix    N  of them vectors    D  width    Q  queries    k  neighbours    C  candidates
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

from kgkit.errors import MissingExtra, UsageError, WriteFailed
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
    turn,
)
from kgkit.vectors.layout import INDEX
from kgkit.vectors.scan import lengths_of, rescore, scan, unit, unit_blocks

_TRAINING: Final = 64  # rows a list; faiss warns below 39, and more changes little
_LEAST_TRAINING, _MOST_TRAINING = 1 << 15, 1 << 18
_QUERIES: Final = 1000
_WIDE: Final = 100  # a search that keeps more than one vector of so many at hand
_FEW: Final = 1000  # vectors: quantisers cannot learn from fewer, and comparing all of them takes no time
_AT: Final = 10  # neighbours of which the recall is measured
_NOISE: Final = 1.5
_MARGIN: Final = 0.2  # of what the target leaves: the cheapest setting that reaches it has had luck

_log = logging.getLogger(__name__)


def build_index(
    matrix: Matrix,
    folder: Path,
    *,
    kind: str = AUTO,
    recall: float = RECALL,
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
        progress: callback that is told how many rows are done.

    Raises:
        UnknownName: if there is no such kind.
        UsageError: if *recall* is not within 0 and 1.
        MissingExtra: if a kind was named that needs faiss, and it is not installed.
        WriteFailed: if the disk refuses; the old index is as it was.
    """
    if not 0 < recall <= 1:
        raise UsageError(f"a recall of {recall}: it is above 0 and at most 1")
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
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    bare = msgspec.structs.replace(manifest, kind="exact")
    if chosen.factory:
        manifest = _train(manifest, chosen, matrix, rows, folder, progress)
        tuned_manifest = _with_setting(manifest, chosen, matrix, rows, folder, recall)
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
    except MissingExtra as error:
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
    inner.train(_training(matrix, rows))
    for count, block in unit_blocks(matrix, rows):
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
    manifest: IndexManifest, kind: IndexKind, matrix: Matrix, rows: Numbers, folder: Path, target: float
) -> IndexManifest:
    """Choose how the index in *folder* is searched.

    The first half of the queries is chosen with, the second half measured with.
    """
    index = open_inner(folder, manifest, matrix)
    indexed = matrix[: manifest.rows]
    queries = unit(sampled_queries(matrix, rows, _QUERIES))
    truth, half = scan(indexed, queries, _AT).rows, len(queries) // 2
    most = lists_for(len(rows)) if kind.knob == "nprobe" else len(rows)
    enough = target + _MARGIN * (1 - target)
    setting, proposals = _choose(index, kind, most, queries[:half], truth[:half], enough)
    turn(faiss_module(), index.inner, kind.knob, setting)
    found = rescore(indexed, queries[half:], index.propose(queries[half:], _AT * proposals), _AT).rows
    value = recall_of(found, truth[half:])
    if value < target - 0.02:  # the half it is measured with has some luck of its own
        _log.warning(
            "the index %s finds %.3f of the true neighbours, not %.3f: another kind may do better",
            kind.name,
            value,
            target,
        )
    recall = Recall(at=_AT, target=target, value=round(value, 4), queries=len(queries) - half)
    return msgspec.structs.replace(manifest, setting=setting, proposals=proposals, recall=recall)


def _choose(
    index: Index, kind: IndexKind, most: int, queries: Matrix, truth: Numbers, target: float
) -> tuple[int, int]:
    """Return the cheapest setting, up to *most*, and proposals that reach *target*; else the last of both."""
    tried = [setting for setting in kind.settings if setting <= most] or [kind.settings[0]]
    for setting in tried:
        turn(faiss_module(), index.inner, kind.knob, setting)
        rows = index.propose(queries, _AT * kind.proposals[-1])  # (Q, C), best first
        for proposals in kind.proposals:
            best = rescore(index.matrix, queries, rows[:, : _AT * proposals], _AT).rows
            if recall_of(best, truth) >= target:
                return setting, proposals
    return tried[-1], kind.proposals[-1]


def sampled_queries(matrix: Matrix, rows: Numbers, count: int, seed: int = 0) -> Matrix:
    """Return up to *count* rows of the matrix, each moved by 1.5 times its length in a random direction.

    A row itself, or one moved a little, would be too easy: a graph that finds the row has its neighbours at
    hand. Moved so far, glosses are about as hard to find neighbours of as sentences that are no glosses.
    """
    drawn = np.random.default_rng(seed)
    chosen = np.sort(drawn.choice(rows, min(count, len(rows)), replace=False))
    queries = unit(np.asarray(matrix).take(chosen, axis=0))  # (Q, D)
    moves = unit(drawn.standard_normal(queries.shape, np.float32))
    queries = queries + np.float32(_NOISE) * moves
    # The order of the rows may mean something: both halves of the queries are to see all of it.
    return queries[drawn.permutation(len(queries))]


def recall_of(result: Numbers, truth: Numbers) -> float:
    """Return the share of the rows in *truth* (Q, k) that are in *found* (Q, k) too; -1 is no row."""
    same = (result[:, :, None] == truth[:, None, :]) & (truth >= 0)[:, None, :]
    return float(same.any(axis=1).sum() / max(1, int((truth >= 0).sum())))


def _training(matrix: Matrix, rows: Numbers) -> Matrix:
    """Return the sample that quantisers are trained with, at length 1."""
    most = min(_MOST_TRAINING, max(_LEAST_TRAINING, _TRAINING * lists_for(len(rows))))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return unit(np.asarray(matrix).take(rows, axis=0))


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
