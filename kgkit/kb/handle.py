"""The query API: one handle over one build of a knowledge base."""

import os
from collections.abc import Iterable, Iterator
from numbers import Integral
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, overload

import numpy as np

from kgkit.errors import MissingExtra, UnknownEntity, UnknownName, UsageError
from kgkit.home import Home, KBHome
from kgkit.kb.facts import Direction, Facts
from kgkit.kb.nearest import Near
from kgkit.kb.walks import closure, shortest_path, subgraph_around
from kgkit.lazy import shortcut
from kgkit.store import Manifest, StoreReader, open_build
from kgkit.store.layout import MAX_CLASS_BITS
from kgkit.text import fold
from kgkit.types import (
    NO_CANDIDATES,
    NO_SENSE,
    Candidate,
    Candidates,
    Entity,
    Ids,
    Neighbour,
    Progress,
    Triple,
)

if TYPE_CHECKING:
    import networkx
    import pandas
    from numpy.typing import ArrayLike

    from kgkit.vectors import Vectors

Node = int | str | Entity

# A part of speech people ask for -> those a KB may store: WordNet's adjectives
# include its satellites, and taggers write the universal names.
POS: Final = {
    "a": ("a", "s"), "ADJ": ("a", "s"), "ADV": ("r",), "NOUN": ("n",), "PROPN": ("n",),
    "VERB": ("v",), "AUX": ("v",),
    **dict.fromkeys("ADP CCONJ DET INTJ NUM PART PRON PUNCT SCONJ SYM X".split(), ()),
}  # fmt: skip

