"""Training the second stage: `kgkit.linking.trained_coherence` has the equations.

A stage that learns to trust the one before it must see what that one says of documents it has not learnt
from. So documents are cut into as many stretches as there are members. In each round every member learns from
all stretches but its own, and what it says of its own is what the next round learns from; when it links, a
round says the mean of its members. The temperature is that of what the last round says of such documents,
each of them held out of the member that is asked. Stretches, not every fifth document: a paper returns to a
story the next day.

R  candidates    M  mentions    F  traits    G  members, stretches    H  hidden
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kgkit.errors import UsageError
from kgkit.evaluation.calibration import Scored, best_temperature
from kgkit.linking.entity_features import EntityTraits, EntityTraitsConfig, Matrix, Numbers
from kgkit.linking.link_features import LinkTraits, LinkTraitsConfig
from kgkit.linking.linker import LinkerConfig
from kgkit.linking.scoring import Scores
from kgkit.linking.trained_coherence import Members, TrainedCoherence, probabilities
from kgkit.training.linkers.cross_fitting import stretches_of
from kgkit.training.linkers.labelled import LabelledDocument
from kgkit.types import NO_CANDIDATES, Candidates, Progress

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

_MOST: Final = LinkerConfig.max_candidates
_FEWEST: Final = 20  # entities of a type that is told apart
_TYPES: Final = 8
_DECAYS: Final = (0.9, 0.999)  # of Adam, Kingma & Ba (2015)
_WARM: Final = 0.3  # of the steps, in which the rate rises
_TINY: Final = 1e-8


@dataclass(frozen=True, kw_only=True)
class CoherenceTraining:
    """Settings of the second stage.

    Attributes:
        popularity: attributes of entities that are numbers: the more, the better known.
        nil: learn from mentions without a right candidate too, that they mean nothing in the KB.
        links: settings of the traits of links.
        rounds: that look at links, after one that does not.
        members: of each round; at least 2.
        hidden: H; 0 for log-linear members.
        epochs, batch, lr, decay: of AdamW, in one cycle; a batch is of so many mentions.
        dropout: of what is hidden.
        seed: of weights, order and dropout.
    """

    popularity: tuple[str, ...] = ()
    nil: bool = False
    links: LinkTraitsConfig = field(default_factory=LinkTraitsConfig)
    rounds: int = 2
    members: int = 5
    hidden: int = 64
    epochs: int = 30
    batch: int = 256
    lr: float = 4e-3
    decay: float = 0.01
    dropout: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        few = self.rounds < 0 or self.members < 2 or self.hidden < 0 or min(self.epochs, self.batch) < 1
        if few or self.lr <= 0 or not 0 <= self.dropout < 1:
            raise UsageError(
                f"out of range in {self}: members >= 2, epochs, batch >= 1, lr > 0, dropout in [0, 1), "
                "rounds, hidden >= 0"
            )


class Learnt(NamedTuple):
    """What came out of a training.

    Attributes:
        coherence: the stage.
        scored: what its last round says of each mention that has a right candidate, before the temperature,
            by members that have not learnt from it; and which candidates are right. With nil, nothing is
            one more of them.
    """

    coherence: TrainedCoherence
    scored: Scored


class _Set(NamedTuple):
    """What is learnt from: (R, F) traits, (R,) which are right, (M,) how many of a mention, (M,) its stretch.

    `nil` says whether mentions without a right candidate mean nothing: else they say nothing.
    """

    traits: Matrix
    right: NDArray[np.bool_]
    sizes: Numbers
    stretches: Numbers
    nil: bool


def train_coherence(
    kb: "KnowledgeBase",
    taught: Sequence[LabelledDocument],
    first: Sequence[Sequence[Scores]],
    config: CoherenceTraining,
    progress: Progress | None = None,
) -> Learnt:
    """Train the second stage.

    Args:
        kb: whose links and names are looked at.
        taught: documents.
        first: for each document and mention, what a first stage that has not learnt from the document says
            of the candidates, (C,).
        config: settings.
        progress: callback with the networks done, of how many.

    Raises:
        UsageError: if there are fewer documents than members.
    """
    taught, first = _cut(taught, first)
    nil = config.nil and any(not right.any() for one in taught for right in one.right)
    traits = EntityTraits(kb, EntityTraitsConfig(popularity=config.popularity, types=_types(kb, taught)))
    stage = TrainedCoherence(traits, LinkTraits(kb, config.links), [], nil=nil)
    told = [stage.first(one.document, scores) for one, scores in zip(taught, first, strict=True)]
    sizes = [np.array([len(score) for score in scores], np.int64) for scores in first]
    stretch = np.array(list(stretches_of(len(taught), config.members))).argmax(0)  # (N,)
    inputs, found = told, np.empty(0, np.float32)
    whole = _Set(
        np.empty(0, np.float32),
        np.concatenate([right for one in taught for right in one.right]),
        np.concatenate(sizes),
        np.repeat(stretch, [len(one) for one in sizes]),
        nil,
    )
    bounds = np.cumsum([int(one.sum()) for one in sizes])[:-1]
    for place in range(config.rounds + 1):
        if place:
            scores = np.split(probabilities(found, whole.sizes, nil=nil), bounds)
            inputs = [
                stage.again(one.document, traits, np.split(score, np.cumsum(size)[:-1]))
                for one, traits, score, size in zip(taught, told, scores, sizes, strict=True)
            ]
        done = place * config.members, (config.rounds + 1) * config.members
        here = whole._replace(traits=np.concatenate(inputs))
        members, found = _round(here, config, np.random.default_rng([config.seed, place]), done, progress)
        stage.rounds.append(members)
    scored = [
        (np.append(score, np.float32(0)) if nil else score, np.append(right, False) if nil else right)
        for score, right in zip(
            np.split(found, np.cumsum(whole.sizes)[:-1]),
            np.split(whole.right, np.cumsum(whole.sizes)[:-1]),
            strict=True,
        )
        if right.any()
    ]
    stage.temperature = best_temperature(scored, 1.0)
    return Learnt(stage, scored)


def _cut(
    taught: Sequence[LabelledDocument], first: Sequence[Sequence[Scores]]
) -> tuple[list[LabelledDocument], list[list[Scores]]]:
    """Return documents and scores with as many candidates as a linker looks at, best prior first."""
    found, kept = [], []
    for one, scores in zip(taught, first, strict=True):
        mentions = []
        for mention in one.document.mentions or ():
            candidates = mention.candidates or NO_CANDIDATES
            first_ones = Candidates(candidates.rows[:_MOST], candidates.null, candidates.link_probability)
            mentions.append(structs.replace(mention, candidates=first_ones))
        right = [which[:_MOST] for which in one.right]
        found.append(LabelledDocument(structs.replace(one.document, mentions=mentions), right))
        kept.append([score[:_MOST] for score in scores])
    return found, kept


def _types(kb: "KnowledgeBase", taught: Sequence[LabelledDocument]) -> tuple[str, ...]:
    """Return the types that are frequent among the right candidates, the most frequent first."""
    counts: dict[str, int] = {}
    meant = {
        number
        for one in taught
        for mention, right in zip(one.document.mentions or (), one.right, strict=True)
        if mention.candidates is not None
        for number in mention.candidates.ids[right].tolist()
    }
    for number in sorted(meant):
        for name in kb[number].types:
            counts[name] = counts.get(name, 0) + 1
    often = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(name for name in often if counts[name] >= _FEWEST)[:_TYPES]


def _round(
    told: _Set,
    config: CoherenceTraining,
    rng: np.random.Generator,
    done: tuple[int, int],
    progress: Progress | None,
) -> tuple[Members, Scores]:
    """Return the members of a round, and s (R,) of candidates by the member that has not learnt from them."""
    mean, deviation = told.traits.mean(0), told.traits.std(0)
    deviation = np.where(deviation > 1e-4, deviation, 1).astype(np.float32)  # a trait that never changes
    scaled = (told.traits - mean) / deviation
    found = np.empty(len(scaled), np.float32)
    networks = []
    for member in range(config.members):
        kept = told.stretches != member
        network = _Network(scaled.shape[1], config, rng)
        network.learn(told._replace(traits=scaled), np.flatnonzero(kept), rng)
        networks.append(network)
        own = np.repeat(~kept, told.sizes)
        found[own] = network(scaled[own])
        if progress is not None:
            progress("training coherence", done[0] + member + 1, done[1])
    arrays = [np.stack([network.arrays[place] for network in networks]) for place in range(4)]
    return Members(mean, deviation, *arrays), found


class _Network:
    """One member, with AdamW: s(x) = u·x + v·relu(A x + b).

    Written out, since it is small and its gradient short: so neither training nor linking needs torch.
    """

    def __init__(self, width: int, config: CoherenceTraining, rng: np.random.Generator) -> None:
        self.config = config
        hidden = config.hidden
        weight = rng.standard_normal((width, hidden)) * np.sqrt(2 / width)  # He et al. (2015)
        out = rng.standard_normal(hidden) * np.sqrt(1 / max(1, hidden))
        start = (np.zeros(width), weight, np.zeros(hidden), out)
        self.arrays = [np.asarray(array, np.float32) for array in start]  # u, A, b, v
        self._moments = [(np.zeros_like(array), np.zeros_like(array)) for array in self.arrays]
        self._steps = 0

    def __call__(self, traits: Matrix) -> Scores:
        direct, weight, bias, out = self.arrays
        found: Scores = traits @ direct + np.maximum(traits @ weight + bias, 0) @ out
        return found

    def learn(self, told: _Set, mentions: Numbers, rng: np.random.Generator) -> None:
        """Learn from *mentions*, by their numbers: those that tell something."""
        begins = np.cumsum(told.sizes) - told.sizes
        right = np.array([told.right[begins[one] : begins[one] + told.sizes[one]].any() for one in mentions])
        enough = told.sizes[mentions] > (0 if told.nil else 1)
        mentions = mentions[enough & (right | told.nil)]
        config = self.config
        batches = -(-len(mentions) // config.batch)
        total = config.epochs * batches
        for _ in range(config.epochs):
            order = rng.permutation(mentions)
            for batch in range(batches):
                chosen = order[batch * config.batch : (batch + 1) * config.batch]
                sizes = told.sizes[chosen]
                rows = np.repeat(begins[chosen] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
                self._step(told.traits[rows], told.right[rows], sizes, told.nil, self._rate(total), rng)

    def _rate(self, total: int) -> float:
        """Return the rate of the next step: up, then down as a cosine, Smith & Topin (2019)."""
        warm = max(1, int(_WARM * total))
        if self._steps < warm:
            return self.config.lr * (self._steps + 1) / warm
        return self.config.lr / 2 * (1 + float(np.cos(np.pi * (self._steps - warm) / max(1, total - warm))))

    def _step(
        self,
        traits: Matrix,
        right: NDArray[np.bool_],
        sizes: Numbers,
        nil: bool,
        rate: float,
        rng: np.random.Generator,
    ) -> None:
        """Take a step down the surprise −log Σ p(right), whose slope is p less its share that is right."""
        direct, weight, bias, out = self.arrays
        reached = traits @ weight + bias  # (R, H)
        kept = (reached > 0) & (rng.random(reached.shape, np.float32) >= self.config.dropout)
        kept_share = np.float32(1 - self.config.dropout)
        hidden: Matrix = kept * reached
        hidden /= kept_share
        scores: Scores = traits @ direct + hidden @ out  # (R,)
        p = probabilities(scores, sizes, nil=nil)
        begins = np.cumsum(sizes) - sizes
        sums = np.add.reduceat(np.where(right, p, 0), begins)  # 0 where nothing is right: that is NULL's then
        goal = np.where(right, p / np.repeat(np.maximum(sums, _TINY), sizes), 0)
        slope = ((p - goal) / len(sizes)).astype(np.float32)  # (R,)
        back: Matrix = kept * (slope[:, None] * out)  # (R, H)
        back /= kept_share
        self._move((traits.T @ slope, traits.T @ back, back.sum(0), hidden.T @ slope), rate)

    def _move(self, slopes: Sequence[Matrix], rate: float) -> None:
        self._steps += 1
        for array, (first, second), slope in zip(self.arrays, self._moments, slopes, strict=True):
            first += (1 - _DECAYS[0]) * (slope - first)
            second += (1 - _DECAYS[1]) * (slope**2 - second)
            unbiased = first / (1 - _DECAYS[0] ** self._steps)
            length = np.sqrt(second / (1 - _DECAYS[1] ** self._steps)) + _TINY
            array -= np.float32(rate) * (unbiased / length + np.float32(self.config.decay) * array)
