"""Training a linker: from data to a model's folder."""

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from kgkit.candidates import generator_for
from kgkit.embedding.text import encoder_of
from kgkit.errors import MissingExtra
from kgkit.home import Home
from kgkit.inputs import SpanReader
from kgkit.linking.entity_features import check_numbers
from kgkit.linking.gloss import GlossScorer
from kgkit.linking.head import ENCODER, SCALE, TEXTS, head_folders
from kgkit.linking.models import find_scorer
from kgkit.linking.ridge import KIND as RIDGE
from kgkit.linking.ridge import RidgeConfig
from kgkit.models.folder import model_folder, text_vectors
from kgkit.models.manifest import FORMAT, FULL, MANIFEST, ModelManifest
from kgkit.models.publishing import kgkit_version, sizes_of, stage_model, work_folder
from kgkit.training.linkers.coherence import Learnt, train_coherence
from kgkit.training.linkers.cross_fitting import Said, said_by, said_by_head, said_by_ridge
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.means import Part
from kgkit.training.linkers.ridge import TrainedRidge, measured, train_ridge
from kgkit.training.linkers.settings import UNTRAINED, LinkerTraining, command_of, sources_of, usual_reader
from kgkit.training.runs import sha256_of
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.training.linkers.fine_tuned import TrainedFull
    from kgkit.training.linkers.head import TrainedHead
    from kgkit.vectors import Vectors


