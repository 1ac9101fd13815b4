"""`kgkit kb publish`: publish an earlier build under its name again."""

from typing import Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.errors import UsageError


def publish(
    name: Annotated[str, typer.Argument(metavar="NAME@BUILD", help="The build to publish under NAME.")],
) -> None:
    """Go back to an earlier build, or forward again: `kgkit kb info` lists the builds that are there.

    The build that was published stays until `kgkit kb prune`.
    """
    from kgkit.building.registering import register
    from kgkit.home import Home
    from kgkit.store import find_build, publish_build

    where, (kb, _, build) = Home.find(), name.partition("@")
    if not build:
        raise UsageError(f"which build of {kb!r}? NAME@BUILD; `kgkit kb info {kb}` lists them")
    find_build(where, kb)
    messages = Messages()
    with messages.progress(f"publishing {name}"):
        publish_build(where.kb(kb), build)
        register(where, kb, build)
    messages.write(f"{kb} is {name} now")
