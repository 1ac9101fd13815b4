"""Training a method for a task.

The encoder and what stands on it are trained together, with knowledge bases or, for a control, without: the
same batches, steps, learning rates and seeds.

Where the texts of a batch are of like lengths, a step weighs as much whatever these are: in tagging a tag of
a short text counts for more than one of a long text.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from kgkit.errors import BuildFailed, UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.home import Home
from kgkit.methods.settings import ChosenKB, TaskTraining, Training, check_knowledge
from kgkit.models.kinds import Kind
from kgkit.models.manifest import ModelManifest
from kgkit.models.publishing import make_manifest
from kgkit.training.batches import Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import TrainingState
from kgkit.training.job import Outcome, Plan, fit, run_job, scores_by_epoch
from kgkit.types import Progress

if TYPE_CHECKING:
    from torch import nn

    from kgkit.evaluation.examples import Example
    from kgkit.methods.answering import TaskData
    from kgkit.methods.contract import Beginning, Resources

_log = logging.getLogger(__name__)

_SAMPLE: Final = 100  # examples that are looked at for knowledge


class PlanTask(Protocol):
    """Function that prepares the training of a method for tasks of its own."""

    def __call__(self, training: Any, resources: "Resources", progress: Progress | None) -> Plan:
        """Begin a model, and read its data.

        Args:
            training: settings of the method.
            resources: what the training has beside settings and data.
            progress: function that receives what is done.
        """


def train_method(
    kind: Kind[Any],
    home: Home,
    name: str,
    training: Training,
    kbs: Sequence[ChosenKB] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Train a method for a task, and write it to `models/NAME` of *home*, in the place of an older one.

    Args:
        kind: kind of the model, which names what begins it.
        home: home of models and knowledge bases; a training that was stopped goes on there.
        name: name of the model.
        training: settings.
        kbs: knowledge bases, open, with the names of their vectors if the method reads some.
        device: torch device on which it is trained.
        command: command that trains the like.
        progress: function that receives what is done.

    Returns:
        Folder of the model's files, as `run_job` returns it.

    Raises:
        DamagedModel: if the fields of the manifest that the method gives are not those that its kind has.
        UsageError: if *name* cannot name a model, the settings do not fit each other, or there is nothing to
            learn.
        NotThere: if an encoder or a file is not there.
        SourceError: if a file is not what it should be.
        BuildFailed: if the loss, the weights or an answer to what is held out is not finite.
        KBBusy: if another process trains the same.
        WriteFailed: if the disk refuses; an older model of that name is as it was.
    """
    if training.ONLY_KB:
        check_knowledge(kbs, training.control)
    if training.task not in TASKS and not kind.plan:
        raise UsageError(f"the kind {kind.name} is trained for tasks of kgkit alone, not for {training.task}")

    def prepare(stack: ExitStack) -> Plan:
        from kgkit.methods.answering import TaskData
        from kgkit.methods.contract import Resources

        resources = Resources(home, kbs, device, stack)
        if not isinstance(training, TaskTraining) or training.task not in TASKS:
            plan_task: PlanTask = kind.load(kind.plan)
            return plan_task(training, resources, progress)
        data = TaskData.read(training)
        begin = kind.load(kind.begin)
        beginning: Beginning = begin(training, data, resources)
        # Before the first step: does it fit?
        manifest: ModelManifest = make_manifest(kind, name, **_fields(training, beginning))
        return _plan(training, data, beginning, resources, progress)._replace(needs=manifest.needs)

    files = training.files
    return run_job(kind, home, name, training, prepare, files=files, command=command, seed=training.seed)


def _plan(
    training: TaskTraining,
    data: "TaskData",
    beginning: "Beginning",
    resources: "Resources",
    progress: Progress | None,
) -> Plan:
    """Return how a method is trained and saved."""
    from kgkit.methods.answering import answers_of, batch_of, length_of, loss_of
    from kgkit.methods.predicting import describe_nonfinite

    method, learn = beginning.method, data.learn
    lengths = [length_of(example) for example in learn]

    def evaluate(_: Any) -> dict[str, float]:
        answers = answers_of(method, data.held_out, size=training.batch)
        if wrong := describe_nonfinite(answers):
            raise BuildFailed(
                f"the training diverged, so that its model answers {wrong}: lower learning rates than "
                f"--lr {training.lr:g} and --lr-new {training.lr_new:g} may help"
            )
        return data.task.score(data.held_out, answers, data.labels)

    def train(work: Path) -> Outcome:
        _warn_of_no_knowledge(beginning, learn)
        batches = Shuffled(
            learn, training.batch, lambda examples: batch_of(method, examples), training.seed,
            lengths=lengths if training.BY_LENGTH else None,  # the same with knowledge and without
        )  # fmt: skip
        trained = fit_method(
            method.model, batches, loss_of(method.model.classifier), method.groups(training), training, work,
            device=resources.device, evaluate=evaluate if data.held_out else None, progress=progress,
        )  # fmt: skip
        counts = {"examples": len(learn), "held_out": len(data.held_out), "labels": list(data.labels)}
        return Outcome({**scores_by_epoch(trained), **counts, "seconds": trained.seconds}, save)

    def save(folder: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        method.save(folder)
        return _fields(training, beginning)

    return Plan(beginning.identity, train)


def _warn_of_no_knowledge(beginning: "Beginning", examples: Sequence["Example"]) -> None:
    """Log which kinds of knowledge a model reads none of, in a sample of examples from all over the data."""
    from kgkit.evaluation.examples import alternatives

    if (count := beginning.count_knowledge) is None:
        return
    chosen = examples[:: math.ceil(len(examples) / _SAMPLE) or 1]
    texts = [part for own in chosen for part in (alternatives(own) if own.choices else [own])]
    counts = Counter[str]()
    for reading in beginning.method.read(texts):
        counts.update(count(reading.content))
    if lacking := [name for name, total in counts.items() if not total]:
        _log.warning(
            "no %s were read in %d sampled examples: see whether the named sources cover these texts",
            " and no ".join(lacking),
            len(chosen),
        )


def fit_method(
    model: "nn.Module",
    batches: Any,
    loss: Callable[..., Any],
    groups: list[dict[str, Any]],
    training: TaskTraining,
    work: Path,
    *,
    device: str,
    evaluate: Callable[[Any], Mapping[str, float]] | None,
    progress: Progress | None,
) -> TrainingState:
    """Train a model by AdamW as its settings say; *groups* are its parameters, the rest as `fit` takes it."""
    from torch.optim import AdamW

    config = TrainingConfig(
        epochs=training.epochs, steps=training.steps, bf16=training.bf16, device=device, seed=training.seed
    )
    optimizers = [AdamW(groups, fused=True)]
    return fit(model, batches, loss, optimizers, config, work, evaluate=evaluate, progress=progress)


def _fields(training: TaskTraining, beginning: "Beginning") -> dict[str, Any]:
    """Return the fields of a manifest that settings and method decide."""
    return {**manifest_fields(training), **beginning.manifest}


def manifest_fields(training: TaskTraining) -> dict[str, Any]:
    """Return the fields of a manifest that the settings decide."""
    return {"task": training.task, "config": msgspec.to_builtins(asdict(training), enc_hook=str)}
