"""Training a linker: from data to a model's folder."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import to_builtins

from kgkit.candidates import generator_for
from kgkit.embedding.partial import PartialTextVectors, encoder_for
from kgkit.errors import StaleModel, UsageError
from kgkit.evaluation.examples import HELD_OUT
from kgkit.home import Home
from kgkit.inputs import SpanReader
from kgkit.linking.entity_features import check_numbers
from kgkit.linking.gloss import GlossScorer, gloss_config
from kgkit.linking.head import KIND as HEAD
from kgkit.linking.head import SCALE, head_folders
from kgkit.linking.neighbour_texts import check_relations, with_neighbours
from kgkit.linking.ridge import KIND as RIDGE
from kgkit.linking.scoring import PriorScorer, Scorer
from kgkit.linking.text_vectors import open_text_vectors
from kgkit.models.folder import BUILT_IN, manifest_digest, model_folder
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import Needs
from kgkit.training.job import Outcome, Plan, check_not_replaced, run_job
from kgkit.training.linkers.coherence import TrainedSecondStage, train_coherence
from kgkit.training.linkers.comparison import COMPARED, accuracy_rows, check_not_worse
from kgkit.training.linkers.cross_fitting import cross_fit_head, cross_fit_ridge, score_documents
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.means import LinkerData, TrainingSet, candidate_ids
from kgkit.training.linkers.ridge import TrainedRidge, held_out_metrics, prior_accuracy, train_ridge
from kgkit.training.linkers.settings import UNTRAINED, LinkerTraining, command_of, usual_reader
from kgkit.training.linkers.sources import sources_of
from kgkit.training.linkers.threshold import plan_threshold
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.training.linkers.head import TrainedHead
    from kgkit.types import Ids
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorRows

log = logging.getLogger(__name__)


def train_linker(
    kb: "KnowledgeBase",
    name: str,
    training: LinkerTraining,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> Path:
    """Train a linker for *kb*, and write it to its home, as `kgkit.training.job.Trainer` does other models.

    Args:
        kb: knowledge base that is linked to.
        name, device, progress: as `Trainer` takes them.
        training: settings, with the files of data.

    Returns:
        Folder of the model's files, as `run_job` returns it.

    Raises:
        UsageError: if *name* cannot name a model, there are no training examples, or neighbours are to be
            read and *kb* has no facts.
        UnknownName: if no entity has an attribute of `coherence.popularity`, or there is no such tagger or
            relation.
        NotThere: if the vectors, the encoder or a file do not exist.
        SourceError: if a file is not of its format.
        KBBusy: if another process trains the same.
        BuildFailed: if the linker is worse on what was held out than linking without training; an older model
            of that name is unchanged.
        WriteFailed: if the disk is full or fails; an older model of that name is unchanged.
    """
    home = Home(kb.home.path.parents[1])
    check_linker(kb, name, training)

    def prepare(_: ExitStack) -> Plan:
        begin = partial(_begin_of(training), kb, name, training, device, progress)
        if not training.mentions:
            return _compared(begin(), name, training)
        return plan_threshold(begin, kb, name, training, device=device, progress=progress)

    return run_job(
        LINKER, home, name, training, prepare,
        files=training.files, command=command_of(kb.name, name, training), seed=_gradient_seed(training),
    )  # fmt: skip


def _compared(plan: Plan, name: str, training: LinkerTraining) -> Plan:
    """Return a plan that fails where the linker is worse than no training, and keeps the comparison."""

    def train(work: Path) -> Outcome:
        outcome = plan.train(work)
        rows = accuracy_rows(name, training, outcome.results)
        check_not_worse(name, training, rows)
        return outcome._replace(results={**outcome.results, COMPARED: to_builtins(rows)})

    return plan._replace(train=train)


def check_linker(kb: "KnowledgeBase", name: str, training: LinkerTraining) -> None:
    """Compare settings of a linker with *kb* and its home; what is read later may take an hour.

    Raises:
        UsageError, UnknownName, NotThere: as `train_linker` does.
    """
    home = Home(kb.home.path.parents[1])
    model_folder(home, name)  # refuses the name before coherence's numbers are looked up
    if training.coherence is not None:
        check_numbers(kb, training.coherence.popularity)
    check_relations(kb, training.neighbours)
    if training.neighbours and not any(kb.manifest.counts.relations.values()):
        raise UsageError(f"{kb.name} has no facts, and so no neighbours: leave out --neighbours")
    check_not_replaced(home, name, [training.teacher, training.mentions])


def _gradient_seed(training: LinkerTraining) -> int | None:
    """Return the seed of a type that follows torch's gradient; None for the others."""
    if training.type != HEAD:
        return None
    return 0 if training.head is None else training.head.seed


