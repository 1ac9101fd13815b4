"""Commands that train, made from settings: those of methods, ours and of other packages, and of what is none.

See `kgkit.commands.setting_options` for how a field of the settings is an option.

What all methods have in common (`TaskTraining`) has the options of `kgkit.commands.train.methods`; its help
is the method's own, where that has one.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from kgkit.commands.options import DeviceOption, JSONOption, NameOption, SeedOption
from kgkit.commands.output import plain, typed, write_line
from kgkit.commands.setting_options import (
    check_replaced,
    default_of,
    option_of,
    option_parameter,
    tuple_values,
    with_help,
    with_options,
)
from kgkit.commands.train.methods import (
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
    TrainingOptions,
    record_training,
    run_training,
    write_results,
)
from kgkit.errors import DamagedModel, UsageError
from kgkit.setting_types import attribute_helps

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.methods.settings import TaskTraining
    from kgkit.models.kinds import Kind
    from kgkit.models.manifest import ManifestType
    from kgkit.types import Progress

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
    "lr_new": NewRateOption, "seed": SeedOption, "device": DeviceOption, "as_json": JSONOption,
}  # fmt: skip
_OF_THE_COMMAND: Final[Mapping[str, Any]] = {
    "name": inspect.Parameter.empty, "kb": None, "vectors": None, "device": "auto",
    "as_json": False,
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
_OF_ALL_COMMANDS: Final = frozenset(["help", "home", "json", "quiet"])
"""Further options that no setting can have."""


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

    def command(**values: Any) -> None:
        own = {name: values.pop(name) for name in [*_OF_THE_COMMAND] if name in values}
        kbs = own["kb"] or ()
        if settings.ONLY_KB and _NONE in kbs:
            if len(kbs) > 1:
                raise UsageError(f"--kb {_NONE} is a control, and has no other knowledge base")
            values["control"], kbs = True, ()
        values = tuple_values(settings, values)
        check_replaced(settings, values)
        values["data"], values["dev"] = data_files(values["data"], values["dev"])
        options = TrainingOptions(own["as_json"], own["device"])
        run_training(method, own["name"], settings(**values), kbs, own.get("vectors") or (), options)

    about = f"Train {kind.title}{f': {kind.about}' if kind.about else ' for a task'}."
    return with_options(command, about, _parameters(method, settings))


def settings_command(
    kind: "Kind[ManifestType]",
    settings: type,
    train: Callable[..., Path],
    describe: "Callable[[ManifestType], str]",
    about: str,
    arguments: Mapping[str, Any],
) -> Callable[..., None]:
    """Return the command that trains what is no method, with an option for each of its settings.

    Args:
        kind: kind of the model.
        settings: dataclass of the settings, with the property `files` and the class variable `LEAST`.
        train: function from a home, the model's name and settings to the folder of its files; it takes
            `command` and `progress` too.
        describe: function from a manifest to a line about the model.
        about: first sentence of the help.
        arguments: options of further arguments of *train*, whose defaults they have.
    """

    def command(*, name: str, as_json: bool = False, **values: Any) -> None:
        from kgkit.training.job import note_best_epoch

        others = {argument: values.pop(argument) for argument in arguments}
        training = settings(**tuple_values(settings, values))

        def train_in(where: "Home", tell: "Progress") -> Path:
            return train(where, name, training, command=typed(), progress=tell, **others)

        manifest = record_training(
            kind, name, asdict(training), training.files, train_in, note_best_epoch,
            TrainingOptions(as_json, others.get("device", "cpu")),
            seeds=[training.seed] if hasattr(training, "seed") else [],
        )  # fmt: skip
        if manifest is not None:
            write_line(plain(f"{name}: {describe(manifest)}"))
            write_results(manifest.results)

    return with_options(command, about, _options(settings, train, arguments))


def _options(
    settings: Any, train: Callable[..., Path], arguments: Mapping[str, Any]
) -> Iterator[inspect.Parameter]:
    """Yield the options of what is no method: its settings, further arguments of *train*, and the output."""
    hints, helps = get_type_hints(settings), attribute_helps(settings)
    for field in fields(settings):
        least = settings.LEAST.get(field.name)
        option = with_help(option_of(field, hints[field.name], least), helps[field.name], least)
        yield option_parameter(field.name, option, default_of(field))
        if field.name == "data":
            yield option_parameter("name", NameOption, inspect.Parameter.empty)
    defaults = inspect.signature(train).parameters
    for name, option in arguments.items():
        yield option_parameter(name, option, defaults[name].default)
    yield option_parameter("as_json", JSONOption, False)


def _parameters(method: str, settings: "type[TaskTraining]") -> Iterator[inspect.Parameter]:
    """Yield the options of a method: the common ones around its own."""
    hints, helps = get_type_hints(settings), attribute_helps(settings)
    repeated = "; repeat it for more" if settings.SEVERAL_KBS else ""
    if settings.ONLY_KB:
        default = "By default $KGKIT_KB, what `kgkit kb default` set, or the only one"
        helps.setdefault("kb", f"Knowledge base{repeated}. {default}; none: --control.")
    if not settings.SEVERAL_KBS:
        helps.setdefault("vectors", "Vectors of its entities, of one kind; else text.")
    by_name = {field.name: field for field in fields(settings)}
    untrained = settings.LEAST["epochs"] == 0  # a model is published as it begins, without data
    listed = ", ".join(task for task in settings.TASKS if task not in settings.REFUSED)
    tasks = Annotated[str, typer.Option("--task", metavar="TASK", help=f"{listed}.")]

    def parameter(name: str, annotation: Any) -> inspect.Parameter:
        annotation = with_help(annotation, helps.get(name), settings.LEAST.get(name))
        default = _OF_THE_COMMAND[name] if name in _OF_THE_COMMAND else default_of(by_name[name])
        return option_parameter(name, annotation, default)

    if taken := [name for name in by_name if name in _OF_THE_COMMAND or name in _OF_ALL_COMMANDS]:
        raise DamagedModel(f"the method {method} has a setting {taken[0]}: all commands have that option")
    yield parameter("task", tasks)
    for name, annotation in _DATA_OPTIONS.items():
        if name != "vectors" or settings.VECTORS:
            option = parameter(name, _OPTIONAL_DATA if name == "data" and untrained else annotation)
            yield option.replace(default=None) if name == "data" and untrained else option
    for name, field in by_name.items():
        if name not in {"task", "decay", "bf16", *_DATA_OPTIONS, *_TRAINING_OPTIONS}:
            annotation = option_of(field, hints[name], settings.LEAST.get(name))
            if annotation is None:
                raise DamagedModel(
                    f"the method {method} has a setting {name} of the type {hints[name]}: an option is a "
                    "str, int, float, bool, Path, Literal, or a tuple of them"
                )
            yield parameter(name, annotation)
    for name, annotation in _TRAINING_OPTIONS.items():
        yield parameter(name, annotation)
