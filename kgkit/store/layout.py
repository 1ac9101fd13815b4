"""What a build looks like on disk.

A build is a folder with `data.mdb`, one LMDB environment, and `manifest.json`; where
aliases are very many, also `surfaces.marisa`; and `surfaces.trigrams`, an index that a build may lack.
The environment holds the tables below; `docs/on-disk-format.md` explains them
to people. Integers are little-endian, so NumPy reads them where they lie, and an
id in a value is, as it stands, a key of the tables that are kept by id.

A test holds `fingerprint()` against the manual: who changes `TABLES` has to
raise `FORMAT` and say so there.
"""

import hashlib
from typing import Any, Final

import msgspec
import numpy as np

from kgkit.text import FOLDING, Folding, folding
from kgkit.types import CANDIDATE

FORMAT: Final = 5
EDITED_FORMAT: Final = 4
"""Format of builds of format 3 that `kgkit kb edit` has changed: `EDITED` says how their tables differ."""
OLDER: Final = {2: "2960feb2", 3: "b8f4be6f", EDITED_FORMAT: "bad0d017"}
"""Fingerprints of the formats that are read too; their surfaces are folded by version 1, see `kgkit.text`."""

TABLES: Final = {
    "entities": "id:u32 -> msgpack [key, label, description, kind, pos, types, attributes, id]",
    "keys": "key:utf8 -> id:u32; keys of entities and redirects",
    "aliases": "folded surface -> rows:u24 classes:u8 total:f32 (entity:u32 sense:u32 prior:f32)* [tail]",
    "names": "id:u32 -> msgpack [key of `aliases`, ...]; the surfaces that can mean the entity",
    "starts": "first token -> msgpack {second, or second and third token: bits of the aliases' lengths}",
    "facts": "id:u32 -> other:u32* relation:u32*; every fact that can be said of the entity",
    "incoming": "id:u32 -> other:u32* relation:u32*; the other end of relations without an inverse",
    "forms": "folded form -> msgpack [[lemma, pos], ...]",
    "meta": "relations, classes, class_of_entity; surfaces: msgpack [[first, offset, size, count], ...]",
}
# A tail stands behind the rows of an alias that was seen in another spelling
# than its folded one: msgpack [[surface, rows, shares], ...], where empty rows
# mean all of them, wholly.
# `surfaces` is there if the file of that name is: then `starts` tells of the few
# surfaces that its tries do not have.

OPTIONAL: Final = {
    "occurrences": "folded surface -> count:f32 linked:f32; how often it occurs in texts, and as a link",
    "variants": "another writing, folded -> msgpack [key of `aliases`, ...]; looked up where it is no alias",
}
"""Tables that a build may lack; its manifest lists the tables it has."""

EDITED: Final = {
    "entities": "of a retired entity its key and id alone",
    "meta": "retired: id:u32*; the retired entities, ascending",
    "starts": "and the tries may tell of surfaces that are no aliases any more",
}
"""Differences of the tables of edited builds."""

SINCE: Final = {"names": 3}
"""Formats that first had a table; builds of older ones, which are read as well, lack it."""

BY_ID: Final = frozenset({"entities", "names", "facts", "incoming"})
"""Tables whose keys are ids; LMDB compares those as numbers (`MDB_INTEGERKEY`)."""

MAX_KEY: Final = 511
"""LMDB's limit; a longer key is stored as 0xFF and its 32-byte BLAKE2b digest."""

MAX_ROWS: Final = 0xFFFFFF
"""An alias means so many entities at most."""

MAX_TOKENS: Final = 63
"""An alias of more tokens is looked up like any other but not sought in texts."""

MANY: Final = 1_000_000
"""A build of more aliases, for the generator `alias`, has their surfaces in tries instead of `starts`."""

MAX_CLASS_BITS: Final = 8

U32: Final = np.dtype("<u4")

DATA: Final = "data.mdb"
SURFACES: Final = "surfaces.marisa"
TRIGRAMS: Final = "surfaces.trigrams"
MANIFEST: Final = "manifest.json"


def fingerprint() -> str:
    """Return the digest of `FORMAT`: eight hexadecimal digits."""
    variants = OPTIONAL["variants"]
    described = [
        FORMAT, TABLES, variants, MAX_KEY, MAX_TOKENS, MAX_CLASS_BITS, CANDIDATE.descr, FOLDING, EDITED
    ]  # fmt: skip
    return hashlib.blake2b(msgspec.json.encode(described), digest_size=4).hexdigest()


