"""Training a KnowBert: Algorithm 1 of Peters et al. (2019), a stage at a time, and tasks behind it.

    wsd, el       the linker of the knowledge base named last, the rest frozen
    mlm           all: hidden words and, in pairs, what follows; and links, in a fifth of the batches
    relation, …   all, for a task: see `kgkit.methods.knowbert`

A stage begins as the one before it ended (`start`), so Algorithm 1 for two knowledge bases is wsd, mlm, el,
mlm or, shorter, wsd, el, mlm. Entities' vectors are no parameters, and are never trained.

Departures:
    Usage examples teach the linker of WordNet where `examples` asks for them; in the released code always.
    A linker is as published for entities (`el`) or for senses, whatever knowledge base it is of.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kgkit.home import Home
from kgkit.methods.knowbert_settings import KnowBertTraining
from kgkit.methods.settings import ChosenKB
from kgkit.models.kinds import KNOWBERT
from kgkit.training.config import TrainingConfig
from kgkit.training.job import Outcome, Plan, fit, run_job
from kgkit.training.tasks import about_data, manifest_fields
from kgkit.types import Progress


def train_stage(
    home: Home,
    name: str,
    training: KnowBertTraining,
    kbs: Sequence[ChosenKB] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Train a stage of a KnowBert (wsd, el, mlm), and write it to `models/NAME` of *home*.

    An older model of that name is replaced.

    Args:
        home: home that the model is kept in; a training that was stopped goes on there.
        name: name of the model.
        training: settings.
        kbs: knowledge bases that are put above those that the model has already, from the bottom up.
        device: torch device on which it is trained.
        command: command that trains the like.
        progress: function that receives what is done.

    Returns:
        Folder of the model's files, a version of `models/NAME`; it goes when the name is trained again.

    Raises:
        StaleModel: if the model that it begins as was trained with other builds.
        The rest as `kgkit.training.tasks.train_method` does.
    """
    return run_job(
        KNOWBERT, home, name, training,
        lambda stack: _plan(home, training, kbs, device, progress, stack),
        files=training.files, command=command, seed=training.seed,
    )  # fmt: skip


def _plan(
    home: Home,
    training: KnowBertTraining,
    kbs: Sequence[ChosenKB],
    device: str,
    progress: Progress | None,
    stack: ExitStack,
) -> Plan:
    """Begin a model, and read the data of its stage."""
    import torch

    from kgkit.methods.contract import group_parameters
    from kgkit.methods.knowbert import save_knowbert
    from kgkit.methods.knowbert_start import begin_knowbert, pretrained_parameters
    from kgkit.training.knowbert.stages import stage_of

    start = begin_knowbert(home, training, kbs, device, stack)
    stage = stage_of(training, start, progress)

    def train(work: Path) -> Outcome:
        groups = group_parameters(stage.model, pretrained_parameters(start), training)
        trained = fit(
            stage.model, stage.batches, stage.loss,
            [torch.optim.AdamW(groups, fused=True)],
            TrainingConfig(epochs=training.epochs, steps=training.steps, bf16=training.bf16, device=device,
                           seed=training.seed),
            work,
            evaluate=stage.evaluate,
            progress=progress,
        )  # fmt: skip
        results = stage.results(trained)
        if trained.best is not None:  # the epoch whose weights these are
            results["best_epoch"] = trained.best["epoch"]
        return Outcome({**results, "seconds": trained.seconds}, save)

    def save(folder: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        save_knowbert(start.knowbert, start.encoder, folder, about_data(training))
        language_model = training.task == "mlm" or start.language_model
        return {**manifest_fields(training), **start.manifest(training), "language_model": language_model}

    return Plan(start.identity(home, training), train)
