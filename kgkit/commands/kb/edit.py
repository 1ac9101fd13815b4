"""`kgkit kb edit`: entities of a knowledge base changed, corrected and retired."""

import time
from pathlib import Path
from typing import Annotated

import typer

from kgkit.commands.completion import complete_kb
from kgkit.commands.kb.info import write_change
from kgkit.commands.kb.lost_builds import lost_builds_warned, removals_reported
from kgkit.commands.messages import Messages


def edit(
    name: Annotated[
        str, typer.Argument(metavar="NAME", autocompletion=complete_kb, help="The knowledge base to edit.")
    ],
    edits: Annotated[
        Path, typer.Argument(metavar="FILE", help="Edits as JSON lines, an entity a line; see the manual.")
    ],
) -> None:
    """Change, correct and retire entities of a knowledge base.

    Labels, descriptions and attributes are changed, aliases and facts withdrawn, entities
    retired, in its next build. Ids stay, so vectors and models made before still fit; the id
    of a retired entity is never dealt out again.
    """
    from kgkit.building.edit import edit_kb
    from kgkit.home import Home
    from kgkit.store import read_build
    from kgkit.store.manifest import read_manifest

    messages = Messages(bars=False)
    began = time.monotonic()
    where = Home.find()
    _, before = read_build(where, name, read_manifest)
    with (
        lost_builds_warned(where, [name], messages),
        removals_reported(where, [name], messages),
        messages.progress(f"editing {name}"),
    ):
        built = edit_kb(name, edits)
    if built.build == before.build:
        messages.write(f"{name} is as {edits} says already: nothing was changed")
    else:
        messages.write(f"edited {built.name} in {time.monotonic() - began:.1f} s: {built.path}")
        if retired := built.manifest.retired - before.retired:
            messages.write(
                f"retired: {retired:,} {'entity' if retired == 1 else 'entities'}, and ids stay taken"
            )
    write_change(built, before)
