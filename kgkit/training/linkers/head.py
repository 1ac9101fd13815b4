"""Training KnowBert's linker over frozen features: `kgkit.heads.entity_linker` has the equations.

The features of a candidate that count its occurrences and contexts leave out the document of the mention:
otherwise the head would learn to trust them more than it can when it links.

    R  candidates of a document's mentions    S  meanings    F  features    K · D  numbers of a mention
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgkit.evaluation.calibration import best_temperature
from kgkit.heads.entity_linker import EntityLinker, LinkerInputs
from kgkit.heads.settings import EntityLinkerConfig
from kgkit.inputs.linking import LinkerSentence, sentences_of, shared_linker_inputs
from kgkit.inputs.spans import hidden_of
from kgkit.linking.head import SHARE, HeadScorer, texts_of
from kgkit.linking.prior_features import candidate_features
from kgkit.linking.ridge import RidgeArrays, RidgeScorer
from kgkit.linking.scoring import meanings
from kgkit.sorted_ids import match_sorted
from kgkit.training.config import TrainingConfig
from kgkit.training.linkers.balance import MentionCounts
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.training.linkers.means import LinkerData, Sums, TrainingSet
from kgkit.training.linkers.ridge import fit_weighted_means, held_out_metrics, prior_accuracy, training_counts
from kgkit.training.loop import train
from kgkit.types import NO_SENSE, Matrix, Progress
from kgkit.vectors.scan import unit

if TYPE_CHECKING:
    from kgkit.vectors.layout import VectorRows

_MOST: Final = 30  # candidates of a mention that are learnt from, as published
_AT_ONCE: Final = 256  # sentences that are scored together

_Scored = tuple[Matrix, NDArray[np.bool_]]


class HeadConfig(NamedTuple):
    """Settings of the training.

    Attributes:
        epochs, batch, lr, decay: settings of AdamW, in one cycle; a batch has so many mentions.
        seed: seed of weights, order and dropout.
        width: width E of the space in which mentions and entities are compared.
        dropout: dropout of the mentions' vectors.
    """

    epochs: int = 4
    seed: int = 0
    batch: int = 1024
    lr: float = 1e-3
    decay: float = 0.01
    width: int = 256
    dropout: float = 0.1


class TrainedHead(NamedTuple):
    """A trained head with its measurements.

    Attributes:
        arrays: means, map and counts of all training documents.
        head: KnowBert's linker, in evaluation mode.
        scale: (2, F) mean and deviation of the features.
        temperature: T, chosen on held-out documents.
        results: accuracy and calibration on these, and the sizes of the training data.
    """

    arrays: RidgeArrays
    head: EntityLinker
    scale: Matrix
    temperature: float
    results: dict[str, float]


def train_head(
    data: LinkerData,
    config: HeadConfig,
    folder: Path,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> TrainedHead:
    """Train a head; documents of the first set that are held out choose the epoch and the temperature.

    Args:
        data: sets of documents, and what reads them.
        config: settings of the head.
        folder: folder for checkpoints: a training that was stopped goes on there.
        device: torch device on which it is trained.
        progress: callback with stage, steps done and total.

    Raises:
        UsageError: if no mention has a right candidate, or there is no such device.
        BuildFailed: if the loss is not finite.
    """
    together = data.sums()
    arrays, _ = fit_weighted_means(data, together)
    sentences = [*labelled_sentences(data, together, arrays, progress)]
    scale = scaling(sentences)
    sentences = [sentence.scaled(scale) for sentence in sentences]
    head = fit_head(data, arrays, sentences, scale, config, folder, device=device, progress=progress)
    scorer = HeadScorer(data.reader, data.vectors, arrays, head.network(), scale)
    last = list(Hidden(data.parts).summed(scorer, [sentence for sentence in sentences if sentence.held_out]))
    temperature = best_temperature(last, 1 + SHARE)  # where too little is held out, ψ + w s becomes a mean
    results = {
        **training_counts(data.parts, arrays),
        **held_out_metrics(last, temperature),
        **prior_accuracy(last),
    }
    return TrainedHead(arrays, head, scale, temperature, results)


def fit_head(
    data: LinkerData,
    arrays: RidgeArrays | None,
    sentences: "Sequence[LabelledSentence]",
    scale: Matrix,
    config: HeadConfig,
    folder: Path,
    *,
    device: str,
    progress: Progress | None,
) -> EntityLinker:
    """Return KnowBert's linker, trained over what the encoder of *reader* has read, in evaluation mode.

    Args:
        data, config, folder, device, progress: as `train_head` has them.
        arrays: means and counts of what was seen in training; None for a portable head.
        sentences: sentences of all sets, with scaled features.
        scale: (2, F) mean and deviation of the features.
    """
    reader, vectors = data.reader, data.vectors
    hidden, held_out = Hidden(data.parts), [sentence for sentence in sentences if sentence.held_out]
    torch.manual_seed(config.seed)
    settings = EntityLinkerConfig(
        hidden=reader.width, width=config.width, stored=vectors.width, features=scale.shape[1],
        input_dropout=config.dropout,
    )  # fmt: skip
    head = EntityLinker(settings, torch.Generator().manual_seed(config.seed))

    def accuracy(model: EntityLinker) -> float:
        scorer = HeadScorer(reader, vectors, arrays, model.network(), scale)
        return held_out_metrics(list(hidden.summed(scorer, held_out)), 1.0)["held_out_accuracy"]

    train(
        head, _Batches(sentences, hidden, vectors, config),
        partial(_loss, mention_counts=MentionCounts(scale, data.balance)),
        [torch.optim.AdamW(head.parameters(), lr=config.lr, weight_decay=config.decay)],
        TrainingConfig(epochs=config.epochs, schedule="one-cycle", warmup=0.3, bf16=False,
                       device=device, seed=config.seed),
        folder,
        evaluate=accuracy if held_out else None,
        progress=progress,
        resume=True,
    )  # fmt: skip
    return head


class LabelledSentence(NamedTuple):
    """A sentence with its features.

    Attributes:
        sentence: its mentions.
        means_scores: scores s (C,) by the means of each mention's candidates, if it is held out; else zeros.
        part: of which set it is, by number.
        held_out: whether it is held out.
        trainable: whether something can be learnt of it.
    """

    sentence: LinkerSentence
    means_scores: list[Matrix]
    part: int
    held_out: bool
    trainable: bool

    def scaled(self, scale: Matrix) -> "LabelledSentence":
        """Return the sentence with features less their mean, `scale[0]`, over their deviation, `scale[1]`."""
        features = [(feature - scale[0]) / scale[1] for feature in self.sentence.features]
        return self._replace(sentence=self.sentence._replace(features=features))


def truncate_candidates(sentence: LinkerSentence) -> LinkerSentence:
    """Return a sentence with at most `_MOST` candidates a mention."""
    return LinkerSentence(
        sentence.rows,
        [ids[:_MOST] for ids in sentence.ids],
        [features[:_MOST] for features in sentence.features],
        [right[:_MOST] for right in sentence.right or ()],
    )


def scaling(sentences: Sequence[LabelledSentence]) -> Matrix:
    """Return (2, F), mean and deviation of the features."""
    flat = np.concatenate([features for each in sentences for features in each.sentence.features])
    return np.stack([flat.mean(0), np.maximum(flat.std(0), 1e-6)]).astype(np.float32)


def labelled_sentences(
    data: LinkerData,
    together: Sums,
    arrays: RidgeArrays,
    progress: Progress | None,
) -> Iterator[LabelledSentence]:
    """Yield the sentences of all sets, rows counted through, with features that leave their document out."""
    begin = 0
    for index, part in enumerate(data.parts):
        held_out = set(part.documents[part.held_out()].tolist()) if part is data.parts[0] else set()
        own = part.own_sums()
        row = begin
        for number, labelled in enumerate(part.labelled):
            candidates = labelled.candidates
            rows = np.arange(row - begin, row - begin + len(candidates))
            features, means = _without_document(part, number, rows, own, together, arrays)
            means_scores = [np.zeros(len(these), np.float32) for these in features]
            if number in held_out:
                scorer = RidgeScorer(data.reader, data.vectors, means)
                means_scores = list(map(scorer.scores, part.queries_of(rows, part.mean), candidates))
            yield from _sentences(labelled, row, features, means_scores, index, held_out=number in held_out)
            row += len(candidates)
            if progress is not None and number % 64 == 0:
                progress("counting what was seen", number, len(part.labelled))
        begin = row


def _sentences(
    labelled: LabelledDocument,
    begin: int,
    features: Sequence[Matrix],
    means_scores: Sequence[Matrix],
    part: int,
    *,
    held_out: bool,
) -> Iterator[LabelledSentence]:
    """Yield the sentences of a document whose first mention is in row *begin*."""
    for indices in sentences_of(labelled.document):
        right = [labelled.right[p] for p in indices]
        ids = [labelled.candidates[p].ids for p in indices]
        sentence = LinkerSentence(begin + indices, ids, [features[p] for p in indices], right)
        trainable = not held_out and any(some.any() and len(some) > 1 for some in right)
        yield LabelledSentence(sentence, [means_scores[p] for p in indices], part, held_out, trainable)


def _without_document(
    part: TrainingSet,
    number: int,
    rows: "np.ndarray",
    own: list[dict[int, tuple[Matrix, int]]],
    together: Sums,
    arrays: RidgeArrays,
) -> tuple[list[Matrix], RidgeArrays]:
    """Return features (C, F) of the mentions of a document as if it had not been seen, and means alike.

    The map is that of all documents.
    """
    candidates = part.labelled[number].candidates
    if not candidates:
        return [], arrays
    sizes = np.array([len(each) for each in candidates], np.int64)
    query = np.repeat(part.queries_of(rows, part.mean), sizes, axis=0)  # (R, K · D)
    own_meanings = np.concatenate([meanings(each) for each in candidates])
    unique, back = np.unique(own_meanings, return_inverse=True)
    index, in_sums = match_sorted(together.meanings, unique)
    counts = np.where(in_sums, together.counts[index], 0)
    sums = together.sums[index] * in_sums[:, None]
    for at, meaning in enumerate(unique.tolist()):
        if (mine := own[number].get(meaning)) is not None:
            sums[at] -= mine[0]
            counts[at] -= mine[1]
    sums[counts < 0.5] = 0  # what is left then is rounding
    centroids = unit(sums)
    likeness = np.einsum("rk,rk->r", centroids[back], query)
    positive = counts > 0.5
    means = arrays._replace(  # behind them one that no candidate means: there may be no other
        meanings=np.append(unique[positive], np.uint32(NO_SENSE)),
        centroids=np.concatenate([centroids[positive], np.zeros((1, centroids.shape[1]))], dtype=np.float16),
        counts=np.append(counts[positive], np.float32(0)),
    )
    cuts = np.cumsum(sizes)[:-1]
    return np.split(candidate_features(counts[back], likeness, sizes), cuts), means


class Hidden:
    """The vectors of the mentions of all sets, by rows counted through, as the head takes them."""

    def __init__(self, parts: Sequence[TrainingSet]) -> None:
        self.parts = parts
        self.begins = np.cumsum([0, *(len(part.vectors) for part in parts)])

    def __call__(self, rows: "np.ndarray") -> Matrix:
        vectors = np.empty((len(rows), self.parts[0].vectors.shape[1]), np.float32)
        which = np.searchsorted(self.begins, rows, "right") - 1
        for number, part in enumerate(self.parts):
            mine = which == number
            vectors[mine] = part.vectors[rows[mine] - self.begins[number]]
        return hidden_of(vectors, self.parts[0].layers)

    def summed(self, scorer: HeadScorer, sentences: Sequence[LabelledSentence]) -> Iterator[_Scored]:
        """Yield the scores ψ + w s (C,) of mentions one of whose candidates is right, and which are."""
        for begin in range(0, len(sentences), _AT_ONCE):
            part = sentences[begin : begin + _AT_ONCE]
            bounds = np.cumsum([0, *(len(sentence.sentence.rows) for sentence in part)])
            numbered = [
                sentence.sentence._replace(rows=np.arange(first, last))
                for sentence, (first, last) in zip(part, pairwise(bounds.tolist()), strict=True)
            ]
            scores = scorer.scored(
                numbered, self(np.concatenate([sentence.sentence.rows for sentence in part]))
            )
            means_scores = [these for sentence in part for these in sentence.means_scores]
            right = [these.astype(np.bool_) for sentence in part for these in sentence.sentence.right or ()]
            for sentence, other, which in zip(scores, means_scores, right, strict=True):
                if which.any():
                    yield sentence + np.float32(SHARE) * other, which


class _Batches:
    """Sentences in another order each epoch, those of a set by themselves: others are as long as they."""

    def __init__(
        self,
        sentences: Sequence[LabelledSentence],
        hidden: Hidden,
        vectors: "VectorRows",
        config: HeadConfig,
    ) -> None:
        self.hidden, self.vectors, self.seed = hidden, vectors, config.seed
        self.sets = [
            [
                truncate_candidates(sentence.sentence)
                for sentence in sentences
                if sentence.trainable and sentence.part == part
            ]
            for part in range(len(hidden.parts))
        ]
        mentions = [sum(len(sentence.rows) for sentence in sentences) for sentences in self.sets]
        self.counts = [
            min(len(sentences), max(1, round(count / config.batch)))
            for sentences, count in zip(self.sets, mentions, strict=True)
        ]

    def __len__(self) -> int:
        return sum(self.counts)

    def epoch(self, number: int, indices: Sequence[int]) -> "Iterator[tuple[LinkerInputs, Tensor]]":
        """Yield inputs and gold of batches in the order of epoch *number*; a batch is of one set."""
        drawn = np.random.default_rng([self.seed, number])
        batches = [
            [sentences[at] for at in part]
            for sentences, count in zip(self.sets, self.counts, strict=True)
            if count
            for part in np.array_split(drawn.permutation(len(sentences)), count)
        ]
        order = drawn.permutation(len(batches))
        for index in indices:
            yield shared_linker_inputs(
                batches[order[index]], lambda ids: texts_of(self.vectors, ids), self.hidden
            )


def _loss(
    model: torch.nn.Module, batch: "tuple[LinkerInputs, Tensor]", mention_counts: MentionCounts
) -> tuple[Tensor, float]:
    inputs, gold = batch
    losses, counted = model.losses(model(inputs), gold)  # type: ignore[operator]
    count = max(1, int(counted.sum()))
    return (losses * mention_counts(inputs, gold, counted)).sum() / count, float(count)
