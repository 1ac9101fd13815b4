"""Training by the name of a method, as the commands do: settings and names in, a model in the catalog out."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from kgkit.errors import NotThere, UnknownName, UsageError
from kgkit.home import Home
from kgkit.kb import open_kb
from kgkit.methods.kbert_settings import KBertTraining
from kgkit.methods.knowbert_settings import ChosenKB, KnowBertTraining
from kgkit.methods.settings import TaskTraining
from kgkit.models.folder import text_vectors
from kgkit.models.kinds import KBERT, KNOWBERT, Kind
from kgkit.models.manifest import ModelManifest
from kgkit.models.publishing import read_trained
from kgkit.models.registering import catalogue
from kgkit.training.knowbert.train import train_knowbert
from kgkit.training.runs import recorded
from kgkit.training.tasks import train_kbert
from kgkit.types import Progress

METHODS: Final[dict[str, type[TaskTraining]]] = {"kbert": KBertTraining, "knowbert": KnowBertTraining}
"""The settings of each method."""

_PATHS: Final = ("data", "gold", "dev", "dev_gold", "without")
_SHOWN: Final = 5  # files, in an error


class TrainedModel(NamedTuple):
    """A model that was trained.

    Attributes:
        folder: folder of its files; it goes when the name is trained again.
        manifest: its manifest.
    """

    folder: Path
    manifest: ModelManifest


def train(
    method: str,
    *,
    name: str,
    kbs: Sequence[str] = (),
    vectors: Sequence[str] = (),
    home: Home | Path | str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> TrainedModel:
    """Train a model, as `kgkit train METHOD` does.

    Args:
        method: `kbert` or `knowbert`.
        name: name of the model.
        kbs: names of knowledge bases.
        vectors: of `knowbert`: vectors of their entities, as KB/NAME.
        home: home of the knowledge bases, in which the model is kept.
        device: torch device on which it is trained.
        progress: function that receives what is done, how much, and of how much.
        settings: fields of `KBertTraining`, or of `KnowBertTraining`; a file may stand for a list of one.

    Raises:
        UnknownName: if there is no such method.
        UsageError: if there is no such setting, or as the method's training does.

    Example:
        >>> model = kgkit.train(
        ...     "kbert", name="opinions", task="classification", data="train.tsv", kbs=["hownet"]
        ... )
        >>> model.manifest.results["accuracy"]
        0.94
    """
    if method not in METHODS:
        raise UnknownName("method", method, tuple(METHODS))
    for key in _PATHS:
        if key in settings:
            value = settings[key]
            files = [value] if isinstance(value, str | Path) else value
            settings[key] = tuple(Path(path) for path in files)
    settings["data"], settings["dev"] = data_files(settings.get("data", ()), settings.get("dev", ()))
    try:
        training = METHODS[method](**settings)
    except TypeError as error:
        raise UsageError(f"{method} has no such settings: {error}") from None
    where = home if isinstance(home, Home) else Home.find(home)
    return train_model(where, name, training, kbs, vectors, device=device, progress=progress)


def train_model(
    home: Home,
    name: str,
    training: TaskTraining,
    kbs: Sequence[str] = (),
    vectors: Sequence[str] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> TrainedModel:
    """Train the model that the settings are of, and keep the run in the catalog; see `train`."""
    run = recorded(
        home, command=command, config=asdict(training), seeds=[training.seed], device=device,
        data=training.files,
    )  # fmt: skip
    with ExitStack() as stack, run as record:
        if isinstance(training, KnowBertTraining):
            kind: Kind[Any] = KNOWBERT
            folder = train_knowbert(
                home, name, training, _choose_vectors(kbs, vectors, home, stack), device=device,
                command=command, progress=progress,
            )  # fmt: skip
        else:
            assert isinstance(training, KBertTraining)
            names: Sequence[str | None] = kbs or [None]  # None: the only one
            opened = [stack.enter_context(open_kb(kb, home.path)) for kb in names if not training.control]
            kind = KBERT
            folder = train_kbert(
                home, name, training, opened, device=device, command=command, progress=progress
            )
        manifest = read_trained(home, name, folder, kind)
        record.model = name if catalogue(home, manifest) else None
        results = manifest.results
        for epoch in results["epochs"]:
            if epoch["epoch"] == results.get("best_epoch"):
                for metric in sorted(set(epoch) - {"epoch"}):
                    items = int(results.get("held_out", 0))
                    record.score(training.task, "held out", metric, epoch[metric], items)
    return TrainedModel(folder, manifest)


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


def _choose_vectors(
    kbs: Sequence[str], vectors: Sequence[str], home: Home, stack: ExitStack
) -> list[ChosenKB]:
    """Open knowledge bases, each with the names of its vectors among *vectors*, as KB/NAME."""
    chosen = []
    for name in kbs:
        kb = stack.enter_context(open_kb(name, home.path))
        own = tuple(path.rpartition("/")[2] for path in vectors if path.rpartition("/")[0] in (kb.name, name))
        chosen.append(ChosenKB(kb, own or (text_vectors(kb, None),)))
    names = {kb.name for kb, _ in chosen} | set(kbs)
    if strange := [path for path in vectors if path.rpartition("/")[0] not in names]:
        raise UsageError(f"--vectors {strange[0]}: write KB/NAME, with one of the knowledge bases of --kb")
    return chosen
