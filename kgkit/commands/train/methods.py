"""What the commands that train a method have in common."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, JSONOption
from kgkit.commands.output import Column, check_files, plain, typed, write_json, write_line, write_table
from kgkit.commands.setting_options import option_parameter

if TYPE_CHECKING:
    from kgkit.catalog.runs import RunRecord
    from kgkit.home import Home
    from kgkit.methods.settings import Training
    from kgkit.models.kinds import Kind
    from kgkit.models.manifest import ManifestType
    from kgkit.training.job import TrainedModel
    from kgkit.types import Progress

LEAST_SIZE: Final = 8
"""The least number of word pieces that a command takes."""

DevOption = Annotated[
    list[Path] | None,
    typer.Option("--dev", metavar="FILE", help="As --data, to choose the epoch; else part of the data are."),
]
EncoderOption = Annotated[
    str, typer.Option("--encoder", metavar="ENCODER", help="A folder, a package or a hub id.")
]
EpochsOption = Annotated[
    int, typer.Option("--epochs", min=1, metavar="N", help="Number of times that all data are read.")
]
StepsOption = Annotated[
    int | None,
    typer.Option("--steps", min=1, metavar="N", help="Number of batches to train on, and not of epochs."),
]
TextsOption = Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Number of texts in a step.")]
SizeOption = Annotated[
    int, typer.Option("--size", min=LEAST_SIZE, metavar="N", help="Word pieces of a text.")
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--size",
        min=LEAST_SIZE,
        metavar="N",
        help="Word pieces that are read at once, special ones not counted; by default by the encoder.",
        show_default=False,
    ),
]
RateOption = Annotated[
    float, typer.Option("--lr", metavar="RATE", help="The highest learning rate of the encoder.")
]


class TrainingOptions(NamedTuple):
    """Options that all commands which train have.

    Attributes:
        as_json: whether the manifest is written in the place of a table.
        device: torch device on which the model is trained, if it is trained by gradient.
    """

    as_json: bool
    device: str = "cpu"


def with_training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the options of all trainings, of which *command* gets `TrainingOptions`."""

    def train(**values: Any) -> None:
        own = {name: values.pop(name) for name in TrainingOptions._fields}
        command(**values, options=TrainingOptions(**own))

    parameters = [part for name, part in signature(command).parameters.items() if name != "options"]
    shared = [
        option_parameter("device", DeviceOption, "auto"), option_parameter("as_json", JSONOption, False),
    ]  # fmt: skip
    train.__name__, train.__doc__ = command.__name__, command.__doc__
    setattr(train, "__signature__", Signature([*parameters, *shared]))  # noqa: B010  # what Typer reads
    return train


def follow_training(
    name: str,
    files: Iterable[Path],
    train: "Callable[[Home, Progress], TrainedModel]",
    options: TrainingOptions,
) -> Any:
    """Train a model, and tell how far it is, and how long it took.

    Args:
        name: name of the model.
        files: files that are read; all are to be there.
        train: function that trains the model.
        options: options of the command.

    Returns:
        The manifest of the model; None if it was written.
    """
    from kgkit.home import Home
    from kgkit.models.folder import model_folder
    from kgkit.models.publishing import older
    from kgkit.signals import terminations

    check_files(files)
    messages, where = Messages(bars=not options.as_json), Home.find()
    began, replaced = time.monotonic(), older(model_folder(where, name))
    with messages.progress(f"training {name}") as show:

        def tell(stage: str, count: int, total: int) -> None:
            show(f"{stage} {count:,} of {total:,}" if total else f"{stage}, {count:,}", count, total)

        with _stopping(messages), terminations():
            folder, manifest = train(where, tell)
    replacing = f", in the place of {replaced}" if replaced else ""
    messages.write(f"trained {name} in {time.monotonic() - began:.1f} s{replacing}: {folder.parent}")
    if not options.as_json:
        return manifest
    import msgspec

    write_json({"path": str(folder.parent), **msgspec.to_builtins(manifest)})
    return None


@contextmanager
def _stopping(messages: Messages) -> Iterator[None]:
    """Say of a training that is stopped in the block which command goes on with it, or begins again."""
    from kgkit.errors import StoppedCounting, StoppedTraining

    try:
        yield
    except (StoppedCounting, StoppedTraining) as stopped:
        what = "begin" if getattr(stopped, "counts", None) == "" else "go on there"
        messages.write(f"to {what}, give the same command again: {typed()}")
        raise


def record_training(
    kind: "Kind[ManifestType]",
    name: str,
    config: Mapping[str, Any],
    files: Sequence[Path],
    train: "Callable[[Home, Progress], Path]",
    note_scores: "Callable[[RunRecord, ManifestType], object]",
    options: TrainingOptions,
    *,
    seeds: Sequence[int] = (),
) -> Any:
    """Train a model that is no method's as a run of the catalog, and tell how far it is.

    Args:
        kind: kind of the model.
        name: its name.
        config: settings, as the catalog keeps them.
        files: files that are read; all are to be there.
        train: function that trains the model, and returns the folder of its files.
        note_scores: function that notes what was measured, of the model's manifest.
        options: options of the command.
        seeds: seeds of what is trained.

    Returns:
        The manifest of the model; None if it was written.
    """
    from kgkit.catalog.runs import recorded
    from kgkit.training import job

    def train_in(where: "Home", tell: "Progress") -> "TrainedModel":
        run = recorded(where, command=typed(), config=config, seeds=seeds, device=options.device, data=files)
        return job.train_recorded(run, where, name, kind, lambda: train(where, tell), note_scores)

    return follow_training(name, files, train_in, options)


def run_training(
    kind: "Kind[Any]",
    name: str,
    training: "Training",
    kbs: Sequence[str],
    vectors: Sequence[str],
    options: TrainingOptions,
) -> None:
    """Train a model, and write what was measured.

    Args:
        kind: kind of the model.
        name: name of the model.
        training: settings of the method.
        kbs, vectors: as `kgkit.training.methods.train` takes them.
        options: options of the command.
    """
    from kgkit.training.methods import train_model

    def train(where: "Home", tell: "Progress") -> "TrainedModel":
        return train_model(
            where, name, kind, training, kbs, vectors, device=options.device,
            command=typed(), progress=tell,
        )  # fmt: skip

    manifest = follow_training(name, training.files, train, options)
    if manifest is None:
        return
    write_line(f"{name}: {training.task}, {', '.join(manifest.kb_titles) or 'no knowledge base'}")
    write_results(manifest.results)


def write_figures(rows: Iterable[tuple[str, str]]) -> None:
    """Write names and figures, a line each."""
    write_table([Column(heading=""), Column(heading="", align="right")], [*rows])


def write_results(results: dict[str, Any]) -> None:
    """Write what was measured while a model was trained."""
    rows = [
        (metric.replace("_", " "), f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
        for metric, value in results.items()
        if isinstance(value, int | float)
    ]
    write_figures(rows)
    if labels := results.get("labels"):
        from kgkit.evaluation.examples import list_labels

        write_line(plain(f"labels: {list_labels(labels)}"))
    for kb, scores in results.get("linkers", {}).items():
        for metric, value in scores.items():
            write_line(f"{kb}: {metric.replace('_', ' ')} {value:,.3f}")
    if epochs := results.get("epochs"):
        write_line()
        names = list(epochs[0])
        write_table(
            [Column(heading=name, align="right") for name in names],
            [[f"{epoch['epoch']:.2f}", *(f"{epoch[name]:.4f}" for name in names[1:])] for epoch in epochs],
        )
