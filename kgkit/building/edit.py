"""From a published knowledge base and edits to its next build.

Ids stay. A retired entity leaves its key and id in `entities` and its id in
`meta`, and nothing else: no row names it any more, and its id is not dealt out
again. Of the other rows, only those that an edit touches are read and written.

A file of edits has an object a line, an entity each, with the fields of the builder `jsonl` and four more:

    key             which entity: its own key
    label, description, kind, pos, types    what they are from now on
    attributes      some of them: those that are named are replaced, null withdraws one
    aliases         further surfaces, or the count and sense of one that is there
    remove_aliases  surfaces that are withdrawn, as they are spelled
    remove_facts    facts that are withdrawn: relation and object
    retire          true: the entity goes, with its aliases and facts

The first line may be `{"kgkit": {…}}`: name, version, licence, url and date of the edits, `label_aliases`.
"""

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import islice
from math import isclose
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from kgkit.building import row_changes
from kgkit.building.attributes import check_attributes
from kgkit.building.build import Built, no_garbage
from kgkit.building.contract import MAX_COUNT
from kgkit.building.json_lines import LINE_ERRORS, EntityFields, json_problem
from kgkit.building.next_build import changing, publish_change
from kgkit.building.record_lists import is_record_list, written_records
from kgkit.building.registering import register
from kgkit.errors import SourceError, UnknownEntity, UnknownName, UsageError
from kgkit.files import text_lines
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.kb.facts import Facts, pairs
from kgkit.store import Manifest, SourceInfo, StoreEditor, codec
from kgkit.store.damage import report_damage
from kgkit.store.layout import EDITED_FORMAT, FORMAT, OLDER, U32
from kgkit.store.writer import Item
from kgkit.types import NO_SENSE, Entity, Ids
from kgkit.versions import file_sha256

__all__ = ["Revision", "edit_kb"]

_BATCH: Final = 8192  # rows that are read at once
_Ends = dict[int, set[tuple[int, int]]]  # an entity -> (other end, code) of facts in its row


_REPLACED: Final = ("label", "description", "kind", "pos", "types")
"""Fields of an entity that an edit replaces."""

_EDITED: Final[dict[str, Any]] = {"format": EDITED_FORMAT, "fingerprint": OLDER[EDITED_FORMAT]}
"""Fields of the manifest of an older build that has been edited."""

_ADDITIONS: Final = ("alias", "form", "linked", "occurrences", "redirect", "subject", "surface")


class _EditHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the whole in the first line.

    Attributes:
        label_aliases: whether a new label is an alias of its entity, too.
    """

    name: str = ""
    version: str = ""
    licence: str = ""
    url: str = ""
    date: str = ""
    label_aliases: bool = True


class EditedAlias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A surface that an entity gets, or has; a count or sense that is not given stays, or is none."""

    text: str
    count: float | None = None
    sense: str | None = None


class _FactOfEntity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact, where it stands with its subject."""

    relation: str
    object: str


class EntityEdit(EntityFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line: what is to become of one entity; the module's docstring explains the fields."""

    aliases: list[str | EditedAlias] | None = None
    remove_aliases: list[str] | None = None
    remove_facts: list[_FactOfEntity] | None = None
    retire: bool | None = None
    kgkit: _EditHead | None = None

    def given_fields(self) -> list[str]:
        """Return the names of the fields that the line has, but for the key."""
        return [name for name in self.__struct_fields__ if name != "key" and getattr(self, name) is not None]

    def all_aliases(self, label_aliases: bool) -> Iterator[EditedAlias]:
        """Yield the surfaces that the entity gets, or has, the new label among them if *label_aliases*."""
        given = [EditedAlias(alias) if isinstance(alias, str) else alias for alias in self.aliases or ()]
        yield from given
        if label_aliases and self.label and self.label not in [alias.text for alias in given]:
            yield EditedAlias(self.label)


_decode: Final = msgspec.json.Decoder(EntityEdit).decode
_FIELDS: Final = sorted(
    {name for line in (EntityEdit, _EditHead, EditedAlias) for name in line.__struct_fields__}
)


