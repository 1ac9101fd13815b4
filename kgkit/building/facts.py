"""Facts as columns: which are stored, in which direction, and the rows of `facts` and `incoming`.

A column is (n,) int64 of ids or of a relation's number, in the order of the
source. A pair of ids is one uint64, whatever the size of the KB.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.building.numbers import changes
from kgkit.errors import UsageError
from kgkit.store import codec
from kgkit.store.layout import U32
from kgkit.store.writer import Item
from kgkit.types import Numbers

Pairs = NDArray[np.uint64]


class FactColumns(NamedTuple):
    """Facts in a row: whose they are, the relation, and the other end."""

    entity: Numbers
    relation: Numbers
    other: Numbers


class DirectedFacts(NamedTuple):
    """What is written of the facts of a source.

    Attributes:
        relations: relations, each with its inverse, or None. A fact's code is twice the place of
            its relation here, and one more if it is the inverse.
        stored: number of triples by relation; of a pair of inverses, the one that is stored.
        repeated: number of triples that had come before.
        outward: columns for `facts`, with codes.
        incoming: columns for `incoming`, with codes.
    """

    relations: list[tuple[str, str | None]]
    stored: dict[str, int]
    repeated: int
    outward: FactColumns
    incoming: FactColumns


class Directions(NamedTuple):
    """How the relations of a source are written, each a place in a list of their names.

    Attributes:
        codes: the code of each relation.
        without_inverse: mask of the relations whose other end belongs into `incoming`.
        untold: relations whose inverse the source does not state, each with the inverse's code.
    """

    codes: Numbers
    without_inverse: NDArray[np.bool_]
    untold: list[tuple[int, int]]


def arrange(triples: FactColumns, names: Sequence[str], inverses: Mapping[str, str]) -> DirectedFacts:
    """Arrange *triples* by the directions in which they are asked for.

    Args:
        triples: triples with indexes in *names* as relations.
        names: names of the relations.
        inverses: inverse relations, as in `Builder`.

    Raises:
        UsageError: if a relation is declared the inverse of several.
    """
    pairs, first = _distinct(triples, names)
    subject, relation, other = (column[first] for column in triples)
    relations = pair_inverses(
        names, inverses, lambda name, inverse: np.array_equal(pairs[name], np.sort(_reverse(pairs[inverse])))
    )
    stored = {
        name: len(pairs[name]) if name != inverse else int((pairs[name] <= _reverse(pairs[name])).sum())
        for name, inverse in relations
    }
    codes, without_inverse, untold = directions(names, relations)
    code, back = codes[relation], without_inverse[relation]
    outward = [FactColumns(subject, code, other)]
    for number, inverse_code in untold:
        mask = relation == number
        outward.append(FactColumns(other[mask], np.full(int(mask.sum()), inverse_code), subject[mask]))
    return DirectedFacts(
        relations,
        stored,
        len(triples.entity) - len(first),
        FactColumns(*map(np.concatenate, zip(*outward, strict=True))),
        FactColumns(other[back], code[back], subject[back]),
    )


def pair_inverses(
    names: Sequence[str], inverses: Mapping[str, str], agree: Callable[[str, str], bool]
) -> list[tuple[str, str | None]]:
    """Return `(relation, its inverse or None)`; of two that agree, the one that is stored.

    Args:
        names: names of the relations, in the order of the source.
        inverses: inverse relations, as in `Builder`.
        agree: function that says whether two of *names* tell the same facts, each from the other end.

    Raises:
        UsageError: if a relation is declared the inverse of several.
    """
    for relation, other_way in inverses.items():
        if any(other_way in pair and relation not in pair for pair in inverses.items()):
            raise UsageError(
                f"{other_way!r} is declared the inverse of {relation!r} and of another relation too: "
                "give each relation an inverse of its own, or leave it out of `inverses`"
            )
    pairs: list[tuple[str, str | None]] = []
    present, used = set(names), set[str]()
    for name in names:
        if name in used:
            continue
        inverse = inverses.get(name)
        declared = [
            key for key, value in inverses.items() if value == name and key != name and key in present
        ]
        if inverse is None and declared:
            continue  # its other direction is the stored one and decides
        if inverse is not None:
            if inverse not in present or agree(name, inverse):
                used.add(inverse)
            else:
                inverse = None
        pairs.append((name, inverse))
    named = {name for pair in pairs for name in pair}
    # Declared pairs that do not agree: the second direction stands for itself.
    pairs.extend((name, None) for name in names if name not in named)
    return pairs


def directions(names: Sequence[str], relations: Sequence[tuple[str, str | None]]) -> Directions:
    """Return how *names* are written, given what `pair_inverses` made of them."""
    index_of = {name: index for index, name in enumerate(names)}
    codes, without_inverse = np.zeros(len(names), np.int64), np.zeros(len(names), bool)
    untold: list[tuple[int, int]] = []
    for at, (name, inverse) in enumerate(relations):
        codes[index_of[name]] = 2 * at
        without_inverse[index_of[name]] = inverse is None
        if inverse in index_of and inverse != name:
            codes[index_of[inverse]] = 2 * at + 1
        elif inverse is not None and inverse != name:
            untold.append((index_of[name], 2 * at + 1))
    return Directions(codes, without_inverse, untold)


def rows(entity: Numbers, code: Numbers, other: Numbers) -> Iterator[Item]:
    """Yield one row per entity, its facts in the order of the source; `codec.decode_facts` reads it."""
    order = np.argsort(entity, kind="stable")
    entity = entity[order]
    begins = np.flatnonzero(changes(entity))
    bounds = (U32.itemsize * np.append(begins, len(entity))).tolist()
    neighbours, codes = other[order].astype(U32).tobytes(), code[order].astype(U32).tobytes()
    for owner, begin, end in zip(entity[begins].tolist(), bounds[:-1], bounds[1:], strict=True):
        yield codec.pack_id(owner), neighbours[begin:end] + codes[begin:end]


def _distinct(triples: FactColumns, names: Sequence[str]) -> tuple[dict[str, Pairs], Numbers]:
    """Return the pairs of each relation, ascending, and the rows of *triples* that say something new."""
    order = np.argsort(triples.relation, kind="stable")
    bounds = np.searchsorted(triples.relation[order], np.arange(len(names) + 1)).tolist()
    all_pairs = triples.entity.astype(np.uint64) << np.uint64(32) | triples.other.astype(np.uint64)
    new = np.zeros(len(order), bool)
    pairs = {}
    for name, begin, end in zip(names, bounds[:-1], bounds[1:], strict=True):
        rows = order[begin:end]
        pairs[name], first = np.unique(all_pairs[rows], return_index=True)
        new[rows[first]] = True
    return pairs, np.flatnonzero(new)


def _reverse(pairs: Pairs) -> Pairs:
    return pairs << np.uint64(32) | pairs >> np.uint64(32)
