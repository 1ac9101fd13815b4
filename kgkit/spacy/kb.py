"""A knowledge base from the disk for spaCy's trainable `entity_linker`.

    [components.entity_linker.generate_empty_kb]
    @misc = "kgkit.KnowledgeBase.v1"
    kb = "aida"
    vectors = "text"

spaCy finds the function by the entry point of the group `spacy_misc`. Candidates, priors and vectors are
read from the store where spaCy asks for them, so that a pipeline in memory, or on disk, has no copy of them:
`to_disk` writes the names of the build and of the vectors.

Strings of candidates do not enter the `StringStore` of the vocabulary, only those of the entities that
documents are linked to. The hash of an entity is spaCy's hash of its key.

An entity without a vector has a row of zeros, whose cosine with anything is NaN, which `argmax` takes for
the best. thinc's `CosineDistance` adds 1e-8 to each number of the two vectors that it compares; in a
training, an entity without a vector is therefore one in the direction of ones. `get_vector` gives zeros, as
spaCy's own knowledge base does, and losses are the same; a candidate has the numbers that the loss has
computed with, and its cosine is a number. The sum for entities that have vectors is as it was.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kgkit.errors import MissingExtra, UsageError
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.spacy.record import PipelineRecord, decode_record, find_requirements, read_record
from kgkit.types import Candidates
from kgkit.vectors import Vectors

try:
    import spacy.kb
    from spacy.strings import get_string_id
except ImportError as missing:
    raise MissingExtra("spacy", "spacy") from missing

_TINY: Final = 1e-8  # what thinc's CosineDistance adds to each number
_OWNER: Final = "the knowledge base of spaCy's entity_linker"


class StoredCandidate(spacy.kb.Candidate):  # type: ignore[misc]  # spaCy's types are not read
    """Candidate of a mention, for spaCy's `entity_linker`, with numbers of the store.

    Args:
        kb: knowledge base that it is from.
        key: key of the entity.
        surface: text of the mention.
        prior: p(entity | surface).
        vector: (D,) float64, vector of the entity.
    """

    def __init__(
        self, kb: "StoredKB", key: str, surface: str, prior: float, vector: NDArray[np.float64]
    ) -> None:
        # spaCy's own constructor copies the vector number by number, and is not called.
        self._kb, self._key, self._surface, self._prior, self._vector = kb, key, surface, prior, vector

    @property
    def kb(self) -> "StoredKB":
        """The knowledge base."""
        return self._kb

    @property
    def entity(self) -> int:
        """The hash of the entity's key."""
        number: int = get_string_id(self._key)
        return number

    @property
    def entity_(self) -> str:
        """The key of the entity."""
        return self._key

    @property
    def alias(self) -> int:
        """The hash of the surface."""
        number: int = get_string_id(self._surface)
        return number

    @property
    def alias_(self) -> str:
        """The surface."""
        return self._surface

    @property
    def entity_freq(self) -> float:
        """Frequency of the entity, which the store does not have: 0."""
        return 0.0

    @property
    def entity_vector(self) -> NDArray[np.float64]:
        """(D,) float64, the vector; 1e-8 throughout where there is none."""
        return self._vector

    @property
    def prior_prob(self) -> float:
        """p(entity | surface)."""
        return self._prior


