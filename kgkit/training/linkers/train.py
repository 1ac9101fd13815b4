"""Training a linker: from data to a model's folder."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from kgkit.models.folder import FULL, model_folder, text_vectors
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import Needs
from kgkit.training.job import Outcome, Plan, run_job
from kgkit.training.linkers.coherence import Learnt, train_coherence
from kgkit.training.linkers.cross_fitting import Said, said_by, said_by_head, said_by_ridge
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.means import Part
from kgkit.training.linkers.ridge import TrainedRidge, measured, train_ridge
from kgkit.training.linkers.settings import UNTRAINED, LinkerTraining, command_of, sources_of, usual_reader
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
    home = Home(kb.home.path.parents[1])
    model_folder(home, name)  # refuses the name before coherence's numbers are looked up
    if training.coherence is not None:
        check_numbers(kb, training.coherence.popularity)
    prepare = _prepare_coherence if training.rung in UNTRAINED else _prepare
    return run_job(
        LINKER, home, name, training,
        lambda _: prepare(kb, home, name, training, device, progress),
        files=training.files, command=command_of(kb.name, name, training),
    )  # fmt: skip


def _prepare(
    kb: "KnowledgeBase",
    home: Home,
    name: str,
    training: LinkerTraining,
    device: str,
    progress: Progress | None,
) -> Plan:
    """Read the data of a linker that learns."""
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

    def train(work: Path) -> Outcome:
        if training.rung == FULL:
            full = _trained_full(
                kb, name, model_folder(home, name), training, reader, vectors, parts, work, device, progress
            )
            return Outcome(full.results, partial(_save, kb, training, reader, full.vectors, full, None, work))
        first, second = _trained(training, reader, vectors, parts, work, device, progress), None
        if training.coherence is not None:
            said = _said(training, reader, vectors, parts, first, work, device, progress)
            second = _second(kb, parts[0].taught, said, training, progress)
        save = partial(_save, kb, training, reader, vectors, first, second, work)
        return Outcome(first.results | _measured(second), save)

    return Plan((kb.build, vectors.manifest.version), train, exclusive=training.rung != RIDGE)


def _save(
    kb: "KnowledgeBase",
    training: LinkerTraining,
    reader: SpanReader,
    vectors: "Vectors",
    trained: "TrainedRidge | TrainedHead | TrainedFull",
    second: Learnt | None,
    work: Path,
    staged: Path,
    _: Mapping[str, Any],
) -> dict[str, Any]:
    """Write a linker that has learnt, and return its fields of the manifest."""
    own_kb = None if trained.arrays is None else kb  # a portable one serves any
    if trained.arrays is not None:
        trained.arrays.save(staged)
    if not isinstance(trained, TrainedRidge):
        for head, where in zip(trained.heads, head_folders(len(trained.heads)), strict=True):
            head.save_pretrained(staged / where, half=own_kb is None)
        np.save(staged / SCALE, trained.scale)
    for own in (ENCODER, TEXTS) if training.rung == FULL else ():
        shutil.copytree(work / own, staged / own)
    return {
        **_fields(own_kb, training, vectors, second, staged),
        "reader": asdict(reader.config),
        "config": _settings(training.ridge, trained),
        "temperature": trained.temperature,
    }


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


def _prepare_coherence(
    kb: "KnowledgeBase",
    home: Home,
    name: str,
    training: LinkerTraining,
    device: str,
    progress: Progress | None,
) -> Plan:
    """Read the data of coherence above a type that has nothing to learn."""
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    taught = [one for source in sources_of(kb, generator, training, progress) for one in source]
    first = find_scorer(training.rung, kb, vectors=training.vectors, device=device)

    def train(_: Path) -> Outcome:
        said = said_by(first, taught, progress)
        second = _second(kb, taught, said, training, progress)
        mentions = sum(bool(right.any()) for one in taught for right in one.right)

        def save(staged: Path, _: Mapping[str, Any]) -> dict[str, Any]:
            vectors = first.vectors if isinstance(first, GlossScorer) else None
            return {**_fields(kb, training, vectors, second, staged), "reader": {}, "temperature": 1.0}

        return Outcome({"mentions": float(mentions), **_measured(second)}, save)

    return Plan(kb.build, train, exclusive=False)


def _measured(second: Learnt | None) -> dict[str, float]:
    """Return what was measured of a second stage."""
    return {} if second is None else measured(second.scored, second.coherence.temperature)


def _fields(
    kb: "KnowledgeBase | None",
    training: LinkerTraining,
    vectors: "Vectors | None",
    second: Learnt | None,
    staged: Path,
) -> dict[str, Any]:
    """Write the second stage, and return the fields of the manifest that all types have."""
    fields: dict[str, Any] = dict.fromkeys(("vectors", "version", "encoder", "fingerprint"), "")
    if vectors is not None:
        about, config = vectors.manifest, vectors.manifest.config
        texts = {"template": config["template"], "kinds": list(config.get("kinds", ()))}
        fields = {"vectors": about.name, "version": about.version, "texts": texts}
        fields |= {"encoder": config["encoder"], "fingerprint": config["fingerprint"]}
    needs = Needs()
    if kb is not None:
        own = () if vectors is None else (f"{kb.name}/{vectors.manifest.name}",)
        needs = Needs(kbs={kb.name: kb.build}, vectors=own)
    coherence = None if second is None else second.coherence.save(staged)
    return {**fields, "type": training.rung, "task": training.task, "needs": needs, "coherence": coherence}


def _settings(ridge: RidgeConfig, trained: "TrainedRidge | TrainedHead | TrainedFull") -> dict[str, Any]:
    """Return what decides the numbers of a model, beside what was learnt."""
    means = asdict(ridge)
    return means if isinstance(trained, TrainedRidge) else {"ridge": means, "head": asdict(trained.config)}