def _begin_of(
    training: LinkerTraining,
) -> "Callable[[KnowledgeBase, str, LinkerTraining, str, Progress | None], Plan]":
    """Return the function that reads the data of a linker, by its type."""
    return _prepare_coherence if training.type in UNTRAINED else _prepare


def _prepare(
    kb: "KnowledgeBase", name: str, training: LinkerTraining, device: str, progress: Progress | None
) -> Plan:
    """Read the data of a linker of a trained type."""
    home = Home(kb.home.path.parents[1])
    teacher = _teacher(home, training)
    if training.vectors is not None and training.encoder is None:  # they must have been made
        vectors: Vectors | PartialTextVectors = kb.vectors(training.vectors)
    else:
        vectors = open_text_vectors(kb, training.vectors, encoder=training.encoder, device=device)
    encoder = encoder_for(vectors, device=device)
    reader = SpanReader(encoder, training.reader or usual_reader(training.type, encoder, training.size))
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    sources = [*sources_of(kb, generator, training, progress, device=device)]
    if _teacher(home, training) != teacher:
        raise StaleModel(f"the model {training.teacher} was trained again while it was read: train again")
    texts = with_neighbours(kb, vectors, training.neighbours)
    text_ids = _encode_texts(vectors, texts, sources, progress)
    cache, layers = home.cache / "features", training.ridge.layers
    parts = [
        TrainingSet(reader, source, cache, progress, layers, f"reading set {number}")
        for number, source in enumerate(sources, 1)
    ]

    data = LinkerData(reader, texts, parts, training.ridge, text_ids)
    options: dict[str, Any] = {"device": device, "progress": progress}

    def train(work: Path) -> Outcome:
        first: TrainedRidge | TrainedHead
        if training.type == RIDGE:
            first = train_ridge(data)
        else:
            from kgkit.training.linkers.head import HeadConfig, train_head

            head_config = (training.head or HeadConfig()).for_task(training.task)
            first = train_head(data, head_config, work, **options)
        _warn_of_none_held_out(first, parts)
        second = None
        if training.coherence is not None:  # learns from what a first stage says that has not seen a document
            folds = training.coherence.members
            scores = (
                cross_fit_ridge(data, first.temperature, folds, first.arrays.weights)
                if isinstance(first, TrainedRidge)
                else cross_fit_head(data, head_config, first.temperature, folds, work, **options)
            )
            second = train_coherence(kb, parts[0].labelled, scores, training.coherence, progress)
        save = partial(_save, kb, training, reader, vectors, first, second)
        return Outcome(first.results | _taught_counts(parts) | _measured(second), save)

    made = vectors.manifest.version or vectors.manifest.config  # of those that have no version
    return Plan((kb.build, made, *teacher), train, exclusive=training.type != RIDGE)


def _warn_of_none_held_out(trained: "TrainedRidge | TrainedHead", parts: Sequence[TrainingSet]) -> None:
    """Log why nothing was held out, and what is taken then."""
    if trained.results.get("held_out"):
        return
    documents = len(parts[0].labelled)
    if isinstance(trained, TrainedRidge):
        few = "a single document" if documents == 1 else "too few documents"
        log.warning(
            "%s: none was held out, weights are the usual ones, temperature %g", few, trained.temperature
        )
        return
    few = (
        "fewer than ten documents: none was held out"
        if documents < HELD_OUT
        else "of the documents that were held out no mention has its gold entity among its candidates"
    )
    log.warning("%s, the last epoch is taken, temperature %g", few, trained.temperature)


def _taught_counts(parts: Sequence[TrainingSet]) -> dict[str, float]:
    """Return the number of mentions of which a teacher says what they mean, beside those that have gold."""
    taught = [part for part in parts if part.has_targets]
    if not taught or len(taught) == len(parts):
        return {}  # there are no others, and "mentions" counts them
    return {"mentions_of_teacher": float(sum(len(part.meanings) for part in taught))}


