"""The facts of a knowledge base as arrays, and those of them that are held out.

T  triples    N  entities    n  facts of a block
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

_BLOCK: Final = 1 << 16  # facts that are read together


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
    symmetric = np.array([name == inverse for name, inverse in kb.store.relations], bool)
    parts = [np.empty((0, 3), np.int64)]
    for heads, tails, codes in _fact_blocks(kb):
        relations = codes >> 1
        stored = (codes & 1 == 0) & (~symmetric[relations] | (heads <= tails))
        parts.append(np.stack([heads, relations, tails], axis=1)[stored])
    return np.unique(np.concatenate(parts), axis=0)


def _fact_blocks(kb: "KnowledgeBase") -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (n,) int64 heads, tails and relation codes of all facts, some entities' at a time."""
    rows: list[tuple[int, np.ndarray, np.ndarray]] = []
    count = 0
    for row in kb.store.iter_facts():
        rows.append(row)
        count += len(row[1])
        if count >= _BLOCK:
            yield _join(rows)
            rows, count = [], 0
    if rows:
        yield _join(rows)


def _join(rows: list[tuple[int, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    heads, tails, codes = zip(*rows, strict=True)
    return (
        np.repeat(np.array(heads, np.int64), [len(each) for each in tails]),
        np.concatenate(tails).astype(np.int64),
        np.concatenate(codes).astype(np.int64),
    )


def split(triples: np.ndarray, count: int, entities: int, generator: np.random.Generator) -> Split:
    """Hold out *count* triples, or fewer: each entity and each relation keeps a triple that is trained.

    Args:
        triples: (T, 3).
        count: number of triples to split off.
        entities: N.
        generator: generator of random numbers.
    """
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=entities)
    uses = np.bincount(triples[:, 1])
    held: list[int] = []
    for index in generator.permutation(len(triples)) if count else ():
        head, relation, tail = triples[index].tolist()
        needed = 3 if head == tail else 2  # a loop counts twice at its entity
        if min(degree[head], degree[tail]) < needed or uses[relation] < 2:
            continue
        degree[head] -= 1
        degree[tail] -= 1
        uses[relation] -= 1
        held.append(int(index))
        if len(held) == count:
            break
    return Split(np.delete(triples, held, axis=0), triples[sorted(held)])
