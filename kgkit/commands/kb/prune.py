"""`kgkit kb prune`: remove the builds that a newer one has replaced."""

from typing import Annotated

import typer

from kgkit.commands.completion import complete_kb
from kgkit.commands.kb.lost_builds import lost_builds_warned
from kgkit.commands.messages import Messages
from kgkit.commands.options import JSONOption
from kgkit.commands.output import write_json, write_line


def prune(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=complete_kb,
            help="Knowledge bases to prune; all of them if none is named.",
        ),
    ] = None,
    as_json: JSONOption = False,
) -> None:
    """Remove every build but the published one, and print the names of those removed.

    The partial work of builds and of vector jobs that were stopped is removed too.
    """
    from kgkit.home import Home
    from kgkit.store import find_build
    from kgkit.store import prune as prune_kb
    from kgkit.vectors.work import sweep_unfinished

    where = Home.find()
    unfinished = {kb.name for kb in where.unfinished()}
    names = names or sorted(unfinished.union(kb.name for kb in where.kbs()))
    for name in names:
        if name not in unfinished:
            find_build(where, name)  # all of them are there, or nothing is removed
    with lost_builds_warned(where, names, Messages()):
        removed = [f"{name}@{build}" for name in names for build in prune_kb(where.kb(name))]
    for name in names:
        sweep_unfinished(where.kb(name))
    if as_json:
        write_json(removed)
    else:
        for build in removed:
            write_line(build)
    if not removed and unfinished.isdisjoint(names):
        Messages().write("nothing to remove")
