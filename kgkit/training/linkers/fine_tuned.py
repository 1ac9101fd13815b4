"""The rung `full`: the encoder is fine-tuned, and with it the one of the entities' texts.

    1  the traits of candidates, as the head is told them, counts alone: likeness changes with the encoder
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
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from kgkit.embedding.entity_text import Template
from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.heads.entity_linker import EntityLinker
from kgkit.inputs import SpanReader
from kgkit.inputs.linking import LinkerSentence, inputs_without_vectors, padded_layout
from kgkit.linking.head import ENCODER, TEXTS, HeadScorer
from kgkit.linking.prior_features import COUNTED
from kgkit.linking.ridge import Matrix, RidgeArrays, RidgeConfig
from kgkit.training.config import TrainingConfig
from kgkit.training.linkers.bi_encoder import Joint, Read, Reads, freeze, read
from kgkit.training.linkers.head import (
    HeadConfig,
    Hidden,
    Told,
    cut,
    fitted_head,
    scaling,
    told_sentences,
    usual_temperature,
)
from kgkit.training.linkers.means import Part, fitted, joined, text_mean
from kgkit.training.linkers.ridge import amounts, check_something, measured, weighed
from kgkit.training.loop import train
from kgkit.types import Progress
from kgkit.vectors.scan import unit
from kgkit.versions import CURRENT

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.vectors import Vectors

_AT_ONCE: Final = 8  # stretches that are read at once when scored


@dataclass(frozen=True, kw_only=True)
class FullConfig:
    """Settings of the training.

    Attributes:
        ridge: w, how much the score of the means counts beside the head's: see `kgkit.linking.head`.
        width: E, in which mentions and entities meet.
        attention: between the mentions of a sentence, (2).
        control: without the vectors of entities, as everything else is.
        joint: train the encoder of the texts too.
        head_epochs: of the head alone, before.
        epochs: of all together.
        tokens: word pieces of a batch.
        fresh: texts that a step encodes.
        refreshed: how often in an epoch all texts are encoded.
        length: word pieces of a text that are read in training.
        lr, encoder_lr, text_lr, decay: of AdamW, of all together.
        frozen, text_frozen: share of an encoder's layers, from the bottom, that stay as they are.
        dropout: of the mentions' vectors; in the encoders it is their own.
        seed: of weights, order and dropout.
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
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = min(
            self.width, self.head_epochs, self.epochs, self.tokens, self.fresh, self.refreshed, self.length
        )
        rates = min(self.lr, self.encoder_lr, self.text_lr)
        shares = all(0 <= share <= 1 for share in (self.frozen, self.text_frozen))
        if sizes < 1 or rates <= 0 or min(self.ridge, self.seed) < 0 or not shares:
            raise UsageError(
                f"out of range in {self}: sizes, epochs >= 1, rates > 0, ridge, seed >= 0, frozen from 0 to 1"
            )


class TrainedFull(NamedTuple):
    """What came out of a training.

    Attributes:
        arrays: means and counts of what was seen, by the encoders as they are now.
        heads: KnowBert's linker, in evaluation mode, alone.
        scale: (2, F) mean and deviation of the traits.
        temperature: T, chosen on documents that nothing has learnt from.
        results: accuracy and calibration there, and how much was learnt from.
        config: settings it was trained with.
        vectors: of the entities' texts.
        encoder: of documents.
    """

    arrays: RidgeArrays
    heads: list[EntityLinker]
    scale: Matrix
    temperature: float
    results: dict[str, float]
    config: FullConfig
    vectors: "Vectors"
    encoder: Encoder


