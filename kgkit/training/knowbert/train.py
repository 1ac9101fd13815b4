"""Training a KnowBert: Algorithm 1 of Peters et al. (2019), a stage at a time, and tasks behind it.

    wsd, el       the linker of the knowledge base named last, the rest frozen
    mlm           all: hidden words and, in pairs, what follows; and links, in a fifth of the batches
    relation, …   all, for a task: see `kgkit.training.classification`

A stage begins as the one before it ended (`start`), so Algorithm 1 for two knowledge bases is wsd, mlm, el,
mlm or, shorter, wsd, el, mlm. Entities' vectors are no parameters, and are never trained.

Departures:
    Usage examples teach the linker of WordNet where `examples` asks for them; in the released code always.
    A linker is as published for entities (`el`) or for senses, whatever knowledge base it is of.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from kgkit.home import Home
from kgkit.linking.knowbert import CLASSIFIER, FOLDER
from kgkit.models.kinds import KNOWBERT
from kgkit.models.manifest import Needs
from kgkit.training.config import TrainingConfig
from kgkit.training.job import Outcome, Plan, fit, run_job
from kgkit.training.knowbert.settings import LINKING, Chosen, KnowBertTraining
from kgkit.training.knowbert.stages import BegunModel, begun, groups_of, stage_of, weights_of
from kgkit.types import Progress


def train_knowbert(
    home: Home,
    name: str,
    training: KnowBertTraining,
    kbs: Sequence[Chosen] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Train a KnowBert, and write it to `models/NAME` of *home*, in the place of an older one.

    Args:
        home: where it is kept; a training that was stopped goes on there.
        name: of the model.
        training: on what, and how.
        kbs: knowledge bases that are put above those that the model has already, from the bottom up.
        device: where it is trained.
        command: that was typed.
        progress: is told what is done.

    Returns:
        Where the model's files lie, a version of `models/NAME`; it goes when the name is trained again.

    Raises:
        UsageError: if *name* cannot name a model, the settings do not fit each other, or there is nothing to
            learn.
        NotThere: if an encoder, a model, vectors or a file is not there.
        StaleModel: if the model that it begins as was trained with other builds.
        SourceError: if a file is not what it should be.
        BuildFailed: if the loss is not finite.
        KBBusy: if another process trains the same.
        WriteFailed: if the disk refuses; an older model of that name is as it was.
    """
    return run_job(
        KNOWBERT, home, name, training,
        lambda stack: _prepare(home, training, kbs, device, progress, stack),
        files=training.files, command=command, seed=training.seed,
    )  # fmt: skip


def _prepare(
    home: Home,
    training: KnowBertTraining,
    kbs: Sequence[Chosen],
    device: str,
    progress: Progress | None,
    stack: ExitStack,
) -> Plan:
    """Begin a model, and read the data of its stage."""
    import torch

    model = begun(home, training, kbs, device, stack)
    stage = stage_of(training, model, progress)

    def train(work: Path) -> Outcome:
        trained = fit(
            stage.model, stage.batches, stage.loss,
            [torch.optim.AdamW(groups_of(stage.model, model, training), fused=True)],
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

    def save(staged: Path, results: Mapping[str, Any]) -> dict[str, Any]:
        _save(model, staged, training, results)
        return {
            "task": training.task,
            "kbs": model.kbs,
            "encoder": model.origin,
            "needs": Needs(
                kbs={kb: model.handle(kb).build for kb in model.kbs},
                vectors=tuple(f"{kb}/{name}" for kb, about in model.kbs.items() for name in about.vectors),
            ),
            "size": training.size,
            "specials": model.specials,
            "language_model": _guesses(training, model),
            "start": training.start,
            "config": msgspec.to_builtins(asdict(training), enc_hook=str),
        }

    builds = {one: about.about for one, about in model.reader.knowledge.items()}
    return Plan((builds, model.encoder.fingerprint, weights_of(home, training)), train)


def _guesses(training: KnowBertTraining, model: BegunModel) -> bool:
    """Say whether the model is a trained masked language model."""
    return training.task == "mlm" or (training.task in LINKING and model.guesses)


def _save(model: BegunModel, staged: Path, training: KnowBertTraining, results: Mapping[str, Any]) -> None:
    from kgkit.heads.knowbert import ENCODER

    where = staged / FOLDER
    model.knowbert.save_pretrained(where, about=_about(training, results))
    model.encoder.tokenizer.save_pretrained(where / ENCODER)
    if model.classifier is not None:
        model.classifier.save_pretrained(staged / CLASSIFIER, about=_about(training, results))
    model.encoder.save_settings(where / ENCODER)


def _about(training: KnowBertTraining, results: Mapping[str, Any]) -> str:
    files = ", ".join(f"`{path.name}`" for path in training.files)
    return f"Trained for the task {training.task} on {files}. Their licence may bind what is made of them."
