"""What is wrong with a line of JSON, as a person would say it, for all that read JSON lines."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kgkit.errors import did_you_mean

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
                others = [name for name in fields if name != unknown[1]]  # it may be another record's
                hint = did_you_mean(unknown[1], others)
                return f"there is no field {unknown[1]!r}" + (
                    hint or "; other values belong under the `attributes` of an entity"
                )
            return text.replace(" | null", "").replace("expected `object`", "expected `object`, as {…}")
        case msgspec.DecodeError():
            reason = str(error).removeprefix("JSON is malformed: ")
            return f"not JSON: {reason[:1].lower()}{reason[1:]}. Each line holds one object, as {{…}}"
    return text
