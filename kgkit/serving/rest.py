"""The REST interface, `/v1`: records as the commands write them with `--json`, and its requests."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.responses import Response

from kgkit.kb.json_records import (
    candidate_record,
    entity_record,
    link_probability,
    neighbor_keys,
    neighbor_records,
    scored_record,
)
from kgkit.kb.search import SearchResult
from kgkit.linking.corrections import Correction
from kgkit.linking.settings import LinkSettings
from kgkit.serving.problems import (
    PROBLEM_RESPONSES,
    Problem,
    json_response,
    validation_problem,
)
from kgkit.serving.service import LONG, Service
from kgkit.setting_types import attribute_helps
from kgkit.types import Document, Mention, mention_problem

_KB: Final = "Name of the knowledge base; without it the default one is used."

LINK_SETTINGS: Final = ("model", "nil", "threshold", "top_k")
"""Settings of linking that a request may have."""

Model = TypeVar("Model", bound=BaseModel)


class RequestModel(BaseModel):
    """Base of all requests: unknown fields, infinities and NaN are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class MentionRequest(RequestModel):
    """A mention that a text comes with: offsets in code points, the end exclusive."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    id: str = ""


class CorrectionRequest(RequestModel):
    """A correction of links: which entity words mean, or that they are no name."""

    text: str = Field(description="The words as they are written.")
    entity: str | None = Field(description="Key of the entity; null: they are no name.")
    document: str = Field("", description="Id of the only document.")
    start: int | None = Field(None, ge=0, description="First code point in it.")
    before: str = Field("", description="The text before the only place.")
    after: str = Field("", description="The text behind it.")
    kb: str = Field("", description="Name of the only knowledge base.")

    @property
    def correction(self) -> Correction:
        """The record of the correction."""
        return Correction(**self.model_dump())


class DocumentRequest(RequestModel):
    """A text with a name, and perhaps with mentions."""

    text: str
    id: str = ""
    mentions: list[MentionRequest] | None = None


LINK_HELPS: Final = attribute_helps(LinkSettings) | {
    "model": "Model that scores candidates; auto: the first that is served for the knowledge base."
}
"""Descriptions of the settings of linking, by name."""

_FIELDS: Final[dict[str, Any]] = {
    each.name: (
        each.type,
        Field(
            each.default,
            ge=each.metadata.get("least"),
            le=each.metadata.get("most"),
            description=LINK_HELPS[each.name],
        ),
    )
    for each in fields(LinkSettings)
    if each.name in LINK_SETTINGS
}
_LinkSettings = create_model("_LinkSettings", __base__=RequestModel, **_FIELDS)


class LinkRequest(_LinkSettings):  # type: ignore[misc, valid-type]
    """Texts to link."""

    text: str | list[str | DocumentRequest] = Field(
        description="A text, or several; those with mentions too."
    )
    mentions: list[MentionRequest] | None = Field(None, description="Mentions of a single text.")
    kb: str | list[str] | None = Field(None, description=f"{_KB} A list of names links to several.")
    corrections: list[CorrectionRequest] = Field([], description="Corrections of the links.")


class LinkQuery(_LinkSettings):  # type: ignore[misc, valid-type]
    """A text to link, in the address."""

    text: str
    kb: list[str] = Field([], description=f"{_KB} It may be repeated.")


class ReconcileRequest(RequestModel):
    """Names to find entities for."""

    names: list[str | None] = Field(description="Names; null for an empty cell.")
    kb: str | None = Field(None, description=_KB)
    kind: str | None = Field(None, description="Only entities of this kind or type, or ATTRIBUTE=VALUE.")
    top: int = Field(5, ge=1, description="Candidates of a name.")
    threshold: float = Field(0.5, ge=0, le=1, description="Least score of a match.")


class KBQuery(RequestModel):
    """A knowledge base."""

    kb: str | None = Field(None, description=_KB)


class CandidatesQuery(KBQuery):
    """A word or name."""

    text: str
    k: int | None = Field(None, ge=1)
    pos: Literal["n", "v", "a", "s", "r", ""] = ""
    fuzzy: bool = Field(False, description="Whether an unknown text stands for the most similar surface.")


class EntityQuery(KBQuery):
    """An entity."""

    key: str
    limit: int | None = Field(None, ge=1, description="Surfaces, and facts in each direction.")


class SearchQuery(KBQuery):
    """A text to search for."""

    q: str
    by: Literal["name", "text"] = "name"
    kind: str | None = None
    limit: int = Field(10, ge=1)


class NeighboursQuery(KBQuery):
    """An entity whose neighbours are listed."""

    entity: str
    relation: str | None = None
    limit: int | None = Field(None, ge=1, description="Facts in each direction.")


class PathQuery(KBQuery):
    """The ends of a path."""

    source: str
    target: str
    relation: list[str] = Field([], description="Only facts of this relation; it may be repeated.")


class NearestQuery(KBQuery):
    """An entity, or a text, whose vector is compared."""

    entity: str | None = None
    text: str | None = None
    k: int = Field(10, ge=1)
    vectors: str | None = None
    kind: str | None = None


async def read_body(request: Request, model: type[Model]) -> Model:
    """Return the body of a request, decoded from JSON.

    Strings with lone surrogates are refused: JSON can write them, but they are no Unicode text.

    Args:
        request: request with the body.
        model: pydantic model of the body.

    Raises:
        Problem: if the body is no JSON, or does not fit the model.
    """
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise validation_problem(
            error.errors(include_url=False, include_context=False, include_input=False)
        ) from None


def _body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the part of an OpenAPI operation that describes a body which `read_body` reads."""
    schema = model.model_json_schema()
    schema = _without_references(schema, schema.pop("$defs", {}))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _without_references(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a JSON schema whose references are replaced by the schemas that they refer to."""
    if isinstance(schema, list):
        return [_without_references(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if name := str(schema.get("$ref", "")).rpartition("/")[2]:
        return _without_references(definitions[name], definitions)
    return {name: _without_references(value, definitions) for name, value in schema.items()}


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
        corrections = [each.correction for each in request.corrections]
        linked = await service.link(
            _documents(request), kb=request.kb, with_corrections=corrections, **settings
        )
        return json_response(linked[0] if isinstance(request.text, str) else linked)

    @routes.post("/link", openapi_extra=_body_schema(LinkRequest))
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
            hits = service.search(query.q, query.kb, by=query.by, kind=query.kind, limit=query.limit)
            return [_search_record(hit) for hit in hits]

        return json_response(await service.call_weighed(service.search_cost(query.kb, query.by), look_up))

    @routes.post("/reconcile", openapi_extra=_body_schema(ReconcileRequest))
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
        installed = [
            {name: value for name, value in model.to_dict().items() if name != "path"}
            for model in await service.call(service.installed_models)
        ]
        return json_response({"served": served, "installed": installed})


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


def _search_record(result: SearchResult) -> dict[str, Any]:
    """Return a find of a search as a record."""
    match = {"field": result.field, "text": result.text, "match": result.match}
    return scored_record(result.entity, result.score) | match | {"ids": result.ids, "url": result.url}


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
