"""Training an E-BERT-MLM: entities are predicted where they are masked (Poerner et al. 2020).

What is learnt from, and the loss, are in `kgkit.training.linkers.ebert_examples`. Adam with a linear decay
after a warm-up of 10 %, as published; with the weight decay and the clipped gradient of the released code.

Scores of what is held out are those of one round, without refinement, of the spans that are chosen where some
overlap: F1 for entities (a link that is missed counts, though its gold is no candidate), accuracy for senses.

Departures:
    For senses there is no ε: each mention means something. A span that has several right senses teaches their
    sum. With `packed` all spans of a text that do not overlap are masked in one sequence, see
    `kgkit.inputs.ebert_linking`.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch

from kgkit.candidates import generator_for
from kgkit.encoder.folder import ENCODER
from kgkit.errors import UsageError
from kgkit.heads.ebert_linker import EBertLinker, EBertLinkerConfig
from kgkit.home import Home
from kgkit.inputs.ebert_linking import EBertLinkingReader
from kgkit.inputs.knowledge import Knowledge, knowledge_of
from kgkit.kb import KnowledgeBase
from kgkit.methods.cloze_opening import MaskedLanguageModel, open_masked_lm
from kgkit.methods.contract import Resources, group_parameters
from kgkit.methods.ebert_encoder import begin_head
from kgkit.methods.ebert_linking import FOLDER, EBertScorer, vectors_fields
from kgkit.methods.ebert_settings import EBertTraining
from kgkit.methods.settings import ChosenKB
from kgkit.models.manifest import Needs
from kgkit.training.batches import Shuffled
from kgkit.training.data import count_items, hold_out_each_tenth
from kgkit.training.job import Outcome, Plan, scores_by_epoch
from kgkit.training.knowbert.stages import linking_scores
from kgkit.training.linkers.ebert_examples import (
    MaskedExample,
    loss,
    masked_batch,
    masked_examples,
    score_labelled,
)
from kgkit.training.linkers.labelled import LabelledDocument, labelled_files
from kgkit.training.tasks import fit_method, manifest_fields
from kgkit.types import Progress


class EBertLinkerStart(NamedTuple):
    """An E-BERT-MLM before it is trained.

    Attributes:
        linker: the head.
        reader: reader of documents.
        masked_lm: masked language model that it begins as.
        knowledge: knowledge base with its vectors.
    """

    linker: EBertLinker
    reader: EBertLinkingReader
    masked_lm: MaskedLanguageModel
    knowledge: Knowledge


def begin_ebert_linker(
    home: Home, training: EBertTraining, kbs: Sequence[ChosenKB], device: str, stack: ExitStack
) -> EBertLinkerStart:
    """Return an E-BERT-MLM as it is before it is trained.

    Args:
        home: home of the masked language model, if it is one that kgkit has trained.
        training: settings.
        kbs: the knowledge base with the name of its vectors.
        device: torch device.
        stack: stack for what is opened.

    Raises:
        UsageError, NotThere: as `plan_ebert_linker` does.
    """
    if len(kbs) != 1 or len(kbs[0].vectors) != 1:
        raise UsageError(
            f"{training.task} predicts entities by one kind of vectors of one knowledge base: name one with "
            "--kb, and one with --vectors"
        )
    [chosen] = kbs
    knowledge = knowledge_of(chosen.kb, chosen.vectors)
    masked_lm = stack.enter_context(open_masked_lm(training.encoder, home, device))
    encoder = masked_lm.encoder
    ebert, vectors = begin_head(encoder, knowledge.vectors[0], around=masked_lm.model)
    assert vectors is not None
    drawn = torch.Generator().manual_seed(training.seed)
    config = EBertLinkerConfig(width=ebert.config.width, null=training.task == "el")
    linker = EBertLinker(ebert, config, drawn).to(encoder.device)
    reader = EBertLinkingReader(encoder, vectors, size=training.size)
    return EBertLinkerStart(linker, reader, masked_lm, knowledge)


def plan_ebert_linker(training: EBertTraining, resources: Resources, progress: Progress | None) -> Plan:
    """Begin an E-BERT that links (wsd, el), and read its data.

    Args:
        training: settings.
        resources: home and device; its knowledge base, with the name of its vectors, is linked to.
        progress: as `kgkit.training.tasks.train_method` takes it.

    Raises:
        UsageError: if the encoder is no masked language model, or its decoder not tied to its word pieces; if
            vectors, map and encoder do not fit each other; if there is nothing to learn.
        The rest as `train_method` does.
    """
    home, kbs, device, stack = resources
    start = begin_ebert_linker(home, training, kbs, device, stack)
    learn, held_out = _documents(training, kbs[0].kb, progress)
    null = start.linker.config.null
    examples = list(
        count_items(masked_examples(learn, start.reader, null=null), "reading documents", progress)
    )
    if not examples:
        raise UsageError(
            "there is nothing to learn: no mention has its gold among the candidates with vectors"
        )
    batches = Shuffled(
        examples, training.batch, lambda some: masked_batch(some, start.reader, null=null), training.seed,
        [len(example.part.ids) for example in examples],
    )  # fmt: skip
    scorer = EBertScorer(start.linker, start.reader, exclusive=null)

    def evaluate(_: Any) -> dict[str, float]:
        lost = sum(document.lost for document in held_out)
        return linking_scores(score_labelled(scorer, held_out), null=null, lost=lost)

    def train(work: Path) -> Outcome:
        # All parameters have one learning rate, as published.
        groups = group_parameters(start.linker, set(map(id, start.linker.parameters())), training)
        trained = fit_method(
            start.linker, batches, loss, groups, training, work, device=device,
            evaluate=evaluate if held_out else None, progress=progress,
        )  # fmt: skip
        scores = {**scores_by_epoch(trained), "seconds": trained.seconds}
        return Outcome({**scores, **_counts(examples, held_out)}, save)

    def save(folder: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        start.linker.save_pretrained(folder / FOLDER)
        start.masked_lm.encoder.save_tokenizer(folder / FOLDER / ENCODER)
        return {**manifest_fields(training), **fields}

    fields = _fields(training, start)
    decides = ("trained_with", "alignment", "norm")
    return Plan((start.masked_lm.encoder.fingerprint, *(fields[name] for name in decides)), train)


def _fields(training: EBertTraining, start: EBertLinkerStart) -> dict[str, Any]:
    """Return the fields of the manifest that are known before training."""
    kb, [vectors] = start.knowledge.generator.kb, start.knowledge.vectors
    return {
        "encoder": training.encoder, "size": training.size, "packed": True,
        "needs": Needs(kbs={kb.name: kb.build}, vectors=(vectors.name,)),
        "trained_with": {kb.name: start.knowledge.about},
        **vectors_fields(start.linker.ebert, start.reader.vectors),
    }  # fmt: skip


def _counts(examples: Sequence[MaskedExample], held_out: Sequence[LabelledDocument]) -> dict[str, int]:
    """Return how much was learnt from, and held out."""
    return {
        "sequences": len(examples),
        "spans": sum(len(example.spans) for example in examples),
        "entities": sum(bool(right.any()) for example in examples for right in example.right),
        "held_out": sum(len(document.right) for document in held_out),
    }


# -- data -------------------------------------------------------------------


def _documents(
    training: EBertTraining, kb: KnowledgeBase, progress: Progress | None
) -> tuple[list[LabelledDocument], list[LabelledDocument]]:
    """Return the documents to learn from, and those that choose the epoch; of senses by gold lemmas.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if no mention has a right candidate.
    """
    generator = generator_for(kb, overlaps=True)

    def read(data: Sequence[Path], gold: Sequence[Path]) -> list[LabelledDocument]:
        return labelled_files(kb, generator, data, gold, progress, lemmas=True)

    learn = read(training.data, training.gold)
    if training.dev:
        return learn, read(training.dev, training.dev_gold)
    return hold_out_each_tenth(learn)
