"""Annotations as DBpedia Spotlight writes them: JSON, XML and HTML of its three processes.

    annotate      Resources: a list with @URI, @surfaceForm, @offset, …; none: without the field
    candidates    annotation: surfaceForm: a list with @name, @offset and resource
    spot          annotation: surfaceForm: a list with @name, @offset

`resource` is an object where a surface has one candidate, a list where it has several. `surfaceForm` is
always a list, where Spotlight writes an object for a list of one: its clients read both, but for
`spacy-dbpedia-spotlight`, which wants a list from `spot`. All values are strings; offsets count code points.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from xml.etree import ElementTree

import msgspec

from kgkit.exchange.xml_text import escape_text
from kgkit.serving.resource_iris import resource_name
from kgkit.text import escape_xml

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
    prior: float
    score: float
    second: float


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
    """What a request asks for, as the answer repeats it.

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
