"""The type `rerank`: what another linker thinks likeliest is read together, and scored again.

Encoder and head are trained together, by the cross entropy of the best candidates of each mention (listwise).
A mention with one candidate, or whose right one is not among the best, teaches nothing. Documents that are
held out choose the epoch and the temperature.

The first stage is not trained here: it is `prior`, `gloss`, a model that comes with kgkit, or one that was
trained on other documents. On those that it has seen it is surer than on others, and would be trusted too
much.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgkit.candidates import generator_for
from kgkit.catalog.runs import sha256_of
from kgkit.embedding.text import TextConfig
from kgkit.encoder.folder import ENCODER
from kgkit.errors import StaleModel, UsageError
from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.heads.reranker import Reranker, RerankerConfig, RerankerInputs
from kgkit.home import Home
from kgkit.inputs.reranking import RerankingReader
from kgkit.linking.models import find_scorer
from kgkit.linking.rerank import (
    HEAD,
    MAX_BEST,
    BestCandidates,
    RerankReading,
    best_candidates,
    first_digest,
    reader_of,
    score_sequences,
    text_fingerprint,
)
from kgkit.linking.scoring import Scorer, Scores
from kgkit.models.encoders import load_encoder
from kgkit.models.folder import BUILT_IN, SHIPPED, find_model_folder, lasting_name
from kgkit.models.manifest import ModelManifest, Needs, read_header
from kgkit.ranges import check_range
from kgkit.setting_types import convert_settings
from kgkit.training.batches import Shuffled
from kgkit.training.config import TrainingConfig, check_seed
from kgkit.training.data import held_out_interval
from kgkit.training.job import Outcome, Plan
from kgkit.training.linkers.cross_fitting import score_documents
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.ridge import held_out_metrics
from kgkit.training.linkers.sources import sources_of
from kgkit.training.loop import train
from kgkit.types import LEAST_PRIOR, Progress
from kgkit.versions import read_current

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.kb import KnowledgeBase
    from kgkit.training.linkers.settings import LinkerTraining

log = logging.getLogger(__name__)

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class RerankConfig:
    """Settings of the training.

    Attributes:
        encoder: name of the encoder that it begins as.
        best: how many candidates are read together.
        context: word pieces around the mention.
        length: word pieces of the text of a candidate.
        control: whether no text is read, so that only the first stage's scores are weighed anew.
        epochs: number of times that all mentions are read.
        batch: mentions of a step.
        lr, lr_new: highest learning rates of AdamW, of the encoder and of what is new on it.
        decay: weight decay.
        dropout: dropout of what is new; the encoder keeps its own.
        bf16: whether products are in bfloat16; auto: where the device is made for it.
        seed: seed of weights, order and dropout.
    """

    encoder: str = TextConfig.encoder
    best: int = 5
    context: int = 64
    length: int = 32
    control: bool = False
    epochs: int = 2
    batch: int = 16
    lr: float = 5e-5
    lr_new: float = 1e-3
    decay: float = 0.01
    dropout: float = 0.1
    bf16: bool | Literal["auto"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, "best", least=2, most=MAX_BEST)
        check_range(self, "context", "length", "epochs", "batch", least=1)
        check_range(self, "decay", "seed", least=0)
        check_range(self, "lr", "lr_new", above=0)
        check_range(self, "dropout", least=0, below=1)
        check_seed(self.seed)
        convert_settings(self)


class RerankExample(NamedTuple):
    """A mention of the data.

    Attributes:
        best: the candidates that are read together; None if the first stage decides.
        right: (C,) which of them are right; of what the first stage decides, of all that the mention has.
        first: (C,) the first stage's scores of the same.
    """

    best: BestCandidates | None
    right: Flags
    first: Scores

    @property
    def is_trainable(self) -> bool:
        """Whether something is to be learnt from it."""
        return self.best is not None and bool(self.right.any())


class RerankBatch(NamedTuple):
    """Mentions, and which of their candidates are right, (B, C) bool."""

    inputs: RerankerInputs
    right: Tensor

    def to(self, device: torch.device, **_: object) -> "RerankBatch":
        """Return them on a device."""
        return RerankBatch(self.inputs.to(device), self.right.to(device))


def plan_rerank(
    kb: "KnowledgeBase", name: str, training: "LinkerTraining", device: str, progress: Progress | None
) -> Plan:
    """Read the data of a re-ranker, with the scores of its first stage, and begin it.

    Args:
        kb: knowledge base that is linked to.
        name: name of the model.
        training: settings, with a first stage.
        device: torch device on which it is trained.
        progress: callback with what is done.

    Raises:
        UsageError: if the first stage has learnt from the same files, nothing is to be learnt, or the encoder
            cannot read so many word pieces, or not where it is told to.
        UnknownName, NotThere, SourceError: if there is no such model, encoder or file.
    """
    settings = training.rerank or RerankConfig()
    home = Home(kb.home.path.parents[1])
    check_first_stage(training, home)
    encoder = load_encoder(settings.encoder, home, device=device)
    settings = replace(settings, context=training.size or settings.context)
    reading = RerankReading(best=settings.best, context=settings.context, length=settings.length)
    template = TextConfig.template
    reader = reader_of(kb, encoder, reading, template)
    drawn = torch.Generator().manual_seed(settings.seed)
    config = RerankerConfig.of(encoder.model, control=settings.control, dropout=settings.dropout)
    reranker = Reranker(encoder.model, config, generator=drawn)
    digest = first_digest(training.first, kb)
    first = find_scorer(training.first, kb, vectors=training.vectors, device=device)
    learn, held_out = _examples(kb, training, first, reader, reading, device, progress)
    if first_digest(training.first, kb) != digest:
        raise StaleModel(f"the model {training.first} was trained again while it read the data: train again")
    read_by = text_fingerprint(first)
    first_name = lasting_name(home, training.first)
    needs = Needs(linker="" if first_name in BUILT_IN else first_name)

    def train_in(work: Path) -> Outcome:
        results = fit_reranker(
            reranker, reader, learn, held_out, settings, work, device=device, progress=progress
        )
        temperature = results.pop("temperature")

        def save(staged: Path, _: Mapping[str, Any]) -> dict[str, Any]:
            _save_model(reranker, encoder, staged)
            return {
                "type": training.type, "task": training.task, "needs": needs, "encoder": settings.encoder,
                "first": first_name, "first_sha256": digest, "vectors": training.vectors or "",
                "version": "", "fingerprint": encoder.fingerprint,
                "texts": {"template": template, "first_fingerprint": read_by},
                "reader": msgspec.to_builtins(reading), "config": asdict(settings),
                "temperature": temperature,
            }  # fmt: skip

        return Outcome(results, save)

    return Plan((kb.build, encoder.fingerprint, digest, read_by, template), train_in, needs=needs)


def check_first_stage(training: "LinkerTraining", home: Home) -> None:
    """Make sure that the first stage has not learnt from the files of a training.

    Of a model that comes with kgkit, which nobody here can train anew, a warning says so.

    Raises:
        UsageError: if it has.
        UnknownName, NotThere: if there is no such model.
    """
    first, checked = training.first, set[str]()
    digests = [(path.name, sha256_of(path)) for path in training.data if path.exists()]
    while first and first not in BUILT_IN and first not in checked:
        checked.add(first)
        folder = partial(find_model_folder, first, home, "linker")
        header, is_shipped = read_current(folder, _read_header)
        learnt = set(header.data.values())
        if files := [name for name, digest in digests if digest in learnt]:
            what = f"the model {first} has learnt from {', '.join(files)}: there it is surer than elsewhere"
            if not is_shipped:
                raise UsageError(f"{what}. Train it on other documents, or name --first gloss")
            log.warning("%s, and may be trusted too much", what)
        first = header.needs.linker  # of a re-ranker above another one


def _read_header(folder: Path) -> tuple[ModelManifest, bool]:
    """Return what the model in *folder* says of itself, and whether it comes with kgkit."""
    return read_header(folder), folder.is_relative_to(SHIPPED)


def fit_reranker(
    reranker: Reranker,
    reader: RerankingReader,
    learn: Sequence[RerankExample],
    held_out: Sequence[RerankExample],
    settings: RerankConfig,
    work: Path,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train a re-ranker in place, and return what was measured, with its temperature.

    Args:
        reranker: the head as it begins.
        reader: reader of mentions and candidates.
        learn: mentions to learn from.
        held_out: mentions that choose the epoch and the temperature.
        settings: settings.
        work: folder for checkpoints: a training that was stopped goes on there.
        device: torch device.
        progress: callback with the steps done.

    Raises:
        UsageError: if nothing is to be learnt.
    """
    examples = [example for example in learn if example.is_trainable]
    if not examples:
        raise UsageError(
            "there is nothing to learn: no mention has several candidates with the right one among the best"
        )
    lengths = [example.best.sequence.length for example in examples if example.best is not None]
    batches = Shuffled(examples, settings.batch, partial(_batch, reader), settings.seed, lengths)
    groups = [
        {"params": parameters, "lr": rate}
        for part, rate in ((reranker.kbert, settings.lr), (reranker.scorer, settings.lr_new))
        if (parameters := [each for each in part.parameters() if each.requires_grad])
    ]

    def evaluate(model: Reranker) -> dict[str, float]:
        return {
            "accuracy": held_out_metrics(scored_examples(model, reader, held_out), 1.0)["held_out_accuracy"]
        }

    if not held_out:
        log.warning("fewer than ten documents: none was held out, the last epoch is taken, temperature 1")
    trained = train(
        reranker, batches, loss,
        [torch.optim.AdamW(groups, weight_decay=settings.decay, fused=True)],
        TrainingConfig(epochs=settings.epochs, bf16=settings.bf16, device=device, seed=settings.seed),
        work, evaluate=evaluate if held_out else None, progress=progress, resume=True,
    )  # fmt: skip
    scored = scored_examples(reranker, reader, held_out)
    temperature = best_temperature(scored)
    results = {
        "mentions": float(len(examples)),
        "seconds": trained.seconds,
        **held_out_metrics(scored, temperature),
    }
    if held_out:
        results["first_stage_accuracy"] = float(
            np.mean([example.right[example.first.argmax()] for example in held_out])
        )
    if trained.best is not None:
        results["best_epoch"] = trained.best["epoch"]
    return {**results, "temperature": temperature}


