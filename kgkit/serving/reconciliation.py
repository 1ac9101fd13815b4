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

from typing import Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kgkit.serving import reconciliation_pages as pages
from kgkit.serving.forms import count_field, read_fields
from kgkit.serving.kb_schema import KBSchema
from kgkit.serving.problems import Problem
from kgkit.serving.reconciliation_candidates import answer_queries
from kgkit.serving.reconciliation_queries import CELLS, read_extension, read_queries
from kgkit.serving.service import Service

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
            rows = await service.call_weighed(
                cost, pages.extension, service.kb(name), query, service.limits.rows
            )
            return _json(rows)
        if request.method == "POST":
            raise Problem(
                422, "the form has neither queries nor extend", field="queries",
                remedy="send a batch of queries as JSON in the field `queries`",
            )  # fmt: skip
        kb, has_token = service.kb(name), service.settings.token is not None
        address = f"{str(request.base_url).rstrip('/')}/reconcile/{quote(kb.name, safe='')}"
        schema = await self._schema(name)
        return _json(pages.manifest(kb, schema, address, service.limits, has_token))

    async def suggest(self, request: Request) -> Response:
        """Suggest entities, types or properties that begin with the field `prefix`."""
        fields, name = await read_fields(request), self._name(request)
        cursor = count_field(fields, "cursor", 0, _MAX_CURSOR)
        schema, suggested = await self._schema(name), _suggested(request)
        prefix = fields.get("prefix", "")
        service = self.service
        result = await service.call(pages.suggestions, service, name, schema, suggested, prefix, cursor)
        return _json(result)

    async def flyout(self, request: Request) -> Response:
        """Describe a suggestion, which the field `id` names."""
        identifier = await _identifier(request)
        name, suggested = self._name(request), _suggested(request)
        schema, kb = await self._schema(name), self.service.kb(name)
        return _json(await self.service.call(pages.flyout, kb, schema, suggested, identifier))

    async def preview(self, request: Request) -> Response:
        """Show the entity of the field `id` as a page."""
        identifier = await _identifier(request)
        body = await self.service.call(pages.preview, self.service.kb(self._name(request)), identifier)
        ancestors = " ".join(("'self'", *self.service.settings.allowed_origins))
        policy = f"default-src 'self'; base-uri 'none'; frame-ancestors {ancestors}"
        return Response(body, media_type="text/html", headers={"Content-Security-Policy": policy})

    async def properties(self, request: Request) -> Response:
        """Propose properties of the type of the field `type`."""
        fields, name = await read_fields(request), self._name(request)
        most = self.service.limits.rows
        limit = min(count_field(fields, "limit", most, 10**9), most)
        kb, schema = self.service.kb(name), await self._schema(name)
        result = await self.service.call(pages.proposed_properties, kb, schema, fields.get("type", ""), limit)
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


def _suggested(request: Request) -> pages.Suggested:
    name: str = request.path_params["suggested"]
    for each in pages.SUGGESTED:
        if each == name:
            return each
    raise Problem(404, f"nothing is suggested at {name[:40]!r}; there are entity, type and property")


def _json(record: Any) -> Response:
    return Response(msgspec.json.encode(record), media_type="application/json")
