"""Training a linker: from data to a model's folder.

    names of entities   what `links-minilm` scores, adapted to the data: `joint`

Of dictionaries, and where an encoder or vectors are named:

    texts of entities   means of contexts and a map to them, in seconds: `ridge`
    many mentions       a network beside these: `head`

Figures: docs/decisions/one-linker-that-learns.md.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from kgkit.candidates import Generator, generator_for
from kgkit.embedding.partial import PartialTextVectors, encoder_for
from kgkit.evaluation.examples import HELD_OUT
from kgkit.home import Home
from kgkit.inputs import SpanReader
from kgkit.linking.corrections import Corrections
from kgkit.linking.neighbour_texts import with_neighbours
from kgkit.linking.ridge import KIND as RIDGE
from kgkit.linking.text_vectors import open_text_vectors
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import Needs
from kgkit.training.data import count_items, hold_out_each_tenth
from kgkit.training.job import Outcome, Plan, check_not_replaced, run_job
from kgkit.training.linkers.comparison import COMPARED, HELPS, accuracy_rows, check_not_worse
from kgkit.training.linkers.joint import is_adapted, plan_adaptation
from kgkit.training.linkers.labelled import (
    LabelledDocument,
    MissingGold,
    labelled_entities,
    labelled_examples,
    labelled_senses,
    letters,
    none_corrected,
)
from kgkit.training.linkers.means import LinkerData, TrainingSet, candidate_ids
from kgkit.training.linkers.ridge import TrainedRidge, train_ridge
from kgkit.training.linkers.settings import LinkerTraining, command_of, usual_reader
from kgkit.training.linkers.threshold import plan_threshold
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.training.linkers.head import TrainedHead
    from kgkit.types import Ids
    from kgkit.vectors import Vectors
    from kgkit.vectors.layout import VectorRows

log = logging.getLogger(__name__)

FEWEST: Final = 5_000
"""Mentions from which a network is trained beside the means; of fewer it learns nothing of its own."""

BALANCE: Final = 0.5
"""`LinkerData.balance` for senses: without it rare senses lose six points, with 1 frequent ones lose more."""

HYPERNYM: Final = "hypernym"
"""The relation by which texts of neighbours are read, where a knowledge base of senses has it."""


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
        UsageError: if *name* cannot name a model, or there are no training examples.
        UnknownName: if there is no such tagger.
        NotThere: if the vectors, the encoder or a file do not exist.
        SourceError: if a file is not of its format.
        KBBusy: if another process trains the same.
        BuildFailed: if the linker is worse on what was held out than linking without training, and not kept
            all the same; an older model of that name is unchanged.
        WriteFailed: if the disk is full or fails; an older model of that name is unchanged.
    """
    home = Home(kb.home.path.parents[1])
    check_not_replaced(home, name, [training.mentions])
    adapted = is_adapted(kb, training)

    def prepare(_: ExitStack) -> Plan:
        if adapted:
            begin = partial(plan_adaptation, kb, name, training, device, progress)
        else:
            begin = partial(_plan_over_encoder, kb, training, device, progress)
        if not training.mentions:
            return begin() if adapted else _compared(begin(), name, training)
        return plan_threshold(begin, kb, name, training, device=device, progress=progress)

    return run_job(
        LINKER, home, name, training, prepare,
        files=training.files, command=command_of(kb.name, name, training),
        seed=None if adapted else training.seed,
    )  # fmt: skip


def _compared(plan: Plan, name: str, training: LinkerTraining) -> Plan:
    """Return a plan that fails where the linker is worse than no training, and keeps the comparison."""

    def train(work: Path) -> Outcome:
        outcome = plan.train(work)
        rows = accuracy_rows(name, outcome.results)
        helps = check_not_worse(name, rows, keep=training.keep)
        return outcome._replace(results={**outcome.results, COMPARED: to_builtins(rows), HELPS: helps})

    return plan._replace(train=train)


