"""`kgkit path`: a shortest path between two entities."""

from typing import TYPE_CHECKING, Annotated

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    JSONOption,
    RecentKBOption,
    find_entity,
    open_chosen_kb,
    repeated,
)
from kgkit.commands.output import Column, on_terminal, plain, write_json, write_line, write_table

if TYPE_CHECKING:
    from kgkit.types import Triple

_COLUMNS = (Column(heading="subject"), Column(heading="relation"), Column(heading="object"))


def path(
    start: Annotated[str, typer.Argument(metavar="A", help="Key of the entity to start from.")],
    end: Annotated[str, typer.Argument(metavar="B", help="Key of the entity to reach.")],
    relations: Annotated[
        list[str] | None,
        repeated("--relation", "RELATION", "Follow this relation only, in either direction", "-r"),
    ] = None,
    kb: RecentKBOption = None,
    as_json: JSONOption = False,
) -> None:
    """Show a shortest path between two entities, edges taken in either direction."""
    with open_chosen_kb(kb) as base:
        first, last = find_entity(base, start), find_entity(base, end)
        steps = base.path(first, last, relations or None)
    if as_json:
        write_json(steps)
    elif not steps:
        Messages().write(f"{first.key} is {last.key}: the path is empty")
    elif on_terminal():
        _draw(first.key, steps)
    else:
        write_table(_COLUMNS, [(step.subject, step.relation, step.object) for step in steps])


def _draw(key: str, steps: "list[Triple]") -> None:
    """Write a step a line; an arrow back where the fact's subject is the far end."""
    write_line(plain(key))
    width = max(len(step.relation) for step in steps)
    for step in steps:
        onward = step.subject == key
        key = step.object if onward else step.subject
        write_line(f"  {'→' if onward else '←'} {step.relation:{width}}  {plain(key)}")