def _read_edits(path: Path, take: Callable[[EntityEdit, list[EditedAlias]], None]) -> SourceInfo:
    """Pass the edit of every line to *take*, with the surfaces it gives; blank lines are passed over.

    Args:
        path: file of JSON lines, compressed if its name ends so.
        take: function that takes an edit, and raises `ValueError` for one that it cannot follow.

    Returns:
        What the file says of itself, with its path and checksum.

    Raises:
        NotThere: if there is no file.
        SourceError: at the first line that cannot be followed; with its number.
    """
    head, checksum = _EditHead(), ""
    lines_of: dict[str, int] = {}
    for number, text in text_lines(path):
        if text.isspace():
            continue
        checksum = checksum or file_sha256(path)
        try:
            edit = _decode(text)
            if edit.kgkit is not None:
                head = _head_of(edit, number)
                continue
            aliases = [*edit.all_aliases(head.label_aliases)]
            key = _check(edit, aliases)
            if (earlier := lines_of.setdefault(key, number)) != number:
                raise ValueError(f"line {earlier} edits {key!r} as well: one line says all of an entity")
            take(edit, aliases)
        except LINE_ERRORS as error:
            raise SourceError(_problem(error), path=path, line=number, text=text) from None
    return SourceInfo(
        name=head.name or path.name.split(".")[0], version=head.version, licence=head.licence, url=head.url,
        date=head.date, path=str(path.absolute()), sha256=checksum or file_sha256(path),
    )  # fmt: skip


def _problem(error: Exception) -> str:
    text = json_problem(error, _FIELDS)
    if text.startswith("not JSON"):
        return (
            f'{text}. Edits are JSON lines, as {{"key": "…", "label": "…"}}; `kgkit kb add` reads tables too'
        )
    if any(text.startswith(f"there is no field {name!r}") for name in _ADDITIONS):
        return (
            f"{text.partition(';')[0]} in a file of edits: `kgkit kb add` takes such lines; "
            "'remove_aliases' and 'remove_facts' of an entity withdraw its aliases and facts"
        )
    return text


def _head_of(edit: EntityEdit, number: int) -> _EditHead:
    assert edit.kgkit is not None
    if number > 1:
        raise ValueError("'kgkit' belongs on the first line only")
    if edit.key is not None or len(edit.given_fields()) > 1:
        raise ValueError("'kgkit' stands on a line of its own")
    return edit.kgkit


def _check(edit: EntityEdit, aliases: list[EditedAlias]) -> str:
    """Return the key of an edit; see that it says something, and nothing against itself."""
    if not edit.key:
        raise ValueError(
            f"'key' is {'empty' if edit.key == '' else 'missing'}: it says which entity the line edits"
        )
    fields = edit.given_fields()
    if not fields:
        raise ValueError(f"says nothing about {edit.key!r} that could change")
    if edit.retire is False:
        raise ValueError("'retire' is false: leave it out, entities stay unless it is true")
    if edit.retire and len(fields) > 1:
        others = " and ".join(repr(name) for name in fields if name != "retire")
        raise ValueError(f"has 'retire' and {others}: an entity that goes is not changed")
    removed = edit.remove_aliases or []
    for alias in aliases:
        if not alias.text:
            raise ValueError("one of the 'aliases' is empty")
        if alias.text in removed:
            field = "aliases" if edit.aliases and alias.text in _texts(edit) else "label"
            raise ValueError(f"{alias.text!r} is in 'remove_aliases', and in {field!r}, which adds it")
        if alias.count is not None and not 0 <= alias.count <= MAX_COUNT:
            raise ValueError(f"the count is {alias.count:g}: counts lie between 0 and {MAX_COUNT:g}")
    if repeated := next((text for text in _texts(edit) if _texts(edit).count(text) > 1), None):
        raise ValueError(f"{repeated!r} comes twice in 'aliases'")
    if edit.attributes:
        check_attributes(edit.attributes)
    return edit.key


def _texts(edit: EntityEdit) -> list[str]:
    return [alias if isinstance(alias, str) else alias.text for alias in edit.aliases or ()]


