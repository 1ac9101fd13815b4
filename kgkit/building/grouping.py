"""From a stream of records to the tables of a build, in memory.

Entities go straight to the store, in the order they come. Everything else
names them by key; a key gets a provisional number when it is first seen, and
numbers are exchanged for ids once all entities are known.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kgkit.errors import SourceError
from kgkit.store import codec
from kgkit.store.layout import MAX_CLASS_BITS, MAX_TOKENS, Counts
from kgkit.store.writer import Item, StoreWriter
from kgkit.text import fold, tokens
from kgkit.types import CANDIDATE, NO_SENSE, Alias, Entity, Form, Record, Redirect, Triple

Numbers = NDArray[np.int64]

_BATCH = 8192
_NONE = -1


class _Numbering(dict[str, int]):
    """Numbers names from 0 in the order in which they are asked for."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__((name, place) for place, name in enumerate(names))

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


class Grouped(NamedTuple):
    """How much came of the records."""

    entities: int
    triples: int
    aliases: int
    alias_rows: int
    counts: Counts


class Grouper:
    """Takes records one by one, then writes the tables that depend on all of them.

    Args:
        store: where entities are written as they come.
        inverses, smoothing: as in `Builder`.
    """

    def __init__(self, store: StoreWriter, *, inverses: Mapping[str, str], smoothing: float) -> None:
        self.store, self.inverses, self.smoothing = store, inverses, smoothing
        self._numbers = _Numbering()  # provisional number of each key
        self._ids = array("q")  # id of each provisional number, or _NONE
        self._rows: list[Item] = []
        self._kinds: Counter[str] = Counter()
        self._classes = _Numbering([""])
        self._class_of = bytearray()
        self._relations = _Numbering()
        self._triples = array("q")  # subject, relation, object
        self._surfaces = _Numbering()
        self._aliases = array("q")  # surface, entity, sense
        self._weights = array("d")
        self._redirects: dict[str, str] = {}
        self._forms: dict[str, list[tuple[str, str]]] = {}

    def take(self, records: Iterable[Record]) -> None:
        """Take in *records*.

        Raises:
            SourceError: if an entity's key has come before.
        """
        number, relation, surface = self._numbers, self._relations, self._surfaces
        add_triple, add_alias, add_weight = self._triples.extend, self._aliases.extend, self._weights.append
        for record in records:
            kind = type(record)
            if kind is Triple:
                add_triple((number[record.subject], relation[record.relation], number[record.object]))
            elif kind is Entity:
                self._take_entity(record)
            elif kind is Alias:
                sense = record.sense
                add_alias((surface[record.surface], number[record.key], _NONE if sense is None else number[sense]))
                add_weight(record.count)
            elif kind is Redirect:
                self._redirects.setdefault(record.source, record.target)
            elif kind is Form:
                self._forms.setdefault(fold(record.surface), []).append((fold(record.lemma), record.pos))
            else:
                raise TypeError(f"a builder yielded {kind.__name__}, which is no record")

    def _take_entity(self, entity: Entity) -> None:
        key, label, description, node, pos, types, attributes, _ = structs.astuple(entity)
        number, ids, rows = self._numbers[key], self._ids, self._rows
        if number == len(ids):
            ids.append(_NONE)
        elif number > len(ids):
            ids.extend([_NONE] * (number + 1 - len(ids)))
        if ids[number] != _NONE:
            raise SourceError(f"two entities have the key {key!r}: keys must be unique")
        new = ids[number] = len(self._class_of)
        self._class_of.append(self._classes[pos])
        self._kinds[node] += 1
        rows.append((codec.pack_id(new), codec.encode((key, label, description, node, pos, types, attributes, new))))
        if len(rows) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        self.store.append("entities", self._rows)
        self._rows.clear()

    def write(self) -> Grouped:
        """Write every table and return the counts."""
        self._flush()
        ids, redirects, dropped = self._resolve()
        triples, relations, stored = self._write_facts(ids, dropped)
        aliases, alias_rows = self._write_aliases(ids, dropped)
        self.store.append(
            "forms",
            sorted((codec.bounded_key(form), codec.encode(lemmas)) for form, lemmas in self._forms.items()),
        )
        classes = sorted(self._classes, key=self._classes.__getitem__)[1:]
        self.store.append(
            "meta",
            [
                (b"class_of_entity", bytes(self._class_of)),
                (b"classes", codec.encode(classes)),
                (b"relations", codec.encode(relations)),
            ],
        )
        counts = Counts(
            entities=dict(self._kinds),
            relations=stored,
            redirects=redirects,
            forms=len(self._forms),
            dropped={reason: count for reason, count in sorted(dropped.items()) if count},
        )
        return Grouped(len(self._class_of), triples, aliases, alias_rows, counts)

    def _resolve(self) -> tuple[Numbers, int, dict[str, int]]:
        """Write `keys`; return the id of every provisional number, redirects followed."""
        numbers, redirects = self._numbers, self._redirects
        ids = np.full(len(numbers), _NONE, np.int64)
        ids[: len(self._ids)] = self._ids
        known = {key: int(ids[number]) for key, number in numbers.items() if ids[number] != _NONE}
        dropped = {"redirect in a loop": 0, "redirect to no entity": 0}
        kept = 0
        for source in redirects:
            if source in known:
                continue  # an entity's own key is not redirected
            seen, target = {source}, redirects[source]
            while target not in known and target in redirects and target not in seen:
                seen.add(target)
                target = redirects[target]
            if target in known:
                for key in seen:  # shortens every chain that comes through here
                    known[key] = known[target]
                    if (number := numbers.get(key)) is not None:
                        ids[number] = known[target]
                kept += len(seen)
            else:
                dropped["redirect in a loop" if target in seen else "redirect to no entity"] += 1
        items = sorted((codec.bounded_key(key), codec.pack_id(entity)) for key, entity in known.items())
        self.store.append("keys", items)
        return ids, kept, dropped

    # -- facts --------------------------------------------------------------

    def _write_facts(
        self, ids: Numbers, dropped: dict[str, int]
    ) -> tuple[int, list[tuple[str, str | None]], dict[str, int]]:
        """Write `facts` and `incoming`; return triples stored, the relations, triples by relation."""
        size = len(self._class_of)
        table = np.frombuffer(self._triples, np.int64).reshape(-1, 3)
        subject, relation, other = ids[table[:, 0]], table[:, 1], ids[table[:, 2]]
        real = (subject != _NONE) & (other != _NONE)
        dropped["triple with an unknown end"] = int((~real).sum())
        subject, relation, other = subject[real], relation[real], other[real]
        # The first of equal triples stays, in the order of the source.
        _, first = np.unique((relation * size + subject) * size + other, return_index=True)
        dropped["triple written twice"] = len(subject) - len(first)
        first.sort()
        subject, relation, other = subject[first], relation[first], other[first]

        written = {
            name: (subject[relation == place], other[relation == place])
            for name, place in self._relations.items()
        }
        pairs = _pair(written, self.inverses, size)
        stored = {name: _stored(*written[name], symmetric=name == inverse) for name, inverse in pairs}

        codes = np.zeros(len(self._relations), np.int64)
        one_way, turned = np.zeros(len(self._relations), bool), []
        for place, (name, inverse) in enumerate(pairs):
            codes[self._relations[name]] = 2 * place
            one_way[self._relations[name]] = inverse is None
            if inverse in self._relations and inverse != name:
                codes[self._relations[inverse]] = 2 * place + 1
            elif inverse is not None and inverse != name:
                # The source gives one direction only: the other is answered from it.
                ends = written[name]
                turned.append((ends[1], np.full(len(ends[0]), 2 * place + 1), ends[0]))
        code, back = codes[relation], one_way[relation]
        facts = [(subject, code, other), *turned]
        self.store.append("facts", _rows(*map(np.concatenate, zip(*facts, strict=True))))
        self.store.append("incoming", _rows(other[back], code[back], subject[back]))
        return sum(stored.values()), pairs, stored

    # -- aliases ------------------------------------------------------------

    def _write_aliases(self, ids: Numbers, dropped: dict[str, int]) -> tuple[int, int]:
        """Write `aliases` and `starts`; return how many aliases there are, and rows."""
        surfaces = list(self._surfaces)
        folded = [fold(surface) for surface in surfaces]
        names = {name: place for place, name in enumerate(sorted(set(folded), key=codec.bounded_key))}
        name_of = np.array([names[name] for name in folded], np.int64)
        table = np.frombuffer(self._aliases, np.int64).reshape(-1, 3)
        surface, entity = table[:, 0], ids[table[:, 1]]
        sense = np.where(table[:, 2] == _NONE, _NONE, ids[table[:, 2]])
        name = name_of[surface]
        empty = names.get("", _NONE)
        real = (entity != _NONE) & (name != empty)
        dropped["alias of no entity"] = int((entity == _NONE).sum())
        dropped["alias without a character"] = int((name == empty).sum())
        rows = _alias_rows(
            name[real], surface[real], entity[real], sense[real], np.frombuffer(self._weights)[real], self.smoothing
        )
        kept = sorted(names, key=names.__getitem__)
        class_of = np.frombuffer(bytes(self._class_of), np.uint8)
        written = [0]
        self.store.append("aliases", _alias_items(rows, kept, surfaces, class_of, written))
        present = np.zeros(len(names), bool)
        present[rows.name] = True
        self.store.append(
            "starts", _starts(surface for surface, place in zip(surfaces, name_of, strict=True) if present[place])
        )
        return written[0], len(rows.name)


