"""The type `full`: the encoder is fine-tuned, and with it the one of the entities' texts.

    1  the features of candidates, as the head reads them, counts alone: similarities change with the encoder
    2  the head is trained over the encoder as it is, else its first steps would spoil the encoder
    3  both encoders and the head are trained together: see `kgkit.training.linkers.bi_encoder`
    4  the documents are read anew, and the texts of all entities: vectors of the knowledge base, named after
       the model
    5  means and map of `kgkit.linking.ridge`, of both; documents that are held out choose the temperature

An entity that comes later needs no training: `kgkit embed KB --name MODEL --update` encodes its text.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from kgkit.embedding.entity_text import Template
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.encoder.folder import ENCODER
from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.heads.entity_linker import EntityLinker
from kgkit.inputs import SpanReader
from kgkit.inputs.linking import LinkerSentence, inputs_without_vectors, padded_layout
from kgkit.linking.head import TEXTS, HeadScorer
from kgkit.linking.prior_features import COUNTED
from kgkit.ranges import check_range
from kgkit.setting_types import convert_settings
from kgkit.training.config import TrainingConfig, check_seed
from kgkit.training.linkers.bi_encoder import BiEncoder, StepBatch, TextBatch, freeze, read
from kgkit.training.linkers.head import (
    HeadConfig,
    Hidden,
    LabelledSentence,
    TrainedHead,
    fit_head,
    labelled_sentences,
    scaling,
    truncate_candidates,
    usual_temperature,
)
from kgkit.training.linkers.means import LinkerData, TrainingSet, add_sums, fit_means
from kgkit.training.linkers.ridge import fit_weighted_means, held_out_metrics, prior_accuracy, training_counts
from kgkit.training.loop import train
from kgkit.types import Progress
from kgkit.vectors.scan import unit
from kgkit.versions import CURRENT, write_failures

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors.layout import VectorRows

_AT_ONCE: Final = 8  # windows that are read at once when scored


@dataclass(frozen=True, kw_only=True)
class FullConfig:
    """Settings of the training.

    Attributes:
        ridge: weight w of the means' score beside the head's: see `kgkit.linking.head`.
        width: width E of the space in which mentions and entities are compared.
        attention: whether the mentions of a sentence attend to each other, (2).
        control: whether to train without the vectors of entities, all else equal.
        joint: whether to train the encoder of the texts too.
        head_epochs: epochs of the head alone, before.
        epochs: epochs of all together.
        tokens: word pieces of a batch.
        fresh: texts that a step encodes.
        refreshed: number of times in an epoch that all texts are encoded.
        length: word pieces of a text that are read in training.
        lr, encoder_lr, text_lr, decay: settings of AdamW for all together.
        frozen, text_frozen: share of an encoder's layers, from the bottom, that stay as they are.
        dropout: dropout of the mentions' vectors; the encoders keep theirs.
        bf16: whether products of the encoders are in bfloat16; auto: where the device is made for it.
        seed: seed of weights, order and dropout.
    """

    ridge: float = 2.0
    width: int = 256
    attention: bool = True
    control: bool = False
    joint: bool = True
    head_epochs: int = 4
    epochs: int = 2
    tokens: int = 2_048
    fresh: int = 64
    refreshed: int = 4
    length: int = 40
    lr: float = 3e-4
    encoder_lr: float = 5e-5
    text_lr: float = 3e-5
    decay: float = 0.01
    frozen: float = 1 / 3
    text_frozen: float = 1 / 2
    dropout: float = 0.1
    bf16: bool | Literal["auto"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, "width", "head_epochs", "epochs", "tokens", "fresh", "refreshed", "length", least=1)
        check_range(self, "ridge", "decay", "seed", least=0)
        check_range(self, "lr", "encoder_lr", "text_lr", above=0)
        check_range(self, "frozen", "text_frozen", least=0, most=1)
        check_range(self, "dropout", least=0, below=1)
        check_seed(self.seed)
        convert_settings(self)


def train_full(
    kb: "KnowledgeBase",
    name: str,
    folder: Path,
    data: LinkerData,
    config: FullConfig,
    work: Path,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> TrainedHead:
    """Train a linker with its encoders, which are left in `work/encoder` and `work/texts`.

    Args:
        kb: knowledge base that is linked to; gets vectors called *name*.
        name: name of the model.
        folder: folder whose current version the model is going to be.
        data: sets of documents, and what reads them.
        config: settings.
        work: folder for checkpoints: a training that was stopped goes on there.
        device: torch device on which it is trained.
        progress: callback with what is done.

    Raises:
        UsageError: if no mention has a right candidate, or there is no such device.
        BuildFailed: if the loss is not finite.
        WriteFailed: if the disk refuses.
    """
    reader, vectors, parts, ridge, _ = data
    together = data.sums()
    arrays = fit_means(together, vectors, parts[0].mean, data.text_mean(), ridge)
    sentences = [
        sentence.with_features(COUNTED) for sentence in labelled_sentences(data, together, arrays, progress)
    ]
    scale = scaling(sentences)
    sentences = [sentence.scaled(scale) for sentence in sentences]
    alone = HeadConfig(
        ridge=0.0, width=config.width, attention=config.attention, control=config.control,
        epochs=config.head_epochs, dropout=config.dropout, seed=config.seed,
    )  # fmt: skip
    head = fit_head(data, arrays, sentences, scale, alone, work / "head", device=device, progress=progress)
    source = _Source(kb, reader, parts, sentences, vectors, config)
    joint = _joint(head, source, reader, vectors, config)
    _trained(joint, source, config, work, device, progress)
    context, texts = _saved(joint, reader, vectors, work, device)
    texts.name = str(folder / CURRENT / TEXTS)  # where they are going to lie
    about = vectors.manifest.config
    settings = TextConfig(
        encoder=texts.name, name=name, template=about["template"], kinds=tuple(about["kinds"]), device=device
    )
    tuned = SpanReader(context, reader.config)
    again = [
        TrainingSet(
            tuned, part.labelled, work / "features", progress, ridge.layers, f"reading set {number} again"
        )
        for number, part in enumerate(parts, 1)
    ]
    # Late, as an older model of this name has no vectors from here on.
    tuned_vectors = embed_text(kb, settings, encoder=texts, progress=progress)
    sums = add_sums([part.sums() for part in again])
    tuned_data = LinkerData(tuned, tuned_vectors, again, ridge)
    arrays, _ = fit_weighted_means(tuned_data, sums)
    held = [
        sentence.with_features(COUNTED).scaled(scale)
        for sentence in labelled_sentences(tuned_data._replace(parts=again[:1]), sums, arrays, progress)
        if sentence.held_out
    ]
    scored: Scored = []
    if held:
        scorer = HeadScorer(tuned, tuned_vectors, arrays, [joint.linker], scale, share=config.ridge)
        scored = list(Hidden(again).summed(scorer, held))
    temperature = best_temperature(scored, usual_temperature(config.ridge))
    results = {
        **training_counts(parts, arrays),
        **held_out_metrics(scored, temperature),
        **prior_accuracy(scored),
    }
    return TrainedHead(arrays, [joint.linker], scale, temperature, results, config, tuned_vectors)


class _Window(NamedTuple):
    """What is read at once: its word pieces, and the mentions that belong to it, sentence by sentence."""

    tokens: list[int]
    sentences: list[LinkerSentence]  # rows are places in `spans`
    spans: NDArray[np.int64]  # (m, 2)

    def truncate(self) -> "_Window":
        """Return the window with each sentence cut to the candidates that training reads."""
        return self._replace(sentences=[truncate_candidates(sentence) for sentence in self.sentences])


class _Source:
    """All that is read, set by set, and the rows of the bank."""

    def __init__(
        self,
        kb: "KnowledgeBase",
        reader: SpanReader,
        parts: Sequence[TrainingSet],
        sentences: Sequence[LabelledSentence],
        vectors: "VectorRows",
        config: FullConfig,
    ) -> None:
        self.config, self.padding = config, reader.encoder.tokenizer.pad_token_id or 0
        self.ids = np.unique(np.concatenate([ids for sentence in sentences for ids in sentence.sentence.ids]))
        self.tokens = list(_tokens_of(kb, self.ids, reader, vectors, config.length))
        windows = [list(_windows(reader, part, sentences, number)) for number, part in enumerate(parts)]
        self.held = [window for held, window in windows[0] if held]
        self.sets = [[window for held, window in some if not held and _teaches(window)] for some in windows]
        longest = max(sum(len(window.tokens) for window in some) for some in self.sets)
        most = max(map(len, self.sets))
        if not most:
            raise UsageError(
                "no training examples: no mention has several candidates with the gold entity among them"
            )
        self.count = min(most, max(1, round(longest / config.tokens)))

    def __len__(self) -> int:
        return self.count

    def epoch(self, number: int, indices: Sequence[int]) -> Iterator[StepBatch]:
        """Give batches: some of each set, so that every step sees them all."""
        drawn = np.random.default_rng([self.config.seed, number])
        orders = [np.array_split(drawn.permutation(len(some)), self.count) for some in self.sets]
        refresh = {self.count * turn // self.config.refreshed for turn in range(self.config.refreshed)}
        for index in indices:
            chosen = [
                [some[at].truncate() for at in order[index]]
                for some, order in zip(self.sets, orders, strict=True)
            ]
            yield StepBatch([self.read(some) for some in chosen if some], index in refresh)

    def read(self, windows: Sequence[_Window]) -> TextBatch:
        """Return windows as tensors."""
        begins = np.cumsum([0, *(len(window.spans) for window in windows)])
        sentences = [
            some._replace(rows=begin + some.rows)
            for begin, window in zip(begins.tolist(), windows, strict=False)
            for some in window.sentences
        ]
        text = np.repeat(np.arange(len(windows)), np.diff(begins))
        spans = np.column_stack([text, np.concatenate([window.spans for window in windows])])
        layout = padded_layout(sentences)
        inputs, right = inputs_without_vectors(sentences, layout)
        return read(
            [window.tokens for window in windows], spans[layout.rows], layout, inputs, right, self.rows_of,
            self.padding,
        )  # fmt: skip

    def rows_of(self, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the rows of entities in the bank."""
        return np.searchsorted(self.ids, ids)


