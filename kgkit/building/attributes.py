"""What the store can hold of the attributes of an entity, checked where a reader still knows the line.

JSON is wider than the store: its integers have any size, and its lists any depth. The store holds integers of
64 bits, and decodes what is nested `MAX_DEPTH` deep wherever it is asked for.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kgkit.building.contract import MAX_COUNT
from kgkit.store import codec

__all__ = [
    "MAX_DEPTH",
    "alias_count",
    "check_attributes",
    "check_occurrences",
    "decoded_json",
    "decoded_object",
]

MAX_DEPTH: Final = 200
"""Lists and objects within each other; decoding recurses, and Python allows about 1,000 calls in all."""

_TOO_DEEP: Final = f"nested too deeply: lists and objects may be nested {MAX_DEPTH} deep"
_encode: Final = msgspec.msgpack.Encoder().encode


def check_attributes(attributes: Mapping[str, Any]) -> None:
    """Refuse attributes that the store cannot hold.

    Raises:
        ValueError: for an integer beyond 64 bits, text that is no Unicode, or too deep a nesting.
    """
    try:
        size = len(_encode(attributes))
    except OverflowError:
        raise ValueError(
            "a number is too large: integers lie between -2**63 and 2**64 - 1; write others as strings"
        ) from None
    except UnicodeEncodeError as error:
        raise ValueError(_no_unicode(error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if size > MAX_DEPTH and _is_deep(attributes):  # a level takes a byte at least
        raise ValueError(_TOO_DEEP)


def _is_deep(attributes: Mapping[str, Any]) -> bool:
    """Return whether values are nested more than `MAX_DEPTH` deep."""
    level: list[Any] = [attributes]
    for _ in range(MAX_DEPTH):
        level = [
            value
            for container in level
            for value in (container.values() if isinstance(container, Mapping) else container)
            if isinstance(value, (dict, list, tuple))
        ]
        if not level:
            return False
    return True


def decoded_json(text: str | bytes, kind: Any) -> Any:
    """Return the value of *kind* that JSON stands for.

    Raises:
        ValueError: if it is malformed, no such value, nested too deeply, or its text is no Unicode.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except UnicodeEncodeError as error:
        raise ValueError(_no_unicode(error)) from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def decoded_object(text: str | bytes) -> dict[str, Any]:
    """Return the attributes that a JSON object stands for.

    Raises:
        ValueError: if it is no JSON object, or the store cannot hold it.
    """
    attributes: dict[str, Any] = decoded_json(text, dict[str, Any])
    check_attributes(attributes)
    return attributes


def alias_count(value: Any) -> float:
    """Return the count of an alias.

    Args:
        value: number, or text of one, as a file has it.

    Raises:
        ValueError: if it is no number, or none that a count may be.
    """
    try:
        count = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a count that is no number") from None
    if not 0 <= count <= MAX_COUNT:
        raise ValueError(f"the count is {count:g}: counts lie between 0 and {MAX_COUNT:g}")
    return count


def check_occurrences(count: float, linked: float) -> None:
    """Refuse counts of a surface that the store cannot hold.

    Args:
        count: number of occurrences.
        linked: number of occurrences as a link.

    Raises:
        ValueError: if they are negative, too large or too small, or more are links than occur.
    """
    if 1 <= count <= MAX_COUNT and 0 <= linked <= count:  # as nearly all are
        return
    for name, value in (("occurrences", count), ("linked", linked)):
        if not 0 <= value <= MAX_COUNT:
            raise ValueError(f"{name!r} is {value:g}: counts lie between 0 and {MAX_COUNT:g}")
    if linked > count:
        raise ValueError(
            f"'linked' is {linked:g}, more than the {count:g} 'occurrences': links are occurrences too"
        )
    if count:
        try:
            codec.pack_occurrences(count, linked)
        except ValueError:
            raise ValueError(
                f"'occurrences' is {count:g}, which is stored as 0: give 0, or at least 1e-44"
            ) from None


def _no_unicode(error: UnicodeEncodeError) -> str:
    return f"holds text that is not Unicode: {error.object[error.start]!r} is half of a surrogate pair"
