"""What is wrong with a line of JSON, as a person would say it, for all that read JSON lines."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

__all__ = ["LINE_ERRORS", "EntityFields", "json_problem"]

LINE_ERRORS: Final = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)
"""What reading a line of JSON raises if it is not as it should be."""

_UNKNOWN: Final = re.compile("unknown field `([^`]*)`")


class EntityFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of an entity on a line, each None where the line does not have it."""

    key: str | None = None
    label: str | None = None
    description: str | None = None
    kind: str | None = None
    pos: str | None = None
    types: tuple[str, ...] | None = None
    attributes: dict[str, Any] | None = None


def json_problem(error: Exception, fields: Sequence[str]) -> str:
    """Return a sentence about a line that cannot be read.

    Args:
        error: one of `LINE_ERRORS`.
        fields: names of the fields that there are, one of which may have been meant by an unknown one.
    """
    text = str(error)
    text = f"{text[:1].lower()}{text[1:]}"
    match error:
        case RecursionError():
            return "nested too deeply"
        case OverflowError():
            return f"a number is too large: {text}"
        case msgspec.ValidationError():
            if unknown := _UNKNOWN.search(text):
                return f"there is no field {unknown[1]!r}" + _hint(unknown[1], fields)
            return text.replace(" | null", "").replace("expected `object`", "expected `object`, as {…}")
        case msgspec.DecodeError():
            reason = str(error).removeprefix("JSON is malformed: ")
            return f"not JSON: {reason[:1].lower()}{reason[1:]}. Each line holds one object, as {{…}}"
    return text


def _hint(unknown: str, fields: Sequence[str]) -> str:
    """Return which field may have been meant; one of that very name is another kind of record's."""
    near = get_close_matches(unknown, [name for name in fields if name != unknown], n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return "; what kgkit has no field for belongs under the `attributes` of an entity"
