"""The command that trains a method, ours or of another package, made from its settings.

See `kgkit.commands.setting_options` for how a field of the settings is an option.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from kgkit.commands.options import DeviceOption, JSONOption, NameOption
from kgkit.commands.setting_options import (
    check_replaced,
    default_of,
    option_of,
    option_parameter,
    tuple_values,
    with_help,
)
from kgkit.commands.train.methods import TrainingOptions, run_training
from kgkit.errors import DamagedModel
from kgkit.setting_types import attribute_helps

if TYPE_CHECKING:
    from kgkit.methods.settings import Training

KBsOption = Annotated[
    list[str] | None,
    typer.Option("--kb", metavar="KB"),
]
VectorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--vectors", metavar="KB/NAME", help="Vectors of its entities; repeat it for more; else text."
    ),
]

_EMPTY: Final = inspect.Parameter.empty
_OF_THE_COMMAND: Final = {
    "name": (NameOption, _EMPTY), "kb": (KBsOption, None), "vectors": (VectorsOption, None),
    "device": (DeviceOption, "auto"), "as_json": (JSONOption, False),
}  # fmt: skip
"""Options that are no settings, with their defaults."""

_FIRST: Final = ("task", "data", "name", "dev", "kb", "vectors", "encoder", "control")
_LAST: Final = ("epochs", "steps", "batch", "size", "lr", "lr_new", "seed", "device", "as_json")
_TAKEN: Final = frozenset([*_OF_THE_COMMAND, "help", "home", "json", "quiet"])
"""Options that no setting can have."""


def method_command(method: str) -> Callable[..., None]:
    """Return the command that trains a method, with an option for each of its settings.

    Raises:
        UnknownName: if no installed package has a method of that name.
        DamagedModel: if its package is damaged, or a setting is of a type that no option has.
        MissingExtra: if it needs a package that an extra of kgkit brings.
    """
    from kgkit.models.kinds import find_method
    from kgkit.training.methods import settings_of

    kind = find_method(method)
    settings = settings_of(kind)

    def command(**values: Any) -> None:
        own = {name: values.pop(name) for name in _OF_THE_COMMAND if name in values}
        values = tuple_values(settings, values)
        check_replaced(settings, values)
        options = TrainingOptions(own["as_json"], own["device"])
        run_training(
            kind, own["name"], settings(**values), own["kb"] or (), own.get("vectors") or (), options
        )

    command.__doc__ = (
        f"Train {kind.title}{f': {kind.about}' if kind.about else ' for a task'}.\n\n"
        "A training that was stopped goes on where it was, if nothing has been changed since."
    )
    setattr(command, "__signature__", inspect.Signature([*_parameters(method, settings)]))  # noqa: B010
    return command


def _parameters(method: str, settings: "type[Training]") -> Iterator[inspect.Parameter]:
    """Yield the options of a method: what is common to trainings around its own settings."""
    hints, helps = get_type_hints(settings), attribute_helps(settings)
    repeated = "; repeat it for more, in their order" if settings.SEVERAL_KBS else ""
    unnamed = (
        " By default $KGKIT_KB, what `kgkit kb default` set, or the only one." if settings.ONLY_KB else ""
    )
    helps["kb"] = f"Knowledge base{repeated}.{unnamed}"
    if not settings.SEVERAL_KBS:
        helps["vectors"] = "Vectors of its entities, of one kind; else text."
    if tasks := getattr(settings, "TASKS", ()):
        refused = getattr(settings, "REFUSED", ())
        helps["task"] = f"{', '.join(task for task in tasks if task not in refused)}."
    own = {field.name: field for field in fields(settings) if field.metadata.get("option", "") is not None}
    if taken := sorted(own.keys() & _TAKEN):
        raise DamagedModel(f"the method {method} has a setting {taken[0]}: all commands have that option")
    of_command = [name for name in _OF_THE_COMMAND if name != "vectors" or settings.VECTORS]
    every = [*own, *of_command]
    middle = [name for name in own if name not in (*_FIRST, *_LAST)]
    for name in (name for name in (*_FIRST, *middle, *_LAST) if name in every):
        least = settings.LEAST.get(name)
        if name in own:
            option, default = option_of(own[name], hints[name], least), default_of(own[name])
        else:
            option, default = _OF_THE_COMMAND[name]
        if option is None:
            raise DamagedModel(
                f"the method {method} has a setting {name} of the type {hints[name]}: an option is a str, "
                "int, float, bool, Path, Literal, or a tuple of them"
            )
        yield option_parameter(name, with_help(option, helps.get(name), least), default)