def sources_of(
    kb: "KnowledgeBase", generator: Generator, training: LinkerTraining, progress: Progress | None
) -> Iterator[Sequence[LabelledDocument]]:
    """Yield the sets of documents: data; for senses the usage examples of *kb* that are not among these.

    Gold entities that *kb* does not have are warned of.

    Raises:
        NotThere: if a file is not there.
        SourceError: if a file is not what it should be.
        UsageError: if no mention has a right candidate.
    """
    missing = MissingGold(kb)
    if training.gold:
        pairs = zip(training.data, training.gold, strict=True)
        parts = [labelled_senses(kb, generator, data, gold, missing, lemmas=True) for data, gold in pairs]
    else:
        path = training.corrections
        corrections = None if path is None else Corrections.open(kb, path)
        parts = [labelled_entities(kb, generator, data, missing, corrections) for data in training.data]
    listed = list(count_items(chain.from_iterable(parts), "looking up documents", progress))
    if training.corrections is not None and not listed:
        raise none_corrected(training.data, training.corrections)
    yield missing.check(hold_out_each_tenth(listed).learn if training.mentions else listed)
    if training.gold:
        documents = [labelled.document for labelled in listed]
        seen = frozenset(
            letters(document.text[begin:end])
            for document in documents
            for begin, end in document.sentences or ()
        )
        examples = labelled_examples(kb, generator, without=seen)
        if usage := list(count_items(examples, "looking up examples", progress)):
            yield usage


def _plan_over_encoder(
    kb: "KnowledgeBase", training: LinkerTraining, device: str, progress: Progress | None
) -> Plan:
    """Read the data of a linker that reads texts of entities."""
    home = Home(kb.home.path.parents[1])
    if training.vectors is not None and training.encoder is None:  # they must have been made
        vectors: Vectors | PartialTextVectors = kb.vectors(training.vectors)
    else:
        vectors = open_text_vectors(kb, training.vectors, encoder=training.encoder, device=device)
    encoder = encoder_for(vectors, device=device)
    reader = SpanReader(encoder, training.reader or usual_reader(encoder))
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    sources = [*sources_of(kb, generator, training, progress)]
    senses = training.task == "wsd"
    neighbours = (HYPERNYM,) if senses and HYPERNYM in kb.relations else ()
    texts = with_neighbours(kb, vectors, neighbours)
    text_ids = _encode_texts(vectors, texts, sources, progress)
    parts = [
        TrainingSet(reader, source, home.cache / "features", progress, f"reading set {number}")
        for number, source in enumerate(sources, 1)
    ]
    balance = BALANCE if senses else 0.0
    data = LinkerData(reader, texts, parts, text_ids, counted_priors=senses, balance=balance)

    def train(work: Path) -> Outcome:
        first: TrainedRidge | TrainedHead
        if sum(len(part.meanings) for part in parts) < FEWEST:
            first = train_ridge(data)
        else:
            from kgkit.training.linkers.head import HeadConfig, train_head

            config = HeadConfig(training.epochs, training.seed)
            first = train_head(data, config, work, device=device, progress=progress)
        _warn_of_none_held_out(first, len(parts[0].labelled))
        save = partial(_save, kb, training, reader, vectors, neighbours, first)
        return Outcome(first.results, save)

    made = vectors.manifest.version or vectors.manifest.config  # of those that have no version
    return Plan((kb.build, made), train)


def _warn_of_none_held_out(trained: "TrainedRidge | TrainedHead", documents: int) -> None:
    """Log why nothing was held out, and what is taken then."""
    if trained.results.get("held_out"):
        return
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
    neighbours: tuple[str, ...],
    trained: "TrainedRidge | TrainedHead",
    staged: Path,
    _: Mapping[str, Any],
) -> dict[str, Any]:
    """Write a linker that reads texts, and return its fields of the manifest."""
    about, config = vectors.manifest, vectors.manifest.config
    # Vectors without a version are encoded as they are needed.
    own = (f"{kb.name}/{about.name}",) if about.version else ()
    fields: dict[str, Any] = {
        "vectors": about.name, "version": about.version,
        "texts": {"template": config["template"], "kinds": list(config.get("kinds", ()))},
        "encoder": config["encoder"], "fingerprint": config["fingerprint"], "task": training.task,
        "needs": Needs(kbs={kb.name: kb.build}, vectors=own),
        "reader": to_builtins(reader.config), "temperature": trained.temperature, "neighbours": neighbours,
    }  # fmt: skip
    trained.arrays.save(staged)
    if isinstance(trained, TrainedRidge):
        return {**fields, "type": RIDGE, "config": {}}
    from kgkit.linking.head import KIND, save_head

    return {**fields, "type": KIND, "config": save_head(staged, trained.head, trained.scale)}
