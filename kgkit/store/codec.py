"""From records to bytes and back; the rows are described in `layout`."""

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.store.layout import MAX_KEY, MAX_ROWS, U32
from kgkit.types import CANDIDATE, Candidates, Entity, Ids, Rows


class EntityKey(msgspec.Struct, array_like=True, gc=False):
    """The first field of a stored entity, for when no more is wanted."""

    key: str


class Spelling(msgspec.Struct, array_like=True, gc=False):
    """One exact surface of a folded alias: which rows it was seen with, and how much of each."""

    surface: str
    rows: list[int]
    shares: list[float]


class Shard(msgspec.Struct, array_like=True, frozen=True):
    """One trie of the file `surfaces.marisa`.

    Attributes:
        first: text from which on texts are sought in it, up to the `first` of the next.
        offset: position in the file, in bytes.
        size: its length in bytes.
        count: the surfaces that are in no trie before it.
    """

    first: str
    offset: int
    size: int
    count: int


encode = msgspec.msgpack.Encoder().encode
decode_entity = msgspec.msgpack.Decoder(Entity).decode
decode_key = msgspec.msgpack.Decoder(EntityKey).decode
decode_starts = msgspec.msgpack.Decoder(dict[str, int]).decode
decode_forms = msgspec.msgpack.Decoder(list[tuple[str, str]]).decode
decode_spellings = msgspec.msgpack.Decoder(list[Spelling]).decode
decode_shards = msgspec.msgpack.Decoder(list[Shard]).decode
decode_alias_keys = msgspec.msgpack.Decoder(list[bytes]).decode
decode_names = msgspec.msgpack.Decoder(list[str]).decode
decode_relations = msgspec.msgpack.Decoder(list[tuple[str, str | None]]).decode

alias_head = struct.Struct("<If")
pack_id = struct.Struct("<I").pack
_OCCURRENCES = struct.Struct("<ff")
# A candidate and a neighbour, their ids left as the keys of `entities` that they are.
unpack_candidates = struct.Struct("<4s4sf").iter_unpack
unpack_ids = struct.Struct("4s").iter_unpack
DIGEST = b"\xff"  # a key begins so if it is the digest of one that LMDB would not take; no UTF-8 does
SHORT = MAX_KEY // 4  # a key of so many characters fits LMDB, whatever they are
_HEAD = alias_head.size
SINGLE = _HEAD + CANDIDATE.itemsize  # the length of a row of one candidate, spelled as it is folded
_SENSE = _HEAD + U32.itemsize  # where the sense of the first candidate begins
_PRECISION = 1e-5  # of a count that was taken from a prior
_frombuffer, _add = np.frombuffer, np.add.reduce


def bounded_key(text: str) -> bytes:
    """Return *text* as an LMDB key: its UTF-8, or the digest of one that LMDB would not take."""
    try:
        key = text.encode()
    except UnicodeEncodeError:  # lone surrogates: no UTF-8 either
        key = text.encode("utf-8", "surrogatepass")
    else:
        if 0 < len(key) <= MAX_KEY:
            return key
    # Digests and texts never meet. LMDB takes no empty key either.
    return DIGEST + hashlib.blake2b(key, digest_size=32).digest()


def decode_facts(row: bytes) -> tuple[Ids, Ids]:
    """Return `(others, relations)`, views of *row*, each (n,) uint32."""
    count = len(row) >> 3
    return np.frombuffer(row, U32, count), np.frombuffer(row, U32, count, 4 * count)


def decode_alias(row: bytes, spelled: str | None = None) -> Candidates:
    """Return the candidates of one alias, views of *row*.

    Args:
        row: a value of `aliases`.
        spelled: surface as the text has it: rows that were seen in this very
            spelling are preferred. None treats all spellings alike.
    """
    if len(row) == SINGLE:  # as most are
        return Candidates(_frombuffer(row, CANDIDATE, 1, _HEAD))
    count = alias_head.unpack_from(row)[0] & MAX_ROWS
    rows = _frombuffer(row, CANDIDATE, count, _HEAD)
    if spelled is not None and count > 1 and len(row) > _HEAD + CANDIDATE.itemsize * count:
        return _prefer(rows, spellings(row), spelled)
    return Candidates(rows)


