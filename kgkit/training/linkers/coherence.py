"""Training the second stage: `kgkit.linking.trained_coherence` has the equations.

A second stage has to be trained on scores that the first stage gives documents which the first stage was
not trained on. So documents are cut into as many folds as there are members. In each round every member is
trained on all folds but its own, and its scores of its own fold are training data of the next round; when
it links, the score of a round is the mean over its members. The temperature is chosen on the last round's
scores, each document being scored by the member that was not trained on it. Folds, not every fifth
document: a paper returns to a story the next day.

R  candidates    M  mentions    F  features    G  members, folds    H  hidden
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.linking.entity_features import EntityFeatures, EntityFeaturesConfig
from kgkit.linking.link_features import LinkFeatures, LinkFeaturesConfig
from kgkit.linking.scoring import Scores
from kgkit.linking.settings import LinkSettings
from kgkit.linking.trained_coherence import Members, TrainedCoherence, probabilities
from kgkit.training.linkers.cross_fitting import folds_of
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.types import Candidates, Matrix, Numbers, Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

POPULARITY: Final = ("in_count", "popularity")
"""Attributes that are taken for how well known an entity is, where a knowledge base has them."""

_MAX_SCANNED: Final = 10_000  # entities that are asked for these attributes
_MOST: Final = LinkSettings.max_candidates
_FEWEST: Final = 20  # entities of a type that is told apart
_TYPES: Final = 8
_DECAYS: Final = (0.9, 0.999)  # of Adam, Kingma & Ba (2015)
_WARM: Final = 0.3  # of the steps, in which the rate rises
_TINY: Final = 1e-8


class CoherenceConfig(NamedTuple):
    """Settings of the training.

    Attributes:
        seed: seed of weights, order and dropout.
        links: settings of the features of links.
        rounds: number of rounds with features of links, after one without.
        members: number of members of each round; at least 2.
        hidden: width H of the hidden layer; 0 for log-linear members.
        epochs, batch, lr, decay: settings of AdamW, in one cycle; a batch has so many mentions.
        dropout: dropout of the hidden layer.
    """

    seed: int = 0
    links: LinkFeaturesConfig = LinkFeaturesConfig()
    rounds: int = 2
    members: int = 5
    hidden: int = 64
    epochs: int = 30
    batch: int = 256
    lr: float = 4e-3
    decay: float = 0.01
    dropout: float = 0.1


class TrainedSecondStage(NamedTuple):
    """A trained second stage with its scores of the training data.

    Attributes:
        coherence: the stage.
        scored: scores by the last round of each mention that has a right candidate, before the temperature,
            by members that were not trained on it; and which candidates are right. With nil, NIL is one
            more candidate.
    """

    coherence: TrainedCoherence
    scored: Scored


class _CoherenceExamples(NamedTuple):
    """Training examples: (R, F) features, (R,) which are right, (M,) candidates of a mention, (M,) its fold.

    `nil`: whether mentions without a right candidate are labelled NIL; otherwise they are left out.
    """

    features: Matrix
    right: NDArray[np.bool_]
    sizes: Numbers
    folds: Numbers
    nil: bool


def train_coherence(
    kb: "KnowledgeBase",
    labelled: Sequence[LabelledDocument],
    first: Sequence[Sequence[Scores]],
    config: CoherenceConfig,
    progress: Progress | None = None,
) -> TrainedSecondStage:
    """Train the second stage.

    Args:
        kb: knowledge base whose links and names give features.
        labelled: documents with gold.
        first: for each document and mention the scores (C,) by a first stage that was not trained on the
            document.
        config: settings.
        progress: callback with the networks done, of how many.

    Raises:
        UsageError: if there are fewer documents than members.
    """
    labelled, first = _cut(labelled, first)
    nil = any(not right.any() for document in labelled for right in document.right)
    features = EntityFeatures(
        kb, EntityFeaturesConfig(popularity=popularity_of(kb), types=_types(kb, labelled))
    )
    stage = TrainedCoherence(features, LinkFeatures(kb, config.links), [], nil=nil)
    local = [stage.first(document.document, scores) for document, scores in zip(labelled, first, strict=True)]
    sizes = [np.array([len(score) for score in scores], np.int64) for scores in first]
    fold = np.array(list(folds_of(len(labelled), config.members))).argmax(0)  # (N,)
    inputs, latest = local, np.empty(0, np.float32)
    examples = _CoherenceExamples(
        np.empty(0, np.float32),
        np.concatenate([right for document in labelled for right in document.right]),
        np.concatenate(sizes),
        np.repeat(fold, [len(document) for document in sizes]),
        nil,
    )
    bounds = np.cumsum([int(document.sum()) for document in sizes])[:-1]
    for index in range(config.rounds + 1):
        if index:
            scores = np.split(probabilities(latest, examples.sizes, nil=nil), bounds)
            inputs = [
                stage.again(document.document, features, np.split(score, np.cumsum(size)[:-1]))
                for document, features, score, size in zip(labelled, local, scores, sizes, strict=True)
            ]
        progressed = index * config.members, (config.rounds + 1) * config.members
        here = examples._replace(features=np.concatenate(inputs))
        members, latest = _round(
            here, config, np.random.default_rng([config.seed, index]), progressed, progress
        )
        stage.rounds.append(members)
    scored = [
        (np.append(score, np.float32(0)) if nil else score, np.append(right, False) if nil else right)
        for score, right in zip(
            np.split(latest, np.cumsum(examples.sizes)[:-1]),
            np.split(examples.right, np.cumsum(examples.sizes)[:-1]),
            strict=True,
        )
        if right.any()
    ]
    stage.temperature = best_temperature(scored, 1.0)
    return TrainedSecondStage(stage, scored)


def _cut(
    labelled: Sequence[LabelledDocument], first: Sequence[Sequence[Scores]]
) -> tuple[list[LabelledDocument], list[list[Scores]]]:
    """Return documents and scores cut to as many candidates as a linker scores, best prior first."""
    documents, cut_scores = [], []
    for document, scores in zip(labelled, first, strict=True):
        mentions = []
        for mention, candidates in zip(document.document.mentions or (), document.candidates, strict=True):
            best = Candidates(candidates.rows[:_MOST], candidates.null, candidates.link_probability)
            mentions.append(structs.replace(mention, candidates=best))
        right = [which[:_MOST] for which in document.right]
        documents.append(LabelledDocument(structs.replace(document.document, mentions=mentions), right))
        cut_scores.append([score[:_MOST] for score in scores])
    return documents, cut_scores


def popularity_of(kb: "KnowledgeBase") -> tuple[str, ...]:
    """Return those of `POPULARITY` that *kb* has numbers in."""
    numbers = {
        attribute
        for entity in islice(kb, _MAX_SCANNED)
        for attribute in POPULARITY
        if isinstance(value := entity.attributes.get(attribute), int | float) and value > 0
    }
    return tuple(attribute for attribute in POPULARITY if attribute in numbers)


def _types(kb: "KnowledgeBase", labelled: Sequence[LabelledDocument]) -> tuple[str, ...]:
    """Return the types that are frequent among the right candidates, the most frequent first."""
    counts: dict[str, int] = {}
    gold = {
        number
        for document in labelled
        for candidates, right in zip(document.candidates, document.right, strict=True)
        for number in candidates.ids[right].tolist()
    }
    for number in sorted(gold):
        for name in kb[number].types:
            counts[name] = counts.get(name, 0) + 1
    often = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(name for name in often if counts[name] >= _FEWEST)[:_TYPES]


def _round(
    examples: _CoherenceExamples,
    config: CoherenceConfig,
    rng: np.random.Generator,
    progressed: tuple[int, int],
    progress: Progress | None,
) -> tuple[Members, Scores]:
    """Return the members of a round, and s (R,) of candidates by the member that was not trained on them."""
    mean, deviation = examples.features.mean(0), examples.features.std(0)
    deviation = np.where(deviation > 1e-4, deviation, 1).astype(np.float32)  # a trait that never changes
    scaled = (examples.features - mean) / deviation
    scores = np.empty(len(scaled), np.float32)
    networks = []
    for member in range(config.members):
        in_training = examples.folds != member
        network = _Network(scaled.shape[1], config, rng)
        network.learn(examples._replace(features=scaled), np.flatnonzero(in_training), rng)
        networks.append(network)
        own = np.repeat(~in_training, examples.sizes)
        scores[own] = network(scaled[own])
        if progress is not None:
            progress("training coherence", progressed[0] + member + 1, progressed[1])
    arrays = [np.stack([network.arrays[index] for network in networks]) for index in range(4)]
    return Members(mean, deviation, *arrays), scores


class _Network:
    """One member, with AdamW: s(x) = u·x + v·relu(A x + b).

    Written out, since it is small and its gradient short: so neither training nor linking needs torch.
    """

    def __init__(self, width: int, config: CoherenceConfig, rng: np.random.Generator) -> None:
        self.config = config
        hidden = config.hidden
        weight = rng.standard_normal((width, hidden)) * np.sqrt(2 / width)  # He et al. (2015)
        out = rng.standard_normal(hidden) * np.sqrt(1 / max(1, hidden))
        start = (np.zeros(width), weight, np.zeros(hidden), out)
        self.arrays = [np.asarray(array, np.float32) for array in start]  # u, A, b, v
        self._moments = [(np.zeros_like(array), np.zeros_like(array)) for array in self.arrays]
        self._steps = 0

    def __call__(self, features: Matrix) -> Scores:
        direct, weight, bias, out = self.arrays
        scores: Scores = features @ direct + np.maximum(features @ weight + bias, 0) @ out
        return scores

    def learn(self, examples: _CoherenceExamples, mentions: Numbers, rng: np.random.Generator) -> None:
        """Train on *mentions*, given by their indices; those without information are left out."""
        begins = np.cumsum(examples.sizes) - examples.sizes
        right = np.array(
            [
                examples.right[begins[mention] : begins[mention] + examples.sizes[mention]].any()
                for mention in mentions
            ]
        )
        enough = examples.sizes[mentions] > (0 if examples.nil else 1)
        mentions = mentions[enough & (right | examples.nil)]
        config = self.config
        batches = -(-len(mentions) // config.batch)
        total = config.epochs * batches
        for _ in range(config.epochs):
            order = rng.permutation(mentions)
            for batch in range(batches):
                chosen = order[batch * config.batch : (batch + 1) * config.batch]
                sizes = examples.sizes[chosen]
                rows = np.repeat(begins[chosen] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
                self._step(
                    examples.features[rows], examples.right[rows], sizes, examples.nil, self._rate(total), rng
                )

    def _rate(self, total: int) -> float:
        """Return the rate of the next step: up, then down as a cosine, Smith & Topin (2019)."""
        warm = max(1, int(_WARM * total))
        if self._steps < warm:
            return self.config.lr * (self._steps + 1) / warm
        return self.config.lr / 2 * (1 + float(np.cos(np.pi * (self._steps - warm) / max(1, total - warm))))

    def _step(
        self,
        features: Matrix,
        right: NDArray[np.bool_],
        sizes: Numbers,
        nil: bool,
        rate: float,
        rng: np.random.Generator,
    ) -> None:
        """Take a step down the surprise −log Σ p(right), whose slope is p less its share that is right."""
        direct, weight, bias, out = self.arrays
        reached = features @ weight + bias  # (R, H)
        active = (reached > 0) & (rng.random(reached.shape, np.float32) >= self.config.dropout)
        active_share = np.float32(1 - self.config.dropout)
        hidden: Matrix = active * reached
        hidden /= active_share
        scores: Scores = features @ direct + hidden @ out  # (R,)
        p = probabilities(scores, sizes, nil=nil)
        begins = np.cumsum(sizes) - sizes
        sums = np.add.reduceat(np.where(right, p, 0), begins)  # 0 where nothing is right: that is NULL's then
        goal = np.where(right, p / np.repeat(np.maximum(sums, _TINY), sizes), 0)
        slope = ((p - goal) / len(sizes)).astype(np.float32)  # (R,)
        back: Matrix = active * (slope[:, None] * out)  # (R, H)
        back /= active_share
        self._move((features.T @ slope, features.T @ back, back.sum(0), hidden.T @ slope), rate)

    def _move(self, slopes: Sequence[Matrix], rate: float) -> None:
        self._steps += 1
        for array, (first, second), slope in zip(self.arrays, self._moments, slopes, strict=True):
            first += (1 - _DECAYS[0]) * (slope - first)
            second += (1 - _DECAYS[1]) * (slope**2 - second)
            unbiased = first / (1 - _DECAYS[0] ** self._steps)
            length = np.sqrt(second / (1 - _DECAYS[1] ** self._steps)) + _TINY
            array -= np.float32(rate) * (unbiased / length + np.float32(self.config.decay) * array)
