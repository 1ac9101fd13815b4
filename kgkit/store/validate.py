"""Checking a build against its manifest and against itself.

    file       a file does not have the checksum that was written down, or cannot be read
    name       the build is not named by what its manifest says
    table      a table, or a row of it, cannot be read
    digest     a table's content is not what the manifest says was written
    count      the manifest's numbers are not what the tables hold
    id         entity ids are not 0 … N-1, each in its own record
    key        a key is not answered with its entity
    alias      a row names no entity, or its priors are not those of a distribution
    name       the aliases of an entity are not those that can mean it
    surface    the tries are not of the aliases, or the occurrences of none
    index      the index of similar surfaces is not that of the aliases
    fact       a fact names no entity or relation, or is not answered alike from both its ends

Files come first, and a damaged one ends the check. The tables are read in a
child process (`kgkit.store.child`), as walking the pages of a damaged or crafted
B-tree can end the process. They show what a build did wrong, damage that was
there before the checksums were taken, and checksums that were made to fit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.errors import DamagedKB, KgkitError
from kgkit.store import codec
from kgkit.store.child import table_problems
from kgkit.store.damage import DAMAGE, damage_error
from kgkit.store.layout import DATA, MAX_TOKENS, U32, Manifest, build_name
from kgkit.store.manifest import read_manifest
from kgkit.store.reader import StoreReader
from kgkit.store.surface_index import missing_surfaces
from kgkit.store.trigrams import postings_of
from kgkit.store.writer import Item, TableDigest
from kgkit.types import CANDIDATE, NO_SENSE, Ids, Rows
from kgkit.versions import file_sha256

_BATCH = 8192
_HASHES = 1 << 64
_GRAMS = 512


def verify(folder: Path, *, quick: bool = False) -> list[str]:
    """Check a build and return what is wrong with it, one sentence each; none if it is sound.

    Args:
        folder: folder of the build.
        quick: whether to check the checksums of its files and its name only, and read no table: whatever
            happened to the files since they were written is found, what was wrong before is not.

    Raises:
        NotThere, FormatMismatch, DamagedKB: if it cannot be opened at all.
        MissingExtra: if it has tries, and marisa-trie is not installed.
    """
    manifest = read_manifest(folder)
    problems = list(_files(folder, manifest))
    if not problems and not quick:
        problems = table_problems(folder)
    return [*problems, *_name(folder, manifest)]


def check_tables(folder: Path, manifest: Manifest) -> list[str]:
    """Read the tables of a build and return what is wrong with them, one sentence each.

    Raises:
        NotThere, DamagedKB: if it cannot be opened at all, or a table has no end.
        MissingExtra: if it has tries, and marisa-trie is not installed.
    """
    reader = StoreReader(folder, manifest)
    try:
        return [
            problem
            for check in (
                _entities,
                _keys,
                _aliases,
                _surfaces,
                _trigrams,
                _occurrences,
                _facts,
                _counts_and_meta,
            )
            for problem in check(reader)
        ]
    finally:
        reader.close()


def damages(folder: Path) -> list[str]:
    """Return the problems of a build, its tables unread; none if it is as it was written."""
    try:
        return verify(folder, quick=True)
    except (KgkitError, OSError) as error:
        return [str(error)]


def require_undamaged(folder: Path) -> None:
    """Make sure that the files of a build are as they were written; their checksums say so.

    Raises:
        NotThere, FormatMismatch: as `read_manifest` does.
        DamagedKB: if they are not; says of which build, and what to do.
    """
    if problems := verify(folder, quick=True):
        raise damage_error(folder, problems[0])


def _files(folder: Path, manifest: Manifest) -> Iterator[str]:
    for name in manifest.files:
        try:
            digest = file_sha256(folder / name)
        except FileNotFoundError:
            read_manifest(folder)  # raises: removed a moment ago
            yield f"file: {name} is missing"
        except OSError as error:
            yield f"file: {name} cannot be read: {error.strerror}"
        else:
            if digest != manifest.sha256.get(name):
                yield f"file: {name} is damaged: its checksum is not the one that the manifest has"


def _name(folder: Path, manifest: Manifest) -> Iterator[str]:
    folder = folder.resolve()
    if manifest.build != (right := build_name(manifest)):
        yield f"name: the manifest was changed: what it says makes build {right}, not {manifest.build}"
    elif folder.parent.name == "builds" and folder.name != manifest.build:
        yield f"name: the folder is called {folder.name}, the build {manifest.build}"


def _batches(reader: StoreReader, table: str, problems: list[str]) -> Iterator[list[Item]]:
    """Yield the items of *table*; at the end, note whether they are those that were written.

    Raises:
        DamagedKB: if they are longer than the file: pages that are reached by several ways never end.
    """
    digest, items = TableDigest(), reader.items(table)
    remaining = reader.manifest.files[DATA]
    while True:
        batch: list[Item] = []
        with _decoding(table, problems):
            batch.extend(islice(items, _BATCH))  # what precedes damage is kept
        if not batch:
            break
        remaining -= sum(len(key) + len(row) for key, row in batch)
        if remaining < 0:
            raise damage_error(reader.folder, f"table {table!r} has more in it than its file is long")
        digest.update(batch)
        yield batch
    if digest.hexdigest() != reader.manifest.tables.get(table):
        problems.append(f"digest: table {table!r} is not what was written")


@contextmanager
def _decoding(table: str, problems: list[str]) -> Iterator[None]:
    """Add to *problems* that rows of *table* cannot be read or decoded in the block; go on after it.

    The block reads and decodes, and does nothing else: what a check does wrong is no damage.
    """
    try:
        yield
    except (DamagedKB, *DAMAGE) as error:
        problems.append(_undecodable(table, error))


def _undecodable(table: str, error: Exception | str) -> str:
    if isinstance(error, DamagedKB):  # the reader's sentence tells what to do; here the cause is enough
        return f"table: {table!r} cannot be read: {error.__cause__ or error}"
    return f"table: {table!r} has a row that cannot be decoded: {error}"


def _entities(reader: StoreReader) -> list[str]:
    problems: list[str] = []
    kinds: dict[str, int] = {}
    number, id_of, decode = -1, reader.id_of, codec.decode_entity
    for batch in _batches(reader, "entities", problems):
        for key, row in batch:
            number += 1
            try:
                entity = decode(row)
            except DAMAGE as error:
                problems.append(_undecodable("entities", error))
                continue
            if int.from_bytes(key, "little") != number or entity.id != number:
                problems.append(f"id: the record at place {number} says it is {entity.id}")
            if number in reader.retired:
                continue
            kinds[entity.kind] = kinds.get(entity.kind, 0) + 1
            try:
                answer = id_of(entity.key)
            except DamagedKB as error:
                problems.append(_undecodable("keys", error))
                continue
            if answer != number:
                problems.append(f"key: {entity.key!r} is answered with {answer}, not {number}")
    manifest = reader.manifest
    if number + 1 != manifest.id_count or kinds != manifest.counts.entities:
        problems.append(f"count: {number + 1} entities, the manifest says {manifest.id_count}")
    if any(number >= manifest.id_count for number in reader.retired):
        problems.append("id: an entity was retired that never was there")
    return problems


def _keys(reader: StoreReader) -> list[str]:
    problems: list[str] = []
    manifest, total = reader.manifest, 0
    for batch in _batches(reader, "keys", problems):
        total += len(batch)
        odd = [key for key, number in batch if len(number) != U32.itemsize]
        problems += [_undecodable("keys", f"the one of {key!r} is no number") for key in odd]
        numbers = b"".join(number for _, number in batch if len(number) == U32.itemsize)
        if _without_entity(reader, np.frombuffer(numbers, U32)).any():
            problems.append("key: one names an entity that is not there")
    if total != manifest.entities + manifest.counts.redirects:
        problems.append(f"count: {total} keys of entities and redirects, the manifest says otherwise")
    return problems


def _aliases(reader: StoreReader) -> list[str]:
    problems: list[str] = []
    aliases, decoded, total = 0, 0, 0
    pairs = 0
    for batch in _batches(reader, "aliases", problems):
        rows = [*_decoded_aliases(batch, problems)]
        aliases, decoded = aliases + len(batch), decoded + len(rows)
        meant = _alias_rows([row for row in rows if row.count], reader, problems)
        total += len(meant)
        pairs += _sum_of_pairs([row.key for row in rows], [row.count for row in rows], meant["entity"])
    manifest = reader.manifest
    # How many candidates a row has that cannot be decoded nobody knows.
    if aliases != manifest.aliases or (decoded == aliases and total != manifest.alias_rows):
        problems.append(f"count: {aliases} aliases in {total} rows, the manifest says otherwise")
    return [*problems, *_names(reader, pairs), *_variants(reader)]


def _names(reader: StoreReader, expected: int) -> list[str]:
    """Compare what `names` lists with the pairs of an alias and an entity, of which *expected* is the sum."""
    problems: list[str] = []
    if not reader.has_names:
        return problems
    pairs, is_ordered = 0, True
    for batch in _batches(reader, "names", problems):
        entities, counts, keys = [], [], []
        for entity, row in batch:
            try:
                own = codec.decode_alias_keys(row)
            except DAMAGE as error:
                problems.append(_undecodable("names", error))
                continue
            is_ordered &= all(key < following for key, following in pairwise(own))
            entities.append(int.from_bytes(entity, "little"))
            counts.append(len(own))
            keys += own
        pairs += _sum_of_pairs(keys, [1] * len(keys), np.repeat(np.array(entities, U32), counts))
    if not problems and ((pairs - expected) % _HASHES or not is_ordered):
        problems.append("name: table 'names' does not list for each entity the aliases that can mean it")
    return problems


def _variants(reader: StoreReader) -> list[str]:
    """Look for the aliases that `variants` names; in an edited build some may have gone."""
    problems: list[str] = []
    for batch in _batches(reader, "variants", problems) if "variants" in reader.manifest.tables else ():
        for variant, row in batch:
            with _decoding("variants", problems):
                keys = codec.decode_alias_keys(row)
                if not reader.manifest.edited and any(reader.row("aliases", key) is None for key in keys):
                    problems.append(f"surface: {variant!r} is another writing of an alias that is not there")
    return problems


def _sum_of_pairs(keys: list[bytes], counts: list[int], entities: Ids) -> int:
    """Return the sum of the hashes of pairs of a key and an entity, to be compared modulo `_HASHES`.

    Args:
        keys: keys of aliases.
        counts: number of entities of each of them.
        entities: (sum of *counts*,) ids.
    """
    hashes = np.repeat(np.fromiter(map(hash, keys), np.int64, len(keys)), counts)
    return int(_hash(entities.astype(np.int64), hashes, np.zeros(len(entities), np.int64)).sum())


class _AliasRow(msgspec.Struct, frozen=True, gc=False):
    """A decoded row of `aliases`."""

    key: bytes
    row: bytes
    count: int  # of candidates


def _decoded_aliases(batch: list[Item], problems: list[str]) -> Iterator[_AliasRow]:
    """Yield the rows of *batch* that can be decoded; note the others, and those that mean nothing."""
    head, width = codec.alias_head.size, CANDIDATE.itemsize
    for key, row in batch:
        try:
            count = len(codec.decode_alias(row))
            spellings = codec.spellings(row) if len(row) != head + width * count else ()
        except DAMAGE as error:
            problems.append(_undecodable("aliases", error))
            continue
        if not count:
            problems.append(f"alias: {key!r} means nothing at all")
        for spelling in spellings:
            rows = spelling.rows
            if len(rows) != len(spelling.shares) or any(not 0 <= index < count for index in rows):
                problems.append(f"alias: {key!r} has a spelling of rows that are not there")
        yield _AliasRow(key, row, count)


def _without_entity(reader: StoreReader, ids: Ids) -> NDArray[np.bool_]:
    """Return (N,) which of *ids* are no entity's: that of a retired one is not either."""
    unknown: NDArray[np.bool_] = ids >= reader.id_count
    return unknown | np.isin(ids, sorted(reader.retired)) if reader.retired else unknown


