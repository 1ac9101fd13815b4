"""Entity linking: NIF 2.0, the RDF vocabulary of texts and annotations that GERBIL reads and writes.

    context    nif:isString, the text of a document; its IRI without the fragment is the id
    phrase     nif:referenceContext, the context; nif:beginIndex and nif:endIndex, code points of the text;
               nif:anchorOf, the text there; itsrdf:taIdentRef, the entity, or several

An entity is what `kgkit.evaluation.entity_iris` makes of its IRI. A phrase is a mention if it has an entity,
or the type nif:Phrase; without one, or with an IRI of `http://aksw.org/notInWiki/`, it is NIL. Phrases may
stand anywhere in a graph, so that texts and annotations of the whole file are in memory.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple
from urllib.parse import quote, unquote

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.el_files import GoldDocument, GoldError, GoldMention, Labelled, make_gold_document
from kgkit.evaluation.entity_iris import NOT_IN_KB, entity_of_iri, iri_of_entity
from kgkit.evaluation.files import LimitedStream
from kgkit.files import opened, written
from kgkit.lazy import import_extra
from kgkit.turtle import parse_graph
from kgkit.types import Document

MAX_BYTES: Final = 1 << 30
"""Bytes of a file, decompressed, that are read at most."""

MAX_RESOURCES: Final = 5_000_000
"""Contexts and phrases of a file that are read at most."""

_NIF: Final = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
_ITSRDF: Final = "http://www.w3.org/2005/11/its/rdf#"
_TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_FIELDS: Final = {
    f"{_NIF}isString": "text", f"{_NIF}anchorOf": "surface", f"{_NIF}beginIndex": "start",
    f"{_NIF}endIndex": "end", f"{_NIF}referenceContext": "context", f"{_ITSRDF}taIdentRef": "entity",
    f"{_ITSRDF}taClassRef": "type",
}  # fmt: skip
_PHRASE: Final = f"{_NIF}Phrase"
_DOCUMENT: Final = "urn:kgkit:document:"
_OFFSET: Final = re.compile(r"[0-9]{1,18}")
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\x7f]')
NIF_HEAD: Final = f"""@prefix nif: <{_NIF}> .
@prefix itsrdf: <{_ITSRDF}> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
"""The prefixes that a graph begins with."""


class NifLimits(NamedTuple):
    """How much of a graph is read.

    Attributes:
        resources: number of contexts and phrases together.
        triples: number of triples, whatever they say; None: any.
    """

    resources: int
    triples: int | None = None


@dataclass
class NifResource:
    """A context or a phrase, as far as it has been read.

    Attributes:
        values: first value of each field; of entities, the first that is not NIL.
        references: IRIs of all entities, in the order of the graph, which says nothing.
        is_phrase: whether the graph calls it a phrase.
        is_blank: whether it is a blank node, which has no IRI.
    """

    values: dict[str, str] = field(default_factory=dict)
    references: list[str] = field(default_factory=list)
    is_phrase: bool = False
    is_blank: bool = False

    def span(self, iri: str) -> tuple[int, int]:
        """Return the offsets of a phrase.

        Args:
            iri: its IRI, for the message.

        Raises:
            GoldError: if it has none that count.
        """
        start, end = (self.values.get(name, "") for name in ("start", "end"))
        if not (_OFFSET.fullmatch(start) and _OFFSET.fullmatch(end)):
            raise GoldError(f"the phrase <{iri}> has no nif:beginIndex and nif:endIndex that count")
        return int(start), int(end)


class NifContext(NamedTuple):
    """A text in a graph, and what is marked in it.

    Attributes:
        iri: IRI of the context.
        text: its text.
        phrases: phrases with their IRIs, in the order of the graph.
    """

    iri: str
    text: str
    phrases: list[tuple[str, NifResource]]


