"""N-Triples and Turtle, written by pyoxigraph some thousands of triples at a time.

An entity is told of by `k:kind`, which every one has, `rdfs:label`,
`skos:definition`, `k:pos`, `rdf:type` and `k:attributes` (JSON). An alias is a
`skos:altLabel`; where it has a count or a sense, a node that stands for that
triple (`rdf:subject`, `rdf:predicate`, `rdf:object`) follows it and has them.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, ClassVar, Final

import msgspec

from kgkit.building.contract import KBRecords
from kgkit.exchange import rdf_terms as terms
from kgkit.exchange.contract import Format, head_of
from kgkit.lazy import import_extra
from kgkit.types import Alias, Entity

__all__ = ["NTriples", "Turtle"]

_AT_ONCE: Final = 20_000
_PREFIX: Final = b"@prefix "


class _RDFFormat(Format):
    """A file of triples, in a syntax of RDF."""

    syntax: ClassVar[str]
    prefixes: ClassVar[Mapping[str, str] | None] = None

    def files(self, records: KBRecords) -> Mapping[str, Iterator[bytes]]:
        """Return the content of the file."""
        ox = import_extra("pyoxigraph", "formats")
        form = getattr(ox.RdfFormat, self.syntax)
        return {"": _serialize(ox, _Writer(ox).triples(records), form, self.prefixes)}


class NTriples(_RDFFormat):
    """One triple a line."""

    name = "ntriples"
    title = "N-Triples"
    suffixes = (".nt",)
    builder = "ntriples"
    syntax = "N_TRIPLES"


class Turtle(_RDFFormat):
    """The same triples, shorter."""

    name = "turtle"
    title = "Turtle"
    suffixes = (".ttl",)
    builder = "turtle"
    syntax = "TURTLE"
    prefixes = terms.PREFIXES


def _serialize(
    ox: Any, triples: Iterator[Any], form: Any, prefixes: Mapping[str, str] | None
) -> Iterator[bytes]:
    if prefixes:
        yield "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in sorted(prefixes.items())).encode()
    while batch := list(islice(triples, _AT_ONCE)):
        content: bytes = ox.serialize(batch, format=form, prefixes=prefixes)
        while content.startswith(_PREFIX):  # said once for all, in an order of its own
            content = content[content.index(b"\n") + 1 :]
        yield content


class _Writer:
    """Makes RDF terms of records."""

    def __init__(self, ox: Any) -> None:
        self.triple, self.node, self.literal, self.blank = ox.Triple, ox.NamedNode, ox.Literal, ox.BlankNode
        self.entity = terms.namer(self.node, "entity")
        self.relation = terms.namer(self.node, "relation")
        self.type = terms.namer(self.node, "type")
        self.json = self.node(terms.RDF_JSON)
        self.ours = {
            name: self.node(getattr(terms, name))
            for name in (
                *("ATTRIBUTES", "COUNT", "FORM", "FORM_OF", "FORM_POS", "HEAD", "KB", "KIND"),
                *("OBJECT", "PREDICATE", "REDIRECT", "SENSE", "SUBJECT", "TYPE"),
            )
        }
        self.label = self.node(terms.LABELS[0])
        self.alias = self.node(terms.ALIASES[0])
        self.definition = self.node(terms.DESCRIPTIONS[0])
        self.pos = self.node(next(iri for iri, field in terms.PLAIN.items() if field == "pos"))

    def triples(self, records: KBRecords) -> Iterator[Any]:
        """Yield all of a knowledge base, what it is first."""
        triple, entity, relation, ours = self.triple, self.entity, self.relation, self.ours
        yield triple(ours["KB"], ours["HEAD"], self._json(head_of(records)))
        yield from chain.from_iterable(map(self._entity, records.entities()))
        for number, alias in enumerate(records.aliases()):
            yield from self._alias(number, alias)
        for fact in records.triples():
            yield triple(entity(fact.subject), relation(fact.relation), entity(fact.object))
        for redirect in records.redirects():
            yield triple(entity(redirect.source), ours["REDIRECT"], entity(redirect.target))
        for number, form in enumerate(records.forms()):
            node = self.blank(f"f{number}")
            yield triple(node, ours["FORM"], self.literal(form.surface))
            yield triple(node, ours["FORM_OF"], self.literal(form.lemma))
            yield triple(node, ours["FORM_POS"], self.literal(form.pos))

    def _entity(self, entity: Entity) -> Iterable[Any]:
        triple, literal, ours = self.triple, self.literal, self.ours
        node = self.entity(entity.key)
        yield triple(node, ours["KIND"], literal(entity.kind))
        if entity.label:
            yield triple(node, self.label, literal(entity.label))
        if entity.description:
            yield triple(node, self.definition, literal(entity.description))
        if entity.pos:
            yield triple(node, self.pos, literal(entity.pos))
        for name in entity.types:
            yield triple(node, ours["TYPE"], self.type(name))
        if entity.attributes:
            yield triple(node, ours["ATTRIBUTES"], self._json(entity.attributes))

    def _alias(self, number: int, alias: Alias) -> Iterable[Any]:
        triple, ours = self.triple, self.ours
        entity, surface = self.entity(alias.key), self.literal(alias.surface)
        yield triple(entity, self.alias, surface)
        if not alias.count and alias.sense is None:
            return
        node = self.blank(f"a{number}")
        yield triple(node, ours["SUBJECT"], entity)
        yield triple(node, ours["PREDICATE"], self.alias)
        yield triple(node, ours["OBJECT"], surface)
        if alias.count:
            yield triple(node, ours["COUNT"], self.literal(alias.count))
        if alias.sense is not None:
            yield triple(node, ours["SENSE"], self.entity(alias.sense))

    def _json(self, value: Any) -> Any:
        return self.literal(msgspec.json.encode(value).decode(), datatype=self.json)
