"""What reconciliation clients ask for besides candidates: manifest, suggestions, previews, extensions.

Each function returns a record as the Reconciliation Service API 0.2 has it, or HTML without scripts.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

from kgkit import __version__
from kgkit.kb import KnowledgeBase
from kgkit.pauses import pause
from kgkit.serving.kb_schema import FIELDS, KBSchema, properties_of_type, property_values, types_of
from kgkit.serving.reconciliation_candidates import describe, type_records, value_record
from kgkit.serving.reconciliation_queries import ExtensionQuery
from kgkit.serving.service import Service
from kgkit.serving.settings import Limits
from kgkit.text import escape_xml, fold
from kgkit.types import Entity

Suggested = Literal["entity", "type", "property"]

SUGGESTED: Final[tuple[Suggested, ...]] = get_args(Suggested)
"""Kinds of suggestions, each with an address of its own."""

VERSIONS: Final = ("0.1", "0.2")

_BATCH: Final = 100
_DEFAULT_TYPES: Final = 10
_SUGGESTIONS: Final = 20
_PREVIEW: Final = 430, 300
_MAX_FACTS: Final = 12
_MAX_VALUES: Final = 5


def manifest(
    kb: KnowledgeBase, schema: KBSchema, endpoint: str, limits: Limits, token: bool
) -> dict[str, Any]:
    """Return the manifest of a service.

    Args:
        kb: knowledge base.
        schema: its schema.
        endpoint: address of the service.
        limits: limits of requests.
        token: whether requests carry a bearer token.
    """
    pattern, namespace = kb.manifest.url_pattern, f"urn:kgkit:{quote(kb.name, safe='')}:"
    preview = f"{endpoint}/preview?id={{{{id}}}}"
    fields: dict[str, Any] = {
        "versions": list(VERSIONS),
        "name": f"{kb.name}: {kb.manifest.source.name}" if kb.manifest.source.name else kb.name,
        "identifierSpace": pattern.partition("{")[0] or namespace,
        "schemaSpace": f"{namespace}type:",
        "serviceVersion": __version__,
        "defaultTypes": type_records(list(islice(schema.types, _DEFAULT_TYPES))),
        "view": {"url": preview},
        "preview": {"url": preview, "width": _PREVIEW[0], "height": _PREVIEW[1]},
        "suggest": {name: _suggest_metadata(endpoint, name) for name in SUGGESTED},
        "extend": {
            "propose_properties": {"service_url": endpoint, "service_path": "/properties"},
            "property_settings": [
                {
                    "name": "limit",
                    "label": "Limit",
                    "type": "number",
                    "default": 0,
                    "help_text": "Largest number of values of an entity; 0: as many as an answer may have",
                }
            ],
        },
        "batchSize": min(_BATCH, limits.names),
    }
    if token:
        fields["authentication"] = {"type": "apiKey", "name": "Authorization", "in": "header"}
    return fields


def _suggest_metadata(endpoint: str, name: str) -> dict[str, str]:
    return {
        "service_url": endpoint,
        "service_path": f"/suggest/{name}",
        "flyout_service_url": endpoint,
        "flyout_service_path": f"/flyout/{name}?id=${{id}}",
    }


# -- suggestions ------------------------------------------------------------


def suggestions(
    service: Service, name: str, schema: KBSchema, suggested: Suggested, prefix: str, cursor: int
) -> dict[str, Any]:
    """Return entities, types or properties that begin with a text.

    Args:
        service: service.
        name: name of the knowledge base.
        schema: its schema.
        suggested: kind of the suggestions.
        prefix: text that suggestions begin with.
        cursor: number of suggestions to skip.
    """
    if not prefix.strip():
        return {"result": []}
    end = cursor + _SUGGESTIONS
    if suggested != "entity":
        names: Iterable[str] = schema.types if suggested == "type" else schema.properties
        folded = fold(prefix)
        matches = (each for each in names if each == prefix or fold(each).startswith(folded))
        return {"result": type_records(list(islice(matches, cursor, end)))}
    hits = service.search(prefix, name, limit=min(end, service.limits.rows))
    return {"result": [_suggested_entity(hit.entity) for hit in hits[cursor:end]]}


def _suggested_entity(entity: Entity) -> dict[str, Any]:
    fields = {"id": entity.key, "name": entity.label or entity.key, "notable": type_records(types_of(entity))}
    return fields | describe(entity)


def flyout(kb: KnowledgeBase, schema: KBSchema, suggested: Suggested, identifier: str) -> dict[str, str]:
    """Return a small preview of an entity, a type or a property, as HTML in a record.

    Args:
        kb: knowledge base.
        schema: schema of the knowledge base.
        suggested: kind of the suggestion.
        identifier: key of the entity, or name of the type or property.

    Raises:
        UnknownEntity: if the knowledge base has no such entity.
    """
    if suggested == "entity":
        entity = kb[identifier]
        detail = entity.description or ", ".join(types_of(entity))
        body = _paragraph(entity.label or entity.key, detail)
    elif suggested == "type":
        count = schema.types.get(identifier, 0)
        body = _paragraph(identifier, f"a type of {count:,} entities" if count else "no type of an entity")
    else:
        body = _paragraph(identifier, _property_kind(schema, identifier))
    return {"id": identifier, "html": body}


def _property_kind(schema: KBSchema, name: str) -> str:
    if name in schema.relations:
        return "a relation to other entities"
    if name in schema.attributes:
        return f"an attribute of {schema.attributes[name]:,} entities"
    return "a field of every entity" if name in FIELDS else "no property of an entity"


def _paragraph(name: str, detail: str) -> str:
    return f"<p><strong>{escape_xml(name)}</strong> {escape_xml(detail)}</p>"


# -- previews ---------------------------------------------------------------


def preview(kb: KnowledgeBase, identifier: str) -> str:
    """Return a page about an entity, as HTML.

    Args:
        kb: knowledge base.
        identifier: key of the entity.

    Raises:
        UnknownEntity: if the knowledge base has no such entity.
    """
    entity = kb[identifier]
    label, url = entity.label or entity.key, kb.url(entity.id) or ""
    title = escape_xml(label)
    heading = f'<a href="{escape_xml(url)}">{title}</a>' if url else title
    rows = [("key", [entity.key]), ("types", list(types_of(entity)))]
    names = dict.fromkeys(fact.relation for fact in islice(kb.match(subject=entity), _MAX_FACTS))
    rows.extend(
        (name, [_value_text(each) for each in property_values(kb, entity, name, _MAX_VALUES)])
        for name in (*names, *list(entity.attributes)[:_MAX_FACTS])
    )
    terms = "".join(
        f"<dt>{escape_xml(name)}</dt><dd>{escape_xml(', '.join(values))}</dd>\n"
        for name, values in rows
        if values
    )
    return (
        f'<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8"><title>{title}</title></head>\n<body>\n'
        f"<h1>{heading}</h1>\n<p>{escape_xml(entity.description)}</p>\n<dl>\n{terms}</dl>\n</body>\n</html>\n"
    )


def _value_text(value: Any) -> str:
    record = value_record(value)
    return str(record["name"] if "id" in record else next(iter(record.values())))


# -- data extension ---------------------------------------------------------


def proposed_properties(kb: KnowledgeBase, schema: KBSchema, name: str, limit: int) -> dict[str, Any]:
    """Return the properties that entities of a type have.

    Args:
        kb: knowledge base.
        schema: its schema.
        name: type; empty: any.
        limit: largest number of properties.
    """
    properties = properties_of_type(kb, schema, name)[:limit]
    return {"properties": type_records(properties), "type": name, "limit": limit}


def extension(kb: KnowledgeBase, query: ExtensionQuery, most: int) -> dict[str, Any]:
    """Return the values of properties of entities; an unknown entity has none.

    Args:
        kb: knowledge base.
        query: entities and properties.
        most: largest number of values of a cell.
    """
    limits = {each.id: each.limit(most) for each in query.properties}
    return {
        "meta": type_records(list(limits)),
        "rows": {identifier: _cells(kb, identifier, limits) for identifier in dict.fromkeys(query.ids)},
    }


def _cells(kb: KnowledgeBase, identifier: str, limits: Mapping[str, int]) -> dict[str, Any]:
    pause()
    entity = kb.get(identifier)
    return {name: _cell(kb, entity, name, limit) for name, limit in limits.items()}


def _cell(kb: KnowledgeBase, entity: Entity | None, name: str, limit: int) -> Sequence[dict[str, Any]]:
    if entity is None:
        return []
    return [value_record(value) for value in property_values(kb, entity, name, limit)]