def read_nif(path: Path) -> Iterator[GoldDocument]:
    """Yield the documents of a NIF file in Turtle or N-Triples, in the order of their contexts.

    Args:
        path: the file, which may be compressed.

    Raises:
        NotThere: if there is no such file.
        MissingExtra: if pyoxigraph is not installed.
        SourceError: if it is no such graph, a phrase has no text to stand in, its offsets do not fit that,
            or it is too large for what is read into memory.
    """
    import_extra("pyoxigraph", "formats")  # what is not installed is said before the file is opened
    with opened(path) as stream:
        problem = f"more than {MAX_BYTES >> 20} MiB of NIF, which is read into memory: split it"
        contexts = read_contexts(LimitedStream(stream, MAX_BYTES, problem, path), path)
    names = set[str]()
    for context in contexts:
        name = _document_id(context.iri)
        if name in names:
            raise SourceError(f"two contexts are of the document {name!r}", path=path)
        names.add(name)
        try:
            mentions = [_gold_mention(phrase, resource) for phrase, resource in context.phrases]
            mentions.sort(key=lambda mention: (mention.start, mention.end))
            yield make_gold_document(name, context.text, mentions)
        except GoldError as error:
            raise SourceError(str(error), path=path) from None


def read_contexts(
    stream: BinaryIO | LimitedStream, path: Path | None = None, limits: NifLimits | None = None
) -> list[NifContext]:
    """Return the texts of a graph in Turtle or N-Triples, with their phrases, in the order of the graph.

    Args:
        stream: bytes of the graph.
        path: file that they are from, for messages; None if from none.
        limits: how much is read.

    Raises:
        MissingExtra: if pyoxigraph is not installed.
        SourceError: if it is no such graph, a phrase is of a context without a text, or it is larger than
            the limits.
    """
    resources = _read_resources(stream, path, limits or NifLimits(MAX_RESOURCES))
    contexts = {
        iri: NifContext(iri, resource.values["text"], [])
        for iri, resource in resources.items()
        if "text" in resource.values
    }
    for iri, resource in resources.items():
        values = resource.values
        if "context" not in values or not (resource.is_phrase or "entity" in values):
            continue
        if values["context"] not in contexts:
            message = f"the phrase <{iri}> is of <{values['context']}>, which has no nif:isString"
            raise SourceError(message, path=path)
        contexts[values["context"]].phrases.append((iri, resource))
    if not contexts:
        raise SourceError("no nif:Context with a nif:isString in it: this graph is no NIF", path=path)
    return list(contexts.values())


def _read_resources(
    stream: BinaryIO | LimitedStream, path: Path | None, limits: NifLimits
) -> dict[str, NifResource]:
    """Return contexts and phrases by their IRIs, in the order of the graph."""
    ox, resources = import_extra("pyoxigraph", "formats"), dict[str, NifResource]()
    # Turtle without a base: an IRI must stand for itself, wherever the file lies.
    for number, quad in enumerate(parse_graph(stream, "TURTLE", path), start=1):
        if limits.triples is not None and number > limits.triples:
            raise SourceError(f"more than {limits.triples:,} triples", path=path)
        # The object may be a triple itself, of which NIF knows nothing.
        name, value = quad.predicate.value, getattr(quad.object, "value", None)
        if value is None or (name not in _FIELDS and value != _PHRASE):
            continue
        resource = resources.get(quad.subject.value)
        if resource is None:
            if len(resources) >= limits.resources:
                raise SourceError(f"more than {limits.resources:,} texts and annotations", path=path)
            resource = resources[quad.subject.value] = NifResource()
            resource.is_blank = isinstance(quad.subject, ox.BlankNode)
        if name == _TYPE:
            resource.is_phrase = True
        elif name in _FIELDS:
            _set_value(resource.values, _FIELDS[name], value)
            if _FIELDS[name] == "entity":
                resource.references.append(value)
    return resources


def _set_value(values: dict[str, str], name: str, value: str) -> None:
    if name not in values or (name == "entity" and values[name].startswith(NOT_IN_KB)):
        values[name] = value


def _document_id(iri: str) -> str:
    """Return the id of the document of a context: its IRI without what says that it is all of a text."""
    base = iri.partition("#")[0] or iri
    return unquote(base.removeprefix(_DOCUMENT)) if base.startswith(_DOCUMENT) else base


def _gold_mention(iri: str, resource: NifResource) -> GoldMention:
    values = resource.values
    start, end = resource.span(iri)
    entities = {entity for iri in resource.references if (entity := entity_of_iri(iri)) is not None}
    return GoldMention(start, end, tuple(sorted(entities)), values.get("surface"), values.get("type", ""))


# -- writing ----------------------------------------------------------------


