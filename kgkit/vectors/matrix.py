"""Reading vectors: rows by entity id, and the rows that are near."""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgkit.errors import DamagedVectors, NotThere, StaleVectors, UsageError
from kgkit.types import Matrix
from kgkit.vectors.layout import (
    FORMAT,
    INDEX,
    KEYS,
    MANIFEST,
    MATRIX,
    DescribedVectors,
    Digests,
    VectorsFormat,
    VectorsManifest,
    files_of_other_sizes,
    require_finite,
)
from kgkit.vectors.scan import rescore, scan, unit

if TYPE_CHECKING:
    from kgkit.vectors.index import Index
    from kgkit.vectors.torch_search import TorchSearch

_BATCH: Final = 64  # queries from which on a GPU compares them


class Neighbours(NamedTuple):
    """What is near each of Q queries, nearest first.

    Attributes:
        scores: (Q, k) float32, cosines in [-1, 1].
        ids: (Q, k) int64, entity ids; -1 where there are fewer than k vectors.
    """

    scores: Matrix
    ids: NDArray[np.int64]


class Vectors(DescribedVectors):
    """A matrix with a row for each entity of one BUILD, mapped into memory.

    Rows are entity ids. An entity without a vector has a row of zeros, or none:
    the matrix may end before the entities do. May be used from any number of
    threads and in a forked child; pickled, it opens the same version again or
    raises `StaleVectors`.

    Attributes:
        matrix: (R, D) float32, read-only, not normalised.
        manifest: record of how they were made.
        folder: folder of the files.
        hidden: (H,) int64, ascending: ids whose rows count as zeros, as those of retired entities.

    Examples:
        >>> vectors = kgkit.open_kb("wordnet").vectors("text")
        >>> vectors.gather([10815, 10816]).shape
        (2, 384)
    """

    def __init__(self, folder: Path, manifest: VectorsManifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.hidden: NDArray[np.int64] = np.empty(0, np.int64)
        self.matrix: Matrix = _map_file(folder / MATRIX)
        if self.matrix.shape != (manifest.rows, manifest.width) or self.matrix.dtype != np.float32:
            raise DamagedVectors(
                f"{folder / MATRIX} holds {self.matrix.dtype} {self.matrix.shape}, its manifest says float32 "
                f"{(manifest.rows, manifest.width)}: make the vectors again with `kgkit embed`"
            )
        self._index: Index | None = None
        self._searches: dict[str, TorchSearch | None] = {}  # by device; None: the rows do not fit
        self._lock, self._pid = threading.Lock(), os.getpid()

    @classmethod
    def open(cls, folder: Path) -> "Vectors":
        """Open the version in *folder*.

        Raises:
            NotThere: if there is none.
            DamagedVectors: if its files do not have the sizes that its manifest gives.
        """
        return cls(folder, read_manifest(folder))

    def __len__(self) -> int:
        return self.manifest.rows

    def __repr__(self) -> str:
        return f"<Vectors {self.name} of build {self.manifest.build}: {len(self):,} × {self.width}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (str(self.folder.absolute()), self.manifest.version, self.hidden)

    @property
    def keys(self) -> Digests:
        """(R,) uint64, `key_digest` of the key of each row's entity, mapped into memory."""
        digests: Digests = _map_file(self.folder / KEYS)
        return digests

    def gather(self, ids: ArrayLike) -> Matrix:
        """Return a copy of the rows of *ids*, of any shape (…): (…, D) float32, zeros where there is none.

        Raises:
            UsageError: if an id is negative or no integer.
            DamagedVectors: if a row is not finite.
        """
        numbers = check_ids(ids)
        inside = numbers < len(self)  # before the cast, which makes some of uint64 negative
        if len(self.hidden):
            inside = inside & ~np.isin(numbers, self.hidden)
        numbers = np.where(inside, numbers, 0).astype(np.int64)
        rows: Matrix = self.matrix[numbers] if len(self) else np.zeros(0, np.float32)
        if inside.all():
            gathered = np.array(rows)
        else:
            gathered = np.zeros((*numbers.shape, self.width), np.float32)
            gathered[inside] = rows[inside] if len(self) else 0
        require_finite(gathered, numbers, self)
        return gathered

    def prepare(self, ids: ArrayLike) -> None:
        """Do nothing: all rows are there."""

    def nearest(
        self, queries: ArrayLike, k: int = 10, *, among: ArrayLike | None = None, device: str = "cpu"
    ) -> Neighbours:
        """Return the k rows nearest to each query by cosine.

        With the index, if one has been built; else by comparing with every row. A GPU compares 64 queries and
        more with every row; it keeps a copy of the rows while these vectors are open, where they take at most
        half of its free memory.

        Args:
            queries: (Q, D), or (D,) for one, which is answered as (1, k).
            k: number of neighbours.
            among: ids to choose from, which are then compared one by one; None for all.
            device: `cpu`, or torch's name of the GPU that the queries were computed on, as `Encoder.device`.

        Raises:
            UsageError: if the queries have another width or are not finite, or *k* is below 1.
            MissingExtra: if there is an index and faiss is not installed.
            DamagedVectors: if the index cannot be read.
        """
        vectors = np.atleast_2d(np.asarray(queries, np.float32))
        if vectors.ndim != 2 or vectors.shape[1] != self.width:
            raise UsageError(
                f"{self.name} holds vectors of width {self.width}, the query has shape {np.shape(queries)}"
            )
        if k < 1:
            raise UsageError(f"k is {k}; it is at least 1")
        if not np.isfinite(vectors).all():
            raise UsageError("a query holds a number that is not finite")
        if not len(vectors):
            return Neighbours(np.empty((0, k), np.float32), np.empty((0, k), np.int64))
        if among is not None:
            return self._nearest_among(vectors, k, np.asarray(among, np.int64))
        if not len(self.hidden):
            return self._search(vectors, k, device)
        for extra in sorted({min(len(self.hidden), k), len(self.hidden)}):  # most often none of them is near
            neighbours = self._visible(self._search(vectors, k + extra, device), k)
            if (neighbours.ids >= 0).all():
                break
        return neighbours

    def _search(self, queries: Matrix, k: int, device: str) -> Neighbours:
        """Return the k rows nearest to each query, hidden ones too."""
        if device != "cpu" and len(queries) >= _BATCH and (search := self._on_device(device)) is not None:
            return Neighbours(*search.search(queries, k))
        index = self.index
        return Neighbours(*(scan(self.matrix, queries, k) if index is None else index.search(queries, k)))

    def _visible(self, neighbours: Neighbours, k: int) -> Neighbours:
        """Return the first k of each query that are not hidden."""
        scores, ids = neighbours
        hidden = np.isin(ids, self.hidden)
        order = np.argsort(hidden, axis=1, kind="stable")[:, :k]
        scores, ids = np.where(hidden, -np.inf, scores).astype(np.float32), np.where(hidden, -1, ids)
        return Neighbours(np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1))

    def _nearest_among(self, queries: Matrix, k: int, ids: NDArray[np.int64]) -> Neighbours:
        rows = ids[(ids < len(self)) & ~np.isin(ids, self.hidden)][None]
        none = np.full((1, 1), -1, np.int64)
        results = [
            rescore(self.matrix, query[None], rows if query.any() else none, k) for query in unit(queries)
        ]
        return Neighbours(*(np.concatenate(parts) for parts in zip(*results, strict=True)))

    def _on_device(self, device: str) -> "TorchSearch | None":
        """Return the search on a device, opened when it is first asked for; None if the rows do not fit."""
        from kgkit.vectors.torch_search import TorchSearch, fits_device

        with self._locked():
            if device not in self._searches:
                fits = fits_device(self.matrix, device)
                self._searches[device] = TorchSearch(self.matrix, device) if fits else None
            return self._searches[device]

    def _locked(self) -> threading.Lock:
        """Return the lock of what is opened when it is first asked for."""
        if os.getpid() != self._pid:  # another thread of the parent may hold the lock, for ever
            self._lock, self._pid = threading.Lock(), os.getpid()
        return self._lock

    @property
    def index(self) -> "Index | None":
        """The index, opened when it is first asked for; None if none has been built."""
        if self._index is None and (self.folder / INDEX).exists():
            from kgkit.vectors.index import open_index

            with self._locked():
                try:
                    if self._index is None:
                        self._index = open_index(self.folder, self.matrix)
                except DamagedVectors:
                    if (self.folder / MANIFEST).exists():  # else newer vectors have just taken the place
                        raise
        return self._index


