"""Tools for language-model agents: the arguments of each, and its answer as a record.

All are read-only. An answer has at most `MAX_CHARACTERS` of JSON: rows beyond that are left out, and
`omitted` has their number.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from kgkit.kb import KnowledgeBase
from kgkit.models.folder import AUTO
from kgkit.serving.kb_schema import types_of
from kgkit.serving.service import LONG, Service
from kgkit.text import truncate
from kgkit.types import Document, Entity, LinkedDocument, Triple

MAX_CHARACTERS: Final = 20_000
"""Characters of an answer, as JSON."""

_DESCRIPTION: Final = 300
_VALUES: Final = 20
_SURFACES: Final = 20
_NAMES: Final = 50

KBArgument = Annotated[str | None, Meta(description="Name of the knowledge base; null: the default one.")]
KeyArgument = Annotated[str, Meta(min_length=1, description="Key of the entity, as other tools give it.")]
Limit = Annotated[int, Meta(ge=1, le=100, description="Largest number of rows.")]


class LinkArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `link` takes."""

    text: Annotated[str, Meta(min_length=1, description="Text of any language.")]
    kb: KBArgument = None
    model: Annotated[str | None, Meta(description="Model that scores candidates; null: the default.")] = None
    threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Least score of a link; null: the model's own."),
    ] = None


class ReconcileArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `reconcile` takes."""

    names: Annotated[
        list[str], Meta(min_length=1, max_length=_NAMES, description="Names, typing errors included.")
    ]
    kb: KBArgument = None
    kind: Annotated[
        str | None, Meta(description="Only entities of this kind or type, or ATTRIBUTE=VALUE; null: any.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=10, description="Largest number of candidates of a name.")] = 3


class SearchArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `search` takes."""

    query: Annotated[str, Meta(min_length=1, description="Key, name, or the beginning of one.")]
    kb: KBArgument = None
    limit: Limit = 10


class EntityArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `entity` takes."""

    key: KeyArgument
    kb: KBArgument = None


class NeighboursArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `neighbours` takes."""

    key: KeyArgument
    kb: KBArgument = None
    relation: Annotated[str | None, Meta(description="Only facts of this relation; null: of any.")] = None
    direction: Annotated[
        Literal["out", "in", "both"], Meta(description="Facts with the entity as subject, object, or both.")
    ] = "both"
    limit: Limit = 50


