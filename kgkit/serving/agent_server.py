"""The Model Context Protocol with `agent_tools`, over standard input and output and over HTTP (`/mcp`).

The knowledge bases are listed as the resource `kgkit://kbs`.
"""

import asyncio
import logging
from typing import Any, Final

import msgspec
from fastapi import APIRouter
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kgkit import __version__
from kgkit.lazy import import_extra
from kgkit.serving.agent_tools import TOOLS, bounded_json, kb_records
from kgkit.serving.problems import Problem, problem_of
from kgkit.serving.service import Service


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

        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            max_request_body_size=self._service.limits.body_bytes,
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)


log = logging.getLogger(__name__)

KBS_URI: Final = "kgkit://kbs"
"""The resource that lists the knowledge bases."""

_INSTRUCTIONS: Final = (
    "Knowledge bases: link finds entities in a text, reconcile and search find them by name; entity, "
    "neighbours and path show their facts. Entities go by their keys. "
    f"{KBS_URI} lists the knowledge bases."
)


def make_mcp_server(service: Service) -> Any:
    """Return a server of the SDK with the tools of `agent_tools`.

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
    text = f"{problem.detail}; {problem.remedy}" if problem.remedy else problem.detail
    return text.encode("utf-8", "backslashreplace").decode()


async def serve_stdio(service: Service) -> None:
    """Answer an agent over standard input and output, until the input ends."""
    server = make_mcp_server(service)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
