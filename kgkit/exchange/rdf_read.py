"""Builders that read N-Triples and Turtle: what kgkit wrote, or anybody's.

Of a stranger's graph, every IRI that stands as a subject or an object is an
entity and the whole IRI its key (a blank node is `_:1`, `_:2`, …). Labels are
labels and aliases, the first without a language before the first in English
before any other; `skos:altLabel` and its like are aliases; comments and
definitions are descriptions; `rdf:type` says the types; other literals are
attributes under their whole predicate, other IRIs make triples. An IRI
without a label goes by its last part.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final

from kgkit.building.attributes import alias_count, decoded_object
from kgkit.building.contract import Builder, Files
from kgkit.errors import SourceError
from kgkit.exchange import rdf_terms as terms
from kgkit.exchange.contract import files_of
from kgkit.exchange.gathering import EntityField, FieldOrRecord, gather_parts
from kgkit.files import MAX_RECORD, checked_file, opened, raw_or_bad_lines, without_mark
from kgkit.lazy import import_extra
from kgkit.turtle import Syntax, parse_graph
from kgkit.types import Alias, BadRecord, Form, Record, Redirect, Triple

__all__ = ["NTriplesBuilder", "TurtleBuilder"]

_NUMBERS: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(
        ("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger"), int
    ),
    **dict.fromkeys(("decimal", "double", "float"), float),
    "boolean": {"true": True, "1": True, "false": False, "0": False}.__getitem__,
}
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_BLOCK: Final = 1 << 16  # bytes of lines that are parsed together, roughly
_NODE: Final = {terms.SUBJECT, terms.PREDICATE, terms.OBJECT, terms.COUNT, terms.SENSE}
_FORM: Final = {terms.FORM, terms.FORM_OF, terms.FORM_POS}


class _RDFBuilder(Builder):
    """What the two share; `syntax` is pyoxigraph's name of the format."""

    syntax: ClassVar[Syntax]
    smoothing = 1.0

    def look(self, source: Path) -> Files:
        """Return the file, with the properties that an export of kgkit's states in it."""
        return files_of(source, _head(self._quads(checked_file(source)), source))

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of the triples; those of one subject are gathered into one entity."""
        ours = _head(self._quads(source), source) is not None
        read = partial(self._parts, source, ours)
        return gather_parts(read, grouped=ours, named=None if ours else terms.short_name)

    def _parts(self, source: Path, ours: bool) -> Iterator[FieldOrRecord]:
        return _Reading(source, ours, self.bad_record).parts(self._quads(source))

    def _quads(self, source: Path) -> Iterator[Any]:
        """Yield the triples of *source*, and a `BadRecord` in the place of a line that is left out.

        Raises:
            SourceError: at what is wrong with it, with its line.
        """
        with opened(source) as file:
            yield from self._parsed(file, source)

    def _parsed(self, file: BinaryIO, source: Path) -> Iterator[Any]:
        """Yield the triples of a stream."""
        ox = import_extra("pyoxigraph", "formats")
        # What stands in no entity's place is told apart below, so labels need not be made unique.
        for quad in parse_graph(file, self.syntax, source, rename_blank_nodes=False):
            if isinstance(quad.object, ox.Triple):
                raise SourceError(
                    "a statement about a triple (RDF-star), which a knowledge base has no field for: "
                    "leave such statements out",
                    path=source,
                    text=str(quad),
                )
            yield quad


class NTriplesBuilder(_RDFBuilder):
    """An RDF graph, a triple a line."""

    name = "ntriples"
    syntax = "N_TRIPLES"
    reads_lines = True

    def _quads(self, source: Path) -> Iterator[Any]:
        """Yield the triples of *source* as the base does; a block of lines is parsed at once."""
        count = 0
        with opened(source) as file:
            while block := file.read(_BLOCK):
                if not block.endswith(b"\n"):
                    block += file.readline(MAX_RECORD)
                block = block if count else without_mark(block, source)
                yield from self._of_block(block, count, source)
                count += block.count(b"\n")
                if len(block) > MAX_RECORD and not block.endswith(b"\n"):
                    while (rest := file.readline(_BLOCK)) and not rest.endswith(b"\n"):
                        pass  # the rest of a line that is too long
                    count += 1

    def _of_block(self, block: bytes, before: int, source: Path) -> list[Any]:
        """Return the triples of a block of lines, which are parsed singly if one of them is bad.

        Args:
            block: lines.
            before: number of the lines before them.
            source: path of the file, for errors.
        """
        if len(block) <= MAX_RECORD:
            with suppress(SourceError):
                return [*self._parsed(BytesIO(block), source)]
        quads: list[Any] = []
        for number, line in raw_or_bad_lines(BytesIO(block), source, MAX_RECORD):
            try:
                if isinstance(line, SourceError):
                    raise line
                quads += self._parsed(BytesIO(line), source)
            except SourceError as error:
                text = error.text if isinstance(line, SourceError) else line.decode(errors="replace").strip()
                bad = SourceError(error.message, path=source, line=before + number, text=text)
                quads.append(self.bad_record(bad))
        return quads


class TurtleBuilder(_RDFBuilder):
    """An RDF graph in Turtle."""

    name = "turtle"
    syntax = "TURTLE"


def _head(quads: Iterable[Any], source: Path) -> dict[str, Any] | None:
    """Return what kgkit wrote of the whole in the first triple; None in a stranger's file."""
    for quad in quads:
        if isinstance(quad, BadRecord):
            continue
        if quad.subject.value == terms.KB and quad.predicate.value == terms.HEAD:
            return _json(quad.object.value, source)
        break
    return None


