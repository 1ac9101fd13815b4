"""The index: which rows of a matrix are near, without comparing every one.

    index.json                what it is: an `IndexManifest`
    index-KIND-….faiss        faiss's own file, read through memory mapping
    index-KIND-….npy          (N,) int64, the rows of its N vectors, where zeros lie between them

    R  rows of the matrix    N  of them vectors    D  width    Q  queries    k  rows wanted    C  candidates

Promises, each with a test:

- Scores are cosines computed from the matrix, so those of two kinds are the same numbers.
- Rows of zeros are never found; rows that were added behind those that were indexed are, by comparing them.
- A new index takes the place of the old one by the replacement of `index.json`: one that is killed while it
  is built leaves the old one in use. Whoever builds holds the lock of the vectors (`work.making`).
- Searching is safe from several threads, and in a forked child, which uses one thread.
- With one thread, equal matrices give equal files; several threads race for a graph's links.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from kgkit.errors import DamagedVectors
from kgkit.types import Matrix, Numbers
from kgkit.vectors.kinds import faiss_module, turn
from kgkit.vectors.layout import INDEX, VectorsFormat, files_of_other_sizes
from kgkit.vectors.scan import NearRows, lengths_of, merge, rescore, scan, unit

FORMAT: Final = 1

_SHARE: Final = 16  # who wants more than one vector of so many is answered by comparing all
_SAMPLED: Final = 64  # rows whose digest tells one matrix from another


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """What share of the true neighbours is found.

    Attributes:
        at: number of neighbours of each query.
        target: recall that the settings were chosen for.
        value: recall that they reach, on other queries than they were chosen with.
        queries: number of these queries.
    """

    at: int
    target: float
    value: float
    queries: int


class IndexManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an index says of itself.

    Attributes:
        kind: kind of index, see `kgkit.vectors.kinds`.
        rows: number of rows of the matrix when it was built; what comes behind them is compared one by one.
        vectors: number of the rows that are no zeros.
        width: width of a row.
        sample: digest of some of the rows.
        factory: faiss's description of it; empty for `exact`.
        knob: the parameter of searching, `efSearch` or `nprobe`, and its `setting`.
        proposals: rows that are proposed for each one wanted.
        recall: recall measured when it was built; None where every row is compared as it is.
        seconds: seconds that building and tuning took.
        seed: seed of everything drawn at random.
        file: name of faiss's file, and `row_file` that of the rows; empty if there is none.
        sizes: sizes of these files in bytes.
        faiss: version of faiss.
        created: time when it was built, ISO 8601 in UTC.
    """

    format: int
    kind: str
    rows: int
    vectors: int
    width: int
    sample: str
    factory: str = ""
    knob: str = ""
    setting: int = 0
    proposals: int = 1
    recall: Recall | None = None
    seconds: float = 0.0
    seed: int = 0
    file: str = ""
    row_file: str = ""
    sizes: dict[str, int] = {}
    faiss: str = ""
    created: str = ""


class Index:
    """What finds near rows of a matrix.

    Attributes:
        manifest: manifest of the index.
        matrix: (R, D) float32, as it is now.
        inner: faiss's index, None where every row is compared.

    Examples:
        >>> index = open_index(vectors.folder, vectors.matrix)
        >>> scores, rows = index.search(vectors.gather([10815]), k=3)
    """

    def __init__(
        self, manifest: IndexManifest, matrix: Matrix, inner: Any = None, rows: Numbers | None = None
    ) -> None:
        self.manifest, self.matrix = manifest, matrix
        self.inner, self._rows = inner, rows
        self._lengths: Matrix | None = None

    @property
    def stale_rows(self) -> int:
        """How many rows were added to the matrix since; they are found, but by comparing each."""
        return len(self.matrix) - self.manifest.rows

    def search(self, queries: Matrix, k: int) -> NearRows:
        """Return the rows nearest to each query by cosine.

        Args:
            queries: (Q, D) float32, finite, of any length; one of zeros finds nothing.
            k: number of neighbours, 1 or more.
        """
        vectors = np.ascontiguousarray(queries, np.float32)
        if self.inner is None:
            if self._lengths is None:
                self._lengths = lengths_of(self.matrix)
            return scan(self.matrix, vectors, k, lengths=self._lengths)
        many = k * self.manifest.proposals
        if many * _SHARE > self.manifest.vectors:
            return scan(self.matrix, vectors, k)  # cheaper, and nothing is missed
        sought = unit(vectors)
        rows = np.where(sought.any(axis=1, keepdims=True), self.propose(sought, many), -1)
        result = rescore(self.matrix, sought, rows, k)
        if self.stale_rows:
            result = merge(result, scan(self.matrix, vectors, k, begin=self.manifest.rows))
        return result

    def propose(self, sought: Matrix, many: int) -> Numbers:
        """Return (Q, C) rows that may be among the *many* nearest, -1 where there is none.

        Args:
            sought: (Q, D) of length 1.
            many: largest number of rows.
        """
        positions: Numbers = self.inner.search(sought, min(many, self.manifest.vectors))[1]
        return positions if self._rows is None else np.where(positions < 0, -1, self._rows[positions])


