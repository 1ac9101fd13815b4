"""Documents read from NIF in Turtle, and written as NIF with their links, as GERBIL exchanges them.

A context with phrases is a document with these mentions (D2KB); in a context without phrases mentions are
detected (A2KB). Offsets count code points.
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Final, Literal, NamedTuple

from kgkit.errors import SourceError
from kgkit.evaluation.gold import GoldError
from kgkit.evaluation.nif import (
    NIF_HEAD,
    NifContext,
    NifLimits,
    NifPhrase,
    NifResource,
    nif_statements,
    nil_iri,
    read_contexts,
)
from kgkit.serving.problems import Problem
from kgkit.serving.resource_iris import resource_iri
from kgkit.text import mention_problem
from kgkit.types import Document, Link, LinkedDocument, Mention

Task = Literal["a2kb", "d2kb"]

MAX_TRIPLES: Final = 250_000
"""Triples of a request, whatever they say."""


class NifDocument(NamedTuple):
    """A context, and the document that is linked.

    Attributes:
        iri: IRI of the context.
        document: text of the context; its mentions are the phrases, if these are to be linked. A mention's id
            is the IRI of its phrase.
    """

    iri: str
    document: Document


def read_documents(content: bytes, limits: NifLimits, task: Task | None = None) -> list[NifDocument]:
    """Return the documents of a graph in Turtle.

    Args:
        content: graph, as UTF-8.
        limits: limits of the graph.
        task: `a2kb`: phrases are ignored; `d2kb`: only phrases are linked; None: phrases are linked where a
            context has some.

    Raises:
        Problem: if the graph is no NIF in Turtle, larger than the limits, or a phrase is no span of its text.
    """
    try:
        contexts = read_contexts(BytesIO(content), limits=limits)
    except SourceError as error:
        where = "" if error.line is None else f"line {error.line}: "
        raise Problem(422, f"{where}{error.message}", remedy="send NIF 2.0 in Turtle") from None
    return [_nif_document(context, task) for context in contexts]


def _nif_document(context: NifContext, task: Task | None) -> NifDocument:
    if ":" not in context.iri:
        raise Problem(422, "a nif:Context is a blank node", remedy="name it by an IRI")
    if task == "a2kb" or (task is None and not context.phrases):
        return NifDocument(context.iri, Document(context.iri, context.text))
    try:
        mentions = [_mention(context, iri, phrase) for iri, phrase in context.phrases]
    except GoldError as error:
        raise Problem(422, str(error)) from None
    if (problem := mention_problem(context.text, mentions)) is not None:
        raise Problem(422, f"<{context.iri}>: {problem}")
    mentions.sort(key=lambda mention: (mention.start, mention.end, mention.id))
    return NifDocument(context.iri, Document(context.iri, context.text, mentions=mentions))


def _mention(context: NifContext, iri: str, phrase: NifResource) -> Mention:
    start, end = phrase.span(iri)
    surface = phrase.values.get("surface", context.text[start:end])
    name = phrase_iri(context.iri, start, end) if phrase.is_blank else iri
    return Mention(start, end, surface, id=name)


def phrase_iri(context: str, start: int, end: int) -> str:
    """Return an IRI for a phrase, in the scheme that the IRI of its context has.

    Args:
        context: IRI of the context.
        start, end: code points of the text, end exclusive.
    """
    base, _, fragment = context.partition("#")
    iri = f"{base}#char={start},{end}" if fragment.startswith("char=") else f"{base}#offset_{start}_{end}"
    return f"{base}#phrase_{start}_{end}" if iri == context else iri  # a phrase that is all of the text


def write_documents(
    documents: Sequence[NifDocument], linked: Sequence[LinkedDocument], *, by_label: bool = False
) -> bytes:
    """Return contexts with their links in Turtle.

    Args:
        documents: contexts.
        linked: the links of each.
        by_label: whether addresses of entities are made of their labels: see `resource_iri`.
    """
    parts = [NIF_HEAD]
    for nif, links in zip(documents, linked, strict=True):
        parts.extend(nif_statements(nif.iri, nif.document.text, _phrases(nif.iri, links, by_label)))
    return "".join(parts).encode()


def _phrases(context: str, links: LinkedDocument, by_label: bool) -> Iterator[NifPhrase]:
    for link in links:
        iri = link.id or phrase_iri(context, link.start, link.end)
        yield NifPhrase(iri, link.start, link.end, _entity_iri(link, by_label), link.score)


def _entity_iri(link: Link, by_label: bool) -> str:
    if link.entity is None:
        return nil_iri(link.text)
    return resource_iri(link.entity, link.url, by_label=by_label)
