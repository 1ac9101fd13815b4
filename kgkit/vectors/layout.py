"""What vectors look like on disk.

    kbs/KB/vectors/NAME/
      VERSION/             named by its content
        vectors.json       the manifest: method, settings, BUILD, sizes, checksums
        matrix.npy         (R, D) float32, C order: row i belongs to entity i of the BUILD
        keys.npy           (R,) uint64: `key_digest` of the key of entity i
        index.json, index-….faiss        what finds near rows, if it has been built
        …                  what the method keeps beside: rest.safetensors, words.npy, …
      current              symbolic link to the version that KB/NAME stands for
    cache/vectors/KB/NAME-SETTINGS/      what a job that was stopped has done

A row of zeros says that its entity has no vector, and so does a row that is not there: a matrix may end
before the entities do. Where entities are added, the matrix of the base is a prefix of the new one; in a
build made anew `keys.npy` tells which row is whose.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgkit.errors import DamagedVectors, UsageError
from kgkit.home import KBHome, is_name
from kgkit.types import Matrix

FORMAT: Final = 1

MANIFEST: Final = "vectors.json"
MATRIX: Final = "matrix.npy"
KEYS: Final = "keys.npy"
INDEX: Final = "index.json"

Digests = NDArray[np.uint64]


class VectorsManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What vectors say of themselves.

    Attributes:
        kb: the KB's name, `build` the BUILD whose ids are the rows.
        name: name after the KB's: `text` in `wordnet/text`.
        version: a digest of everything that is not merely how, when and where.
        method: `text`, `tucker`, `wikipedia2vec`, `concat`, …
        rows: rows of the matrix; `covered` of them are a vector, the others zeros.
        width: width of a row.
        config: settings that decided the numbers.
        results: figures measured when they were made: losses, ranks, seconds.
        versions: versions of the packages that made them.
        files: size of each file in bytes, but for the manifest's own and the index's.
        sha256: digest of each of these files.
    """

    format: int
    kb: str
    build: str
    name: str
    version: str
    method: str
    rows: int
    covered: int
    width: int
    dtype: str = "float32"
    config: dict[str, Any] = {}
    results: dict[str, Any] = {}
    versions: dict[str, str] = {}
    kgkit_version: str = ""
    created: str = ""
    files: dict[str, int] = {}
    sha256: dict[str, str] = {}


class VectorsFormat(msgspec.Struct):
    """The one part of a manifest that any version of kgkit can read."""

    format: int = -1


class Owner(Protocol):
    """The part of a `KnowledgeBase` that vectors are made for."""

    name: str

    @property
    def build(self) -> str:
        """The name of the build whose ids number the rows."""

    @property
    def home(self) -> KBHome:
        """The folder of the KB."""

    @property
    def id_count(self) -> int:
        """Number of ids that were dealt out: the most rows there can be."""

    def id_keys(self) -> Iterable[str | None]:
        """Return the key of the entity of every id, in their order; None for a retired one."""


class VectorRows(Protocol):
    """The part of `Vectors` that scorers of candidates use: rows by entity id."""

    manifest: VectorsManifest

    @property
    def name(self) -> str:
        """`KB/NAME`."""

    @property
    def width(self) -> int:
        """Numbers in a row."""

    def gather(self, ids: ArrayLike) -> Matrix:
        """Return the rows of *ids*, of any shape (…): (…, D) float32, zeros where there is none."""

    def prepare(self, ids: ArrayLike) -> None:
        """Make the rows of *ids* that are made as they are needed."""


def require_finite(rows: Matrix, ids: ArrayLike, vectors: "DescribedVectors") -> None:
    """Make sure that vectors are finite: what computes with NaN answers, or looks damaged itself.

    A sum of squares is not finite where one of the numbers is not, and costs a fraction of a test of each.

    Args:
        rows: (…, D) vectors.
        ids: (…) their entities.
        vectors: where the rows are from, which an error names.

    Raises:
        DamagedVectors: if one is not.
    """
    if math.isfinite(np.vdot(rows, rows)):
        return
    finite = np.isfinite(rows).all(axis=-1)
    if finite.all():  # large numbers, whose sum overflows
        return
    wrong = int(np.asarray(ids)[~finite].flat[0])
    raise DamagedVectors(
        f"the vectors {vectors.name} have numbers that are not finite for the entity of id {wrong} "
        f"(`kb.key({wrong})` names it): make the vectors again with `kgkit embed`"
    )


def key_digest(key: str) -> int:
    """Return 64 bits of a key's BLAKE2b; two of ten million keys have the same with probability 3e-6."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def key_digests(keys: Iterable[str | None], rows: int) -> Digests:
    """Return (rows,) uint64, the digests of the first *rows* of *keys*; 0 for None, a retired entity."""
    numbers = (0 if key is None else key_digest(key) for _, key in zip(range(rows), keys, strict=False))
    return np.fromiter(numbers, np.uint64, rows)


def version_name(manifest: VectorsManifest) -> str:
    """Return the VERSION that *manifest* describes: a digest of its content."""
    content = msgspec.to_builtins(
        msgspec.structs.replace(
            manifest, version="", kgkit_version="", created="", results={}, versions={}, files={}
        )
    )
    # What the method notes beside (a curve with times, say) may differ between equal runs.
    content["sha256"] = {name: content["sha256"][name] for name in (MATRIX, KEYS)}
    return blake2b(msgspec.json.encode(content, order="sorted"), digest_size=6).hexdigest()


def vectors_folder(kb: KBHome, name: str) -> Path:
    """Return the folder of the vectors KB/*name*, which need not exist.

    Raises:
        UsageError: if *name* cannot be a folder name everywhere.
    """
    return kb.vectors / checked_name(name)


def checked_name(name: str) -> str:
    """Return *name*.

    Raises:
        UsageError: if it cannot name vectors.
    """
    if not is_name(name):
        raise UsageError(
            f"{name!r} cannot name vectors: use letters, digits, '.', '_' and '-', 64 at most, starting with "
            "a letter or digit"
        )
    return name


def files_of_other_sizes(folder: Path, sizes: Mapping[str, int]) -> Iterator[tuple[str, str, int]]:
    """Yield the files of *folder* that have not the size they had: name, what is wrong, and that size.

    Reading beyond the end of a mapped file would end the process.
    """
    for name, size in sizes.items():
        try:
            actual = (folder / name).stat().st_size
        except OSError:
            yield name, "is not there", size
        else:
            if actual != size:
                yield name, f"has {actual:,} bytes", size


class DescribedVectors:
    """What vectors with a manifest say of themselves.

    Attributes:
        manifest: record of how they were made.
    """

    manifest: VectorsManifest

    @property
    def name(self) -> str:
        """`KB/NAME`."""
        return f"{self.manifest.kb}/{self.manifest.name}"

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return self.manifest.width
