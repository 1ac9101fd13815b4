"""`/reconcile/NAME`: the Reconciliation Service API 0.2 over a knowledge base, for OpenRefine and its like.

    GET                          the manifest
    GET, POST form  queries      candidates of a batch of queries
    GET, POST form  extend       values of properties
    /suggest/KIND   prefix       entities, types or properties that begin so; KIND: entity, type, property
    /flyout/KIND    id           a small preview of what is suggested
    /preview        id           a page about an entity
    /properties     type         properties that entities of a type have

`/reconcile` is the default knowledge base's. Pages of allowed origins may read the answers (CORS, by `guard`)
and frame previews. There is no JSONP, which the specification leaves open: it runs answers as scripts.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kgkit import __version__
from kgkit.kb import KnowledgeBase
from kgkit.pauses import pause
from kgkit.serving.forms import count_field, read_fields
from kgkit.serving.kb_schema import FIELDS, KBSchema, properties_of_type, property_values, types_of
from kgkit.serving.problems import Problem
from kgkit.serving.reconciliation_candidates import (
    CELLS,
    ExtensionQuery,
    answer_queries,
    describe,
    read_extension,
    read_queries,
    type_records,
    value_record,
)
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


_MAX_CURSOR = 10_000


def router(service: Service) -> APIRouter:
    """Return the router of `/reconcile`."""
    routes = APIRouter(prefix="/reconcile", include_in_schema=False)
    endpoint = ReconciliationEndpoint(service)
    for path in ("", "/{kb}"):
        routes.add_api_route(path, endpoint.answer, methods=["GET", "POST"], response_class=Response)
    for path, function in (
        ("/{kb}/suggest/{suggested}", endpoint.suggest),
        ("/{kb}/flyout/{suggested}", endpoint.flyout),
        ("/{kb}/preview", endpoint.preview),
        ("/{kb}/properties", endpoint.properties),
    ):
        routes.add_api_route(path, function, methods=["GET"], response_class=Response)
    return routes


class ReconciliationEndpoint:
    """Answers the requests of reconciliation clients.

    Args:
        service: service.
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    async def answer(self, request: Request) -> Response:
        """Answer a batch of queries or a data extension; a request with neither gets the manifest."""
        fields, name = await read_fields(request), self._name(request)
        service = self.service
        if "queries" in fields:
            queries = read_queries(fields["queries"], service.limits)
            schema = await self._schema(name)
            cost = sum(each.cost for each in queries.values())
            return _json(await service.call_weighed(cost, answer_queries, service, name, schema, queries))
        if "extend" in fields:
            query = read_extension(fields["extend"], service.limits)
            cost = len(query.ids) * len(query.properties) // CELLS
            rows = await service.call_weighed(cost, extension, service.kb(name), query, service.limits.rows)
            return _json(rows)
        if request.method == "POST":
            raise Problem(
                422, "the form has neither queries nor extend", field="queries",
                remedy="send a batch of queries as JSON in the field `queries`",
            )  # fmt: skip
        kb, has_token = service.kb(name), service.settings.token is not None
        address = f"{str(request.base_url).rstrip('/')}/reconcile/{quote(kb.name, safe='')}"
        schema = await self._schema(name)
        return _json(manifest(kb, schema, address, service.limits, has_token))

    async def suggest(self, request: Request) -> Response:
        """Suggest entities, types or properties that begin with the field `prefix`."""
        fields, name = await read_fields(request), self._name(request)
        cursor = count_field(fields, "cursor", 0, _MAX_CURSOR)
        schema, suggested = await self._schema(name), _suggested(request)
        prefix = fields.get("prefix", "")
        service = self.service
        result = await service.call(suggestions, service, name, schema, suggested, prefix, cursor)
        return _json(result)

    async def flyout(self, request: Request) -> Response:
        """Describe a suggestion, which the field `id` names."""
        identifier = await _identifier(request)
        name, suggested = self._name(request), _suggested(request)
        schema, kb = await self._schema(name), self.service.kb(name)
        return _json(await self.service.call(flyout, kb, schema, suggested, identifier))

    async def preview(self, request: Request) -> Response:
        """Show the entity of the field `id` as a page."""
        identifier = await _identifier(request)
        body = await self.service.call(preview, self.service.kb(self._name(request)), identifier)
        ancestors = " ".join(("'self'", *self.service.settings.allowed_origins))
        policy = f"default-src 'self'; base-uri 'none'; frame-ancestors {ancestors}"
        return Response(body, media_type="text/html", headers={"Content-Security-Policy": policy})

    async def properties(self, request: Request) -> Response:
        """Propose properties of the type of the field `type`."""
        fields, name = await read_fields(request), self._name(request)
        most = self.service.limits.rows
        limit = min(count_field(fields, "limit", most, 10**9), most)
        kb, schema = self.service.kb(name), await self._schema(name)
        result = await self.service.call(proposed_properties, kb, schema, fields.get("type", ""), limit)
        return _json(result)

    def _name(self, request: Request) -> str:
        """Return the name of the knowledge base that a request is about."""
        return self.service.kb(request.path_params.get("kb")).name

    async def _schema(self, name: str) -> KBSchema:
        return await self.service.schema(self.service.kb(name))


async def _identifier(request: Request) -> str:
    identifier = (await read_fields(request)).get("id", "")
    if not identifier:
        raise Problem(422, "id is missing", field="id", remedy="send the identifier as the field `id`")
    return identifier


def _suggested(request: Request) -> Suggested:
    name: str = request.path_params["suggested"]
    for each in SUGGESTED:
        if each == name:
            return each
    raise Problem(404, f"nothing is suggested at {name[:40]!r}; there are entity, type and property")


def _json(record: Any) -> Response:
    return Response(msgspec.json.encode(record), media_type="application/json")
