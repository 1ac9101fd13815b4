"""Entities that are told in pieces, put together."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

__all__ = ["decode_entity", "joined", "with_attributes"]

Told = tuple[str, str, str, str, str, tuple[str, ...], dict[str, Any]]
"""An entity as the rows have it: key, label, description, kind, pos, types, attributes."""

decode_entity = msgspec.msgpack.Decoder(Told).decode


def joined(pieces: Sequence[Told]) -> Told:
    """Return one entity of its *pieces*: the first text of each field, all types and attributes."""
    if len(pieces) == 1:
        return pieces[0]
    _, *fields = zip(*(piece[:5] for piece in pieces), strict=True)
    label, description, kind, pos = (next(filter(None, texts), "") for texts in fields)
    types = tuple(dict.fromkeys(name for piece in pieces for name in piece[5]))
    attributes = {name: value for piece in reversed(pieces) for name, value in piece[6].items()}
    return pieces[0][0], label, description, kind, pos, types, attributes


def with_attributes(entity: Told, told: Iterator[tuple[Any, ...]]) -> Told:
    """Return *entity* with further attributes; one that has several values has a list."""
    values: dict[str, list[Any]] = {}
    lists = {name for name, value in entity[6].items() if isinstance(value, list)}  # they stay lists
    for name, value in entity[6].items():
        values[name] = [*value] if isinstance(value, list) else [value]
    texts = {name: {value for value in there if isinstance(value, str)} for name, there in values.items()}
    for _, name, value in told:
        if value not in (known := texts.setdefault(name, set())):
            known.add(value)
            values.setdefault(name, []).append(value)
    merged = {
        name: several if len(several) > 1 or name in lists else several[0] for name, several in values.items()
    }
    return *entity[:6], merged