def train_linker(
    kb: "KnowledgeBase",
    name: str,
    training: LinkerTraining,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> Path:
    """Train a linker for *kb*, and write it to `models/NAME` of its home, in the place of an older one.

    Args:
        kb: what is linked to.
        name: of the model.
        training: what, on what, how.
        device: of the encoder.
        progress: is told what is done.

    Returns:
        Where the model's files lie, a version of `models/NAME`; it goes when the name is trained again.

    Raises:
        UsageError: if *name* cannot name a model, or there is nothing to learn.
        UnknownName: if no entity has a number that coherence is to look at.
        NotThere: if the vectors, the encoder or a file are not there.
        SourceError: if a file is not what it should be.
        KBBusy: if another process trains the same.
        WriteFailed: if the disk refuses; an older model of that name is as it was.
    """
    with ExitStack() as stack:
        return _train(stack, kb, name, training, device, progress)


def _train(
    stack: ExitStack,
    kb: "KnowledgeBase",
    name: str,
    training: LinkerTraining,
    device: str,
    progress: Progress | None,
) -> Path:
    """Train a linker; the work folder is held until *stack* is closed."""
    home = Home(kb.home.path.parents[1])
    folder = model_folder(home, name)
    if training.coherence is not None:
        check_numbers(kb, training.coherence.popularity)
    began = time.monotonic()
    if training.rung in UNTRAINED:
        return _train_above(kb, name, training, folder, device, progress)
    vectors = kb.vectors(text_vectors(kb, training.vectors))
    encoder = encoder_of(vectors, device=device)
    reader = SpanReader(encoder, training.reader or usual_reader(training.rung, encoder))
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    sources = [*sources_of(kb, generator, training, progress)]
    parts = [
        Part(
            reader,
            source,
            home.cache / "features",
            progress,
            training.ridge.layers,
            f"reading set {number}",
        )
        for number, source in enumerate(sources, 1)
    ]
    data = {str(path): sha256_of(path) for path in training.files}
    told_apart = training, kb.build, vectors.manifest.version, data
    work = stack.enter_context(work_folder(home, "linker", name, told_apart, alone=training.rung != RIDGE))
    trained: TrainedRidge | TrainedHead | TrainedFull
    second = None
    if training.rung == FULL:
        trained = full = _trained_full(
            kb, name, folder, training, reader, vectors, parts, work, device, progress
        )
        vectors = full.vectors
    else:
        trained = first = _trained(training, reader, vectors, parts, work, device, progress)
    if training.coherence is not None:
        said = _said(training, reader, vectors, parts, first, work, device, progress)
        second = _second(kb, parts[0].taught, said, training, progress)
    with stage_model(folder) as (staged, final):
        portable = trained.arrays is None
        if trained.arrays is not None:
            trained.arrays.save(staged)
        if not isinstance(trained, TrainedRidge):
            for head, where in zip(trained.heads, head_folders(len(trained.heads)), strict=True):
                head.save_pretrained(staged / where, half=portable)
            np.save(staged / SCALE, trained.scale)
        for own in (ENCODER, TEXTS) if training.rung == FULL else ():
            shutil.copytree(work / own, staged / own)
        told = {
            "kb": "" if portable else kb.name,
            "build": "" if portable else kb.build,
            "vectors": vectors.manifest.name,
            "version": vectors.manifest.version,
            **_made(vectors),
            "reader": asdict(reader.config),
            "config": _settings(training.ridge, trained),
            "temperature": trained.temperature,
        }
        _write(staged, kb, name, training, told, trained.results, second, data, began)
    return final


def _trained(
    training: LinkerTraining,
    reader: SpanReader,
    vectors: "Vectors",
    parts: Sequence[Part],
    work: Path,
    device: str,
    progress: Progress | None,
) -> "TrainedRidge | TrainedHead":
    if training.rung == RIDGE:
        return train_ridge(reader, vectors, parts, training.ridge)
    try:
        from kgkit.training.linkers.head import HeadConfig, train_head  # here: torch takes seconds to load
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error

    config = training.head or HeadConfig()
    return train_head(reader, vectors, parts, training.ridge, config, work, device=device, progress=progress)


def _trained_full(
    kb: "KnowledgeBase",
    name: str,
    folder: Path,
    training: LinkerTraining,
    reader: SpanReader,
    vectors: "Vectors",
    parts: Sequence[Part],
    work: Path,
    device: str,
    progress: Progress | None,
) -> "TrainedFull":
    try:
        from kgkit.training.linkers.fine_tuned import FullConfig, train_full
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error

    config = training.full or FullConfig()
    return train_full(
        kb, name, folder, reader, vectors, parts, training.ridge, config, work, device=device,
        progress=progress,
    )  # fmt: skip


def _said(
    training: LinkerTraining,
    reader: SpanReader,
    vectors: "Vectors",
    parts: Sequence[Part],
    trained: "TrainedRidge | TrainedHead",
    work: Path,
    device: str,
    progress: Progress | None,
) -> Said:
    """Return what the first stage says of the documents of the data, trained without them."""
    assert training.coherence is not None
    stretches = training.coherence.members
    if isinstance(trained, TrainedRidge):
        return said_by_ridge(
            reader, vectors, parts, training.ridge, trained.temperature, stretches, trained.arrays.weights
        )
    return said_by_head(
        reader, vectors, parts, training.ridge, trained.config, trained.temperature, stretches, work,
        device=device, progress=progress,
    )  # fmt: skip


def _second(
    kb: "KnowledgeBase",
    taught: Sequence[LabelledDocument],
    said: Said,
    training: LinkerTraining,
    progress: Progress | None,
) -> Learnt:
    """Train the second stage."""
    assert training.coherence is not None
    return train_coherence(kb, taught, said, training.coherence, progress)


def _train_above(
    kb: "KnowledgeBase",
    name: str,
    training: LinkerTraining,
    folder: Path,
    device: str,
    progress: Progress | None,
) -> Path:
    """Train coherence above a rung that has nothing to learn."""
    began = time.monotonic()
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    taught = [one for source in sources_of(kb, generator, training, progress) for one in source]
    first = find_scorer(training.rung, kb, vectors=training.vectors, device=device)
    said = said_by(first, taught, progress)
    second = _second(kb, taught, said, training, progress)
    told: dict[str, Any] = dict.fromkeys(("vectors", "version", "encoder", "fingerprint"), "")
    told |= {"kb": kb.name, "build": kb.build}
    if isinstance(first, GlossScorer):
        about = first.vectors.manifest
        told |= {"vectors": about.name, "version": about.version, **_made(first.vectors)}
    told |= {"reader": {}, "config": {}, "temperature": 1.0}
    data = {str(path): sha256_of(path) for path in training.files}
    counted = sum(bool(right.any()) for one in taught for right in one.right)
    with stage_model(folder) as (staged, final):
        _write(staged, kb, name, training, told, {"mentions": float(counted)}, second, data, began)
    return final


def _write(
    staged: Path,
    kb: "KnowledgeBase",
    name: str,
    training: LinkerTraining,
    told: Mapping[str, Any],
    results: Mapping[str, float],
    second: Learnt | None,
    data: dict[str, str],
    began: float,
) -> None:
    """Write the second stage and the manifest; *told* are fields of it that each rung has its own of."""
    coherence = None if second is None else second.coherence.save(staged)
    of_second = {} if second is None else measured(second.scored, second.coherence.temperature)
    manifest = ModelManifest(
        format=FORMAT,
        kind=training.rung,
        name=name,
        task=training.task,
        **told,
        coherence=coherence,
        results={**results, **of_second, "seconds": round(time.monotonic() - began, 1)},
        data=data,
        command=command_of(kb.name, name, training),
        sizes=sizes_of(staged),
        kgkit_version=kgkit_version(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    (staged / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))


def _made(vectors: "Vectors") -> dict[str, Any]:
    """Return how the vectors of the entities' texts were made, as a manifest has it."""
    about = vectors.manifest.config
    texts = {"template": about["template"], "kinds": list(about.get("kinds", ()))}
    return {"encoder": about["encoder"], "fingerprint": about["fingerprint"], "texts": texts}


def _settings(ridge: RidgeConfig, trained: "TrainedRidge | TrainedHead | TrainedFull") -> dict[str, Any]:
    """Return what decides the numbers of a model, beside what was learnt."""
    means = asdict(ridge)
    return means if isinstance(trained, TrainedRidge) else {"ridge": means, "head": asdict(trained.config)}