def _alias_rows(batch: list[_AliasRow], reader: StoreReader, problems: list[str]) -> Rows:
    """Return the candidates of the rows in *batch*; note which of them cannot be right."""
    if not batch:
        return np.empty(0, CANDIDATE)
    head, width = codec.alias_head.size, CANDIDATE.itemsize
    counts = np.array([alias.count for alias in batch])
    body = b"".join([alias.row[head : head + width * alias.count] for alias in batch])
    rows, begins = np.frombuffer(body, CANDIDATE), np.append(0, np.cumsum(counts)[:-1])
    lost = _without_entity(reader, rows["entity"])
    lost |= _without_entity(reader, rows["sense"]) & (rows["sense"] != NO_SENSE)
    climbs = np.append(False, np.diff(rows["prior"]) > 0)
    climbs[begins] = False
    wrong_sums = ~(np.abs(np.add.reduceat(rows["prior"].astype(np.float64), begins) - 1) <= 1e-4)  # nan too
    problems.extend(
        f"alias: {batch[index].key!r} names an entity that is not there"
        for index in np.flatnonzero(np.logical_or.reduceat(lost, begins)).tolist()
    )
    problems.extend(
        f"alias: the priors of {batch[index].key!r} do not descend to a sum of 1"
        for index in np.flatnonzero(np.logical_or.reduceat(climbs, begins) | wrong_sums).tolist()
    )
    return rows