def _teacher(home: Home, training: LinkerTraining) -> tuple[str, ...]:
    """Return what identifies the teacher: a training that was stopped does not go on with another one."""
    if not training.teacher or training.teacher in BUILT_IN:
        return ()
    return (manifest_digest(training.teacher, home, "linker"),)


def _encode_texts(
    vectors: "Vectors | PartialTextVectors",
    texts: "VectorRows",
    sources: Sequence[Sequence[LabelledDocument]],
    progress: Progress | None,
) -> "Ids | None":
    """Encode the texts of all candidates that have no row yet, and return the candidates' ids.

    Args:
        vectors: vectors of texts alone.
        texts: the same as they are read, with those of neighbours perhaps, which are encoded too.
        sources: sets of documents.
        progress: callback with the texts encoded.

    Returns:
        None if *vectors* are published: then nothing is encoded.
    """
    if not isinstance(vectors, PartialTextVectors):
        return None
    ids = candidate_ids(sources)
    vectors.progress = progress
    texts.prepare(ids)
    return ids


def _save(
    kb: "KnowledgeBase",
    training: LinkerTraining,
    reader: SpanReader,
    vectors: "VectorRows",
    trained: "TrainedRidge | TrainedHead",
    second: TrainedSecondStage | None,
    staged: Path,
    _: Mapping[str, Any],
) -> dict[str, Any]:
    """Write a trained linker, and return its fields of the manifest."""
    own_kb = None if trained.arrays is None else kb  # a portable one serves any
    config = asdict(training.ridge)
    if trained.arrays is not None:
        trained.arrays.save(staged)
    if not isinstance(trained, TrainedRidge):
        for head, where in zip(trained.heads, head_folders(len(trained.heads)), strict=True):
            head.save_pretrained(staged / where, half=own_kb is None)
        np.save(staged / SCALE, trained.scale)
        config = {"ridge": config, "head": asdict(trained.config)}
    fields = _fields(own_kb, training, vectors, second, staged)
    return fields | {
        "reader": asdict(reader.config), "config": config, "temperature": trained.temperature
    }  # fmt: skip


def _prepare_coherence(
    kb: "KnowledgeBase", name: str, training: LinkerTraining, device: str, progress: Progress | None
) -> Plan:
    """Read the data of coherence above a type that is not trained."""
    assert training.coherence is not None
    settings = training.coherence
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    labelled = [document for source in sources_of(kb, generator, training, progress) for document in source]
    first: Scorer = PriorScorer()
    if training.type != PriorScorer.name:
        own = open_text_vectors(kb, training.vectors, encoder=training.encoder, device=device)
        first = gloss = GlossScorer.of(kb, own, device=device, config=gloss_config(training.type))
        _encode_texts(own, gloss.vectors, [labelled], progress)

    def train(_: Path) -> Outcome:
        second = train_coherence(kb, labelled, score_documents(first, labelled, progress), settings, progress)
        mentions = sum(bool(right.any()) for document in labelled for right in document.right)

        def save(staged: Path, _: Mapping[str, Any]) -> dict[str, Any]:
            vectors = first.vectors if isinstance(first, GlossScorer) else None
            return {**_fields(kb, training, vectors, second, staged), "reader": {}, "temperature": 1.0}

        return Outcome({"mentions": float(mentions), **_measured(second)}, save)

    return Plan(kb.build, train, exclusive=False)


def _measured(second: TrainedSecondStage | None) -> dict[str, float]:
    """Return the measurements of a second stage."""
    if second is None:
        return {}
    return held_out_metrics(second.scored, second.coherence.temperature) | prior_accuracy(second.scored)


def _fields(
    kb: "KnowledgeBase | None",
    training: LinkerTraining,
    vectors: "VectorRows | None",
    second: TrainedSecondStage | None,
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
        published = vectors is not None and vectors.manifest.version  # others are encoded as they are needed
        own = (f"{kb.name}/{fields['vectors']}",) if published else ()
        needs = Needs(kbs={kb.name: kb.build}, vectors=own)
    coherence = None if second is None else second.coherence.save(staged)
    return {
        **fields,
        "type": training.type,
        "task": training.task,
        "needs": needs,
        "coherence": coherence,
        "neighbours": training.neighbours,
    }
