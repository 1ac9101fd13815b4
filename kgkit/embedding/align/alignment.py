"""One space of vectors mapped into another: E-BERT's W (Poerner et al. 2020, section 3.1).

    W = argmin Σ ‖W F(x) − E(x)‖²  over the words x that both spaces know                      (their 3.1)

F are word vectors (Wikipedia2Vec's), E the word-piece input embeddings of an encoder. What W does to words
it then does to entities, which lie in the space of F: W F(entity) can stand where a word piece stands.

    S   numbers of a source row
    T   numbers of a target row

The map lies beside the vectors it maps, in `align-TARGET/`: `map.safetensors` with `weight` (T, S), and
`align.json`. A target whose name cannot name a folder has a digest of it behind what can.

Departures:
    By default words meet in lower case where the encoder has lower case only (`fold`), and directions in
    which the rows F(x) are smaller than float32 resolves beside the largest are left out of the fit: W maps
    them to zero. `ridge` and `rescale` are ours, and so are the words of vectors that keep none: see
    `kgkit.embedding.align.texts`.
"""

import hashlib
import re
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from kgkit.embedding.align.anchors import Anchors, read_pairs, shared_keys, shared_words
from kgkit.embedding.align.fitting import (
    AlignConfig,
    Report,
    check,
    fit_map,
    map_rows,
    norms_of,
    spread_evenly,
    without_zeros,
)
from kgkit.embedding.wikipedia2vec import read_words
from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.errors import DamagedVectors, MissingExtra, NotThere, SourceError, StaleVectors, UsageError
from kgkit.home import KBHome
from kgkit.types import Matrix, Progress
from kgkit.vectors import Vectors
from kgkit.vectors.work import making
from kgkit.versions import set_usual_modes, write_failures

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

MAP: Final = "map.safetensors"
ABOUT: Final = "align.json"

_MOST_LABELS: Final = 200_000  # entities whose labels are looked at
_BATCH: Final = 4_096  # entities that are read at once

Find = Callable[[str], int | None]


class HasWordPieces(Protocol):
    """The part of an encoder that a map is fitted to."""

    @property
    def name(self) -> str:
        """The name of the encoder, as messages have it."""

    def word_pieces(self) -> tuple[list[str], Matrix]:
        """Return the word pieces of its vocabulary and their input vectors, (V, H) float32."""


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """`align.json`."""

    source: str
    target: str
    fingerprint: str
    report: Report
    config: dict[str, Any] = {}
    norm: Annotated[float, msgspec.Meta(gt=0, le=1e6)] | None = None
    format: int = 1


