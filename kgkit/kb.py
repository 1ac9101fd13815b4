"""The query API: one handle over one build of a knowledge base."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, overload

import numpy as np

from kgkit.errors import MissingExtra, NoPath, UnknownEntity, UnknownName, UsageError
from kgkit.home import Home
from kgkit.store import Manifest, StoreReader, find_build
from kgkit.store.layout import MAX_CLASS_BITS
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Candidate, Candidates, Entity, Ids, Triple

if TYPE_CHECKING:
    import networkx
    import pandas

Direction = Literal["out", "in", "both"]
Node = int | str | Entity

# A part of speech people ask for -> those a KB may store: WordNet's adjectives
# include its satellites, and taggers write the universal names.
POS: Final = {
    "a": ("a", "s"), "ADJ": ("a", "s"), "ADV": ("r",), "NOUN": ("n",), "PROPN": ("n",), "VERB": ("v",), "AUX": ("v",),
}  # fmt: skip

_NOTHING: Final = np.empty(0, np.uint32)
_FUZZY_CUTOFF = 80.0


class KnowledgeBase:
    """One build of a knowledge base, open for reading.

    An entity is named by its key (`"dog.n.01"`, redirects followed), its id or
    itself. The handle may be used from any number of threads, survives a fork,
    and can be pickled: it opens the same build again or raises `StaleKB`. A
    rebuild never changes what an open handle sees.

    Example:
        >>> with kgkit.open_kb("wordnet") as kb:
        ...     kb["dog.n.01"].attributes["lexfile"]
        'noun.animal'
    """

    def __init__(self, store: StoreReader, name: str) -> None:
        self.store, self.name = store, name  # the store gives rows as they lie on disk
        self._names: dict[str, tuple[int, ...]] = {}
        for place, (relation, inverse) in enumerate(store.relations):
            self._names[relation] = (2 * place,)
            if inverse is not None and inverse != relation:
                self._names[inverse] = (2 * place + 1,)
        self._classes: np.ndarray | None = None
        self._bits: bytes | None = None

    # -- the handle ---------------------------------------------------------

    @property
    def build(self) -> str:
        """The name of the build, which is that of its content."""
        return self.store.manifest.build

    @property
    def manifest(self) -> Manifest:
        """What the build says of itself: source, counts, checksums."""
        return self.store.manifest

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that can be asked for, both directions where both are answered."""
        return tuple(self._names)

    def close(self) -> None:
        """Let go of the build. Not while another thread is reading through this handle."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<KnowledgeBase {self.name}@{self.build}: {len(self):,} entities>"

    def __reduce__(self) -> tuple[Any, ...]:
        return KnowledgeBase, (self.store, self.name)

    # -- entities -----------------------------------------------------------

    def __getitem__(self, entity: int | str) -> Entity:
        """Return the entity of that key or id.

        Raises:
            UnknownEntity: if there is none (it is also a `KeyError`).
        """
        found = self.store.entity_by_key(entity) if type(entity) is str else self._by_id(entity)
        if found is None:
            raise UnknownEntity(entity, self.name)
        return found

    def get(self, entity: int | str, default: Entity | None = None) -> Entity | None:
        """Return the entity of that key or id, *default* if there is none."""
        found = self.store.entity_by_key(entity) if type(entity) is str else self._by_id(entity)
        return default if found is None else found

    def __contains__(self, entity: object) -> bool:
        if isinstance(entity, str):
            return self.store.id_of(entity) is not None
        return isinstance(entity, int) and 0 <= entity < len(self)

    def __len__(self) -> int:
        return self.store.manifest.entities

    def __iter__(self) -> Iterator[Entity]:
        """Yield every entity, in id order."""
        return self.store.iter_entities()

    def entities(self, kind: str | None = None) -> Iterator[Entity]:
        """Yield the entities of *kind* (`synset`, …), or all of them, in id order.

        Raises:
            UnknownName: if the KB has no entity of that kind.
        """
        if kind is None:
            return iter(self)
        if kind not in self.manifest.counts.entities:
            raise UnknownName(f"kind of entity in {self.name!r}", kind, sorted(self.manifest.counts.entities))
        return (entity for entity in self if entity.kind == kind)

    def id(self, entity: Node) -> int:
        """Return the id of an entity.

        Raises:
            UnknownEntity: if the KB does not have it.
        """
        if isinstance(entity, str):
            found = self.store.id_of(entity)
            if found is None:
                raise UnknownEntity(entity, self.name)
            return found
        if isinstance(entity, Entity):
            # Its id may be of another build: the key is what lasts.
            return self.id(entity.key)
        if not 0 <= entity < len(self):
            raise UnknownEntity(entity, self.name)
        return int(entity)

    def key(self, number: int) -> str:
        """Return the key of id *number*.

        Raises:
            UnknownEntity: if the KB has no such id.
        """
        found = self.store.key_of(number) if 0 <= number < len(self) else None
        if found is None:
            raise UnknownEntity(number, self.name)
        return found

    def _by_id(self, number: Any) -> Entity | None:
        return self.store.entity(number) if 0 <= number < self.store.manifest.entities else None

    # -- surfaces -----------------------------------------------------------

    def candidates(
        self,
        text: str,
        k: int | None = None,
        pos: str | None = None,
        *,
        prefer_case: bool = True,
        fuzzy: bool = False,
    ) -> Candidates:
        """Return what a surface can mean, best prior first.

        Case and white space are folded; where a KB knows several spellings of
        a folded surface, the meanings seen in this very spelling are preferred.

        Args:
            text: the surface, uninflected.
            k: at most so many; None for all. Priors are not stretched by the cut.
            pos: of the meanings: `n`, `v`, `a` (satellites included), `s`, `r`, or a
                universal name (`NOUN`). Priors then sum to 1 over what is left.
            prefer_case: False takes all spellings alike.
            fuzzy: if there is no such surface, take the most similar one (at least
                80 of 100 by RapidFuzz's ratio); reads every surface of the KB.

        Returns:
            The candidates; none, if the surface is not known. `decode` gives entities.
        """
        found = self.store.candidates(text, prefer_case=prefer_case)
        if found is None:
            nearest = self._nearest_surface(fold(text)) if fuzzy else None
            if nearest is None:
                return NO_CANDIDATES
            found = self.store.candidates(nearest, prefer_case=False) or NO_CANDIDATES
        if pos is not None:
            found = self.filter(found, pos)
        return found if k is None or k >= len(found.rows) else _cut(found, k)

    def filter(self, candidates: Candidates, pos: str) -> Candidates:
        """Return those of *candidates* that have this part of speech; their priors sum to 1."""
        kept = self.has_pos(candidates.ids, pos)
        if kept.all():
            return candidates
        rows = candidates.rows[kept]
        if len(rows):
            rows["prior"] /= rows["prior"].sum() or 1
        return Candidates(rows)

    def has_pos(self, ids: Ids, pos: str) -> np.ndarray:
        """Return (n,) bool: which of *ids* (n,) have the part of speech *pos*."""
        if self._classes is None:
            self._classes = self.store.class_of_entity()
        classes = self.store.classes
        wanted = [classes.index(name) + 1 for name in POS.get(pos, (pos,)) if name in classes]
        found = self._classes[ids]
        kept = np.zeros(len(ids), bool)
        for number in wanted:
            kept |= found == number
        return kept

    def pos_bits(self, pos: str) -> int:
        """Return the bits that `alias_row` has for a part of speech; all of them if it cannot tell apart."""
        classes = self.store.classes
        if len(classes) > MAX_CLASS_BITS:
            return 0xFF
        return sum(1 << classes.index(name) for name in POS.get(pos, (pos,)) if name in classes)

    def class_bits(self) -> bytes:
        """Return, for every entity, the bit of its part of speech as in `pos_bits`."""
        if self._bits is None:
            table = [0, *(1 << place for place in range(MAX_CLASS_BITS))]
            classes = self.store.class_of_entity().tobytes()
            small = len(self.store.classes) <= MAX_CLASS_BITS
            self._bits = classes.translate(bytes(table) + bytes(256 - len(table))) if small else b"\xff" * len(classes)
        return self._bits

    def decode(self, candidates: Candidates) -> list[Candidate]:
        """Return candidates with their entities and the keys of their senses."""
        return self.store.decode(candidates)

    def surfaces(self) -> Iterator[str]:
        """Yield every folded surface, in order."""
        return self.store.iter_surfaces()

    def _nearest_surface(self, folded: str) -> str | None:
        from rapidfuzz import fuzz, process  # here: wanted by few, 20 ms

        found = process.extractOne(folded, self.surfaces(), scorer=fuzz.ratio, score_cutoff=_FUZZY_CUTOFF)
        return None if found is None else found[0]

    # -- facts --------------------------------------------------------------

    @overload
    def neighbors(self, entity: int, relation: str | None = None, direction: Direction = "out") -> Ids: ...
    @overload
    def neighbors(
        self, entity: str | Entity, relation: str | None = None, direction: Direction = "out"
    ) -> list[Entity]: ...
    def neighbors(
        self, entity: Node, relation: str | None = None, direction: Direction = "out"
    ) -> Ids | list[Entity]:
        """Return the entities that stand beside one: ids for an id, entities for a key.

        They come in the order of the source; one that is reached by two
        relations comes twice.

        Args:
            entity: whose neighbours.
            relation: only by this relation; None for any.
            direction: `out`, where *entity* is the subject; `in`, where it is the
                object; or `both`. A relation that has an inverse is answered from
                both its ends: `hyponym` going out is `hypernym` coming in.

        Raises:
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        if type(entity) is int:
            if relation is None and direction == "out":
                others = self.store.beside(entity) if entity >= 0 else None
                return others if others is not None else self._none(entity)
            return self._edges(entity, relation, direction)[0]
        if type(entity) is str and relation is None and direction == "out":
            beside = self.store.entities_beside(entity)
            if beside is None:
                raise UnknownEntity(entity, self.name)
            return beside
        number = self.id(entity)
        return self.store.entities(self._edges(number, relation, direction)[0].tolist())

    def _none(self, entity: int) -> Ids:
        self.id(entity)  # complains of an id that is not there
        return _NOTHING

    def _edges(self, number: int, relation: str | None, direction: Direction) -> tuple[Ids, Ids]:
        """Return `(others, codes)`; an edge that comes in has the code of the relation as its subject says it."""
        if direction not in ("out", "in", "both"):
            raise UsageError(f"direction is {direction!r}; it is one of 'out', 'in', 'both'")
        if number < 0 or number >= len(self):
            raise UnknownEntity(number, self.name)
        facts = self.store.facts(number) or (_NOTHING, _NOTHING)
        outward = facts if relation is None else _only(facts, self._code(relation))
        if direction == "out":
            return outward
        incoming = self.store.incoming(number) or (_NOTHING, _NOTHING)
        turned = self._turned(facts)
        inward = np.concatenate([turned[0], incoming[0]]), np.concatenate([turned[1], incoming[1]])
        if relation is not None:
            inward = _only(inward, self._code(relation))
        if direction == "in":
            return inward
        if relation is None:
            # The facts say all that their inverses would say again.
            return np.concatenate([outward[0], incoming[0]]), np.concatenate([outward[1], incoming[1]])
        if self._code(relation) == self._inverse(self._code(relation)):
            return outward
        return np.concatenate([outward[0], inward[0]]), np.concatenate([outward[1], inward[1]])

    def _turned(self, facts: tuple[Ids, Ids]) -> tuple[Ids, Ids]:
        """Return the facts that have an inverse, as their other ends say them."""
        others, codes = facts
        inverses = [self._inverse(code) for code in codes.tolist()]
        kept = [place for place, code in enumerate(inverses) if code is not None]
        return others[kept], np.array([inverses[place] for place in kept], np.uint32)

    def _inverse(self, code: int) -> int | None:
        name, inverse = self.store.relations[code >> 1]
        return None if inverse is None else code if inverse == name else code ^ 1

    def _code(self, relation: str) -> int:
        try:
            return self._names[relation][0]
        except KeyError:
            raise UnknownName(f"relation in {self.name!r}", relation, self.relations) from None

    def _name(self, code: int) -> str:
        name, inverse = self.store.relations[code >> 1]
        return (inverse or name) if code & 1 else name

    def match(
        self, subject: Node | None = None, relation: str | None = None, object: Node | None = None
    ) -> Iterator[Triple]:
        """Yield the triples that fit, None fitting anything.

        With a relation, triples are told in its direction. With a subject, they
        are all that can be said of it; with none, as they are stored: each once.
        Without subject and object the whole KB is read.

        Raises:
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        wanted = None if relation is None else self._code(relation)
        if subject is not None:
            number = self.id(subject)
            other = None if object is None else self.id(object)
            return self._said_of(number, *self._edges(number, relation, "out"), other)
        if object is not None:
            number = self.id(object)
            return self._said_to(number, *self._edges(number, relation, "in"))
        return self.stored(wanted)

    def _said_of(self, number: int, others: Ids, codes: Ids, wanted: int | None) -> Iterator[Triple]:
        key = self.key(number)
        for other, code in zip(others.tolist(), codes.tolist(), strict=True):
            if wanted is None or other == wanted:
                yield Triple(key, self._name(code), self.key(other))

    def _said_to(self, number: int, others: Ids, codes: Ids) -> Iterator[Triple]:
        key = self.key(number)
        for other, code in zip(others.tolist(), codes.tolist(), strict=True):
            yield Triple(self.key(other), self._name(code), key)

    def _stored(self, wanted: int | None) -> Iterator[Triple]:
        for number, others, codes in self.store.iter_facts():
            key = None
            for other, code in zip(others.tolist(), codes.tolist(), strict=True):
                if wanted is None:
                    name, inverse = self.store.relations[code >> 1]
                    if code & 1 or (name == inverse and other < number):
                        continue  # told from its other end
                elif code != wanted:
                    continue
                key = key or self.key(number)
                yield Triple(key, self._name(code), self.key(other))

    # -- walks --------------------------------------------------------------

    def walk(self, entity: Node, relation: str, max_depth: int | None = None) -> Iterator[Entity]:
        """Yield what *entity* reaches by *relation* alone, nearest first, itself excluded.

        Raises:
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        start, code = self.id(entity), self._code(relation)
        return self._walk(start, code, max_depth)

    def _walk(self, start: int, code: int, max_depth: int | None) -> Iterator[Entity]:
        seen, waiting = {start}, deque([(start, 0)])
        while waiting:
            number, depth = waiting.popleft()
            if max_depth is not None and depth >= max_depth:
                continue
            facts = self.store.facts(number)
            if facts is None:
                continue
            for other in _only(facts, code)[0].tolist():
                if other not in seen:
                    seen.add(other)
                    waiting.append((other, depth + 1))
                    yield self[other]

    def path(self, a: Node, b: Node, relations: Iterable[str] | None = None) -> list[Triple]:
        """Return a shortest path from *a* to *b*, edges taken in either direction.

        Each step is told from the nearer end where its relation has an inverse,
        else as it is stored. Of several shortest paths it is always the same one.

        Args:
            a, b: the ends.
            relations: only by these; None for any.

        Raises:
            NoPath: if there is none.
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        start, end = self.id(a), self.id(b)
        codes = None if relations is None else {self._code(relation) for relation in relations}
        if codes is not None:
            codes |= {inverse for code in codes if (inverse := self._inverse(code)) is not None}
        # From both ends at once, the smaller frontier first.
        came: tuple[dict[int, int], dict[int, int]] = ({start: start}, {end: end})
        frontiers: tuple[list[int], list[int]] = ([start], [end])
        meeting = start if start == end else None
        while meeting is None and frontiers[0] and frontiers[1]:
            side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
            meeting = self._advance(frontiers[side], came[side], came[1 - side], codes)
        if meeting is None:
            raise NoPath(f"no path from {self.key(start)!r} to {self.key(end)!r} in {self.name!r}")
        steps = [meeting]
        while steps[-1] != start:
            steps.append(came[0][steps[-1]])
        steps.reverse()
        while steps[-1] != end:
            steps.append(came[1][steps[-1]])
        return [self._step(near, far, codes) for near, far in zip(steps, steps[1:], strict=False)]

    def _advance(
        self, frontier: list[int], came: dict[int, int], met: dict[int, int], codes: set[int] | None
    ) -> int | None:
        """Move *frontier* one step; return the best node where it meets the other side."""
        reached, found = [], []
        for number in frontier:
            others, edge = self._edges(number, None, "both")
            for other, code in zip(others.tolist(), edge.tolist(), strict=True):
                if other not in came and (codes is None or code in codes):
                    came[other] = number
                    reached.append(other)
                    if other in met:
                        found.append(other)
        frontier[:] = reached
        # All of them lie at the same depth of this side; the other side decides.
        return min(found, key=lambda node: (_depth(met, node), node), default=None)

    def _step(self, near: int, far: int, codes: set[int] | None) -> Triple:
        others, edges = self._edges(near, None, "out")
        for other, code in zip(others.tolist(), edges.tolist(), strict=True):
            if other == far and (codes is None or code in codes):
                return Triple(self.key(near), self._name(code), self.key(far))
        others, edges = self._edges(far, None, "out")
        for other, code in zip(others.tolist(), edges.tolist(), strict=True):
            if other == near and (codes is None or code in codes):
                return Triple(self.key(far), self._name(code), self.key(near))
        raise AssertionError("a path has a step that is no fact")

    def subgraph(self, entities: Iterable[Node], radius: int = 1) -> "networkx.MultiDiGraph[str]":
        """Return the entities within *radius* edges of any of *entities*, and the stored triples among them.

        Returns:
            A graph whose nodes are keys, with `label`, `kind` and `id`, and whose
            edges have their relation as key and as the attribute `relation`.

        Raises:
            UnknownEntity: if the KB does not have one of them.
            UsageError: if *radius* is negative.
        """
        import networkx  # here: 100 ms

        if radius < 0:
            raise UsageError(f"radius is {radius}; it cannot be negative")
        frontier = dict.fromkeys(self.id(entity) for entity in entities)
        inside = dict(frontier)
        for _ in range(radius):
            frontier = dict.fromkeys(
                other
                for number in frontier
                for other in self._edges(number, None, "both")[0].tolist()
                if other not in inside
            )
            inside.update(frontier)
        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
        keys = {}
        for entity in self.store.entities(list(inside)):
            keys[entity.id] = entity.key
            graph.add_node(entity.key, label=entity.label, kind=entity.kind, id=entity.id)
        for number in inside:
            for other, code in zip(*(array.tolist() for array in self._edges(number, None, "out")), strict=True):
                name, inverse = self.store.relations[code >> 1]
                if other in inside and not code & 1 and (name != inverse or number <= other):
                    graph.add_edge(keys[number], keys[other], key=name, relation=name)
        return graph

    def to_frame(self) -> "pandas.DataFrame":
        """Return every entity as a row of a pandas DataFrame, indexed by id.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "pandas") from None
        return pandas.DataFrame.from_records([entity.to_dict() for entity in self]).set_index("id")