def train_full(
    kb: "KnowledgeBase",
    name: str,
    folder: Path,
    reader: SpanReader,
    vectors: "Vectors",
    parts: Sequence[Part],
    ridge: RidgeConfig,
    config: FullConfig,
    work: Path,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> TrainedFull:
    """Train a linker with its encoders, which are left in `work/encoder` and `work/texts`.

    Args:
        kb: what is linked to; gets vectors called *name*.
        name: of the model.
        folder: whose current version the model is going to be.
        reader: of mentions, by the encoder that training begins with.
        vectors: of the entities' texts, by the same one.
        parts: sets of documents.
        ridge: settings of the means and the map.
        config: settings.
        work: for checkpoints: a training that was stopped goes on there.
        device: where it is trained.
        progress: is told what is done.

    Raises:
        UsageError: if no mention has a right candidate, or there is no such device.
        BuildFailed: if the loss is not finite.
    """
    check_something(parts)
    together = joined([part.sums() for part in parts])
    arrays = fitted(together, vectors, parts[0].mean, text_mean(vectors), ridge)
    sentences = [
        one.of_traits(COUNTED) for one in told_sentences(reader, parts, together, arrays, vectors, progress)
    ]
    scale = scaling(sentences)
    sentences = [one.scaled(scale) for one in sentences]
    alone = HeadConfig(
        ridge=0.0, width=config.width, attention=config.attention, control=config.control,
        epochs=config.head_epochs, dropout=config.dropout, seed=config.seed,
    )  # fmt: skip
    head = fitted_head(
        reader, vectors, arrays, sentences, scale, parts, alone, work / "head", device=device,
        progress=progress,
    )  # fmt: skip
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
        Part(tuned, part.taught, work / "features", progress, stage=f"reading set {number} again")
        for number, part in enumerate(parts, 1)
    ]
    # Late, as an older model of this name has no vectors from here on.
    made = embed_text(kb, settings, encoder=texts, progress=progress)
    seen = joined([part.sums() for part in again])
    arrays, _ = weighed(tuned, made, again, seen, ridge)
    held = [
        one.of_traits(COUNTED).scaled(scale)
        for one in told_sentences(tuned, again[:1], seen, arrays, made, progress)
        if one.held_out
    ]
    scored: Scored = []
    if held:
        scorer = HeadScorer(tuned, made, arrays, [joint.linker], scale, share=config.ridge)
        scored = list(Hidden(again).summed(scorer, held))
    temperature = best_temperature(scored, usual_temperature(config.ridge))
    results = {**amounts(parts, arrays), **measured(scored, temperature)}
    return TrainedFull(arrays, [joint.linker], scale, temperature, results, config, made, context)


class _Stretch(NamedTuple):
    """What is read at once: its word pieces, and the mentions that belong to it, sentence by sentence."""

    tokens: list[int]
    sentences: list[LinkerSentence]  # rows are places in `spans`
    spans: NDArray[np.int64]  # (m, 2)

    def cut(self) -> "_Stretch":
        return self._replace(sentences=[cut(one) for one in self.sentences])


