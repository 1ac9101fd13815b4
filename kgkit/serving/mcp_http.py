"""`/mcp`: the Model Context Protocol over HTTP.

Requests are answered each by itself, in JSON, without a session: any worker may answer any request.
"""

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kgkit.serving.agent_server import make_mcp_server
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