def _windows(
    reader: SpanReader, part: TrainingSet, sentences: Sequence[LabelledSentence], number: int
) -> Iterator[tuple[bool, _Window]]:
    """Yield what is read of a set, and whether it is held out."""
    mine = [sentence for sentence in sentences if sentence.part == number]
    first = min((int(sentence.sentence.rows.min()) for sentence in mine), default=0)
    where = {
        row - first: (which, index)
        for which, sentence in enumerate(mine)
        for index, row in enumerate(sentence.sentence.rows.tolist())
    }
    documents = [labelled.document for labelled in part.labelled]
    begins = np.cumsum([0, *(len(document.mentions or ()) for document in documents)])
    for window in reader.windows_of(documents):
        groups: dict[int, list[tuple[int, int]]] = {}
        for at, mention in enumerate(window.mentions.tolist()):
            which, index = where[int(begins[window.document]) + mention]
            groups.setdefault(which, []).append((at, index))
        groups_of = [
            _some(mine[which].sentence, *zip(*pairs, strict=True)) for which, pairs in groups.items()
        ]
        yield mine[next(iter(groups))].held_out, _Window(window.tokens, groups_of, window.spans)


def _some(sentence: LinkerSentence, rows: Sequence[int], indices: Sequence[int]) -> LinkerSentence:
    """Return some mentions of a sentence, under other rows."""
    return LinkerSentence(
        np.array(rows, np.int64),
        [sentence.ids[index] for index in indices],
        [sentence.features[index] for index in indices],
        [(sentence.right or ())[index] for index in indices],
    )


