"""`/rest`: annotations in the formats of DBpedia Spotlight, for its clients.

`/rest/annotate` links to the default knowledge base, `/rest/NAME/annotate` to another. The field `kb` names
the knowledge base too, `model` the model; `spotter`, `disambiguator` and `coreferenceResolution` are ignored.

    annotate      Resources: a list with @URI, @surfaceForm, @offset, …; none: without the field
    candidates    annotation: surfaceForm: a list with @name, @offset and resource
    spot          annotation: surfaceForm: a list with @name, @offset

`resource` is an object where a surface has one candidate, a list where it has several. `surfaceForm` is
always a list, where Spotlight writes an object for a list of one: its clients read both, but for
`spacy-dbpedia-spotlight`, which wants a list from `spot`. All values are strings; offsets count code points.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Literal, NamedTuple, get_args
from xml.etree import ElementTree

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kgkit.exchange.xml_text import escape_text
from kgkit.kb import KnowledgeBase
from kgkit.models.folder import AUTO
from kgkit.serving.forms import parse_integer, parse_number, read_fields
from kgkit.serving.problems import Problem
from kgkit.serving.resource_iris import is_by_label, resource_iri, resource_name
from kgkit.serving.service import Service
from kgkit.text import escape_xml
from kgkit.types import Document, Entity, LinkedDocument

Process = Literal["annotate", "candidates", "spot"]

JSON: Final = "application/json"
XML: Final = "text/xml"
HTML: Final = "text/html"

_MEDIA_TYPES: Final[Mapping[str, str]] = {
    JSON: JSON, XML: XML, "application/xml": XML, HTML: HTML, "application/xhtml+xml": HTML,
}  # fmt: skip
_MAX_RANGES: Final = 50


class SpotlightResource(NamedTuple):
    """An entity that a surface may mean.

    Attributes:
        iri: its IRI.
        label: its label.
        types: its types.
        support: number of facts that point to it.
        prior: p(entity | surface).
        score: score of the linker, in [0, 1].
        second: score of the next best entity divided by that of the best.
    """

    iri: str
    label: str
    types: tuple[str, ...]
    support: int
    prior: float = 0.0
    score: float = 0.0
    second: float = 0.0


class SpotlightSurface(NamedTuple):
    """A span of the text.

    Attributes:
        name: the text there.
        offset: first code point.
        resources: entities that it may mean, best first.
    """

    name: str
    offset: int
    resources: tuple[SpotlightResource, ...] = ()


class SpotlightSettings(NamedTuple):
    """Request, as the answer repeats it.

    Attributes:
        confidence: least score.
        support: least support.
        types: types, separated by commas; empty for all.
        policy: `whitelist`: entities of these types; `blacklist`: all others.
    """

    confidence: float = 0.5
    support: int = 0
    types: str = ""
    policy: str = "whitelist"


class SpotlightAnswer(NamedTuple):
    """An answer, to be written.

    Attributes:
        process: process that was asked for.
        text: the text.
        settings: settings of the request.
        surfaces: surfaces in the order of the text; those of `annotate` have one resource each.
    """

    process: Process
    text: str
    settings: SpotlightSettings
    surfaces: Sequence[SpotlightSurface]


def media_type(accept: str, process: Process) -> str | None:
    """Return the media type of an answer, None if no acceptable one can be written.

    Args:
        accept: value of the header `Accept`; empty: any.
        process: process, which decides between types that are as acceptable, as Spotlight does.
    """
    order = (HTML, XML, JSON) if process == "annotate" else (XML, JSON, HTML)
    qualities = dict.fromkeys(order, 0.0)
    ranges = sorted(map(_media_range, (accept or "*/*").split(",")[:_MAX_RANGES]), key=_specificity)
    for name, quality in ranges:
        for each in order:
            if name == "*/*" or name == f"{each.partition('/')[0]}/*" or _MEDIA_TYPES.get(name) == each:
                qualities[each] = quality
    best = max(order, key=qualities.__getitem__)
    return best if qualities[best] > 0 else None


def _media_range(text: str) -> tuple[str, float]:
    name, _, parameters = text.partition(";")
    quality = 1.0
    for parameter in parameters.split(";"):
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
    return name.strip().lower(), quality


def _specificity(media_range: tuple[str, float]) -> int:
    return 2 - media_range[0].count("*")


def write_answer(answer: SpotlightAnswer, media: str) -> bytes:
    """Return the body of an answer.

    Args:
        answer: the answer.
        media: media type, one of those that `media_type` gives.
    """
    if media == JSON:
        return msgspec.json.encode(_json_object(answer))
    return _xml(answer) if media == XML else _html(answer).encode()


# -- JSON -------------------------------------------------------------------


def _json_object(answer: SpotlightAnswer) -> dict[str, Any]:
    if answer.process == "annotate":
        rows = [_attributes(_annotation(surface)) for surface in answer.surfaces]
        return _attributes(_settings(answer)) | ({"Resources": rows} if rows else {})
    surfaces = [_surface_object(surface, answer.process) for surface in answer.surfaces]
    return {"annotation": {"@text": answer.text} | ({"surfaceForm": surfaces} if surfaces else {})}


def _surface_object(surface: SpotlightSurface, process: Process) -> dict[str, Any]:
    fields: dict[str, Any] = {"@name": surface.name, "@offset": str(surface.offset)}
    if process == "candidates":
        rows = [_attributes(_candidate(resource)) for resource in surface.resources]
        fields["resource"] = rows[0] if len(rows) == 1 else rows
    return fields


def _attributes(fields: Mapping[str, str]) -> dict[str, Any]:
    return {f"@{name}": value for name, value in fields.items()}


def _settings(answer: SpotlightAnswer) -> dict[str, str]:
    confidence, support, types, policy = answer.settings
    return {
        "text": answer.text, "confidence": str(confidence), "support": str(support), "types": types,
        "sparql": "", "policy": policy,
    }  # fmt: skip


def _annotation(surface: SpotlightSurface) -> dict[str, str]:
    resource = surface.resources[0]
    return {
        "URI": resource.iri, "support": str(resource.support), "types": ",".join(resource.types),
        "surfaceForm": surface.name, "offset": str(surface.offset), "similarityScore": str(resource.score),
        "percentageOfSecondRank": str(resource.second),
    }  # fmt: skip


def _candidate(resource: SpotlightResource) -> dict[str, str]:
    return {
        "label": resource.label, "uri": resource_name(resource.iri),
        "contextualScore": str(resource.score), "percentageOfSecondRank": str(resource.second),
        "support": str(resource.support), "priorScore": str(resource.prior),
        "finalScore": str(resource.score), "types": ", ".join(resource.types),
    }  # fmt: skip


# -- XML --------------------------------------------------------------------


def _xml(answer: SpotlightAnswer) -> bytes:
    if answer.process == "annotate":
        root = _element(None, "Annotation", _settings(answer))
        parent = _element(root, "Resources", {}) if answer.surfaces else root
        for surface in answer.surfaces:
            _element(parent, "Resource", _annotation(surface))
    else:
        root = _element(None, "annotation", {"text": answer.text})
        for surface in answer.surfaces:
            node = _element(root, "surfaceForm", {"name": surface.name, "offset": str(surface.offset)})
            for resource in surface.resources if answer.process == "candidates" else ():
                _element(node, "resource", _candidate(resource))
    body: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return body


def _element(
    parent: ElementTree.Element | None, name: str, attributes: Mapping[str, str]
) -> ElementTree.Element:
    escaped = {key: escape_text(value) for key, value in attributes.items()}
    return (
        ElementTree.Element(name, escaped)
        if parent is None
        else ElementTree.SubElement(parent, name, escaped)
    )


# -- HTML -------------------------------------------------------------------


def _html(answer: SpotlightAnswer) -> str:
    body = "".join(_marked_text(answer.text, answer.surfaces)).replace("\n", "<br>\n")
    title = escape_xml(f"kgkit: {answer.process}")
    return (
        f'<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<div>{body}</div>\n</body>\n</html>\n"
    )


def _marked_text(text: str, surfaces: Iterable[SpotlightSurface]) -> Iterable[str]:
    """Yield a text with its surfaces as links, and marks where there is nothing to link to."""
    position = 0
    for surface in surfaces:
        if surface.offset < position:
            continue  # inside of one that stands before it
        yield escape_xml(text[position : surface.offset])
        name = escape_xml(surface.name)
        if surface.resources:
            iri = escape_xml(surface.resources[0].iri)
            yield f'<a href="{iri}" title="{iri}">{name}</a>'
        else:
            yield f"<mark>{name}</mark>"
        position = surface.offset + len(surface.name)
    yield escape_xml(text[position:])


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
        parse_number("confidence", fields.get("confidence", ""), 0.5),
        parse_integer("support", fields.get("support", ""), 0, least=0, most=_MAX_SUPPORT),
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
    describe = lru_cache(maxsize=None)(partial(_resource, kb))
    count = 0
    for link in linked:
        candidates = [each for each in link.candidates if each.score >= settings.confidence]
        second = link.candidates[1].score / link.score if len(link.candidates) > 1 and link.score > 0 else 0.0
        resources = [
            resource._replace(prior=each.prior, score=each.score, second=second)
            for each in (candidates[:1] if only_best else candidates)
            if (resource := describe(each.entity)) is not None
            and resource.support >= settings.support
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


def _resource(kb: KnowledgeBase, key: str) -> SpotlightResource | None:
    """Return an entity as Spotlight describes it, without a prior and scores."""
    entity = kb.get(key)
    if entity is None:  # it was there when the text was linked
        return None
    by_label = is_by_label(kb.manifest.url_pattern)
    iri = resource_iri(key, kb.url(entity.id) or "", by_label=by_label)
    support = kb.degree(entity.id, direction="in")
    return SpotlightResource(iri, entity.label or key, _types(entity), support)


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