class PathArguments(msgspec.Struct, forbid_unknown_fields=True):
    """What the tool `path` takes."""

    source: KeyArgument
    target: KeyArgument
    kb: KBArgument = None


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """A tool of an agent.

    Attributes:
        name: name of the tool.
        description: sentences that say what the tool is for.
        arguments: struct of the tool's arguments.
        answer: function that returns the answer as a record.
        rows: field of the record whose rows may be left out.
    """

    name: str
    description: str
    arguments: type[msgspec.Struct]
    answer: Callable[[Service, Any], Awaitable[dict[str, Any]]]
    rows: str

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments: an object."""
        (reference,), components = msgspec.json.schema_components([self.arguments])
        schema = dict(components[reference["$ref"].rpartition("/")[2]])
        return {name: value for name, value in schema.items() if name not in ("title", "description")}


# -- answers ----------------------------------------------------------------


async def _link(service: Service, arguments: LinkArguments) -> dict[str, Any]:
    linked = await service.link(
        [Document("text", arguments.text)],
        kb=arguments.kb,
        model=arguments.model or AUTO,
        threshold=arguments.threshold,
        top_k=1,
    )
    return await service.call(_link_record, service.kb(arguments.kb), linked[0])


def _link_record(kb: KnowledgeBase, linked: LinkedDocument) -> dict[str, Any]:
    links = [
        {
            "start": link.start,
            "end": link.end,
            "text": link.text,
            "key": link.entity,
            "label": link.label,
            "score": round(link.score, 4),
            "description": _description(kb.get(link.entity or "")),
        }
        for link in linked
    ]
    return {"kb": kb.name, "model": linked.model, "links": links}


async def _reconcile(service: Service, arguments: ReconcileArguments) -> dict[str, Any]:
    matches = await service.call_weighed(
        len(arguments.names), service.reconcile, arguments.names, arguments.kb, kind=arguments.kind,
        k=arguments.limit,
    )  # fmt: skip
    names = [
        {
            "name": match.name,
            "match": match.match,
            "candidates": [
                {"key": each.key, "label": each.label, "score": round(each.score, 4)}
                for each in match.candidates
            ],
        }
        for match in matches
    ]
    return {"kb": service.kb(arguments.kb).name, "names": names}


async def _search(service: Service, arguments: SearchArguments) -> dict[str, Any]:
    hits = await service.call(service.search, arguments.query, arguments.kb, limit=arguments.limit)
    rows = [_entity_record(hit.entity) | {"match": hit.match} for hit in hits]
    return {"kb": service.kb(arguments.kb).name, "entities": rows}


async def _entity(service: Service, arguments: EntityArguments) -> dict[str, Any]:
    return await service.call(_full_entity, service.kb(arguments.kb), arguments.key)


def _full_entity(kb: KnowledgeBase, key: str) -> dict[str, Any]:
    entity = kb[key]
    attributes = [
        {"name": name, "value": _abbreviate(value)} for name, value in sorted(entity.attributes.items())
    ]
    return {
        "kb": kb.name,
        **_entity_record(entity),
        "url": kb.url(entity.id) or "",
        "facts": kb.degree(entity.id, direction="both"),
        "attributes": attributes,
    }


async def _neighbours(service: Service, arguments: NeighboursArguments) -> dict[str, Any]:
    facts = await service.call(
        service.neighbors,
        arguments.key,
        arguments.kb,
        relation=arguments.relation,
        direction=arguments.direction,
        limit=arguments.limit,
    )
    rows = await service.call(_fact_records, service.kb(arguments.kb), facts)
    return {"kb": service.kb(arguments.kb).name, "facts": rows}


async def _path(service: Service, arguments: PathArguments) -> dict[str, Any]:
    facts = await service.call_weighed(LONG, service.path, arguments.source, arguments.target, arguments.kb)
    rows = await service.call(_fact_records, service.kb(arguments.kb), facts)
    return {"kb": service.kb(arguments.kb).name, "facts": rows}


def _fact_records(kb: KnowledgeBase, facts: list[Triple]) -> list[dict[str, Any]]:
    labels = {key: _label(kb, key) for fact in facts for key in (fact.subject, fact.object)}
    return [
        {
            "subject": fact.subject,
            "subject_label": labels[fact.subject],
            "relation": fact.relation,
            "object": fact.object,
            "object_label": labels[fact.object],
        }
        for fact in facts
    ]


def _label(kb: KnowledgeBase, key: str) -> str:
    entity = kb.get(key)
    return entity.label if entity is not None else ""


def _entity_record(entity: Entity) -> dict[str, Any]:
    return {
        "key": entity.key,
        "label": entity.label,
        "types": list(types_of(entity))[:_VALUES],
        "description": _description(entity),
    }


def _description(entity: Entity | None) -> str:
    return "" if entity is None else str(_abbreviate(entity.description))


def _abbreviate(value: Any) -> Any:
    """Return a JSON-like value with long texts shortened, and long lists cut."""
    if isinstance(value, str):
        return truncate(value, _DESCRIPTION)
    if isinstance(value, list | tuple):
        return [_abbreviate(each) for each in value[:_VALUES]]
    if isinstance(value, dict):
        return {name: _abbreviate(each) for name, each in list(value.items())[:_VALUES]}
    return value


def bounded_json(record: Mapping[str, Any], rows: str, most: int = MAX_CHARACTERS) -> str:
    """Return a record as JSON of a bounded length.

    Args:
        record: record with the answer of a tool.
        rows: name of the field whose last rows are left out if the JSON is too long.
        most: largest number of characters.
    """
    text = msgspec.json.encode(record).decode()
    if len(text) <= most:
        return text
    size = len(msgspec.json.encode({**record, rows: [], "omitted": len(record[rows])}).decode())
    shown: list[Any] = []
    for row in record[rows]:
        size += len(msgspec.json.encode(row).decode()) + 1
        if size > most:
            break
        shown.append(row)
    bounded = {**record, rows: shown, "omitted": len(record[rows]) - len(shown)}
    return msgspec.json.encode(bounded).decode()


TOOLS: Final[Mapping[str, AgentTool]] = {
    tool.name: tool
    for tool in (
        AgentTool(
            name="link",
            description="Find the entities that a text mentions. Offsets count code points.",
            arguments=LinkArguments,
            answer=_link,
            rows="links",
        ),
        AgentTool(
            name="reconcile",
            description="Find the entities that names mean, through typing errors. A score is a probability; "
            "match says whether it is at least 0.5.",
            arguments=ReconcileArguments,
            answer=_reconcile,
            rows="names",
        ),
        AgentTool(
            name="search",
            description="Find entities by a key, a name or the beginning of one.",
            arguments=SearchArguments,
            answer=_search,
            rows="entities",
        ),
        AgentTool(
            name="entity",
            description="Show an entity: label, description, types, attributes.",
            arguments=EntityArguments,
            answer=_entity,
            rows="attributes",
        ),
        AgentTool(
            name="neighbours",
            description="List facts of an entity: subject, relation, object.",
            arguments=NeighboursArguments,
            answer=_neighbours,
            rows="facts",
        ),
        AgentTool(
            name="path",
            description="Find a shortest path of facts between two entities.",
            arguments=PathArguments,
            answer=_path,
            rows="facts",
        ),
    )
}
"""The tools by their names."""


def kb_records(service: Service) -> list[dict[str, Any]]:
    """Return the served knowledge bases as records for agents, the default one first."""
    records = []
    for name in service.kb_names():
        kb = service.kb(name)
        records.append(
            {
                "name": name,
                "source": kb.manifest.source.name,
                "language": kb.manifest.language,
                "entities": kb.manifest.entities,
                "facts": kb.manifest.triples,
                "kinds": sorted(kb.manifest.counts.entities)[:_VALUES],
                "relations": list(kb.relations[:_NAMES]),
            }
        )
    return records
