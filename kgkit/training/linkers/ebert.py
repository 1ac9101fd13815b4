"""Training an E-BERT-MLM: entities are predicted where they are masked (Poerner et al. 2020).

    N  spans of a batch    C  candidates of one

A span teaches the entity that it means, ε if it means nothing; one whose gold is not among its candidates, or
has no vector, teaches nothing, and stands in the text of others as it is. Adam with a linear decay after a
warm-up of 10 %, as published; with the weight decay and the clipped gradient of the released code.

Scores of what is held out are those of one round, without refinement, of the spans that are chosen where some
overlap: F1 for entities (a link that is missed counts, though its gold is no candidate), accuracy for senses.

Departures:
    For senses there is no ε: each mention means something. A span that has several right senses teaches their
    sum. With `packed` all spans of a text that do not overlap are masked in one sequence, see
    `kgkit.inputs.ebert_linking`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.candidates import Generator, generator_for
from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored
from kgkit.heads.ebert import EBert
from kgkit.heads.ebert_linker import EBertLinker, EBertLinkerConfig, EBertLinkerInputs
from kgkit.home import Home
from kgkit.inputs.ebert_linking import CandidateSpan, DocumentPart, EBertLinkingReader
from kgkit.inputs.knowledge import Knowledge
from kgkit.kb import KnowledgeBase
from kgkit.linking.ebert import ENCODER, FOLDER, EBertScorer
from kgkit.linking.ebert_encoder import begin_head
from kgkit.linking.ebert_vectors import vectors_fields
from kgkit.linking.knowbert import knowledge_of
from kgkit.methods.cloze_opening import MaskedLanguageModel, open_masked_lm
from kgkit.methods.contract import group_parameters
from kgkit.methods.ebert_settings import EBertTraining
from kgkit.methods.settings import ChosenKB
from kgkit.models.kinds import EBERT, EBertLinking
from kgkit.models.manifest import Needs
from kgkit.training.batches import Shuffled
from kgkit.training.config import TrainingConfig
from kgkit.training.data import count_items, hold_out_each_tenth
from kgkit.training.job import Outcome, Plan, fit, run_job, scores_by_epoch
from kgkit.training.knowbert.stages import linking_scores
from kgkit.training.linkers.labelled import (
    LabelledDocument,
    MissingGold,
    labelled_senses,
    labelled_spans,
)
from kgkit.training.tasks import about_data, manifest_fields
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.linking.scoring import Scores

Flags = NDArray[np.bool_]

_AT_ONCE = 32  # documents that are scored together


class MaskedExample(NamedTuple):
    """A sequence to learn from.

    Attributes:
        part: part of a document.
        spans: spans whose entities are masked.
        right: for each of them (C,) bool, which candidates are right; none, if it means nothing.
    """

    part: DocumentPart
    spans: tuple[CandidateSpan, ...]
    right: tuple[Flags, ...]


class MaskedBatch(NamedTuple):
    """Sequences, and what their masked entities are.

    Attributes:
        inputs: what the head reads.
        gold: (N, C) bool, and ε behind them where it is a candidate.
    """

    inputs: EBertLinkerInputs
    gold: Tensor

    def to(self, device: torch.device, **_: object) -> "MaskedBatch":
        """Return it on a device."""
        return MaskedBatch(self.inputs.to(device), self.gold.to(device))


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


def train_ebert_linker(
    home: Home,
    name: str,
    training: EBertTraining,
    kbs: Sequence[ChosenKB] = (),
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Train an E-BERT to link (wsd, el), and write it to `models/NAME` of *home*.

    Without epochs nothing is trained: the model is published as it begins, and scored on what would choose
    the epoch, or without that on all data.

    Args:
        home: home that the model is kept in; a training that was stopped goes on there.
        name: name of the model.
        training: settings.
        kbs: the knowledge base, open, with the name of its vectors.
        device: torch device on which it is trained.
        command: command that trains the like.
        progress: function that receives what is done.

    Returns:
        Folder of the model's files, a version of `models/NAME`; it goes when the name is trained again.

    Raises:
        UsageError: if the encoder is no masked language model, or its decoder not tied to its word pieces; if
            vectors, map and encoder do not fit each other; if there is nothing to learn.
        The rest as `kgkit.training.tasks.train_method` does.
    """
    return run_job(
        EBERT, home, name, training,
        lambda stack: _plan(home, training, kbs, device, progress, stack),
        files=training.files, command=command, seed=training.seed,
    )  # fmt: skip


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
        UsageError, NotThere: as `train_ebert_linker` does.
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
    bare, vectors = begin_head(
        encoder, knowledge.vectors[0], align=not training.no_align,
        random_seed=training.seed if training.random_vectors else None,
    )  # fmt: skip
    assert vectors is not None
    ebert = EBert(masked_lm.model, bare.config, bare.weight)
    drawn = torch.Generator().manual_seed(training.seed)
    config = EBertLinkerConfig(width=bare.config.width, null=training.task == "el")
    linker = EBertLinker(ebert, config, drawn).to(encoder.device)
    if training.fresh_head:
        linker.draw_transform(training.seed)
    reader = EBertLinkingReader(
        encoder, vectors, size=training.size, packed=training.packed, prime=training.primes
    )
    return EBertLinkerStart(linker, reader, masked_lm, knowledge)


