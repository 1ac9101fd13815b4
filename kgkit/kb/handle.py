"""The query API: one handle over one build of a knowledge base."""

import os
from collections.abc import Iterable, Iterator
from numbers import Integral
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, overload

import numpy as np

from kgkit.drawing.notebook import draw_table
from kgkit.errors import UnknownEntity, UnknownName, UsageError
from kgkit.home import Home, KBHome
from kgkit.kb.facts import Direction, Facts
from kgkit.kb.lineage import ancestry
from kgkit.kb.search import SearchResult, key_hint, search
from kgkit.kb.surfaces import Node, SurfaceQueries
from kgkit.kb.walks import closure, shortest_path, subgraph_around
from kgkit.lazy import import_extra
from kgkit.store import Manifest, StoreReader, open_build
from kgkit.text import escape_xml
from kgkit.types import (
    NO_SENSE,
    Entity,
    Ids,
    Neighbour,
    Triple,
)
from kgkit.urls import UrlPattern, is_web_address

_RARE: Final = 16  # more than one vector of so many, and still too few of the kind: only those are compared


class Identifiers:
    """The identifiers of the entities of one build, by what its manifest says of them.

    Args:
        manifest: manifest of the build.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.names = manifest.identifiers
        self.pattern = UrlPattern(manifest.url_pattern) if manifest.url_pattern else None

    def ids(self, entity: Entity) -> dict[str, Any]:
        """Return the attributes that are identifiers, by name; those that the entity has."""
        if not self.names or not entity.attributes:
            return {}
        values = {name: entity.attributes.get(name) for name in self.names}
        return {name: value for name, value in values.items() if value not in (None, "", [], {})}

    def url(self, entity: Entity) -> str:
        """Return the address of an entity; empty if it has none.

        Without a pattern, a key that is an address itself, as in RDF, is that.
        """
        if self.pattern is not None:
            return self.pattern.url(entity)
        return entity.key if is_web_address(entity.key) else ""


if TYPE_CHECKING:
    import networkx
    import pandas
    from numpy.typing import ArrayLike

    from kgkit.vectors import Vectors


class KnowledgeBase(SurfaceQueries):
    """One build of a knowledge base, open for reading.

    An entity is named by its key (`"dog.n.01"`, redirects followed), its id or
    itself. The handle may be used from any number of threads, survives a fork,
    and can be pickled: it opens the same build again or raises `StaleKB`. A
    rebuild never changes what an open handle sees.

    Examples:
        >>> with kgkit.open_kb("wordnet") as kb:
        ...     kb["dog.n.01"].attributes["lexfile"]
        'noun.animal'
    """

    def __init__(self, store: StoreReader, name: str) -> None:
        super().__init__(store, name)
        self._facts = Facts(store, name)
        self._vectors: dict[str | None, Vectors] = {}
        self._ids_of_kinds: dict[str, Ids] = {}
        self._identifiers = Identifiers(store.manifest)

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
        self._vectors.clear()
        self._similar = None
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _repr_html_(self) -> str:
        from kgkit.vectors import vectors_names

        source = self.manifest.source
        rows = {
            "entities": f"{self.manifest.entities:,}",
            "triples": f"{self.manifest.triples:,}",
            "aliases": f"{self.manifest.aliases:,}",
            "source": f"{source.name} {source.version}".strip(),
            "licence": source.licence,
            "language": self.manifest.language,
            "vectors": ", ".join(vectors_names(self.home)),
        }
        head = f"<b>{escape_xml(self.name)}</b> <small>build {escape_xml(self.build)}</small>"
        return f"<div>{head}{draw_table((), [row for row in rows.items() if row[1]])}</div>"

    def __repr__(self) -> str:
        return f"<KnowledgeBase {self.name}@{self.build}: {len(self):,} entities>"

    def __reduce__(self) -> tuple[Any, ...]:
        return KnowledgeBase, (self.store, self.name)

    # -- entities -----------------------------------------------------------

    def __getitem__(self, entity: int | str) -> Entity:
        """Return the entity of that key or id.

        Raises:
            UnknownEntity: if there is none (it is also a `KeyError`); says what may have been meant.
        """
        result = self.store.entity_by_key(entity) if type(entity) is str else self._by_id(entity)
        if result is None:
            raise self._unknown(entity)
        return result

    def get(self, entity: int | str, default: Entity | None = None) -> Entity | None:
        """Return the entity of that key or id, *default* if there is none."""
        result = self.store.entity_by_key(entity) if type(entity) is str else self._by_id(entity)
        return default if result is None else result

    def __contains__(self, entity: object) -> bool:
        if isinstance(entity, str | Entity):
            return self.store.id_of(entity if isinstance(entity, str) else entity.key) is not None
        return (
            isinstance(entity, Integral)
            and 0 <= int(entity) < self.store.id_count
            and int(entity) not in self.store.retired
        )

    def __len__(self) -> int:
        return self.store.manifest.entities

    @property
    def id_count(self) -> int:
        """Number of ids that were dealt out: as many rows has a matrix with a row for each id.

        It is `len(kb)`, but for entities that were retired (`kgkit kb edit`): their ids stay taken.
        """
        return self.store.id_count

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
                raise self._unknown(entity)
            return result
        if isinstance(entity, Entity):
            # Its id may be of another build: the key is what lasts.
            return self.id(entity.key)
        number = _integer(entity)
        if not 0 <= number < self.store.id_count or number in self.store.retired:
            raise self._unknown(number)
        return number

    def key(self, number: int) -> str:
        """Return the key of id *number*.

        Raises:
            UnknownEntity: if the KB has no such id.
        """
        number = index(number)
        key = self.store.key_of(number) if 0 <= number < self.store.id_count else None
        if key is None:
            raise self._unknown(number)
        return key

    def keys(self) -> Iterator[str]:
        """Yield the key of every entity, in id order; those of redirects are not among them."""
        return self.store.iter_keys()

    def id_keys(self) -> Iterator[str | None]:
        """Yield for every id, in order, the key of its entity; None for one that was retired."""
        return self.store.iter_id_keys()

    def identifiers(self, entity: Node) -> dict[str, Any]:
        """Return what names an entity elsewhere: the values of the attributes that are identifiers.

        Which attributes are, the builder says: `wikidata` and `page_id` of a Wikipedia.

        Raises:
            UnknownEntity: if the KB does not have it.

        Examples:
            >>> kgkit.open_kb("enwiki").identifiers("Mercury (planet)")
            {'wikidata': 'Q308', 'page_id': 19694}
        """
        return self._identifiers.ids(self[self.id(entity)])

    def url(self, entity: Node) -> str | None:
        """Return the address of an entity on the web, by the KB's pattern; None if it has none.

        Raises:
            UnknownEntity: if the KB does not have it.

        Examples:
            >>> kgkit.open_kb("enwiki").url("Mercury (planet)")
            'https://en.wikipedia.org/wiki/Mercury_(planet)'
        """
        return self._identifiers.url(self[self.id(entity)]) or None

    def _unknown(self, entity: object) -> UnknownEntity:
        return UnknownEntity(entity, self.name, lambda: key_hint(self, entity))

    def _by_id(self, number: Any) -> Entity | None:
        if type(number) is not int:
            if isinstance(number, str | Entity):  # a string of NumPy's, an entity of any build
                return self.store.entity_by_key(number if isinstance(number, str) else number.key)
            number = _integer(number)
        return self.store.entity(number) if 0 <= number < self.store.id_count else None

    # -- search -------------------------------------------------------------

    def search(self, text: str, k: int = 10, *, kind: str | None = None) -> list[SearchResult]:
        """Return the entities whose key, surfaces or label are, begin with, are like or contain a text.

        Each comes once: first the one with that very key, then the meanings of that surface, best prior
        first, then keys and surfaces that begin so (of the first 1,000 the best prior first), then those of
        similar surfaces as `similar_surfaces` has them, then surfaces, in alphabetical order, and labels that
        have the text within, a single letter too (the first 5,000 of each, or *k*). Case and white space of
        surfaces and labels are folded; a space also stands for the `_` of a key.

        Parts are found by the index of the surfaces. A build that has none is read in full; of one whose
        index an older kgkit wrote, the labels are read by the first search.

        Args:
            text: text to search for.
            k: largest number of entities.
            kind: kind of the only entities (`synset`, …).

        Raises:
            UsageError: if *text* is empty, or *k* below 1.
            UnknownName: if there is no such kind.
        """
        return search(self, text, k, kind)

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
        if name not in self._vectors:
            from kgkit.vectors import open_vectors  # here: readers of the KB alone do without it

            other, _, last = (name or "").rpartition("/")
            if other.partition("@")[0] not in ("", self.name):
                raise UsageError(f"{name} are vectors of another knowledge base than {self.name!r}")
            self._vectors[name] = open_vectors(
                self.home, None if name is None else last, ancestry(self), self.store.retired
            )
        return self._vectors[name]

    def nearest(
        self,
        query: "Node | ArrayLike",
        k: int = 10,
        *,
        vectors: str | None = None,
        kind: str | None = None,
    ) -> list[Neighbour]:
        """Return the entities whose vectors are nearest to that of an entity, or to a vector.

        For a text, *query* is its vector by the encoder that made the vectors, which
        `kgkit.embedding.text.encoder_of` loads.

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
        if isinstance(query, str) and query not in self:
            raise self._unknown(query)
        opened, itself = self.vectors(vectors), -1
        if isinstance(query, str | Entity | Integral) or np.ndim(query) == 0:
            itself = self.id(query)  # type: ignore[arg-type]
            row = opened.gather(itself)
            if not row.any():
                return []
        else:
            row = np.asarray(query, np.float32)
            if row.shape != (opened.width,):
                raise UsageError(
                    f"{opened.name} holds vectors of width {opened.width}, the query has shape {row.shape}"
                )
        proposals, most = k + (itself >= 0), opened.manifest.covered
        while most:
            proposals = min(proposals, most)
            among = self._ids_of_kind(kind) if kind is not None and proposals * _RARE > most else None
            scores, ids = opened.nearest(row, proposals, among=among)
            neighbours = [
                Neighbour(entity, score)
                for number, score in zip(ids[0].tolist(), scores[0].tolist(), strict=True)
                if number not in (-1, itself) and (entity := self[number]).kind == (kind or entity.kind)
            ]
            if len(neighbours) >= k or proposals >= most or among is not None:
                return neighbours[:k]
            proposals *= 4  # the others were of another kind
        return []

    def _ids_of_kind(self, kind: str) -> Ids:
        """Return the ids of the entities of *kind*, found once by reading them all."""
        if kind not in self._ids_of_kinds:
            self._ids_of_kinds[kind] = np.fromiter((entity.id for entity in self.entities(kind)), np.uint32)
        return self._ids_of_kinds[kind]

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
                    raise self._unknown(entity)
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
            a: first end.
            b: second end.
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
        rows = [entity.to_dict() for entity in self]
        frame: pandas.DataFrame = import_extra("pandas", "pandas").DataFrame(rows).set_index("id")
        return frame


