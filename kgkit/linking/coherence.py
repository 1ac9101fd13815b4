"""Coherence: what a document's mentions mean together.

Each candidate c has a sparse vector a(c) over the entities of the KB: itself,
its neighbours by any fact, and what the words of its description may mean,
weighted by their priors; it is tf-idf weighted within the window (a node that
every candidate has says nothing) and of length 1. With p the score that it had
before, the prior for one, r the candidate's place in its list by p and q₀ ∝ p · δʳ,

    s(c) = Σ over candidates c' of mentions of other words:  q(c') · a(c)·a(c')
    q(c) ∝ p(c) · δʳ · (1 + β s(c))                     within a mention, twice

Sources: global coherence as a second stage, Ratinov et al. (2011); relations
to the words of the gloss, Banerjee & Pedersen (2003) and Agirre & Soroa (2009),
here not disambiguated but weighted; a word gives no support to itself, as in
the `w2w` of Agirre, López de Lacalle & Soroa (2014). β, δ and the window were
chosen on semeval2007.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kgkit.bounded_cache import BoundedCache
from kgkit.candidates import Generator
from kgkit.kb import KnowledgeBase
from kgkit.pauses import pause
from kgkit.ranges import check_range
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Entity, Ids, Mention, Numbers

Weights = NDArray[np.float32]

_CACHE_BYTES: Final = 64_000_000


@dataclass(frozen=True, kw_only=True)
class CoherenceConfig:
    """Settings of `GraphCoherence`."""

    strength: float = 5.0  # β
    decay: float = 0.8  # δ, in (0, 1]: what each place in the list costs, so that ties stay in order
    window: int = 40  # mentions that are looked at together
    rounds: int = 2
    max_neighbors: int = 256  # of an entity; the first ones, in the order of the source
    words: int = 5  # meanings considered of each word of a description

    def __post_init__(self) -> None:
        check_range(self, "window", "rounds", least=1)
        check_range(self, "strength", "max_neighbors", "words", least=0)
        check_range(self, "decay", above=0, most=1)


class GraphCoherence:
    """Scores the candidates of a document's mentions by how well they go together.

    Args:
        kb: whose graph is walked.
        generator: finds mentions in descriptions.
        config: settings.
    """

    def __init__(
        self, kb: KnowledgeBase, generator: Generator, config: CoherenceConfig | None = None
    ) -> None:
        self.kb, self.generator, self.config = kb, generator, config or CoherenceConfig()
        self._vectors = BoundedCache[int, tuple[Ids, Weights]](_CACHE_BYTES)

    def __call__(self, mentions: Sequence[Mention], scores: Sequence[Weights] | None = None) -> list[Weights]:
        """Return, for each mention, the scores of its candidates: (C,) float32, sum 1 (empty for none).

        Args:
            mentions: of one document, in order.
            scores: (C,) for each mention, what a model says of its candidates; None: their priors.
        """
        if scores is None:
            scores = [(mention.candidates or NO_CANDIDATES).priors for mention in mentions]
        agreed: list[Weights] = []
        for begin in range(0, len(mentions), self.config.window):
            pause()
            here = slice(begin, begin + self.config.window)
            agreed.extend(self._window(mentions[here], scores[here]))
        return agreed

    def _window(self, mentions: Sequence[Mention], scores: Sequence[Weights]) -> list[Weights]:
        rows = [(mention.candidates or NO_CANDIDATES).rows for mention in mentions]
        sizes = [len(row) for row in rows]
        if not sum(sizes):
            return [np.empty(0, np.float32) for _ in rows]
        rank = np.concatenate([_ranks(score) for score in scores])
        prior = np.concatenate([*scores]) * self.config.decay**rank  # (R,)
        mention = np.repeat(np.arange(len(rows)), sizes)  # (R,)
        words: dict[str, int] = {}
        word = np.repeat(
            [words.setdefault(fold(m.lemma or m.text), len(words)) for m in mentions], sizes
        )  # (R,)
        row, node, value = self._matrix(np.concatenate([row["entity"] for row in rows]))  # (V,) each
        nodes = int(node.max()) + 1
        _, own = np.unique(word[row] * nodes + node, return_inverse=True)  # (V,): what the word itself brings
        score = _shares(prior, mention)
        for _ in range(self.config.rounds):
            mass = score[row] * value
            outside_mass = np.bincount(node, mass)[node] - np.bincount(own, mass)[own]
            support = np.bincount(row, value * outside_mass, len(prior))
            score = _shares(prior * (1 + self.config.strength * support), mention)
        return np.split(score.astype(np.float32), np.cumsum(sizes)[:-1])

    def _matrix(self, entities: Ids) -> tuple[Numbers, Numbers, NDArray[np.float64]]:
        """Return `(row, node, value)` of the non-zero values of a(c), a row per candidate."""
        vectors = [self._vector(entity) for entity in entities.tolist()]
        row = np.repeat(np.arange(len(vectors)), [len(ids) for ids, _ in vectors])
        _, node = np.unique(np.concatenate([ids for ids, _ in vectors]), return_inverse=True)
        value = np.concatenate([weights for _, weights in vectors]).astype(np.float64)
        value *= np.log(len(vectors) / np.bincount(node))[node]
        length = np.sqrt(np.bincount(row, value**2, len(vectors)))
        return row, node, value / np.where(length > 0, length, 1)[row]

    def _vector(self, number: int) -> tuple[Ids, Weights]:
        """Return the nodes of an entity and their weights, before they are weighted within a window."""
        vector = self._vectors.get(number)
        if vector is None:
            weights = {number: 1.0}
            for other in self.kb.neighbors(number)[: self.config.max_neighbors].tolist():
                weights[other] = weights.get(other, 0) + 1
            with self.generator.omissions.pause():
                mentions = self.generator.mentions(_description(self.kb[number]))
            for mention in mentions:
                for other, _, prior in (
                    (mention.candidates or NO_CANDIDATES).rows[: self.config.words].tolist()
                ):
                    if other != number:
                        weights[other] = weights.get(other, 0) + prior
            vector = np.fromiter(weights, np.uint32), np.fromiter(weights.values(), np.float32)
            self._vectors.keep(number, vector)
        return vector


def _ranks(scores: Weights) -> Numbers:
    """Return (C,) the place of each candidate, best first; of equal ones the first stays first."""
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return ranks


def _description(entity: Entity) -> str:
    return "; ".join([entity.description, *entity.attributes.get("examples", ())])


def _shares(weight: NDArray[np.float64], mention: Numbers) -> NDArray[np.float64]:
    """Return each weight as a share of its mention's."""
    total = np.bincount(mention, weight)[mention]
    return weight / np.where(total > 0, total, 1)
