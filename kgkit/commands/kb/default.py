"""`kgkit kb default`: the knowledge base that is taken where none is named."""

from typing import Annotated

import typer

from kgkit.commands.completion import complete_kb
from kgkit.commands.messages import Messages
from kgkit.commands.options import flag
from kgkit.commands.output import write_line
from kgkit.errors import UsageError
from kgkit.files import written


def default(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=complete_kb, help="NAME or NAME@BUILD; left out: show the default."
        ),
    ] = None,
    clear: Annotated[bool, flag("--clear", help="Remove the default.")] = False,
) -> None:
    """Set or show the knowledge base that commands take where none is named.

    The variable KGKIT_KB goes before it, for one shell or program.
    """
    from kgkit.home import Home
    from kgkit.store import find_build

    where, messages = Home.find(), Messages()
    if clear:
        if name is not None:
            raise UsageError("--clear leaves no default: leave out the name")
        where.default_file.unlink(missing_ok=True)
        messages.write("there is no default now")
    elif name is not None:
        find_build(where, name)
        with written(where.default_file) as stream:
            stream.write(f"{name}\n".encode())
        messages.write(f"the default is {name} now")
    else:
        chosen, reason = where.default_kb(recent=True)
        write_line(chosen)
        messages.write(f"{chosen} is {reason or 'the only knowledge base'}")
