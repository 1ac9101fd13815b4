"""Training KnowBert's linker over frozen features: `kgkit.heads.entity_linker` has the equations.

What a head is told of how often and in which contexts a meaning was seen leaves out the document that the
mention is of: else it would learn to trust that more than it can when it links.

    R  candidates of a document's mentions    S  meanings    F  traits    K · D  numbers of a mention
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgkit.errors import UsageError
from kgkit.evaluation.calibration import best_temperature
from kgkit.heads.entity_linker import EntityLinker, EntityLinkerConfig, LinkerInputs
from kgkit.inputs.linking import LinkerSentence, linker_inputs, sentences_of
from kgkit.linking.head import HeadScorer, hidden_of, texts_of
from kgkit.linking.prior_features import TRAITS, prior_traits, traits
from kgkit.linking.ridge import Matrix, RidgeArrays, RidgeConfig, RidgeScorer, meanings
from kgkit.training.config import TrainingConfig
from kgkit.training.linkers.means import Part, Sums, fitted, joined, text_mean
from kgkit.training.linkers.ridge import amounts, check_something, measured, weighed
from kgkit.training.loop import train
from kgkit.types import NO_CANDIDATES, NO_SENSE, Mention, Progress
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.inputs import SpanReader
    from kgkit.vectors import Vectors

_MOST: Final = 30  # candidates of a mention that are learnt from, as published
_AT_ONCE: Final = 256  # sentences that are scored together

_Scored = tuple[Matrix, NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """Settings of the training.

    Attributes:
        ridge: w, how much the score of the means counts beside the head's: see `kgkit.linking.head`.
        portable: keep nothing of single entities, so that the head serves any build. It is told the prior
            alone: that of the `kb`, or one counted on the `data` that it learns from, as WordNet's is on
            SemCor; such a one would betray the right sense of a document that it was counted on.
        width: E, in which mentions and entities meet.
        attention: between the mentions of a sentence, (2).
        control: without the vectors of entities, as everything else is.
        epochs, batch, lr, decay: of AdamW, in one cycle; a batch is of so many mentions.
        dropout: of the mentions' vectors.
        seed: of weights, order and dropout.
        heads: that are trained, each with a seed of its own from *seed* on; their scores are averaged.
    """

    ridge: float = 2.0
    portable: Literal["kb", "data"] | None = None
    width: int = 256
    attention: bool = True
    control: bool = False
    epochs: int = 4
    batch: int = 1024
    lr: float = 1e-3
    decay: float = 0.01
    dropout: float = 0.1
    seed: int = 0
    heads: int = 1

    def __post_init__(self) -> None:
        sizes = min(self.width, self.epochs, self.batch, self.heads)
        if sizes < 1 or self.lr <= 0 or min(self.ridge, self.seed) < 0:
            raise UsageError(
                f"out of range in {self}: width, epochs, batch, heads >= 1, lr > 0, ridge, seed >= 0"
            )
        if self.portable not in (None, "kb", "data"):
            raise UsageError(f"portable is {self.portable!r}; it is 'kb' or 'data'")


class TrainedHead(NamedTuple):
    """What came out of a training.

    Attributes:
        arrays: means and counts of what was seen, from all documents; None for a portable head.
        heads: KnowBert's linkers, in evaluation mode.
        scale: (2, F) mean and deviation of the traits.
        temperature: T, chosen on documents that the heads have not learnt from.
        results: accuracy and calibration there, and how much was learnt from.
        config: settings it was trained with.
    """

    arrays: RidgeArrays | None
    heads: list[EntityLinker]
    scale: Matrix
    temperature: float
    results: dict[str, float]
    config: HeadConfig


def train_head(
    reader: "SpanReader",
    vectors: "Vectors",
    parts: Sequence[Part],
    ridge: RidgeConfig,
    config: HeadConfig,
    folder: Path,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> TrainedHead:
    """Train heads; documents of the first set that are held out choose the epoch and the temperature.

    Args:
        reader: of mentions.
        vectors: of the entities' texts.
        parts: sets of documents.
        ridge: settings of the means and the map.
        config: settings of the heads.
        folder: for checkpoints: a training that was stopped goes on there.
        device: where they are trained.
        progress: is told what is done.

    Raises:
        UsageError: if no mention has a right candidate, or there is no such device.
        BuildFailed: if the loss is not finite.
    """
    check_something(parts)
    together = joined([part.sums() for part in parts])
    if config.portable:  # it has no use for weights
        arrays = fitted(together, vectors, parts[0].mean, text_mean(vectors), ridge)
    else:
        arrays, _ = weighed(reader, vectors, parts, together, ridge)
    told = [*told_sentences(reader, parts, together, arrays, vectors, progress)]
    if config.portable:
        told = [one.of_priors(config.portable) for one in told]
    scale = scaling(told)
    told = [one.scaled(scale) for one in told]
    seeds = range(config.seed, config.seed + config.heads)
    heads = [
        fitted_head(
            reader, vectors, arrays, told, scale, parts, replace(config, seed=seed), folder / f"seed-{seed}",
            device=device, progress=progress,
        )
        for seed in seeds
    ]  # fmt: skip
    scorer = HeadScorer(reader, vectors, arrays, heads, scale, share=config.ridge)
    last = list(Hidden(parts).summed(scorer, [one for one in told if one.held_out]))
    temperature = best_temperature(last, usual_temperature(config.ridge))
    results = {**amounts(parts, arrays), **measured(last, temperature)}
    return TrainedHead(None if config.portable else arrays, heads, scale, temperature, results, config)


def usual_temperature(ridge: float) -> float:
    """Return the temperature where too little is held out: ψ + w s becomes a mean of both."""
    return 1 + ridge


def fitted_head(
    reader: "SpanReader",
    vectors: "Vectors",
    arrays: RidgeArrays,
    told: "Sequence[Told]",
    scale: Matrix,
    parts: Sequence[Part],
    config: HeadConfig,
    folder: Path,
    *,
    device: str,
    progress: Progress | None,
) -> EntityLinker:
    """Return KnowBert's linker, trained over what the encoder of *reader* has read, in evaluation mode.

    Args:
        reader, vectors, parts, config, folder, device, progress: as `train_head` has them.
        arrays: what was seen in training.
        told: the sentences of all sets, with scaled traits.
        scale: (2, F) mean and deviation of the traits.
    """
    hidden, held = Hidden(parts), [one for one in told if one.held_out]
    torch.manual_seed(config.seed)
    settings = EntityLinkerConfig(
        hidden=reader.width, width=config.width, stored=vectors.width, features=scale.shape[1],
        attention=config.attention, control=config.control, input_dropout=config.dropout,
    )  # fmt: skip
    head = EntityLinker(settings, torch.Generator().manual_seed(config.seed))

    def accuracy(model: EntityLinker) -> float:
        scorer = HeadScorer(reader, vectors, arrays, [model], scale, share=config.ridge)
        return measured(list(hidden.summed(scorer, held)), 1.0)["held_out_accuracy"]

    train(
        head, _Batches(told, hidden, vectors, config), _loss,
        [torch.optim.AdamW(head.parameters(), lr=config.lr, weight_decay=config.decay)],
        TrainingConfig(epochs=config.epochs, schedule="one-cycle", warmup=0.3, bf16=False, device=device,
                       seed=config.seed),
        folder,
        evaluate=accuracy if held else None,
        progress=progress,
        resume=True,
    )  # fmt: skip
    return head


class Told(NamedTuple):
    """A sentence with its traits.

    Attributes:
        sentence: its mentions.
        beside: for each the scores s (C,) of its candidates by the means, if it is held out; else zeros.
        priors: for each those (C,) of its candidates, as the KB has them.
        part: of which set it is, by number.
        held_out: whether it is held out.
        learnt: whether something can be learnt of it.
    """

    sentence: LinkerSentence
    beside: list[Matrix]
    priors: list[Matrix]
    part: int
    held_out: bool
    learnt: bool

    def scaled(self, scale: Matrix) -> "Told":
        features = [(one - scale[0]) / scale[1] for one in self.sentence.features]
        return self._replace(sentence=self.sentence._replace(features=features))

    def of_traits(self, names: Sequence[str]) -> "Told":
        """Return the sentence with some of the traits alone."""
        columns = [TRAITS.index(name) for name in names]
        features = [one[:, columns] for one in self.sentence.features]
        return self._replace(sentence=self.sentence._replace(features=features))

    def of_priors(self, counted: Literal["kb", "data"]) -> "Told":
        """Return the sentence with the traits that a prior tells, and with no score by the means."""
        priors = self.priors
        if counted == "data":  # (n + 1) / Σ (n + 1), as WordNet's, without the document
            priors = [np.expm1(one[:, 0]) + 1 for one in self.sentence.features]
        sizes = np.array([len(one) for one in priors], np.int64)
        found = np.split(prior_traits(np.concatenate(priors), sizes), np.cumsum(sizes)[:-1])
        return self._replace(
            sentence=self.sentence._replace(features=found), beside=[np.zeros_like(one) for one in priors]
        )


def cut(sentence: LinkerSentence) -> LinkerSentence:
    """Return a sentence with at most `_MOST` candidates a mention."""
    return LinkerSentence(
        sentence.rows,
        [ids[:_MOST] for ids in sentence.ids],
        [features[:_MOST] for features in sentence.features],
        [right[:_MOST] for right in sentence.right or ()],
    )


def scaling(sentences: Sequence[Told]) -> Matrix:
    """Return (2, F), mean and deviation of the traits."""
    flat = np.concatenate([features for one in sentences for features in one.sentence.features])
    return np.stack([flat.mean(0), np.maximum(flat.std(0), 1e-6)]).astype(np.float32)


def told_sentences(
    reader: "SpanReader",
    parts: Sequence[Part],
    together: Sums,
    arrays: RidgeArrays,
    vectors: "Vectors",
    progress: Progress | None,
) -> Iterator[Told]:
    """Yield the sentences of all sets, rows counted through, with traits that leave their document out."""
    begin = 0
    for place, part in enumerate(parts):
        held = set(part.documents[part.held_out()].tolist()) if part is parts[0] else set()
        own = part.own_sums()
        row = begin
        for number, one in enumerate(part.taught):
            mentions = one.document.mentions or []
            rows = np.arange(row - begin, row - begin + len(mentions))
            features, means = _left_out(part, number, rows, own, together, arrays)
            beside = [np.zeros(len(these), np.float32) for these in features]
            if number in held:
                beside = _scored(RidgeScorer(reader, vectors, means), part, rows, mentions)
            ids = [(mention.candidates or NO_CANDIDATES).ids for mention in mentions]
            for places in sentences_of(one.document):
                right = [one.right[p] for p in places]
                sentence = LinkerSentence(
                    row + places, [ids[p] for p in places], [features[p] for p in places], right
                )
                learnt = number not in held and any(some.any() and len(some) > 1 for some in right)
                priors = [(mentions[p].candidates or NO_CANDIDATES).priors for p in places]
                yield Told(sentence, [beside[p] for p in places], priors, place, number in held, learnt)
            row += len(mentions)
            if progress is not None and number % 64 == 0:
                progress("telling what was seen", number, len(part.taught))
        begin = row


def _left_out(
    part: Part,
    number: int,
    rows: "np.ndarray",
    own: list[dict[int, tuple[Matrix, int]]],
    together: Sums,
    arrays: RidgeArrays,
) -> tuple[list[Matrix], RidgeArrays]:
    """Return traits (C, F) of the mentions of a document as if it had not been seen, and means alike.

    The map is that of all documents.
    """
    mentions = part.taught[number].document.mentions or []
    if not mentions:
        return [], arrays
    candidates = [mention.candidates or NO_CANDIDATES for mention in mentions]
    sizes = np.array([len(one) for one in candidates], np.int64)
    query = np.repeat(part.queries_of(rows, part.mean), sizes, axis=0)  # (R, K · D)
    wanted = np.concatenate([meanings(one) for one in candidates])
    unique, back = np.unique(wanted, return_inverse=True)
    place = np.minimum(np.searchsorted(together.meanings, unique), len(together.meanings) - 1)
    known = together.meanings[place] == unique
    counts = np.where(known, together.counts[place], 0)
    sums = together.sums[place] * known[:, None]
    for at, meaning in enumerate(unique.tolist()):
        if (mine := own[number].get(meaning)) is not None:
            sums[at] -= mine[0]
            counts[at] -= mine[1]
    sums[counts < 0.5] = 0  # what is left then is rounding
    centroids = unit(sums)
    like_seen = np.einsum("rk,rk->r", centroids[back], query)
    seen = counts > 0.5
    means = arrays._replace(  # behind them one that no candidate means: there may be no other
        meanings=np.append(unique[seen], np.uint32(NO_SENSE)),
        centroids=np.concatenate([centroids[seen], np.zeros((1, centroids.shape[1]))], dtype=np.float16),
        counts=np.append(counts[seen], np.float32(0)),
    )
    cuts = np.cumsum(sizes)[:-1]
    return np.split(traits(counts[back], like_seen, sizes), cuts), means


def _scored(
    means: RidgeScorer, part: Part, rows: NDArray[np.int64], mentions: Sequence[Mention]
) -> list[Matrix]:
    """Return s (C,) of the candidates of mentions."""
    asked = part.queries_of(rows, part.mean)
    return [
        means.scores(query, mention.candidates or NO_CANDIDATES)
        for query, mention in zip(asked, mentions, strict=True)
    ]


class Hidden:
    """The vectors of the mentions of all sets, by rows counted through, as the head takes them."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.begins = np.cumsum([0, *(len(part.vectors) for part in parts)])

    def __call__(self, rows: "np.ndarray") -> Matrix:
        found = np.empty((len(rows), self.parts[0].vectors.shape[1]), np.float32)
        which = np.searchsorted(self.begins, rows, "right") - 1
        for number, part in enumerate(self.parts):
            mine = which == number
            found[mine] = part.vectors[rows[mine] - self.begins[number]]
        return hidden_of(found, self.parts[0].layers)

    def summed(self, scorer: HeadScorer, sentences: Sequence[Told]) -> Iterator[_Scored]:
        """Yield the scores ψ + w s (C,) of mentions one of whose candidates is right, and which are."""
        for begin in range(0, len(sentences), _AT_ONCE):
            part = sentences[begin : begin + _AT_ONCE]
            places = np.cumsum([0, *(len(one.sentence.rows) for one in part)])
            numbered = [
                one.sentence._replace(rows=np.arange(first, last))
                for one, (first, last) in zip(part, pairwise(places.tolist()), strict=True)
            ]
            scores = scorer.scored(numbered, self(np.concatenate([one.sentence.rows for one in part])))
            beside = [these for one in part for these in one.beside]
            right = [these for one in part for these in one.sentence.right or ()]
            for one, other, which in zip(scores, beside, right, strict=True):
                if which.any():
                    yield one + np.float32(scorer.share) * other, which


