"""From grouped rows to the tables of a build, a stretch of sorted rows at a time."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgkit.building import aliases, facts
from kgkit.building.engines import queries
from kgkit.building.engines.columns import PART_BITS, is_digest, shown_name, stored_key
from kgkit.building.engines.session import Session, first_row
from kgkit.building.grouping import BAD_RECORDS, EXAMPLES, MAX_CLASSES, Grouped
from kgkit.building.numbers import NONE, numbering
from kgkit.building.sources import Part
from kgkit.errors import SourceError
from kgkit.store import codec
from kgkit.store.layout import MANY, Counts
from kgkit.store.surfaces import SurfaceWriter
from kgkit.store.writer import Item, StoreWriter
from kgkit.text import Folding
from kgkit.types import Numbers

__all__ = ["Tables", "decode_entity", "join_pieces", "with_attributes"]

EntityRow = tuple[str, str, str, str, str, tuple[str, ...], dict[str, Any]]
"""An entity as the rows have it: key, label, description, kind, pos, types, attributes."""

decode_entity = msgspec.msgpack.Decoder(EntityRow).decode


def join_pieces(pieces: Sequence[EntityRow]) -> EntityRow:
    """Return one entity of its *pieces*: the first text of each field, all types and attributes."""
    if len(pieces) == 1:
        return pieces[0]
    _, *fields = zip(*(piece[:5] for piece in pieces), strict=True)
    label, description, kind, pos = (next(filter(None, texts), "") for texts in fields)
    types = tuple(dict.fromkeys(name for piece in pieces for name in piece[5]))
    attributes = {name: value for piece in reversed(pieces) for name, value in piece[6].items()}
    return pieces[0][0], label, description, kind, pos, types, attributes


def with_attributes(entity: EntityRow, rows: Iterator[tuple[Any, ...]]) -> EntityRow:
    """Return *entity* with further attributes; one that has several values has a list."""
    values: dict[str, list[Any]] = {}
    lists = {name for name, value in entity[6].items() if isinstance(value, list)}  # they stay lists
    for name, value in entity[6].items():
        values[name] = [*value] if isinstance(value, list) else [value]
    texts = {name: {value for value in present if isinstance(value, str)} for name, present in values.items()}
    for _, name, value in rows:
        if value not in (distinct := texts.setdefault(name, set())):
            distinct.add(value)
            values.setdefault(name, []).append(value)
    merged = {
        name: texts_of if len(texts_of) > 1 or name in lists else texts_of[0]
        for name, texts_of in values.items()
    }
    return *entity[:6], merged


_IDS: Final = pa.schema([("key", pa.string()), ("id", pa.int64())])
_VARIANTS: Final = pa.schema([("writing", pa.binary()), ("name", pa.binary())])
_RELATIONS: Final = pa.schema([("name", pa.string()), ("number", pa.int64())])
_SLICE: Final = 1 << 16  # rows that are made into items of the store at once, and what belongs to them
_BYTES: Final = 4 << 20  # of entities that are put together, after which they are written


Count = Callable[[Iterator[str], int], Sequence[Path]]


class Tables:
    """Runs the queries of one build and writes what they give.

    Args:
        session: session with the table `records`.
        parts: parts that the rows are of.
        store: writer of the tables.
        inverses, smoothing, pieces: values as in `Builder`.
        folding: folding of the surfaces.
        generator: name of the generator: `alias` KBs of many aliases are matched by tries.
        min_count: least count of a pair of surface and entity; those that were counted less often are left
            out.
        tell: callback that is told what is being done.
        count: function that counts surfaces in the texts of the source, given all of them, folded, and their
            number; gives the files that have the rows. None where there are no texts.
    """

    def __init__(
        self,
        session: Session,
        parts: Sequence[Part],
        store: StoreWriter,
        *,
        inverses: Mapping[str, str],
        smoothing: float,
        folding: Folding,
        generator: str,
        pieces: bool,
        min_count: float,
        tell: Callable[[str], None],
        count: Count | None = None,
    ) -> None:
        self.count_in_texts = count
        self.session, self.parts, self.store, self.tell = session, parts, store, tell
        self.inverses, self.smoothing, self.min_count = inverses, smoothing, min_count
        self.generator, self.pieces, self.folding = generator, pieces, folding
        self._dropped: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self._starts: dict[str, dict[str, int]] = {}
        self._tries: SurfaceWriter | None = None

    def write(self) -> Grouped:
        """Write every table and return the counts.

        Raises:
            SourceError: if two entities have one key, and are not told in pieces.
        """
        self.tell("grouping keys")
        number, first = first_row(self.session, queries.BAD_RECORDS) or (0, None)
        self._dropped[BAD_RECORDS] = number
        if first is not None:
            self._examples[BAD_RECORDS] = [first]
        entities, redirects = self._group_keys()
        self.tell("writing keys")
        self.store.append("keys", _keys(self.session.rows(queries.ROWS_OF_KEYS)))
        self.tell("grouping facts")
        self.session.make("attributes", queries.ATTRIBUTES)
        attributes = self._count(queries.STORED_ATTRIBUTES)
        self._dropped["attribute of no entity"] = self._count(queries.STATED_ATTRIBUTES) - attributes
        kinds, class_of, classes = self._write_entities(attributes > 0)
        triples, relations, stored = self._write_facts()
        self.session.drop("attributes", "facts")
        number_of_aliases, alias_rows = self._write_aliases(class_of)
        self._write_names()
        surfaces = self._surfaces()
        self._write_occurrences()
        forms = self._write_forms()
        self.store.append(
            "meta",
            [
                (b"class_of_entity", class_of.tobytes()),
                (b"classes", codec.encode(classes)),
                (b"relations", codec.encode(relations)),
                *surfaces,
            ],
        )
        counts = Counts(
            entities=dict(kinds),
            relations=stored,
            redirects=redirects,
            forms=forms,
            dropped={reason: count for reason, count in sorted(self._dropped.items()) if count},
        )
        return Grouped(entities, triples, number_of_aliases, alias_rows, counts, self._examples)

    def _row(self, query: str) -> tuple[int, ...]:
        row = first_row(self.session, query)
        assert row is not None
        return tuple(map(int, row))

    def _count(self, query: str) -> int:
        return self._row(query)[0]

    # -- keys and entities --------------------------------------------------

    def _group_keys(self) -> tuple[int, int]:
        """Make `ids` and `keys`; return how many entities there are, and redirects that lead to one."""
        session = self.session
        session.make("keys_told", queries.STATED_KEYS)
        twice = None if self.pieces else first_row(session, queries.DUPLICATE_KEY)
        if twice is not None:
            raise self._duplicate_key(*twice)
        numbered = _Numbered()
        session.put("ids", _IDS, map(numbered, session.rows(queries.KEYS_IN_ORDER)))
        session.make("redirects_told", queries.STATED_REDIRECTS)
        self._dropped["second redirect of a key"] = self._count(queries.SECOND_REDIRECTS)
        session.make("hops", queries.HOPS)
        self._follow()
        session.make("resolved", queries.RESOLVED)
        session.make("keys", queries.KEYS)
        count = "SELECT count(*) FROM "
        stated, hops = self._count(count + "redirects_told"), self._count(count + "hops")
        redirects = self._count(count + "resolved")
        self._dropped["redirect of an entity's own key"] = stated - hops
        if redirects < hops:
            self._tell_lost_redirects()
        session.drop("keys_told", "redirects_told", "hops", "jumps", "resolved")
        return numbered.count, redirects

    def _duplicate_key(self, key: str, *positions: int) -> SourceError:
        first, second = (self.parts[position >> PART_BITS] for position in positions)
        same = first.path == second.path
        names = [part.name if same else f"{part.name} of {part.path}" for part in (first, second)]
        return SourceError(
            f"two entities have the key {shown_name(key)!r}, in {' and '.join(dict.fromkeys(names))}: "
            "keys must be unique",
            path=first.path if same else None,
        )

    def _follow(self) -> None:
        """Make `jumps`: each redirect with the key at the end of its chain, or one within its loop."""
        self.session.make("jumps", queries.JUMPS)
        reach, leading_on = 1, self._count(queries.OPEN_JUMPS)
        longest = reach + leading_on  # a chain of more hops would have more jumps that lead on
        while leading_on and reach < longest:
            self.session.make("jumps", queries.LONGER_JUMPS)
            reach *= 2
            leading_on = self._count(queries.OPEN_JUMPS)
            longest = min(longest, reach + leading_on)

    def _tell_lost_redirects(self) -> None:
        lost = f"({queries.LOST_REDIRECTS}) lost"
        for reason, loop in (("redirect in a loop", "looping"), ("redirect to no entity", "NOT looping")):
            if count := self._count(f"SELECT count(*) FROM {lost} WHERE {loop}"):
                self._dropped[reason] = count
                self._show(
                    reason, f"SELECT source, target FROM {lost} WHERE {loop} ORDER BY place", "{} → {}".format
                )

    def _show(self, reason: str, query: str, wording: Callable[..., str]) -> None:
        rows = self.session.rows(f"{query} LIMIT {EXAMPLES}")
        examples = [wording(*map(shown_name, row)) for row in _tuples(rows)]
        self._examples[reason] = examples

    def _write_entities(self, has_attributes: bool) -> tuple[Counter[str], np.ndarray, list[str]]:
        """Write `entities`; return how many there are of each kind, and their parts of speech."""
        self.tell("writing entities")
        kinds: Counter[str] = Counter()
        classes = numbering()
        classes[""]  # number 0: no part of speech
        class_of = bytearray()
        batches = self.session.rows(queries.ROWS_OF_ENTITIES)
        entities = (
            self._complete(batches, has_attributes) if self.pieces or has_attributes else _plain(batches)
        )
        for rows, of_kind, of_class in entities:
            self.store.append("entities", rows)
            kinds.update(of_kind)
            numbers = map(classes.__getitem__, of_class)
            class_of.extend([number if number <= MAX_CLASSES else 0 for number in numbers])
        return kinds, np.frombuffer(class_of, np.uint8), [*classes][1 : MAX_CLASSES + 1]

    def _complete(
        self, batches: Iterator[pa.RecordBatch], has_attributes: bool
    ) -> Iterator[tuple[list[Item], list[str], list[str]]]:
        """Yield entities whose pieces have been put together, with their attributes."""
        attribute_rows = self.session.rows(queries.ROWS_OF_ATTRIBUTES) if has_attributes else iter(())
        attributes = groupby(_tuples(attribute_rows), itemgetter(0))
        owner, values = next(attributes, (None, iter(())))
        rows: list[Item] = []
        kinds, classes, size = [], [], 0
        for number, pieces in groupby(_tuples(batches), itemgetter(0)):
            entity = join_pieces([decode_entity(body) for *_, body in pieces])
            if owner == number:
                entity = with_attributes(entity, values)
                owner, values = next(attributes, (None, iter(())))
            rows.append((codec.pack_id(number), codec.encode((*entity, number))))
            kinds.append(entity[3])
            classes.append(entity[4])
            size += len(rows[-1][1])
            if size >= _BYTES:
                yield rows, kinds, classes
                rows, kinds, classes, size = [], [], [], 0
        yield rows, kinds, classes

    # -- facts --------------------------------------------------------------

    def _write_facts(self) -> tuple[int, list[tuple[str, str | None]], dict[str, int]]:
        """Write `facts` and `incoming`; return triples stored, the relations, triples by relation."""
        session = self.session
        self.tell("grouping facts")
        names = [row[0] for row in _tuples(session.rows(queries.STATED_RELATIONS))]
        numbers = pa.RecordBatch.from_arrays(
            [pa.array(names, pa.string()), pa.array(range(len(names)), pa.int64())], schema=_RELATIONS
        )
        session.put("relations", _RELATIONS, [numbers])
        session.make("facts", queries.FACTS)
        triples = self._count(queries.STATED_TRIPLES) + self._count(queries.EDGES_OF_ATTRIBUTES)
        distinct, real = self._row(queries.STORED_FACTS)
        self._dropped["triple with an unknown end"] = triples - real
        self._dropped["triple written twice"] = real - distinct
        if triples > real:
            self._show("triple with an unknown end", queries.LOST_TRIPLES, "{} {} {}".format)
        sizes = np.zeros((len(names), 2), np.int64)
        for relation, pairs, upward in _tuples(session.rows(queries.FACTS_BY_RELATION)):
            sizes[relation] = pairs, upward
        number_of = {name: number for number, name in enumerate(names)}

        def agree(name: str, inverse: str) -> bool:
            """Say whether every fact of one relation has its counterpart of the other."""
            first, second = number_of[name], number_of[inverse]
            if sizes[first, 0] != sizes[second, 0]:
                return False
            return not self._count(queries.UNMATCHED_FACTS.format(relation=first, inverse=second))

        relations = facts.pair_inverses(names, self.inverses, agree)
        stored = {name: int(sizes[number_of[name], int(name == inverse)]) for name, inverse in relations}
        directions = facts.directions(names, relations)
        selects = [queries.OUTWARD] + [
            queries.TURNED.format(relation=number, block=block)
            for block, (number, _) in enumerate(directions.untold, 1)
        ]
        self.tell("writing facts")
        inverse_codes = np.array([0, *(code for _, code in directions.untold)])

        def encode(relation: Numbers, block: Numbers) -> Numbers:
            """Return the codes of relations, in *block* 0 of the direction stored, else of the inverse."""
            return np.where(block == 0, directions.codes[relation], inverse_codes[block])

        outward = session.rows(queries.ROWS_OUTWARD.format(told=" UNION ALL ".join(selects)))
        self.store.append("facts", _facts(outward, encode))
        two_ways = np.flatnonzero(~directions.without_inverse).tolist()
        condition = f"WHERE relation NOT IN ({', '.join(map(str, two_ways))})" if two_ways else ""
        incoming = session.rows(queries.ROWS_INCOMING.format(condition=condition))
        self.store.append("incoming", _facts(incoming, lambda relation: directions.codes[relation]))
        return sum(stored.values()), relations, stored

    # -- aliases and forms --------------------------------------------------

    def _write_aliases(self, class_of: np.ndarray) -> tuple[int, int]:
        """Write `aliases`, and how they begin; return how many aliases there are, and rows."""
        session = self.session
        self.tell("grouping aliases")
        session.make("meanings", queries.MEANINGS)
        aliases_in, empty = self._row(queries.STATED_ALIASES)
        self._dropped["alias without a character"] = empty
        self._dropped["alias of no entity"] = lost = aliases_in - self._count(queries.STORED_ALIASES)
        self._dropped["sense of an alias that is no entity"] = self._count(queries.LOST_SENSES)
        if lost:
            self._show("alias of no entity", queries.LOST_ALIASES, "{!r} → {}".format)
        session.drop("keys")
        self.tell("writing aliases")
        return self._store_aliases(class_of)

    def _store_aliases(self, class_of: np.ndarray) -> tuple[int, int]:
        many = self.generator == "alias" and self._number_of_names() > MANY
        self._tries = SurfaceWriter(self.store.folder) if many else None
        counts = Counter[str]()
        self.session.put("variants", _VARIANTS, self._variants(aliases.class_bits(class_of), counts))
        return counts["names"], counts["rows"]

    def _variants(self, bit_of: NDArray[np.uint8], counts: Counter[str]) -> Iterator[pa.RecordBatch]:
        """Write `aliases`, count them, and yield their other writings: keys of `variants` and `aliases`."""
        for batch in _slices(self.session.rows(queries.ROWS_OF_ALIASES), "name"):
            columns, names = _alias_columns(batch)
            if self.min_count:
                columns = aliases.frequent_only(columns, names, self.min_count)
            rows, spellings = aliases.add_up(columns, names, self.smoothing)
            self.store.append("aliases", aliases.alias_rows(rows, spellings, names, bit_of))
            numbers = np.unique(rows.name)
            counts["names"] += len(numbers)
            counts["rows"] += len(rows.name)
            surfaces = np.unique(columns.surface)
            variants = aliases.variants(
                [names.surfaces[index] for index in surfaces.tolist()], {}, self.folding
            )
            if self._tries is not None:
                digests = np.fromiter(map(is_digest, names.folded), bool, len(names.folded))
                self._tries.add([names.folded[index] for index in numbers[~digests[numbers]].tolist()])
                surfaces = np.unique(columns.surface[digests[names.of_surface[columns.surface]]])
            aliases.starts([names.surfaces[index] for index in surfaces.tolist()], self._starts, self.folding)
            aliases.starts(variants, self._starts, self.folding)
            pairs = [(codec.bounded_key(writing), key) for writing, keys in variants.items() for key in keys]
            columns_of_pairs = zip(*pairs, strict=True) if pairs else ((), ())
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, pa.binary()) for column in columns_of_pairs], schema=_VARIANTS
            )

    def _write_names(self) -> None:
        """Write `names`: the aliases by which each entity is known."""
        self.tell("writing surfaces")
        having = queries.OFTEN.format(min_count=self.min_count) if self.min_count else ""
        pairs = _tuples(self.session.rows(queries.NAMES_OF_ENTITIES.format(having=having)))
        self.store.append(
            "names",
            (
                (codec.pack_id(entity), codec.encode([stored_key(name) for _, name in group]))
                for entity, group in groupby(pairs, itemgetter(0))
            ),
        )

    def _surfaces(self) -> list[Item]:
        """Return what `meta` says of the tries, if there are any."""
        if self._tries is None:
            return []
        aliases.starts(self._tries.aside, self._starts, self.folding)
        return [self._tries.finish()]

    @property
    def _names(self) -> str:
        """The query for the aliases that are kept."""
        return queries.NAMES_OFTEN.format(min_count=self.min_count) if self.min_count else queries.NAMES

    def _number_of_names(self) -> int:
        return self._count(queries.NUMBER_OF_NAMES.format(names=self._names))

    def _write_occurrences(self) -> None:
        """Count surfaces in the texts, if there are some, and write `occurrences`, if any are known."""
        session, records = self.session, "records"
        if self.count_in_texts is None and not self._count(queries.NUMBER_OF_OCCURRENCES):
            return
        if self.count_in_texts is not None:
            names = (name for (name,) in _tuples(session.rows(self._names)) if not is_digest(name))
            session.view("counted", self.count_in_texts(names, self._number_of_names()))
            records = f"({queries.UNITED_OCCURRENCES}) both_kinds"
        session.make("occurrences", queries.STATED_OCCURRENCES.format(records=records))
        self._dropped["occurrences of no alias"] = self._count(
            queries.LOST_OCCURRENCES.format(names=self._names)
        )
        rows = session.rows(queries.ROWS_OF_OCCURRENCES.format(names=self._names))
        self.store.append(
            "occurrences",
            (
                (stored_key(name), codec.pack_occurrences(times, linked))
                for name, times, linked in _tuples(rows)
            ),
        )

    def _write_forms(self) -> int:
        """Write `forms`, and `starts`, which they are sought by too; return how many there are."""
        forms = 0
        items: list[Item] = []
        for name, lemmas in groupby(_tuples(self.session.rows(queries.ROWS_OF_FORMS)), itemgetter(0)):
            forms += 1
            items.append((stored_key(name), codec.encode([(lemma, pos) for _, lemma, pos, _ in lemmas])))
            aliases.starts([name], self._starts, self.folding)
        self.store.append("forms", items)
        self.store.append("starts", aliases.start_rows(self._starts))
        self.store.append(
            "variants",
            (
                (writing, codec.encode([key for _, key in group]))
                for writing, group in groupby(_tuples(self.session.rows(queries.VARIANTS)), itemgetter(0))
            ),
        )
        self.session.drop("variants")
        return forms


class _Numbered:
    """Numbers keys from 0, batch by batch."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = np.arange(self.count, self.count + batch.num_rows)
        self.count += batch.num_rows
        return pa.RecordBatch.from_arrays([batch.column(0), pa.array(ids)], schema=_IDS)


