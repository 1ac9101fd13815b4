"""Records as rows of one table, the same for all kinds: what workers write and queries read.

| `what`      | `a`     | `b`      | `c`    | `folded`        | `count` | `body`                |
|-------------|---------|----------|--------|-----------------|---------|-----------------------|
| ENTITY      | key     | kind     | pos    |                 |         | msgpack, as the store |
| ALIAS       | surface | key      | sense  | unless as `a`   | count   |                       |
| TRIPLE      | subject | relation | object |                 |         |                       |
| REDIRECT    | source  | target   |        |                 |         |                       |
| FORM        | surface | lemma    | pos    | surface, folded |         |                       |
| ATTRIBUTE   | key     | name     | value  |                 | 1: edge |                       |
| OCCURRENCES | surface |          |        | unless as `a`   | count   |                       |
| BAD         | problem |          |        |                 |         |                       |

`linked` is how many of the OCCURRENCES are links.

`place` orders the rows of a kind: the number of the part, and the row's own within it.
Triples and attributes are of one kind here. Wherever a text is sought as a key it stands
as `stored_name` gives it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import structs

from kgkit.building.contract import Step
from kgkit.building.grouping import checked_counts
from kgkit.building.occurrences import checked_occurrences
from kgkit.building.sources import select
from kgkit.store import codec
from kgkit.store.layout import MAX_KEY
from kgkit.text import Folding
from kgkit.types import (
    Alias,
    Aliases,
    Attribute,
    BadRecord,
    Entity,
    Form,
    Occurrences,
    Record,
    Redirect,
    Triple,
    Triples,
)

__all__ = [
    "ALIAS",
    "ATTRIBUTE",
    "BAD",
    "ENTITY",
    "FORM",
    "OCCURRENCES",
    "REDIRECT",
    "SCHEMA",
    "TRIPLE",
    "RowsOfPart",
    "is_digest",
    "shown_name",
    "stored_key",
    "stored_name",
]

ENTITY, ALIAS, TRIPLE, REDIRECT, FORM, ATTRIBUTE, OCCURRENCES, BAD = KINDS = range(8)

SCHEMA: Final = pa.schema(
    [
        ("what", pa.int8()),
        ("place", pa.int64()),
        ("a", pa.string()),
        ("b", pa.string()),
        ("c", pa.string()),
        ("folded", pa.string()),
        ("count", pa.float64()),
        ("linked", pa.float64()),
        ("body", pa.binary()),
    ]
)

PART_BITS: Final = 40
"""A part has fewer rows than two to this power."""

_BATCH = 4_096  # rows taken in at once, by and large
_KINDS: Final[dict[type, type]] = {Aliases: Alias, Triples: Triple, Attribute: Triple}
_ROWS = 1 << 15  # rows of one kind that are written together …
_BYTES = 8 << 20  # … or text of so many bytes
_LAST: Final = "\U0010ffff" * (MAX_KEY // 4 + 1)  # no key begins so, and all sort before it: it is too long


def stored_name(text: str) -> str:
    """Return *text*, or a name for the digest under which the store has it; sorts as the store's keys do."""
    if 0 < len(text) <= codec.SHORT:
        return text
    key = codec.bounded_key(text)
    return _LAST + key[1:].hex() if key.startswith(codec.DIGEST) else text


def stored_key(name: str) -> bytes:
    """Return the store's key for what `stored_name` gave."""
    if is_digest(name):
        return codec.DIGEST + bytes.fromhex(name.removeprefix(_LAST))
    return name.encode()


def is_digest(name: str) -> bool:
    """Say whether `stored_name` gave *name* for a digest."""
    return name.startswith(_LAST)


def shown_name(name: str) -> str:
    """Return *name* as a message may show it."""
    return f"(a key of no or of more than {MAX_KEY} bytes)" if is_digest(name) else name


