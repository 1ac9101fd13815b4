"""Settings: their values, compared with the types that they are annotated with, and what is said of them."""

import inspect
import operator
import re
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from reprlib import repr as short_repr
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from kgkit.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ITEM: Final = re.compile(r"^(\w+(?:, \w+)*): (.+)$", re.DOTALL)
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


def attribute_helps(settings: type) -> dict[str, str]:
    """Return the descriptions of attributes in the docstrings of a class and its bases, as helps of options.

    A help begins with a capital, unless its first word is a value of the option, or is marked as code.
    """
    hints = get_type_hints(settings)
    documents = [inspect.cleandoc(part.__doc__ or "") for part in reversed(settings.__mro__)]
    sections = [document.partition("\nAttributes:\n")[2].split("\n\n")[0] for document in documents]
    helps: dict[str, str] = {}
    for item in (item for section in sections for item in re.split(r"\n(?= {4}\w)", f"\n{section}")):
        if match := _ITEM.match(item.strip()):
            text = re.sub("[`*]", "", " ".join(match[2].split()))
            for name in match[1].split(", "):
                is_value = match[2].startswith("`") or re.split(r"\W", text)[0] in _values(hints.get(name))
                helps[name] = text if is_value else f"{text[:1].upper()}{text[1:]}"
    return helps | {own.name: own.metadata["help"] for own in fields(settings) if "help" in own.metadata}


def _values(hint: Any) -> set[Any]:
    """Return the values that a `Literal` has, within other types too."""
    parts = get_args(hint)
    return {*parts} if get_origin(hint) is Literal else {value for part in parts for value in _values(part)}


def _convert(value: Any, hint: Any) -> Any:
    """Return a value as one of a type; `_MISFIT` if it is none."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return next((part for part in parts if type(part) is type(value) and part == value), _MISFIT)
    if kind in (Union, UnionType):
        values = (_convert(value, part) for part in parts)
        return next((converted for converted in values if converted is not _MISFIT), _MISFIT)
    if kind is tuple and parts[1:] == (...,):
        listed = [value] if isinstance(value, str | Path) else value  # one stands for a list of one
        items = (
            [_convert(item, parts[0]) for item in listed] if isinstance(listed, list | tuple) else [_MISFIT]
        )
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
