"""From a published knowledge base and new records to its next build.

Ids stay: what is new is numbered from where the base ends. A row that a new
record touches is read, joined with it and written again; all other rows are
those of the base.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from kgkit.building import facts
from kgkit.building.build import Built, no_garbage, silent
from kgkit.building.contract import Builder, SourceInfo, find_builder
from kgkit.building.grouping import BAD_RECORDS, EXAMPLES
from kgkit.building.next_build import changing, publish_change
from kgkit.building.numbers import numbering
from kgkit.building.occurrences import checked_occurrences
from kgkit.building.options import BuildOptions
from kgkit.building.registering import register
from kgkit.building.row_changes import (
    AliasPair,
    class_rows,
    classes_of,
    grouped_aliases,
    rows_of_surfaces,
    sum_counts,
)
from kgkit.building.sources import KB_SOURCE, batches, name_source, open_source
from kgkit.errors import SourceError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.store import Counts, Manifest, StoreEditor, codec
from kgkit.store.damage import report_damage
from kgkit.store.layout import U32
from kgkit.store.writer import Item
from kgkit.types import (
    NO_SENSE,
    Alias,
    BadRecord,
    Entity,
    Form,
    Ids,
    Occurrences,
    Progress,
    Redirect,
    Single,
    Triple,
)

__all__ = ["Addition", "add_to_kb"]

_FIELDS: Final = ("label", "description", "kind", "pos", "types", "attributes")

_Row = dict[int, list[tuple[int, int]]]  # an entity -> (other end, code) of each of its facts


class Addition:
    """Takes records in, then writes what they change.

    An entity that the base has may come again if it says nothing else: so a
    file gives further aliases to it.

    Args:
        base: KB that the records are added to.
        inverses: inverse relations, as in `Builder`, for relations that the base does not have.
    """

    def __init__(self, base: KnowledgeBase, inverses: Mapping[str, str]) -> None:
        self.base, self._store, self._fold = base, base.store, base.store.folding.fold
        names = {name for pair in self._store.relations for name in pair if name}
        self._inverses = {name: other for name, other in inverses.items() if not names & {name, other}}
        self._entities: dict[str, Entity] = {}
        self._aliases: list[Alias] = []
        self._triples: list[Triple] = []
        self._redirects: list[Redirect] = []
        self._forms: list[Form] = []
        self._occurrences: dict[str, tuple[float, float]] = {}  # by folded surface: all, and the linked ones
        self._targets: dict[str, str] = {}  # of new redirects
        self.examples: dict[str, list[str]] = {}
        self._new_names: Collection[str] = ()  # folded, of new aliases
        self._sought: list[str] = []  # new aliases
        self._sought_forms: list[str] = []  # new irregular forms
        self._dropped: Counter[str] = Counter()

    @property
    def dropped(self) -> dict[str, int]:
        """Numbers of records that could not be kept, by reason; complete once all is written."""
        return dict(sorted(self._dropped.items()))

    def take(self, records: Iterable[Single]) -> None:
        """Take in *records*.

        Raises:
            SourceError: if an entity's key has come before, or the base has it and says otherwise.
        """
        for record in records:
            match record:
                case Entity():
                    self._take_entity(record)
                case Alias():
                    self._aliases.append(record)
                case Triple():
                    self._triples.append(record)
                case Redirect():
                    self._redirects.append(record)
                case Form():
                    self._forms.append(record)
                case Occurrences():
                    self._take_occurrences(checked_occurrences(record))
                case BadRecord():
                    self._drop(BAD_RECORDS)
                    self.examples.setdefault(BAD_RECORDS, [record.problem])
                case _:
                    raise TypeError(f"a builder yielded {type(record).__name__}, which is no record")

    def _take_occurrences(self, occurrences: Occurrences) -> None:
        count, linked = self._occurrences.get(name := self._fold(occurrences.surface), (0.0, 0.0))
        self._occurrences[name] = count + occurrences.count, linked + occurrences.linked

    def _take_entity(self, entity: Entity) -> None:
        key = entity.key
        if key in self._entities:
            raise SourceError(f"two entities have the key {key!r}: keys must be unique")
        entity_of_base = self.base.get(key)
        if entity_of_base is None or entity_of_base.key != key:  # unknown, or so far another key of an entity
            new = self.base.id_count + len(self._entities)
            self._entities[key] = msgspec.structs.replace(entity, id=new)
            return
        unsaid = Entity(key), Entity(key, key), entity_of_base
        other = [
            name
            for name in _FIELDS
            if getattr(entity, name) not in [getattr(empty, name) for empty in unsaid]
        ]
        if other:
            raise SourceError(
                f"knowledge base {self.base.name!r} has {key!r} already, with another {' and '.join(other)}: "
                "leave out what it has already, or change it with `kgkit kb edit`"
            )

    def write(self, store: StoreEditor) -> Manifest:
        """Write the rows that the records change; return the base's manifest with the new counts."""
        manifest, counts = self.base.manifest, self.base.manifest.counts
        new = [*self._entities.values()]
        redirects = self._write_keys(store)
        stored = self._write_facts(store)
        names, rows = self._write_aliases(store)
        self._write_occurrences(store)
        forms = self._write_forms(store)
        for table, items in rows_of_surfaces(self._store, self._sought, self._sought_forms).items():
            store.put(table, items)
        store.put("entities", [(codec.pack_id(entity.id), codec.encode(entity)) for entity in new])
        if new:
            store.put("meta", self._classes())
        return msgspec.structs.replace(
            manifest,
            entities=manifest.entities + len(new),
            triples=manifest.triples + sum(stored.values()),
            aliases=manifest.aliases + names,
            alias_rows=manifest.alias_rows + rows,
            counts=Counts(
                entities=sum_counts(counts.entities, Counter(entity.kind for entity in new)),
                relations=sum_counts(counts.relations, stored),
                redirects=counts.redirects + redirects,
                forms=counts.forms + forms,
                dropped=dict(sorted(sum_counts(counts.dropped, self._dropped).items())),
            ),
        )

    # -- keys ---------------------------------------------------------------

    def _write_keys(self, store: StoreEditor) -> int:
        """Write `keys`; return how many more redirects there are."""
        keys = {key: entity.id for key, entity in self._entities.items()}
        shadowed = sum(self._store.id_of(key) is not None for key in keys)
        self._drop("redirect of an entity's own key", shadowed)
        for redirect in self._redirects:
            owner = self.base.get(redirect.source)
            if redirect.source in keys or (owner is not None and owner.key == redirect.source):
                self._drop("redirect of an entity's own key")
            elif owner is not None:  # another key of an entity, and stays it
                self._drop("second redirect of a key", self._id(redirect.target) != owner.id)
            elif self._targets.setdefault(redirect.source, redirect.target) != redirect.target:
                self._drop("second redirect of a key")
        resolved = {source: self._id(source) for source in self._targets}
        for source, target in resolved.items():
            if target is None:
                reason = "redirect in a loop" if self._loops(source) else "redirect to no entity"
                self._drop(reason, 1, f"{source} → {self._targets[source]}")
            else:
                keys[source] = target
        store.put(
            "keys", sorted((codec.bounded_key(key), codec.pack_id(number)) for key, number in keys.items())
        )
        return len(keys) - len(self._entities) - shadowed

    def _id(self, key: str) -> int | None:
        """Return the id of *key*, new or of the base, through redirects of either; None if it has none."""
        visited: set[str] = set()
        while key not in visited:
            visited.add(key)
            if key in self._entities:
                return self._entities[key].id
            if (number := self._store.id_of(key)) is not None:
                return number
            key = self._targets.get(key, key)
        return None

    def _loops(self, source: str) -> bool:
        visited: set[str] = set()
        while source in self._targets and source not in visited:
            visited.add(source)
            source = self._targets[source]
        return source in visited

    # -- facts --------------------------------------------------------------

    def _write_facts(self, store: StoreEditor) -> dict[str, int]:
        """Write `facts`, `incoming` and new relations; return the new triples by stored relation."""
        base = self._store.relations
        codes = {
            name: 2 * index + (name != pair[0]) for index, pair in enumerate(base) for name in pair if name
        }
        triples: list[tuple[int, int, int]] = []
        fresh: list[tuple[int, int, int]] = []
        names = numbering()
        for triple in self._triples:
            ends = self._id(triple.subject), self._id(triple.object)
            if ends[0] is None or ends[1] is None:
                text = f"{triple.subject} {triple.relation} {triple.object}"
                self._drop("triple with an unknown end", 1, text)
            elif triple.relation in codes:
                triples.append((ends[0], codes[triple.relation], ends[1]))
            else:
                fresh.append((ends[0], names[triple.relation], ends[1]))
        outward, incoming, stored = self._new_rows(triples)
        columns = np.array(fresh, np.int64).reshape(-1, 3).T
        directed = facts.arrange(facts.FactColumns(*columns), [*names], self._inverses)
        self._drop("triple written twice", directed.repeated)
        for rows, added in ((outward, directed.outward), (incoming, directed.incoming)):
            for entity, code, other in zip(*(column.tolist() for column in added), strict=True):
                rows[entity].append((other, code + 2 * len(base)))
        store.put("facts", self._extend(outward, self._store.facts))
        store.put("incoming", self._extend(incoming, self._store.incoming))
        if directed.relations:
            store.put("meta", [(b"relations", codec.encode([*base, *directed.relations]))])
        return {**stored, **directed.stored}

    def _new_rows(self, triples: Iterable[tuple[int, int, int]]) -> tuple[_Row, _Row, dict[str, int]]:
        """Return the additions of the base's triples to `facts`, to `incoming`, and to its counts."""
        outward: _Row = defaultdict(list)
        incoming: _Row = defaultdict(list)
        stored: Counter[str] = Counter()
        stated: set[tuple[int, int, int]] = set()
        written: set[tuple[int, int, int]] = set()
        for subject, code, other in triples:
            if (subject, code, other) in stated or self._has(subject, code, other):
                self._drop("triple written twice")
                continue
            stated.add((subject, code, other))
            relation, inverse = self._store.relations[code // 2]
            if code % 2 or (relation == inverse and other < subject):
                subject, code, other = other, code - code % 2, subject
            if (subject, code, other) in written:
                continue  # told from its other end before
            written.add((subject, code, other))
            stored[relation] += 1
            outward[subject].append((other, code))
            if inverse is None:
                incoming[other].append((subject, code))
            elif inverse != relation:
                outward[other].append((subject, code + 1))
            elif subject != other:
                outward[other].append((subject, code))
        return outward, incoming, dict(stored)

    def _has(self, subject: int, code: int, other: int) -> bool:
        facts, fact = self._sorted_facts(subject), np.uint64(code << 32 | other)
        position = int(np.searchsorted(facts, fact))  # of another type, the whole column would be converted
        return position < len(facts) and bool(facts[position] == fact)

    @lru_cache(maxsize=256)  # noqa: B019 - lives as long as the addition; a hub is asked for again and again
    def _sorted_facts(self, subject: int) -> NDArray[np.uint64]:
        """Return the base's facts of an entity: (F,) code and other end in one number each, ascending."""
        ends, codes = self._store.facts(subject) or (np.empty(0, U32), np.empty(0, U32))
        return np.sort(codes.astype(np.uint64) << np.uint64(32) | ends.astype(np.uint64))

    @staticmethod
    def _extend(added: _Row, stored: Callable[[int], tuple[Ids, Ids] | None]) -> Iterator[Item]:
        """Yield the rows of the entities in *added*: what is stored of them, then what is added."""
        for entity, pairs in sorted(added.items()):
            ends, codes = stored(entity) or (np.empty(0, U32), np.empty(0, U32))
            new = np.array(pairs, U32)
            yield (
                codec.pack_id(entity),
                np.concatenate([ends, new[:, 0]]).tobytes() + np.concatenate([codes, new[:, 1]]).tobytes(),
            )

    # -- aliases ------------------------------------------------------------

    def _write_aliases(self, store: StoreEditor) -> tuple[int, int]:
        """Write `aliases` and `names`; return how many more aliases there are, and rows."""
        by_name: dict[str, list[AliasPair]] = {}
        for alias in self._aliases:
            if (row := self._resolve(alias)) is not None:
                by_name.setdefault(self._fold(alias.surface), []).append(row)
        names, rows = len(by_name), 0
        everything: list[AliasPair] = []
        keys_of: dict[int, set[bytes]] = defaultdict(set)
        for folded, new in by_name.items():
            key = codec.bounded_key(folded)
            if (stored := self._store.row("aliases", key)) is not None:
                everything.extend(codec.alias_counts(key, stored, self.base.manifest.smoothing))
                names, rows = names - 1, rows - len(codec.decode_alias(stored))
            everything.extend(new)
            for _, entity, *_ in new:
                keys_of[entity].add(codec.bounded_key(folded))
            if stored is None or self._store.surfaces is None:  # else the tries have it
                self._sought.extend(surface for surface, *_ in new)
        if everything:
            joined, items = grouped_aliases(everything, self.base.manifest, classes_of(self._classes()))
            rows += joined
            store.put("aliases", items)
            if self._store.has_names:
                store.put("names", self._names(keys_of))
        self._new_names = by_name.keys()
        return names, rows

    def _names(self, keys_of: Mapping[int, set[bytes]]) -> Iterator[Item]:
        """Yield the rows of `names` of entities, joined with the keys that *keys_of* has for them."""
        for entity, keys in sorted(keys_of.items()):
            yield codec.pack_id(entity), codec.encode(sorted(keys.union(self._store.alias_keys(entity))))

    def _write_occurrences(self, store: StoreEditor) -> None:
        """Write `occurrences`: those of an alias are added up."""
        items = []
        for name, (count, linked) in self._occurrences.items():
            if name not in self._new_names and self._store.row("aliases", codec.bounded_key(name)) is None:
                self._drop("occurrences of no alias")
            elif count:
                before = self._store.occurrences(name, exact=True) or (0.0, 0.0)
                row = codec.pack_occurrences(before[0] + count, before[1] + linked)
                items.append((codec.bounded_key(name), row))
        store.put("occurrences", sorted(items))

    def _resolve(self, alias: Alias) -> AliasPair | None:
        """Return surface, entity, sense and count of an alias that means something."""
        entity = self._id(alias.key)
        sense = None if alias.sense is None else self._id(alias.sense)
        if alias.sense is not None and sense is None:
            self._drop("sense of an alias that is no entity")
        if entity is None:
            self._drop("alias of no entity", 1, f"{alias.surface!r} → {alias.key}")
        elif not self._fold(alias.surface):
            self._drop("alias without a character")
        else:
            return alias.surface, entity, NO_SENSE if sense is None else sense, alias.count
        return None

    def _write_forms(self, store: StoreEditor) -> int:
        """Write `forms`; return how many more there are."""
        new_lemmas: dict[str, list[tuple[str, str]]] = {}
        for form in self._forms:
            surface, lemma = self._fold(form.surface), (self._fold(form.lemma), form.pos)
            if lemma not in self._store.lemmas(surface) and lemma not in new_lemmas.get(surface, ()):
                new_lemmas.setdefault(surface, []).append(lemma)
        lemmas = {surface: [*self._store.lemmas(surface), *new] for surface, new in new_lemmas.items()}
        store.put(
            "forms", sorted((codec.bounded_key(form), codec.encode(lemma)) for form, lemma in lemmas.items())
        )
        self._sought_forms.extend(new_lemmas)
        return sum(not self._store.lemmas(surface) for surface in new_lemmas)

    def _classes(self) -> list[Item]:
        """Return the parts of speech, old and new, as the table `meta` has them."""
        return class_rows(self._store, [entity.pos for entity in self._entities.values()])

    def _drop(self, reason: str, count: int = 1, shown: str = "") -> None:
        if shown and len(examples := self.examples.setdefault(reason, [])) < EXAMPLES:
            examples.append(shown)
        if count:
            self._dropped[reason] += count


@no_garbage()
def add_to_kb(
    name: str,
    source: str | os.PathLike[str] | Sequence[Mapping[str, Any]],
    *,
    builder: str | Builder | None = None,
    home: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    bad: Literal["stop", "skip"] = "stop",
) -> Built:
    """Add the records of a source to a published KB, as a new build of it.

    Entities keep their ids, new ones are numbered from where they end: a matrix
    of vectors made for the old build fits the first rows of the new one. Counts
    of an alias that is there are added up. What has been added before, says
    nothing new, or is the KB itself, leaves it as it is. The base's files are
    read whole and compared with their checksums first, about 1 GB a second, then
    copied; of the rows, only those that change are read. As with `build_kb`, `dropped`
    of what is returned says how many records could not be kept, such as an alias of no entity.

    Args:
        name: name of the KB.
        source: source that *builder* reads: a path, or `kb:NAME` for another KB; for `jsonl` a list of
            dictionaries, too.
        builder: the name of an installed builder, or a builder; unless given, `jsonl` reads a file, and
            another KB is added as it is.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        progress: callback that is told how far it is.
        bad: what a line that cannot be read does, as with `build_kb`.

    Raises:
        UsageError: *bad* is neither `stop` nor `skip`.
        NotThere: no such KB, or nothing at *source*.
        SourceError: the source is not as the builder expects, or contradicts the KB.
        KBBusy: another process is building or removing this KB.
        DamagedKB: the KB's files, or those of the KB at *source*, are not as they were written.
        WriteFailed: no room on the disk.
    """
    BuildOptions(bad=bad).check()
    tell = progress or silent
    if builder is None and not (
        isinstance(source, str | os.PathLike) and os.fspath(source).startswith(KB_SOURCE)
    ):
        builder = "jsonl"
    reader = find_builder(builder) if isinstance(builder, str) else builder
    if reader is not None and bad == "skip":
        reader = reader.skipping_bad()
    with changing(name, home, "records are added to") as (staging, base):
        where = Home.find(home)
        with open_source(reader, source, where) as material:
            addition, read = Addition(base, material.properties.inverses), 0
            for batch in batches(material):
                with name_source(material.path), report_damage(base.store.folder):
                    addition.take(batch)
                read += len(batch)
                tell("reading", read, 0)
            tell("writing", 0, 0)
            info = material.info()
        old = base.manifest
        unchanged = Built(name, base.build, base.store.folder, old, {}, {})
        itself = {f"{KB_SOURCE}{name}@{build}" for build in (base.build, old.base)}
        if info.path in itself or any(_same(info, earlier) for earlier in (old.source, *old.added)):
            return unchanged

        def change(store: StoreEditor) -> Manifest:
            return msgspec.structs.replace(addition.write(store), added=(*old.added, info))

        built = publish_change(staging, base, material.path, change) or unchanged
    if built is not unchanged:
        register(where, built.name, built.build)
    return built._replace(dropped=addition.dropped, examples=addition.examples)


def _same(info: SourceInfo, other: SourceInfo) -> bool:
    """Say whether two sources are the same files, or the same build of a KB."""
    if info.sha256 or other.sha256:
        return info.sha256 == other.sha256
    return (info.name, info.version, info.path) == (other.name, other.version, other.path)
