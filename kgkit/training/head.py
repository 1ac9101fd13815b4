"""Training KnowBert's linker over frozen features: `kgkit.heads.knowbert` has the equations.

What a head is told of how often and in which contexts a meaning was seen leaves out the document that the
mention is of: else it would learn to trust that more than it can when it links.

    R  candidates of a document's mentions    S  meanings    F  traits    K · D  numbers of a mention
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.heads.knowbert import EntityLinker, EntityLinkerConfig, LinkerInputs
from kgkit.inputs.linking import Sentence, padded, sentences_of
from kgkit.linking.head import HeadScorer, hidden_of, texts_of
from kgkit.linking.ridge import Matrix, RidgeArrays, RidgeConfig, mapped, meanings
from kgkit.linking.traits import TRAITS, traits
from kgkit.training.curves import TrainingConfig
from kgkit.training.loop import train
from kgkit.training.means import Part, Sums, fitted, joined, text_mean
from kgkit.training.ridge import Progress, amounts, check_something, measured
from kgkit.types import NO_CANDIDATES
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.inputs import SpanReader
    from kgkit.vectors import Vectors

_MOST: Final = 30  # candidates of a mention that are learnt from, as published


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """Settings of the training.

    Attributes:
        width: E, in which mentions and entities meet.
        attention: between the mentions of a sentence, (2).
        control: without the vectors of entities, as everything else is.
        epochs, batch, lr, decay: of AdamW, in one cycle; a batch is of so many mentions.
        dropout: of the mentions' vectors.
        seed: of weights, order and dropout.
    """

    width: int = 256
    attention: bool = True
    control: bool = False
    epochs: int = 4
    batch: int = 1024
    lr: float = 1e-3
    decay: float = 0.01
    dropout: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.width, self.epochs, self.batch) < 1 or self.lr <= 0:
            raise UsageError(f"out of range in {self}: width, epochs, batch >= 1, lr > 0")


class TrainedHead(NamedTuple):
    """What came out of a training.

    Attributes:
        arrays: means and counts of what was seen, from all documents.
        head: KnowBert's linker, in evaluation mode.
        scale: (2, F) mean and deviation of the traits.
        temperature: T, chosen on documents that the head has not learnt from.
        results: accuracy and calibration there, and how much was learnt from.
    """

    arrays: RidgeArrays
    head: EntityLinker
    scale: Matrix
    temperature: float
    results: dict[str, float]


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
    """Train a head; documents of the first set that are held out choose the epoch and the temperature.

    Args:
        reader: of mentions.
        vectors: of the entities' texts.
        parts: sets of documents.
        ridge: settings of the means and the map.
        config: settings of the head.
        folder: for checkpoints: a training that was stopped goes on there.
        device: where the head is trained.
        progress: is told what is done.

    Raises:
        UsageError: if no mention has a right candidate, or there is no such device.
        BuildFailed: if the loss is not finite.
    """
    check_something(parts)
    together = joined([part.sums() for part in parts])
    arrays = fitted(together, vectors, parts[0].mean, text_mean(vectors), ridge)
    told = [*told_sentences(parts, together, arrays, vectors, progress)]
    flat = np.concatenate([features for one in told for features in one.sentence.features])
    scale = np.stack([flat.mean(0), np.maximum(flat.std(0), 1e-6)]).astype(np.float32)
    told = [one.scaled(scale) for one in told]
    hidden = _Hidden(parts)
    batches = _Batches([one.cut() for one in told if one.learnt], hidden, vectors, config)
    torch.manual_seed(config.seed)
    settings = EntityLinkerConfig(
        hidden=reader.width, width=config.width, stored=vectors.width, features=len(TRAITS),
        attention=config.attention, control=config.control, input_dropout=config.dropout,
    )  # fmt: skip
    head = EntityLinker(settings, torch.Generator().manual_seed(config.seed))
    optimizer = torch.optim.AdamW(head.parameters(), lr=config.lr, weight_decay=config.decay)
    held = [one for one in told if one.held_out]

    def scored(model: EntityLinker) -> Scored:
        scorer = HeadScorer(reader, vectors, arrays, model, scale)
        return [
            (scores, right)
            for part in _by(held, 256)
            for one, found in zip(part, hidden.scored(scorer, part), strict=True)
            for scores, right in zip(found, one.sentence.right or (), strict=True)
            if right.any()
        ]

    train(
        head, batches, _loss, [optimizer],
        TrainingConfig(epochs=config.epochs, schedule="one-cycle", warmup=0.3, bf16=False, device=device,
                       seed=config.seed),
        folder,
        evaluate=(lambda model: measured(scored(model), 1.0)["held_out_accuracy"]) if held else None,
        progress=_steps(progress),
        resume=True,
    )  # fmt: skip
    last = scored(head)
    temperature = best_temperature(last)
    results = {**amounts(parts, arrays), **measured(last, temperature)}
    return TrainedHead(arrays, head, scale, temperature, results)


class Told(NamedTuple):
    """A sentence with its traits: of which set, and whether it is held out, or something is learnt of it."""

    sentence: Sentence
    held_out: bool
    learnt: bool

    def scaled(self, scale: Matrix) -> "Told":
        features = [(one - scale[0]) / scale[1] for one in self.sentence.features]
        return self._replace(sentence=self.sentence._replace(features=features))

    def cut(self) -> Sentence:
        """Return the sentence with at most `_MOST` candidates a mention."""
        one = self.sentence
        return Sentence(
            one.rows,
            [ids[:_MOST] for ids in one.ids],
            [features[:_MOST] for features in one.features],
            [right[:_MOST] for right in one.right or ()],
        )


def told_sentences(
    parts: Sequence[Part], together: Sums, arrays: RidgeArrays, vectors: "Vectors", progress: Progress | None
) -> Iterator[Told]:
    """Yield the sentences of all sets, rows counted through, with traits that leave their document out."""
    begin = 0
    for part in parts:
        held = set(part.documents[part.held_out()].tolist()) if part is parts[0] else set()
        own = part.own_sums()
        row = begin
        for number, one in enumerate(part.taught):
            mentions = one.document.mentions or []
            rows = np.arange(row - begin, row - begin + len(mentions))
            features = _left_out(part, number, rows, own, together, arrays, vectors)
            ids = [(mention.candidates or NO_CANDIDATES).ids for mention in mentions]
            for places in sentences_of(one.document):
                right = [one.right[place] for place in places]
                sentence = Sentence(
                    row + places, [ids[p] for p in places], [features[p] for p in places], right
                )
                learnt = number not in held and any(some.any() and len(some) > 1 for some in right)
                yield Told(sentence, number in held, learnt)
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
    vectors: "Vectors",
) -> list[Matrix]:
    """Return the traits (C, F) of the candidates of a document's mentions, as if it had not been seen."""
    mentions = part.taught[number].document.mentions or []
    if not mentions:
        return []
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
    like_seen = np.einsum("rk,rk->r", unit(sums)[back], query)
    ids = np.concatenate([one.ids for one in candidates])
    entities, of = np.unique(ids, return_inverse=True)
    texts = mapped(vectors.gather(entities), arrays.gloss_mean, arrays.weight)
    like_text = np.einsum("rk,rk->r", texts[of], query)
    found = traits(counts[back], like_seen, like_text, sizes)
    return np.split(found, np.cumsum(sizes)[:-1])