def _surfaces(reader: StoreReader) -> list[str]:
    """Look for every alias of several tokens in the tries, or for its first two in `starts`."""
    tries, matches, lost = reader.surfaces, 0, []
    if tries is None:
        return []
    problems: list[str] = []
    surfaces = reader.iter_surfaces()
    while True:
        batch: list[str] = []
        with _decoding("aliases", problems):
            batch.extend(islice(surfaces, _BATCH))
        if not batch:
            break
        for surface in batch:
            if surface in tries:
                matches += 1
            elif 1 < len(parts := reader.folding.tokens(surface)) <= MAX_TOKENS:
                with _decoding("starts", problems):
                    if parts[1] not in (reader.starts(parts[0]) or ()):
                        lost.append(surface)
    problems += [f"surface: {surface!r} is in no trie and not in table 'starts'" for surface in lost]
    if matches != len(tries) and not (reader.manifest.edited and matches < len(tries)):
        problems.append(f"surface: the tries have {len(tries)} surfaces, of which {matches} are aliases")
    return problems


def _trigrams(reader: StoreReader) -> list[str]:
    """Compare the index of surfaces with the aliases, and with the grams of its own surfaces."""
    index = reader.trigrams
    if index is None:
        return []
    counts: NDArray[np.int64] = np.diff(index.starts.astype(np.int64)).astype(np.int64)
    if index.starts[0] or (counts < 0).any() or int(index.starts[-1]) != len(index.postings):
        return ["index: its grams and its postings do not fit each other"]
    problems: list[str] = []
    with _decoding("aliases", problems):
        keys = (key for key, _ in reader.items("aliases") if not key.startswith(codec.DIGEST))
        if missing_surfaces(keys, index) != []:
            problems.append("index: the surfaces in it are not the aliases")
    if index.labels is not None:
        with _decoding("entities", problems):
            if not index.labels.same_as(reader.read_uncontained_labels()):
                problems.append("index: the labels in it are not those that no surface contains")
    if not index.has_grams_of_today:
        return problems
    expected = stored = 0
    surfaces, begin = index.surfaces(), 0
    while batch := list(islice(surfaces, _BATCH)):
        postings = postings_of(batch)
        numbers = (postings & np.uint64(NO_SENSE)).astype(np.int64) + begin
        expected += _hash_sum((postings >> np.uint64(32)).astype(np.int64), numbers)
        begin += len(batch)
    for row in range(0, len(counts), _GRAMS):
        grams = np.repeat(index.grams[row : row + _GRAMS].astype(np.int64), counts[row : row + _GRAMS])
        first = int(index.starts[row])
        stored += _hash_sum(grams, index.postings[first : first + len(grams)].astype(np.int64))
    if (expected - stored) % _HASHES:
        problems.append("index: the grams in it are not those of its surfaces")
    return problems


