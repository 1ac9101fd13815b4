"""Training a KnowBert: Algorithm 1 of Peters et al. (2019), a stage at a time, and tasks behind it.

    wsd, el       the linker of the knowledge base named last, the rest frozen
    mlm           all: hidden words and, in pairs, what follows; and links, in a fifth of the batches
    relation, …   all, for a task: see `kgkit.methods.knowbert`

A stage begins as the one before it ended (`start`), so Algorithm 1 for two knowledge bases is wsd, mlm, el,
mlm or, shorter, wsd, el, mlm. Entities' vectors are no parameters, and are never trained.

Departures:
    Usage examples of WordNet, which teach its linker in the released code, are left out.
    A linker is as published for entities (`el`) or for senses, whatever knowledge base it is of.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgkit.methods.knowbert_settings import KnowBertTraining
from kgkit.training.job import Outcome, Plan
from kgkit.training.tasks import about_data, fit_method, manifest_fields
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.methods.contract import Resources


def plan_stage(training: KnowBertTraining, resources: "Resources", progress: Progress | None) -> Plan:
    """Begin a KnowBert, and read the data of its stage (wsd, el, mlm).

    Args:
        training: settings.
        resources: home and device; its knowledge bases are put above those that the model has already, from
            the bottom up.
        progress: as `kgkit.training.tasks.train_method` takes it.

    Raises:
        StaleModel: if the model that it begins as was trained with other builds.
        The rest as `kgkit.training.tasks.train_method` does.
    """
    from kgkit.methods.contract import group_parameters
    from kgkit.methods.knowbert import save_knowbert
    from kgkit.methods.knowbert_start import begin_knowbert, pretrained_parameters
    from kgkit.training.knowbert.stages import stage_of

    home, kbs, device, stack = resources
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
        save_knowbert(start.knowbert, start.encoder, folder, about_data(training, home))
        language_model = training.task == "mlm" or start.language_model
        return {**manifest_fields(training), **start.manifest(training), "language_model": language_model}

    return Plan(start.identity(home, training), train)
