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
from kgkit.training.job import Outcome, Plan, run_job
from kgkit.training.tasks import about_data, fit_method, manifest_fields
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
        kbs: knowledge bases that are put above those that the model has already, from the bottom up.
        home, name, training, device, command, progress: as `kgkit.training.tasks.train_method` takes them.

    Returns:
        Folder of the model's files, as `train_method` does.

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
    from kgkit.methods.contract import group_parameters
    from kgkit.methods.knowbert import save_knowbert
    from kgkit.methods.knowbert_start import begin_knowbert, pretrained_parameters
    from kgkit.training.knowbert.stages import stage_of

    start = begin_knowbert(home, training, kbs, device, stack)
    stage = stage_of(training, start, progress)

    def train(work: Path) -> Outcome:
        groups = group_parameters(stage.model, pretrained_parameters(start), training)
        trained = fit_method(
            stage.model, stage.batches, stage.loss, groups, training, work, device=device,
            evaluate=stage.evaluate, progress=progress,
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