class Alignment:
    """A linear map from one space to another.

    Attributes:
        weight: (T, S) float32, W.
        source: the vectors it maps, `KB/NAME`.
        target: the encoder, or the vectors, whose space it maps into.
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

    def save(self, vectors: Vectors, config: Mapping[str, Any] | None = None) -> Path:
        """Write the map beside *vectors*, in the place of an older one to the same target.

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
                self._write(folder, config)
        return folder

    def _write(self, folder: Path, config: Mapping[str, Any] | None) -> None:
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
                config=dict(config or {}),
                norm=self.norm,
            )
            (staged / ABOUT).write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=2))
            set_usual_modes(staged)
            _put(staged, folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    @classmethod
    def load(cls, vectors: Vectors, target: "HasWordPieces | Vectors") -> "Alignment":
        """Return the map of *vectors* into the space of *target*.

        Raises:
            NotThere: if none has been fitted.
            UsageError: if it was fitted to an encoder, or vectors, of that name with other content.
            DamagedVectors: if it cannot be read.
            MissingExtra: if safetensors is not installed.
        """
        again = f"`kgkit align {vectors.name} {_option(target)}` fits one"
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


def align_words(
    vectors: Vectors,
    encoder: HasWordPieces,
    config: AlignConfig | None = None,
    *,
    pairs: Path | None = None,
    kb: "KnowledgeBase | None" = None,
    progress: Progress | None = None,
) -> Alignment:
    """Map *vectors* into the word-piece space of *encoder* by words, and save the map beside them.

    Args:
        vectors: vectors with words, as Wikipedia2Vec's are.
        encoder: encoder whose input embeddings are the space.
        config: settings.
        pairs: a file of anchors, word and piece, instead of the words that both share.
        kb: knowledge base of the vectors, whose labels the map is checked on.
        progress: callback with the number of steps that are done, of how many.

    Raises:
        NotThere: if the vectors keep no words.
        UsageError: if they share no words.
        SourceError: if the file of pairs is none.
    """
    config = config or AlignConfig()
    words, rows = read_words(vectors)
    pieces, target = encoder.word_pieces()
    if pairs is None:
        anchors = shared_words(words, pieces, config.fold)
    else:
        row_of = {word: row for row, word in reversed([*enumerate(words)])}
        anchors = read_pairs(pairs, row_of.get, vocabulary_words(pieces).get)
    labelled = None if kb is None else labelled_entities(kb, vectors, pieces, config)
    return fit_alignment(vectors, rows, encoder, target, anchors, config, progress, labelled=labelled)


def align_entities(
    source: Vectors,
    target: Vectors,
    config: AlignConfig | None = None,
    *,
    pairs: tuple[Path, Find, Find] | None = None,
    progress: Progress | None = None,
) -> Alignment:
    """Map the space of *source* into that of *target* by entities of one key, and save the map beside it.

    Args:
        source, target: vectors, of one KB or of two.
        config: settings.
        pairs: a file of anchors instead, with what gives the row of a name in each, such as
            `kb.store.id_of`. A name whose row is behind the end of a matrix is unknown to it.
        progress: callback with the number of steps that are done, of how many.

    Raises:
        UsageError: if they share no entity that has a vector in both.
        SourceError: if the file of pairs is none.
    """
    if pairs is None:
        anchors = shared_keys(source.keys, target.keys)
    else:
        path, source_kb, target_kb = pairs
        anchors = read_pairs(
            path, _within(source_kb, len(source.matrix)), _within(target_kb, len(target.matrix))
        )
    config = config or AlignConfig()
    return fit_alignment(source, source.matrix, target, target.matrix, anchors, config, progress)


def fingerprint_of(target: HasWordPieces | Vectors) -> str:
    """Return a digest of all that a map into a space depends on."""
    if isinstance(target, Vectors):
        return target.manifest.version
    pieces, rows = target.word_pieces()
    digest = hashlib.blake2b("\n".join(pieces).encode("utf-8", "surrogatepass"), digest_size=8)
    digest.update(np.ascontiguousarray(rows, "<f4").tobytes())
    return digest.hexdigest()


def fit_alignment(
    vectors: Vectors,
    rows: Matrix,
    target: HasWordPieces | Vectors,
    target_rows: Matrix,
    anchors: Anchors,
    config: AlignConfig,
    progress: Progress | None = None,
    *,
    labelled: Anchors | None = None,
) -> Alignment:
    """Fit the map of *vectors* on pairs of rows, measure the entities that it maps, and save it beside them.

    Args:
        vectors: vectors of entities.
        rows: (·, S), rows in the space of *vectors*, which need not be entities.
        target: encoder, or vectors, whose space it is that *target_rows* (V, T) are of.
        target_rows: rows that *anchors* pair with *rows*.
        anchors: pairs of rows.
        config: settings.
        progress: callback with the number of steps that are done, of how many.
        labelled: entities and the target rows of their labels, see `labelled_entities`.

    Raises:
        UsageError: if there is no anchor.
    """
    weight, report = fit_map(rows, target_rows, anchors, config, progress)
    norm = report.target.mean if config.rescale and report.target is not None else None
    chosen = spread_evenly(len(vectors.matrix), config.most_checked)
    entities, labels = norms_of(vectors.matrix, chosen, weight, norm), None
    if labelled is not None:
        labelled = without_zeros(vectors.matrix, target_rows, labelled)
    if labelled is not None and len(labelled.source):
        labels = check(weight, vectors.matrix, target_rows, labelled, config, norm)
    report = msgspec.structs.replace(report, entities=entities, labels=labels)
    alignment = Alignment(
        weight,
        source=vectors.name,
        target=target.name,
        fingerprint=fingerprint_of(target),
        report=report,
        norm=norm,
    )
    alignment.save(vectors, msgspec.to_builtins(config))
    return alignment


def labelled_entities(
    kb: "KnowledgeBase", vectors: Vectors, pieces: Sequence[str], config: AlignConfig
) -> Anchors:
    """Return entities of *kb* whose label is a word among *pieces*, of several the first, and its row.

    Of a large knowledge base 200,000 entities are looked at, spread evenly.
    """
    chosen = spread_evenly(len(vectors.matrix), _MOST_LABELS)
    labels = [
        entity.label
        for begin in range(0, len(chosen), _BATCH)
        for entity in kb.store.entities(chosen[begin : begin + _BATCH].tolist())
    ]
    anchors = shared_words(labels, pieces, config.fold)
    return Anchors(chosen[anchors.source], anchors.target)


def _within(find: Find, rows: int) -> Find:
    """Return *find* for a matrix of so many *rows*, which may end before the entities do."""

    def row_in(name: str) -> int | None:
        row = find(name)
        return row if row is not None and row < rows else None

    return row_in


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


def _option(target: HasWordPieces | Vectors) -> str:
    return f"--to {target.name}" if isinstance(target, Vectors) else f"--encoder {target.name}"