class Revision:
    """Takes edits in, each compared with the KB, then writes what they change.

    Edits may be repeated: what an edit withdraws and is not there, is withdrawn already.

    Args:
        base: KB that is edited; of a format that lists the surfaces of an entity.

    Attributes:
        absent: aliases and facts that edits withdraw and the KB does not have, as a message names them.
    """

    def __init__(self, base: KnowledgeBase) -> None:
        self.base, self._store, self._fold = base, base.store, base.store.folding.fold
        self.absent: list[str] = []
        self._retire_lines: set[str] = set()  # keys of the lines that retire an entity
        self._retired_senses: set[str] = set()  # keys that lines give as senses, retired earlier
        self._other_keys: dict[int, str] = {}  # entity -> another key, by which a line names it
        self._facts = Facts(base.store, base.name)
        self._changed: dict[int, Entity] = {}
        self._retired: set[int] = set()
        self._set: dict[str, dict[tuple[str, int], EditedAlias]] = defaultdict(dict)  # by folded surface
        self._withdrawn: dict[str, set[tuple[str, int]]] = defaultdict(set)  # likewise: exact surface, entity
        self._outward: _Ends = defaultdict(set)  # facts that go, as `facts` has them
        self._incoming: _Ends = defaultdict(set)  # and as `incoming` has them
        self._stored: set[tuple[int, int, int]] = set()  # and as they are counted

    def take(self, edit: EntityEdit, aliases: Sequence[EditedAlias]) -> None:
        """Take in an edit.

        Args:
            edit: what is to become of an entity.
            aliases: surfaces that it gets or has; see `EntityEdit.all_aliases`.

        Raises:
            ValueError: if the KB has never had such an entity or relation, or has retired the one to change.
        """
        assert edit.key is not None
        if edit.retire:
            self._retire_lines.add(edit.key)
            if edit.key not in self.base and edit.key in self._retired_keys:
                return
        entity = self._entity(edit.key)
        if edit.retire:
            self._retire(entity.id)
            return
        fields = {name: value for name in _REPLACED if (value := getattr(edit, name)) is not None}
        if edit.attributes is not None:
            attributes = {**entity.attributes, **edit.attributes}
            fields["attributes"] = {name: value for name, value in attributes.items() if value is not None}
        if (changed := msgspec.structs.replace(entity, **fields)) != entity:
            self._changed[entity.id] = changed
        if aliases or edit.remove_aliases:
            self._take_aliases(entity, aliases, edit.remove_aliases or ())
        for fact in edit.remove_facts or ():
            self._withdraw_fact(entity, fact.relation, fact.object)

    def _entity(self, key: str) -> Entity:
        try:
            entity = self.base[key]
        except UnknownEntity as error:
            raise ValueError(str(error)) from None
        if entity.key != key:
            raise ValueError(f"{key!r} is another key of {entity.key!r}: name the entity by its own")
        return entity

    @cached_property
    def _retired_keys(self) -> frozenset[str]:
        """Keys of the entities that were retired before."""
        return frozenset(entity.key for entity in self._store.entities(sorted(self._store.retired)))

    def _named(self, key: str) -> int | None:
        """Return the id of an entity that a line names beside its own; None if it was retired before.

        Raises:
            ValueError: if the KB has never had it.
        """
        try:
            number = self.base.id(key)
        except UnknownEntity as error:
            if key in self._retired_keys:
                return None
            raise ValueError(str(error)) from None
        if self.base.key(number) != key:
            self._other_keys[number] = key
        return number

    # -- aliases --------------------------------------------------------------

    def _take_aliases(self, entity: Entity, aliases: Sequence[EditedAlias], removed: Sequence[str]) -> None:
        surfaces = {
            surface: (count, sense) for surface, _, count, sense in self._store.surfaces_of(entity.id)
        }
        senses: dict[str, int] = {}
        changed: set[str] = set()  # folded surfaces
        for alias in aliases:
            if not (folded := self._fold(alias.text)):
                raise ValueError(f"the alias {alias.text!r} has no character")
            sense = None
            if alias.sense is not None:
                if (sense := self._named(alias.sense)) is None:
                    self._retired_senses.add(alias.sense)
                    sense = NO_SENSE
                if senses.setdefault(folded, sense) != sense:
                    raise ValueError(f"the alias {alias.text!r} has two senses, in two spellings")
            if (has := surfaces.get(alias.text)) is None or not _is_so(alias.count, sense, *has):
                changed.add(folded)
        for alias in aliases:
            if (folded := self._fold(alias.text)) in changed:
                self._set[folded][alias.text, entity.id] = alias
        for surface in removed:
            if surface not in surfaces:
                self.absent.append(f"alias {surface!r} of {entity.key!r}")
                continue
            self._withdrawn[self._fold(surface)].add((surface, entity.id))

    def _write_aliases(self, store: StoreEditor) -> tuple[int, int]:
        """Write all tables of surfaces; return how many more aliases there are, and rows."""
        keys = {codec.bounded_key(folded): folded for folded in (*self._set, *self._withdrawn)}
        touched = dict.fromkeys([*keys, *self._keys_of_entities(), *self._keys_of_senses()])
        everything: list[row_changes.AliasPair] = []
        lost: dict[int, set[bytes]] = defaultdict(set)
        gained: dict[int, set[bytes]] = defaultdict(set)
        gone, new, names, rows = list[bytes](), list[str](), 0, 0
        for key in touched:
            row = self._store.row("aliases", key)
            old = [] if row is None else [*codec.alias_counts(key, row, self.base.manifest.smoothing)]
            pairs = self._edited_pairs(keys.get(key, ""), old)
            before, after = {pair[1] for pair in old}, {pair[1] for pair in pairs}
            for entity in before - after:
                lost[entity].add(key)
            for entity in after - before:
                gained[entity].add(key)
            if row is None:
                new += [surface for surface, *_ in pairs]
            elif not pairs:
                gone.append(key)
            elif self._store.surfaces is None:
                known = {surface for surface, *_ in old}
                new += [surface for surface, *_ in pairs if surface not in known]
            names += bool(pairs) - bool(old)
            rows -= len(before)
            everything += pairs
        store.remove("aliases", gone)
        if self._store.has_occurrences:
            store.remove("occurrences", gone)
        if everything:
            class_of = row_changes.classes_of(self._class_rows())
            joined, items = row_changes.grouped_aliases(everything, self.base.manifest, class_of)
            rows += joined
            store.put("aliases", items)
        self._write_names(store, lost, gained)
        for table, items in row_changes.rows_of_surfaces(self._store, new).items():
            store.put(table, items)
        return names, rows

    def _edited_pairs(self, folded: str, old: Sequence[row_changes.AliasPair]) -> list[row_changes.AliasPair]:
        """Return the meanings of a surface after the edits, each with its exact surface."""
        withdrawn, edited = self._withdrawn.get(folded, set()), self._set.get(folded, {})
        senses = {
            entity: NO_SENSE if alias.sense in self._retired_senses else self.base.id(alias.sense)
            for (_, entity), alias in edited.items()
            if alias.sense is not None
        }
        pairs: dict[tuple[str, int], row_changes.AliasPair] = {
            (surface, entity): (surface, entity, senses.get(entity, sense), count)
            for surface, entity, sense, count in old
            if (surface, entity) not in withdrawn
        }
        for (surface, entity), alias in edited.items():
            *_, sense, count = pairs.get((surface, entity), (senses.get(entity, NO_SENSE), 0.0))
            pairs[surface, entity] = surface, entity, sense, count if alias.count is None else alias.count
        return [
            (surface, entity, NO_SENSE if sense in self._retired else sense, count)
            for surface, entity, sense, count in pairs.values()
            if entity not in self._retired
        ]

    def _keys_of_entities(self) -> Iterator[bytes]:
        """Yield the keys of the aliases of retired entities, and of those of another part of speech now."""
        other_pos = [
            number for number, entity in self._changed.items() if entity.pos != self.base[number].pos
        ]
        for number in (*sorted(self._retired), *other_pos):
            yield from self._store.alias_keys(number)

    def _keys_of_senses(self) -> Iterator[bytes]:
        """Yield the keys of the aliases of which a retired entity is a sense; all rows are read."""
        if not self._retired:
            return
        retired = np.array(sorted(self._retired), U32)
        items = self._store.items("aliases")
        with self._store.reading():
            while batch := list(islice(items, _BATCH)):
                senses, row = codec.senses_of_rows([row for _, row in batch])
                for index in np.unique(row[np.isin(senses, retired)]).tolist():
                    yield batch[index][0]

    def _write_names(
        self, store: StoreEditor, lost: Mapping[int, set[bytes]], gained: Mapping[int, set[bytes]]
    ) -> None:
        items, empty = list[Item](), list[bytes]()
        for entity in sorted({*lost, *gained}):
            keys = {*self._store.alias_keys(entity)} - lost.get(entity, set()) | gained.get(entity, set())
            if keys:
                items.append((codec.pack_id(entity), codec.encode(sorted(keys))))
            else:
                empty.append(codec.pack_id(entity))
        store.put("names", items)
        store.remove("names", empty)

    # -- facts ----------------------------------------------------------------

    def _withdraw_fact(self, entity: Entity, relation: str, other: str) -> None:
        try:
            code = self._facts.code(relation)
        except UnknownName as error:
            raise ValueError(str(error)) from None
        end = self._named(other)
        if end is None or (end, code) not in [*pairs(self._facts.edges(entity.id, relation, "out"))]:
            self.absent.append(f"fact {relation!r} {other!r} of {entity.key!r}")
            return
        self._remove_fact(entity.id, code, end)

    def _remove_fact(self, subject: int, code: int, other: int) -> None:
        """Note that a fact goes, from both its ends.

        Args:
            subject: entity that says it, in `facts`.
            code: relation as the subject says it.
            other: entity at the other end.
        """
        self._outward[subject].add((other, code))
        inverse = self._facts.inverse(code)
        if inverse is None:
            self._incoming[other].add((subject, code))
        else:
            self._outward[other].add((subject, inverse))
            if not self._facts.is_stored(subject, code, other):
                subject, code, other = other, inverse, subject
        self._stored.add((subject, code, other))

    def _retire(self, number: int) -> None:
        self._retired.add(number)
        none = np.empty(0, U32), np.empty(0, U32)
        for other, code in pairs(self._store.facts(number) or none):
            self._remove_fact(number, code, other)
        for subject, code in pairs(self._store.incoming(number) or none):
            self._remove_fact(subject, code, number)

    def _write_facts(self, store: StoreEditor) -> dict[str, int]:
        """Write `facts` and `incoming`; return the change of each relation's triples, none above 0."""
        for table, removed, stored in (
            ("facts", self._outward, self._store.facts),
            ("incoming", self._incoming, self._store.incoming),
        ):
            rows = dict(_remaining(removed, stored))
            store.put(table, [(key, row) for key, row in rows.items() if row])
            store.remove(table, [key for key, row in rows.items() if not row])
        counts = Counter(self._facts.name(code) for _, code, _ in self._stored)
        return {relation: -count for relation, count in counts.items()}

    # -- entities -------------------------------------------------------------

    def write(self, store: StoreEditor) -> Manifest:
        """Write the rows that the edits change; return the base's manifest with the new counts.

        Raises:
            SourceError: if no entity would be left, or the edits cannot be applied together.
        """
        manifest = self.base.manifest
        if lost := sorted(self._retired_senses - self._retire_lines):
            raise SourceError(f"the sense {lost[0]!r} of an alias is an entity that was retired")
        if named := self._retired & self._other_keys.keys():
            key, own = self._other_keys[min(named)], self.base.key(min(named))
            raise SourceError(f"retires {own!r}, which it names {key!r} elsewhere: name it {own!r} there")
        if len(self._retired) == manifest.entities:
            raise SourceError(
                f"retires all entities of {self.base.name!r}: `kgkit kb rm {self.base.name}` removes it"
            )
        names, rows = self._write_aliases(store)
        stored = self._write_facts(store)
        redirects = self._write_keys(store)
        kinds = Counter[str]()
        for number in self._retired:
            kinds[self.base[number].kind] -= 1
        for number, entity in self._changed.items():
            kinds[self.base[number].kind] -= 1
            kinds[entity.kind] += 1
        self._write_entities(store)
        counts = manifest.counts
        return msgspec.structs.replace(
            manifest,
            **({} if manifest.format == FORMAT else _EDITED),
            entities=manifest.entities - len(self._retired),
            retired=manifest.retired + len(self._retired),
            triples=manifest.triples + sum(stored.values()),
            aliases=manifest.aliases + names,
            alias_rows=manifest.alias_rows + rows,
            counts=msgspec.structs.replace(
                counts,
                entities={
                    kind: count
                    for kind, count in row_changes.sum_counts(counts.entities, kinds).items()
                    if count
                },
                relations=row_changes.sum_counts(counts.relations, stored),
                redirects=counts.redirects - redirects,
            ),
        )

    def _write_entities(self, store: StoreEditor) -> None:
        entities = {number: Entity(self.base.key(number), id=number) for number in self._retired}
        entities |= self._changed
        store.put(
            "entities",
            [(codec.pack_id(number), codec.encode(entities[number])) for number in sorted(entities)],
        )
        store.put("meta", self._class_rows())
        if self._retired:
            retired = np.array(sorted(self._store.retired | self._retired), U32)
            store.put("meta", [(b"retired", retired.tobytes())])

    def _write_keys(self, store: StoreEditor) -> int:
        """Remove the keys of retired entities; return how many of them were redirects."""
        own = [codec.bounded_key(self.base.key(number)) for number in sorted(self._retired)]
        keys = own
        if self._retired and self.base.manifest.counts.redirects:
            packed = {codec.pack_id(number) for number in self._retired}
            with self._store.reading():
                keys = [key for key, number in self._store.items("keys") if number in packed]
        store.remove("keys", keys)
        return len(keys) - len(own)

    def _class_rows(self) -> list[Item]:
        """Return the parts of speech as the table `meta` has them; a retired entity has none."""
        changed = dict.fromkeys(sorted(self._retired), "")
        return row_changes.class_rows(
            self._store, changed=changed | {n: entity.pos for n, entity in self._changed.items()}
        )


