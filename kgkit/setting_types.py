"""Values of settings, compared with the types that the settings are annotated with."""

import operator
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from reprlib import repr as short_repr
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin

from kgkit.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MISFIT: Final = object()
_TYPES_IN_WORDS: Final[dict[object, tuple[str, ...]]] = {
    str: ("a string",), int: ("a whole number",), float: ("a number",), bool: ("True", "False"),
    Path: ("a path",), NoneType: ("None",),
}  # fmt: skip


def convert_setting(name: str, value: Any, hint: Any) -> Any:
    """Return the value of a setting as the type that it is annotated with.

    A path and a string stand for each other, a list for a tuple, a whole number for a float, and numbers of
    NumPy for those of Python. A value of a type that is not known here is returned as it is.

    Args:
        name: name of the setting, for the error.
        value: value that was given.
        hint: annotation, as `typing.get_type_hints` returns it.

    Raises:
        UsageError: if the value is of another type, or is none of those that a `Literal` has.

    Examples:
        >>> convert_setting("pooling", "max", Literal["cls", "mean"])
        Traceback (most recent call last):
        kgkit.errors.UsageError: pooling is 'max'; it is 'cls' or 'mean'
    """
    converted = _convert(value, hint)
    if converted is _MISFIT:
        raise UsageError(f"{name} is {short_repr(value)}; it is {_in_words(hint)}")
    return converted


def convert_settings(settings: "DataclassInstance") -> None:
    """Put the value of each setting in its place as the type that it is annotated with.

    A setting whose annotation is a string is left as it is: what it names need not be imported.

    Args:
        settings: dataclass, which may be frozen; this is called by its `__post_init__`.

    Raises:
        UsageError: as `convert_setting` does.
    """
    for field in fields(settings):
        if not isinstance(field.type, str):
            value = convert_setting(field.name, getattr(settings, field.name), field.type)
            object.__setattr__(settings, field.name, value)


def _convert(value: Any, hint: Any) -> Any:
    """Return a value as one of a type; `_MISFIT` if it is none."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return next((part for part in parts if type(part) is type(value) and part == value), _MISFIT)
    if kind in (Union, UnionType):
        values = (_convert(value, part) for part in parts)
        return next((converted for converted in values if converted is not _MISFIT), _MISFIT)
    if kind is tuple and parts[1:] == (...,):
        items = [_convert(item, parts[0]) for item in value] if isinstance(value, list | tuple) else [_MISFIT]
        return _MISFIT if any(item is _MISFIT for item in items) else tuple(items)
    if kind in (str, Path):
        return kind(value) if isinstance(value, str | Path) else _MISFIT
    if kind in (int, float):
        number = Integral if kind is int else Real
        fits = isinstance(value, number) and not isinstance(value, bool)
        return (operator.index if kind is int else float)(value) if fits else _MISFIT
    try:
        return value if isinstance(value, kind) else _MISFIT
    except TypeError:  # nothing that values are instances of
        return value


def _in_words(hint: Any) -> str:
    """Return what a value of a type is, in words."""
    *leading, last = _alternatives(hint)
    return f"{', '.join(leading)} or {last}" if leading else last


def _alternatives(hint: Any) -> list[str]:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return [repr(part) for part in parts]
    if kind in (Union, UnionType):
        return [words for part in parts for words in _alternatives(part)]
    if kind is tuple and parts[1:] == (...,):
        return [f"a list, each item {_in_words(parts[0])}"]
    return [*_TYPES_IN_WORDS.get(kind, (f"a {getattr(kind, '__name__', kind)}",))]