def _hash_sum(grams: NDArray[np.int64], numbers: NDArray[np.int64]) -> int:
    return int(_hash(grams, np.zeros_like(grams), numbers).sum(dtype=np.uint64))


def _occurrences(reader: StoreReader) -> list[str]:
    """Look at what is said of how often surfaces occur, where it is."""
    problems: list[str] = []
    if not reader.has_occurrences:
        return problems
    for batch in _batches(reader, "occurrences", problems):
        for key, row in batch:
            alias: bytes | None = b""
            with _decoding("aliases", problems):
                alias = reader.row("aliases", key)
            if alias is None:
                problems.append(f"surface: {key!r} occurs and is no alias")
            try:
                codec.decode_occurrences(row)
            except ValueError as error:
                problems.append(f"surface: the occurrences of {key!r} are {error}")
    return problems


def _facts(reader: StoreReader) -> list[str]:
    """Compare what is said with what is heard, relation by relation, as sums of hashes, in any order."""
    problems: list[str] = []
    relations = reader.relations
    names = [name for name, inverse in relations for name in (name, inverse or name)]
    inverses = np.array(
        [c for code, (name, inverse) in enumerate(relations) for c in _reverse(2 * code, name == inverse)],
        np.int64,
    )
    has_no_inverse = np.repeat([inverse is None for _, inverse in relations], 2).astype(bool)
    symmetric = np.repeat([name == inverse for name, inverse in relations], 2).astype(bool)
    forward, backward = np.zeros(len(names), np.uint64), np.zeros(len(names), np.uint64)
    stored = np.zeros(len(names), np.int64)
    for table in ("facts", "incoming"):
        for batch in _batches(reader, table, problems):
            odd = [key for key, row in batch if len(row) % 8]
            problems += [_undecodable(table, f"the one of {key.hex()} has half a fact") for key in odd]
            owner, other, code = _columns([item for item in batch if not len(item[1]) % 8])
            ends = np.concatenate([owner, other])
            if _without_entity(reader, ends).any() or (code >= len(names)).any():
                problems.append(f"fact: table {table!r} has one of an unknown end or relation")
                continue
            if table == "incoming":
                np.add.at(backward, code, _hash(other, code, owner))
                continue
            np.add.at(forward, code, _hash(owner, code, other))
            both = ~has_no_inverse[code]
            back = inverses[code[both]]
            np.add.at(backward, back, _hash(other[both], back, owner[both]))
            stored += np.bincount(code[~symmetric[code] | (owner <= other)], minlength=len(names))
    problems.extend(
        f"fact: relation {names[code]!r} is not answered alike from both its ends"
        for code in np.flatnonzero(forward != backward).tolist()
    )
    counts = {name: int(stored[2 * index]) for index, (name, _) in enumerate(relations)}
    if counts != reader.manifest.counts.relations or sum(counts.values()) != reader.manifest.triples:
        problems.append(f"count: {sum(counts.values())} triples, the manifest says {reader.manifest.triples}")
    return problems