def loss(model: nn.Module, batch: RerankBatch) -> tuple[Tensor, float]:
    """Return − log p(right) among the candidates, as the mean over the mentions, and their number."""
    scores: Tensor = model(batch.inputs)  # (B, C)
    likely = torch.log_softmax(scores.float(), -1).masked_fill(~batch.right, -torch.inf)
    return -torch.logsumexp(likely, -1).mean(), float(len(scores))


def scored_examples(reranker: Reranker, reader: RerankingReader, examples: Sequence[RerankExample]) -> Scored:
    """Return the scores of the best candidates of each mention, and which are right.

    Of a mention that the first stage decides they are the logarithms of its scores.
    """
    read = [example.best.sequence for example in examples if example.best is not None]
    scores = iter(score_sequences(reranker, reader, read))
    return [
        (
            np.log(np.maximum(example.first, LEAST_PRIOR)) if example.best is None else next(scores),
            example.right,
        )
        for example in examples
    ]


def _batch(reader: RerankingReader, examples: Sequence[RerankExample]) -> RerankBatch:
    inputs = reader.batch([example.best.sequence for example in examples if example.best is not None])
    right = np.zeros(tuple(inputs.candidates.shape), np.bool_)
    for row, example in zip(right, examples, strict=True):
        row[: len(example.right)] = example.right
    return RerankBatch(inputs, torch.from_numpy(right))


