"""Training by the name of a method, as the commands do: settings and names in, a model in the catalog out."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from kgkit.catalog.runs import recorded
from kgkit.errors import DamagedModel, UsageError
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.methods.settings import ChosenKB, Training
from kgkit.models.folder import text_vectors
from kgkit.models.kinds import Kind, find_method
from kgkit.training.job import TrainedModel, note_best_epoch, train_recorded
from kgkit.training.tasks import train_method
from kgkit.types import Progress

log = logging.getLogger(__name__)


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
    """Train a model, as `kgkit train METHOD` does.

    Linkers and taggers are no methods: the commands `kgkit train linker` and `kgkit train tagger` train them,
    and in Python `kgkit.training.linkers.train.train_linker` and `kgkit.training.tagging.train_tagger`.

    Args:
        method: `kbert`, `knowbert`, or another kind, of an installed package too, that has settings.
        name: name of the model.
        kbs: names of knowledge bases, or the name of one.
        vectors: vectors of their entities, as KB/NAME, for a method that reads some, as `knowbert`.
        home: home of the knowledge bases, in which the model is kept.
        device: torch device on which it is trained.
        progress: function that receives what is done, how much, and of how much.
        settings: fields of the method's settings, as `KBertTraining`; a file may stand for a list of one.

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
    kind = find_method(method)
    arguments = {"name": name, "kbs": kbs, "vectors": vectors, "home": home, "device": device, **settings}
    usual = {"kbs": (), "vectors": (), "home": None, "device": "auto"}
    changed = {key: value for key, value in arguments.items() if key not in usual or value != usual[key]}
    try:
        training = settings_of(kind)(**settings)
    except TypeError as error:  # an unknown setting, or one that is lacking
        raise UsageError(f"{method}: {error}") from None
    names, paths = ([value] if isinstance(value, str) else [*(value or ())] for value in (kbs, vectors))
    return train_model(
        home if isinstance(home, Home) else Home.find(home), name, kind, training, names, paths,
        device=device, command=call_of(method, changed), progress=progress,
    )  # fmt: skip


def call_of(method: str, arguments: Mapping[str, Any]) -> str:
    """Return the call of `kgkit.train` with these arguments, for a manifest, in the place of a command."""
    words = [repr(method), *(f"{name}={_as_literal(value)!r}" for name, value in arguments.items())]
    return f"kgkit.train({', '.join(words)})"


def _as_literal(value: Any) -> Any:
    """Return an argument as one would write it: paths as strings."""
    if isinstance(value, Home | Path):
        return str(value.path if isinstance(value, Home) else value)
    return [_as_literal(item) for item in value] if isinstance(value, list | tuple) else value


def settings_of(kind: Kind[Any]) -> type[Training]:
    """Return the class of the settings of a method.

    Raises:
        DamagedModel: if it cannot be loaded, or is no dataclass of `Training`.
        MissingExtra: if it needs a package that an extra of kgkit brings.
    """
    settings: object = kind.load(kind.settings)
    if not (isinstance(settings, type) and issubclass(settings, Training) and is_dataclass(settings)):
        raise DamagedModel(
            f"the kind {kind.name} has the settings {kind.settings}, which are no dataclass of Training"
        )
    try:
        get_type_hints(settings)
    except Exception as error:  # whatever stands in an annotation
        raise DamagedModel(
            f"the kind {kind.name} has the settings {kind.settings}, whose types cannot be read ({error}): "
            "import at run time what they name"
        ) from error
    return settings


def train_model(
    home: Home,
    name: str,
    kind: Kind[Any],
    training: Training,
    kbs: Sequence[str] = (),
    vectors: Sequence[str] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> TrainedModel:
    """Train the model that the settings are of, and keep the run in the catalog; see `train`."""
    if training.control and not training.CONTROL_READS_KBS:
        _warn_of_control(training, kbs, vectors)
        kbs, vectors = (), ()
    run = recorded(
        home, command=command, config=asdict(training), seeds=[training.seed], device=device,
        data=training.files,
    )  # fmt: skip
    with ExitStack() as stack:

        def train_chosen() -> Path:
            chosen = _choose_kbs(training, kbs, vectors, home, stack)
            return train_method(
                kind, home, name, training, chosen, device=device, command=command, progress=progress
            )

        return train_recorded(run, home, name, kind, train_chosen, note_best_epoch)


def _warn_of_control(training: Training, kbs: Sequence[str], vectors: Sequence[str]) -> None:
    """Log which of the names and settings of a control have no effect, if there are some."""
    names = [name for name, value in (("kb", kbs), ("vectors", vectors)) if value]
    options = {field.name: field.metadata.get("option", "") for field in fields(training)}
    if names := [*names, *training.without_effect]:
        listed = [options.get(name, "").strip(" /") or f"--{name.replace('_', '-')}" for name in names]
        verb = "has" if len(listed) == 1 else "have"
        log.warning("%s %s no effect with --control", ", ".join(listed), verb)


def _choose_kbs(
    training: Training, kbs: Sequence[str], vectors: Sequence[str], home: Home, stack: ExitStack
) -> list[ChosenKB]:
    """Open knowledge bases, each with the names of its vectors among *vectors*, as KB/NAME."""
    chosen = []
    takes_only = training.ONLY_KB and not training.control
    names: Sequence[str | None] = kbs or ([None] if takes_only else [])  # None: the only one
    for name in names:
        kb = stack.enter_context(open_kb(name, home.path))
        own = tuple(path.rpartition("/")[2] for path in vectors if path.rpartition("/")[0] in (kb.name, name))
        chosen.append(ChosenKB(kb, (own or (text_vectors(kb, None),)) if training.VECTORS else ()))
    own_names = {kb.name for kb, _ in chosen} | set(kbs)
    if strange := [path for path in vectors if path.rpartition("/")[0] not in own_names]:
        raise UsageError(f"--vectors {strange[0]}: write KB/NAME, with one of the knowledge bases of --kb")
    return chosen