WriteDocument = Callable[[Document, Iterable[Labelled], Sequence[float] | None], None]
"""Takes a document, its links or gold mentions, and the confidence of each, if they have some."""


@contextmanager
def writing_nif(path: Path) -> Iterator[WriteDocument]:
    """Give a function that writes documents to *path* as NIF in Turtle, one after the other.

    The file appears, whole, when the block ends without an error. An entity is written as
    `iri_of_entity` says, NIL as an IRI of `http://aksw.org/notInWiki/`.

    Args:
        path: file to write; its suffix may ask for compression.

    Raises:
        UsageError: if a text or an entity cannot be written as UTF-8.
        NotThere: if there is no folder to put it in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
    with written(path) as stream:
        stream.write(NIF_HEAD.encode())

        def write(document: Document, links: Iterable[Labelled], scores: Sequence[float] | None) -> None:
            """Write a document with its links."""
            try:
                stream.writelines(part.encode() for part in _statements(document, [*links], scores))
            except UnicodeEncodeError as error:
                raise UsageError(
                    f"document {document.id!r} has half of a surrogate pair: {error.reason}"
                ) from None

        yield write


def write_nif(path: Path, documents: Iterable[GoldDocument]) -> None:
    """Write the documents of a data set with their gold mentions, as `writing_nif` does."""
    with writing_nif(path) as write:
        for gold in documents:
            write(gold.document, gold.gold, None)


class NifPhrase(NamedTuple):
    """An annotation as it is written.

    Attributes:
        iri: its IRI.
        start, end: code points of the text, end exclusive.
        entity: IRI of the entity.
        score: confidence; None if it is not written.
        others: IRIs of further entities.
    """

    iri: str
    start: int
    end: int
    entity: str
    score: float | None = None
    others: tuple[str, ...] = ()


def nil_iri(surface: str) -> str:
    """Return the IRI of what a surface means where no knowledge base has it.

    Raises:
        UnicodeEncodeError: if the surface has half of a surrogate pair.
    """
    return NOT_IN_KB + quote(surface.replace(" ", "_"), safe="")


def nif_statements(context: str, text: str, phrases: Iterable[NifPhrase]) -> Iterator[str]:
    """Yield a context with its phrases in Turtle, parts of a graph that begins with `NIF_HEAD`.

    Args:
        context: IRI of the context.
        text: its text.
        phrases: phrases of it.
    """
    yield f"\n<{context}> a nif:Context , nif:OffsetBasedString ;\n{_indices(0, len(text))}"
    yield f"    nif:isString {_literal(text)} .\n"
    for phrase in phrases:
        yield f"<{phrase.iri}> a nif:Phrase , nif:OffsetBasedString ;\n"
        yield f"{_indices(phrase.start, phrase.end)}    nif:anchorOf "
        yield f"{_literal(text[phrase.start : phrase.end])} ;\n    nif:referenceContext <{context}> ;\n"
        if phrase.score is not None:
            yield f'    itsrdf:taConfidence "{phrase.score:.6g}"^^xsd:double ;\n'
        references = " , ".join(f"<{iri}>" for iri in (phrase.entity, *phrase.others))
        yield f"    itsrdf:taIdentRef {references} .\n"


def _statements(
    document: Document, links: Sequence[Labelled], scores: Sequence[float] | None
) -> Iterator[str]:
    base = _DOCUMENT + quote(document.id, safe="")
    phrases = (
        NifPhrase(
            # The number tells a mention of the whole text from the context.
            f"{base}#offset_{link.start}_{link.end}_{number}",
            link.start,
            link.end,
            nil_iri(document.text[link.start : link.end])
            if link.entity is None
            else iri_of_entity(link.entity),
            None if scores is None else scores[number],
            tuple(map(iri_of_entity, link.others)),
        )
        for number, link in enumerate(links)
    )
    return nif_statements(f"{base}#offset_0_{len(document.text)}", document.text, phrases)


def _indices(start: int, end: int) -> str:
    number = "xsd:nonNegativeInteger"
    return f'    nif:beginIndex "{start}"^^{number} ;\n    nif:endIndex "{end}"^^{number} ;\n'


def _literal(text: str) -> str:
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> Any:
    return "\\" + match[0] if match[0] in '"\\' else f"\\u{ord(match[0]):04X}"