class RowsOfPart:
    """Turns the records of one part into rows, a batch for each kind as it fills.

    Args:
        number: number of the part, among all.
        folding: folding of the surfaces.
        types: kinds or types of the entities that are kept; all if there are none.
        steps: whether the records come with `Step`; else each of them is a unit.

    Attributes:
        records: number of records that have been taken in.
        units: number of units of the source that have been read.
    """

    def __init__(
        self, number: int, folding: Folding, types: Sequence[str] = (), *, steps: bool = True
    ) -> None:
        self._fold = folding.fold
        self.records = self.units = 0
        self._steps = steps
        self._first, self._types = number << PART_BITS, types
        self._buffers = [_Buffer(what) for what in KINDS]
        self._counts = [0] * len(KINDS)
        self._take: dict[type, Callable[[Any], None]] = {
            Entity: self._take_entities,
            Attribute: self._take_attributes,
            Alias: self._take_aliases,
            Aliases: self._take_many_aliases,
            Triple: self._take_triples,
            Triples: self._take_many_triples,
            Redirect: self._take_redirects,
            Form: self._take_forms,
            Occurrences: self._take_occurrences,
            BadRecord: self._take_bad_records,
            Step: self._take_steps,
        }

    def batches(self, records: Iterable[Record | Step], limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of *records*, of those of the first *limit* units.

        Raises:
            SourceError: if a count is out of range.
        """
        remaining = select(iter(records), limit=limit, types=self._types, steps=self._steps)
        for by_type in _by_type(remaining):
            self.units += 0 if self._steps else sum(map(len, by_type.values()))
            for batch in by_type.values():
                # What is of one kind stays in its order, however many are told at once.
                for kind, alike in groupby(batch, type):
                    if kind not in self._take:
                        raise TypeError(f"a builder yielded {kind.__name__}, which is no record")
                    self._take[kind]([*alike])
            for buffer in self._buffers:
                yield from buffer.batches(_ROWS, _BYTES)
        for buffer in self._buffers:
            yield from buffer.batches(1, 0)

    def _put(self, what: int, *, a: Sequence[str], **others: Any) -> None:
        """Add rows of a kind, by their columns: *a* and the others that the kind has."""
        rows = len(a)
        counter = TRIPLE if what == ATTRIBUTE else what
        position = self._first + self._counts[counter]
        self._counts[counter] += rows
        self.records += rows
        self._buffers[what].put(rows, np.arange(position, position + rows), {"a": a, **others})

    def _take_entities(self, entities: list[Entity]) -> None:
        encode = codec.encode
        self._put(
            ENTITY,
            a=[stored_name(entity.key) for entity in entities],
            b=[entity.kind for entity in entities],
            c=[entity.pos for entity in entities],
            body=[encode(structs.astuple(entity)[:-1]) for entity in entities],
        )

    def _take_aliases(self, aliases: list[Alias]) -> None:
        self._put_aliases(
            [alias.surface for alias in aliases],
            [alias.key for alias in aliases],
            [alias.count for alias in aliases],
            [None if alias.sense is None else stored_name(alias.sense) for alias in aliases],
        )

    def _take_many_aliases(self, many: list[Aliases]) -> None:
        for aliases in many:
            if aliases.counts:
                surfaces, keys = zip(*aliases.counts, strict=True)
                self._put_aliases(surfaces, keys, [*aliases.counts.values()], [None] * len(keys))

    def _put_aliases(
        self,
        surfaces: Sequence[str],
        keys: Sequence[str],
        counts: Sequence[float],
        senses: Sequence[str | None],
    ) -> None:
        self._put(
            ALIAS,
            a=surfaces,
            b=[*map(stored_name, keys)],
            c=senses,
            folded=[*map(self._name, surfaces)],
            count=checked_counts(np.array(counts, np.float64), surfaces.__getitem__),
        )

    def _take_triples(self, triples: list[Triple]) -> None:
        self._put(
            TRIPLE,
            a=[stored_name(triple.subject) for triple in triples],
            b=[triple.relation for triple in triples],
            c=[stored_name(triple.object) for triple in triples],
        )

    def _take_many_triples(self, many: list[Triples]) -> None:
        subjects: list[str] = []
        relations: list[str] = []
        objects: list[str] = []
        for triples in many:
            if isinstance(triples.objects, str):
                raise TypeError(f"the objects of {triples!r} are one text, and have to be a list of keys")
            subjects += [stored_name(triples.subject)] * len(triples.objects)
            relations += [triples.relation] * len(triples.objects)
            objects += [stored_name(key) for key in triples.objects]
        self._put(TRIPLE, a=subjects, b=relations, c=objects)

    def _take_attributes(self, attributes: list[Attribute]) -> None:
        for attribute in attributes:
            if not isinstance(attribute.value, str):
                raise TypeError(f"the value of {attribute!r} is no text")
        self._put(
            ATTRIBUTE,
            a=[stored_name(attribute.key) for attribute in attributes],
            b=[attribute.name for attribute in attributes],
            c=[attribute.value for attribute in attributes],
            count=np.array([attribute.edge for attribute in attributes], np.float64),
        )

    def _take_redirects(self, redirects: list[Redirect]) -> None:
        self._put(
            REDIRECT,
            a=[stored_name(redirect.source) for redirect in redirects],
            b=[stored_name(redirect.target) for redirect in redirects],
        )

    def _take_forms(self, forms: list[Form]) -> None:
        self._put(
            FORM,
            a=[form.surface for form in forms],
            b=[self._fold(form.lemma) for form in forms],
            c=[form.pos for form in forms],
            folded=[stored_name(self._fold(form.surface)) for form in forms],
        )

    def _take_occurrences(self, occurrences: list[Occurrences]) -> None:
        valid = [*map(checked_occurrences, occurrences)]
        self._put(
            OCCURRENCES,
            a=[record.surface for record in valid],
            folded=[self._name(record.surface) for record in valid],
            count=np.array([record.count for record in valid], np.float64),
            linked=np.array([record.linked for record in valid], np.float64),
        )

    def _take_bad_records(self, records: list[BadRecord]) -> None:
        self._put(BAD, a=[record.problem for record in records])

    def _name(self, surface: str) -> str | None:
        folded = self._fold(surface)
        if folded == surface and len(folded) <= codec.SHORT:
            return None
        return stored_name(folded) if folded else ""

    def _take_steps(self, steps: list[Step]) -> None:
        self.units += sum(step.units for step in steps) if self._steps else 0


class _Buffer:
    """Rows of one kind, on their way to a batch."""

    def __init__(self, what: int) -> None:
        self._what = what
        self._clear()

    def _clear(self) -> None:
        self._rows = self._bytes = 0
        self._chunks: list[pa.RecordBatch] = []

    def put(self, rows: int, positions: Any, columns: dict[str, Any]) -> None:
        """Append *rows* records with their positions in the part; *columns* are named as in `SCHEMA`."""
        if not rows:
            return
        values: dict[str, Any] = {"what": np.full(rows, self._what, np.int8), "place": positions, **columns}
        arrays = [
            pa.array(values[field.name], field.type) if field.name in values else pa.nulls(rows, field.type)
            for field in SCHEMA
        ]
        chunk = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        self._chunks.append(chunk)
        self._rows += rows
        self._bytes += chunk.nbytes

    def batches(self, rows: int, size: int) -> Iterator[pa.RecordBatch]:
        """Yield what there is as one batch, if it is so many *rows*, or bytes."""
        if self._rows >= rows or (size and self._bytes >= size):
            chunks = self._chunks
            self._clear()
            yield from pa.Table.from_batches(chunks).combine_chunks().to_batches()


def _by_type(records: Iterator[Record | Step]) -> Iterator[dict[type, list[Any]]]:
    """Yield *records* by their kinds, those of about `_BATCH` rows at a time."""
    by_type: dict[type, list[Any]] = {}
    rows = 0
    for record in records:
        kind = type(record)
        by_type.setdefault(_KINDS.get(kind, kind), []).append(record)
        if isinstance(record, Aliases):
            rows += len(record.counts)
        elif isinstance(record, Triples):
            rows += len(record.objects)
        else:
            rows += 1
        if rows >= _BATCH:
            yield by_type
            by_type, rows = {}, 0
    if by_type:
        yield by_type
