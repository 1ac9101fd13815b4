"""`/nif`: entity linking as GERBIL asks for it, by a POST of NIF in Turtle.

`/nif` links to the default knowledge base, `/nif/NAME` to another; `PARAMETERS` are the fields of the query.

A context with phrases is a document with these mentions (D2KB); in a context without phrases mentions are
detected (A2KB). Offsets count code points.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import Any, Final, Literal, get_args

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kgkit.errors import SourceError
from kgkit.evaluation.el_files import GoldError
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
from kgkit.models.folder import AUTO
from kgkit.serving.forms import parse_fields, parse_number
from kgkit.serving.problems import PROBLEM_RESPONSES, Problem
from kgkit.serving.resource_iris import is_by_label, resource_iri
from kgkit.serving.rest import LINK_HELPS
from kgkit.serving.service import Service
from kgkit.types import Document, Link, LinkedDocument, Mention, mention_problem

Task = Literal["a2kb", "d2kb"]

MAX_TRIPLES: Final = 250_000
"""Triples of a request, whatever they say."""


def read_documents(content: bytes, limits: NifLimits, task: Task | None = None) -> list[Document]:
    """Return the documents of a graph in Turtle.

    The id of a document is the IRI of its context. Its mentions are the phrases, if these are to be linked;
    the id of a mention is the IRI of its phrase.

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
    return [_document(context, task) for context in contexts]


def _document(context: NifContext, task: Task | None) -> Document:
    if ":" not in context.iri:
        raise Problem(422, "a nif:Context is a blank node", remedy="name it by an IRI")
    if task == "a2kb" or (task is None and not context.phrases):
        return Document(context.iri, context.text)
    try:
        mentions = [_mention(context, iri, phrase) for iri, phrase in context.phrases]
    except GoldError as error:
        raise Problem(422, str(error)) from None
    if (problem := mention_problem(context.text, mentions)) is not None:
        raise Problem(422, f"<{context.iri}>: {problem}")
    mentions.sort(key=lambda mention: (mention.start, mention.end, mention.id))
    return Document(context.iri, context.text, mentions=mentions)


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
    documents: Sequence[Document],
    linked: Sequence[LinkedDocument],
    *,
    by_label: bool = False,
    with_scores: bool = True,
) -> bytes:
    """Return contexts with their links in Turtle.

    Args:
        documents: contexts, as `read_documents` gives them.
        linked: the links of each.
        by_label: whether addresses of entities are made of their labels: see `resource_iri`.
        with_scores: whether links have their scores.
    """
    parts = [NIF_HEAD]
    for document, links in zip(documents, linked, strict=True):
        phrases = _phrases(document.id, links, by_label)
        if not with_scores:
            phrases = (phrase._replace(score=None) for phrase in phrases)
        parts.extend(nif_statements(document.id, document.text, phrases))
    return "".join(parts).encode()


def _phrases(context: str, links: LinkedDocument, by_label: bool) -> Iterator[NifPhrase]:
    for link in links:
        iri = link.id or phrase_iri(context, link.start, link.end)
        yield NifPhrase(iri, link.start, link.end, _entity_iri(link, by_label), link.score)


def _entity_iri(link: Link, by_label: bool) -> str:
    if link.entity is None:
        return nil_iri(link.text)
    return resource_iri(link.entity, link.url, by_label=by_label)


TURTLE: Final = "text/turtle"
X_TURTLE: Final = "application/x-turtle"

_MEDIA_TYPES: Final = ("", TURTLE, X_TURTLE, "application/turtle", "application/n-triples", "text/plain")
_TASKS: Final[tuple[Task, ...]] = get_args(Task)
_BOOLEANS: Final = ("true", "false")

PARAMETERS: Final[Mapping[str, tuple[dict[str, Any], str]]] = {
    "kb": ({"type": "string"}, "Name of the knowledge base, where the address has none."),
    "model": ({"type": "string", "default": AUTO}, LINK_HELPS["model"]),
    "threshold": ({"type": "number", "minimum": 0, "maximum": 1}, LINK_HELPS["threshold"]),
    "task": (
        {"enum": list(_TASKS)},
        "a2kb: ignore phrases; d2kb: link phrases only; by default link phrases where a context has some.",
    ),
    "nil": ({"type": "boolean", "default": False}, "Whether mentions without an entity are written too."),
    "confidence": (
        {"type": "boolean", "default": True},
        "Whether links have their scores. GERBIL takes the best of all thresholds where they do.",
    ),
}
"""Fields of the query, with their schemas and descriptions, as OpenAPI has them."""

_OPENAPI: Final[dict[str, Any]] = {
    "parameters": [
        {"name": name, "in": "query", "schema": schema, "description": text}
        for name, (schema, text) in PARAMETERS.items()
    ],
    "requestBody": {
        "required": True,
        "content": {TURTLE: {"schema": {"type": "string", "description": "NIF 2.0 in Turtle."}}},
    },
    "responses": {
        "200": {
            "description": "The same contexts with their links.",
            "content": {TURTLE: {"schema": {"type": "string"}}},
        }
    },
}


def router(service: Service) -> APIRouter:
    """Return the router of `/nif`."""
    routes = APIRouter(prefix="/nif", tags=["kgkit"], responses=PROBLEM_RESPONSES)

    async def annotate(request: Request) -> Response:
        """Link the texts of NIF in Turtle, and answer the same contexts with their links."""
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in _MEDIA_TYPES:
            raise Problem(415, f"the body is {media[:100]!r}; it is {TURTLE}", field="Content-Type")
        fields = parse_fields(request.scope.get("query_string", b""), "the query")
        task = next((each for each in _TASKS if each == fields.get("task")), None)
        if task is None and fields.get("task"):
            raise Problem(422, f"task is {fields['task'][:40]!r}; it is a2kb or d2kb", field="task")
        confidence = fields.get("confidence") or "true"
        if confidence not in _BOOLEANS:
            raise Problem(422, f"confidence is {confidence[:40]!r}; it is true or false", field="confidence")
        limits = NifLimits(service.limits.documents + service.limits.mentions, MAX_TRIPLES)
        documents = await service.call(read_documents, await request.body(), limits, task)
        kb = request.path_params.get("kb") or fields.get("kb") or None
        linked = await service.link(
            documents,
            kb=kb,
            model=fields.get("model") or AUTO,
            threshold=parse_number("threshold", fields.get("threshold", "")),
            nil=True,  # phrases of the request are answered even if they are NIL
        )
        if fields.get("nil") != "true":
            linked = [
                links if document.mentions is not None else _without_nil(links)
                for document, links in zip(documents, linked, strict=True)
            ]
        by_label = bool(linked) and is_by_label(service.resources.served(kb).kb.manifest.url_pattern)
        body = await service.call(
            partial(write_documents, documents, linked, by_label=by_label, with_scores=confidence == "true")
        )
        accepted = request.headers.get("accept", "")
        return Response(body, media_type=X_TURTLE if X_TURTLE in accepted else TURTLE)

    for path in ("", "/{kb}"):
        kb = {"name": "kb", "in": "path", "required": True, "schema": {"type": "string"}}
        parameters = [kb, *_OPENAPI["parameters"][1:]] if path else _OPENAPI["parameters"]
        routes.add_api_route(
            path, annotate, methods=["POST"], response_class=Response,
            openapi_extra={**_OPENAPI, "parameters": parameters},
        )  # fmt: skip
    return routes


def _without_nil(document: LinkedDocument) -> LinkedDocument:
    return msgspec.structs.replace(document, links=[link for link in document if not link.nil])
