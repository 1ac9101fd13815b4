"""Training a tagger: from files of CoNLL-2003, or plain text and another tagger, to a model's folder.

    n  windows of a batch    W  words of the one with most    N  words of a document

Learnt are the encoder and what stands on it, together, from the labels of all words.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.files import check_data
from kgkit.evaluation.ner import Name, NamedDocument, read_names
from kgkit.evaluation.plain_text import check_plain, read_plain
from kgkit.home import Home
from kgkit.inputs.tagging import SHAPES, TaggingConfig, TaggingWindow, WordReader, tagger_inputs
from kgkit.models.folder import manifest_digest
from kgkit.models.kinds import TAGGER
from kgkit.ranges import check_range
from kgkit.tagging.mention_tagger import MentionTagger, TaggedMention
from kgkit.tagging.tagger import HEAD, Tagger, score_tagger
from kgkit.training.config import TrainingConfig
from kgkit.training.curve import TrainingState
from kgkit.training.data import count_items, hold_out_each_tenth
from kgkit.training.job import Outcome, Plan, check_not_replaced, fit, run_job, scores_by_epoch
from kgkit.types import Document, Numbers, Progress

if TYPE_CHECKING:
    from torch import Tensor, nn

    from kgkit.heads.tagger import TaggerInputs, WordTagger


log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TaggerTraining:
    """What a tagger is trained on, and how.

    Attributes:
        data: files of documents to learn from.
        dev: files whose documents choose the epoch; none: one document in ten of the data, which are then
            not learnt from.
        teacher: trained tagger, as a KALM, whose names in plain text are learnt; the files are plain text
            then. "": the files have names.
        encoder: encoder that is fine-tuned: a folder, a package or a hub id.
        reader: settings of the reading.
        shapes: whether pieces get the shapes of their words; None: if they have lost the case of letters.
        epochs: most epochs; after `patience` of them in a row without a gain the training stops; 0: it does
            not.
        lr: learning rate of the encoder; lr_new: of what begins from nothing.
        batch: word pieces of a step.
        decay: weight decay of AdamW.
        dropout: dropout of the vectors that labels are read from.
        bf16: whether products are in bfloat16; auto: where the device is made for it.
        seed: seed of weights, order and dropout.
    """

    data: tuple[Path, ...]
    dev: tuple[Path, ...] = ()
    teacher: str = ""
    encoder: str
    reader: TaggingConfig = field(default_factory=TaggingConfig)
    shapes: bool | None = None
    epochs: int = 4
    patience: int = 2
    lr: float = 2e-4
    lr_new: float = 1e-3
    batch: int = 1024
    decay: float = 0.01
    dropout: float = 0.1
    bf16: bool | Literal["auto"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_data(self.data)
        check_range(self, "epochs", "batch", least=1)
        check_range(self, "patience", "seed", "decay", least=0)
        check_range(self, "lr", "lr_new", above=0)

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that are read."""
        return (*self.data, *self.dev)


class LabelledWindow(NamedTuple):
    """A window with the labels (W,) of its own words."""

    window: TaggingWindow
    labels: Numbers


