"""Training by the name of a method, as the commands do: settings and names in, a model in the catalog out."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, get_type_hints

from kgkit.catalog.runs import recorded
from kgkit.errors import DamagedModel, NotThere, UnknownName, UsageError
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.methods.settings import ChosenKB, TaskTraining
from kgkit.models.folder import text_vectors
from kgkit.models.kinds import Kind, find_method, method_names
from kgkit.training.job import TrainedModel, note_best_epoch, train_recorded
from kgkit.training.tasks import train_method
from kgkit.types import Progress

log = logging.getLogger(__name__)

_SHOWN: Final = 5  # files, in an error
_FUNCTIONS: Final = {
    "linker": "kgkit.training.linkers.train.train_linker",
    "tagger": "kgkit.training.tagging.train_tagger",
}
"""What trains the models that `kgkit train` has commands of their own for."""


def train(
    method: str,
    *,
    name: str,
    kbs: Sequence[str] | str = (),
    vectors: Sequence[str] | str = (),
    home: Home | Path | str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> TrainedModel:
    """Train a model for a task, as `kgkit train METHOD` does.

    Linkers and taggers are no methods: the commands `kgkit train linker` and `kgkit train tagger` train them,
    and in Python `kgkit.training.linkers.train.train_linker` and `kgkit.training.tagging.train_tagger`.

    Args:
        method: `kbert`, `knowbert`, or a kind of an installed package that is trained for tasks.
        name: name of the model.
        kbs: names of knowledge bases, or the name of one.
        vectors: vectors of their entities, as KB/NAME, for a method that reads some, as `knowbert`.
        home: home of the knowledge bases, in which the model is kept.
        device: torch device on which it is trained.
        progress: function that receives what is done, how much, and of how much.
        settings: fields of the method's settings, as `KBertTraining`; a file may stand for a list of one, and
            None for no files.

    Raises:
        UnknownName: if there is no such method.
        DamagedModel: if the package of the method is damaged.
        UsageError: if there is no such setting, one is of another type, or as the method's training does.

    Examples:
        >>> model = kgkit.train(
        ...     "kbert", name="opinions", task="classification", data="train.tsv", kbs=["hownet"]
        ... )
        >>> model.manifest.results["accuracy"]
        0.94
    """
    if method in _FUNCTIONS:
        hint = f"{method}s are trained by the command `kgkit train {method}`, or by {_FUNCTIONS[method]}"
        raise UnknownName("method", method, method_names(), hint=hint)
    kind = find_method(method)
    settings_class = settings_of(kind)
    arguments = {"name": name, "kbs": kbs, "vectors": vectors, "home": home, "device": device, **settings}
    usual = {"kbs": (), "vectors": (), "home": None, "device": "auto"}
    changed = {key: value for key, value in arguments.items() if key not in usual or value != usual[key]}
    check_names(method, settings_class, settings)
    for key in file_fields(settings_class) & settings.keys():
        settings[key] = tuple(map(Path, _listed(settings[key], key)))
    if isinstance(settings.get("encoder"), Path):
        settings["encoder"] = str(settings["encoder"])
    settings["data"], settings["dev"] = data_files(settings.get("data", ()), settings.get("dev", ()))
    training = settings_class(**settings)
    where = home if isinstance(home, Home) else Home.find(home)
    names, paths = (
        [str(item) for item in _listed(value, key)] for key, value in (("kbs", kbs), ("vectors", vectors))
    )
    return train_model(
        where, name, kind, training, names, paths, device=device, command=call_of(method, changed),
        progress=progress,
    )  # fmt: skip


def _listed(value: object, name: str) -> list[str | Path]:
    """Return the strings and paths of an argument: one may stand for a list of one, and None for none.

    Raises:
        UsageError: if it is something else.
    """
    if value is None:
        return []
    if isinstance(value, str | Path):
        return [value]
    items: list[object] = [*value] if isinstance(value, Iterable) else [value]
    paths = [item for item in items if isinstance(item, str | Path)]
    if len(paths) < len(items):
        raise UsageError(f"{name} is {value!r}: expected strings or paths")
    return paths


def check_names(method: str, settings_class: type[TaskTraining], settings: Mapping[str, Any]) -> None:
    """Make sure that the settings of a training are those that a method has, and that none is lacking.

    Raises:
        UsageError: if the method has no setting of a name, or needs one that is not there.
    """
    needed = {
        field.name: field.default is MISSING and field.default_factory is MISSING
        for field in fields(settings_class)
    }
    names = [*needed, "kbs", "vectors", "home", "device", "progress"]
    for name in settings:
        if name not in needed:
            raise UnknownName(f"setting of {method}", name, names)
    for name, is_needed in needed.items():
        if is_needed and name not in ("data", *settings):  # of data, the settings themselves say it
            raise UsageError(f"{method} needs the setting {name}, as in kgkit.train({method!r}, {name}=…)")


def call_of(method: str, arguments: Mapping[str, Any]) -> str:
    """Return the call of `kgkit.train` with these arguments, for a manifest, in the place of a command."""
    words = [repr(method), *(f"{name}={_as_literal(value)!r}" for name, value in arguments.items())]
    return f"kgkit.train({', '.join(words)})"


def _as_literal(value: Any) -> Any:
    """Return an argument as one would write it: paths as strings."""
    if isinstance(value, Home | Path):
        return str(value.path if isinstance(value, Home) else value)
    if isinstance(value, list | tuple):
        return [_as_literal(item) for item in value]
    return value


def settings_of(kind: Kind[Any]) -> type[TaskTraining]:
    """Return the class of the settings of a method.

    Raises:
        DamagedModel: if it cannot be loaded, or is no `TaskTraining` with the tasks of the method.
        MissingExtra: if it needs a package that an extra of kgkit brings.
    """
    owner = f"the kind {kind.name}"
    settings: object = kind.load(kind.settings)
    if not (isinstance(settings, type) and issubclass(settings, TaskTraining) and is_dataclass(settings)):
        raise DamagedModel(
            f"{owner} has the settings {kind.settings}, which are no dataclass of TaskTraining"
        )
    if not hasattr(settings, "TASKS"):
        raise DamagedModel(f"{owner} has the settings {kind.settings}, which do not say its tasks (TASKS)")
    try:
        get_type_hints(settings)
    except Exception as error:  # whatever stands in an annotation
        raise DamagedModel(
            f"{owner} has the settings {kind.settings}, whose types cannot be read ({error}): import at run "
            "time what they name"
        ) from error
    return settings


def file_fields(settings: type[TaskTraining]) -> set[str]:
    """Return the names of the settings that are lists of files."""
    return {name for name, hint in get_type_hints(settings).items() if hint == tuple[Path, ...]}


def train_model(
    home: Home,
    name: str,
    kind: Kind[Any],
    training: TaskTraining,
    kbs: Sequence[str] = (),
    vectors: Sequence[str] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> TrainedModel:
    """Train the model that the settings are of, and keep the run in the catalog; see `train`."""
    if training.control:
        _warn_of_control(training, kbs, vectors)
    run = recorded(
        home, command=command, config=asdict(training), seeds=[training.seed], device=device,
        data=training.files,
    )  # fmt: skip
    with ExitStack() as stack:

        def train_chosen() -> Path:
            chosen = [] if training.control else _choose_kbs(training, kbs, vectors, home, stack)
            return train_method(
                kind, home, name, training, chosen, device=device, command=command, progress=progress
            )

        return train_recorded(run, home, name, kind, train_chosen, note_best_epoch)


def _warn_of_control(training: TaskTraining, kbs: Sequence[str], vectors: Sequence[str]) -> None:
    """Log which of the names and settings of a control have no effect, if there are some."""
    names = [name for name, value in (("kb", kbs), ("vectors", vectors)) if value]
    options = {field.name: field.metadata.get("option", "") for field in fields(training)}
    if names := [*names, *training.without_effect]:
        listed = [options.get(name, "").strip(" /") or f"--{name.replace('_', '-')}" for name in names]
        verb = "has" if len(listed) == 1 else "have"
        log.warning("%s %s no effect with --control", ", ".join(listed), verb)


def data_files(data: Iterable[Path], dev: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files to learn from, and those that choose the epoch; of a folder its train.* and dev.*.

    Raises:
        NotThere: if a folder has no train.*.
        UsageError: if it has several, or several dev.*.
    """
    learn, held_out = [], [*dev]
    own_dev = bool(held_out)
    for path in data:
        if not path.is_dir():
            learn.append(path)
            continue
        parts = {"data": sorted(path.glob("train.*")), "dev": [] if own_dev else sorted(path.glob("dev.*"))}
        for option, paths in parts.items():
            if len(paths) > 1:
                names = ", ".join(file.name for file in paths[:_SHOWN])
                raise UsageError(f"{path} has {names}: name the file with --{option}")
        if not parts["data"]:
            files = sorted(file.name for file in path.iterdir())
            listed = ", ".join([*files[:_SHOWN], *(["…"] if len(files) > _SHOWN else [])]) or "is empty"
            raise NotThere(f"no train.* in {path} ({listed}): name the file to learn from with --data")
        learn += parts["data"]
        held_out += parts["dev"]
    return tuple(learn), tuple(held_out)


def _choose_kbs(
    training: TaskTraining, kbs: Sequence[str], vectors: Sequence[str], home: Home, stack: ExitStack
) -> list[ChosenKB]:
    """Open knowledge bases, each with the names of its vectors among *vectors*, as KB/NAME."""
    chosen = []
    names: Sequence[str | None] = kbs or ([None] if training.ONLY_KB else [])  # None: the only one
    for name in names:
        kb = stack.enter_context(open_kb(name, home.path))
        own = tuple(path.rpartition("/")[2] for path in vectors if path.rpartition("/")[0] in (kb.name, name))
        chosen.append(ChosenKB(kb, (own or (text_vectors(kb, None),)) if training.VECTORS else ()))
    own_names = {kb.name for kb, _ in chosen} | set(kbs)
    if strange := [path for path in vectors if path.rpartition("/")[0] not in own_names]:
        raise UsageError(f"--vectors {strange[0]}: write KB/NAME, with one of the knowledge bases of --kb")
    return chosen