def _reverse(code: int, symmetric: bool) -> tuple[int, int]:
    return (code, code + 1) if symmetric else (code + 1, code)


def _columns(batch: list[Item]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return `(owner, other, code)` of every fact in *batch*, each (F,)."""
    counts = [len(row) >> 3 for _, row in batch]
    owners = np.frombuffer(b"".join([key for key, _ in batch]), "<u4").astype(np.int64)
    neighbours = b"".join([row[: 4 * count] for (_, row), count in zip(batch, counts, strict=True)])
    codes = b"".join([row[4 * count :] for (_, row), count in zip(batch, counts, strict=True)])
    return (
        np.repeat(owners, counts),
        np.frombuffer(neighbours, U32).astype(np.int64),
        np.frombuffer(codes, U32).astype(np.int64),
    )


def _hash(
    subject: NDArray[np.int64], code: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return (F,) well mixed numbers, one for each fact (the finalizer of splitmix64)."""
    mixed: NDArray[np.uint64] = (subject << 32 | other).astype(np.uint64) ^ (
        code.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    )
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _counts_and_meta(reader: StoreReader) -> list[str]:
    problems: list[str] = []
    totals = dict.fromkeys(("starts", "forms", "meta"), 0)
    decoders: dict[str, Callable[[bytes], object]] = {
        "starts": codec.decode_starts,
        "forms": codec.decode_forms,
        "meta": len,
    }
    for table, decode in decoders.items():
        for batch in _batches(reader, table, problems):
            totals[table] += len(batch)
            for _, row in batch:
                with _decoding(table, problems):
                    decode(row)
    if totals["forms"] != reader.manifest.counts.forms:
        problems.append(f"count: {totals['forms']} irregular forms, the manifest says otherwise")
    try:
        classes = reader.class_of_entity()
    except DamagedKB as error:
        return [*problems, _undecodable("meta", error)]
    if len(classes) != reader.id_count or (classes > len(reader.classes)).any():
        problems.append("count: the parts of speech are not those of the entities")
    return problems