class _Hidden:
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

    def scored(self, scorer: HeadScorer, told: Sequence[Told]) -> list[list[Matrix]]:
        """Return the scores of the mentions of sentences."""
        rows = np.concatenate([one.sentence.rows for one in told])
        places = np.split(np.arange(len(rows)), np.cumsum([len(one.sentence.rows) for one in told])[:-1])
        sentences = [one.sentence._replace(rows=place) for one, place in zip(told, places, strict=True)]
        scores = scorer.scored(sentences, self(rows))
        return [[scores[at] for at in place.tolist()] for place in places]


class _Batches:
    """Sentences whose mentions have about as many candidates together, in another order each epoch."""

    def __init__(
        self, sentences: Sequence[Sentence], hidden: _Hidden, vectors: "Vectors", config: HeadConfig
    ) -> None:
        self.sentences, self.hidden, self.vectors, self.seed = sentences, hidden, vectors, config.seed
        self.deep = np.array([max(map(len, one.ids)) for one in sentences])
        mentions = sum(len(one.rows) for one in sentences)
        self.count = max(1, min(len(sentences), round(mentions / config.batch)))

    def __len__(self) -> int:
        return self.count

    def epoch(self, number: int, places: Sequence[int]) -> "Iterator[tuple[LinkerInputs, Tensor]]":
        drawn = np.random.default_rng([self.seed, number])
        order = np.argsort(self.deep + drawn.random(len(self.deep)) * 3)
        parts = np.array_split(order, self.count)
        shuffled = drawn.permutation(self.count)
        for place in places:
            chosen = [self.sentences[at] for at in parts[shuffled[place]]]
            yield padded(chosen, self.hidden, lambda ids: texts_of(self.vectors, ids))


def _loss(model: torch.nn.Module, batch: "tuple[LinkerInputs, Tensor]") -> tuple[Tensor, float]:
    inputs, gold = batch
    losses, counted = model.losses(model(inputs), gold)  # type: ignore[operator]
    count = int(counted.sum())
    return losses.sum() / max(1, count), float(max(1, count))


def _steps(progress: Progress | None) -> Callable[[int, int, float], None] | None:
    if progress is None:
        return None

    def tell(done: int, total: int, _: float) -> None:
        progress("training", done, total)

    return tell


def _by(told: Sequence[Told], size: int) -> Iterator[Sequence[Told]]:
    for begin in range(0, len(told), size):
        yield told[begin : begin + size]
