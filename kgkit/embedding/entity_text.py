"""The text that stands for an entity.

    {label}: {description}             fields of `Entity`: key, label, description, kind, pos, types
    {lemmas}: {description}            anything else is an attribute; lists are joined by ", "
    {lemmas|label}: {description}      the first of them that the entity has

What stands before a field goes with it, and is left out before the first one that an entity has: without a
description it becomes `dog`, without a label `a domesticated animal`.
"""

import re
from hashlib import blake2b
from typing import Any, Final

from kgkit.errors import UsageError
from kgkit.types import Entity

FIELDS: Final = ("key", "label", "description", "kind", "pos", "types")

_FIELD: Final = re.compile(r"\{([^{}]*)\}")


class Template:
    """Writes the text of an entity.

    Args:
        pattern: pattern as in the module's docstring.

    Attributes:
        filled: the fields that were found in some entity so far.

    Raises:
        UsageError: if *pattern* names no field, or has a brace that belongs to none.

    Examples:
        >>> Template("{label}: {description}")(Entity("dog.n.01", "dog", "a domesticated animal"))
        'dog: a domesticated animal'
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        literals_and_fields = _FIELD.split(pattern)
        self._literals = literals_and_fields[::2]
        self._fields = [
            tuple(name.strip() for name in names.split("|")) for names in literals_and_fields[1::2]
        ]
        if not self._fields or not all(name for names in self._fields for name in names):
            raise UsageError(
                f"the template {pattern!r} names no field: write {{label}}: {{description}}, say"
            )
        if any(brace in literal for literal in self._literals for brace in "{}"):
            raise UsageError(f"a brace in the template {pattern!r} belongs to no field")
        self.filled: set[str] = set()

    def __call__(self, entity: Entity) -> str:
        """Return the text, "" if *entity* has none of the fields."""
        parts: list[str] = []
        value = ""
        for number, names in enumerate(self._fields):
            value = self._first(entity, names)
            if value:
                parts += [self._literals[number] if parts or not number else "", value]
        if value:
            parts.append(self._literals[-1])
        return "".join(parts).strip()

    def unknown(self) -> list[str]:
        """Return the places of the template that no entity has filled so far, if they are attributes."""
        return [
            "|".join(names)
            for names in self._fields
            if not self.filled.intersection(names) and not set(names) & set(FIELDS)
        ]

    def _first(self, entity: Entity, names: tuple[str, ...]) -> str:
        for name in names:
            value = getattr(entity, name) if name in FIELDS else entity.attributes.get(name)
            if value and (written := _write_value(value)):
                self.filled.add(name)
                return written
        return ""


def text_digest(text: str) -> int:
    """Return 64 bits of a text's BLAKE2b, never 0, which stands for no text."""
    return (
        int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1
    )


def _write_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(_write_value, value)))
    return "" if isinstance(value, dict) else str(value)