class StoredKB(spacy.kb.KnowledgeBase):  # type: ignore[misc]  # spaCy's types are not read
    """Knowledge base of spaCy over one of kgkit and its vectors.

    Nothing is opened before it is asked for: spaCy makes a knowledge base before it reads what was saved of
        it.

    Args:
        vocab: vocabulary of the pipeline.
        kb: `NAME`, `NAME@BUILD`, or None for the default or only knowledge base in `KGKIT_HOME`.
        vectors: name of the entities' vectors; None for the only ones.
        max_candidates: number of candidates of a mention, the likeliest; None for all.

    Raises:
        UsageError: if *max_candidates* is below 1.
    """

    def __init__(
        self, vocab: Any, kb: str | None = None, vectors: str | None = None, max_candidates: int | None = 30
    ) -> None:
        if max_candidates is not None and max_candidates < 1:
            raise UsageError(f"max_candidates is {max_candidates}; it is at least 1, or None for all")
        super().__init__(vocab, 0)
        self.configured, self.vectors, self.max_candidates = kb, vectors, max_candidates
        self._build: str | None = None
        self._store: tuple[KnowledgeBase, Vectors] | None = None

    def _open(self) -> tuple[KnowledgeBase, Vectors]:
        """Return the knowledge base and its vectors, opened when they are first asked for."""
        if self._store is None:
            build = find_requirements(_OWNER, self._build or self.configured, vectors=self.vectors)
            kb = open_kb(build)
            try:
                self._store = kb, kb.vectors(self.vectors)
            except BaseException:
                kb.close()
                raise
            self._build = build
        return self._store

    def close(self) -> None:
        """Close the knowledge base; a further question opens it again."""
        if self._store is not None:
            self._store[0].close()
            self._store = None

    @property
    def entity_vector_length(self) -> int:
        """The width of the vectors."""
        return self._open()[1].width

    def __len__(self) -> int:
        return len(self._open()[0])

    def is_empty(self) -> bool:
        """Say whether there are no entities."""
        return len(self) == 0

    def get_candidates(self, mention: Any) -> list[StoredCandidate]:
        """Return the candidates of a mention by its text, best prior first.

        Args:
            mention: span of a document.
        """
        return self.get_alias_candidates(mention.text)

    def get_alias_candidates(self, alias: str) -> list[StoredCandidate]:
        """Return what a surface can mean, best prior first; nothing if it is not known.

        Args:
            alias: the surface; case and white space are folded as by `KnowledgeBase.candidates`.
        """
        kb, vectors = self._open()
        candidates: Candidates = kb.candidates(alias, self.max_candidates)
        if not len(candidates):
            return []
        rows = vectors.gather(candidates.ids).astype(np.float64)  # Python's floats, as spaCy's own gives
        rows[~rows.any(axis=1)] = _TINY
        return [
            StoredCandidate(self, kb.key(row.id), alias, row.prior, vector)
            for row, vector in zip(candidates, rows, strict=True)
        ]

    def get_vector(self, entity: str) -> NDArray[np.float32]:
        """Return the vector of an entity: zeros for one without, or that is not known.

        Args:
            entity: key of the entity, or of a redirect to it.
        """
        kb, vectors = self._open()
        number = kb.store.id_of(entity)
        if number is None:
            return np.zeros(vectors.width, np.float32)
        row: NDArray[np.float32] = vectors.gather([number])[0]
        return row

    def get_prior_prob(self, entity: str, alias: str) -> float:
        """Return p(entity | surface); 0 where the surface cannot mean the entity."""
        kb, _ = self._open()
        number = kb.store.id_of(entity)
        candidates = kb.candidates(alias)
        return next((row.prior for row in candidates if row.id == number), 0.0)

    def contains_entity(self, entity: str) -> bool:
        """Say whether there is an entity of this key."""
        return entity in self._open()[0]

    def contains_alias(self, alias: str) -> bool:
        """Say whether a surface is known."""
        return len(self._open()[0].candidates(alias)) > 0

    # -- on disk, in bytes, in another process -------------------------------

    @property
    def record(self) -> PipelineRecord:
        """What a saved pipeline keeps: the names of the build and of the vectors."""
        kb, vectors = self._open()
        return PipelineRecord(self.configured, f"{kb.name}@{kb.build}", None, vectors.manifest.name)

    def to_disk(self, path: str | Path, exclude: Sequence[str] = ()) -> None:
        """Write the record into a folder, which is made."""
        self.record.write(Path(path))

    def from_disk(self, path: str | Path, exclude: Sequence[str] = ()) -> "StoredKB":
        """Take the build of a record that `to_disk` has written; see `from_bytes`."""
        return self._restore(read_record(Path(path)))

    def to_bytes(self, **kwargs: Any) -> bytes:
        """Return the record."""
        return self.record.encode()

    def from_bytes(self, bytes_data: bytes, *, exclude: Sequence[str] = ()) -> "StoredKB":
        """Take the build and the vectors of a record, where the configuration names the same knowledge base.

        Raises:
            NotThere: if the build or the vectors are missing; names all that is.
            DamagedModel: if *bytes_data* is no record.
        """
        return self._restore(decode_record(bytes_data, f"what was saved of {_OWNER}"))

    def _restore(self, record: PipelineRecord) -> "StoredKB":
        build = record.build_for(self.configured)
        if build is not None:
            vectors = self.vectors or record.vectors
            self._build = find_requirements(_OWNER, build, vectors=vectors)
            self.close()
            self.vectors = vectors
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_with_build, (
            self.vocab, self.configured, self.vectors, self.max_candidates, self._build,
        )  # fmt: skip


def _make_with_build(
    vocab: Any, kb: str | None, vectors: str | None, max_candidates: int | None, build: str | None
) -> StoredKB:
    """Return a knowledge base that reads one build, whatever the configuration stands for now."""
    stored = StoredKB(vocab, kb, vectors, max_candidates)
    stored._build = build
    return stored


def knowledge_base(
    kb: str | None = None, vectors: str | None = None, max_candidates: int | None = 30
) -> Callable[..., StoredKB]:
    """Return the function that makes the knowledge base of spaCy's `entity_linker`: `kgkit.KnowledgeBase.v1`.

    It stands for `generate_empty_kb`, whose second argument, `entity_vector_length`, is not read: the
    vectors on the disk have the width that they have.

    Args:
        kb: `NAME`, `NAME@BUILD`, or None for the default or only knowledge base in `KGKIT_HOME`.
        vectors: name of the entities' vectors; None for the only ones.
        max_candidates: number of candidates of a mention, the likeliest; None for all.
    """
    return partial(_make_kb, kb, vectors, max_candidates)


def _make_kb(
    kb: str | None, vectors: str | None, max_candidates: int | None, vocab: Any, entity_vector_length: int = 0
) -> StoredKB:
    return StoredKB(vocab, kb, vectors, max_candidates)
