"""Vectors of entities' texts that are encoded when they are first needed, and kept.

A linker needs the vectors of the candidates at hand, a few thousand of a KB's entities. `PartialTextVectors`
has the part of `Vectors` that scorers use; rows that are not there are encoded when they are gathered, and
appended to a file that other processes read (`kgkit.vectors.partial`). The numbers are those that
`embed_text` makes with the same settings, and it takes such rows over.

    N  ids    D  width
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from kgkit.embedding.entity_text import Template, text_digest
from kgkit.embedding.text import METHOD, SETTINGS, TextConfig, check_kinds, encoder_of, settings_of
from kgkit.encoder import Encoder
from kgkit.encoder.finding import INSTALL
from kgkit.errors import NotThere
from kgkit.files import written
from kgkit.kb import KnowledgeBase
from kgkit.types import Entity, Matrix, Progress
from kgkit.vectors import Vectors
from kgkit.vectors.layout import FORMAT, DescribedVectors, VectorsManifest, require_finite
from kgkit.vectors.matrix import check_ids
from kgkit.vectors.partial import KINDS, partial_folders, partial_path
from kgkit.vectors.partial import SETTINGS as SETTINGS_FILE
from kgkit.vectors.row_file import RowFile

log = logging.getLogger(__name__)

_CHUNK: Final = 1_024  # texts after which rows are appended: what a process that is killed loses
_MAX_DIGESTS: Final = 1_000_000  # of entities that are remembered, some 100 MB


class PartialTextVectors(DescribedVectors):
    """The vectors of entities' texts, encoded when they are first gathered.

    May be used by one thread at a time, as its encoder, and by any number of processes at once: what one has
    encoded the others read. Where the disk refuses rows they are kept in memory, and a warning says so.

    Args:
        kb: knowledge base of the entities.
        config: settings of the texts, as those of `embed_text`.
        encoder: encoder of the texts.

    Raises:
        UnknownName: if there is no such kind of entity.

    Attributes:
        encoder: encoder of the texts.
        manifest: description of the vectors, with as many rows as there are entities.
        progress: callback that is told how many texts have been encoded, of how many that were lacking.

    Examples:
        >>> vectors = PartialTextVectors.open(kgkit.open_kb("wordnet"))
        >>> vectors.gather([10815, 10816]).shape
        (2, 384)
    """

    def __init__(self, kb: KnowledgeBase, config: TextConfig, encoder: Encoder) -> None:
        check_kinds(kb, config)
        self.kb, self.encoder, self._config = kb, encoder, config
        settings = settings_of(config, encoder)
        self.manifest = VectorsManifest(
            format=FORMAT, kb=kb.name, build=kb.build, name=config.name, version="", method=METHOD,
            rows=kb.id_count, covered=0, width=encoder.width, config=settings,
        )  # fmt: skip
        self.folder = partial_path(kb.home, config.name, settings)
        self._template = Template(config.template)
        self._digests: dict[int, int] = {}
        self._in_memory: dict[int, Matrix] = {}
        self._writable = True
        self.progress: Progress | None = None
        self._rows = self._open_rows({**settings, "width": encoder.width})

    @classmethod
    def open(
        cls, kb: KnowledgeBase, config: TextConfig | None = None, *, device: str = "auto"
    ) -> "PartialTextVectors":
        """Open the vectors with the encoder of *config*, which is never downloaded.

        Raises:
            NotThere: if the encoder is not on this machine; says the command that installs it.
            MissingExtra: if a package is not installed that reads it.
            UsageError, SourceError: as `Encoder.load` does.
        """
        config = config or TextConfig()
        try:
            encoder = Encoder.load(config.encoder, device=device, dtype=config.dtype, offline=True)
        except NotThere:
            if config.encoder != TextConfig().encoder:
                raise
            raise NotThere(missing_encoder(config.encoder)) from None
        return cls(kb, config, encoder)

    def __repr__(self) -> str:
        return f"<PartialTextVectors {self.name}: {len(self._rows or ()):,} texts × {self.width}>"

    def gather(self, ids: ArrayLike) -> Matrix:
        """Return the rows of *ids*, of any shape (…): (…, D) float32, zeros where an entity has no text.

        Raises:
            UsageError: if an id is negative or no integer.
            DamagedVectors: if a row is not finite.
        """
        numbers = check_ids(ids)
        digests = self._encoded(numbers.ravel().tolist())
        matrix = np.zeros((len(digests), self.width), np.float32)
        matrix[digests != 0] = self._stored(digests[digests != 0])
        require_finite(matrix, numbers.ravel(), self)
        return matrix.reshape(*numbers.shape, self.width)

    def prepare(self, ids: ArrayLike) -> None:
        """Encode the texts of *ids* that have no row yet: many at once are encoded faster than a few."""
        self._encoded(np.unique(check_ids(ids)).tolist())

    # -- rows -----------------------------------------------------------------

    def _encoded(self, ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return (N,) the digests of the entities' texts, 0 where there is none; encode what has no row."""
        new = [number for number in ids if number not in self._digests]
        if new:
            if len(self._digests) + len(new) > _MAX_DIGESTS:
                self._digests.clear()
                new = list(ids)
            texts = dict(self._read(new))
            lacking = {digest: text for digest, text in texts.items() if not self._has(digest)}
            if lacking and self._rows is not None:
                self._rows.refresh()
                lacking = {digest: text for digest, text in lacking.items() if not self._has(digest)}
            if lacking:
                self._encode(lacking)
        return np.fromiter((self._digests[number] for number in ids), np.uint64, len(ids))

    def _read(self, ids: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield digest and text of the entities that have a text, and remember the digests of all."""
        inside = [number for number in dict.fromkeys(ids) if number in self.kb]
        self._digests.update(dict.fromkeys(ids, 0))
        for number, entity in zip(inside, self.kb.store.entities(inside), strict=True):
            text = self._template(entity) if self._has_text(entity) else ""
            if text:
                digest = self._digests[number] = text_digest(text)
                yield digest, text

    def _encode(self, texts: dict[int, str]) -> None:
        """Encode texts, by their digests, and keep the rows."""
        digests, count = np.fromiter(texts, np.uint64, len(texts)), 0
        tell = self.progress or (lambda *_: None)
        tell("encoding texts", 0, len(texts))
        for rows, _ in self.encoder.encode_chunks(
            texts.values(), normalize=self._config.normalize, batch_tokens=self._config.batch_tokens,
            chunk=_CHUNK,
        ):  # fmt: skip
            self._keep(digests[count : count + len(rows)], rows)
            count += len(rows)
            tell("encoding texts", count, len(texts))

    def _keep(self, digests: "np.ndarray[Any, np.dtype[np.uint64]]", rows: Matrix) -> None:
        if self._rows is not None and self._writable:
            try:
                self._rows.append(digests, rows)
                return
            except OSError as error:
                self._writable = False
                log.warning("%s keeps further vectors in memory only: %s", self.name, error)
        self._in_memory.update(zip(digests.tolist(), rows, strict=True))

    def _has(self, digest: int) -> bool:
        return digest in self._in_memory or (self._rows is not None and digest in self._rows)

    def _stored(self, digests: "np.ndarray[Any, np.dtype[np.uint64]]") -> Matrix:
        """Return (N, D) the rows of texts."""
        if not self._in_memory and self._rows is not None:
            return self._rows.gather(digests)
        rows = np.empty((len(digests), self.width), np.float32)
        for index, digest in enumerate(digests.tolist()):
            in_memory = self._in_memory.get(digest)
            rows[index] = self._row(digest) if in_memory is None else in_memory
        return rows

    def _row(self, digest: int) -> Matrix:
        assert self._rows is not None
        row: Matrix = self._rows.gather(np.array([digest], np.uint64))[0]
        return row

    def _open_rows(self, settings: dict[str, Any]) -> RowFile | None:
        try:
            rows = RowFile(self.folder, self.width)
            path = self.folder / SETTINGS_FILE
            if not path.exists():
                with written(path) as stream:
                    stream.write(msgspec.json.encode(settings, order="sorted"))
            return rows
        except OSError as error:
            log.warning("%s keeps its vectors in memory only: %s", self.name, error)
            return None

    # -- which entities have a text ---------------------------------------------

    def _has_text(self, entity: Entity) -> bool:
        """Say whether `embed_text` encodes an entity: it is of a kind that has descriptions, or was named."""
        if self._config.kinds:
            return entity.kind in self._config.kinds
        if entity.description or entity.kind in self._described_kinds:
            return True
        return not self._described_kinds and bool(entity.label)

    @cached_property
    def _described_kinds(self) -> frozenset[str]:
        """The kinds of entities of which one has a description; all are read where a kind has none."""
        path = self.folder / KINDS
        by_build: dict[str, list[str]] = {}
        with suppress(OSError, msgspec.DecodeError):
            by_build = msgspec.json.decode(path.read_bytes(), type=dict[str, list[str]])
        if self.kb.build not in by_build:
            described: set[str] = set()
            for entity in self.kb:
                if entity.description:
                    described.add(entity.kind)
                    if len(described) == len(self.kb.manifest.counts.entities):
                        break
            by_build[self.kb.build] = sorted(described)
            with suppress(OSError), written(path) as stream:
                stream.write(msgspec.json.encode(by_build))
        return frozenset(by_build[self.kb.build])


def encoder_for(vectors: Vectors | PartialTextVectors, *, device: str = "auto") -> Encoder:
    """Return the encoder that makes *vectors*, loaded unless they have it; raises as `encoder_of` does."""
    return vectors.encoder if isinstance(vectors, PartialTextVectors) else encoder_of(vectors, device=device)


def partial_config(kb: KnowledgeBase, name: str, *, device: str = "auto") -> TextConfig | None:
    """Return the settings of the partial vectors KB/*name* that have the most rows; None if there are none.

    Args:
        kb: knowledge base of the vectors.
        name: name of the vectors.
        device: torch device on which the others are to be encoded; `auto`: the kind that made them.
    """
    for folder in partial_folders(kb.home, name):
        about = folder.settings
        settings = {key: about[key] for key in SETTINGS if key in about}
        chosen = about.get("device", "auto") if device == "auto" else device
        return TextConfig(name=name, device=chosen, kinds=tuple(about.get("kinds", ())), **settings)
    return None


def missing_encoder(name: str) -> str:
    """Return the sentence that says how to install the encoder that is used unless another is named."""
    return f"the encoder {name}, which reads texts, is not installed: `{INSTALL}` installs it"
