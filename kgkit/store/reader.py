"""Reading one published build."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import lmdb
import msgspec
import numpy as np

from kgkit.errors import ClosedKB, DamagedKB, FormatMismatch, NotThere, StaleKB
from kgkit.store import codec
from kgkit.store.codec import bounded_key
from kgkit.store.environments import Environment, Forgets, Gets, acquire, release
from kgkit.store.layout import FORMAT, MANIFEST, U32, FormatOnly, Manifest, fingerprint
from kgkit.text import fold
from kgkit.types import NO_SENSE, Candidate, Candidates, Entity, Ids

_pack_id = codec.pack_id
_decode_entity = codec.decode_entity
_decode_key = codec.decode_key
_decode_facts = codec.decode_facts
_decode_alias = codec.decode_alias
# A key that LMDB refuses (empty, or over 511 bytes) or that is no UTF-8 (a lone surrogate).
_ODD_KEY = (lmdb.BadValsizeError, UnicodeEncodeError)


class StoreReader(Forgets):
    """One build, open for reading.

    Use it from any number of threads; each has its own transaction. After a
    fork the child opens the build again by itself. Pickled, it opens the same
    BUILD wherever it is unpickled, or raises `StaleKB`. Close it when no other
    thread is reading.

    What it returns owns its bytes and outlives it.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        super().__init__()
        self.folder, self.manifest = folder, manifest
        self._local: Any = None
        self._environment: Environment | None = None
        self._connect()
        self.relations = codec.decode_relations(self._meta("relations"))
        self.classes = codec.decode_names(self._meta("classes"))

    @classmethod
    def open(cls, folder: Path) -> "StoreReader":
        """Open the build in *folder*.

        Raises:
            NotThere: if there is none.
            FormatMismatch: if another version of kgkit wrote it.
            DamagedKB: if its files do not have the sizes its manifest gives.
        """
        return cls(folder, read_manifest(folder))

    def close(self) -> None:
        """Let go of the build; a second call does nothing."""
        environment, self._environment = self._environment, None
        self._local = _Closed(self.folder)
        if environment is not None:
            release(environment)

    def forget(self) -> None:
        if self._environment is not None:
            self._environment = None
            self._local = _Inherited(self)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._environment is None and isinstance(self._local, _Closed):
            raise ClosedKB(f"a closed handle on {self.folder} cannot be pickled")
        return _reopen, (str(self.folder), self.manifest.build)

    def _connect(self) -> None:
        environment = acquire(self.folder)
        tables = environment.tables
        self._entities, self._keys, self._aliases = tables["entities"], tables["keys"], tables["aliases"]
        self._starts, self._forms = tables["starts"], tables["forms"]
        self._facts, self._incoming = tables["facts"], tables["incoming"]
        self._environment = environment
        self._local = Gets(environment.lmdb)

    def _meta(self, name: str) -> bytes:
        assert self._environment is not None
        value = self._local.get(name.encode(), None, self._environment.tables["meta"])
        if value is None:
            raise DamagedKB(f"{self.folder} has no {name!r} in its table 'meta'; build it again")
        return bytes(value)

    # -- one row ------------------------------------------------------------
    # These are called hundreds of thousands of times a second. LMDB itself
    # refuses the keys that need `bounded_key`, so the others need no check.

    def entity_by_key(self, key: str) -> Entity | None:
        """Return the entity of *key*, following a redirect; None if there is none."""
        get = self._local.get
        try:
            found = get(key.encode(), None, self._keys)
        except _ODD_KEY:
            found = get(bounded_key(key), None, self._keys)
        return None if found is None else _decode_entity(get(found, None, self._entities))

    def entity(self, number: int) -> Entity | None:
        """Return the entity of id *number*; None if there is none."""
        row = self._local.get(_pack_id(number), None, self._entities)
        return None if row is None else _decode_entity(row)

    def entities(self, numbers: list[int]) -> list[Entity]:
        """Return the entities of ids that are known to be there."""
        get, table = self._local.get, self._entities
        return [_decode_entity(get(_pack_id(number), None, table)) for number in numbers]

    def decode(self, candidates: Candidates) -> list[Candidate]:
        """Return *candidates*, of this build, with their entities and the keys of their senses."""
        get, table = self._local.get, self._entities
        return [
            Candidate(
                _decode_entity(get(_pack_id(entity), None, table)),
                None if sense == NO_SENSE else _decode_key(get(_pack_id(sense), None, table)).key,
                prior,
            )
            for entity, sense, prior in candidates.rows.tolist()
        ]

    def key_of(self, number: int) -> str | None:
        """Return the key of id *number*; None if there is none."""
        row = self._local.get(_pack_id(number), None, self._entities)
        return None if row is None else _decode_key(row).key

    def id_of(self, key: str) -> int | None:
        """Return the id of *key*, following a redirect; None if there is none."""
        try:
            found = self._local.get(key.encode(), None, self._keys)
        except _ODD_KEY:
            found = self._local.get(bounded_key(key), None, self._keys)
        return None if found is None else int.from_bytes(found, "big")

    def alias_row(self, folded: str) -> bytes | None:
        """Return the stored row of a folded surface; `codec` reads it."""
        try:
            row: bytes | None = self._local.get(folded.encode(), None, self._aliases)
        except _ODD_KEY:
            row = self._local.get(bounded_key(folded), None, self._aliases)
        return row

    def candidates(self, surface: str, *, prefer_case: bool) -> Candidates | None:
        """Return what *surface* can mean, rows seen in its very spelling preferred; None if it is no alias."""
        # Most surfaces are folded by `lower`; one that then is found was.
        row = self.alias_row(surface.lower()) if surface.isascii() else None
        if row is None and (row := self.alias_row(fold(surface))) is None:
            return None
        return _decode_alias(row, surface if prefer_case else None)

    def facts(self, number: int) -> tuple[Ids, Ids] | None:
        """Return `(others, relation codes)` of all that is said of id *number*; None if nothing."""
        row = self._local.get(_pack_id(number), None, self._facts)
        return None if row is None else _decode_facts(row)

    def beside(self, number: int) -> Ids | None:
        """Return the others of `facts`."""
        row = self._local.get(_pack_id(number), None, self._facts)
        return None if row is None else np.frombuffer(row, U32, len(row) >> 3)

    def entities_beside(self, key: str) -> list[Entity] | None:
        """Return the entities of which `facts` tells for *key*; None if there is no such entity."""
        get = self._local.get
        try:
            found = get(key.encode(), None, self._keys)
        except _ODD_KEY:
            found = get(bounded_key(key), None, self._keys)
        if found is None:
            return None
        row = get(found, None, self._facts)
        return [] if row is None else self.entities(np.frombuffer(row, U32, len(row) >> 3).tolist())

    def incoming(self, number: int) -> tuple[Ids, Ids] | None:
        """Return `(subjects, relation codes)` of the one-way relations that end in id *number*."""
        row = self._local.get(_pack_id(number), None, self._incoming)
        return None if row is None else _decode_facts(row)

    def starts(self, token: str) -> dict[str, int] | None:
        """Return, for aliases that begin with *token*, the second token and the bits of their lengths."""
        row = self._local.get(bounded_key(token), None, self._starts)
        return None if row is None else codec.decode_starts(row)

    def lemmas(self, folded: str) -> list[tuple[str, str]]:
        """Return `(lemma, part of speech)` of an irregular form."""
        row = self._local.get(bounded_key(folded), None, self._forms)
        return [] if row is None else codec.decode_forms(row)

    # -- all rows -----------------------------------------------------------

    def iter_entities(self) -> Iterator[Entity]:
        """Yield every entity, in id order."""
        return map(_decode_entity, (row for _, row in self.items("entities")))

    def iter_facts(self) -> Iterator[tuple[int, Ids, Ids]]:
        """Yield `(id, others, relation codes)` of every entity of which something is said."""
        for number, row in self.items("facts"):
            yield int.from_bytes(number, "big"), *_decode_facts(row)

    def iter_surfaces(self) -> Iterator[str]:
        """Yield every folded surface, in order; those too long for a key are left out."""
        return (key.decode() for key, _ in self.items("aliases") if not key.startswith(b"\xff"))

    def items(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the raw items of *table* in key order."""
        environment = self._live()
        with environment.lmdb.begin() as transaction:
            yield from transaction.cursor(environment.tables[table])

    def class_of_entity(self) -> np.ndarray:
        """Return (N,) uint8: 0 for an entity without a part of speech, else 1 + its place in `classes`."""
        return np.frombuffer(self._meta("class_of_entity"), np.uint8)

    def _live(self) -> Environment:
        if self._environment is None:
            _ = self._local.get  # opens again after a fork
            if self._environment is None:
                self._local.get()  # raises: it has been closed
        assert self._environment is not None
        return self._environment


class _Closed:
    """Stands where a closed reader had its transactions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, *_: object) -> NoReturn:
        raise ClosedKB(f"this handle on {self.folder} has been closed; open the knowledge base again")


