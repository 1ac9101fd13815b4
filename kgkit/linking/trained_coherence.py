"""Coherence that was learnt: a second stage above any first one, without an encoder or vectors of its own.

    x₀(c)    = features of c in its document, log p₀(c), both as they are and less the mention's best
    p₁       = f₀(x₀)
    pᵣ₊₁     = fᵣ(x₀, log pᵣ, features of links given pᵣ)            r = 1, 2
    f(x)(c)  = exp(s(x(c)) / T) / Σ over the mention's candidates
    s(x)     = mean over the members of  u·x + v·relu(A x + b)      x with mean 0 and deviation 1 in training

p₀ is what the first stage says. The members of f have each seen other documents
(`kgkit.training.linkers.coherence`). T is 1 but in the last round. Features: `entity_features` and
`link_features`.

Sources: a model of local features, then of links to what the others are likely to mean, Ratinov et al.
(2011); rounds, each trained on what the round before says of documents it has not seen: stacking, Cohen &
Carvalho (2005). Where training has mentions that mean nothing in the KB, NULL has the score 0 in each
mention: p is then the probability that the mention means the candidate, and not NULL.

R  candidates    M  mentions    F  features    G  members    H  hidden
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np

from kgkit.linking.entity_features import EntityFeatures, EntityFeaturesConfig, relative
from kgkit.linking.link_features import LinkFeatures, LinkFeaturesConfig
from kgkit.linking.scoring import ScoreParts, Scorer, Scores
from kgkit.models.arrays import read_archive
from kgkit.models.manifest import Temperature, checking_settings, damaged
from kgkit.types import LEAST_PRIOR, NO_CANDIDATES, Document, Matrix, Numbers

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

FILE: Final = "coherence.npz"


class Members(NamedTuple):
    """The networks of a round.

    Attributes:
        mean, deviation: (F,) of the features.
        direct: (G, F), u.
        weight: (G, F, H), A.
        bias: (G, H), b.
        out: (G, H), v.
    """

    mean: Matrix
    deviation: Matrix
    direct: Matrix
    weight: Matrix
    bias: Matrix
    out: Matrix

    def __call__(self, features: Matrix) -> Scores:
        """Return s, (R,), of candidates with these features, (R, F)."""
        scaled = (features - self.mean) / self.deviation
        total = scaled @ self.direct.mean(0)
        for weight, bias, out in zip(self.weight, self.bias, self.out, strict=True):
            total += np.maximum(scaled @ weight + bias, 0) @ out / np.float32(len(self.out))
        scores: Scores = total
        return scores


class TrainedCoherence:
    """Scores the candidates of a document again: by what they are, and by their links to each other.

    Args:
        features: of candidates by themselves.
        links: of candidates beside each other.
        rounds: the networks of each.
        nil: whether it has learnt that mentions may mean nothing.
        temperature: T.
    """

    def __init__(
        self,
        features: EntityFeatures,
        links: LinkFeatures,
        rounds: Sequence[Members],
        *,
        nil: bool = False,
        temperature: float = 1.0,
    ) -> None:
        self.features, self.links, self.rounds = features, links, list(rounds)
        self.nil, self.temperature = nil, temperature

    def __call__(self, document: Document, scores: Sequence[Scores]) -> list[Scores]:
        """Return the scores (C,) of the candidates of each mention; they sum to 1, less what NULL has.

        Args:
            document: its mentions have candidates.
            scores: (C,) for each mention, what the first stage says.
        """
        nulls = [
            np.float32((mention.candidates or NO_CANDIDATES).null) for mention in document.mentions or ()
        ]
        scores = [score / (1 - null) for score, null in zip(scores, nulls, strict=True)]
        sizes = np.array([len(score) for score in scores], np.int64)
        first = self.first(document, scores)
        for index, members in enumerate(self.rounds):
            inputs = first if not index else self.again(document, first, scores)
            temperature = self.temperature if index == len(self.rounds) - 1 else 1.0
            probability = probabilities(members(inputs), sizes, temperature, nil=self.nil)
            scores = np.split(probability, np.cumsum(sizes)[:-1]) if len(sizes) else []
        return [score * (1 - null) for score, null in zip(scores, nulls, strict=True)]

    def first(self, document: Document, scores: Sequence[Scores]) -> Matrix:
        """Return x₀, (R, F), of the candidates of all mentions."""
        return np.concatenate([self.features(document), _logarithms(scores)], axis=1)

    def again(self, document: Document, first: Matrix, scores: Sequence[Scores]) -> Matrix:
        """Return x, (R, F'), of a later round: *first*, and the features of links given *scores*."""
        links = self.links(document.mentions or [], scores)
        return np.concatenate([first, _logarithms(scores), links], axis=1)

    # -- on disk ------------------------------------------------------------

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the networks into *folder*, and return the settings, for the manifest."""
        arrays = {
            f"{name} {index}": getattr(members, name)
            for index, members in enumerate(self.rounds)
            for name in Members._fields
        }
        np.savez(folder / FILE, **arrays)
        return {
            "traits": asdict(self.features.config),
            "links": asdict(self.links.config),
            "rounds": len(self.rounds),
            "nil": self.nil,
            "temperature": self.temperature,
        }

    @classmethod
    def open(cls, folder: Path, kb: "KnowledgeBase", settings: dict[str, Any]) -> "TrainedCoherence":
        """Read what `save` wrote.

        Raises:
            DamagedModel: if it cannot be read.
        """
        arrays = read_archive(folder / FILE)
        with checking_settings(folder):
            read = msgspec.convert(settings, _Settings)
            rounds = [
                Members(*(arrays[f"{name} {index}"] for name in Members._fields))
                for index in range(read.rounds)
            ]
            features, links = EntityFeatures(kb, read.features), LinkFeatures(kb, read.links)
            if not all((members.deviation > 0).all() and members.direct.size for members in rounds):
                raise damaged(folder, f"{FILE} has no networks, or deviations that are not above 0")
            opened = cls(features, links, rounds, nil=read.nil, temperature=read.temperature)
            opened(Document("", "", mentions=[]), [])  # the networks have to be as wide as the features
        return opened


class _Settings(msgspec.Struct):
    """What a manifest says of the second stage."""

    features: EntityFeaturesConfig = msgspec.field(name="traits")
    links: LinkFeaturesConfig
    rounds: Annotated[int, msgspec.Meta(ge=1)]
    nil: bool
    temperature: Temperature


class CoherentScorer(Scorer):
    """Scores candidates by a first stage, and then by coherence.

    Args:
        first: the first stage.
        coherence: the second.
        name: that links carry.
    """

    def __init__(self, first: Scorer, coherence: TrainedCoherence, *, name: str) -> None:
        self.first, self.coherence, self.name, self.batch_size = first, coherence, name, first.batch_size

    def __call__(self, documents: Sequence[Document]) -> list[list[Scores]]:
        return [
            self.coherence(document, scores)
            for document, scores in zip(documents, self.first(documents), strict=True)
        ]

    def explain(self, documents: Sequence[Document]) -> list[list[ScoreParts]]:
        """Return the parts of the first stage's scores, each with what coherence adds to it."""
        return [
            [
                part.with_coherence(score)
                for part, score in zip(
                    parts, self.coherence(document, [part.score for part in parts]), strict=True
                )
            ]
            for document, parts in zip(documents, self.first.explain(documents), strict=True)
        ]


def probabilities(scores: Scores, sizes: Numbers, temperature: float = 1.0, *, nil: bool = False) -> Scores:
    """Return p, (R,): softmax(s / T) within each mention; *sizes* (M,) are the candidates of each.

    With *nil*, one more candidate has the score 0, and keeps its part.
    """
    if not len(scores):
        return np.empty(0, np.float32)
    nonempty = sizes > 0
    begins = (np.cumsum(sizes) - sizes)[nonempty]
    best = np.maximum.reduceat(scores, begins)
    if nil:
        best = np.maximum(best, 0)
    weights = np.exp((scores - np.repeat(best, sizes[nonempty])) / np.float32(temperature))
    total = np.add.reduceat(weights, begins)
    if nil:
        total += np.exp(-best / np.float32(temperature))
    result: Scores = (weights / np.repeat(total, sizes[nonempty])).astype(np.float32)
    return result


def _logarithms(scores: Sequence[Scores]) -> Matrix:
    """Return (R, 2): the logarithms of scores, and those less the mention's best."""
    sizes = np.array([len(score) for score in scores], np.int64)
    logarithms = np.log(np.maximum(np.concatenate([np.empty(0, np.float32), *scores]), LEAST_PRIOR))[:, None]
    return np.concatenate([logarithms, relative(logarithms, sizes)], axis=1)
