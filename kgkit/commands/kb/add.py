"""`kgkit kb add`: new entities, aliases and triples for an existing knowledge base."""

import time
from typing import Annotated

import typer

from kgkit.commands.completion import complete_kb
from kgkit.commands.kb.build import preview_of
from kgkit.commands.kb.info import write_change
from kgkit.commands.kb.lost_builds import lost_builds_warned, removals_reported
from kgkit.commands.messages import Messages
from kgkit.commands.text_streams import BadOption


def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", autocompletion=complete_kb, help="The knowledge base to add to.")
    ],
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="Source to add; kb:NAME adds another knowledge base.")
    ],
    builder: Annotated[
        str | None,
        typer.Option(
            "--builder",
            metavar="BUILDER",
            help="Which builder reads it; by default chosen by the name of the file.",
        ),
    ] = None,
    bad: BadOption = "stop",
) -> None:
    """Add entities, aliases and triples to a knowledge base.

    They are in its next build, linkable at once. The ids of the entities it has
    stay, so vectors and models made for the old build still fit.
    """
    from kgkit.building.add import add_to_kb
    from kgkit.exchange import builder_by_name
    from kgkit.home import Home
    from kgkit.store import read_build
    from kgkit.store.manifest import read_manifest

    messages = Messages()
    chosen = builder or builder_by_name(source)
    if chosen is not None:
        for sentence in preview_of(chosen, [source], {}, skips_bad=bad == "skip")[:1]:
            messages.write(sentence)
    began = time.monotonic()
    where = Home.find()
    _, before = read_build(where, name, read_manifest)
    with (
        lost_builds_warned(where, [name], messages),
        removals_reported(where, [name], messages),
        messages.progress(f"adding to {name}") as tell,
    ):
        built = add_to_kb(
            name,
            source,
            builder=chosen,
            progress=lambda stage, read, _: tell(f"{stage} {read:,} records" if read else stage, read),
            bad=bad,
        )
    if built.build != before.build:
        messages.write(f"added to {built.name} in {time.monotonic() - began:.1f} s: {built.path}")
    elif built.dropped:
        messages.write(f"{name} has all of {source} that it can keep already: nothing was changed")
    else:
        messages.write(f"{name} has all of {source} already: nothing was changed")
    messages.write_dropped(built.dropped, built.examples)
    write_change(built, before)