def join_rows(items: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return one row of several aliases: candidates share what all weigh, spellings stay theirs.

    Args:
        items: keys and values of `aliases`, at least one.
    """
    rows = [row for _, row in items]
    if len(rows) == 1:
        return rows[0]
    weights: dict[int, tuple[float, int]] = {}
    for row in rows:
        for entity, sense, prior in decode_alias(row).rows.tolist():
            weight, first = weights.get(entity, (0.0, sense))
            weights[entity] = weight + prior * (total(row) or 1), first
    ordered = sorted(weights.items(), key=lambda item: -item[1][0])
    weight_of_all = sum(weight for weight, _ in weights.values())
    candidates = np.array(
        [(entity, sense, weight / weight_of_all) for entity, (weight, sense) in ordered], CANDIDATE
    )
    place = {entity: index for index, (entity, _) in enumerate(ordered)}
    tail = []
    for key, row in items:
        entities = decode_alias(row).ids.tolist()
        for spelling in spellings(row) or [Spelling(key.decode(errors="replace"), [], [])]:
            indexes = spelling.rows or [*range(len(entities))]
            shares = spelling.shares or [1.0] * len(indexes)
            tail.append((spelling.surface, [place[entities[index]] for index in indexes], shares))
    bits = 0
    for row in rows:
        bits |= classes(row)
    head = alias_head.pack(len(ordered) | bits << 24, sum(map(total, rows)))
    return head + candidates.tobytes() + encode(tail)


def senses_of_rows(rows: Sequence[bytes]) -> tuple[Ids, NDArray[np.int64]]:
    """Return `(senses, indexes)`, each (C,): the sense of every candidate, and which of *rows* it is in.

    Args:
        rows: values of `aliases`.
    """
    joined = np.frombuffer(b"".join(rows), np.uint8)
    begins = np.cumsum([0, *map(len, rows)])[: len(rows)]
    counts = (joined[begins[:, None] + np.arange(4)].view(U32)[:, 0] & MAX_ROWS).astype(np.int64)
    indexes = np.repeat(np.arange(len(rows)), counts)
    within = np.arange(len(indexes)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = begins[indexes] + _SENSE + CANDIDATE.itemsize * within
    return joined[positions[:, None] + np.arange(U32.itemsize)].view(U32)[:, 0], indexes


def pack_occurrences(count: float, linked: float) -> bytes:
    """Return the row of how often a surface occurs, and how often as a link; every writer makes it here.

    Raises:
        ValueError: if `decode_occurrences` could not read it: 32-bit floats make 0 of 1e-50.
    """
    try:
        row = _OCCURRENCES.pack(count, linked)
    except OverflowError:
        raise ValueError(f"{linked:g} links of {count:g} occurrences") from None
    decode_occurrences(row)
    return row


def decode_occurrences(row: bytes) -> tuple[float, float]:
    """Return how often a surface occurs, and how often as a link.

    Raises:
        ValueError: if *row* cannot say so.
    """
    if len(row) != _OCCURRENCES.size:
        raise ValueError(f"a row of {len(row)} bytes instead of {_OCCURRENCES.size}")
    count, linked = _OCCURRENCES.unpack(row)
    if not 0 <= linked <= count < math.inf or not count:
        raise ValueError(f"{linked} links of {count} occurrences")
    return count, linked


def classes(row: bytes) -> int:
    """Return the bits of the classes among an alias's entities."""
    return row[3]


def total(row: bytes) -> float:
    """Return the weight that an alias's priors share out."""
    weight: float = alias_head.unpack_from(row)[1]
    return weight


def is_counted(row: bytes, smoothing: float) -> bool:
    """Say whether any meaning of an alias was counted, or the weights are of the smoothing alone.

    Args:
        row: a value of `aliases`.
        smoothing: smoothing of the build.
    """
    size, weight = alias_head.unpack_from(row)
    return bool(weight > smoothing * (size & MAX_ROWS) * (1 + _PRECISION))


def has_spellings(row: bytes) -> bool:
    """Say whether an alias was seen in another spelling than the folded one."""
    size = len(row)
    if size == SINGLE:
        return False
    count: int = alias_head.unpack_from(row)[0] & MAX_ROWS
    return size > _HEAD + CANDIDATE.itemsize * count


def prefers(row: bytes, spelled: str) -> bool:
    """Say whether an alias has other candidates, or in another order, where a text spells it so.

    If not, `decode_alias` gives the same with and without the spelling.
    """
    if len(row) == SINGLE:
        return False
    count: int = alias_head.unpack_from(row)[0] & MAX_ROWS
    tail = row[_HEAD + CANDIDATE.itemsize * count :]
    return (
        bool(tail) and count > 1 and any(spelling.surface == spelled for spelling in decode_spellings(tail))
    )


def spellings(row: bytes) -> list[Spelling]:
    """Return the exact surfaces of an alias; none if its key in the table is the only one."""
    tail = row[alias_head.size + (alias_head.unpack_from(row)[0] & MAX_ROWS) * CANDIDATE.itemsize :]
    return decode_spellings(tail) if tail else []


def alias_counts(folded: bytes, row: bytes, smoothing: float) -> Iterator[tuple[str, int, int, float]]:
    """Yield `(exact surface, entity, sense, count)` of one alias, best first: what its row was made of.

    Counts are to the precision of the priors, which are 32-bit floats: an
    integer up to a few million comes back as itself.

    Args:
        folded: the key of the row in `aliases`.
        row: its value.
        smoothing: smoothing of the build.
    """
    rows = decode_alias(row).rows
    weights = rows["prior"].astype(np.float64) * total(row)
    ways: list[list[tuple[str, float]]] = [[] for _ in rows]
    alternatives = spellings(row)
    for spelling in alternatives:
        if not spelling.rows:
            ways = [[(spelling.surface, 1.0)]] * len(rows)
        for index, share in zip(spelling.rows, spelling.shares, strict=True):
            ways[index].append((spelling.surface, share))
    if not alternatives:
        ways = [[(folded.decode(errors="replace"), 1.0)]] * len(rows)
    for (entity, sense, _), weight, spelled in zip(rows.tolist(), weights.tolist(), ways, strict=True):
        for surface, count in _counts(spelled, weight, smoothing):
            yield surface, entity, sense, count


def surfaces_of(
    entity: int, folded: bytes, row: bytes, smoothing: float
) -> Iterator[tuple[str, float, float, int]]:
    """Yield `(exact surface, prior, count, sense)` of one entity among those that an alias can mean.

    The prior is the one that `decode_alias` gives for that spelling; the count is as in `alias_counts`.

    Args:
        entity: id of the entity, which is one of them.
        folded: the key of the row in `aliases`.
        row: its value.
        smoothing: smoothing of the build.

    Raises:
        IndexError: if the alias cannot mean it.
    """
    rows = decode_alias(row).rows
    index = int(np.flatnonzero(rows["entity"] == entity)[0])
    _, sense, prior = rows[index].item()
    alternatives = spellings(row)
    spelled = [
        (spelling.surface, spelling.shares[spelling.rows.index(index)] if spelling.rows else 1.0)
        for spelling in alternatives
        if not spelling.rows or index in spelling.rows
    ]
    for surface, count in _counts(
        spelled or [(folded.decode(errors="replace"), 1.0)], float(prior) * total(row), smoothing
    ):
        if len(alternatives) > 1 and len(rows) > 1:
            preferred = _prefer(rows, alternatives, surface)
            prior = preferred.priors[preferred.ids == entity].item()
        yield surface, prior, count, sense


def _counts(
    spelled: Sequence[tuple[str, float]], weight: float, smoothing: float
) -> Iterator[tuple[str, float]]:
    """Yield each spelling of a pair of a folded surface and an entity with its count.

    Args:
        spelled: spellings, each with its share of the weight.
        weight: weight of the pair, smoothing included.
        smoothing: smoothing of the build.
    """
    # A build smooths the pair, and each of its spellings when it shares the pair out among them.
    pair_total = max(weight - smoothing, 0.0) + smoothing * len(spelled)
    for surface, share in spelled:
        yield surface, _tidy(share * pair_total - smoothing)


def _tidy(count: float) -> float:
    """Return the integer that *count* was before it became part of a prior, if it is near enough to one."""
    integer = round(count)
    near = abs(count - integer) <= _PRECISION * max(integer, 1)
    return float(integer) if near else max(count, 0.0)


def _prefer(rows: Rows, alternatives: Sequence[Spelling], spelled: str) -> Candidates:
    """Average p(entity | folded surface) and p(entity | the surface as spelled).

    The exact spelling is evidence, not proof (a sentence may begin with it), so
    it decides half. Where the spelling was never seen, or is the only one,
    p(entity | folded) stands.
    """
    exact = next((spelling for spelling in alternatives if spelling.surface == spelled), None)
    if exact is None or not exact.rows:
        return Candidates(rows)
    recorded = rows["prior"]
    exact_shares = np.zeros(len(rows), np.float32)
    exact_shares[exact.rows] = exact.shares
    weighed = exact_shares * recorded
    if not (total := _add(weighed)):  # nobody counted what this spelling means
        weighed = exact_shares
        if not (total := _add(weighed)):  # nor, of what it means, this spelling
            weighed[exact.rows] = 1
            total = _add(weighed)
    priors = (recorded + weighed / total) / 2
    order = (-priors).argsort(kind="stable")
    preferred = rows[order]
    preferred["prior"] = priors[order]
    return Candidates(preferred)
