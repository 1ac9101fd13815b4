"""`kgkit kb prune`: remove the builds that a newer one has replaced."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import HomeOption, JSONOption, QuietOption
from kgkit.commands.output import write_json, write_line
from kgkit.errors import KgkitError

if TYPE_CHECKING:
    from kgkit.home import Home


def prune(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Knowledge bases to prune; all of them if none is named."),
    ] = None,
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Remove every build but the published one, and print the names of those removed.

    The partial work of builds and of vector jobs that were stopped is removed too.
    """
    from kgkit.home import Home
    from kgkit.store import find_build
    from kgkit.store import prune as prune_kb
    from kgkit.vectors.work import sweep_unfinished

    where = Home.find(home)
    unfinished = {kb.name for kb in where.unfinished()}
    names = names or sorted(unfinished.union(kb.name for kb in where.kbs()))
    for name in names:
        if name not in unfinished:
            find_build(where, name)  # all of them are there, or nothing is removed
    removed = [f"{name}@{build}" for name in names for build in prune_kb(where.kb(name))]
    for name in names:
        sweep_unfinished(where.kb(name))
    for model, build in _models_without_build(where, removed):
        Messages(quiet=quiet).write(f"warning: the model {model} needs {build}: train it again")
    if as_json:
        write_json(removed)
    else:
        for build in removed:
            write_line(build)
    if not removed and unfinished.isdisjoint(names):
        Messages(quiet=quiet).write("nothing to remove")


def _models_without_build(home: "Home", removed: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the models that need a build that was removed, and which."""
    from kgkit.models.folder import find_model_folder, model_names
    from kgkit.models.manifest import read_header
    from kgkit.models.needs import lost_builds
    from kgkit.versions import read_current

    for name in model_names(home):
        with suppress(KgkitError):  # who opens it says what is wrong
            needs = read_current(partial(find_model_folder, name, home), read_header).needs
            yield from ((name, build) for build in lost_builds(needs, home, removed))
