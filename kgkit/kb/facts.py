"""The facts of one build: relations by name, edges of an entity in either direction."""

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np

from kgkit.errors import UnknownEntity, UnknownName, UsageError
from kgkit.store import StoreReader
from kgkit.types import Ids, Triple

Direction = Literal["out", "in", "both"]
Edges = tuple[Ids, Ids]
"""Parallel arrays: the other ends, and the codes of the relations that lead to them."""

NO_IDS: Final = np.empty(0, np.uint32)
_NO_EDGES: Final = (NO_IDS, NO_IDS)


class Facts:
    """What can be said of the entities of one build.

    A relation has a code: 2i for the direction that is stored, 2i + 1 for the
    other one, where both are answered; a symmetric relation has 2i only.

    Args:
        store: the build.
        kb: the name of the KB, for errors.
    """

    def __init__(self, store: StoreReader, kb: str) -> None:
        self.store, self.kb = store, kb
        self._codes: dict[str, int] = {}
        for index, (relation, inverse) in enumerate(store.relations):
            self._codes[relation] = 2 * index
            if inverse is not None and inverse != relation:
                self._codes[inverse] = 2 * index + 1

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that can be asked for."""
        return tuple(self._codes)

    def code(self, relation: str) -> int:
        """Return the code of a relation.

        Raises:
            UnknownName: if the KB has none of that name.
        """
        try:
            return self._codes[relation]
        except KeyError:
            raise UnknownName(f"relation in {self.kb!r}", relation, self.relations) from None

    def inverse(self, code: int) -> int | None:
        """Return the code of the other direction; None if only this one is known."""
        name, inverse = self._relation(code)
        return None if inverse is None else code if inverse == name else code ^ 1

    def name(self, code: int) -> str:
        """Return the relation that a code stands for."""
        name, inverse = self._relation(code)
        return (inverse or name) if code & 1 else name

    def is_stored(self, number: int, code: int, other: int) -> bool:
        """Return whether a fact is told as it is stored, not as the other end of one that is."""
        name, inverse = self._relation(code)
        return not code & 1 and (name != inverse or number <= other)

    def edges(self, number: int, relation: str | None, direction: Direction) -> Edges:
        """Return the edges of an entity, in the order of the source.

        An edge that comes in has the code of the relation as its subject says it.

        Raises:
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        if direction not in ("out", "in", "both"):
            raise UsageError(f"direction is {direction!r}; it is one of 'out', 'in', 'both'")
        if not 0 <= number < self.store.id_count:
            raise UnknownEntity(number, self.kb)
        facts = self.store.facts(number) or _NO_EDGES
        code = None if relation is None else self.code(relation)
        if direction == "out":
            return facts if code is None else edges_of_code(facts, code)
        incoming = self.store.incoming(number) or _NO_EDGES
        if code is None:
            # Going both ways, the facts say all that their inverses would say again.
            return _join(facts if direction == "both" else self._reverse(facts), incoming)
        inward = edges_of_code(_join(self._reverse(facts), incoming), code)
        if direction == "in":
            return inward
        outward = edges_of_code(facts, code)
        return outward if code == self.inverse(code) else _join(outward, inward)

    def _reverse(self, facts: Edges) -> Edges:
        """Return the facts that have an inverse, as their other ends say them."""
        neighbours, codes = facts
        inverses = [self.inverse(code) for code in codes.tolist()]
        invertible = [index for index, code in enumerate(inverses) if code is not None]
        return neighbours[invertible], np.array([inverses[index] for index in invertible], np.uint32)

    def edges_without_inverse(self, number: int, relation: str | None = None) -> Edges:
        """Return the edges on an entity by relations without inverse, which its own facts do not imply.

        Args:
            number: id of the entity.
            relation: name of the only relation; None for any.
        """
        neighbors, codes = self.edges(number, relation, "in")
        single = [code for code in np.unique(codes).tolist() if self.inverse(code) is None]
        selected = np.isin(codes, single)
        return neighbors[selected], codes[selected]

    def without_inverse(self, number: int, relation: str | None = None) -> Iterator[Triple]:
        """Yield the facts of `edges_without_inverse`, in the order of the source."""
        return self._to(number, self.edges_without_inverse(number, relation))

    def of(self, number: int, relation: str | None, target: int | None) -> Iterator[Triple]:
        """Yield the facts of an entity, by *relation* or any, with the object *target* or any."""
        return self._of(number, self.edges(number, relation, "out"), target)

    def to(self, number: int, relation: str | None) -> Iterator[Triple]:
        """Yield what is said of others about an entity, by *relation* or any."""
        return self._to(number, self.edges(number, relation, "in"))

    def all(self, relation: str | None) -> Iterator[Triple]:
        """Yield every stored triple once; those of one relation in its direction."""
        return self._all(None if relation is None else self.code(relation))

    def _of(self, number: int, edges: Edges, target: int | None) -> Iterator[Triple]:
        key = self._key(number)
        for other, code in pairs(edges):
            if target is None or other == target:
                yield Triple(key, self.name(code), self._key(other))

    def _to(self, number: int, edges: Edges) -> Iterator[Triple]:
        key = self._key(number)
        for other, code in pairs(edges):
            yield Triple(self._key(other), self.name(code), key)

    def _all(self, only_code: int | None) -> Iterator[Triple]:
        for number, neighbours, codes in self.store.iter_facts():
            key = None
            for other, code in pairs((neighbours, codes)):
                if only_code not in (None, code):
                    continue
                # An inverse is stored from its other end, but told when it is asked for.
                if self.is_stored(number, code, other) or (only_code is not None and code & 1):
                    key = key or self._key(number)
                    yield Triple(key, self.name(code), self._key(other))

    def _key(self, number: int) -> str:
        key = self.store.key_of(number)
        if key is None:
            raise self.store.damaged(f"a fact names entity {number:,} of {self.store.id_count:,}")
        return key

    def _relation(self, code: int) -> tuple[str, str | None]:
        try:
            return self.store.relations[code >> 1]
        except IndexError:
            count = len(self.store.relations)
            raise self.store.damaged(f"a fact has relation {code >> 1:,} of {count:,}") from None


def edges_of_code(edges: Edges, code: int) -> Edges:
    """Return the edges of one relation."""
    matching = edges[1] == code
    return edges[0][matching], edges[1][matching]


def pairs(edges: Edges) -> Iterator[tuple[int, int]]:
    """Yield `(other, code)` of every edge."""
    return zip(edges[0].tolist(), edges[1].tolist(), strict=True)


def _join(first: Edges, second: Edges) -> Edges:
    return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
