"""`/nif`: entity linking as GERBIL asks for it, by a POST of NIF in Turtle.

`/nif` links to the default knowledge base, `/nif/NAME` to another. Fields of the query: `model`, `threshold`,
`nil` (`true`: mentions without an entity are written too) and `task` (`a2kb`, `d2kb`).
"""

from functools import partial
from typing import Final, Unpack, get_args

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kgkit.evaluation.nif import NifLimits
from kgkit.linking.settings import LinkArguments
from kgkit.models.folder import AUTO
from kgkit.serving.forms import parse_fields, parse_number
from kgkit.serving.nif_documents import MAX_TRIPLES, NifDocument, Task, read_documents, write_documents
from kgkit.serving.problems import Problem
from kgkit.serving.resource_iris import is_by_label
from kgkit.serving.service import Service
from kgkit.types import LinkedDocument

TURTLE: Final = "text/turtle"
X_TURTLE: Final = "application/x-turtle"

_MEDIA_TYPES: Final = ("", TURTLE, X_TURTLE, "application/turtle", "application/n-triples", "text/plain")
_TASKS: Final[tuple[Task, ...]] = get_args(Task)


def router(service: Service) -> APIRouter:
    """Return the router of `/nif`."""
    routes = APIRouter(prefix="/nif", include_in_schema=False)

    async def annotate(request: Request) -> Response:
        """Link the texts of NIF in Turtle, and answer the same contexts with their links."""
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in _MEDIA_TYPES:
            raise Problem(415, f"the body is {media[:100]!r}; it is {TURTLE}", field="Content-Type")
        fields = parse_fields(request.scope.get("query_string", b""), "the query")
        task = next((each for each in _TASKS if each == fields.get("task")), None)
        if task is None and fields.get("task"):
            raise Problem(422, f"task is {fields['task'][:40]!r}; it is a2kb or d2kb", field="task")
        limits = NifLimits(service.limits.documents + service.limits.mentions, MAX_TRIPLES)
        documents = await service.call(read_documents, await request.body(), limits, task)
        kb = request.path_params.get("kb") or fields.get("kb") or None
        linked = await _links(
            service,
            documents,
            kb=kb,
            model=fields.get("model") or AUTO,
            threshold=parse_number("threshold", fields.get("threshold", "")),
            nil=fields.get("nil") == "true",
        )
        by_label = bool(linked) and is_by_label(service.resources.served(kb).kb.manifest.url_pattern)
        body = await service.call(partial(write_documents, documents, linked, by_label=by_label))
        accepted = request.headers.get("accept", "")
        return Response(body, media_type=X_TURTLE if X_TURTLE in accepted else TURTLE)

    for path in ("", "/{kb}"):
        routes.add_api_route(path, annotate, methods=["POST"], response_class=Response)
    return routes


async def _links(
    service: Service,
    documents: list[NifDocument],
    *,
    kb: str | None,
    **settings: Unpack[LinkArguments],
) -> list[LinkedDocument]:
    """Return the links of each document; mentions of the request are answered even if they are NIL."""
    service.check_documents([nif_document.document for nif_document in documents])
    linked: dict[int, LinkedDocument] = {}
    for has_mentions in (False, True):
        indices = [
            index
            for index, nif_document in enumerate(documents)
            if (nif_document.document.mentions is not None) == has_mentions
        ]
        if indices:
            links = await service.link(
                [documents[index].document for index in indices],
                kb=kb,
                **(settings | LinkArguments(nil=settings["nil"] or has_mentions)),
            )
            linked.update(zip(indices, links, strict=True))
    return [linked[index] for index in range(len(documents))]