def _pair(
    written: Mapping[str, tuple[Numbers, Numbers]], inverses: Mapping[str, str], size: int
) -> list[tuple[str, str | None]]:
    """Return `(relation, its inverse or None)`; a pair stands once, under the direction that is stored."""
    pairs: list[tuple[str, str | None]] = []
    taken: set[str] = set()
    for name, (subjects, objects) in written.items():
        if name in taken:
            continue
        inverse = inverses.get(name)
        declared = [key for key, value in inverses.items() if value == name and key != name and key in written]
        if inverse is None and declared:
            continue  # its other direction is the stored one and decides
        if inverse is not None:
            there = np.unique(subjects * size + objects)
            back = written.get(inverse)
            agrees = back is None or np.array_equal(there, np.unique(back[1] * size + back[0]))
            if not agrees:
                inverse = None
            else:
                taken.add(inverse)
        pairs.append((name, inverse))
    named = {name for pair in pairs for name in pair}
    # Declared pairs that do not agree: the second direction stands for itself.
    pairs.extend((name, None) for name in written if name not in named)
    return pairs


def _stored(subjects: Numbers, objects: Numbers, *, symmetric: bool) -> int:
    return int((subjects <= objects).sum()) if symmetric else len(subjects)


def _rows(entity: Numbers, code: Numbers, other: Numbers) -> Iterator[Item]:
    """Yield one row per entity, its facts in the order of the source."""
    order = np.argsort(entity, kind="stable")
    entity = entity[order]
    others, codes = other[order].astype("<u4"), code[order].astype("<u4")
    owners, begins = np.unique(entity, return_index=True)
    ends = np.append(begins[1:], len(entity))
    for owner, begin, end in zip(owners.tolist(), begins.tolist(), ends.tolist(), strict=True):
        yield codec.pack_id(owner), codec.encode_facts(others[begin:end], codes[begin:end])