def _is_so(count: float | None, sense: int | None, old_count: float, old_sense: int) -> bool:
    """Say whether an alias has a count and sense, where they are given; counts are kept as 32-bit floats."""
    return (count is None or isclose(count, old_count, rel_tol=1e-5, abs_tol=1e-5)) and (
        sense is None or sense == old_sense
    )


def _remaining(
    removed: Mapping[int, Iterable[tuple[int, int]]], stored: Callable[[int], tuple[Ids, Ids] | None]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and row of each entity in *removed*, without the facts that go."""
    for number, facts in sorted(removed.items()):
        others, codes = stored(number) or (np.empty(0, U32), np.empty(0, U32))
        goes = np.array([code << 32 | other for other, code in facts], np.uint64)
        stays = ~np.isin(codes.astype(np.uint64) << np.uint64(32) | others.astype(np.uint64), goes)
        yield codec.pack_id(number), others[stays].tobytes() + codes[stays].tobytes()


log = logging.getLogger(__name__)

_SHOWN: Final = 5  # absent aliases and facts that the warning lists


@no_garbage()
def edit_kb(
    name: str,
    edits: str | os.PathLike[str] | Sequence[Mapping[str, Any]],
    *,
    home: str | os.PathLike[str] | None = None,
) -> Built:
    """Change, correct and retire entities of a published KB, in a new build of it.

    Entities keep their ids, and the id of a retired one is not dealt out again:
    vectors, indexes and models that were made before still fit, and propose no
    retired entity. `update` of `kgkit.embedding.embed` encodes the texts that
    have changed. Edits that say nothing new leave the KB as it is, so that they
    may be repeated; aliases and facts that they withdraw and that are not there
    are logged. As with `add_to_kb`, the base's files are compared with their checksums first; of the
    rows, those that change are read, and all aliases where an entity is retired.

    Args:
        name: name of the KB.
        edits: path of a file of JSON lines, or a list of dictionaries, an entity each: its `key`, fields
            that are changed (`label`, `description`, `kind`, `pos`, `types`, `attributes`), `aliases` it
            gets, and `remove_aliases`, `remove_facts`, `retire`. The manual has the format
            (`docs/editing.md`).
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.

    Raises:
        NotThere: no such KB, or no such file.
        SourceError: a line that cannot be followed: an unknown key, field or relation, a contradiction;
            says in which line.
        FormatMismatch: the KB is of format 2, and has to be built again.
        KBBusy: another process is building or removing this KB.
        DamagedKB: the KB's files are not as they were written.
        WriteFailed: no room on the disk.

    Examples:
        >>> kgkit.edit_kb("towns", [{"key": "berlin", "label": "Berlin", "remove_aliases": ["Berlim"]}])
    """
    lines = nullcontext(Path(edits)) if isinstance(edits, str | os.PathLike) else _written(edits)
    with changing(name, home, "edits are for") as (staging, base), lines as path:
        base.store.alias_keys(0)  # refuses a format without them
        revision, old = Revision(base), base.manifest
        with report_damage(base.store.folder):
            info = _read_edits(path, revision.take)
        if absent := revision.absent:
            shown = ", ".join(absent[:_SHOWN]) + (", …" if len(absent) > _SHOWN else "")
            log.warning("withdrawn by %s, but not in %r: %s", path.name, name, shown)
        if not isinstance(edits, str | os.PathLike):
            info = msgspec.structs.replace(info, path="")

        def change(store: StoreEditor) -> Manifest:
            return msgspec.structs.replace(revision.write(store), edited=(*old.edited, info))

        unchanged = Built(name, base.build, base.store.folder, old, {}, {})
        built = publish_change(staging, base, path, change) or unchanged
    if built is not unchanged:
        register(Home.find(home), built.name, built.build)
    return built


def _written(edits: Sequence[Mapping[str, Any]]) -> AbstractContextManager[Path]:
    """Give a file of a list of dictionaries, as `written_records` does.

    Raises:
        UsageError: if it is no such list.
    """
    if not is_record_list(edits):
        raise UsageError("edits are the path of a file, or a list of dictionaries, one for each entity")
    return written_records(edits)
