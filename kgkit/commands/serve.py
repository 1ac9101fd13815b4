"""`kgkit serve`: knowledge bases behind HTTP."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.link import check_named
from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, repeated
from kgkit.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PACKAGES = ("fastapi", "jinja2", "prometheus_client", "pyoxigraph", "python_multipart", "uvicorn")

ServedKBsOption = Annotated[
    list[str] | None,
    repeated(
        "--kb",
        "KB[@BUILD][=MODEL]",
        "Knowledge base, perhaps with its build, and a model that links to it; by default all, with auto",
    ),
]


def serve(
    kb: ServedKBsOption = None,
    default: Annotated[
        str | None,
        typer.Option(
            "--default",
            metavar="KB",
            help="Knowledge base of requests that name none; by default the first --kb.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="Address to listen at; any but loopback needs a token."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, metavar="N", help="Port to listen at; 0: one that is free."),
    ] = 8077,
    workers: Annotated[int, typer.Option("--workers", min=1, metavar="N", help="Processes that answer.")] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="File with the token that requests carry; by default $KGKIT_TOKEN.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, repeated("--allow-host", "NAME", "Further name by which the service is asked")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        repeated("--allow-origin", "ORIGIN", "Site whose pages may ask, as https://example.org"),
    ] = None,
    limit: Annotated[
        list[str] | None,
        repeated(
            "--limit",
            "NAME=NUMBER",
            "Limit of requests, as characters=20000; the manual lists them",
        ),
    ] = None,
    device: DeviceOption = "auto",
) -> None:
    """Serve knowledge bases over HTTP, until Ctrl-C or SIGTERM: what is under way then is finished."""
    check_packages()
    from kgkit.home import Home
    from kgkit.serving.running import has_default_kb, run_service
    from kgkit.serving.settings import ServiceSettings, read_limits, read_token

    settings = ServiceSettings(
        kbs=models_by_kb(kb or []), builds=builds_by_kb(kb or []), default_kb=default, host=host, port=port,
        workers=workers, token=read_token(token_file), allowed_hosts=tuple(allow_host or ()),
        allowed_origins=tuple(allow_origin or ()), device=device, limits=read_limits(limit or []),
    )  # fmt: skip
    messages, where = Messages(), Home.find()

    def announce(url: str) -> None:
        messages.write(f"serving {url}")
        if not has_default_kb(settings, where):
            messages.write(
                "no knowledge base is the default: requests that name none are refused; "
                "--default KB or `kgkit kb default KB` sets it"
            )

    run_service(settings, where, announce, quiet=Messages.quiet)


def models_by_kb(kbs: "Sequence[str]") -> "Mapping[str, tuple[str, ...]]":
    """Return the models of each knowledge base that is named, in the order of the command line.

    Args:
        kbs: `KB` or `KB=MODEL`, perhaps `KB@BUILD`; one that is named several times has several models.

    Raises:
        UsageError: if a name is empty.
    """
    check_named(kbs)
    models: dict[str, tuple[str, ...]] = {}
    for text in kbs:
        name, model = _name_of(text), text.partition("=")[2]
        named = models.get(name, ())
        models[name] = named if (model or "auto") in named else (*named, model or "auto")
    return models


def builds_by_kb(kbs: "Sequence[str]") -> "Mapping[str, str]":
    """Return the builds of the knowledge bases that are named with some.

    Args:
        kbs: `KB`, `KB@BUILD`, either perhaps with `=MODEL`.

    Raises:
        UsageError: if the name of a build is empty, or a knowledge base is named with two.
    """
    builds: dict[str, str] = {}
    for text in kbs:
        name, separator, build = text.partition("=")[0].partition("@")
        if not separator:
            continue
        if not name or not build:
            raise UsageError(f"--kb {text!r}: a build is named as KB@BUILD; `kgkit kb list` lists them")
        if builds.setdefault(name, build) != build:
            raise UsageError(
                f"--kb names two builds of {name}, {builds[name]} and {build}, and a service has one of each"
            )
    return builds


def _name_of(text: str) -> str:
    """Return the name of the knowledge base in `KB[@BUILD][=MODEL]`."""
    return text.partition("=")[0].partition("@")[0]


def check_packages() -> None:
    """Refuse to start where a package of the extra is missing.

    Raises:
        MissingExtra: if it is.
    """
    from importlib.util import find_spec

    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingExtra(package.replace("_", "-"), "serve")