def _json(text: str, source: Path) -> dict[str, Any]:
    try:
        return decoded_object(text)
    except ValueError as error:
        raise SourceError(f"attributes that are no JSON object: {error}", path=source, text=text) from None


class _Reading:
    """One pass over the triples of a graph.

    Attributes:
        node: facts stated so far of the node that stands for an alias or a form.
        pending: alias that the node, if it comes next, says more of.
    """

    def __init__(self, source: Path, ours: bool, bad_record: Callable[[SourceError], BadRecord]) -> None:
        self.source, self.ours, self.bad_record = source, ours, bad_record
        self.numbers: dict[str, str] = {}
        self.node: dict[str, Any] = {}
        self.name: str | None = None
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pending: Alias | None = None

    def parts(self, quads: Iterable[Any]) -> Iterator[FieldOrRecord]:
        """Yield what each triple says."""
        for quad in quads:
            if type(quad) is BadRecord:
                yield quad
                continue
            subject, predicate, value, _ = quad
            about, name = subject.value, predicate.value
            if name in _NODE or name in _FORM:
                if about != self.name:
                    yield from self._finish()
                    # A stranger may say the rest of it anywhere.
                    self.name, self.node = about, self.nodes.setdefault(about, {}) if not self.ours else {}
                self.node[name] = value
                continue
            if self.name is not None:
                yield from self._finish()
            if about == terms.KB and name == terms.HEAD:
                continue
            yield from self._of_entity(subject, name, value)
        yield from self._finish()
        for node in self.nodes.values():
            self.node = node
            yield from self._records()
        if self.pending is not None:
            yield self.pending

    def _finish(self) -> Iterator[FieldOrRecord]:
        """Yield what the last node stood for."""
        if self.name is not None and self.ours:
            yield from self._records()
        self.name = None

    def _records(self) -> Iterator[FieldOrRecord]:
        node = self.node
        if terms.FORM in node and terms.FORM_OF in node:
            pos = node.get(terms.FORM_POS)
            yield Form(
                node[terms.FORM].value, node[terms.FORM_OF].value, pos.value if pos is not None else ""
            )
            return
        if terms.SUBJECT not in node or terms.OBJECT not in node:
            return
        if terms.PREDICATE not in node or node[terms.PREDICATE].value not in terms.ALIASES:
            return  # somebody else's statement about a statement
        key, surface = self._key(node[terms.SUBJECT]), node[terms.OBJECT].value
        count, sense = 0.0, None
        if terms.COUNT in node:
            text = node[terms.COUNT].value
            try:
                count = alias_count(text)
            except ValueError as error:
                yield self.bad_record(SourceError(str(error), path=self.source, text=text))
                return
        if terms.SENSE in node:
            sense = self._key(node[terms.SENSE])
        pending, self.pending = self.pending, None
        if pending is not None and (pending.surface, pending.key) != (surface, key):
            yield pending
        yield Alias(surface, key, count, sense)

    def _of_entity(self, subject: Any, name: str, value: Any) -> Iterator[FieldOrRecord]:
        key = self._key(subject)
        if self.pending is not None:
            yield self.pending
            self.pending = None
        literal = hasattr(value, "datatype")
        if name == terms.REDIRECT:
            yield Redirect(key, self._key(value))
        elif name == terms.TYPE and not literal:
            yield EntityField(key, "types", self._key(value))
        elif not literal:
            yield Triple(key, terms.name_of(name), self._key(value))
        elif name in terms.LABELS:
            yield EntityField(key, "label", (value.value, value.language or ""))
            if not self.ours:
                yield Alias(value.value, key)
        elif name in terms.ALIASES:
            self.pending = Alias(value.value, key)
        elif name in terms.DESCRIPTIONS:
            yield EntityField(key, "description", (value.value, value.language or ""))
        elif name in terms.PLAIN:
            yield EntityField(key, terms.PLAIN[name], value.value)
        elif name == terms.ATTRIBUTES:
            try:
                attributes = _json(value.value, self.source)
            except SourceError as error:
                yield self.bad_record(error)
            else:
                yield EntityField(key, "attributes", attributes)
        else:
            yield EntityField(key, "literal", (terms.name_of(name), _value(value)))

    def _key(self, node: Any) -> str:
        iri: str = node.value
        if ":" in iri:
            return terms.name_of(iri)
        return self.numbers.setdefault(iri, f"_:{len(self.numbers) + 1}")  # a blank node


def _value(literal: Any) -> Any:
    """Return what a literal says: a number or a truth where it says one, else its text."""
    text, datatype = literal.value, literal.datatype.value
    convert = _NUMBERS.get(datatype.removeprefix(_XSD)) if datatype.startswith(_XSD) else None
    if convert is None:
        return text
    try:
        number = convert(text)
    except (ValueError, KeyError):
        return text
    return number if number == number and abs(number) < 1 << 63 else text
