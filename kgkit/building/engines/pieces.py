"""Entities that are told in pieces, put together."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

__all__ = ["decode_entity", "join_pieces", "with_attributes"]

EntityRow = tuple[str, str, str, str, str, tuple[str, ...], dict[str, Any]]
"""An entity as the rows have it: key, label, description, kind, pos, types, attributes."""

decode_entity = msgspec.msgpack.Decoder(EntityRow).decode


def join_pieces(pieces: Sequence[EntityRow]) -> EntityRow:
    """Return one entity of its *pieces*: the first text of each field, all types and attributes."""
    if len(pieces) == 1:
        return pieces[0]
    _, *fields = zip(*(piece[:5] for piece in pieces), strict=True)
    label, description, kind, pos = (next(filter(None, texts), "") for texts in fields)
    types = tuple(dict.fromkeys(name for piece in pieces for name in piece[5]))
    attributes = {name: value for piece in reversed(pieces) for name, value in piece[6].items()}
    return pieces[0][0], label, description, kind, pos, types, attributes


def with_attributes(entity: EntityRow, rows: Iterator[tuple[Any, ...]]) -> EntityRow:
    """Return *entity* with further attributes; one that has several values has a list."""
    values: dict[str, list[Any]] = {}
    lists = {name for name, value in entity[6].items() if isinstance(value, list)}  # they stay lists
    for name, value in entity[6].items():
        values[name] = [*value] if isinstance(value, list) else [value]
    texts = {name: {value for value in present if isinstance(value, str)} for name, present in values.items()}
    for _, name, value in rows:
        if value not in (distinct := texts.setdefault(name, set())):
            distinct.add(value)
            values.setdefault(name, []).append(value)
    merged = {
        name: texts_of if len(texts_of) > 1 or name in lists else texts_of[0]
        for name, texts_of in values.items()
    }
    return *entity[:6], merged
