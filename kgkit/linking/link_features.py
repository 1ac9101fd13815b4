"""What the links of the KB tell of a document's candidates, given how probable each of them is by now.

Mentions of one surface mean one thing in a document: they stand together as a name, whose candidates have
the mean of their probabilities, P(n, e). An entity that is probable enough for some name supports others:
what it gives to a candidate of another name is o(n, k) = Σ P(n', k) over the other names n'.

    out, in         Σ o(n, k) w(k), over the k that e has a fact about, or that have one about e;
                    w(k) = 1 / log(2 + facts of k): who knows everybody tells little
    out and in      the same of those k that do both
    out any, in any
                    1 − Π (1 − o(n, k)): that at least one of them is meant
    out share       Σ o(n, k) as a share of the other names
    out best        the largest o(n, k) w(k)
    alike           Σ o(n, k) cos(a(e), a(k)), a(e) being e and its neighbours, each weighted by
                    log(candidates / those that have it)
    alike best      the largest o(n, k) cos(a(e), a(k))
    same            o(n, e): other names mean it too
    in longer       the largest P(n', e) of the names n' that have this one in them: Simmons, Phil Simmons
    in shorter      the largest of those that this one has in it
    name            P(n, e)

Each is told as log(1 + 5x), and again less the mention's best.

Sources: relatedness by the links of two pages, Milne & Witten (2008); expected support of the other mentions'
candidates, Ratinov et al. (2011); coreference of names, Cucerzan (2007), Ganea & Hofmann (2017).

R  candidates of all mentions    L  features    N  names    U  pairs of a name and an entity
E  entities    K  those of them that support others
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from kgkit.bounded_cache import BoundedCache
from kgkit.kb import KnowledgeBase
from kgkit.linking.entity_features import relative
from kgkit.linking.scoring import Scores
from kgkit.ranges import check_range
from kgkit.sorted_ids import match_sorted
from kgkit.text import fold, tokens
from kgkit.types import NO_CANDIDATES, Ids, Matrix, Mention, Numbers

FEATURES: Final = (
    "out", "in", "out and in", "out any", "in any", "out share", "out best", "alike", "alike best", "same",
    "in longer", "in shorter", "name",
)  # fmt: skip

_NOTHING: Final = np.empty(0, np.uint32)
_NODES: Final = 2_048  # neighbours that are compared at once
_STEEP: Final = 5.0
_SURE: Final = 0.999
_CACHE_BYTES: Final = 64_000_000


@dataclass(frozen=True, kw_only=True)
class LinkFeaturesConfig:
    """Settings of `LinkFeatures`.

    Attributes:
        probable: what a candidate needs for some name, to support others.
        window: mentions that are looked at together; a document of more is cut into equal parts.
        max_neighbors: of an entity; the first ones, in the order of the source.
    """

    probable: float = 0.02
    window: int = 400
    max_neighbors: int = 1_000

    def __post_init__(self) -> None:
        check_range(self, "probable", least=0, below=1)
        check_range(self, "window", "max_neighbors", least=1)


class _Names(NamedTuple):
    """The names of some mentions.

    Attributes:
        of_mention: (M,) the name of each.
        longer: pairs (n, n'), (X, 2): n' has n in it.
    """

    of_mention: Numbers
    longer: Numbers


class LinkFeatures:
    """Gives the candidates of a document's mentions the features of their links.

    Args:
        kb: whose facts are the links.
        config: settings.
    """

    names = (*FEATURES, *(f"{name}, relative" for name in FEATURES))

    def __init__(self, kb: KnowledgeBase, config: LinkFeaturesConfig | None = None) -> None:
        self.kb, self.config = kb, config or LinkFeaturesConfig()
        self._neighbors = BoundedCache[int, Ids](_CACHE_BYTES)

    def __call__(self, mentions: Sequence[Mention], scores: Sequence[Scores]) -> Matrix:
        """Return (R, L), the features of the candidates of all *mentions*, in their order.

        Args:
            mentions: of one document, in order.
            scores: (C,) for each mention, how probable its candidates are by now.
        """
        parts = [self._part(mentions[here], scores[here]) for here in _cut(len(mentions), self.config.window)]
        return np.concatenate([np.empty((0, len(self.names)), np.float32), *parts])

    def _part(self, mentions: Sequence[Mention], scores: Sequence[Scores]) -> Matrix:
        sizes = np.array([len(score) for score in scores], np.int64)
        if not sizes.sum():
            return np.empty((0, len(self.names)), np.float32)
        names = _names(mentions)
        ids = np.concatenate([(mention.candidates or NO_CANDIDATES).ids for mention in mentions])
        entities, entity = np.unique(ids, return_inverse=True)  # (E,), (R,)
        name = np.repeat(names.of_mention, sizes)  # (R,)
        count = int(names.of_mention.max()) + 1
        probability = np.zeros((count, len(entities)), np.float32)  # P, (N, E)
        np.add.at(probability, (name, entity), np.concatenate(scores))
        probability /= np.bincount(names.of_mention, minlength=count)[:, None]
        pair, row = np.unique(name * len(entities) + entity, return_inverse=True)  # (U,), (R,)
        pairs = self._pairs(names, entities, probability, pair // len(entities), pair % len(entities))
        features = np.log1p(_STEEP * pairs)[row]  # (R, L / 2)
        return np.concatenate([features, relative(features, sizes)], axis=1)

    def _pairs(
        self, names: _Names, entities: Ids, probability: Matrix, name: Numbers, entity: Numbers
    ) -> Matrix:
        """Return (U, L / 2), before the logarithm."""
        counted = np.where(probability >= self.config.probable, probability, 0)  # (N, E)
        probable = np.flatnonzero(counted.any(axis=0))  # (K,)
        supports = counted[:, probable]
        outer_support = (supports.sum(0) - supports)[name]  # o, (U, K)
        neighbors = [self._of(number) for number in entities.tolist()]
        out = _links(entities, neighbors, entities[probable])  # (E, K)
        within = _links(entities[probable], [neighbors[index] for index in probable], entities).T  # (E, K)
        for links in (out, within):
            links[probable, np.arange(len(probable))] = 0  # what an entity has to do with itself says nothing
        weight = 1 / np.log(2 + np.array([len(neighbors[index]) for index in probable], np.float32))
        weighted = outer_support * weight
        alike = _alike(entities, neighbors, probable)[entity]  # (U, K)
        near, back = out[entity], within[entity]  # (U, K)
        least = np.minimum(outer_support, _SURE)
        columns = (
            (weighted * near).sum(1),
            (weighted * back).sum(1),
            (weighted * near * back).sum(1),
            1 - np.prod(1 - least * near, axis=1),
            1 - np.prod(1 - least * back, axis=1),
            (outer_support * near).sum(1) / max(1, len(probability) - 1),
            (weighted * near).max(1, initial=0),
            (outer_support * alike).sum(1),
            (outer_support * alike).max(1, initial=0),
            (counted.sum(0) - counted)[name, entity],
            _best(names.longer, probability)[name, entity],
            _best(names.longer[:, ::-1], probability)[name, entity],
            probability[name, entity],
        )
        return np.stack(columns, axis=1).astype(np.float32)

    def _of(self, number: int) -> Ids:
        """Return the neighbours of an entity, ascending, each once."""
        neighbors = self._neighbors.get(number)
        if neighbors is None:
            outgoing = self.kb.store.neighbours(number)
            neighbors = _NOTHING if outgoing is None else np.unique(outgoing[: self.config.max_neighbors])
            self._neighbors.keep(number, neighbors)
        return neighbors


def _cut(count: int, window: int) -> Iterator[slice]:
    """Yield as few ranges as there can be of *window* at most, as equal as they can be."""
    parts = -(-count // window)
    for part in range(parts):
        yield slice(count * part // parts, count * (part + 1) // parts)


def _names(mentions: Sequence[Mention]) -> _Names:
    """Return the names of mentions: one for each folded surface."""
    names: dict[tuple[str, ...], int] = {}
    of_mention = [names.setdefault(tuple(tokens(fold(mention.text))), len(names)) for mention in mentions]
    parts: dict[tuple[str, ...], list[int]] = {}
    for words, name in names.items():
        for size in range(1, len(words)):
            for begin in range(len(words) - size + 1):
                parts.setdefault(words[begin : begin + size], []).append(name)
    longer = sorted({(name, other) for words, name in names.items() for other in parts.get(words, ())})
    return _Names(np.array(of_mention, np.int64), np.array(longer, np.int64).reshape(-1, 2))


def _best(pairs: Numbers, probability: Matrix) -> Matrix:
    """Return (N, E): for each name, the largest probability that those it is paired with have."""
    best = np.zeros_like(probability)
    np.maximum.at(best, pairs[:, 0], probability[pairs[:, 1]])
    return best


def _links(entities: Ids, neighbors: Sequence[Ids], targets: Ids) -> Matrix:
    """Return (E, K): 1 where one of *entities* has a fact about one of *targets*, ascending."""
    links = np.zeros((len(entities), len(targets)), np.float32)
    if not len(targets):
        return links
    row = np.repeat(np.arange(len(entities)), [len(ids) for ids in neighbors])
    other = np.concatenate([*neighbors, _NOTHING])
    index, exists = match_sorted(targets, other)
    links[row[exists], index[exists]] = 1
    return links


def _alike(entities: Ids, neighbors: Sequence[Ids], probable: Numbers) -> Matrix:
    """Return (E, K), the cosines of what stands beside two entities."""
    surroundings = [np.append(ids, number) for ids, number in zip(neighbors, entities.tolist(), strict=True)]
    row = np.repeat(np.arange(len(entities)), [len(ids) for ids in surroundings])
    _, node, often = np.unique(np.concatenate(surroundings), return_inverse=True, return_counts=True)
    value = np.log(len(entities) / often).astype(np.float32)[node]
    length = np.sqrt(np.bincount(row, value**2, len(entities))).astype(np.float32)
    value /= np.where(length > 0, length, 1)[row]
    shared = often[node] > 1  # what one of them has alone is of no product
    row, node, value = row[shared], np.unique(node[shared], return_inverse=True)[1], value[shared]
    cosines = np.zeros((len(entities), len(probable)), np.float32)
    for begin in range(0, int(node.max(initial=-1)) + 1, _NODES):
        here = (node >= begin) & (node < begin + _NODES)
        block = np.zeros((len(entities), _NODES), np.float32)
        block[row[here], node[here] - begin] = value[here]
        cosines += block @ block[probable].T
    cosines[probable, np.arange(len(probable))] = 0
    return cosines
