"""Types and properties of a knowledge base: what clients of reconciliation choose from.

A type is one of an entity's types, or its kind. A property is a relation, whose values are entities, or an
attribute; of every entity there are those of `FIELDS` besides. Their identifiers are their names.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, Final

from kgkit.bounded_cache import BoundedCache
from kgkit.errors import FormatMismatch
from kgkit.kb import KnowledgeBase
from kgkit.kb.search import MAX_SCANNED
from kgkit.pauses import pausing
from kgkit.types import Entity

FIELDS: Final = ("label", "description", "key", "kind", "types", "surfaces", "url")
"""Properties that are no attributes."""


@dataclass(frozen=True, kw_only=True)
class KBSchema:
    """Types and properties of a knowledge base.

    Attributes:
        types: number of entities that were read, by type, largest first.
        attributes: number of entities that were read, by attribute, largest first.
        relations: names of the relations.
        examples: ids of some entities, by type.
        is_complete: whether all entities were read, and all their types and attributes are in it.
    """

    types: Mapping[str, int]
    attributes: Mapping[str, int]
    relations: tuple[str, ...]
    examples: Mapping[str, tuple[int, ...]]
    is_complete: bool

    @property
    def properties(self) -> tuple[str, ...]:
        """Names of all properties: relations, attributes and fields, each once."""
        return tuple(dict.fromkeys((*self.relations, *self.attributes, *FIELDS)))

    def may_have(self, name: str) -> bool:
        """Say whether there may be entities of a type."""
        return name in self.types or not self.is_complete

    def may_select(self, kind: str) -> bool:
        """Say whether there may be entities of a type, or, of `ATTRIBUTE=VALUE`, with that attribute."""
        attribute, separator, _ = kind.partition("=")
        return self.may_have(kind) or (bool(separator) and attribute in self.attributes)


_MAX_READ: Final = MAX_SCANNED
"""Entities of the largest knowledge base that is read in full; of a larger one a sample is read."""
_SAMPLE: Final = 100_000
"""Entities of that sample."""
_BATCH: Final = 1_000
"""Entities that are read in one transaction."""
_MAX_NAMES: Final = 10_000
"""Types, and attributes, of a schema: the most frequent ones."""
_EXAMPLES: Final = 20
"""Entities of each type that a schema remembers; their properties are those of the type."""


def read_schema(kb: KnowledgeBase) -> KBSchema:
    """Return the schema of a knowledge base, of which all entities are read, or a sample of a large one."""
    is_complete = kb.id_count <= _MAX_READ
    step = max(1, kb.id_count // _SAMPLE)
    types, attributes = Counter[str](), Counter[str]()
    examples: dict[str, list[int]] = {}
    for entity in kb if is_complete else _entities(kb, range(0, kb.id_count, step)):
        for name in types_of(entity):
            types[name] += 1
            if len(rows := examples.setdefault(name, [])) < _EXAMPLES:
                rows.append(entity.id)
        attributes.update(entity.attributes.keys())
    frequent = _by_frequency(types)
    return KBSchema(
        types=frequent,
        attributes=_by_frequency(attributes),
        relations=kb.relations,
        examples={name: tuple(examples[name]) for name in frequent},
        is_complete=is_complete and max(len(types), len(attributes)) <= _MAX_NAMES,
    )


def _entities(kb: KnowledgeBase, numbers: Iterable[int]) -> Iterator[Entity]:
    """Yield the entities of these ids that are not retired."""
    iterator = iter(numbers)
    while batch := list(islice(iterator, _BATCH)):
        with kb.store.reading():
            rows = [kb.get(number) for number in batch]
        yield from (entity for entity in rows if entity is not None)


def _by_frequency(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_NAMES])


def types_of(entity: Entity) -> tuple[str, ...]:
    """Return the types of an entity, its kind last."""
    return tuple(dict.fromkeys(filter(None, (*entity.types, entity.kind))))


_FACTS: Final = 100
"""Facts of an example that are read for the properties of its type."""


def properties_of_type(kb: KnowledgeBase, schema: KBSchema, name: str) -> list[str]:
    """Return the properties that entities of a type have, the most frequent first.

    Args:
        kb: knowledge base.
        schema: its schema.
        name: type; empty, or one that no entity has: all properties.
    """
    numbers = schema.examples.get(name, ())
    if not numbers:
        return list(schema.properties)
    counts = Counter[str]()
    for entity in _entities(kb, numbers):
        counts.update(entity.attributes.keys())
        counts.update({fact.relation for fact in islice(kb.match(subject=entity), _FACTS)})
    return [*_by_frequency(counts), *(field for field in FIELDS if field not in counts)]


def property_values(kb: KnowledgeBase, entity: Entity, name: str, most: int) -> list[Any]:
    """Return the values of a property: entities of a relation, JSON-like values of an attribute or a field.

    Args:
        kb: knowledge base.
        entity: the entity.
        name: identifier of the property.
        most: largest number of values.
    """
    values: list[Any] = []
    if name in kb.relations:
        numbers = kb.neighbors(entity.id, name)[:most].tolist()
        values.extend(each for each in map(kb.get, numbers) if each is not None)
    if name in entity.attributes:
        values.extend(_value_list(entity.attributes[name]))
    elif not values and name in FIELDS:
        values.extend(_value_list(_field(kb, entity, name, most)))
    return values[:most]


def _field(kb: KnowledgeBase, entity: Entity, name: str, most: int) -> Any:
    if name == "surfaces":
        with suppress(FormatMismatch):  # a build of an older format does not list them
            return [each.surface for each in kb.surfaces_of(entity, most)]
        return None
    if name == "url":
        return kb.url(entity.id)
    return getattr(entity, name)


def _value_list(value: Any) -> list[Any]:
    values = value if isinstance(value, list | tuple) else [value]
    return [each for each in values if each is not None and each != ""]


_CACHE_BYTES: Final = 64_000_000
"""Of the schemas that a process remembers."""


class SchemaCache:
    """The schemas of the knowledge bases that were asked for, read once each."""

    def __init__(self) -> None:
        self._schemas = BoundedCache[tuple[str, str], KBSchema](_CACHE_BYTES)
        self._reading = Lock()

    def remembered(self, kb: KnowledgeBase) -> KBSchema | None:
        """Return the schema of a knowledge base; None if it has not been read."""
        return self._schemas.get((kb.name, kb.build))

    def __call__(self, kb: KnowledgeBase) -> KBSchema:
        """Return the schema of a knowledge base; a request that comes while it is read waits for it."""
        build = kb.name, kb.build
        schema = self.remembered(kb)
        if schema is None:
            # Whoever asks next waits for it, even if nobody waits for this one.
            with self._reading, pausing(None):
                schema = self._schemas.get(build)
                if schema is None:
                    schema = self._schemas.keep(build, read_schema(kb))
        return schema
