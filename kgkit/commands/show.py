"""`kgkit show`: an entity and its neighbours."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from kgkit.commands.options import (
    JSONOption,
    RecentKBOption,
    find_entity,
    limit_option,
    open_chosen_kb,
)
from kgkit.commands.output import Column, console, on_terminal, plain, write_json, write_line, write_table
from kgkit.commands.ranked import meaning_of
from kgkit.errors import FormatMismatch

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.kb.json_records import KeysByRelation
    from kgkit.types import Entity

Item = TypeVar("Item")

_LIMIT = 10
_COLUMNS = (
    Column(heading="relation"),
    Column(heading="entity"),
    Column(heading="meaning", wide=True),
)


def show(
    entity: Annotated[
        str, typer.Argument(metavar="ENTITY", help="Its key: dog.n.01, dog%1:05:00::, a page title.")
    ],
    kb: RecentKBOption = None,
    limit: Annotated[
        int | None,
        limit_option(
            "Surfaces, and neighbours of each relation, 0 for all; by default 10 on a terminal, else all."
        ),
    ] = None,
    as_json: JSONOption = False,
) -> None:
    """Show an entity: what it is, its surfaces with their priors, and its neighbours in both directions."""
    from kgkit.kb.json_records import entity_record, neighbor_keys

    with open_chosen_kb(kb) as base:
        record = find_entity(base, entity)
        if as_json:
            write_json(entity_record(base, record))
        else:
            outward, inward = neighbor_keys(base, record)
            at_most = limit if limit is not None else _LIMIT if on_terminal() else 0
            _card(base, record, outward, inward, at_most)


def _card(
    kb: "KnowledgeBase", entity: "Entity", outward: "KeysByRelation", inward: "KeysByRelation", limit: int
) -> None:
    what = " · ".join(
        filter(None, (entity.kind, entity.pos, ", ".join(entity.types), f"id {entity.id}", kb.name))
    )
    _heading(entity.key, entity.label if entity.label != entity.key else "", what)
    if entity.description:
        _paragraph("", entity.description)
    if names := _format_surfaces(kb, entity, limit):
        _paragraph("surfaces", names)
    if url := kb.url(entity):
        _paragraph("url", url)
    for name, value in entity.attributes.items():
        if value not in ("", None, [], {}):
            _paragraph(name, _format_value(value))
    from kgkit.kb.json_records import link_probability

    for linked in link_probability(kb, entity.label).values():
        _paragraph(f"link probability of {entity.label!r}", str(linked))
    rows = [
        *(row for relation, keys in outward.items() for row in _rows(kb, relation, keys, limit)),
        *(row for relation, keys in inward.items() for row in _rows(kb, f"← {relation}", keys, limit)),
    ]
    if rows:
        write_line()
        write_table(_COLUMNS, rows)


def _format_surfaces(kb: "KnowledgeBase", entity: "Entity", limit: int) -> str:
    """Return the surfaces with their priors: `dog 0.83; domestic dog 1.00`; or why there are none."""
    try:
        surfaces = kb.surfaces_of(entity)
    except FormatMismatch as error:
        return f"not known. {error}"
    shown = _shortened(surfaces, limit)
    names = [f"{surface.surface} {surface.prior:.2f}" for surface in shown]
    hidden = [f"… and {len(surfaces) - len(shown):,} more"] if len(shown) < len(surfaces) else []
    return "; ".join(names + hidden)


def _shortened(items: list[Item], limit: int) -> list[Item]:
    """Return the first *limit* items, or all if it is 0; a single one more is shown rather than counted."""
    return items[:limit] if 0 < limit < len(items) - 1 else items


def _rows(kb: "KnowledgeBase", relation: str, keys: list[str], limit: int) -> Iterator[tuple[str, ...]]:
    """Yield a row a neighbour; on a terminal the relation stands at the first only."""
    shown = _shortened(keys, limit)
    for index, key in enumerate(shown):
        entity = kb[key]
        if on_terminal():
            yield "" if index else relation, key, meaning_of(entity)
        else:
            yield relation, key, meaning_of(entity, labelled=False)
    if len(shown) < len(keys):
        yield "" if on_terminal() else relation, f"… and {len(keys) - len(shown):,} more", ""


def _format_value(value: Any) -> str:
    """Return an attribute as people write it."""
    if isinstance(value, list | tuple):
        return "; ".join(map(_format_value, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_format_value(inner)}" for key, inner in value.items())
    return str(value)


def _heading(key: str, label: str, what: str) -> None:
    if not on_terminal():
        write_line("  ".join(filter(None, (plain(key), plain(label), plain(what)))))
        return
    from rich.text import Text

    parts = [(plain(key), "bold"), ("  " + plain(label) if label else "", ""), ("  " + plain(what), "dim")]
    console().print(Text.assemble(*parts))


def _paragraph(name: str, text: str) -> None:
    """Write a named text, its further lines indented."""
    if not on_terminal():
        write_line(f"  {plain(name) + ': ' if name else ''}{plain(text)}")
        return
    from rich.padding import Padding
    from rich.text import Text

    paragraph = Text.assemble((f"{plain(name)}: " if name else "", "dim"), plain(text))
    console().print(Padding(paragraph, (0, 0, 0, 2)))
