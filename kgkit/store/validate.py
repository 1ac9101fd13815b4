"""Checking a build against its manifest and against itself.

    digest     a table's content is not what the manifest says was written
    count      the manifest's numbers are not what the tables hold
    id         entity ids are not 0 … N-1, each in its own record
    key        a key is not answered with its entity
    alias      a row names no entity, or its priors are not those of a distribution
    fact       a fact names no entity or relation, or its inverse is missing
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kgkit.store import codec
from kgkit.store.layout import TABLES
from kgkit.store.reader import StoreReader
from kgkit.store.writer import TableDigest
from kgkit.types import NO_SENSE

_BATCH = 8192


def verify(folder: Path) -> list[str]:
    """Read a whole build and return what is wrong with it, one sentence each; none if it is sound.

    Raises:
        NotThere, FormatMismatch, DamagedKB: if it cannot be opened at all.
    """
    reader = StoreReader.open(folder)
    try:
        problems = [*_digests(reader), *_entities(reader), *_aliases(reader), *_facts(reader)]
    finally:
        reader.close()
    return problems


def _digests(reader: StoreReader) -> Iterator[str]:
    for table in TABLES:
        digest, batch = TableDigest(), []
        for item in reader.items(table):
            batch.append(item)
            if len(batch) == _BATCH:
                digest.update(batch)
                batch = []
        digest.update(batch)
        if digest.hexdigest() != reader.manifest.tables.get(table):
            yield f"digest: table {table!r} is not what was written"


def _entities(reader: StoreReader) -> Iterator[str]:
    kinds: dict[str, int] = {}
    number = -1
    for number, (key, row) in enumerate(reader.items("entities")):
        entity = codec.decode_entity(row)
        kinds[entity.kind] = kinds.get(entity.kind, 0) + 1
        if int.from_bytes(key, "big") != number or entity.id != number:
            yield f"id: the record at place {number} says it is {entity.id}"
        if reader.id_of(entity.key) != number:
            yield f"key: {entity.key!r} is answered with {reader.id_of(entity.key)}, not {number}"
    manifest = reader.manifest
    if number + 1 != manifest.entities or kinds != manifest.counts.entities:
        yield f"count: {number + 1} entities, the manifest says {manifest.entities}"


def _aliases(reader: StoreReader) -> Iterator[str]:
    total, aliases, size = 0, 0, reader.manifest.entities
    for key, row in reader.items("aliases"):
        found = codec.decode_alias(row)
        aliases, total = aliases + 1, total + len(found)
        senses = found.senses[found.senses != NO_SENSE]
        if (found.ids >= size).any() or (senses >= size).any():
            yield f"alias: {key!r} names an entity that is not there"
        if abs(float(found.priors.sum()) - 1) > 1e-4 or (np.diff(found.priors) > 0).any():
            yield f"alias: the priors of {key!r} do not descend to a sum of 1"
    manifest = reader.manifest
    if (aliases, total) != (manifest.aliases, manifest.alias_rows):
        yield f"count: {aliases} aliases in {total} rows, the manifest says otherwise"


def _facts(reader: StoreReader) -> Iterator[str]:
    relations, size = reader.relations, reader.manifest.entities
    stored = 0
    for number, others, codes in reader.iter_facts():
        if (others >= size).any() or (codes >= 2 * len(relations)).any():
            yield f"fact: entity {number} has a fact with an unknown end or relation"
            continue
        for other, code in zip(others.tolist(), codes.tolist(), strict=True):
            name, inverse = relations[code >> 1]
            stored += not code & 1 and (name != inverse or number <= other)
            back = reader.incoming(other) if inverse is None else reader.facts(other)
            wanted = code if inverse is None or name == inverse else code ^ 1
            if back is None or not ((back[0] == number) & (back[1] == wanted)).any():
                yield f"fact: {number} {name} {other} is not answered from its other end"
    if stored != reader.manifest.triples:
        yield f"count: {stored} triples, the manifest says {reader.manifest.triples}"