def _teaches(window: _Window) -> bool:
    return any(
        right.any() and len(right) > 1 for sentence in window.sentences for right in sentence.right or ()
    )


def _tokens_of(
    kb: "KnowledgeBase", ids: NDArray[np.uint32], reader: SpanReader, vectors: "VectorRows", length: int
) -> Iterator[list[int]]:
    """Yield the word pieces of entities' texts, by the template that their vectors were made with."""
    template = Template(vectors.manifest.config["template"])
    before, after = reader.tokens.before, reader.tokens.after
    for entity in kb.store.entities(ids.tolist()):
        yield [*before, *reader.tokens(template(entity)).ids[:length].tolist(), *after]


def _joint(
    head: EntityLinker, source: _Source, reader: SpanReader, vectors: "VectorRows", config: FullConfig
) -> BiEncoder:
    encoder = reader.encoder
    context, texts = copy.deepcopy(encoder.model), copy.deepcopy(encoder.model) if config.joint else None
    freeze(context, config.frozen)
    if texts is not None:
        freeze(texts, config.text_frozen)
    bank = torch.from_numpy(unit(vectors.gather(source.ids.astype(np.uint32))))
    return BiEncoder(
        context, texts, head, reader.config.layers, encoder.settings.pooling, source.tokens, bank,
        fresh=config.fresh, padding=source.padding,
    )  # fmt: skip


