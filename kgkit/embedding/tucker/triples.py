"""The facts of a knowledge base as arrays, and those of them that are held out.

T  triples    N  entities
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase


class Split(NamedTuple):
    """Triples to train with, and triples to rank."""

    train: np.ndarray  # (T, 3)
    held_out: np.ndarray


def stored_triples(kb: "KnowledgeBase") -> np.ndarray:
    """Return (T, 3) int64: head, relation, tail of every stored triple, once.

    A relation that is answered in both directions is there in the direction
    that is stored, a symmetric one from the lower id to the higher. The number
    of a relation is its place in `kb.store.relations`.
    """
    rows = list(kb.store.iter_facts())
    if not rows:
        return np.empty((0, 3), np.int64)
    heads = np.repeat(np.array([row[0] for row in rows], np.int64), [len(row[1]) for row in rows])
    tails = np.concatenate([row[1] for row in rows]).astype(np.int64)
    codes = np.concatenate([row[2] for row in rows]).astype(np.int64)
    symmetric = np.array([name == inverse for name, inverse in kb.store.relations], bool)
    relations = codes >> 1
    kept = (codes & 1 == 0) & (~symmetric[relations] | (heads <= tails))
    return np.unique(np.stack([heads, relations, tails], axis=1)[kept], axis=0)


def split(triples: np.ndarray, count: int, entities: int, generator: np.random.Generator) -> Split:
    """Hold out *count* triples, or fewer: each entity and each relation keeps a triple that is trained.

    Args:
        triples: (T, 3).
        count: how many are wanted.
        entities: N.
        generator: draws them.
    """
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=entities)
    uses = np.bincount(triples[:, 1])
    held: list[int] = []
    for place in generator.permutation(len(triples)).tolist() if count else ():
        head, relation, tail = triples[place].tolist()
        needed = 3 if head == tail else 2  # a loop counts twice at its entity
        if min(degree[head], degree[tail]) < needed or uses[relation] < 2:
            continue
        degree[head] -= 1
        degree[tail] -= 1
        uses[relation] -= 1
        held.append(place)
        if len(held) == count:
            break
    return Split(np.delete(triples, held, axis=0), triples[sorted(held)])
