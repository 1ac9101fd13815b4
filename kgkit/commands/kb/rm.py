"""`kgkit kb rm`: remove a knowledge base."""

from typing import Annotated

import typer

from kgkit.commands.completion import complete_kb
from kgkit.commands.messages import Messages
from kgkit.commands.output import confirm
from kgkit.commands.storage import YesOption
from kgkit.errors import NotThere, UsageError, did_you_mean


def rm(
    name: Annotated[
        str, typer.Argument(metavar="NAME", autocompletion=complete_kb, help="The knowledge base to remove.")
    ],
    yes: YesOption = False,
) -> None:
    """Remove a knowledge base with all its builds and vectors.

    A message names its vectors, which go too, and the models that need it. On a terminal it asks first.
    """
    from kgkit.home import Home
    from kgkit.models.needs import models_needing_kb
    from kgkit.store import remove
    from kgkit.vectors import vectors_names

    if "@" in name:
        raise UsageError(
            "a single build is not removed; `kgkit kb prune` removes those that are not published"
        )
    where = Home.find()
    kb = where.kb(name)
    if not kb.path.is_dir():
        names = [kb_home.name for kb_home in where.kbs()]
        raise NotThere(
            f"no knowledge base {name!r} in {where.path}; there are: {', '.join(names) or 'none'}"
            f"{did_you_mean(name, names)}"
        )
    messages = Messages()
    vectors, models = vectors_names(kb), models_needing_kb(where, name)
    if vectors:
        messages.write(f"its vectors go too: {', '.join(f'{name}/{each}' for each in vectors)}")
    if models:
        messages.write(f"models that need it, and stay: {', '.join(models)}")
    confirm(f"Remove the knowledge base {name}?", yes=yes)
    was_default = where.default_name.partition("@")[0] == name
    remove(kb)
    if was_default:
        where.default_file.unlink(missing_ok=True)
    messages.write(f"removed {name}{', which was the default' if was_default else ''}")
