"""Reading one published build."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from weakref import finalize

import lmdb
import numpy as np

from kgkit.errors import ClosedKB, DamagedKB, FormatMismatch, KgkitError, NotThere, StoreError
from kgkit.store import codec
from kgkit.store.codec import bounded_key, unpack_ids
from kgkit.store.damage import DAMAGE, damage_error
from kgkit.store.environments import Environment, Gets, acquire, release
from kgkit.store.layout import MAX_KEY, OPTIONAL, SINCE, SURFACES, TRIGRAMS, U32, Manifest
from kgkit.store.manifest import full_name, read_manifest, read_manifest_of, rebuild_command
from kgkit.store.surface_index import uncontained_labels
from kgkit.store.surfaces import Surfaces
from kgkit.store.trigrams import Labels, TrigramIndex
from kgkit.text import accentless_writings, lacks_accents
from kgkit.types import NO_SENSE, Candidate, Candidates, Entity, Ids

T = TypeVar("T")

_pack_id = codec.pack_id
_decode_entity = codec.decode_entity
_decode_key = codec.decode_key
_decode_facts = codec.decode_facts
_decode_alias = codec.decode_alias
_NO_SENSE = _pack_id(NO_SENSE)
# A key that LMDB refuses (empty) or that is no UTF-8 (a lone surrogate).
_ODD_KEY = (lmdb.BadValsizeError, UnicodeEncodeError)
# A key of so many characters fits LMDB; a longer one may not, and is then not found as it is.
_SHORT = MAX_KEY // 4


class StoreReader:
    """One build, open for reading.

    Use it from any number of threads; each has its own transaction, and a new one
    after a read that failed. A forked child reads on with it. Pickled, it opens the same BUILD wherever it is
    unpickled, or raises `StaleKB`. Close it when no other thread is reading; a
    handle that nobody holds any more closes by itself.

    What it returns owns its bytes and outlives it.

    Attributes:
        folding: folding and tokens of the surfaces; each build has those of its version and language.
        damage_found: message of the first damage that a read has found; empty as long as there is none.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.id_count = manifest.id_count
        self.damage_found = ""
        self._environment: Environment | None = acquire(folder)
        self._local: Any = Gets(self._environment.lmdb)
        self._give_back = finalize(self, release, self._environment)
        self._give_back.atexit = False
        tables = self._environment.tables
        self._entities, self._keys, self._aliases = tables["entities"], tables["keys"], tables["aliases"]
        self._starts, self._forms = tables["starts"], tables["forms"]
        self._facts, self._incoming = tables["facts"], tables["incoming"]
        self._occurrences, self._names = tables.get("occurrences"), tables.get("names")
        self._variants = tables.get("variants")
        self.folding = manifest.folding
        self._has_other_writings = self.folding.version > 1
        self.surfaces: Surfaces | None = None  # where the table `starts` does not tell of all
        self.trigrams: TrigramIndex | None = None  # of a build that has the index
        self._labels: Labels | None = None
        self._reading_labels = threading.Lock()
        try:
            for name in (*OPTIONAL, *SINCE):
                listed = name in manifest.tables
                expected = listed if name in OPTIONAL else manifest.format >= SINCE[name]
                if not listed == expected == (name in tables):
                    raise DamagedKB(f"its manifest and its tables disagree about {name!r}")
            self.retired = self._retired_ids()
            self.relations = codec.decode_relations(self._meta("relations"))
            self.classes = codec.decode_names(self._meta("classes"))
            if (shards := self._local.get(b"surfaces", None, tables["meta"])) is not None:
                self.surfaces = self._map_surfaces(codec.decode_shards(shards))
            if TRIGRAMS in manifest.files:
                self.trigrams = self._map(TRIGRAMS, TrigramIndex)
                self._labels = self.trigrams.labels
        except NotThere:
            self.close()
            raise
        except (DamagedKB, *DAMAGE) as error:
            self.close()
            raise DamagedKB(f"{folder} is not a readable knowledge base: {error}; build it again") from error

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
        self.surfaces = self.trigrams = self._labels = None
        self._environment = None
        self._local = _Closed(self.folder)
        self._give_back()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._environment is None:
            raise ClosedKB(f"a closed handle on {self.folder} cannot be pickled")
        return _reopen, (str(self.folder.absolute()), self.manifest.build)

    def _meta(self, name: str) -> bytes:
        assert self._environment is not None
        value = self._local.get(name.encode(), None, self._environment.tables["meta"])
        if value is None:
            raise DamagedKB(f"it has no {name!r} in its table 'meta'")
        return bytes(value)

    def _retired_ids(self) -> frozenset[int]:
        """Return the ids of the retired entities.

        Raises:
            DamagedKB: if they are not as many as the manifest says.
        """
        if not self.manifest.retired:
            return frozenset()
        ids = np.frombuffer(self._meta("retired"), U32)
        if len(ids) != self.manifest.retired:
            raise DamagedKB(
                f"it has {len(ids):,} retired entities, its manifest says {self.manifest.retired:,}"
            )
        return frozenset(ids.tolist())

    def _map_surfaces(self, shards: list[codec.Shard]) -> Surfaces:
        if SURFACES not in self.manifest.files or not shards:  # nobody has looked how long it is
            raise DamagedKB(f"its manifest does not list {SURFACES}, which it needs")
        return self._map(SURFACES, partial(Surfaces, shards=shards))

    def _map(self, name: str, map_file: Callable[[Path], T]) -> T:
        try:
            return map_file(self.folder / name)
        except (OSError, ValueError) as error:
            if not self.folder.exists():
                raise NotThere(f"no knowledge base in {self.folder}: it was removed a moment ago") from None
            raise DamagedKB(f"{name} cannot be mapped: {error}") from error

    # -- one row ------------------------------------------------------------
    # These are called hundreds of thousands of times a second: the few keys that
    # need `bounded_key` are told by LMDB, or by their not being found.

    def _row_of(self, text: str, table: Any) -> bytes | None:
        """Return the value of a text in *table*; None if there is none. Callers name the errors."""
        get = self._local.get
        try:
            row: bytes | None = get(text.encode(), None, table)
        except _ODD_KEY:
            row = get(bounded_key(text), None, table)
        if row is None and len(text) > _SHORT:
            row = get(bounded_key(text), None, table)
        return row

    def entity_by_key(self, key: str) -> Entity | None:
        """Return the entity of *key*, following a redirect; None if there is none."""
        try:
            number = self._row_of(key, self._keys)
            return None if number is None else _decode_entity(self._local.get(number, None, self._entities))
        except DAMAGE as error:
            raise self.damage(error) from error

    def entity(self, number: int) -> Entity | None:
        """Return the entity of id *number*; None if there is none, or it was retired."""
        if number in self.retired:
            return None
        key = _pack_id(number)
        try:
            row = self._local.get(key, None, self._entities)
            return None if row is None else _decode_entity(row)
        except DAMAGE as error:
            raise self.damage(error) from error

    def entities(self, numbers: list[int]) -> list[Entity]:
        """Return the entities of ids that were dealt out; of a retired one its key and id alone."""
        get, table = self._local.get, self._entities
        try:
            return [_decode_entity(get(_pack_id(number), None, table)) for number in numbers]
        except DAMAGE as error:
            raise self.damage(error) from error

    def decode(self, candidates: Candidates) -> list[Candidate]:
        """Return *candidates*, of this build, with their entities and the keys of their senses."""
        get, table = self._local.get, self._entities
        try:
            return [
                Candidate(
                    _decode_entity(get(entity, None, table)),
                    None if sense == _NO_SENSE else _decode_key(get(sense, None, table)).key,
                    prior,
                )
                for entity, sense, prior in codec.unpack_candidates(candidates.rows.tobytes())
            ]
        except DAMAGE as error:
            raise self.damage(error) from error

    def key_of(self, number: int) -> str | None:
        """Return the key of id *number*; None if there is none, or it was retired."""
        if number in self.retired:
            return None
        try:
            row = self._local.get(_pack_id(number), None, self._entities)
            return None if row is None else _decode_key(row).key
        except DAMAGE as error:
            raise self.damage(error) from error

    def id_of(self, key: str) -> int | None:
        """Return the id of *key*, following a redirect; None if there is none."""
        try:
            number = self._row_of(key, self._keys)
            return None if number is None else int.from_bytes(number, "little")
        except DAMAGE as error:
            raise self.damage(error) from error

    def alias_row(self, folded: str, *, initials: bool = True) -> bytes | None:
        """Return the stored row of a folded surface, else of the aliases that are also written so.

        Args:
            folded: folded surface.
            initials: flag for initials that are also written so, without their full stops: *E.D.* as *ed*.
        """
        row = self.exact_alias_row(folded)
        return self.other_alias_row(folded, initials=initials) if row is None else row

    def other_alias_row(self, folded: str, *, initials: bool = True) -> bytes | None:
        """Return the row of the aliases that are also written as a folded surface that is none: see above."""
        if not self._has_other_writings:
            return None
        try:
            keys = self._other_keys(folded)
            if not initials and "." not in folded:
                keys = [key for key in keys if b"." not in key[:-1]]
            get, table = self._local.get, self._aliases
            items = [(key, row) for key in keys if (row := get(key, None, table)) is not None]
            return codec.join_rows(items) if items else None
        except DAMAGE as error:
            raise self.damage(error) from error

    def exact_alias_row(self, folded: str) -> bytes | None:
        """Return the stored row of a folded surface as it is written."""
        try:
            return self._row_of(folded, self._aliases)
        except DAMAGE as error:
            raise self.damage(error) from error

    def variant_keys(self, folded: str) -> list[bytes]:
        """Return the keys, in `aliases`, of the surfaces that are also written so; see `aliases.variants`."""
        if self._variants is None:
            return []
        row = self._row_of(folded, self._variants)
        return [] if row is None else codec.decode_alias_keys(row)

    def _other_keys(self, folded: str) -> list[bytes]:
        """Return the keys of the aliases that a folded surface, which is none, may be another writing of."""
        if self._variants is not None and (row := self._row_of(folded, self._variants)) is not None:
            return codec.decode_alias_keys(row)
        for writing in accentless_writings(folded):
            if keys := [key for key in self.variant_keys(writing) if lacks_accents(folded, key.decode())]:
                return keys
        plain = self.folding.plain(folded)
        return [bounded_key(plain), *self.variant_keys(plain)] if plain else []

    def candidates(self, surface: str, *, prefer_case: bool) -> Candidates | None:
        """Return what *surface* can mean, this spelling preferred if told so; None if it is no alias."""
        # Most surfaces are folded by `lower`; one that then is found was.
        try:
            try:
                lowered = self.folding.lowered(surface)
                row = None if lowered is None else self._local.get(lowered.encode(), None, self._aliases)
            except _ODD_KEY:
                row = None
            if row is None and (row := self.alias_row(self.folding.fold(surface))) is None:
                return None
            return _decode_alias(row, surface if prefer_case else None)
        except DAMAGE as error:
            raise self.damage(error) from error

    @property
    def has_names(self) -> bool:
        """Whether the build says by which surfaces an entity is known; those of format 2 do not."""
        return self._names is not None

    def alias_keys(self, number: int) -> list[bytes]:
        """Return the keys, in `aliases`, of the surfaces that can mean id *number*, in their order.

        Raises:
            FormatMismatch: if the build is of a format that does not say so; names the command that rebuilds.
        """
        if self._names is None:
            self._live()  # raises if the reader is closed
            raise FormatMismatch(
                f"{full_name(self.folder)} has format {self.manifest.format}, which does not list "
                f"the surfaces of an entity: "
                f"run `{rebuild_command(self.folder, self.manifest)}` to build it again"
            )
        try:
            row = self._local.get(_pack_id(number), None, self._names)
            return [] if row is None else codec.decode_alias_keys(row)
        except DAMAGE as error:
            raise self.damage(error) from error

    def surfaces_of(self, number: int) -> list[tuple[str, float, float, int]]:
        """Return `(surface, prior, count, sense)` of every surface, as it is spelled, that can mean an id.

        Raises:
            FormatMismatch: as `alias_keys` does.
        """
        keys, smoothing = self.alias_keys(number), self.manifest.smoothing
        get, table = self._local.get, self._aliases
        with self.reading():
            return [
                surface
                for key in keys
                for surface in codec.surfaces_of(number, key, get(key, None, table), smoothing)
            ]

    def facts(self, number: int) -> tuple[Ids, Ids] | None:
        """Return `(others, relation codes)` of all that is said of id *number*; None if nothing."""
        return self._facts_in(self._facts, number)

    def _facts_in(self, table: Any, number: int) -> tuple[Ids, Ids] | None:
        key = _pack_id(number)
        try:
            row = self._local.get(key, None, table)
            return None if row is None else _decode_facts(row)
        except DAMAGE as error:
            raise self.damage(error) from error

    def neighbours(self, number: int) -> Ids | None:
        """Return the others of `facts`."""
        key = _pack_id(number)
        try:
            row = self._local.get(key, None, self._facts)
            return None if row is None else np.frombuffer(row, U32, len(row) >> 3)
        except DAMAGE as error:
            raise self.damage(error) from error

    def neighbour_entities(self, key: str) -> list[Entity] | None:
        """Return the entities of which `facts` tells for *key*; None if there is no such entity."""
        get = self._local.get
        try:
            number = self._row_of(key, self._keys)
            if number is None:
                return None
            row = get(number, None, self._facts)
            if row is None:
                return []
            table = self._entities
            return [_decode_entity(get(other, None, table)) for (other,) in unpack_ids(row[: len(row) >> 1])]
        except DAMAGE as error:
            raise self.damage(error) from error

    def incoming(self, number: int) -> tuple[Ids, Ids] | None:
        """Return `(subjects, relation codes)` of the one-way relations that end in id *number*."""
        return self._facts_in(self._incoming, number)

    def starts(self, token: str) -> dict[str, int] | None:
        """Return how the aliases go on that begin with *token*; None if there are none.

        A key is a second token, or a second and a third with a space between;
        bit n of its value is set if an alias of n tokens begins so.
        """
        try:
            row = self._row_of(token, self._starts)
            return None if row is None else codec.decode_starts(row)
        except DAMAGE as error:
            raise self.damage(error) from error

    def lemmas(self, folded: str) -> list[tuple[str, str]]:
        """Return `(lemma, part of speech)` of an irregular form."""
        try:
            row = self._row_of(folded, self._forms)
            return [] if row is None else codec.decode_forms(row)
        except DAMAGE as error:
            raise self.damage(error) from error

    @property
    def has_occurrences(self) -> bool:
        """Whether the build says of surfaces how often they occur."""
        return self._occurrences is not None

    def occurrences(self, folded: str, *, exact: bool = False) -> tuple[float, float] | None:
        """Return how often a folded surface occurs in texts, and how often as a link; None if not known.

        Args:
            folded: folded surface.
            exact: flag for the surface as it is written, and none that is also written so.

        Raises:
            DamagedKB: if what is stored cannot be that.
        """
        if self._occurrences is None:
            return None
        key = bounded_key(folded)
        try:
            row = self._local.get(key, None, self._occurrences)
            if row is None and not exact and self._local.get(key, None, self._aliases) is None:
                for key in self._other_keys(folded):
                    if (row := self._local.get(key, None, self._occurrences)) is not None:
                        break
        except DAMAGE as error:
            raise self.damage(error) from error
        return None if row is None else self._counts(key, row)

    def iter_occurrences(self) -> Iterator[tuple[bytes, float, float]]:
        """Yield key, occurrences and links of every surface of which they are known.

        Raises:
            DamagedKB: if what is stored cannot be that.
        """
        for key, row in self.items("occurrences") if self.has_occurrences else ():
            yield key, *self._counts(key, row)

    def _counts(self, key: bytes, row: bytes) -> tuple[float, float]:
        try:
            return codec.decode_occurrences(row)
        except ValueError as error:
            raise self.damage(error, f"the row of {key!r} in table 'occurrences'") from error

    def row(self, table: str, key: bytes) -> bytes | None:
        """Return the raw value of *key* in *table*; None if there is none."""
        try:
            value: bytes | None = self._local.get(key, None, self._live().tables[table])
        except lmdb.Error as error:
            raise self.damage(error) from error
        return value

    # -- all rows -----------------------------------------------------------

    def iter_entities(self) -> Iterator[Entity]:
        """Yield every entity that was not retired, in id order."""
        rows = map(_decode_entity, (row for _, row in self.items("entities")))
        with self.reading():
            yield from (entity for entity in rows if entity.id not in self.retired) if self.retired else rows

    def iter_keys(self) -> Iterator[str]:
        """Yield the key of every entity that was not retired, in id order."""
        return (key for key in self.iter_id_keys() if key is not None)

    def iter_id_keys(self) -> Iterator[str | None]:
        """Yield for every id, in order, the key of its entity; None for one that was retired."""
        with self.reading():
            keys = (_decode_key(row).key for _, row in self.items("entities"))
            if not self.retired:
                yield from keys
            else:
                yield from (None if number in self.retired else key for number, key in enumerate(keys))

    def is_retired(self, entity: object) -> bool:
        """Say whether an entity was retired, named by its id, or by a key that no entity has now."""
        if isinstance(entity, str):
            return any(entity == retired.key for retired in self.entities(sorted(self.retired)))
        return entity in self.retired

    def iter_facts(self) -> Iterator[tuple[int, Ids, Ids]]:
        """Yield `(id, others, relation codes)` of every entity of which something is said."""
        with self.reading():
            yield from (
                (int.from_bytes(number, "little"), *_decode_facts(row)) for number, row in self.items("facts")
            )

    def iter_surfaces(self) -> Iterator[str]:
        """Yield every folded surface, in order; those too long for a key are left out."""
        with self.reading():
            yield from (key.decode() for key, _ in self.items("aliases") if not key.startswith(codec.DIGEST))

    @property
    def indexes_parts(self) -> bool:
        """Whether surfaces and labels that contain a text are found without reading a table."""
        return self.trigrams is not None and self._labels is not None

    def uncontained_labels(self) -> Labels:
        """Return the labels that no surface of their entity contains.

        They are in the index of surfaces; of a build whose index lacks them all labels are read, once.
        """
        if (labels := self._labels) is None:
            with self._reading_labels, self.reading():
                labels = self._labels = self._labels or self.read_uncontained_labels()
        return labels

    def read_uncontained_labels(self) -> Labels:
        """Return the labels of `uncontained_labels`, read from the tables."""
        names = self.items("names") if self.has_names else ()
        return uncontained_labels(self.items("entities"), names, self.folding)

    def items(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the raw items of *table* in key order, those whose keys begin with *prefix*."""
        environment = self._live()
        try:
            with environment.lmdb.begin() as transaction:
                cursor = transaction.cursor(environment.tables[table])
                if not prefix:
                    yield from cursor
                elif cursor.set_range(prefix):
                    yield from takewhile(lambda item: item[0].startswith(prefix), cursor)
        except lmdb.Error as error:
            if self._environment is environment:
                raise self.damage(error, f"table {table!r}") from error
            raise ClosedKB(f"the handle on {self.folder} was closed in the middle of an iteration") from None

    def without_index(self) -> KgkitError:
        """Return the error to raise where the index of surfaces is needed, and the build has none."""
        if self._environment is None:
            return ClosedKB(f"this handle on {self.folder} has been closed; open the knowledge base again")
        name = full_name(self.folder)
        return NotThere(
            f"{name} has no index of its surfaces, which finds names through typing errors: "
            "build the knowledge base again, or export it (`kgkit kb export`) and import it"
        )

    def class_of_entity(self) -> np.ndarray:
        """Return (N,) uint8: 0 for an entity without a part of speech, else 1 + its place in `classes`."""
        with self.reading():
            return np.frombuffer(self._meta("class_of_entity"), np.uint8)

    def _live(self) -> Environment:
        if self._environment is None:
            self._local.get()  # raises: it has been closed
        assert self._environment is not None
        return self._environment

    # -- damage -------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Say of rows that cannot be read in the block that the build is damaged.

        For those who read many rows, or what rows refer to. Look-ups of single rows name the errors
        themselves, which costs them nothing.

        Raises:
            DamagedKB: for what LMDB and the decoders of rows raise.
        """
        try:
            yield
        except DAMAGE as error:
            raise self.damage(error) from error

    def damage(self, error: Exception, what: str = "a row") -> StoreError:
        """Return the error to raise for *error*, which reading *what* has raised: `DamagedKB`, as a rule."""
        if self._environment is None:
            return ClosedKB(f"the handle on {self.folder} was closed while it was read")
        if isinstance(error, lmdb.Error):
            self._local.renew()
        # What refers to a row that is not there decodes None.
        reason = "another row names it, and it is not there" if isinstance(error, TypeError) else error
        return self.damaged(f"{what} cannot be read ({reason})")

    def damaged(self, problem: str) -> DamagedKB:
        """Return the error that says of the build that it is damaged, and note it in `damage_found`."""
        error = damage_error(self.folder, problem)
        self.damage_found = self.damage_found or str(error)
        return error


class _Closed:
    """Stands where a closed reader had its transactions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, *_: object) -> NoReturn:
        """Raise `ClosedKB`, whatever is looked up."""
        raise ClosedKB(f"this handle on {self.folder} has been closed; open the knowledge base again")


def _reopen(folder: str, build: str) -> StoreReader:
    return StoreReader(Path(folder), read_manifest_of(Path(folder), build))