class _AliasRows(NamedTuple):
    """One row per (folded surface, entity), best first within a surface; spellings beside them."""

    name: Numbers
    entity: Numbers
    sense: Numbers
    weight: NDArray[np.float64]
    # One per (row, exact surface), in row order.
    spelled_row: Numbers
    spelled_surface: Numbers
    spelled_share: NDArray[np.float64]


def _alias_rows(
    name: Numbers, surface: Numbers, entity: Numbers, sense: Numbers, weight: NDArray[np.float64], smoothing: float
) -> _AliasRows:
    """Add up equal pairs; the sense is that of the pair seen first, ties stay in the order of the source."""
    if not len(name):
        none = np.empty(0, np.int64)
        return _AliasRows(none, none, none, np.empty(0), none, none, np.empty(0))
    seen = np.arange(len(name))
    order = np.lexsort((seen, surface, entity, name))
    begins = _changes(name[order], entity[order])
    pair = np.cumsum(begins) - 1  # the pair each sorted row belongs to
    first = np.minimum.reduceat(seen[order], np.flatnonzero(begins))
    total = np.add.reduceat(weight[order], np.flatnonzero(begins)) + smoothing
    best = np.lexsort((first, -total, name[first]))
    place = np.empty(len(best), np.int64)
    place[best] = np.arange(len(best))

    spelled = np.flatnonzero(begins | _changes(surface[order]))
    share = np.add.reduceat(weight[order], spelled) + smoothing
    spelled_row, spelled_surface = place[pair[spelled]], surface[order][spelled]
    whole = np.bincount(spelled_row, share)
    # Without counts and smoothing, spellings share alike.
    even = np.bincount(spelled_row)[spelled_row]
    divisor = whole[spelled_row]
    share = np.where(divisor > 0, share / np.where(divisor > 0, divisor, 1), 1 / even)
    by_row = np.argsort(spelled_row, kind="stable")
    return _AliasRows(
        name[first][best], entity[first][best], sense[first][best], total[best],
        spelled_row[by_row], spelled_surface[by_row], share[by_row],
    )  # fmt: skip


