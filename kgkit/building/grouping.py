"""From a stream of records to the tables of a build, in memory.

Entities go straight to the store, in the order they come. Everything else
names them by key; a key gets a provisional number when it is first seen, and
numbers are exchanged for ids once all entities are known.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import structs

from kgkit.building import aliases, facts
from kgkit.building.contract import MAX_COUNT
from kgkit.building.numbers import NONE, changes, in_key_order, numbering
from kgkit.building.occurrences import SurfaceHashes, checked_occurrences
from kgkit.errors import SourceError
from kgkit.store import codec
from kgkit.store.layout import Counts
from kgkit.store.writer import StoreWriter
from kgkit.text import Folding
from kgkit.types import Alias, BadRecord, Entity, Form, Numbers, Occurrences, Redirect, Single, Triple

MAX_CLASSES = 255
"""The store has a byte for an entity's part of speech: of more, the later ones cannot be asked for."""


EXAMPLES: Final = 3
"""So many of the records that could not be kept are shown for each reason."""

BAD_RECORDS: Final = "line that cannot be read"
"""Reason of what builders leave out that skip bad lines; the first one is shown."""


class Grouped(NamedTuple):
    """How much came of the records; `examples` are some that could not be kept, by reason."""

    entities: int
    triples: int
    aliases: int
    alias_rows: int
    counts: Counts
    examples: Mapping[str, Sequence[str]]


