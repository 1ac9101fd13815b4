"""One space of vectors mapped into another: E-BERT's W (Poerner et al. 2020, section 3.1).

    W = argmin Σ ‖W F(x) − E(x)‖²  over the words x that both spaces know                      (their 3.1)

F are word vectors (Wikipedia2Vec's), E the word-piece input embeddings of an encoder. What W does to words
it then does to entities, which lie in the space of F: W F(entity) can stand where a word piece stands.

    S   numbers of a source row
    T   numbers of a target row

The map lies beside the vectors it maps, in `align-TARGET/`: `map.safetensors` with `weight` (T, S), and
`align.json`. A target whose name cannot name a folder has a digest of it behind what can.

Departures:
    Words meet in lower case where the encoder has lower case only, and directions in which the rows F(x) are
    smaller than float32 resolves beside the largest are left out of the fit: W maps them to zero. Ours are
    `rescale`, and the words of vectors that keep none: see `kgkit.embedding.align.texts`.
"""

import hashlib
import re
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from kgkit.embedding.align.anchors import Anchors
from kgkit.embedding.align.fitting import (
    Report,
    check,
    fit_map,
    map_rows,
    norms_of,
    spread_evenly,
    without_zeros,
)
from kgkit.errors import DamagedVectors, MissingExtra, NotThere, SourceError, StaleVectors, UsageError
from kgkit.home import KBHome
from kgkit.types import Matrix, Progress
from kgkit.vectors import Vectors
from kgkit.vectors.work import making
from kgkit.versions import set_usual_modes, write_failures

if TYPE_CHECKING:
    from kgkit.encoder import Encoder

MAP: Final = "map.safetensors"
ABOUT: Final = "align.json"

_MOST_ENTITIES: Final = 10_000  # whose norms are measured


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """`align.json`."""

    source: str
    target: str
    fingerprint: str
    report: Report
    norm: Annotated[float, msgspec.Meta(gt=0, le=1e6)] | None = None
    format: int = 1


class Alignment:
    """A linear map from one space to another.

    Attributes:
        weight: (T, S) float32, W.
        source: the vectors it maps, `KB/NAME`.
        target: the encoder whose space it maps into.
        fingerprint: fingerprint of the target, see `fingerprint_of`.
        report: figures that were measured.
        norm: norm that all rows get when they are mapped; None: that of W v.
    """

    def __init__(
        self,
        weight: Matrix,
        *,
        source: str,
        target: str,
        fingerprint: str,
        report: Report,
        norm: float | None = None,
    ) -> None:
        self.weight, self.source, self.target = weight, source, target
        self.fingerprint, self.report, self.norm = fingerprint, report, norm

    def apply(self, rows: ArrayLike) -> Matrix:
        """Return W v for each v in *rows*, (…, S) -> (…, T) float32; zeros, no vector, stay zeros.

        A map that was fitted with `rescale` gives all other rows one norm.
        """
        vectors = np.asarray(rows, np.float32)
        if vectors.shape[-1:] != self.weight.shape[1:]:
            raise UsageError(
                f"the map of {self.source} takes rows of width {self.weight.shape[1]}, not {vectors.shape}"
            )
        return map_rows(self.weight, vectors, self.norm)

    def save(self, vectors: Vectors) -> Path:
        """Write the map beside *vectors*, in the place of an older one to the same encoder.

        Raises:
            MissingExtra: if safetensors is not installed.
            KBBusy: if the vectors are being made anew.
            StaleVectors: if others have taken their place.
            WriteFailed: if the disk refuses; an older map is as it was.
        """
        try:
            import safetensors  # noqa: F401 - told before anything is locked
        except ImportError:
            raise MissingExtra("safetensors", "embed") from None
        folder = _folder(vectors, self.target)
        kb = KBHome(vectors.manifest.kb, vectors.folder.absolute().parents[2])
        with making(kb, vectors.manifest.name):
            if not vectors.folder.is_dir():
                raise StaleVectors(f"{vectors.name} has been made anew meanwhile: align it again")
            with write_failures(folder):
                self._write(folder)
        return folder

    def _write(self, folder: Path) -> None:
        from safetensors.numpy import save_file

        staged = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
        staged.mkdir()
        try:
            save_file({"weight": np.ascontiguousarray(self.weight, np.float32)}, staged / MAP)
            about = _About(
                source=self.source,
                target=self.target,
                fingerprint=self.fingerprint,
                report=self.report,
                norm=self.norm,
            )
            (staged / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2))
            set_usual_modes(staged)
            _put(staged, folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    @classmethod
    def load(cls, vectors: Vectors, target: "Encoder") -> "Alignment":
        """Return the map of *vectors* into the space of *target*'s word pieces.

        Raises:
            NotThere: if none has been fitted.
            UsageError: if it was fitted to an encoder of that name with other content.
            DamagedVectors: if it cannot be read.
            MissingExtra: if safetensors is not installed.
        """
        again = f"`kgkit align {vectors.name} --encoder {target.name}` fits one"
        folder = _folder(vectors, target.name)
        if not (folder / ABOUT).is_file():
            raise NotThere(f"the vectors {vectors.name} have no map to {target.name}: {again}")
        try:
            about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=_About)
            weight = _read_weight(folder / MAP, vectors.width)
        except (OSError, UnicodeDecodeError, RecursionError, msgspec.MsgspecError, SourceError) as error:
            raise DamagedVectors(f"the map in {folder} cannot be read: {error}; {again}") from error
        fingerprint = fingerprint_of(target)
        if about.fingerprint != fingerprint:
            raise UsageError(
                f"the map of {vectors.name} was fitted to another {about.target} (fingerprint "
                f"{about.fingerprint}, this one has {fingerprint}): {again}"
            )
        return cls(
            weight,
            source=about.source,
            target=about.target,
            fingerprint=about.fingerprint,
            report=about.report,
            norm=about.norm,
        )


