"""What sets two knowledge bases apart, or two builds of one.

Both are read side by side in the order of their keys, so this takes no more
memory than a number for each entity, whatever the size. Ids, and the order of
facts, do not count: only what is said.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from kgkit.errors import NotThere
from kgkit.home import Home
from kgkit.kb.handle import KnowledgeBase, open_kb
from kgkit.store import codec
from kgkit.types import NO_SENSE, Alias, Entity, Form, Numbers, Occurrences, Record, Redirect, Triple

_TOLERANCE = 2e-5  # of counts: they are kept as parts of 32-bit priors
_NONE = -1


class Difference(NamedTuple):
    """A record that only one of two KBs has, or that they have differently; entities without their ids."""

    old: Record | None
    new: Record | None

    @property
    def change(self) -> Literal["added", "removed", "changed"]:
        """What happened on the way from the old to the new."""
        return "added" if self.old is None else "removed" if self.new is None else "changed"

    @property
    def what(self) -> Literal["entity", "alias", "triple", "redirect", "form", "occurrences"]:
        """What kind of record it is."""
        return _KINDS[type(self.new or self.old)]


_KINDS: dict[type, Literal["entity", "alias", "triple", "redirect", "form", "occurrences"]] = {
    Entity: "entity",
    Alias: "alias",
    Triple: "triple",
    Redirect: "redirect",
    Form: "form",
    Occurrences: "occurrences",
}


def diff(
    old: str | KnowledgeBase,
    new: str | KnowledgeBase | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
) -> list[Difference]:
    """Return what sets two knowledge bases apart, or two builds of one.

    All differences are in memory: those of two large KBs are read one by one from `kgkit.kb.differences`.

    Args:
        old: `NAME`, `NAME@BUILD`, or an open knowledge base.
        new: the like; None: the published build of *old*, which is compared with the build before it.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.

    Raises:
        NotThere: if one of them is not there, or has no build before the published one.
        DamagedKB: if rows of either cannot be read.

    Examples:
        >>> [(each.change, each.what) for each in kgkit.diff("mine")]
        [('added', 'entity'), ('added', 'alias')]
    """
    if new is None:
        name = old if isinstance(old, str) else old.name
        old, new = previous_build(name.partition("@")[0], home), name.partition("@")[0]
    with ExitStack() as opened:
        before, after = (
            kb if isinstance(kb, KnowledgeBase) else opened.enter_context(open_kb(kb, home))
            for kb in (old, new)
        )
        return list(differences(before, after))


def previous_build(name: str, home: str | os.PathLike[str] | None = None) -> str:
    """Return, as `NAME@BUILD`, the build on disk that was made before the published one.

    Raises:
        NotThere: if there is no such KB, or no build of it before the published one.
    """
    kb = Home.find(home).kb(name)
    with open_kb(name, home) as published:
        current, base = published.build, published.manifest.base
    builds = kb.build_names()
    earlier = builds[: builds.index(current)] if current in builds else builds
    if base in builds:
        return f"{name}@{base}"
    if not earlier:
        raise NotThere(f"there is no build of {name!r} before {name}@{current}: name two knowledge bases")
    return f"{name}@{earlier[-1]}"


def differences(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Difference]:
    """Yield what *new* has that *old* has not, the other way round, and what they have differently.

    Entities, aliases and redirects are told apart by their keys and surfaces.
    Counts that agree to 5 digits are equal. Facts count as they can be asked
    for: a relation that one KB stores in both directions and the other in one
    is the same.

    Raises:
        DamagedKB: if rows of either cannot be read.
    """
    digests = new.manifest.tables
    same = {table for table, digest in old.manifest.tables.items() if digests.get(table) == digest}
    if {"entities", "keys"} <= same:
        new_ids = np.arange(old.id_count, dtype=np.int64)
    else:
        new_ids = np.full(old.id_count, _NONE, np.int64)
        yield from _keys(old, new, new_ids)
    # Where the ids of the old are those of the new, equal rows say the same: no row names a retired entity.
    retired = np.fromiter(old.store.retired | new.store.retired, np.int64)
    ids_alike = bool(((new_ids == np.arange(old.id_count)) | np.isin(np.arange(old.id_count), retired)).all())
    smoothed_alike = old.manifest.smoothing == new.manifest.smoothing
    if not ("aliases" in same and ids_alike and smoothed_alike):
        yield from _aliases(old, new, ids_alike and smoothed_alike)
    shorter = min(len(old.store.relations), len(new.store.relations))
    coded_alike = old.store.relations[:shorter] == new.store.relations[:shorter]
    if not ({"facts", "meta"} <= same and ids_alike):
        yield from _facts(old, new, new_ids, ids_alike and coded_alike)
    if "forms" not in same:
        yield from _forms(old, new)
    if "occurrences" in old.manifest.tables.keys() | digests.keys() and "occurrences" not in same:
        yield from _occurrences(old, new)


def _merge(
    old: Iterator[tuple[bytes, bytes]], new: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes | None, bytes | None]]:
    """Yield `(key, old value, new value)` of two tables in key order, None for what one does not have."""
    mine, other = next(old, None), next(new, None)
    while mine is not None or other is not None:
        if other is None or (mine is not None and mine[0] < other[0]):
            assert mine is not None
            yield mine[0], mine[1], None
            mine = next(old, None)
        elif mine is None or other[0] < mine[0]:
            yield other[0], None, other[1]
            other = next(new, None)
        else:
            yield mine[0], mine[1], other[1]
            mine, other = next(old, None), next(new, None)


def _keys(old: KnowledgeBase, new: KnowledgeBase, new_ids: Numbers) -> Iterator[Difference]:
    """Yield the differences of entities and redirects; note in *there* (N,) the new ids of old entities."""
    for key, mine, other in _merge(old.store.items("keys"), new.store.items("keys")):
        if mine is not None and mine == other:
            row = old.store.row("entities", mine)
            if row == new.store.row("entities", mine):
                new_ids[int.from_bytes(mine, "little")] = int.from_bytes(mine, "little")
                continue
        before, after = _entry(old, key, mine), _entry(new, key, other)
        if isinstance(before, Entity) and isinstance(after, Entity):
            assert mine is not None and other is not None
            new_ids[int.from_bytes(mine, "little")] = int.from_bytes(other, "little")
        if type(before) is not type(after) and before is not None and after is not None:
            yield Difference(before, None)
            yield Difference(None, after)
        elif before != after:
            yield Difference(before, after)


def _entry(kb: KnowledgeBase, key: bytes, number: bytes | None) -> Entity | Redirect | None:
    """Return what a row of `keys` stands for: an entity, without its id, or another key of one."""
    if number is None:
        return None
    entity = kb[int.from_bytes(number, "little")]
    if codec.bounded_key(entity.key) == key:
        return msgspec.structs.replace(entity, id=-1)
    name = key.hex() if key.startswith(codec.DIGEST) else key.decode()
    return Redirect(name, entity.key)


def _aliases(old: KnowledgeBase, new: KnowledgeBase, alike: bool) -> Iterator[Difference]:
    """Yield the differences of aliases; *alike* says that equal rows mean the same."""
    for key, mine, other in _merge(old.store.items("aliases"), new.store.items("aliases")):
        if alike and mine == other:
            continue
        before, after = _pairs(old, key, mine), _pairs(new, key, other)
        for pair in {**before, **after}:
            was, now = before.get(pair), after.get(pair)
            if was is None and _elsewhere(old, key, pair) is not None:
                continue  # told in the row of the old
            if now is None:
                now = _elsewhere(new, key, pair)
            if was is None or now is None or was.sense != now.sense or not _equal(was.count, now.count):
                yield Difference(was, now)


def _elsewhere(kb: KnowledgeBase, key: bytes, pair: tuple[str, str]) -> Alias | None:
    """Return the alias of a surface and an entity whose row has another key, as *kb* folds the surface so."""
    folded = codec.bounded_key(kb.store.folding.fold(pair[0]))
    return None if folded == key else _pairs(kb, folded, kb.store.row("aliases", folded)).get(pair)


def _pairs(kb: KnowledgeBase, folded: bytes, row: bytes | None) -> dict[tuple[str, str], Alias]:
    """Return the aliases of one row, by surface and entity."""
    if row is None:
        return {}
    pairs = {}
    with kb.store.reading():
        for surface, entity, sense, count in codec.alias_counts(folded, row, kb.manifest.smoothing):
            key = kb.key(entity)
            pairs[surface, key] = Alias(surface, key, count, None if sense == NO_SENSE else kb.key(sense))
    return pairs


def _equal(value: float, other: float) -> bool:
    return abs(value - other) <= _TOLERANCE * max(value, other, 1.0)


def _facts(old: KnowledgeBase, new: KnowledgeBase, new_ids: Numbers, alike: bool) -> Iterator[Difference]:
    """Yield the triples that only one can tell, in the direction in which it stores them."""
    back = np.full(new.id_count, _NONE, np.int64)
    common = np.flatnonzero(new_ids != _NONE)
    back[new_ids[common]] = common
    for triple in _untold(old, new, new_ids, alike):
        yield Difference(triple, None)
    for triple in _untold(new, old, back, alike):
        yield Difference(None, triple)


def _untold(kb: KnowledgeBase, other: KnowledgeBase, other_ids: Numbers, alike: bool) -> Iterator[Triple]:
    """Yield the stored triples of *kb* that *other* does not tell; *there* (N,) has ids in *other*."""
    names = _code_names(kb)
    code_of = {name: code for code, name in enumerate(_code_names(other)) if name}
    codes = np.array([code_of.get(name, _NONE) for name in names], np.int64)
    symmetric = {2 * index for index, (name, inverse) in enumerate(kb.store.relations) if name == inverse}
    with kb.store.reading():
        for key, row in kb.store.items("facts"):
            if alike and row == other.store.row("facts", key):
                continue
            subject = int.from_bytes(key, "little")
            neighbours, relations = codec.decode_facts(row)
            stated: set[tuple[int, int]] = set()
            facts = other.store.facts(int(other_ids[subject])) if other_ids[subject] != _NONE else None
            if facts is not None:
                stated = set(zip(facts[0].tolist(), facts[1].tolist(), strict=True))
            mapped = zip(other_ids[neighbours].tolist(), codes[relations].tolist(), strict=True)
            for (end, code), number, relation in zip(
                mapped, neighbours.tolist(), relations.tolist(), strict=True
            ):
                if relation % 2 or (relation in symmetric and number < subject):
                    continue  # told from its other end
                if (end, code) not in stated:
                    yield Triple(kb.key(subject), names[relation], kb.key(number))


def _code_names(kb: KnowledgeBase) -> list[str]:
    """Return the relation that each code of *kb* says, empty where there is none."""
    return [
        name
        for relation, inverse in kb.store.relations
        for name in (relation, inverse if inverse is not None and inverse != relation else "")
    ]


def _lemmas(kb: KnowledgeBase, row: bytes | None) -> list[tuple[str, str]]:
    with kb.store.reading():
        return [] if row is None else codec.decode_forms(row)


def _forms(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Difference]:
    for key, mine, other in _merge(old.store.items("forms"), new.store.items("forms")):
        before, after = _lemmas(old, mine), _lemmas(new, other)
        surface = key.hex() if key.startswith(codec.DIGEST) else key.decode()
        for lemma, pos in before:
            if (lemma, pos) not in after:
                yield Difference(Form(surface, lemma, pos), None)
        for lemma, pos in after:
            if (lemma, pos) not in before:
                yield Difference(None, Form(surface, lemma, pos))


def _occurrences(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Difference]:
    rows = [kb.store.items("occurrences") if kb.store.has_occurrences else iter(()) for kb in (old, new)]
    for key, mine, other in _merge(*rows):
        if mine != other:
            surface = key.hex() if key.startswith(codec.DIGEST) else key.decode()
            yield Difference(_counts(old, surface, mine), _counts(new, surface, other))


def _counts(kb: KnowledgeBase, surface: str, row: bytes | None) -> Occurrences | None:
    with kb.store.reading():
        return None if row is None else Occurrences(surface, *codec.decode_occurrences(row))


__all__ = ["Difference", "diff", "differences", "previous_build"]