def _save_model(reranker: Reranker, encoder: "Encoder", staged: Path) -> None:
    """Write head and encoder side by side, as a linker has them."""
    reranker.save_pretrained(staged / HEAD)
    (staged / HEAD / ENCODER).rename(staged / ENCODER)
    encoder.save_tokenizer(staged / ENCODER)


# -- data -------------------------------------------------------------------


def _examples(
    kb: "KnowledgeBase",
    training: "LinkerTraining",
    first: Scorer,
    reader: RerankingReader,
    reading: RerankReading,
    device: str,
    progress: Progress | None,
) -> tuple[list[RerankExample], list[RerankExample]]:
    """Return the mentions to learn from, and those that are held out, with the scores of the first stage."""
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    learn: list[RerankExample] = []
    held_out: list[RerankExample] = []
    for number, source in enumerate(sources_of(kb, generator, training, progress, device=device)):
        scores = score_documents(first, source, progress)
        mentions = sum(len(document.right) for document in source)
        interval = held_out_interval(len(source), mentions)
        for count, (labelled, own) in enumerate(zip(source, scores, strict=True), 1):
            is_held_out = number == 0 and count % interval == 0
            (held_out if is_held_out else learn).extend(examples_of(reader, labelled, own, reading.best))
    return learn, held_out


def examples_of(
    reader: RerankingReader, labelled: LabelledDocument, scores: Sequence[Scores], best: int
) -> Iterator[RerankExample]:
    """Yield the mentions of a document that have a right candidate.

    Args:
        reader: reader of mentions and candidates.
        labelled: document.
        scores: for each mention the first stage's scores of its candidates.
        best: how many candidates are read together.
    """
    chosen = best_candidates(reader, labelled.document, scores, best)
    for each, right, own in zip(chosen, labelled.right, scores, strict=True):
        if right.any():
            rows = slice(None) if each is None else each.rows
            yield RerankExample(each, right[rows], own[rows])