class Grouper:
    """Takes records in batches, then writes the tables that depend on all of them.

    Args:
        store: writer of entities as they come.
        inverses, smoothing: values as in `Builder`.
        folding: folding of the surfaces.
        min_count: least count of a pair of surface and entity; those that were counted less often are left
            out.
    """

    def __init__(
        self,
        store: StoreWriter,
        *,
        inverses: Mapping[str, str],
        smoothing: float,
        folding: Folding,
        min_count: float = 0,
    ) -> None:
        self.store, self.inverses, self.smoothing, self.folding = store, inverses, smoothing, folding
        self.min_count = min_count
        self._take: dict[type, Callable[[Any], None]] = {
            Entity: self._take_entities,
            Triple: self._take_triples,
            Alias: self._take_aliases,
            Redirect: self._take_redirects,
            Form: self._take_forms,
            Occurrences: self._take_occurrences,
            BadRecord: self._take_bad_records,
        }
        self._numbers = numbering()  # provisional number of each key
        self._ids = array("q")  # id of each provisional number, or NONE
        self._kinds: Counter[str] = Counter()
        self._classes = numbering()
        self._classes[""]  # number 0: no part of speech
        self._class_of = bytearray()
        self._relations = numbering()
        self._triples = array("q"), array("q"), array("q")  # subject, relation, object
        self._surfaces = numbering()
        self._aliases = array("q"), array("q"), array("q")  # surface, entity, sense
        self._weights = array("d")
        self._dropped: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self._redirects: dict[str, str] = {}
        self._forms: dict[str, list[tuple[str, str]]] = {}
        self._occurrences: dict[str, tuple[float, float]] = {}  # by folded surface: all, and the linked ones
        self._counted: dict[str, tuple[float, float]] = {}  # those in texts

    def take(self, records: Iterable[Single]) -> None:
        """Take in *records*, some thousands at once.

        Raises:
            SourceError: if an entity's key has come before.
        """
        by_type: dict[type, list[Any]] = {kind: [] for kind in self._take}
        for record in records:
            try:
                by_type[type(record)].append(record)
            except KeyError:
                raise TypeError(f"a builder yielded {type(record).__name__}, which is no record") from None
        for kind, batch in by_type.items():
            if batch:
                self._take[kind](batch)

    def _take_entities(self, entities: Sequence[Entity]) -> None:
        ids, encode = self._ids, codec.encode
        numbers = [*map(self._numbers.__getitem__, [entity.key for entity in entities])]
        ids.extend([NONE] * (len(self._numbers) - len(ids)))
        rows = []
        for new, (number, entity) in enumerate(zip(numbers, entities, strict=True), len(self._class_of)):
            if ids[number] != NONE:
                raise SourceError(f"two entities have the key {entity.key!r}: keys must be unique")
            ids[number] = new
            rows.append((codec.pack_id(new), encode((*structs.astuple(entity)[:-1], new))))
        self.store.append("entities", rows)
        self._kinds.update([entity.kind for entity in entities])
        classes = map(self._classes.__getitem__, [entity.pos for entity in entities])
        self._class_of.extend([number if number <= MAX_CLASSES else 0 for number in classes])

    def _take_triples(self, triples: Sequence[Triple]) -> None:
        subjects, relations, objects = self._triples
        number = self._numbers.__getitem__
        subjects.extend(map(number, [triple.subject for triple in triples]))
        relations.extend(map(self._relations.__getitem__, [triple.relation for triple in triples]))
        objects.extend(map(number, [triple.object for triple in triples]))

    def _take_aliases(self, aliases: Sequence[Alias]) -> None:
        surfaces, entities, senses = self._aliases
        number = self._numbers
        surfaces.extend(map(self._surfaces.__getitem__, [alias.surface for alias in aliases]))
        entities.extend(map(number.__getitem__, [alias.key for alias in aliases]))
        senses.extend([NONE if alias.sense is None else number[alias.sense] for alias in aliases])
        self._weights.extend([alias.count for alias in aliases])

    def _take_redirects(self, redirects: Sequence[Redirect]) -> None:
        for redirect in redirects:
            if self._redirects.setdefault(redirect.source, redirect.target) != redirect.target:
                self._dropped["second redirect of a key"] += 1

    def _take_forms(self, forms: Sequence[Form]) -> None:
        fold = self.folding.fold
        for form in forms:
            lemmas, lemma = self._forms.setdefault(fold(form.surface), []), (fold(form.lemma), form.pos)
            if lemma not in lemmas:
                lemmas.append(lemma)

    def _take_occurrences(self, occurrences: Sequence[Occurrences]) -> None:
        for occurrence in map(checked_occurrences, occurrences):
            _add(self._occurrences, self.folding.fold(occurrence.surface), occurrence)

    def _take_bad_records(self, records: Sequence[BadRecord]) -> None:
        self._dropped[BAD_RECORDS] += len(records)
        self._examples.setdefault(BAD_RECORDS, [records[0].problem])

    def surfaces(self) -> SurfaceHashes:
        """Return the aliases that have been taken in, as they are sought in texts."""
        names = set(map(self.folding.fold, self._surfaces))
        sought = [name for name in names if not codec.bounded_key(name).startswith(codec.DIGEST)]
        return SurfaceHashes.of(sought, len(sought), self.folding)

    def count(self, occurrences: Iterable[Occurrences]) -> None:
        """Take in how often the aliases occur in texts."""
        for occurrence in occurrences:
            _add(self._counted, occurrence.surface, occurrence)

    def write(self) -> Grouped:
        """Write every table and return the counts."""
        ids, redirects = self._write_keys()
        triples, relations, stored = self._write_facts(ids)
        aliases, alias_rows = self._write_aliases(ids)
        self._write_forms()
        self.store.append(
            "meta",
            [
                (b"class_of_entity", bytes(self._class_of)),
                (b"classes", codec.encode([*self._classes][1 : MAX_CLASSES + 1])),
                (b"relations", codec.encode(relations)),
            ],
        )
        counts = Counts(
            entities=dict(self._kinds),
            relations=stored,
            redirects=redirects,
            forms=len(self._forms),
            dropped={reason: count for reason, count in sorted(self._dropped.items()) if count},
        )
        return Grouped(len(self._class_of), triples, aliases, alias_rows, counts, self._examples)

    def _write_keys(self) -> tuple[Numbers, int]:
        """Write `keys`; return the id of every provisional number, and how many redirects lead to one."""
        ids, redirects = self._resolve()
        names = [*self._numbers]
        if NONE in ids:
            names = [*compress(names, (ids != NONE).tolist())]
        keys, order = in_key_order(names)
        in_order = ids[ids != NONE][order].tolist()
        self.store.append("keys", zip(keys, map(codec.pack_id, in_order), strict=True))
        return ids, redirects

    def _resolve(self) -> tuple[Numbers, int]:
        """Return ids by provisional number, and how many redirects lead to one."""
        number = self._numbers
        target_of = {number[source]: number[target] for source, target in self._redirects.items()}
        ids = np.full(len(self._numbers), NONE, np.int64)
        ids[: len(self._ids)] = self._ids
        own, names = ids != NONE, [*number]
        nowhere: dict[int, str] = {}
        count = 0
        for source, first in target_of.items():
            if own[source]:
                self._dropped["redirect of an entity's own key"] += 1
                continue
            chain, target = {source}, first
            while (
                ids[target] == NONE and target in target_of and target not in chain and target not in nowhere
            ):
                chain.add(target)
                target = target_of[target]
            if ids[target] != NONE:
                ids[[*chain]] = ids[target]  # shortens every chain that comes through here
                count += 1
                continue
            reason = nowhere.get(target) or (
                "redirect in a loop" if target in chain else "redirect to no entity"
            )
            nowhere.update(dict.fromkeys(chain, reason))
            self._dropped[reason] += 1
            if len(shown := self._examples.setdefault(reason, [])) < EXAMPLES:
                shown.append(f"{names[source]} → {names[first]}")
        return ids, count

    def _write_facts(self, ids: Numbers) -> tuple[int, list[tuple[str, str | None]], dict[str, int]]:
        """Write `facts` and `incoming`; return triples stored, the relations, triples by relation."""
        columns = subject, relation, other = tuple(map(_column, self._triples))
        subject, other = ids[subject], ids[other]
        real = (subject != NONE) & (other != NONE)
        if not real.all():
            keys, relations = [*self._numbers], [*self._relations]
            lost = zip(*(column[~real][:EXAMPLES].tolist() for column in columns), strict=True)
            self._examples["triple with an unknown end"] = [
                f"{keys[subject_id]} {relations[name]} {keys[end]}" for subject_id, name, end in lost
            ]
        triples = facts.FactColumns(subject[real], relation[real], other[real])
        directed = facts.arrange(triples, [*self._relations], self.inverses)
        self._dropped["triple with an unknown end"] = int((~real).sum())
        self._dropped["triple written twice"] = directed.repeated
        self.store.append("facts", facts.rows(*directed.outward))
        self.store.append("incoming", facts.rows(*directed.incoming))
        return sum(directed.stored.values()), directed.relations, directed.stored

    def _write_aliases(self, ids: Numbers) -> tuple[int, int]:
        """Write `aliases`, `names` and `starts`; return how many aliases there are, and rows."""
        surface, entity, sense = map(_column, self._aliases)
        has_sense, entity = sense != NONE, ids[entity]
        sense = np.where(has_sense, ids[sense], NONE)
        self._dropped["sense of an alias that is no entity"] = int((has_sense & (sense == NONE)).sum())
        names = aliases.Names([*self._surfaces], self.folding)
        empty = names.of_surface[surface] == names.empty
        real = (entity != NONE) & ~empty
        self._dropped["alias of no entity"] = int((entity == NONE).sum())
        if self._dropped["alias of no entity"]:
            keys, lost = [*self._numbers], np.flatnonzero(entity == NONE)[:EXAMPLES]
            self._examples["alias of no entity"] = [
                f"{names.surfaces[surface[index]]!r} → {keys[self._aliases[1][index]]}"
                for index in lost.tolist()
            ]
        self._dropped["alias without a character"] = int(empty.sum())
        counted = checked_counts(np.frombuffer(self._weights), lambda index: names.surfaces[surface[index]])
        columns = aliases.Columns(surface[real], entity[real], sense[real], counted[real])
        if self.min_count:
            columns = aliases.frequent_only(columns, names, self.min_count)
        rows, spellings = aliases.add_up(columns, names, self.smoothing)
        bit_of = aliases.class_bits(np.frombuffer(self._class_of, np.uint8))
        self.store.append("aliases", aliases.alias_rows(rows, spellings, names, bit_of))
        self.store.append("names", aliases.name_rows(rows, names))
        numbers = rows.name[changes(rows.name)]  # names ascend
        self._write_occurrences(names, numbers)
        present = np.zeros(len(names.surfaces), bool)
        present[columns.surface] = True
        surfaces = [*compress(names.surfaces, present.tolist())]
        variants = aliases.variants(surfaces, {}, self.folding)
        # Irregular forms of several words are sought in texts like aliases.
        sought = chain(surfaces, self._forms, variants)
        self.store.append("starts", aliases.start_rows(aliases.starts(sought, {}, self.folding)))
        self.store.append("variants", aliases.variant_rows(variants))
        return len(numbers), len(rows.name)

    def _write_occurrences(self, names: aliases.Names, numbers: Numbers) -> None:
        """Write `occurrences` of the aliases that are kept, if any are known."""
        stated, counted, none = self._occurrences, self._counted, (0.0, 0.0)
        items, matches = [], 0
        for number in numbers.tolist() if stated or counted else ():
            name = names.folded[number]
            matches += name in stated
            pairs = stated.get(name, none), counted.get(name, none)
            count, linked = map(sum, zip(*pairs, strict=True))
            if count:
                items.append((names.keys[number], codec.pack_occurrences(count, linked)))
        self._dropped["occurrences of no alias"] = len(stated) - matches
        self.store.append("occurrences", items)

    def _write_forms(self) -> None:
        forms = [*self._forms]
        keys, order = in_key_order(forms)
        lemmas = (codec.encode(self._forms[forms[index]]) for index in order)
        self.store.append("forms", zip(keys, lemmas, strict=True))


def checked_counts(counts: aliases.Weights, surface: Callable[[int], str]) -> aliases.Weights:
    """Return the *counts* of aliases; *surface* gives that of each, for the error.

    Raises:
        SourceError: if one is negative, or greater than `MAX_COUNT`.
    """
    odd = np.flatnonzero(~((counts >= 0) & (counts <= MAX_COUNT)))
    if len(odd):
        raise SourceError(
            f"an alias has the count {counts[odd[0]]}: counts lie between 0 and {MAX_COUNT:g}",
            text=surface(int(odd[0])),
        )
    return counts


def _add(counts: dict[str, tuple[float, float]], name: str, occurrences: Occurrences) -> None:
    count, linked = counts.get(name, (0.0, 0.0))
    counts[name] = count + occurrences.count, linked + occurrences.linked


def _column(numbers: "array[int]") -> Numbers:
    return np.frombuffer(numbers, np.int64)
