"""`kgkit kb rm`: remove a knowledge base."""

from typing import Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import HomeOption, QuietOption
from kgkit.errors import NotThere, UsageError


def rm(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The knowledge base to remove.")],
    home: HomeOption = None,
    quiet: QuietOption = False,
) -> None:
    """Remove a knowledge base with all its builds, without asking again."""
    from kgkit.home import Home
    from kgkit.store import remove

    if "@" in name:
        raise UsageError(
            "a single build is not removed; `kgkit kb prune` removes those that are not published"
        )
    where = Home.find(home)
    kb = where.kb(name)
    if not kb.path.is_dir():
        names = ", ".join(kb_home.name for kb_home in where.kbs()) or "none"
        raise NotThere(f"no knowledge base {name!r} in {where.path}; there are: {names}")
    was_default = where.default_name.partition("@")[0] == name
    remove(kb)
    if was_default:
        where.default_file.unlink(missing_ok=True)
    Messages(quiet=quiet).write(f"removed {name}{', which was the default' if was_default else ''}")