class _Source:
    """All that is read, set by set, and the rows of the bank."""

    def __init__(
        self,
        kb: "KnowledgeBase",
        reader: SpanReader,
        parts: Sequence[Part],
        sentences: Sequence[Told],
        vectors: "Vectors",
        config: FullConfig,
    ) -> None:
        self.config, self.padding = config, reader.encoder.tokenizer.pad_token_id or 0
        self.ids = np.unique(np.concatenate([ids for one in sentences for ids in one.sentence.ids]))
        self.tokens = list(_tokens_of(kb, self.ids, reader, vectors, config.length))
        stretches = [list(_stretches(reader, part, sentences, number)) for number, part in enumerate(parts)]
        self.held = [stretch for held, stretch in stretches[0] if held]
        self.sets = [
            [stretch for held, stretch in some if not held and _teaches(stretch)] for some in stretches
        ]
        longest = max(sum(len(one.tokens) for one in some) for some in self.sets)
        most = max(map(len, self.sets))
        if not most:
            raise UsageError(
                "there is nothing to learn: no mention has several candidates, one of them right"
            )
        self.count = min(most, max(1, round(longest / config.tokens)))

    def __len__(self) -> int:
        return self.count

    def epoch(self, number: int, places: Sequence[int]) -> Iterator[Reads]:
        """Give batches: some of each set, so that every step sees them all."""
        drawn = np.random.default_rng([self.config.seed, number])
        orders = [np.array_split(drawn.permutation(len(some)), self.count) for some in self.sets]
        refresh = {self.count * turn // self.config.refreshed for turn in range(self.config.refreshed)}
        for place in places:
            chosen = [
                [some[at].cut() for at in order[place]] for some, order in zip(self.sets, orders, strict=True)
            ]
            yield Reads([self.read(some) for some in chosen if some], place in refresh)

    def read(self, stretches: Sequence[_Stretch]) -> Read:
        """Return stretches as tensors."""
        begins = np.cumsum([0, *(len(one.spans) for one in stretches)])
        sentences = [
            some._replace(rows=begin + some.rows)
            for begin, one in zip(begins.tolist(), stretches, strict=False)
            for some in one.sentences
        ]
        text = np.repeat(np.arange(len(stretches)), np.diff(begins))
        spans = np.column_stack([text, np.concatenate([one.spans for one in stretches])])
        places = padded_layout(sentences)
        inputs, right = inputs_without_vectors(sentences, places)
        return read(
            [one.tokens for one in stretches], spans[places.rows], places, inputs, right, self.rows_of,
            self.padding,
        )  # fmt: skip

    def rows_of(self, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the rows of entities in the bank."""
        return np.searchsorted(self.ids, ids)


def _stretches(
    reader: SpanReader, part: Part, sentences: Sequence[Told], number: int
) -> Iterator[tuple[bool, _Stretch]]:
    """Yield what is read of a set, and whether it is held out."""
    mine = [one for one in sentences if one.part == number]
    first = min((int(one.sentence.rows.min()) for one in mine), default=0)
    where = {
        row - first: (which, place)
        for which, one in enumerate(mine)
        for place, row in enumerate(one.sentence.rows.tolist())
    }
    documents = [one.document for one in part.taught]
    begins = np.cumsum([0, *(len(document.mentions or ()) for document in documents)])
    for stretch in reader.windows_of(documents):
        groups: dict[int, list[tuple[int, int]]] = {}
        for at, mention in enumerate(stretch.mentions.tolist()):
            which, place = where[int(begins[stretch.document]) + mention]
            groups.setdefault(which, []).append((at, place))
        found = [_some(mine[which].sentence, *zip(*pairs, strict=True)) for which, pairs in groups.items()]
        yield mine[next(iter(groups))].held_out, _Stretch(stretch.tokens, found, stretch.spans)


def _some(sentence: LinkerSentence, rows: Sequence[int], places: Sequence[int]) -> LinkerSentence:
    """Return some mentions of a sentence, under other rows."""
    return LinkerSentence(
        np.array(rows, np.int64),
        [sentence.ids[place] for place in places],
        [sentence.features[place] for place in places],
        [(sentence.right or ())[place] for place in places],
    )


def _teaches(stretch: _Stretch) -> bool:
    return any(right.any() and len(right) > 1 for one in stretch.sentences for right in one.right or ())


def _tokens_of(
    kb: "KnowledgeBase", ids: NDArray[np.uint32], reader: SpanReader, vectors: "Vectors", length: int
) -> Iterator[list[int]]:
    """Yield the word pieces of entities' texts, by the template that their vectors were made with."""
    template = Template(vectors.manifest.config["template"])
    before, after = reader.tokens.before, reader.tokens.after
    for entity in kb.store.entities(ids.tolist()):
        yield [*before, *reader.tokens(template(entity)).ids[:length].tolist(), *after]


def _joint(
    head: EntityLinker, source: _Source, reader: SpanReader, vectors: "Vectors", config: FullConfig
) -> Joint:
    encoder = reader.encoder
    context, texts = copy.deepcopy(encoder.model), copy.deepcopy(encoder.model) if config.joint else None
    freeze(context, config.frozen)
    if texts is not None:
        freeze(texts, config.text_frozen)
    bank = torch.from_numpy(unit(vectors.gather(source.ids.astype(np.uint32))))
    return Joint(
        context, texts, head, reader.config.layers, encoder.settings.pooling, source.tokens, bank,
        fresh=config.fresh, padding=source.padding,
    )  # fmt: skip


def _trained(
    joint: Joint, source: _Source, config: FullConfig, work: Path, device: str, progress: Progress | None
) -> None:
    """Train encoders and head; what is held out chooses the epoch."""
    rates = {"linker": config.lr, "context": config.encoder_lr, "texts": config.text_lr}
    groups = [
        {"params": [one for one in part.parameters() if one.requires_grad], "lr": rates[name]}
        for name, part in joint.named_children()
    ]
    batches = [source.held[at : at + _AT_ONCE] for at in range(0, len(source.held), _AT_ONCE)]

    def accuracy(model: Joint) -> float:
        ids = [ids for stretch in source.held for one in stretch.sentences for ids in one.ids]
        model.refresh(source.rows_of(np.unique(np.concatenate(ids))))
        right = total = 0
        for batch in batches:
            part = Reads([source.read(batch)]).to(model.bank.device).parts[0]
            best = model.scores(part).argmax(-1, keepdim=True)  # (B, M, 1)
            right += int(part.right.gather(-1, best).sum())
            total += int(part.right.any(-1).sum())
        return right / max(1, total)

    train(
        joint, source, _loss,
        [torch.optim.AdamW(groups, lr=config.lr, weight_decay=config.decay, fused=True)],
        TrainingConfig(epochs=config.epochs, device=device, seed=config.seed),
        work,
        evaluate=accuracy if source.held else None,
        progress=progress,
        resume=True,
    )  # fmt: skip


def _loss(model: torch.nn.Module, reads: Reads) -> tuple[torch.Tensor, float]:
    losses, counted = model(reads)
    count = float(max(1, int(counted)))
    return losses / count, count


def _saved(
    joint: Joint, reader: SpanReader, vectors: "Vectors", work: Path, device: str
) -> tuple[Encoder, Encoder]:
    """Write both encoders to files; return them as they are read from there."""
    old, found = reader.encoder, []
    for name, model in ((ENCODER, joint.context), (TEXTS, joint.texts)):
        own = Encoder(old.name, old.folder, old.model if model is None else model, old.tokenizer)
        own.save(work / name)
        found.append(Encoder.load(str(work / name), device=device, dtype=old.dtype))
    return found[0], found[1]