def train_tagger(
    home: Home,
    name: str,
    training: TaggerTraining,
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Train a tagger, and write it to `models/NAME` of *home*, in the place of an older one.

    Args:
        home: home of the models; a training that was stopped goes on there.
        name: name of the tagger.
        training: data and settings.
        device: torch device on which it is trained.
        command: command that trains the like.
        progress: function that receives what is done.

    Returns:
        Folder of the model's files, as `run_job` returns it, which has the errors too; UsageError if there is
        no name in the texts.
    """
    return run_job(
        TAGGER, home, name, training, lambda _: _prepare(home, name, training, device, progress),
        files=training.files, command=command, seed=training.seed,
    )  # fmt: skip


def _prepare(home: Home, name: str, training: TaggerTraining, device: str, progress: Progress | None) -> Plan:
    """Read the data, and begin a tagger."""
    import torch

    from kgkit.heads.settings import WordTaggerConfig
    from kgkit.heads.tagger import WordTagger

    check_not_replaced(home, name, [training.teacher])  # before the teacher reads all data
    learn, dev, teacher = _documents(home, training, device, progress)
    types = tuple(sorted({name.type for document in learn for name in document.names}))
    if not types:
        if training.teacher:
            raise UsageError(
                f"the teacher {training.teacher} finds no name in the data: nothing can be learnt from them; "
                f"`kgkit tag --model {training.teacher} FILE` shows what it finds"
            )
        raise UsageError("there is no name in the data: nothing can be learnt from them")
    encoder = Encoder.load(training.encoder, device=device)
    reader = WordReader(encoder, training.reader)
    shapes = reader.loses_case() if training.shapes is None else training.shapes
    config = WordTaggerConfig(
        types=types, shapes=len(SHAPES) if shapes else 0, lowercase=reader.lowercase, dropout=training.dropout
    )
    head = WordTagger(encoder, config, torch.Generator().manual_seed(training.seed))
    windows = [window for document in learn for window in label_windows(document, reader, types)]

    def scored(model: Any) -> dict[str, float]:
        scores = score_tagger(Tagger(model, reader, name=name), dev)
        return {"f1": scores.overall.f1, "span_f1": scores.spans.f1}

    def train(work: Path) -> Outcome:
        trained = fit(
            head, _Batches(windows, training.batch, training.seed, reader.padding, shapes), _loss,
            [torch.optim.AdamW(_groups(head, training), weight_decay=training.decay)],
            TrainingConfig(epochs=training.epochs, patience=training.patience, bf16=training.bf16,
                           device=device, seed=training.seed),
            work,
            evaluate=scored if dev else None,
            progress=progress,
        )  # fmt: skip
        results = _results(trained, windows, learn, dev)
        if dev and not results["f1"]:
            log.warning(
                "%s finds none of the names of the documents that it has not learnt from, after %d steps: it "
                "wants more sentences, or more epochs",
                name,
                trained.steps,
            )
        return Outcome(results, save)

    def save(staged: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        head.save_pretrained(staged / HEAD)
        return {
            "types": types,
            "encoder": training.encoder,
            "fingerprint": encoder.fingerprint,
            "reader": asdict(reader.config),
            "config": msgspec.to_builtins(asdict(training), enc_hook=str),
        }

    return Plan((encoder.fingerprint, teacher) if teacher else encoder.fingerprint, train)


def label_windows(named: NamedDocument, reader: WordReader, types: Sequence[str]) -> Iterator[LabelledWindow]:
    """Yield the windows of a document with the labels of its words.

    The first word within a name begins it; a name without a word that can be read teaches nothing.
    """
    words = reader(named.document)
    labels = np.zeros(len(words), np.int64)  # (N,)
    for name in named.names:
        first, end = np.searchsorted(words.starts, [name.start, name.end], "left").tolist()
        kind = types.index(name.type)
        labels[first:end] = 2 + 2 * kind
        labels[first : min(end, first + 1)] = 1 + 2 * kind
    for window in words.windows:
        yield LabelledWindow(window, labels[window.begin : window.begin + len(window.firsts)])


class _Batches:
    """Windows of nearly one length, so many pieces together, in another order each epoch."""

    def __init__(
        self, windows: Sequence[LabelledWindow], size: int, seed: int, padding: int, shapes: bool
    ) -> None:
        self.windows, self.seed, self.padding, self.shapes = windows, seed, padding, shapes
        self.sizes = np.array([len(item.window.ids) for item in windows])
        # No batch is empty, as long as none is to be smaller than the longest window.
        size = max(size, int(self.sizes.max(initial=0)) + 1)
        self.count = max(1, int(self.sizes.sum()) // size)

    def __len__(self) -> int:
        return self.count

    def epoch(self, number: int, indices: Sequence[int]) -> "Iterator[tuple[TaggerInputs, Tensor]]":
        """Yield inputs and gold labels (n, W) of batches of windows of like sizes; -1 is padding."""
        import torch

        drawn = np.random.default_rng([self.seed, number])
        order = np.argsort(self.sizes + drawn.random(len(self.sizes)) * 16)
        ends = np.cumsum(self.sizes[order])
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, self.count) // self.count, "right")
        parts = np.split(order, cuts)
        shuffled = drawn.permutation(self.count)
        for index in indices:
            chosen = [self.windows[at] for at in parts[shuffled[index]]]
            inputs = tagger_inputs([item.window for item in chosen], padding=self.padding, shapes=self.shapes)
            gold = np.full(tuple(inputs.words.shape), -1, np.int64)  # (n, W)
            for row, item in enumerate(chosen):
                gold[row, : len(item.labels)] = item.labels
            yield inputs, torch.from_numpy(gold)


def _loss(model: "nn.Module", batch: "tuple[TaggerInputs, Tensor]") -> "tuple[Tensor, float]":
    from kgkit.heads.tagger import WordTagger

    inputs, gold = batch
    return WordTagger.loss(model(inputs), gold), float((gold >= 0).sum())


def _groups(head: "WordTagger", training: TaggerTraining) -> list[dict[str, Any]]:
    """Return the parameters, those of the encoder with a learning rate of their own."""
    encoder = [parameter for name, parameter in head.named_parameters() if name.startswith("encoder.")]
    new = [parameter for name, parameter in head.named_parameters() if not name.startswith("encoder.")]
    return [{"params": encoder, "lr": training.lr}, {"params": new, "lr": training.lr_new}]


def _documents(
    home: Home, training: TaggerTraining, device: str, progress: Progress | None
) -> tuple[list[NamedDocument], list[NamedDocument], str]:
    """Return the documents to learn from, those that choose the epoch, and the digest of the teacher."""
    digest, teacher = "", None
    if training.teacher:
        digest = manifest_digest(training.teacher, home, "tagger")
        teacher = MentionTagger.open(training.teacher, home=home, device=device)

    def documents(files: Sequence[Path]) -> list[NamedDocument]:
        """Return the documents of files."""
        named: Iterator[NamedDocument] = chain.from_iterable(map(read_names, files))
        if teacher is not None:
            named = teach(teacher, read_untagged(files, teacher))
        return list(count_items(named, "reading documents", progress))

    learn, dev = documents(training.data), documents(training.dev)
    if not training.dev:
        learn, dev = hold_out_each_tenth(learn)
    return learn, dev, digest


def _results(
    trained: TrainingState,
    windows: Sequence[LabelledWindow],
    documents: Sequence[NamedDocument],
    dev: Sequence[NamedDocument],
) -> dict[str, Any]:
    return {
        "documents": len(documents),
        "words": sum(len(window.labels) for window in windows),
        "names": sum(len(document.names) for document in documents),
        "dev_documents": len(dev),
        "dev_names": sum(len(document.names) for document in dev),
        "seconds": trained.seconds,
        **scores_by_epoch(trained),
    }


def read_untagged(files: Iterable[Path], tagger: MentionTagger) -> Iterator[Document]:
    """Yield the documents of files of plain text, a sentence a line, in words as *tagger* has learnt them.

    Raises (when the first is asked for, or later):
        NotThere, SourceError, UsageError: as `check_plain` and `read_plain` do.
    """
    for path in files:
        check_plain(path)
        for number, sentences in enumerate(read_plain(path), 1):
            bounds, at = [], 0
            for sentence in sentences:
                bounds.append((at, at + len(sentence)))
                at += len(sentence) + 1
            text = "\n".join(sentences)
            yield Document(f"{path.name}:{number}", text, bounds, tagger.text_words(text))


def teach(tagger: MentionTagger, documents: Iterable[Document]) -> Iterator[NamedDocument]:
    """Yield documents with the names that a tagger finds in them."""
    for document in tagger(documents):
        names = [
            Name(mention.start, mention.end, mention.type)
            for mention in document.mentions or ()
            if isinstance(mention, TaggedMention)
        ]
        yield NamedDocument(Document(document.id, document.text, document.sentences, document.tokens), names)