_WORDNET_POS: Final = ("n", "v", "a", "s", "r")
_NEVER_LINKED: Final = 0.5  # what counts as links where a surface was never one
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
        self._facts = Facts(store, name)
        self._classes: np.ndarray | None = None
        self._bits: bytes | None = None
        self._near = Near()

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
    def home(self) -> KBHome:
        """The folder of the KB: its builds and its vectors."""
        return KBHome(self.name, self.store.folder.absolute().parents[1])

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that can be asked for, both directions where both are answered."""
        return self._facts.relations

    def close(self) -> None:
        """Let go of the build. Not while another thread is reading through this handle."""
        self._near.clear()
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
        result = self.store.entity_by_key(entity) if type(entity) is str else self._by_id(entity)
        if result is None:
            raise UnknownEntity(entity, self.name)
        return result

    def get(self, entity: int | str, default: Entity | None = None) -> Entity | None:
        """Return the entity of that key or id, *default* if there is none."""
        result = self.store.entity_by_key(entity) if type(entity) is str else self._by_id(entity)
        return default if result is None else result

    def __contains__(self, entity: object) -> bool:
        if isinstance(entity, str | Entity):
            return self.store.id_of(entity if isinstance(entity, str) else entity.key) is not None
        return isinstance(entity, Integral) and 0 <= int(entity) < len(self)

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
            result = self.store.id_of(entity)
            if result is None:
                raise UnknownEntity(entity, self.name)
            return result
        if isinstance(entity, Entity):
            # Its id may be of another build: the key is what lasts.
            return self.id(entity.key)
        number = index(entity)  # NumPy's integers are ids too, 1.5 is none
        if not 0 <= number < len(self):
            raise UnknownEntity(number, self.name)
        return number

    def key(self, number: int) -> str:
        """Return the key of id *number*.

        Raises:
            UnknownEntity: if the KB has no such id.
        """
        number = index(number)
        key = self.store.key_of(number) if 0 <= number < len(self) else None
        if key is None:
            raise UnknownEntity(number, self.name)
        return key

    def keys(self) -> Iterator[str]:
        """Yield the key of every entity, in id order; those of redirects are not among them."""
        return self.store.iter_keys()

    def _by_id(self, number: Any) -> Entity | None:
        if type(number) is not int:
            if isinstance(number, str | Entity):  # a string of NumPy's, an entity of any build
                return self.store.entity_by_key(number if isinstance(number, str) else number.key)
            number = index(number)
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
            k: largest number of candidates; None for all. Priors are not stretched by the cut.
            pos: part of speech of the meanings: `n`, `v`, `a` (satellites included), `s`, `r`, or a
                universal name (`NOUN`). Priors then sum to 1 over what is left.
            prefer_case: whether the exact spelling counts more; False takes all spellings alike.
            fuzzy: whether, if there is no such surface, to take the most similar one (at least
                80 of 100 by RapidFuzz's ratio); reads every surface of the KB.

        Returns:
            The candidates; none, if the surface is not known. `decode` gives entities.
        """
        if k is not None and k < 0:
            raise UsageError(f"k is {k}; it cannot be negative")
        if pos is not None:
            self._check_pos(pos)
        result = self.store.candidates(text, prefer_case=prefer_case)
        if result is None:
            nearest = self._nearest_surface(fold(text)) if fuzzy else None
            if nearest is None:
                return NO_CANDIDATES
            result = self.store.candidates(nearest, prefer_case=False) or NO_CANDIDATES
        if pos is not None:
            result = self.filter(result, pos)
        return result if k is None or k >= len(result.rows) else Candidates(result.rows[:k], result.null)

    def link_probability(self, text: str) -> float | None:
        """Return how likely an occurrence of a surface in a text is a link; None where nobody counted.

        That is links / occurrences. A surface that was never a link counts as half of one: that it was none
        in a few places does not say that it never is. Case and white space are folded, and all meanings and
        spellings together.

        Example:
            >>> kgkit.open_kb("enwiki").link_probability("of")
            0.0004…
        """
        counts = self.store.occurrences(fold(text)) if self.store.has_occurrences else None
        if counts is None:
            return None
        count, linked = counts
        return min((linked or _NEVER_LINKED) / count, 1.0)

    def filter(self, candidates: Candidates, pos: str) -> Candidates:
        """Return those of *candidates* that have this part of speech; they share what NULL leaves."""
        mask = self.has_pos(candidates.ids, pos)
        if mask.all():
            return candidates
        rows = candidates.rows[mask]
        if len(rows):
            total = rows["prior"].sum()
            rows["prior"] = (1 - candidates.null) * (rows["prior"] / total if total else 1 / len(rows))
        return Candidates(rows, candidates.null, candidates.link_probability)

    def classes_of(self, ids: Ids) -> np.ndarray:
        """Return (n,) uint8, parts of speech: 0 for none, else 1 + the place in `store.classes`."""
        if self._classes is None:
            self._classes = self.store.class_of_entity()
        try:
            classes: np.ndarray = self._classes[ids]
        except IndexError:
            raise UnknownEntity(int(max(ids)), self.name) from None
        return classes

    def has_pos(self, ids: Ids, pos: str) -> np.ndarray:
        """Return (n,) bool: which of *ids* (n,) have the part of speech *pos*.

        In a KB that knows no parts of speech, all of them.

        Raises:
            UnknownName: if there is no such part of speech.
        """
        self._check_pos(pos)
        classes = self.store.classes
        numbers = self.classes_of(ids)
        mask = np.full(len(ids), not classes)
        for name in POS.get(pos, (pos,)):
            if name in classes:
                mask |= numbers == classes.index(name) + 1
        return mask

    def _check_pos(self, pos: str) -> None:
        names = {*POS, *self.store.classes, *_WORDNET_POS}
        if pos not in names:
            raise UnknownName("part of speech", pos, sorted(names))

    def pos_bits(self, pos: str) -> int:
        """Return the bits that `alias_row` has for a part of speech; all of them if it cannot tell apart."""
        classes = self.store.classes
        if len(classes) > MAX_CLASS_BITS:
            return 0xFF
        return sum(1 << classes.index(name) for name in POS.get(pos, (pos,)) if name in classes)

    def class_bits(self) -> bytes:
        """Return, for every entity, the bit of its part of speech as in `pos_bits`."""
        if self._bits is None:
            table = [0, *(1 << bit for bit in range(MAX_CLASS_BITS))]
            classes = self.store.class_of_entity().tobytes()
            small = len(self.store.classes) <= MAX_CLASS_BITS
            self._bits = (
                classes.translate(bytes(table) + bytes(256 - len(table))) if small else b"\xff" * len(classes)
            )
        return self._bits

    def decode(self, candidates: Candidates) -> list[Candidate]:
        """Return candidates with their entities and the keys of their senses."""
        return self.store.decode(candidates)

    def surfaces(self) -> Iterator[str]:
        """Yield every folded surface, in order."""
        return self.store.iter_surfaces()

    def _nearest_surface(self, folded: str) -> str | None:
        from rapidfuzz import fuzz, process  # here: wanted by few, 20 ms

        match = process.extractOne(folded, self.surfaces(), scorer=fuzz.ratio, score_cutoff=_FUZZY_CUTOFF)
        return None if match is None else match[0]

    # -- vectors ------------------------------------------------------------

    def vectors(self, name: str | None = None) -> "Vectors":
        """Open vectors of this KB: a row for each entity id.

        Args:
            name: `text`, `tucker`, …, or `KB/NAME`; None if the KB has one kind only.

        Raises:
            NotThere: if there are none (of that name); says how to make some.
            UsageError: if there are several and none was named, or *name* is of another KB.
            StaleVectors: if they were made for another build than this one or those that it extends.
            DamagedVectors: if they cannot be used as they are.
        """
        return self._near.vectors(self, name)

    def nearest(
        self,
        query: "Node | ArrayLike",
        k: int = 10,
        *,
        vectors: str | None = None,
        kind: str | None = None,
    ) -> list[Neighbour]:
        """Return the entities whose vectors are nearest to that of an entity, or to a vector.

        Args:
            query: key of an entity, its id or itself, which is then not among the answers; or (D,) numbers.
            k: number of neighbours; fewer come where fewer have a vector.
            vectors: name of the KB's vectors, as in `vectors`.
            kind: kind of the entities that may be answers (`synset`, …).

        Returns:
            The neighbours with their cosine, nearest first; none for an entity without a vector.

        Raises:
            UnknownEntity: if there is no such entity.
            UnknownName: if there is no such kind.
            UsageError: if the vector has another width, or *k* is below 1.
            NotThere, StaleVectors, DamagedVectors: as `vectors` does.
        """
        if kind is not None and kind not in self.manifest.counts.entities:
            raise UnknownName(f"kind of entity in {self.name!r}", kind, sorted(self.manifest.counts.entities))
        if k < 1:
            raise UsageError(f"k is {k}; it is at least 1")
        return self._near.nearest(self, query, k, vectors, kind)

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
            entity: entity whose neighbours are asked for.
            relation: name of the only relation; None for any.
            direction: `out`, where *entity* is the subject; `in`, where it is the
                object; or `both`. A relation that has an inverse is answered from
                both its ends: `hyponym` going out is `hypernym` coming in.

        Raises:
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        plain = relation is None and direction == "out"
        if type(entity) is str:
            if plain:
                neighbours = self.store.neighbour_entities(entity)
                if neighbours is None:
                    raise UnknownEntity(entity, self.name)
                return neighbours
        elif type(entity) is int and plain and 0 <= entity < NO_SENSE:
            plain_ids = self.store.neighbours(entity)
            if plain_ids is not None:
                return plain_ids
        number = self.id(entity)
        ids = self._facts.edges(number, relation, direction)[0]
        return self.store.entities(ids.tolist()) if isinstance(entity, str | Entity) else ids

    def degree(self, entity: Node, relation: str | None = None, direction: Direction = "out") -> int:
        """Return how many edges `neighbors` follows: with `links_to` and `in`, how many pages link here.

        Raises:
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        return len(self._facts.edges(self.id(entity), relation, direction)[0])

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
        if subject is not None:
            return self._facts.of(self.id(subject), relation, None if object is None else self.id(object))
        if object is not None:
            return self._facts.to(self.id(object), relation)
        return self._facts.all(relation)

    # -- walks --------------------------------------------------------------

    def walk(self, entity: Node, relation: str, max_depth: int | None = None) -> Iterator[Entity]:
        """Yield what *entity* reaches by *relation* alone, nearest first, itself excluded.

        Raises:
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        return map(
            self.__getitem__, closure(self._facts, self.id(entity), self._facts.code(relation), max_depth)
        )

    def path(self, a: Node, b: Node, relations: Iterable[str] | None = None) -> list[Triple]:
        """Return a shortest path from *a* to *b*, edges taken in either direction.

        Each step is told from the nearer end where its relation has an inverse,
        else as it is stored. Of several shortest paths it is always the same one.

        Args:
            a, b: the ends.
            relations: names of the only relations, or of one; None for any.

        Raises:
            NoPath: if there is none.
            UnknownEntity, UnknownName: if the KB has no such entity, or relation.
        """
        allowed = [relations] if isinstance(relations, str) else relations
        return shortest_path(self._facts, self.id(a), self.id(b), allowed)

    def subgraph(
        self, entities: str | Entity | Iterable[Node], radius: int = 1
    ) -> "networkx.MultiDiGraph[str]":
        """Return the entities within *radius* edges of any of *entities*, and the stored triples among them.

        Returns:
            A graph whose nodes are keys, with `label`, `kind` and `id`, and whose
            edges have their relation as key and as the attribute `relation`.

        Raises:
            UnknownEntity: if the KB does not have one of them.
            UsageError: if *radius* is negative.
        """
        if radius < 0:
            raise UsageError(f"radius is {radius}; it cannot be negative")
        centres = [entities] if isinstance(entities, str | Entity) else entities
        return subgraph_around(self._facts, [self.id(entity) for entity in centres], radius)

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

    def export(
        self, path: str | os.PathLike[str], *, format: str | None = None, progress: Progress | None = None
    ) -> list[str]:
        """Write the KB in the format of another program, as `kgkit.exchange.exporting.export_kb` does.

        Args:
            path: file to write, compressed where it ends in `.gz`, `.bz2` or `.xz`; a new folder for `csv`.
            format: `csv`, `graphml`, `jsonl`, `kgtk`, `ntriples`, `tsv`, `turtle` or `wn-lmf`; None: as the
                name of the file says.
            progress: callback that is told how many bytes have been written.

        Returns:
            What the format cannot carry, a phrase each.
        """
        losses: list[str] = shortcut("export_kb")(self, path, format=format, progress=progress)
        return losses


def open_kb(
    name: str | None = None, home: str | os.PathLike[str] | None = None, *, verify: bool = False
) -> KnowledgeBase:
    """Open a knowledge base for reading.

    Args:
        name: `NAME`, the published build, or `NAME@BUILD`; None if there is one KB only.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        verify: whether to read its files first (about 1 GB a second) and compare their SHA-256 with the
            manifest's. Without it only sizes are compared: damage within a file is met by the look-up that
            cannot decode a row, and what can be decoded is answered, right or wrong.

    Raises:
        NotThere: if it has not been built.
        UsageError: if none was named and there are several.
        FormatMismatch, DamagedKB: if it cannot be used as it is.

    Example:
        >>> kgkit.open_kb("wordnet")["dog.n.01"].label
        'dog'
    """
    where = Home.find(home)
    build, store = open_build(where, name if name is not None else where.only_kb(), verify=verify)
    return KnowledgeBase(store, build.name)