def _integer(entity: Any) -> int:
    """Return an id as an integer: NumPy's integers are ids too, 1.5 is none.

    Raises:
        TypeError: if it is neither.
    """
    try:
        return index(entity)
    except TypeError:
        raise TypeError(
            f"an entity is named by its key or its id, not by a {type(entity).__name__}"
        ) from None


def open_kb(
    name: str | None = None, home: str | os.PathLike[str] | None = None, *, verify: bool = False
) -> KnowledgeBase:
    """Open a knowledge base for reading.

    Args:
        name: `NAME`, the published build, or `NAME@BUILD`; None for the default (`KGKIT_KB`, else what
            `kgkit kb default` has set), or the only one.
        home: folder of the knowledge bases; `KGKIT_HOME` or the platform's place unless given.
        verify: whether to read its files first (about 1 GB a second) and compare their SHA-256 with the
            manifest's. Without it only sizes are compared: damage within a file is met by the look-up that
            cannot decode a row, and what can be decoded is answered, right or wrong.

    Raises:
        NotThere: if it has not been built.
        UsageError: if none was named, there are several, and none of them is the default.
        FormatMismatch, DamagedKB: if it cannot be used as it is.

    Examples:
        >>> kgkit.open_kb("wordnet")["dog.n.01"].label
        'dog'
    """
    where = Home.find(home)
    build, store = open_build(where, name if name is not None else where.default_kb().name, verify=verify)
    return KnowledgeBase(store, build.name)
