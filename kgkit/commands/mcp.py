"""`kgkit mcp`: knowledge bases as tools of a language-model agent, over standard input and output."""

from kgkit.commands.options import DeviceOption
from kgkit.commands.serve import ServedKBsOption, builds_by_kb, models_by_kb
from kgkit.lazy import import_extra


def mcp(
    kb: ServedKBsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Answer a language-model agent by the Model Context Protocol, over standard input and output.

    Its tools are link, reconcile, search, entity, neighbours and path: they read, and change nothing. A
    service that `kgkit serve` has started offers the same tools at /mcp.
    """
    import_extra("mcp", "mcp")
    import asyncio

    from kgkit.home import Home
    from kgkit.serving.mcp import serve_stdio
    from kgkit.serving.service import Service
    from kgkit.serving.settings import ServiceSettings

    settings = ServiceSettings(kbs=models_by_kb(kb or []), builds=builds_by_kb(kb or []), device=device)
    service = Service(settings, Home.find())
    service.start()
    try:
        asyncio.run(serve_stdio(service))
    finally:
        service.close()