def check_ids(ids: ArrayLike) -> NDArray[Any]:
    """Return *ids* as an array.

    Raises:
        UsageError: if one is negative or no integer.
    """
    numbers = np.asarray(ids)
    if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0):
        raise UsageError("entity ids are integers from 0")
    return numbers


def read_manifest(folder: Path) -> VectorsManifest:
    """Return the manifest of the vectors in *folder*, its format and file sizes checked.

    Raises:
        NotThere, DamagedVectors: as `Vectors.open` does.
    """
    path = folder / MANIFEST
    try:
        written = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NotThere(f"no vectors in {folder}: it has no {MANIFEST}") from None
    again = "make the vectors again with `kgkit embed`"
    try:
        head = msgspec.json.decode(written, type=VectorsFormat)
        if head.format != FORMAT:
            raise DamagedVectors(
                f"{folder} has format {head.format}, this kgkit reads vectors of format {FORMAT}: {again}"
            )
        manifest = msgspec.json.decode(written, type=VectorsManifest)
    except msgspec.DecodeError as error:
        raise DamagedVectors(f"{path} cannot be read: {error}; {again}") from error
    for name, problem, size in files_of_other_sizes(folder, manifest.files):
        raise DamagedVectors(f"{folder / name} {problem}, its manifest says {size:,} bytes: {again}")
    return manifest


def _map_file(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        if not path.parent.exists():
            raise StaleVectors(f"{path.parent} was removed: open the vectors by name again") from None
        raise DamagedVectors(
            f"{path} cannot be mapped: {error}; make the vectors again with `kgkit embed`"
        ) from error


def _reopen(folder: str, version: str, hidden: NDArray[np.int64]) -> Vectors:
    try:
        vectors = Vectors.open(Path(folder))
    except NotThere:
        raise StaleVectors(
            f"version {version} is no longer at {folder}: open the vectors by name again"
        ) from None
    if vectors.manifest.version != version:
        current = vectors.manifest.version
        raise StaleVectors(f"{folder} now holds version {current}, the handle was opened on {version}")
    vectors.hidden = hidden
    return vectors