def _trained(
    joint: BiEncoder, source: _Source, config: FullConfig, work: Path, device: str, progress: Progress | None
) -> None:
    """Train encoders and head; what is held out chooses the epoch."""
    rates = {"linker": config.lr, "context": config.encoder_lr, "texts": config.text_lr}
    groups = [
        {
            "params": [parameter for parameter in part.parameters() if parameter.requires_grad],
            "lr": rates[name],
        }
        for name, part in joint.named_children()
    ]
    batches = [source.held[at : at + _AT_ONCE] for at in range(0, len(source.held), _AT_ONCE)]

    def accuracy(model: BiEncoder) -> float:
        ids = [ids for window in source.held for sentence in window.sentences for ids in sentence.ids]
        model.refresh(source.rows_of(np.unique(np.concatenate(ids))))
        right = total = 0
        for batch in batches:
            part = StepBatch([source.read(batch)]).to(model.bank.device).parts[0]
            best = model.scores(part).argmax(-1, keepdim=True)  # (B, M, 1)
            right += int(part.right.gather(-1, best).sum())
            total += int(part.right.any(-1).sum())
        return right / max(1, total)

    train(
        joint, source, _loss,
        [torch.optim.AdamW(groups, lr=config.lr, weight_decay=config.decay, fused=True)],
        TrainingConfig(epochs=config.epochs, bf16=config.bf16, device=device, seed=config.seed),
        work,
        evaluate=accuracy if source.held else None,
        progress=progress,
        resume=True,
    )  # fmt: skip


def _loss(model: torch.nn.Module, reads: StepBatch) -> tuple[torch.Tensor, float]:
    losses, counted = model(reads)
    count = float(max(1, int(counted)))
    return losses / count, count


def _saved(
    joint: BiEncoder, reader: SpanReader, vectors: "VectorRows", work: Path, device: str
) -> tuple[Encoder, Encoder]:
    """Write both encoders to files; return them as they are read from there."""
    old, loaded = reader.encoder, []
    for name, model in ((ENCODER, joint.context), (TEXTS, joint.texts)):
        own = Encoder(old.name, old.folder, old.model if model is None else model, old.tokenizer)
        with write_failures(work):
            own.save(work / name)
        loaded.append(Encoder.load(str(work / name), device=device, dtype=old.dtype))
    return loaded[0], loaded[1]