def open_kb(name: str | None = None, home: str | os.PathLike[str] | None = None) -> KnowledgeBase:
    """Open a knowledge base for reading.

    Args:
        name: `NAME`, the published build, or `NAME@BUILD`; None if there is one KB only.
        home: where knowledge bases lie; `KGKIT_HOME` or the platform's place unless given.

    Raises:
        NotThere: if it has not been built.
        FormatMismatch, DamagedKB: if it cannot be used as it is.

    Example:
        >>> kgkit.open_kb("wordnet")["dog.n.01"].label
        'dog'
    """
    where = Home.find(home)
    found = find_build(where, name if name is not None else only_kb(where))
    return KnowledgeBase(StoreReader.open(found.folder), found.name)


def only_kb(home: Home) -> str:
    """Return the name of the only KB.

    Raises:
        UsageError: if there are none or several.
    """
    names = [kb.name for kb in home.kbs()]
    if len(names) != 1:
        raise UsageError(
            f"which knowledge base? In {home.path} there {'are ' + ', '.join(names) if names else 'is none'}; name one"
        )
    return names[0]


def _only(edges: tuple[Ids, Ids], code: int) -> tuple[Ids, Ids]:
    kept = edges[1] == code
    return edges[0][kept], edges[1][kept]


def _cut(candidates: Candidates, k: int) -> Candidates:
    if k < 0:
        raise UsageError(f"k is {k}; it cannot be negative")
    return Candidates(candidates.rows[:k], candidates.null)


def _depth(came: dict[int, int], node: int) -> int:
    depth = 0
    while came[node] != node:
        node, depth = came[node], depth + 1
    return depth