def _changes(*columns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where a sorted run begins, in any of *columns*."""
    begins = np.zeros(len(columns[0]), bool)
    begins[0] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins


def _alias_items(
    rows: _AliasRows, names: list[str], surfaces: list[str], class_of: NDArray[np.uint8], written: list[int]
) -> Iterator[Item]:
    """Yield the items of `aliases`; `written[0]` counts them."""
    if not len(rows.name):
        return
    begins = np.flatnonzero(_changes(rows.name))
    sizes = np.diff(np.append(begins, len(rows.name)))
    totals = np.add.reduceat(rows.weight, begins)
    share_alike = totals <= 0  # nobody counted, and nothing smooths
    divisor = np.where(share_alike, sizes, totals)
    priors = np.where(np.repeat(share_alike, sizes), 1.0, rows.weight) / np.repeat(divisor, sizes)
    packed = np.empty(len(rows.name), CANDIDATE)
    packed["entity"], packed["prior"] = rows.entity, priors
    packed["sense"] = np.where(rows.sense == _NONE, NO_SENSE, rows.sense)
    body, width = packed.tobytes(), packed.itemsize
    bits = np.bitwise_or.reduceat(_class_bits(class_of)[rows.entity], begins).tolist()
    spelled_at = np.searchsorted(rows.spelled_row, np.append(begins, len(rows.name))).tolist()
    spelled_row, spelled_surface = rows.spelled_row.tolist(), rows.spelled_surface.tolist()
    spelled_share = rows.spelled_share.tolist()
    head, encode, key = codec.alias_head.pack, codec.encode, codec.bounded_key
    owners = rows.name[begins].tolist()
    written[0] = len(owners)
    for at, (owner, begin, size, total) in enumerate(
        zip(owners, begins.tolist(), sizes.tolist(), totals.tolist(), strict=True)
    ):
        name, low, high = names[owner], spelled_at[at], spelled_at[at + 1]
        only = set(spelled_surface[low:high])
        if len(only) == 1:
            surface = surfaces[spelled_surface[low]]
            tail = b"" if surface == name else encode([(surface, [], [])])
        else:
            tail = encode(
                _spellings(spelled_row, spelled_surface, spelled_share, surfaces, low, high, begin)
            )
        yield (
            key(name),
            head(size | bits[at] << 24, total) + body[begin * width : (begin + size) * width] + tail,
        )


def _spellings(
    row: list[int], surface: list[int], share: list[float], surfaces: list[str], low: int, high: int, begin: int
) -> list[tuple[str, list[int], list[float]]]:
    found: dict[int, tuple[list[int], list[float]]] = {}
    for at in range(low, high):
        places, shares = found.setdefault(surface[at], ([], []))
        places.append(row[at] - begin)
        shares.append(share[at])
    return [(surfaces[number], *found[number]) for number in sorted(found)]


def _class_bits(class_of: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a bit per class; all bits where there are more classes than bits."""
    if len(class_of) and class_of.max() > MAX_CLASS_BITS:
        return np.full(len(class_of), 0xFF, np.uint8)
    bit = np.array([0, *(1 << place for place in range(MAX_CLASS_BITS))], np.uint8)
    return bit[class_of]


def _starts(surfaces: Iterable[str]) -> list[Item]:
    starts: dict[str, dict[str, int]] = {}
    for surface in surfaces:
        if surface.isalpha() and surface.isascii():
            continue  # one token
        parts = [fold(token) for token in tokens(surface)]
        if 1 < len(parts) <= MAX_TOKENS:
            after, length = starts.setdefault(parts[0], {}), 1 << len(parts)
            after[parts[1]] = after.get(parts[1], 0) | length
            if len(parts) > 2:
                two = f"{parts[1]} {parts[2]}"
                after[two] = after.get(two, 0) | length
    items = ((codec.bounded_key(first), codec.encode(dict(sorted(after.items())))) for first, after in starts.items())
    return sorted(items)