def _lists(batch: pa.RecordBatch) -> list[list[Any]]:
    return [column.to_pylist() for column in batch.columns]


def _tuples(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*_lists(batch), strict=True)


def _keys(batches: Iterator[pa.RecordBatch]) -> Iterator[Item]:
    for key, number in _tuples(batches):
        yield stored_key(key), codec.pack_id(number)


def _plain(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[list[Item], list[str], list[str]]]:
    """Yield entities as they were told."""
    for batch in batches:
        numbers, kinds, classes, bodies = _lists(batch)
        # An array of seven fields becomes one of eight: the id comes last.
        rows = [
            (codec.pack_id(number), b"\x98" + body[1:] + codec.encode(number))
            for number, body in zip(numbers, bodies, strict=True)
        ]
        yield rows, kinds, classes


def _slices(batches: Iterator[pa.RecordBatch], by: str) -> Iterator[pa.Table]:
    """Yield sorted rows some ten thousand at a time, never parting those that are equal in *by*."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows < _SLICE:
            continue
        last = batch.column(by)
        # Where the run of the last value begins in this batch: the rows before it are whole.
        begin = _begin_of_last(last)
        if begin:
            waiting[-1] = batch.slice(0, begin)
            yield pa.Table.from_batches(waiting)
            waiting, rows = [batch.slice(begin)], batch.num_rows - begin
    if waiting:
        yield pa.Table.from_batches(waiting)


def _begin_of_last(values: pa.Array) -> int:
    """Return the place from which on sorted *values* are as the last of them."""
    encoded = values.dictionary_encode()
    return int(np.searchsorted(encoded.indices.to_numpy(), len(encoded.dictionary) - 1))


def _facts(batches: Iterator[pa.RecordBatch], coded: Callable[..., Numbers]) -> Iterator[Item]:
    for table in _slices(batches, "entity"):
        entity, relation, other, *block = (column.to_numpy() for column in table.columns)
        yield from facts.rows(entity, coded(relation, *block), other)


def _alias_columns(batch: pa.Table) -> tuple[aliases.Columns, aliases.Names]:
    """Return a stretch of `ROWS_OF_ALIASES` as the columns of `aliases`, in the order of the source."""
    order = np.argsort(batch.column("place").to_numpy(), kind="stable")
    name, folded = _encode(batch.column("name"))
    surface, surfaces = _encode(batch.column("surface"))
    of_surface = np.empty(len(surfaces), np.int64)
    of_surface[surface] = name
    names = aliases.Names.folded_already(surfaces, folded, [*map(stored_key, folded)], of_surface)
    sense = batch.column("sense").combine_chunks().fill_null(NONE).to_numpy()
    entity, counted = batch.column("entity").to_numpy(), batch.column("counted").to_numpy()
    return aliases.Columns(surface[order], entity[order], sense[order], counted[order]), names


def _encode(column: pa.ChunkedArray) -> tuple[Numbers, list[str]]:
    """Return *column* as places in the list of its values, those in the order in which they come."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