class _Batches:
    """Sentences in another order each epoch, those of a set by themselves: others are as long as they."""

    def __init__(self, told: Sequence[Told], hidden: Hidden, vectors: "Vectors", config: HeadConfig) -> None:
        self.hidden, self.vectors, self.seed = hidden, vectors, config.seed
        self.sets = [
            [cut(one.sentence) for one in told if one.learnt and one.part == part]
            for part in range(len(hidden.parts))
        ]
        mentions = [sum(len(one.rows) for one in sentences) for sentences in self.sets]
        self.counts = [
            min(len(sentences), max(1, round(count / config.batch)))
            for sentences, count in zip(self.sets, mentions, strict=True)
        ]

    def __len__(self) -> int:
        return sum(self.counts)

    def epoch(self, number: int, places: Sequence[int]) -> "Iterator[tuple[LinkerInputs, Tensor]]":
        drawn = np.random.default_rng([self.seed, number])
        batches = [
            [sentences[at] for at in part]
            for sentences, count in zip(self.sets, self.counts, strict=True)
            if count
            for part in np.array_split(drawn.permutation(len(sentences)), count)
        ]
        order = drawn.permutation(len(batches))
        for place in places:
            yield linker_inputs(batches[order[place]], self.hidden, lambda ids: texts_of(self.vectors, ids))


def _loss(model: torch.nn.Module, batch: "tuple[LinkerInputs, Tensor]") -> tuple[Tensor, float]:
    inputs, gold = batch
    losses, counted = model.losses(model(inputs), gold)  # type: ignore[operator]
    count = int(counted.sum())
    return losses.sum() / max(1, count), float(max(1, count))