def open_index(folder: Path, matrix: Matrix) -> Index:
    """Open the index in *folder*, which was built over *matrix* or over a prefix of it.

    Raises:
        DamagedVectors: if it cannot be read, or was built over other vectors.
        MissingExtra: if it needs faiss and that is not installed.
    """
    while True:
        manifest = read_index_manifest(folder)
        if manifest.width != matrix.shape[1] or manifest.rows > len(matrix):
            raise _damage(
                folder, f"is over {manifest.rows:,} × {manifest.width}, the matrix is {matrix.shape}"
            )
        if manifest.sample != sample(matrix, manifest.rows):
            raise _damage(folder, "was built over other vectors")
        try:
            _check_sizes(folder, manifest)
            return open_inner(folder, manifest, matrix)
        except DamagedVectors:
            if read_index_manifest(folder) == manifest:  # else another index has just taken its place
                raise


def open_inner(folder: Path, manifest: IndexManifest, matrix: Matrix) -> Index:
    """Open the files that *manifest* names.

    Raises:
        DamagedVectors: if faiss cannot read its file.
        MissingExtra: if it is not installed.
    """
    if not manifest.file:
        return Index(manifest, matrix)
    faiss = faiss_module()
    path = folder / manifest.file
    try:
        inner = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY)
        rows = np.load(folder / manifest.row_file, mmap_mode="r") if manifest.row_file else None
    except (RuntimeError, OSError, ValueError) as error:
        raise _damage(folder, f"cannot be read: {_first_line(error)}") from error
    if (inner.d, inner.ntotal) != (manifest.width, manifest.vectors):
        raise _damage(folder, f"has {inner.ntotal:,} vectors of width {inner.d} in {manifest.file}")
    turn(faiss, inner, manifest.knob, manifest.setting)
    return Index(manifest, matrix, inner, rows)


def read_index_manifest(folder: Path) -> IndexManifest:
    """Return what the index in *folder* says of itself.

    Raises:
        DamagedVectors: if it cannot be read.
    """
    try:
        written = (folder / INDEX).read_bytes()
        head = msgspec.json.decode(written, type=VectorsFormat)
        if head.format != FORMAT:
            raise _damage(folder, f"has format {head.format}, this kgkit reads format {FORMAT}")
        return msgspec.json.decode(written, type=IndexManifest)
    except (OSError, msgspec.DecodeError) as error:
        raise _damage(folder, f"cannot be read: {_first_line(error)}") from error


def index_manifest(folder: Path) -> IndexManifest | None:
    """Return what the index in *folder* says of itself, without faiss; None if there is none.

    Raises:
        DamagedVectors: if it cannot be read.
    """
    return read_index_manifest(folder) if (folder / INDEX).exists() else None


def sample(matrix: Matrix, rows: int) -> str:
    """Return a digest of some of the first *rows* of *matrix*: whether it is the one that was indexed."""
    from hashlib import blake2b

    chosen = np.linspace(0, max(0, rows - 1), min(rows, _SAMPLED)).astype(np.int64)
    return blake2b(np.asarray(matrix)[chosen].tobytes(), digest_size=8).hexdigest()


def _check_sizes(folder: Path, manifest: IndexManifest) -> None:
    for name, problem, size in files_of_other_sizes(folder, manifest.sizes):
        raise _damage(folder, f"is incomplete: {name} {problem} where it had {size:,}")


def _damage(folder: Path, what: str) -> DamagedVectors:
    kb, name = folder.absolute().parent.parent.parent.name, folder.absolute().parent.name
    return DamagedVectors(f"the index in {folder} {what}: build it again with `kgkit index {kb}/{name}`")


def _first_line(error: Exception) -> str:
    """Return the first line of what faiss says, without its `Error in … at file:line:`."""
    return str(error).strip().splitlines()[0].rpartition(": ")[2] if str(error).strip() else repr(error)
