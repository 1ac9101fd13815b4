"""The records of a published knowledge base: what its builder yielded, as far as the store has kept it.

Redirects are told with the key they lead to in the end; of a relation that is
stored once for two directions, the stored one is told, and a symmetric one from
both its ends. Redirects and forms of more than 511 bytes are lost: the store
has only digests of them. Counts are found again from the
priors (`codec.alias_counts`).
"""

from collections.abc import Iterator
from itertools import chain

from kgkit.building.contract import KBProperties, SourceInfo
from kgkit.kb import KnowledgeBase
from kgkit.store import codec
from kgkit.text import Folding
from kgkit.types import NO_SENSE, Alias, Entity, Form, Occurrences, Record, Redirect, Triple

__all__ = ["StoredRecords"]


class StoredRecords:
    """The records of an open KB; implements `KBRecords`."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    @property
    def name(self) -> str:
        """The name of the KB, without its build."""
        return self.kb.name

    @property
    def build(self) -> str:
        """The name of the build that the records are read from."""
        return self.kb.build

    @property
    def info(self) -> SourceInfo:
        """The source of the KB, with its version, licence and checksum, from the manifest."""
        return self.kb.manifest.source

    @property
    def properties(self) -> KBProperties:
        """The properties of the build, inverses those of its relations that have one."""
        manifest = self.kb.manifest
        inverses = {name: inverse for name, inverse in self.kb.store.relations if inverse is not None}
        return KBProperties(
            inverses,
            manifest.smoothing,
            manifest.generator,
            manifest.language,
            manifest.url_pattern,
            manifest.identifiers,
        )

    @property
    def folding(self) -> Folding:
        """The folding of the surfaces, that of the version which has built the KB."""
        return self.kb.manifest.folding

    def entities(self, kind: str | None = None) -> Iterator[Entity]:
        """Yield the entities, or those of *kind*, in the order of their ids."""
        return self.kb.entities(kind)

    def aliases(self) -> Iterator[Alias]:
        """Yield every (surface, entity) pair by folded surface; counts are without the smoothing."""
        key, smoothing = self.kb.key, self.kb.manifest.smoothing
        with self.kb.store.reading():
            for folded, row in self.kb.store.items("aliases"):
                for surface, entity, sense, count in codec.alias_counts(folded, row, smoothing):
                    yield Alias(surface, key(entity), count, None if sense == NO_SENSE else key(sense))

    def triples(self, relation: str | None = None) -> Iterator[Triple]:
        """Yield the triples, or those of *relation*; of a symmetric relation both directions."""
        symmetric = {name for name, inverse in self.kb.store.relations if name == inverse}
        for triple in self.kb.match(relation=relation):
            yield triple
            if triple.relation in symmetric and triple.subject != triple.object:
                # Stored once; but from one end alone it would not be told for symmetric.
                yield Triple(triple.object, triple.relation, triple.subject)

    def everything(self) -> Iterator[Record]:
        """Yield all records: entities, redirects, aliases, triples in both directions, forms, occurrences.

        What they are added to may have either relation of a pair without the other.
        """
        inverses = [inverse for name, inverse in self.kb.store.relations if inverse not in (None, name)]
        turned = chain.from_iterable(self.kb.match(relation=inverse) for inverse in inverses)
        streams = self.entities(), self.redirects(), self.aliases(), self.triples(), turned, self.forms()
        return chain(*streams, self.occurrences())

    def redirects(self) -> Iterator[Redirect]:
        """Yield the other keys of entities, in their order; keys too long for the store are left out."""
        key_of, bounded = self.kb.key, codec.bounded_key
        with self.kb.store.reading():
            for stored, number in self.kb.store.items("keys"):
                target = key_of(int.from_bytes(number, "little"))
                if stored != bounded(target) and not stored.startswith(codec.DIGEST):
                    yield Redirect(stored.decode(), target)

    def forms(self) -> Iterator[Form]:
        """Yield the irregular forms by surface; surfaces too long for the store are left out."""
        with self.kb.store.reading():
            for surface, lemmas in self.kb.store.items("forms"):
                if not surface.startswith(codec.DIGEST):
                    for lemma, pos in codec.decode_forms(lemmas):
                        yield Form(surface.decode(), lemma, pos)

    def occurrences(self) -> Iterator[Occurrences]:
        """Yield the occurrences and links of each surface, folded."""
        store = self.kb.store
        with store.reading():
            for key, count, linked in store.iter_occurrences():
                alias = store.row("aliases", key)
                spelled = codec.spellings(alias) if key.startswith(codec.DIGEST) and alias is not None else ()
                surface = spelled[0].surface if spelled else key.decode()
                yield Occurrences(surface, count, linked)
