"""Commands that train methods, ours and those of other packages, made from their settings.

Each field of the dataclass is an option: its name, its type and its default are the field's, its help is what
the section "Attributes" of the docstring says, and its metadata say what else is not as usual:

    option    what the option is called, where it is not the field's name
    metavar   what stands for its value in the help
    parse     function from the text of an option to a value, of a type that no option has otherwise
    replaces  another setting, whose option is left out where this one is given

What all methods have in common (`TaskTraining`) has the options of `kgkit.commands.train.methods`; its help
is the method's own, where that has one.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import typer

from kgkit.commands.options import DeviceOption, HomeOption, JSONOption, NameOption, QuietOption, SeedOption
from kgkit.commands.train.methods import (
    Bf16Option,
    ControlOption,
    DevGoldOption,
    DevOption,
    EncoderOption,
    EpochsOption,
    NewRateOption,
    RateOption,
    SizeOption,
    StepsOption,
    TextsOption,
    run_training,
)
from kgkit.errors import DamagedModel, UsageError

if TYPE_CHECKING:
    from kgkit.methods.settings import TaskTraining

GoldOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--gold", metavar="FILE", help="The gold of each --data, in their order, where it has none."
    ),
]
KBsOption = Annotated[
    list[str] | None,
    typer.Option("--kb", metavar="KB", help="Knowledge base; repeat it for more, in their order."),
]
VectorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--vectors", metavar="KB/NAME", help="Vectors of its entities; repeat it for more; else text."
    ),
]
DataOption = Annotated[
    list[Path],
    typer.Option("--data", metavar="FILE", help="Examples, or a folder of them. Repeat it for more."),
]

_NONE: Final = "none"
_DATA_OPTIONS: Final[Mapping[str, Any]] = {
    "data": DataOption, "name": NameOption, "gold": GoldOption, "dev": DevOption, "dev_gold": DevGoldOption,
    "kb": KBsOption, "vectors": VectorsOption, "encoder": EncoderOption, "control": ControlOption,
}  # fmt: skip
_TRAINING_OPTIONS: Final[Mapping[str, Any]] = {
    "epochs": EpochsOption, "steps": StepsOption, "batch": TextsOption, "size": SizeOption, "lr": RateOption,
    "lr_new": NewRateOption, "seed": SeedOption, "bf16": Bf16Option, "device": DeviceOption,
    "home": HomeOption, "as_json": JSONOption, "quiet": QuietOption,
}  # fmt: skip
_OF_THE_COMMAND: Final[Mapping[str, Any]] = {
    "name": inspect.Parameter.empty, "kb": None, "vectors": None, "device": "auto", "home": None,
    "as_json": False, "quiet": False,
}  # fmt: skip
"""Defaults of the options that are no settings."""

_OPTIONAL_DATA: Final = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Examples, or a folder of them. Repeat it for more; none if nothing is trained (--epochs 0).",
    ),
]
_OF_ALL_COMMANDS: Final = frozenset(["help", "json"])
"""Further options that no setting can have."""

_METAVARS: Final[Mapping[object, str]] = {int: "N", float: "X", str: "TEXT", Path: "FILE"}
_ITEM: Final = re.compile(r"^(\w+(?:, \w+)*): (.+)$", re.DOTALL)


def method_command(method: str) -> Callable[..., None]:
    """Return the command that trains a method, with an option for each of its settings.

    Raises:
        UnknownName: if no installed package has a method of that name.
        DamagedModel: if its package is damaged, or a setting is of a type that no option has.
        MissingExtra: if it needs a package that an extra of kgkit brings.
    """
    from kgkit.models.kinds import find_method
    from kgkit.training.methods import data_files, settings_of

    kind = find_method(method)
    settings = settings_of(kind)
    parameters = list(_parameters(method, settings))
    tuples = {name for name, hint in get_type_hints(settings).items() if get_origin(hint) is tuple}

    def command(**values: Any) -> None:
        own = {name: values.pop(name) for name in [*_OF_THE_COMMAND] if name in values}
        kbs = own["kb"] or ()
        if settings.ONLY_KB and _NONE in kbs:
            if len(kbs) > 1:
                raise UsageError(f"--kb {_NONE} is a control, and has no other knowledge base")
            values["control"], kbs = True, ()
        for name, value in values.items():
            if name in tuples:
                values[name] = tuple(value or ())
        for field in fields(settings):
            other = field.metadata.get("replaces")
            if other and values[field.name] and values[other] != getattr(settings, other):
                option = f"{field.metadata.get('option', f'--{field.name}')} {values[field.name]}"
                raise UsageError(f"{option} has an {other}: leave out --{other}")
        values["data"], values["dev"] = data_files(values["data"], values["dev"])
        values["bf16"] = "auto" if values["bf16"] is None else values["bf16"]
        run_training(
            method, own["name"], settings(**values), kbs, own.get("vectors") or (),
            device=own["device"], home=own["home"], as_json=own["as_json"], quiet=own["quiet"],
        )  # fmt: skip

    command.__doc__ = (
        f"Train {kind.title}{f': {kind.about}' if kind.about else ' for a task'}.\n\n"
        "A training that was stopped goes on where it was, if nothing has been changed since."
    )
    setattr(command, "__signature__", inspect.Signature(parameters))  # noqa: B010  # what Typer reads
    return command


def _parameters(method: str, settings: "type[TaskTraining]") -> Iterator[inspect.Parameter]:
    """Yield the options of a method: the common ones around its own."""
    hints, helps = get_type_hints(settings), attribute_helps(settings)
    if settings.ONLY_KB:
        helps.setdefault("kb", "Knowledge base; repeat it for more; else the only one; none: a control.")
    by_name = {field.name: field for field in fields(settings)}
    untrained = settings.LEAST["epochs"] == 0  # a model is published as it begins, without data
    tasks = Annotated[str, typer.Option("--task", metavar="TASK", help=f"{', '.join(settings.TASKS)}.")]

    def parameter(name: str, annotation: Any) -> inspect.Parameter:
        kind, info = get_args(annotation)
        annotation = Annotated[kind, _with(info, helps.get(name), settings.LEAST.get(name))]
        default = _OF_THE_COMMAND[name] if name in _OF_THE_COMMAND else _default(by_name[name])
        default = {"auto": None}.get(default, default) if name == "bf16" else default
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    if taken := [name for name in by_name if name in _OF_THE_COMMAND or name in _OF_ALL_COMMANDS]:
        raise DamagedModel(f"the method {method} has a setting {taken[0]}: all commands have that option")
    yield parameter("task", tasks)
    for name, annotation in _DATA_OPTIONS.items():
        if name != "vectors" or settings.VECTORS:
            option = parameter(name, _OPTIONAL_DATA if name == "data" and untrained else annotation)
            yield option.replace(default=None) if name == "data" and untrained else option
    for name, field in by_name.items():
        if name not in {"task", "decay", *_DATA_OPTIONS, *_TRAINING_OPTIONS}:
            annotation = _annotation(field, hints[name], settings.LEAST.get(name))
            if annotation is None:
                raise DamagedModel(
                    f"the method {method} has a setting {name} of the type {hints[name]}: an option is a "
                    "str, int, float, bool, Path, Literal, or a tuple of them"
                )
            yield parameter(name, annotation)
    for name, annotation in _TRAINING_OPTIONS.items():
        yield parameter(name, annotation)


def _default(field: "Field[Any]") -> Any:
    """Return the default of an option; a list where a setting is a tuple."""
    default = field.default
    if default is MISSING and field.default_factory is not MISSING:
        default = field.default_factory()
    if default is MISSING:
        return inspect.Parameter.empty
    return (list(default) or None) if isinstance(default, tuple) else default


def _annotation(field: "Field[Any]", hint: Any, least: int | None) -> Any:
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
        min=least if item is int else None,
        parser=parse,
    )
    kind: Any = GenericAlias(list, (item,)) if is_tuple else item
    return Annotated[kind | None, info] if optional or is_tuple else Annotated[kind, info]


def _with(info: Any, text: str | None, least: int | None) -> Any:
    """Return an option with the help and the least value of a method's own setting, where it has them."""
    info = copy(info)
    info.help = text or info.help
    if info.min is not None and least is not None:
        info.min = least
    return info


def attribute_helps(settings: type) -> dict[str, str]:
    """Return what the section "Attributes" of a docstring says of each attribute, as helps of options.

    A help begins with a capital, unless its first word is a value of the option, or is marked as code.
    """
    hints = get_type_hints(settings)
    _, _, section = (inspect.getdoc(settings) or "").partition("\nAttributes:\n")
    helps: dict[str, str] = {}
    for item in re.split(r"\n(?= {4}\w)", f"\n{section.split(chr(10) * 2)[0]}"):
        if match := _ITEM.match(item.strip()):
            text = re.sub("[`*]", "", " ".join(match[2].split()))
            for name in match[1].split(", "):
                is_value = match[2].startswith("`") or re.split(r"\W", text)[0] in _values(hints.get(name))
                helps[name] = text if is_value else f"{text[:1].upper()}{text[1:]}"
    return helps


def _values(hint: Any) -> set[Any]:
    """Return the values that a `Literal` has, within other types too."""
    parts = get_args(hint)
    return {*parts} if get_origin(hint) is Literal else {value for part in parts for value in _values(part)}