class _Inherited:
    """Stands where a forked child's reader had its parent's transactions."""

    def __init__(self, reader: StoreReader) -> None:
        self.reader = reader

    @property
    def get(self) -> Any:
        folder = self.reader.folder
        if not folder.is_dir():
            raise StaleKB(f"{folder} is gone, and this process was forked from one that had it open")
        self.reader._connect()
        return self.reader._local.get


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of the build in *folder*, its format and file sizes checked.

    Raises:
        NotThere, FormatMismatch, DamagedKB: as `StoreReader.open` does.
    """
    path = folder / MANIFEST
    try:
        written = path.read_bytes()
    except FileNotFoundError:
        raise NotThere(f"no knowledge base in {folder}: it has no {MANIFEST}") from None
    try:
        found = msgspec.json.decode(written, type=FormatOnly)
    except msgspec.DecodeError as error:
        raise DamagedKB(f"{path} cannot be read: {error}; build the knowledge base again") from error
    if (found.format, found.fingerprint) != (FORMAT, fingerprint()):
        builder = found.builder or "BUILDER"
        raise FormatMismatch(
            f"{folder} has format {found.format} ({found.fingerprint or 'no fingerprint'}), this kgkit reads "
            f"format {FORMAT} ({fingerprint()}): run `kgkit build-kb {builder}` to build it again"
        )
    try:
        manifest = msgspec.json.decode(written, type=Manifest)
    except msgspec.DecodeError as error:
        raise DamagedKB(f"{path} cannot be read: {error}; build the knowledge base again") from error
    for name, size in manifest.files.items():
        # Before anything is mapped: reading past the end of a truncated file
        # would end the process with SIGBUS.
        try:
            actual = os.stat(folder / name).st_size
        except FileNotFoundError:
            raise DamagedKB(f"{folder / name} is missing; build the knowledge base again") from None
        if actual != size:
            raise DamagedKB(
                f"{folder / name} has {actual:,} bytes, its manifest says {size:,}; "
                "build the knowledge base again"
            )
    return manifest


def _reopen(folder: str, build: str) -> StoreReader:
    try:
        reader = StoreReader.open(Path(folder))
    except NotThere:
        raise StaleKB(f"build {build} is no longer at {folder}: open the knowledge base by name again") from None
    if reader.manifest.build != build:
        reader.close()
        raise StaleKB(f"{folder} now holds build {reader.manifest.build}, the handle was opened on {build}")
    return reader
