"""`/rest`: annotations in the formats of DBpedia Spotlight, for its clients.

`/rest/annotate` links to the default knowledge base, `/rest/NAME/annotate` to another. The field `kb` names
the knowledge base too, `model` the model; `spotter`, `disambiguator` and `coreferenceResolution` are ignored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple, get_args

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kgkit.kb import KnowledgeBase
from kgkit.models.folder import AUTO
from kgkit.serving.forms import count_field, number_field, read_fields
from kgkit.serving.problems import Problem
from kgkit.serving.resource_iris import is_by_label, resource_iri
from kgkit.serving.service import Service
from kgkit.serving.spotlight_format import (
    Process,
    SpotlightAnswer,
    SpotlightResource,
    SpotlightSettings,
    SpotlightSurface,
    media_type,
    write_answer,
)
from kgkit.types import Document, Entity, LinkCandidate, LinkedDocument

PROCESSES: Final[tuple[Process, ...]] = get_args(Process)

_MAX_SUPPORT: Final = 10**12
MAX_RESOURCES: Final = 50_000
"""Resources of an answer: of a long text, with a low confidence, there may be more."""

_CANDIDATES: Final = 30
_MAJORITY: Final = 0.5  # scores of a mention sum to 1: at most one candidate has more
_POLICIES: Final = ("whitelist", "blacklist")
_UNREAD: Final[Mapping[str, str]] = {
    "url": "a page is not fetched: send its text as `text`",
    "sparql": "entities cannot be filtered by a query: use `types`",
}


def router(service: Service) -> APIRouter:
    """Return the router of `/rest`."""
    routes = APIRouter(prefix="/rest", include_in_schema=False)
    for process in PROCESSES:
        answer = _make_route(service, process)
        for path in (f"/{process}", f"/{{kb}}/{process}"):
            routes.add_api_route(path, answer, methods=["GET", "POST"], response_class=Response)
    return routes


def _make_route(service: Service, process: Process) -> Callable[..., object]:
    async def answer_request(request: Request) -> Response:
        """Answer as DBpedia Spotlight does, in JSON, XML or HTML."""
        media = media_type(request.headers.get("accept", ""), process)
        if media is None:
            raise Problem(
                406, "no acceptable media type", field="Accept",
                remedy="Accept: application/json, text/xml or text/html",
            )  # fmt: skip
        fields = await read_fields(request)
        kb = request.path_params.get("kb") or fields.get("kb") or None
        settings, document = read_settings(fields), Document("text", read_text(fields))
        linked = await service.link(
            [document],
            kb=kb,
            model=fields.get("model") or AUTO,
            threshold=0.0,
            nil=process == "spot",
            top_k=min(_CANDIDATES, service.limits.rows),
        )
        surfaces = await service.call(_surfaces, service.kb(kb), linked[0], settings, process)
        body = write_answer(SpotlightAnswer(process, document.text, settings, surfaces), media)
        return Response(body, media_type=media, headers={"Vary": "Accept"})

    return answer_request


def read_settings(fields: Mapping[str, str]) -> SpotlightSettings:
    """Return the settings of a request.

    Args:
        fields: fields of its query or form.

    Raises:
        Problem: if a value is out of range, or a field is not supported.
    """
    for name, remedy in _UNREAD.items():
        if fields.get(name, "").strip():
            raise Problem(422, f"{name} is not supported", field=name, remedy=remedy)
    policy = fields.get("policy", "").strip().lower() or _POLICIES[0]
    if policy not in _POLICIES:
        raise Problem(422, f"policy is {policy[:40]!r}; it is whitelist or blacklist", field="policy")
    return SpotlightSettings(
        number_field(fields, "confidence", 0.5, 1),
        count_field(fields, "support", 0, _MAX_SUPPORT),
        fields.get("types", "").strip(),
        policy,
    )


def read_text(fields: Mapping[str, str]) -> str:
    """Return the text of a request.

    Raises:
        Problem: if the field is missing or blank.
    """
    text = fields.get("text", "")
    if not text.strip():
        raise Problem(422, "text is missing", field="text", remedy="send the text as the field `text`")
    return text


# -- from links -------------------------------------------------------------


def _surfaces(
    kb: KnowledgeBase, linked: LinkedDocument, settings: SpotlightSettings, process: Process
) -> list[SpotlightSurface]:
    if process == "spot":
        return [SpotlightSurface(link.text, link.start) for link in linked]
    requested = requested_types(settings.types)
    only_best = process == "annotate" or settings.confidence >= _MAJORITY
    surfaces = []
    describe = lru_cache(maxsize=None)(partial(_description, kb))
    count = 0
    for link in linked:
        candidates = [each for each in link.candidates if each.score >= settings.confidence]
        second = link.candidates[1].score / link.score if len(link.candidates) > 1 and link.score > 0 else 0.0
        resources = [
            resource
            for resource in _resources(describe, candidates[:1] if only_best else candidates, second)
            if resource.support >= settings.support
            and _is_selected(resource.types, requested, settings.policy)
        ]
        if resources:
            surfaces.append(SpotlightSurface(link.text, link.start, tuple(resources)))
        count += len(resources)
        if count > MAX_RESOURCES:
            raise Problem(
                413, f"the answer has more than {MAX_RESOURCES:,} resources", field="text",
                remedy="send a shorter text, or ask for a higher confidence",
            )  # fmt: skip
    return surfaces


class _Description(NamedTuple):
    """The fields of a resource that are those of its entity."""

    iri: str
    label: str
    types: tuple[str, ...]
    support: int


def _description(kb: KnowledgeBase, key: str) -> _Description | None:
    entity = kb.get(key)
    if entity is None:  # it was there when the text was linked
        return None
    by_label = is_by_label(kb.manifest.url_pattern)
    iri = resource_iri(key, kb.url(entity.id) or "", by_label=by_label)
    support = kb.degree(entity.id, direction="in")
    return _Description(iri, entity.label or key, _types(entity), support)


def _resources(
    describe: Callable[[str], _Description | None], candidates: Sequence[LinkCandidate], second: float
) -> Iterator[SpotlightResource]:
    """Yield candidates as Spotlight describes them."""
    for candidate in candidates:
        description = describe(candidate.entity)
        if description is not None:
            yield SpotlightResource(*description, candidate.prior, candidate.score, second)


def _types(entity: Entity) -> tuple[str, ...]:
    """Return the types of an entity; of one without, its kind."""
    return entity.types or ((entity.kind,) if entity.kind else ())


def requested_types(text: str) -> frozenset[str]:
    """Return the types of a filter by their local names: `DBpedia:Place,Schema:Place` names one."""
    return frozenset(_local_name(part) for part in text.split(",") if part.strip())


def _is_selected(types: Sequence[str], requested: frozenset[str], policy: str) -> bool:
    if not requested:
        return True
    has_type = any(_local_name(name) in requested for name in types)
    return has_type == (policy == _POLICIES[0])


def _local_name(name: str) -> str:
    """Return a type without the vocabulary before it, in lower case."""
    return name.strip().rstrip("/#").replace("#", "/").replace(":", "/").rpartition("/")[2].lower()
