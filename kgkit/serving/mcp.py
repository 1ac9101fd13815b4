"""`/mcp`: the Model Context Protocol, over standard input and output too: tools for language-model agents.

All tools are read-only. An answer has at most `MAX_CHARACTERS` of JSON: rows beyond that are left out, and
`omitted` has their number. The knowledge bases are listed as the resource `kgkit://kbs`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from kgkit import __version__
from kgkit.kb import KnowledgeBase
from kgkit.lazy import import_extra
from kgkit.linking.settings import LinkSettings
from kgkit.serving.kb_schema import types_of
from kgkit.serving.mcp_frames import (
    FrameError,
    parse_frame,
    stdio_frames,
    without_half_pairs,
)
from kgkit.serving.problems import SEARCH_REMEDY, Problem, problem_of
from kgkit.serving.rest import LINK_HELPS
from kgkit.serving.service import LONG, Service
from kgkit.text import truncate
from kgkit.types import Document, Entity, LinkedDocument, Triple

log = logging.getLogger(__name__)

MAX_CHARACTERS: Final = 20_000
"""Characters of an answer, as JSON."""

SEARCH_TOOL: Final = "search for it with the tool `search`"
"""Advice on a key that nothing resembles."""

_DESCRIPTION: Final = 300
_VALUES: Final = 20
_SURFACES: Final = 20
_NAMES: Final = 50

KBArgument = Annotated[str | None, Meta(description="Name of the knowledge base; null: the default one.")]
KeyArgument = Annotated[str, Meta(min_length=1, description="Key of the entity, as other tools give it.")]
Limit = Annotated[int, Meta(ge=1, le=100, description="Largest number of rows.")]


LINK_SETTINGS: Final = ("model", "threshold")
"""Settings of linking that the tool `link` takes."""

LinkArguments = msgspec.defstruct(
    "LinkArguments",
    [
        ("text", Annotated[str, Meta(min_length=1, description="Text of any language.")]),
        ("kb", KBArgument, None),
        *(
            (each.name, Annotated[each.type | None, Meta(description=LINK_HELPS[each.name])], None)  # type: ignore[operator]
            for each in fields(LinkSettings)
            if each.name in LINK_SETTINGS
        ),
    ],
    forbid_unknown_fields=True,
    module=__name__,
)


class _ReconcileArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `reconcile` takes."""

    names: Annotated[
        list[str], Meta(min_length=1, max_length=_NAMES, description="Names, typing errors included.")
    ]
    kb: KBArgument = None
    kind: Annotated[
        str | None, Meta(description="Only entities of this kind or type, or ATTRIBUTE=VALUE; null: any.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=10, description="Largest number of candidates of a name.")] = 3


class _SearchArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `search` takes."""

    query: Annotated[str, Meta(min_length=1, description="Key, name, or a part of one.")]
    kb: KBArgument = None
    limit: Limit = 10


class _EntityArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `entity` takes."""

    key: KeyArgument
    kb: KBArgument = None


class _NeighboursArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `neighbours` takes."""

    key: KeyArgument
    kb: KBArgument = None
    relation: Annotated[str | None, Meta(description="Only facts of this relation; null: of any.")] = None
    direction: Annotated[
        Literal["out", "in", "both"], Meta(description="Facts with the entity as subject, object, or both.")
    ] = "both"
    limit: Limit = 50


class _PathArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `path` takes."""

    source: KeyArgument
    target: KeyArgument
    kb: KBArgument = None


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """A tool of an agent.

    Attributes:
        name: name of the tool.
        description: sentences that say what the tool is for.
        arguments: struct of the tool's arguments.
        answer: function that returns the answer as a record.
        rows: field of the record whose rows may be left out.
    """

    name: str
    description: str
    arguments: type[msgspec.Struct]
    answer: Callable[[Service, Any], Awaitable[dict[str, Any]]]
    rows: str

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments: an object."""
        (reference,), components = msgspec.json.schema_components([self.arguments])
        schema = dict(components[reference["$ref"].rpartition("/")[2]])
        return {name: value for name, value in schema.items() if name not in ("title", "description")}


# -- answers ----------------------------------------------------------------


async def _link(service: Service, arguments: Any) -> dict[str, Any]:
    values = {name: getattr(arguments, name) for name in LINK_SETTINGS}
    settings = {name: value for name, value in values.items() if value not in (None, "")}
    documents = [Document("text", arguments.text)]
    linked = await service.link(documents, kb=arguments.kb, top_k=1, **settings)
    return await service.call(_link_record, service.kb(arguments.kb), linked[0])


def _link_record(kb: KnowledgeBase, linked: LinkedDocument) -> dict[str, Any]:
    links = [
        {
            "start": link.start,
            "end": link.end,
            "text": link.text,
            "key": link.entity,
            "label": link.label,
            "score": round(link.score, 4),
            "description": _description(kb.get(link.entity or "")),
        }
        for link in linked
    ]
    return {"kb": kb.name, "model": linked.model, "links": links}


async def _reconcile(service: Service, arguments: _ReconcileArguments) -> dict[str, Any]:
    matches = await service.call_weighed(
        len(arguments.names), service.reconcile, arguments.names, arguments.kb, kind=arguments.kind,
        k=arguments.limit,
    )  # fmt: skip
    names = [
        {
            "name": match.name,
            "match": match.match,
            "candidates": [
                {"key": each.key, "label": each.label, "score": round(each.score, 4)}
                for each in match.candidates
            ],
        }
        for match in matches
    ]
    return {"kb": service.kb(arguments.kb).name, "names": names}


async def _search(service: Service, arguments: _SearchArguments) -> dict[str, Any]:
    cost = service.search_cost(arguments.kb)
    hits = await service.call_weighed(
        cost, service.search, arguments.query, arguments.kb, limit=arguments.limit
    )
    rows = [_entity_record(hit.entity) | {"match": hit.match} for hit in hits]
    return {"kb": service.kb(arguments.kb).name, "entities": rows}


async def _entity(service: Service, arguments: _EntityArguments) -> dict[str, Any]:
    return await service.call(_full_entity, service.kb(arguments.kb), arguments.key)


def _full_entity(kb: KnowledgeBase, key: str) -> dict[str, Any]:
    entity = kb[key]
    attributes = [
        {"name": name, "value": _abbreviate(value)} for name, value in sorted(entity.attributes.items())
    ]
    return {
        "kb": kb.name,
        **_entity_record(entity),
        "url": kb.url(entity.id) or "",
        "facts": kb.degree(entity.id, direction="both"),
        "attributes": attributes,
    }


async def _neighbours(service: Service, arguments: _NeighboursArguments) -> dict[str, Any]:
    facts = await service.call(
        service.neighbors,
        arguments.key,
        arguments.kb,
        relation=arguments.relation,
        direction=arguments.direction,
        limit=arguments.limit,
    )
    rows = await service.call(_fact_records, service.kb(arguments.kb), facts)
    return {"kb": service.kb(arguments.kb).name, "facts": rows}


async def _path(service: Service, arguments: _PathArguments) -> dict[str, Any]:
    facts = await service.call_weighed(LONG, service.path, arguments.source, arguments.target, arguments.kb)
    rows = await service.call(_fact_records, service.kb(arguments.kb), facts)
    return {"kb": service.kb(arguments.kb).name, "facts": rows}


def _fact_records(kb: KnowledgeBase, facts: list[Triple]) -> list[dict[str, Any]]:
    labels = {key: _label(kb, key) for fact in facts for key in (fact.subject, fact.object)}
    return [
        {
            "subject": fact.subject,
            "subject_label": labels[fact.subject],
            "relation": fact.relation,
            "object": fact.object,
            "object_label": labels[fact.object],
        }
        for fact in facts
    ]


def _label(kb: KnowledgeBase, key: str) -> str:
    entity = kb.get(key)
    return entity.label if entity is not None else ""


def _entity_record(entity: Entity) -> dict[str, Any]:
    return {
        "key": entity.key,
        "label": entity.label,
        "types": list(types_of(entity))[:_VALUES],
        "description": _description(entity),
    }


def _description(entity: Entity | None) -> str:
    return "" if entity is None else str(_abbreviate(entity.description))


def _abbreviate(value: Any) -> Any:
    """Return a JSON-like value with long texts shortened, and long lists cut."""
    if isinstance(value, str):
        return truncate(value, _DESCRIPTION)
    if isinstance(value, list | tuple):
        return [_abbreviate(each) for each in value[:_VALUES]]
    if isinstance(value, dict):
        return {name: _abbreviate(each) for name, each in list(value.items())[:_VALUES]}
    return value


def bounded_json(record: Mapping[str, Any], rows: str, most: int = MAX_CHARACTERS) -> str:
    """Return a record as JSON of a bounded length.

    Args:
        record: record with the answer of a tool.
        rows: name of the field whose last rows are left out if the JSON is too long.
        most: largest number of characters.
    """
    text = msgspec.json.encode(record).decode()
    if len(text) <= most:
        return text
    size = len(msgspec.json.encode({**record, rows: [], "omitted": len(record[rows])}).decode())
    shown: list[Any] = []
    for row in record[rows]:
        size += len(msgspec.json.encode(row).decode()) + 1
        if size > most:
            break
        shown.append(row)
    bounded = {**record, rows: shown, "omitted": len(record[rows]) - len(shown)}
    return msgspec.json.encode(bounded).decode()


TOOLS: Final[Mapping[str, AgentTool]] = {
    tool.name: tool
    for tool in (
        AgentTool(
            name="link",
            description="Find the entities that a text mentions. Offsets count code points.",
            arguments=LinkArguments,
            answer=_link,
            rows="links",
        ),
        AgentTool(
            name="reconcile",
            description="Find the entities that names mean, through typing errors. A score is a probability; "
            "match says whether it is at least 0.5.",
            arguments=_ReconcileArguments,
            answer=_reconcile,
            rows="names",
        ),
        AgentTool(
            name="search",
            description="Find entities by a key, a name or a part of one.",
            arguments=_SearchArguments,
            answer=_search,
            rows="entities",
        ),
        AgentTool(
            name="entity",
            description="Show an entity: label, description, types, attributes.",
            arguments=_EntityArguments,
            answer=_entity,
            rows="attributes",
        ),
        AgentTool(
            name="neighbours",
            description="List facts of an entity: subject, relation, object.",
            arguments=_NeighboursArguments,
            answer=_neighbours,
            rows="facts",
        ),
        AgentTool(
            name="path",
            description="Find a shortest path of facts between two entities.",
            arguments=_PathArguments,
            answer=_path,
            rows="facts",
        ),
    )
}
"""The tools by their names."""


def kb_records(service: Service) -> list[dict[str, Any]]:
    """Return the served knowledge bases as records for agents, the default one first."""
    return [
        {
            "name": kb.name,
            "source": kb.manifest.source.name,
            "language": kb.manifest.language,
            "entities": kb.manifest.entities,
            "facts": kb.manifest.triples,
            "kinds": sorted(kb.manifest.counts.entities)[:_VALUES],
            "relations": list(kb.relations[:_NAMES]),
        }
        for kb in map(service.kb, service.kb_names())
    ]


# -- the protocol ------------------------------------------------------------


def router(service: Service) -> APIRouter:
    """Return the router of `/mcp`."""
    return APIRouter(
        routes=[Route(MCPEndpoint.path, MCPEndpoint(service), methods=["POST"], include_in_schema=False)]
    )


class MCPEndpoint:
    """ASGI application of `/mcp`; the SDK is imported when the first request comes.

    Args:
        service: service that answers.

    Attributes:
        path: address, by which requests are counted and logged.
    """

    path = "/mcp"

    def __init__(self, service: Service) -> None:
        self._service = service
        self._server: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            MissingExtra: if the SDK is not installed.
        """
        scope["route"] = self
        if self._server is None:
            self._server = await asyncio.to_thread(make_mcp_server, self._service)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        try:
            frame = without_half_pairs(await Request(scope, receive).body())
            parse_frame(frame)
        except FrameError as error:
            content = error.answer().model_dump_json(by_alias=True, exclude_unset=True)
            await Response(content, 400, media_type="application/json")(scope, receive, send)
            return

        async def receive_frame() -> Message:
            """Return the frame, then what else comes."""
            return messages.pop() if messages else await receive()

        messages: list[Message] = [{"type": "http.request", "body": frame.encode(), "more_body": False}]
        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            max_request_body_size=self._service.limits.body_bytes,
        )
        async with manager.run():
            await manager.handle_request(scope, receive_frame, send)


KBS_URI: Final = "kgkit://kbs"
"""The resource that lists the knowledge bases."""

_INSTRUCTIONS: Final = (
    "Knowledge bases: link finds entities in a text, reconcile and search find them by name; entity, "
    "neighbours and path show their facts. Entities go by their keys. "
    f"{KBS_URI} lists the knowledge bases."
)


def make_mcp_server(service: Service) -> Any:
    """Return a server of the SDK with the tools of this module.

    Args:
        service: service that answers.

    Raises:
        MissingExtra: if the SDK is not installed.
    """
    import_extra("mcp", "mcp")
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(_: Any, __: Any) -> Any:
        """List the tools."""
        return types.ListToolsResult(tools=_tool_descriptions())

    async def call_tool(_: Any, params: Any) -> Any:
        """Answer a call; an error is one that the agent reads."""
        try:
            text, is_error = await call_agent_tool(service, params.name, params.arguments or {}), False
        except Exception as error:  # noqa: BLE001 - the agent gets every error as a text, without paths
            text, is_error = _error_text(error, service), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    async def list_resources(_: Any, __: Any) -> Any:
        """List the resource that lists the knowledge bases."""
        resource = types.Resource(
            uri=KBS_URI, name="kbs", mime_type="application/json",
            description="The knowledge bases with their sizes, kinds and relations.",
        )  # fmt: skip
        return types.ListResourcesResult(resources=[resource])

    async def read_resource(_: Any, params: Any) -> Any:
        """Return the resource that lists the knowledge bases."""
        from mcp.shared.exceptions import MCPError

        if str(params.uri) != KBS_URI:
            raise MCPError(types.INVALID_PARAMS, f"no such resource; there is {KBS_URI}")
        text = bounded_json({"kbs": await service.call(kb_records, service)}, "kbs")
        contents = types.TextResourceContents(uri=KBS_URI, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        "kgkit", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools,
        on_call_tool=call_tool, on_list_resources=list_resources, on_read_resource=read_resource,
    )  # fmt: skip


def _tool_descriptions() -> list[Any]:
    """Return the tools as the SDK describes them."""
    import mcp_types as types

    hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return [
        types.Tool(
            name=tool.name, description=tool.description, input_schema=tool.input_schema(), annotations=hints
        )
        for tool in TOOLS.values()
    ]


async def call_agent_tool(service: Service, name: str, arguments: dict[str, Any]) -> str:
    """Return the answer of a tool as JSON.

    Args:
        service: service that answers.
        name: name of the tool.
        arguments: arguments of the call, as the agent sent them.

    Raises:
        Problem: if there is no such tool, or the arguments are not what it takes.
        KgkitError: if the service cannot answer.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise Problem(404, f"no tool {name[:40]!r}; there are {', '.join(TOOLS)}")
    try:
        decoded = msgspec.convert(arguments, tool.arguments)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Problem(422, str(error)[:300]) from None
    return bounded_json(await tool.answer(service, decoded), tool.rows)


def _error_text(error: Exception, service: Service) -> str:
    problem = problem_of(error, service.home)
    if problem.status == 500:
        log.error("a tool failed: %s", type(error).__name__, exc_info=error)
    remedy = SEARCH_TOOL if problem.remedy == SEARCH_REMEDY else problem.remedy
    text = f"{problem.detail}; {remedy}" if remedy else problem.detail
    return text.encode("utf-8", "backslashreplace").decode()


async def serve_stdio(service: Service) -> None:
    """Answer an agent over standard input and output, until the input ends and all of it is answered."""
    server = make_mcp_server(service)
    async with stdio_frames(service.limits.body_bytes) as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