def readable_formats() -> dict[int, str]:
    """Return the fingerprint of each format that this kgkit reads."""
    return {**OLDER, FORMAT: fingerprint()}


class SourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where a build's knowledge came from.

    Attributes:
        name: name that people use: `WordNet`.
        version: the source's own: `3.0`.
        licence: licence of use.
        url: address of the source.
        date: date of the source, ISO, if it has one.
        path: path that the builder was given.
        sha256: digest over the files that were read, in order of their names.
    """

    name: str
    version: str = ""
    licence: str = ""
    url: str = ""
    date: str = ""
    path: str = ""
    sha256: str = ""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What a build holds, in stored rows.

    Attributes:
        entities: number of entities by kind.
        relations: stored triples by relation; of a relation that is answered in
            both directions, the one direction that is stored.
        redirects: other keys of entities.
        forms: irregular forms.
        dropped: number of records that could not be kept, by reason.
    """

    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    redirects: int = 0
    forms: int = 0
    dropped: dict[str, int] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a build says of itself.

    Attributes:
        entities: number of entities of all kinds, without those that were retired.
        triples: number of stored triples.
        aliases: distinct folded surfaces.
        alias_rows: pairs of a folded surface and an entity.
        tables: digest of each table's content, in hexadecimal.
        files: size of each file in bytes, but for the manifest's own.
        sha256: digest of each of these files.
        smoothing: number that was added to every count before priors were formed.
        generator: name of the candidate generator that suits the KB: `alias` or `lemma`.
        url_pattern: pattern of the addresses of entities, see `kgkit.urls`; empty if there is none.
        identifiers: names of the attributes that are identifiers of entities elsewhere, as `wikidata`.
        options: options of the build that left something out or added to it: `limit`, `types`, `min_count`,
            `priors`.
        base: the BUILD whose ids are a prefix of this one's.
        added: sources that were added to the first of these bases since, in order.
        retired: number of entities that were retired; their ids stay taken.
        edited: files of changes that were applied to the first of these bases since, in order.
        bases: all builds that it extends, *base* first; of builds of older versions empty.
    """

    format: int
    fingerprint: str
    build: str
    builder: str
    builder_version: str
    kgkit_version: str
    created: str
    source: SourceInfo
    entities: int
    triples: int
    aliases: int
    alias_rows: int
    counts: Counts
    tables: dict[str, str]
    files: dict[str, int]
    sha256: dict[str, str] = {}
    smoothing: float = 0.0
    generator: str = "alias"
    language: str = ""
    url_pattern: str = ""
    identifiers: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    base: str | None = None
    added: tuple[SourceInfo, ...] = ()
    retired: int = 0
    edited: tuple[SourceInfo, ...] = ()
    bases: tuple[str, ...] = ()

    @property
    def id_count(self) -> int:
        """Number of ids that were dealt out, retired ones included: they run from 0 to this less one."""
        return self.entities + self.retired

    @property
    def folding(self) -> Folding:
        """Folding and tokens of the surfaces."""
        return folding(FOLDING if self.format >= FORMAT else 1, self.language)


class SourcePath(msgspec.Struct):
    """The part of `SourceInfo` that a rebuild needs."""

    path: str = ""


class FormatOnly(msgspec.Struct):
    """The one part of a manifest that any version of kgkit can read."""

    format: int = -1
    fingerprint: str = ""
    builder: str = ""
    source: SourcePath = msgspec.field(default_factory=SourcePath)


def build_name(manifest: Manifest) -> str:
    """Return the BUILD that *manifest* describes: a digest of all it says but how, when and where.

    The digests of the tables are part of it, so this names the content; the
    digest of the file is not, as LMDB may lay out equal content differently.
    """
    content = msgspec.to_builtins(
        msgspec.structs.replace(
            manifest,
            build="",
            created="",
            kgkit_version="",
            source=_lasting(manifest.source),
            files={},
            sha256={},
            added=tuple(map(_lasting, manifest.added)),
            edited=tuple(map(_lasting, manifest.edited)),
        )
    )
    del content["options"], content["bases"]
    # Fields younger than the first builds.
    for name in ("added", "url_pattern", "identifiers", "retired", "edited"):
        if not content[name]:
            del content[name]
    return hashlib.blake2b(msgspec.json.encode(content, order="sorted"), digest_size=6).hexdigest()


def _lasting(source: SourceInfo) -> SourceInfo:
    return msgspec.structs.replace(source, path="", date="", url="")