def _plan(
    home: Home,
    training: EBertTraining,
    kbs: Sequence[ChosenKB],
    device: str,
    progress: Progress | None,
    stack: ExitStack,
) -> Plan:
    """Begin a model, and read its data."""
    start = begin_ebert_linker(home, training, kbs, device, stack)
    learn, held_out = _documents(training, kbs[0].kb, progress)
    null = start.linker.config.null
    examples = list(
        count_items(masked_examples(learn, start.reader, null=null), "reading documents", progress)
    )
    if training.epochs and not examples:
        raise UsageError(
            "there is nothing to learn: no mention has its gold among the candidates with vectors"
        )
    scorer = EBertScorer(start.linker, start.reader, rounds=1, exclusive=null)

    def evaluate(_: Any) -> dict[str, float]:
        lost = sum(document.lost for document in held_out)
        return linking_scores(score_labelled(scorer, held_out), null=null, lost=lost)

    def train(work: Path) -> Outcome:
        if training.epochs:
            trained = fit(
                start.linker, _batches(examples, start.reader, training, null), loss,
                [torch.optim.AdamW(_groups(start.linker, training), fused=True)],
                TrainingConfig(
                    epochs=training.epochs, steps=training.steps, bf16=training.bf16, device=device,
                    seed=training.seed,
                ),
                work,
                evaluate=evaluate if held_out else None,
                progress=progress,
            )  # fmt: skip
            scores = {**scores_by_epoch(trained), "seconds": trained.seconds}
        else:
            own = evaluate(start.linker.eval()) if held_out else {}
            scores = {"best_epoch": 0.0, **own, "epochs": [{"epoch": 0.0, **own}] if own else []}
        return Outcome({**scores, **_counts(examples, held_out)}, save)

    def save(folder: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        start.linker.save_pretrained(folder / FOLDER, about=about_data(training))
        start.masked_lm.encoder.save_tokenizer(folder / FOLDER / ENCODER)
        return {**manifest_fields(training), **fields}

    fields = _fields(training, start)
    decides = ("trained_with", "alignment", "norm", "random_norm")
    return Plan((start.masked_lm.encoder.fingerprint, *(fields[name] for name in decides)), train)


def _fields(training: EBertTraining, start: EBertLinkerStart) -> dict[str, Any]:
    """Return the fields of the manifest that are known before training."""
    kb, [vectors] = start.knowledge.generator.kb, start.knowledge.vectors
    linking = EBertLinking(packed=training.packed, prime=training.primes, rounds=training.rounds)
    return {
        "encoder": training.encoder, "size": training.size, "linking": linking,
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
    """Return the documents to learn from, and those that choose the epoch.

    Raises:
        NotThere, SourceError: if a file is not there, or not what it should be.
        UsageError: if no mention has a right candidate.
    """
    generator = generator_for(
        kb, max_candidates=training.max_candidates or None, overlaps=True, all_surfaces=training.all_surfaces
    )

    def read(data: Sequence[Path], gold: Sequence[Path]) -> list[LabelledDocument]:
        missing = MissingGold(kb)
        source = chain.from_iterable(_labelled(training.task, kb, generator, data, gold, missing))
        documents = list(count_items(source, "looking up documents", progress))
        if data and not any(right.any() for document in documents for right in document.right):
            raise missing.error()
        missing.warn()
        return documents

    learn = read(training.data, training.gold)
    if training.dev:
        return learn, read(training.dev, training.dev_gold)
    if not training.epochs:
        return [], learn
    return hold_out_each_tenth(learn)


def _labelled(
    task: str,
    kb: KnowledgeBase,
    generator: Generator,
    data: Sequence[Path],
    gold: Sequence[Path],
    missing: MissingGold,
) -> "Iterator[Iterator[LabelledDocument]]":
    """Yield the documents of each file; of senses the candidates are those of lemma and part of speech."""
    if task == "el":
        yield from (labelled_spans(kb, generator, path, missing) for path in data)
    else:
        for path, own_gold in zip(data, gold, strict=True):
            yield labelled_senses(kb, generator, path, own_gold, "lemma", missing)


def masked_examples(
    documents: Sequence[LabelledDocument], reader: EBertLinkingReader, *, null: bool
) -> Iterator[MaskedExample]:
    """Yield documents as sequences to learn from; spans that teach nothing are masked in none.

    Args:
        documents: documents whose mentions have candidates.
        reader: reader of documents.
        null: whether a span that means nothing teaches ε.
    """
    for labelled in documents:
        for part in reader.read(labelled.document):
            taught = [
                span
                for span in part.spans
                if labelled.right[span.mention][span.rows].any()
                or (
                    null and not labelled.right[span.mention].any() and span.mention not in labelled.unmatched
                )
            ]
            for spans in reader.passes(part, taught):
                right = tuple(labelled.right[span.mention][span.rows] for span in spans)
                yield MaskedExample(part, spans, right)


def masked_batch(examples: Sequence[MaskedExample], reader: EBertLinkingReader, *, null: bool) -> MaskedBatch:
    """Return examples as a batch."""
    inputs = reader.batch([reader.mask(example.part, example.spans) for example in examples])
    right = [flags for example in examples for flags in _by_position(example)]
    gold = np.zeros((len(right), inputs.candidates.shape[1] + null), np.bool_)
    for row, flags in enumerate(right):
        gold[row, : len(flags)] = flags
        if null and not flags.any():
            gold[row, -1] = True
    return MaskedBatch(inputs, torch.from_numpy(gold))


def _by_position(example: MaskedExample) -> list[Flags]:
    """Return which candidates are right, of the spans as they stand in the text."""
    order = sorted(range(len(example.spans)), key=lambda index: example.spans[index].first)
    return [example.right[index] for index in order]


def _batches(
    examples: Sequence[MaskedExample], reader: EBertLinkingReader, training: EBertTraining, null: bool
) -> Shuffled:
    lengths = [len(example.part.ids) for example in examples]
    return Shuffled(
        examples, training.batch, lambda some: masked_batch(some, reader, null=null), training.seed, lengths
    )


# -- loss and scores --------------------------------------------------------


def loss(model: nn.Module, batch: MaskedBatch) -> tuple[Tensor, float]:
    """Return − log p(gold) as the mean over the spans of a batch, and their number."""
    scores: Tensor = model(batch.inputs)  # (N, C + 1)
    likely = torch.log_softmax(scores.float(), -1).masked_fill(~batch.gold, -torch.inf)
    return -torch.logsumexp(likely, -1).mean(), float(len(scores))


def score_labelled(scorer: EBertScorer, documents: Sequence[LabelledDocument]) -> Scored:
    """Return the probabilities of the candidates of each mention, and which are right; ε is behind them.

    Without ε, mentions none of whose candidates is right are left out.

    Args:
        scorer: scorer of documents.
        documents: documents whose mentions have candidates.
    """
    null, scored = scorer.scores_null, list[tuple["Scores", Flags]]()
    for begin in range(0, len(documents), _AT_ONCE):
        some = documents[begin : begin + _AT_ONCE]
        for labelled, results in zip(some, scorer([each.document for each in some]), strict=True):
            for scores, right in zip(results, labelled.right, strict=True):
                if null:
                    rest = np.float32(1 - scores.sum())
                    scored.append((np.append(scores, rest), np.append(right, not right.any())))
                elif right.any():
                    scored.append((scores, right))
    return scored


def _groups(linker: EBertLinker, training: EBertTraining) -> list[dict[str, Any]]:
    """Return the parameters: all have one learning rate, as published."""
    return group_parameters(linker, set(map(id, linker.parameters())), training)
