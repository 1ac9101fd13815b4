"""The REST interface, `/v1`: records as the commands write them with `--json`."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from kgkit.kb import KnowledgeBase
from kgkit.kb.json_records import (
    candidate_record,
    entity_record,
    link_probability,
    neighbor_keys,
    neighbor_records,
    scored_record,
)
from kgkit.models.listing import models
from kgkit.serving.answers import PROBLEM_RESPONSES, json_response
from kgkit.serving.problems import Problem, without_paths
from kgkit.serving.rest_requests import (
    LINK_SETTINGS,
    CandidatesQuery,
    EntityQuery,
    LinkQuery,
    LinkRequest,
    MentionRequest,
    NearestQuery,
    NeighboursQuery,
    PathQuery,
    ReconcileRequest,
    SearchQuery,
    body_schema,
    read_body,
)
from kgkit.serving.searching import SearchHit
from kgkit.serving.service import LONG, Service, search_cost
from kgkit.text import mention_problem
from kgkit.types import Document, Mention


def router(service: Service) -> APIRouter:
    """Return the router of `/v1`."""
    routes = APIRouter(prefix="/v1", tags=["kgkit"], responses=PROBLEM_RESPONSES)
    _add_links(routes, service)
    _add_names(routes, service)
    _add_graph(routes, service)
    _add_listings(routes, service)
    return routes


def _add_links(routes: APIRouter, service: Service) -> None:
    async def link(request: LinkRequest) -> Response:
        """Link a text or several, and answer a record, or a list of them."""
        settings = request.model_dump(include={*LINK_SETTINGS})
        linked = await service.link(_documents(request), kb=request.kb, **settings)
        return json_response(linked[0] if isinstance(request.text, str) else linked)

    @routes.post("/link", openapi_extra=body_schema(LinkRequest))
    async def link_body(request: Request) -> Response:
        """Link a text or several to one knowledge base or several."""
        return await link(await read_body(request, LinkRequest))

    @routes.get("/link")
    async def link_query(query: Annotated[LinkQuery, Query()]) -> Response:
        """Link a text."""
        return await link(LinkRequest(**query.model_dump(exclude={"kb"}), kb=query.kb or None))


def _add_names(routes: APIRouter, service: Service) -> None:
    @routes.get("/candidates")
    async def candidates(query: Annotated[CandidatesQuery, Query()]) -> Response:
        """List what a word or name can mean, best prior first."""

        def look_up() -> list[dict[str, Any]]:
            probability = link_probability(service.kb(query.kb), query.text)
            results = service.candidates(query.text, query.kb, k=query.k, pos=query.pos, fuzzy=query.fuzzy)
            return [candidate_record(each) | probability for each in results]

        return json_response(await service.call(look_up))

    @routes.get("/search")
    async def search(query: Annotated[SearchQuery, Query()]) -> Response:
        """Find entities by their keys, surfaces and labels, or by=text, by vectors."""

        def look_up() -> list[dict[str, Any]]:
            kb = service.kb(query.kb)
            hits = service.search(query.q, query.kb, by=query.by, kind=query.kind, limit=query.limit)
            return [search_record(kb, hit) for hit in hits]

        return json_response(await service.call_weighed(search_cost(query.by), look_up))

    @routes.post("/reconcile", openapi_extra=body_schema(ReconcileRequest))
    async def reconcile(request: Request) -> Response:
        """Find the entities that names mean, through typing errors."""
        body = await read_body(request, ReconcileRequest)
        matches = await service.call_weighed(
            len(body.names), service.reconcile, body.names, body.kb, kind=body.kind, k=body.top,
            threshold=body.threshold,
        )  # fmt: skip
        return json_response(
            [
                {
                    "name": each.name, "key": each.key, "label": each.label, "score": each.score,
                    "match": each.match, "candidates": [candidate._asdict() for candidate in each.candidates],
                }
                for each in matches
            ]
        )  # fmt: skip


def _add_graph(routes: APIRouter, service: Service) -> None:
    @routes.get("/entity")
    async def entity(query: Annotated[EntityQuery, Query()]) -> Response:
        """Show an entity: what it is, its surfaces, and its neighbours in both directions."""
        most = service.rows("limit", query.limit)
        return json_response(
            await service.call(
                lambda: entity_record(service.kb(query.kb), service.entity(query.key, query.kb), most)
            )
        )

    @routes.get("/neighbours")
    async def neighbours(query: Annotated[NeighboursQuery, Query()]) -> Response:
        """List the neighbours of an entity by relation, in both directions."""
        most = service.rows("limit", query.limit)

        def look_up() -> dict[str, Any]:
            kb = service.kb(query.kb)
            entity = kb[query.entity]
            outward, inward = neighbor_keys(kb, entity, query.relation, most)
            return {
                "entity": entity.key,
                "kb": kb.name,
                "out": neighbor_records(kb, outward),
                "in": neighbor_records(kb, inward),
            }

        return json_response(await service.call(look_up))

    @routes.get("/path")
    async def path(query: Annotated[PathQuery, Query()]) -> Response:
        """Show a shortest path between two entities, as facts."""
        return json_response(
            await service.call_weighed(
                LONG, service.path, query.source, query.target, query.kb, relations=query.relation
            )
        )

    @routes.get("/nearest")
    async def nearest(query: Annotated[NearestQuery, Query()]) -> Response:
        """List the entities whose vectors are nearest to an entity's, or to a text's."""
        results = await service.call_weighed(
            LONG, service.nearest, query.entity, query.kb, text=query.text, k=query.k, vectors=query.vectors,
            kind=query.kind,
        )  # fmt: skip
        return json_response([scored_record(each.entity, each.score) for each in results])


def _add_listings(routes: APIRouter, service: Service) -> None:
    @routes.get("/kbs")
    async def kbs() -> Response:
        """List the knowledge bases that are served."""
        return json_response(await service.call(kb_records, service))

    @routes.get("/models")
    async def list_models() -> Response:
        """List the models that link to each knowledge base, and those on this machine."""
        served = {name: service.served(name).models for name in service.kb_names()}
        return json_response({"served": served, "installed": await service.call(model_records, service)})


def kb_records(service: Service) -> list[dict[str, Any]]:
    """Return the manifests of the served knowledge bases as records, the default one first."""
    default = service.resources.default_name()
    records = []
    for name in service.kb_names():
        served = service.served(name)
        manifest = served.kb.manifest
        records.append(
            {
                "name": name,
                "build": served.kb.build,
                "default": name == default,
                "models": served.models,
                "entities": manifest.entities,
                "kinds": manifest.counts.entities,
                "triples": manifest.triples,
                "aliases": manifest.aliases,
                "relations": served.kb.relations,
                "language": manifest.language,
                "created": manifest.created,
                "source": f"{manifest.source.name} {manifest.source.version}".strip(),
                "licence": manifest.source.licence,
            }
        )
    return records


def model_records(service: Service) -> list[dict[str, Any]]:
    """Return the models of the home as records, without their paths."""
    records = []
    for model in models(service.home.path):
        record = model.to_dict()
        record.pop("path", None)
        if "error" in record:
            record["error"] = without_paths(record["error"], service.home)
        records.append(record)
    return records


def search_record(kb: KnowledgeBase, hit: SearchHit) -> dict[str, Any]:
    """Return a search hit as a record.

    Args:
        kb: knowledge base that was searched.
        hit: entity, and how it matches the query.
    """
    names = {"ids": kb.identifiers(hit.entity.id), "url": kb.url(hit.entity.id) or ""}
    match = {"field": hit.field, "text": hit.text, "match": hit.match}
    return scored_record(hit.entity, hit.score) | match | names


def _documents(request: LinkRequest) -> list[Document]:
    """Return the documents of a request.

    Raises:
        Problem: if a mention is no span of its text.
    """
    if isinstance(request.text, str):
        return [_document("text", "", request.text, request.mentions)]
    if request.mentions is not None:
        raise Problem(
            422, "mentions are those of a single text", field="mentions",
            remedy='give each text its own: {"text": [{"text": …, "mentions": […]}]}',
        )  # fmt: skip
    return [
        _document(f"text.{index}", str(index), item, None)
        if isinstance(item, str)
        else _document(f"text.{index}", item.id or str(index), item.text, item.mentions)
        for index, item in enumerate(request.text)
    ]


def _document(field: str, name: str, text: str, mentions: Iterable[MentionRequest] | None) -> Document:
    document = Document(name or "0", text)
    if mentions is not None:
        document.mentions = [
            Mention(each.start, each.end, text[each.start : each.end], id=each.id) for each in mentions
        ]
        if problem := mention_problem(text, document.mentions):
            raise Problem(422, problem, field=f"{field}.mentions" if field != "text" else "mentions")
    return document
