"""The card of an entity: attributes, names by surfaces, facts in both directions, identifiers, address."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kgkit.errors import FormatMismatch
from kgkit.kb import KnowledgeBase
from kgkit.kb.surfaces import EntitySurface
from kgkit.serving.page.facts import FactGroup, facts_by_relation
from kgkit.text import truncate
from kgkit.types import Entity

__all__ = ["AttributeView", "EntityCard", "attribute_views", "entity_card"]

MAX_VALUES: Final = 30
"""Values of an attribute that a card shows."""
MAX_CHARACTERS: Final = 1_000
"""Characters of a value; of a longer one the beginning is shown."""


@dataclass(frozen=True, kw_only=True)
class AttributeView:
    """An attribute as the card shows it.

    Attributes:
        name: name of the attribute.
        values: values as texts, shortened.
        hidden: number of values that are not shown.
    """

    name: str
    values: list[str]
    hidden: int = 0


@dataclass(frozen=True, kw_only=True)
class EntityCard:
    """What the card of an entity shows.

    Attributes:
        kb: name of the KB.
        entity: entity itself.
        url: address on the web; empty if it has none.
        ids: identifiers elsewhere, by name.
        attributes: attributes that are not empty, without the identifiers.
        surfaces: names with their priors, the most frequent first.
        hidden_surfaces: number of names that are not shown; None if the build is too old to list names.
        link_probability: probability that an occurrence of the label is a link; None if it was not counted.
        facts: facts by relation.
    """

    kb: str
    entity: Entity
    url: str
    ids: Mapping[str, Any]
    attributes: list[AttributeView]
    surfaces: list[EntitySurface]
    hidden_surfaces: int | None
    link_probability: float | None
    facts: list[FactGroup]


MAX_SURFACES: Final = 40
"""Names that a card shows."""
MAX_FACTS: Final = 12
"""Facts of each relation that a card shows; the view `/facts` has all."""


def entity_card(kb: KnowledgeBase, key: str) -> EntityCard:
    """Return the card of an entity.

    Raises:
        UnknownEntity: if the KB has no such entity.
    """
    entity = kb[key]
    ids = kb.identifiers(entity)
    try:
        surfaces = kb.surfaces_of(entity)
        hidden: int | None = max(0, len(surfaces) - MAX_SURFACES)
    except FormatMismatch:  # a build of an older format, which does not list them
        surfaces, hidden = [], None
    return EntityCard(
        kb=kb.name,
        entity=entity,
        url=kb.url(entity) or "",
        ids=ids,
        attributes=[*attribute_views(entity.attributes, set(ids))],
        surfaces=surfaces[:MAX_SURFACES],
        hidden_surfaces=hidden,
        link_probability=kb.link_probability(entity.label) if entity.label else None,
        facts=facts_by_relation(kb, kb.id(entity), MAX_FACTS),
    )


def attribute_views(attributes: Mapping[str, Any], excluded: set[str]) -> Iterator[AttributeView]:
    """Yield the attributes that are not empty, in their order.

    Args:
        attributes: values by name, JSON-like.
        excluded: names that are left out.
    """
    for name, value in attributes.items():
        values = [*value] if isinstance(value, list | tuple) else [value]
        texts = [_value_text(each) for each in values[:MAX_VALUES] if each not in ("", None, [], {})]
        if texts and name not in excluded:
            yield AttributeView(name=name, values=texts, hidden=max(0, len(values) - MAX_VALUES))


def _value_text(value: Any) -> str:
    """Return a value as text, at most `MAX_CHARACTERS` of it."""
    if isinstance(value, Mapping):
        text = "; ".join(f"{name}: {_value_text(inner)}" for name, inner in [*value.items()][:MAX_VALUES])
    elif isinstance(value, list | tuple):
        text = "; ".join(map(_value_text, value[:MAX_VALUES]))
    else:
        text = str(value)
    return truncate(text, MAX_CHARACTERS)
