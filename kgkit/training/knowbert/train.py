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

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kgkit.errors import MissingExtra
from kgkit.home import Home
from kgkit.linking.knowbert import CLASSIFIER, FOLDER
from kgkit.models.folder import model_folder
from kgkit.models.manifest import FORMAT, KNOWBERT, MANIFEST, KnowBertManifest
from kgkit.models.publishing import kgkit_version, sizes_of, stage_model, work_folder
from kgkit.training.config import TrainingConfig
from kgkit.training.knowbert.settings import LINKING, Chosen, KnowBertTraining
from kgkit.training.knowbert.stages import BegunModel, begun, groups_of, stage_of, weights_of
from kgkit.training.runs import peak_memory, sha256_of
from kgkit.types import Progress

log = logging.getLogger(__name__)


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
    try:
        import torch
        from transformers import set_seed

        from kgkit.training.loop import train
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error
    folder, began = model_folder(home, name), time.monotonic()
    set_seed(training.seed)
    with ExitStack() as stack:
        model = begun(home, training, kbs, device, stack)
        stage = stage_of(training, model, progress)
        data = {str(path): sha256_of(path) for path in training.files}
        version = {one: about.about for one, about in model.reader.knowledge.items()}
        begins = model.encoder.fingerprint, weights_of(home, training)
        told = training, version, begins, data
        work = stack.enter_context(work_folder(home, "knowbert", name, told))

        if stage.evaluate is None:
            log.warning(
                "too few data to hold some out: no epoch is chosen, the last one is it; or name --dev"
            )
        reading = time.monotonic() - began

        trained = train(
            stage.model, stage.batches, stage.loss,
            [torch.optim.AdamW(groups_of(stage.model, model, training), fused=True)],
            TrainingConfig(epochs=training.epochs, steps=training.steps, bf16=training.bf16, device=device,
                           seed=training.seed),
            work,
            evaluate=stage.evaluate,
            progress=progress,
            resume=True,
        )  # fmt: skip
        results = stage.results(trained)
        if trained.best is not None:  # the epoch whose weights these are
            results["best_epoch"] = trained.best["epoch"]
        results |= {"seconds": round(reading + trained.seconds, 1), "peak_memory": peak_memory()}
        with stage_model(folder) as (staged, final):
            _save(model, staged, training, results)
            manifest = KnowBertManifest(
                format=FORMAT,
                kind=KNOWBERT,
                name=name,
                task=training.task,
                kbs=model.kbs,
                encoder=model.origin,
                size=training.size,
                specials=model.specials,
                guesses=_guesses(training, model),
                start=training.start,
                config=msgspec.to_builtins(asdict(training), enc_hook=str),
                results=results,
                data=data,
                command=command,
                sizes=sizes_of(staged),
                kgkit_version=kgkit_version(),
                created=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            (staged / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    return final


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
