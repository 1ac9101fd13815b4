"""A graph of the size and mix of WN18RR, taken from our own WordNet.

    N  entities    T  triples

WN18RR (Dettmers et al. 2018) has 40,943 synsets, 11 relations and 93,003 triples. Ours has its relations,
read between synsets (derivations join words: a pair of words joins their synsets), about as many entities
and triples, and nearly its mix of relations. It is made by rule:

1. Derivations and `similar_to` are cut to a draw of unordered pairs, both directions of a pair together.
2. Synsets with the fewest triples are taken away, the fewest first, until 40,000 or just under are left.
3. Validation and test triples are drawn at random; each entity keeps one training triple.

Of a relation and its inverse only one direction is there, so nothing held out can be read off an inverse.
The four symmetric relations keep both directions of a pair, and these are split independently: the reverse
of a test triple of theirs is mostly in training. WN18RR is so too, and figures are therefore given by group.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from kgkit.kb import KnowledgeBase

ENTITIES: Final = 40_000
HELD_OUT: Final = (3_034, 3_134)  # validation and test triples of WN18RR
SYMMETRIC: Final = ("also_see", "derivationally_related_form", "similar_to", "verb_group")
# WN18RR's name -> our relation, and whether its triples go the other way.
RELATIONS: Final[Mapping[str, tuple[str, bool]]] = {
    "hypernym": ("hypernym", False),
    "derivationally_related_form": ("derivation", False),
    "member_meronym": ("member_holonym", True),
    "has_part": ("part_holonym", True),
    "synset_domain_topic_of": ("domain_topic", False),
    "instance_hypernym": ("instance_hypernym", False),
    "also_see": ("also_see", False),
    "verb_group": ("verb_group", False),
    "member_of_domain_region": ("domain_region", True),
    "member_of_domain_usage": ("domain_usage", True),
    "similar_to": ("similar_to", False),
}
# Triples kept of two relations before step 2: WN18RR has 31,867 and 86 in the end.
_DRAWN: Final = {"derivationally_related_form": 40_000, "similar_to": 86}


@dataclass(frozen=True, kw_only=True)
class Subset:
    """The graph, entities numbered from 0.

    Attributes:
        entities: (N,) the ids they have in the knowledge base, ascending.
        relations: names, by number.
        train: (T, 3) head, relation, tail.
        valid: the same.
        test: the same.
    """

    entities: np.ndarray
    relations: tuple[str, ...]
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray

    def save(self, path: Path) -> None:
        """Write it to one file."""
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in vars(self).items()}
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Subset":
        """Read what `save` wrote."""
        with np.load(path) as file:
            arrays = dict(file)
        return cls(**{**arrays, "relations": tuple(arrays["relations"].tolist())})


def subset(kb: KnowledgeBase, seed: int, entities: int = ENTITIES) -> Subset:
    """Return the graph that *seed* draws."""
    generator = np.random.default_rng(seed)
    triples = _drawn(_between_synsets(kb), generator)  # (T, 3)
    triples = _peeled(triples, len(kb), entities, generator)
    numbers, indices = np.unique(triples[:, [0, 2]], return_inverse=True)
    triples[:, [0, 2]] = indices.reshape(-1, 2)
    train, held = _split(triples, len(numbers), sum(HELD_OUT), generator)
    return Subset(
        entities=numbers,
        relations=tuple(RELATIONS),
        train=train,
        valid=held[: HELD_OUT[0]],
        test=held[HELD_OUT[0] :],
    )


def _between_synsets(kb: KnowledgeBase) -> np.ndarray:
    rows = [(number, neighbours, codes) for number, neighbours, codes in kb.store.iter_facts()]
    heads = np.repeat([row[0] for row in rows], [len(row[1]) for row in rows])
    tails = np.concatenate([row[1] for row in rows]).astype(np.int64)
    codes = np.concatenate([row[2] for row in rows])
    names = [name for name, _ in kb.store.relations]
    synset = np.arange(len(kb))
    sense = codes == 2 * names.index("lemma_in_synset")
    synset[heads[sense]] = tails[sense]
    triples = []
    for number, (name, turned) in enumerate(RELATIONS.values()):
        selected = codes == 2 * names.index(name)
        ends = np.stack([synset[heads[selected]], synset[tails[selected]]], axis=1)
        ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
        ends = ends[:, ::-1] if turned else ends
        triples.append(np.insert(ends, 1, number, axis=1))
    return np.concatenate(triples)


def _drawn(triples: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    mask = np.ones(len(triples), bool)
    for name, count in _DRAWN.items():
        mine = np.flatnonzero(triples[:, 1] == [*RELATIONS].index(name))
        pairs, pair = np.unique(np.sort(triples[mine][:, [0, 2]], axis=1), axis=0, return_inverse=True)
        chosen = generator.permutation(len(pairs))[: count // 2]
        mask[mine] = np.isin(pair.ravel(), chosen)
    return triples[mask]


def _peeled(triples: np.ndarray, size: int, limit: int, generator: np.random.Generator) -> np.ndarray:
    while True:
        degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=size)
        present = np.flatnonzero(degree)
        if len(present) <= limit:
            return triples
        fewest = present[degree[present] == degree[present].min()]
        removed = np.zeros(size, bool)
        removed[generator.permutation(fewest)[: len(present) - limit]] = True
        triples = triples[~removed[triples[:, 0]] & ~removed[triples[:, 2]]]


def _split(
    triples: np.ndarray, size: int, count: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=size)
    held = np.zeros(len(triples), bool)
    for index in generator.permutation(len(triples)).tolist():
        head, _, tail = triples[index].tolist()
        if degree[head] > 1 and degree[tail] > 1:
            degree[head] -= 1
            degree[tail] -= 1
            held[index] = True
            count -= 1
            if not count:
                break
    train = triples[~held]
    return train, generator.permutation(triples[held])