def _read_weight(path: Path, width: int) -> Matrix:
    """Return W in a file, (T, S) with S = *width*.

    Raises:
        MissingExtra: if safetensors is not installed.
        SourceError: if the file has no such matrix of finite numbers.
    """
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingExtra("safetensors", "embed") from None
    if not path.is_file():  # a pipe would be waited for
        raise SourceError("there is no such file", path=path)
    try:
        with safe_open(path, "np") as file:
            stored = file.get_slice("weight")
            kind, shape = stored.get_dtype(), stored.get_shape()
            if kind != "F32" or len(shape) != 2 or shape[1] != width:
                raise SourceError(
                    f"the weight is {kind} {shape}; expected F32 with rows of {width} numbers", path=path
                )
            weight: Matrix = file.get_tensor("weight")
    except SafetensorError as error:
        raise SourceError(str(error), path=path) from error
    if not np.isfinite(weight).all():
        raise SourceError("the weight has numbers that are not finite", path=path)
    return weight


def fingerprint_of(target: "Encoder") -> str:
    """Return a digest of all that a map into the space of word pieces depends on."""
    pieces, rows = target.word_pieces()
    digest = hashlib.blake2b("\n".join(pieces).encode("utf-8", "surrogatepass"), digest_size=8)
    digest.update(np.ascontiguousarray(rows, "<f4").tobytes())
    return digest.hexdigest()


def fit_alignment(
    vectors: Vectors,
    rows: Matrix,
    encoder: "Encoder",
    anchors: Anchors,
    *,
    rescale: bool = False,
    labelled: Anchors | None = None,
    progress: Progress | None = None,
) -> Alignment:
    """Fit the map of *vectors* on pairs of rows, measure the entities that it maps, and save it beside them.

    Args:
        vectors: vectors of entities.
        rows: (·, S), rows in the space of *vectors*, which need not be entities.
        encoder: encoder whose word pieces *anchors* pair with *rows*.
        anchors: pairs of rows.
        rescale: whether all that is mapped gets the mean norm of the anchors' word pieces.
        labelled: entities and the word pieces of their labels.
        progress: callback with the number of steps that are done, of how many.

    Raises:
        UsageError: if there is no anchor.
    """
    _, target = encoder.word_pieces()
    weight, report = fit_map(rows, target, anchors, rescale=rescale, progress=progress)
    norm = report.target.mean if rescale and report.target is not None else None
    chosen = spread_evenly(len(vectors.matrix), _MOST_ENTITIES)
    entities, labels = norms_of(vectors.matrix, chosen, weight, norm), None
    if labelled is not None:
        labelled = without_zeros(vectors.matrix, target, labelled)
    if labelled is not None and len(labelled.source):
        labels = check(weight, vectors.matrix, target, labelled, norm)
    alignment = Alignment(
        weight,
        source=vectors.name,
        target=encoder.name,
        fingerprint=fingerprint_of(encoder),
        report=msgspec.structs.replace(report, entities=entities, labels=labels),
        norm=norm,
    )
    alignment.save(vectors)
    return alignment


def _folder(vectors: Vectors, target: str) -> Path:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", target).strip("-")
    if plain != target:  # another target may be as plain
        digest = hashlib.blake2b(target.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        plain = f"{plain}-{digest}".strip("-")
    return vectors.folder / f"align-{plain}"


def _put(staged: Path, folder: Path) -> None:
    """Put *staged* in the place of *folder*, which is moved away whole: readers never meet a part of it."""
    old = staged.with_name(f"{staged.name}-old")
    if folder.exists():
        folder.rename(old)
    staged.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
