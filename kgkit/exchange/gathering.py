"""From statements to records: formats that tell of an entity one statement at a time.

An entity goes to the store whole. In a file that kgkit has written all that is
said of one stands together; in a stranger's it may stand anywhere, so that
file is read twice: first to see which entities are told of in several places,
and which are named only as an end of a triple.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kgkit.types import Alias, Entity, Record, Redirect, Triple

__all__ = ["EntityField", "gather_parts"]


class EntityField(NamedTuple):
    """One thing said of an entity.

    Attributes:
        key: key of the entity.
        field: a field of `Entity`; `literal` for one attribute.
        value: for `label` and `description` `(text, language)`, for `types` one of them, for `literal`
            `(name, value)`, else the field's value.
    """

    key: str
    field: str
    value: Any


FieldOrRecord = EntityField | Record


class _Draft:
    """An entity of which not all has been told."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.texts: dict[str, tuple[int, str]] = {}
        self.plain: dict[str, str] = {}
        self.types: list[str] = []
        self.attributes: dict[str, Any] = {}
        self.repeated: set[str] = set()

    def take(self, field: str, value: Any) -> None:
        """Add a value to a field; of texts in several languages the one of the best language stays."""
        match field:
            case "label" | "description":
                text, language = value
                rank = _rank(language)
                if field not in self.texts or rank < self.texts[field][0]:
                    self.texts[field] = rank, text
            case "types":
                self.types.append(value)
            case "attributes":
                self.attributes.update(value)
            case "literal":
                self._literal(*value)
            case _:
                self.plain[field] = value

    def _literal(self, name: str, value: Any) -> None:
        if name not in self.attributes:
            self.attributes[name] = value
        elif name in self.repeated:
            self.attributes[name].append(value)
        else:
            self.attributes[name] = [self.attributes[name], value]
            self.repeated.add(name)

    def records(self, named: Callable[[str], str] | None) -> Iterator[Record]:
        """Yield the entity, and an alias before it where *named* gives a label that the source lacks."""
        _, label = self.texts.get("label", (0, ""))
        if not label and named is not None:
            label = named(self.key)
            if label:
                yield Alias(label, self.key)
        _, description = self.texts.get("description", (0, ""))
        kind, pos = self.plain.get("kind", ""), self.plain.get("pos", "")
        yield Entity(self.key, label, description, kind, pos, tuple(self.types), self.attributes)


def gather_parts(
    read: Callable[[], Iterable[FieldOrRecord]], *, grouped: bool, named: Callable[[str], str] | None = None
) -> Iterator[Record]:
    """Yield the records that statements come to.

    Args:
        read: function that gives the statements, from the first one, as often as it is called.
        grouped: whether the fields of an entity follow each other, and no entity goes without one.
        named: function that gives the label of an entity that has none, also an alias of it; None leaves it
            without.
    """
    scattered, bare = ({}, []) if grouped else _survey(read())
    draft: _Draft | None = None
    for item in read():
        if not isinstance(item, EntityField):
            yield item
            continue
        if draft is None or item.key != draft.key:
            if draft is not None and draft.key not in scattered:
                yield from draft.records(named)
            draft = scattered[item.key] if item.key in scattered else _Draft(item.key)
        draft.take(item.field, item.value)
    if draft is not None and draft.key not in scattered:
        yield from draft.records(named)
    for late in scattered.values():
        yield from late.records(named)
    for key in bare:
        yield from _Draft(key).records(named)


def _survey(items: Iterable[FieldOrRecord]) -> tuple[dict[str, _Draft], list[str]]:
    """Return drafts of the entities told of in several places, and the keys of those never told of."""
    described: set[str] = set()
    scattered: dict[str, _Draft] = {}
    ends: dict[str, None] = {}
    other_keys: set[str] = set()
    last = None
    for item in items:
        match item:
            case EntityField(key=key):
                if key != last and key in described:
                    scattered.setdefault(key, _Draft(key))
                described.add(key)
                last = key
            case Triple(subject=subject, object=object):
                ends[subject] = ends[object] = None
            case Alias(key=key):
                ends[key] = None
            case Redirect(source=source):
                other_keys.add(source)
    return scattered, [key for key in ends if key not in described and key not in other_keys]


def _rank(language: str) -> int:
    """Return how welcome a text in *language* is as the one of its entity: none said, English, any other."""
    return 0 if not language else 1 if language.lower().split("-")[0] == "en" else 2
