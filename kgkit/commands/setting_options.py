"""Options made from settings.

Each field of the dataclass is an option: its name, its type and its default are the field's, its help is what
the section "Attributes" of the docstring says, and its metadata say what else is not as usual:

    option    what the option is called, where it is not the field's name; None: there is none
    help      help of the option, where it turns off what the attribute is about
    least     least value of a number
    most      largest value of a number
    metavar   what stands for its value in the help
    parse     function from the text of an option to a value, of a type that no option has otherwise
    replaces  another setting, whose option is left out where this one is given

The least value of a number of a training is that of the class variable `LEAST`, by the name of the field.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import typer

from kgkit.commands.completion import complete_linker
from kgkit.errors import UsageError
from kgkit.setting_types import attribute_helps

_METAVARS: Final[Mapping[object, str]] = {int: "N", float: "X", str: "TEXT", Path: "FILE"}
_COMPLETIONS: Final = {"MODEL": complete_linker}


def option_parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return an option of a command; *annotation* is the type with a `typer.Option`."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def takes_settings(settings: type, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of settings, in the place of its `**values`.

    Args:
        settings: dataclass of the settings.
        names: fields that are options; unless given, all.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        *parameters, _ = inspect.signature(command).parameters.values()
        parameters += setting_parameters(settings, names)
        setattr(command, "__signature__", inspect.Signature(parameters))  # noqa: B010
        return command

    return decorate


def setting_parameters(settings: Any, names: Collection[str] = ()) -> Iterator[inspect.Parameter]:
    """Yield the options of settings, or of the fields that are named."""
    hints, helps = get_type_hints(settings), attribute_helps(settings)
    for field in fields(settings):
        if field.name in names if names else field.metadata.get("option", "") is not None:
            least = field.metadata.get("least")
            option = with_help(option_of(field, hints[field.name], least), helps[field.name], least)
            yield option_parameter(field.name, option, default_of(field))


def tuple_values(settings: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options as those of settings: of each that is a tuple a list, or None, is one."""
    hints = get_type_hints(settings)
    return {
        name: tuple(value or ()) if get_origin(hints.get(name)) is tuple else value
        for name, value in values.items()
    }


def check_replaced(settings: Any, values: Mapping[str, Any]) -> None:
    """Refuse the option of a setting that another option replaces.

    Raises:
        UsageError: if both are given.
    """
    for field in fields(settings):
        other = field.metadata.get("replaces")
        if other and values[field.name] and values[other] != getattr(settings, other):
            option = f"{field.metadata.get('option', f'--{field.name}')} {values[field.name]}"
            raise UsageError(f"{option} has an {other}: leave out --{other}")


def default_of(field: "Field[Any]") -> Any:
    """Return the default of an option; a list where a setting is a tuple."""
    default = field.default
    if default is MISSING and field.default_factory is not MISSING:
        default = field.default_factory()
    if default is MISSING:
        return inspect.Parameter.empty
    return (list(default) or None) if isinstance(default, tuple) else default


def option_of(field: "Field[Any]", hint: Any, least: float | None) -> Any:
    """Return the type and the option of a setting; None if no option has such a type."""
    option = field.metadata.get("option", f"--{field.name.replace('_', '-')}")
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        inner = [part for part in get_args(hint) if part is not NoneType]
        hint = inner[0] if len(inner) == 1 else hint
    if hint is bool:
        both = "option" not in field.metadata and (optional or field.default is not False)
        option = f"{option}/--no-{option[2:]}" if both else option
        flag = typer.Option(option, metavar=None if both else "", show_default=both and not optional)
        return Annotated[bool | None, flag] if optional else Annotated[bool, flag]
    is_tuple = get_origin(hint) is tuple and get_args(hint)[1:] == (...,)
    item, parse = get_args(hint)[0] if is_tuple else hint, field.metadata.get("parse")
    if item not in _METAVARS and get_origin(item) is not Literal and parse is None:
        return None
    info = typer.Option(
        option,
        metavar=field.metadata.get("metavar", _METAVARS.get(item)),
        autocompletion=_COMPLETIONS.get(field.metadata.get("metavar", "")),
        min=least if item in (int, float) else None,
        max=field.metadata.get("most"),
        parser=parse,
    )
    kind: Any = GenericAlias(list, (item,)) if is_tuple else item
    return Annotated[kind | None, info] if optional or is_tuple else Annotated[kind, info]


def with_help(annotation: Any, text: str | None, least: float | None) -> Any:
    """Return a type and its option with the help and the least value of a setting, where it has them."""
    value_type, info = get_args(annotation)
    info = copy(info)
    info.help = text or info.help
    if info.min is not None and least is not None:
        info.min = least
    return Annotated[value_type, info]
