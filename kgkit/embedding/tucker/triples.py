"""The facts of a knowledge base as arrays, those of them that are held out, and the tails of a question.

T  triples    N  entities    n  facts of a block    Q  questions (head, relation)    F  tails of all questions
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kgkit.sorted_ids import match_sorted

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


def both_ways(triples: np.ndarray) -> np.ndarray:
    """Return triples and their inverses, relations numbered as PyKEEN numbers them: 2r, and 2r + 1."""
    forth = triples * np.array([1, 2, 1])
    back = forth[:, ::-1] + np.array([0, 1, 0])
    return np.concatenate([forth, back])


class Tails(NamedTuple):
    """Tails of many questions in one pair of arrays."""

    rows: np.ndarray  # (F,) the question that a tail answers, ascending
    tails: np.ndarray  # (F,)


class TrueTails:
    """The tails of every (head, relation) of a set of triples.

    Args:
        triples: (T, 3) head, relation, tail; a triple given twice counts once.
    """

    def __init__(self, triples: np.ndarray) -> None:
        triples = np.asarray(triples, np.int64).reshape(-1, 3)
        self._relations = int(triples[:, 1].max(initial=0)) + 1
        triples = np.unique(triples, axis=0)  # sorted by head, relation, tail
        keys, self._starts = np.unique(self._key(triples[:, 0], triples[:, 1]), return_index=True)
        self._keys = keys
        self._ends = np.append(self._starts[1:], len(triples))
        self._tails = triples[:, 2].copy()

    def _key(self, heads: np.ndarray, relations: np.ndarray) -> np.ndarray:
        keys: np.ndarray = heads.astype(np.int64) * self._relations + relations
        return keys

    def of(self, heads: np.ndarray, relations: np.ndarray) -> Tails:
        """Return the known answers of each question."""
        if not len(self._keys) or not len(heads):
            return Tails(np.empty(0, np.int64), np.empty(0, np.int64))
        keys = self._key(heads, relations)
        positions, exists = match_sorted(self._keys, keys)
        exists &= relations < self._relations
        starts = np.where(exists, self._starts[positions], 0)
        counts = np.where(exists, self._ends[positions] - starts, 0)
        rows = np.repeat(np.arange(len(heads)), counts)
        before = np.cumsum(counts) - counts
        within = np.arange(len(rows)) - np.repeat(before, counts)
        return Tails(rows, self._tails[np.repeat(starts, counts) + within])
