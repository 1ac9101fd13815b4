"""Tables of entities, the best first: what a word can mean, what is near by vectors."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kgkit.commands.output import Column, TwoLines, on_terminal, write_table

if TYPE_CHECKING:
    from kgkit.types import Entity


def meaning_of(entity: "Entity", *, labelled: bool = True) -> str:
    """Return what people read of an entity beside its key: its description, or its label.

    Args:
        entity: the entity.
        labelled: whether the label stands before the description where the key does not show it.
    """
    from kgkit.types import shows_label

    label, description = entity.label, entity.description
    if not description or not label or not labelled or shows_label(entity.key, label):
        return description or label
    return f"{label}: {description}"


def write_ranked(
    heading: str, ranked: "Iterable[tuple[float, Entity, str | None]]", *, senses: bool = False
) -> None:
    """Write entities with their scores: on a terminal a table, in a pipe with their labels too.

    Args:
        heading: what the score is called.
        ranked: score, entity and, if it is known, the name of the sense.
        senses: whether a pipe gets a column of senses.
    """
    drawn = on_terminal()
    columns = [
        Column(heading=heading, align="right"),
        Column(heading="entity", most=40),
        Column(heading="meaning", wide=True, fit="wrap"),
    ]
    if not drawn:
        names = (heading, "entity", *(("sense",) if senses else ()), "label", "meaning")
        columns = [Column(heading=name) for name in names]
    rows: list[tuple[str | TwoLines, ...]] = []
    for score, entity, sense in ranked:
        if drawn:
            key = TwoLines((entity.key, sense)) if sense else entity.key
            rows.append((f"{score:.4f}", key, meaning_of(entity)))
        else:
            own = (sense or "",) if senses else ()
            meaning = meaning_of(entity, labelled=False)
            rows.append((f"{score:.4f}", entity.key, *own, entity.label, meaning))
    write_table(columns, rows)
