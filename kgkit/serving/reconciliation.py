"""`/reconcile/NAME`: the Reconciliation Service API 0.2 over a knowledge base, for OpenRefine and its like.

    GET                          the manifest
    GET, POST form  queries      candidates of a batch of queries
    GET, POST form  extend       values of properties
    /suggest/KIND   prefix       entities, types or properties that begin so; KIND: entity, type, property
    /flyout/KIND    id           a small preview of what is suggested
    /preview        id           a page about an entity
    /properties     type         properties that entities of a type have

`/reconcile` is the default knowledge base's. Pages of allowed origins may read the answers (CORS, by `guard`)
and frame previews. There is no JSONP, which the specification leaves open: it runs answers as scripts.

A batch of queries, and a data extension:

    queries   {ID: {"query": …, "type": …, "type_strict": …, "limit": …, "properties": [{"pid": …, "v": …}]}}
    extend    {"ids": […], "properties": [{"id": …, "settings": {…}}]}

Fields that the specification does not have are ignored (W3C Entity Reconciliation Community Group).

Candidates and scores are those of a `Reconciler`; a query without a name and without properties has none,
nor has one that is no query, so that the others of its batch are answered.
Properties are evidence for or against each candidate, with odds of nine to one:

    weight(entity) = score(entity) · 9^agreeing · 9^-contradicting      without a value, neither
    score'(entity) = weight(entity) / (Σ weights + 1 - Σ scores)
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args
from urllib.parse import quote

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from kgkit import __version__
from kgkit.errors import UnknownName
from kgkit.kb import KnowledgeBase
from kgkit.pauses import pause
from kgkit.serving.forms import parse_integer, read_fields
from kgkit.serving.kb_schema import FIELDS, KBSchema, properties_of_type, property_values, types_of
from kgkit.serving.mcp_frames import without_half_pairs
from kgkit.serving.problems import Problem, json_response
from kgkit.serving.service import Service, check_limit
from kgkit.serving.settings import Limits
from kgkit.text import escape_xml, fold, truncate
from kgkit.types import Entity

Suggested = Literal["entity", "type", "property"]

SUGGESTED: Final[tuple[Suggested, ...]] = get_args(Suggested)
"""Kinds of suggestions, each with an address of its own."""

VERSIONS: Final = ("0.1", "0.2")

_BATCH: Final = 100
_DEFAULT_TYPES: Final = 10
_SUGGESTIONS: Final = 20
_PREVIEW: Final = 430, 300
_MAX_FACTS: Final = 12
_SHOWN_VALUES: Final = 5


def manifest(
    kb: KnowledgeBase, schema: KBSchema, endpoint: str, limits: Limits, token: bool
) -> dict[str, Any]:
    """Return the manifest of a service.

    Args:
        kb: knowledge base.
        schema: its schema.
        endpoint: address of the service.
        limits: limits of requests.
        token: whether requests carry a bearer token.
    """
    pattern, namespace = kb.manifest.url_pattern, f"urn:kgkit:{quote(kb.name, safe='')}:"
    preview = f"{endpoint}/preview?id={{{{id}}}}"
    fields: dict[str, Any] = {
        "versions": list(VERSIONS),
        "name": f"{kb.name}: {kb.manifest.source.name}" if kb.manifest.source.name else kb.name,
        "identifierSpace": pattern.partition("{")[0] or namespace,
        "schemaSpace": f"{namespace}type:",
        "serviceVersion": __version__,
        "defaultTypes": type_records(list(islice(schema.types, _DEFAULT_TYPES))),
        "view": {"url": preview},
        "preview": {"url": preview, "width": _PREVIEW[0], "height": _PREVIEW[1]},
        "suggest": {name: _suggest_metadata(endpoint, name) for name in SUGGESTED},
        "extend": {
            "propose_properties": {"service_url": endpoint, "service_path": "/properties"},
            "property_settings": [
                {
                    "name": "limit",
                    "label": "Limit",
                    "type": "number",
                    "default": 0,
                    "help_text": "Largest number of values of an entity; 0: as many as an answer may have",
                }
            ],
        },
        "batchSize": min(_BATCH, limits.names),
    }
    if token:
        fields["authentication"] = {"type": "apiKey", "name": "Authorization", "in": "header"}
    return fields


def _suggest_metadata(endpoint: str, name: str) -> dict[str, str]:
    return {
        "service_url": endpoint,
        "service_path": f"/suggest/{name}",
        "flyout_service_url": endpoint,
        "flyout_service_path": f"/flyout/{name}?id=${{id}}",
    }


# -- suggestions ------------------------------------------------------------


def suggestions(
    service: Service, name: str, schema: KBSchema, suggested: Suggested, prefix: str, cursor: int
) -> dict[str, Any]:
    """Return entities, types or properties that begin with a text.

    Args:
        service: service.
        name: name of the knowledge base.
        schema: its schema.
        suggested: kind of the suggestions.
        prefix: text that suggestions begin with.
        cursor: number of suggestions to skip.
    """
    if not prefix.strip():
        return {"result": []}
    end = cursor + _SUGGESTIONS
    if suggested != "entity":
        names: Iterable[str] = schema.types if suggested == "type" else schema.properties
        folded = fold(prefix)
        matches = (each for each in names if each == prefix or fold(each).startswith(folded))
        return {"result": type_records(list(islice(matches, cursor, end)))}
    hits = service.search(prefix, name, limit=min(end, service.limits.rows))
    return {"result": [_suggested_entity(hit.entity) for hit in hits[cursor:end]]}


def _suggested_entity(entity: Entity) -> dict[str, Any]:
    fields = {"id": entity.key, "name": entity.label or entity.key, "notable": type_records(types_of(entity))}
    return fields | describe(entity)


def flyout(kb: KnowledgeBase, schema: KBSchema, suggested: Suggested, identifier: str) -> dict[str, str]:
    """Return a small preview of an entity, a type or a property, as HTML in a record.

    Args:
        kb: knowledge base.
        schema: schema of the knowledge base.
        suggested: kind of the suggestion.
        identifier: key of the entity, or name of the type or property.

    Raises:
        UnknownEntity: if the knowledge base has no such entity.
    """
    if suggested == "entity":
        entity = kb[identifier]
        detail = entity.description or ", ".join(types_of(entity))
        body = _paragraph(entity.label or entity.key, detail)
    elif suggested == "type":
        count = schema.types.get(identifier, 0)
        body = _paragraph(identifier, f"a type of {count:,} entities" if count else "no type of an entity")
    else:
        body = _paragraph(identifier, _property_kind(schema, identifier))
    return {"id": identifier, "html": body}


def _property_kind(schema: KBSchema, name: str) -> str:
    if name in schema.relations:
        return "a relation to other entities"
    if name in schema.attributes:
        return f"an attribute of {schema.attributes[name]:,} entities"
    return "a field of every entity" if name in FIELDS else "no property of an entity"


def _paragraph(name: str, detail: str) -> str:
    return f"<p><strong>{escape_xml(name)}</strong> {escape_xml(detail)}</p>"


# -- previews ---------------------------------------------------------------


def preview(kb: KnowledgeBase, identifier: str) -> str:
    """Return a page about an entity, as HTML.

    Args:
        kb: knowledge base.
        identifier: key of the entity.

    Raises:
        UnknownEntity: if the knowledge base has no such entity.
    """
    entity = kb[identifier]
    label, url = entity.label or entity.key, kb.url(entity.id) or ""
    title = escape_xml(label)
    heading = f'<a href="{escape_xml(url)}">{title}</a>' if url else title
    rows = [("key", [entity.key]), ("types", list(types_of(entity)))]
    names = dict.fromkeys(fact.relation for fact in islice(kb.match(subject=entity), _MAX_FACTS))
    rows.extend(
        (name, [_value_text(each) for each in property_values(kb, entity, name, _SHOWN_VALUES)])
        for name in (*names, *list(entity.attributes)[:_MAX_FACTS])
    )
    terms = "".join(
        f"<dt>{escape_xml(name)}</dt><dd>{escape_xml(', '.join(values))}</dd>\n"
        for name, values in rows
        if values
    )
    return (
        f'<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8"><title>{title}</title></head>\n<body>\n'
        f"<h1>{heading}</h1>\n<p>{escape_xml(entity.description)}</p>\n<dl>\n{terms}</dl>\n</body>\n</html>\n"
    )


def _value_text(value: Any) -> str:
    record = _value_record(value)
    return str(record["name"] if "id" in record else next(iter(record.values())))


# -- queries ----------------------------------------------------------------


MAX_PROPERTIES: Final = 50
"""Properties of a query."""

MAX_VALUES: Final = 1_000
"""Values of the properties of a batch together: each is looked for in each candidate."""

MAX_CELLS: Final = 20_000
"""Cells of a data extension: entities times properties."""

CELLS: Final = 10
"""Cells of a data extension that cost as much as a name."""

Record = TypeVar("Record")


class EntityValue(msgspec.Struct, frozen=True):
    """A value that is an entity.

    Attributes:
        id: its identifier.
        name: its name; empty if it is not sent.
    """

    id: str
    name: str = ""


PropertyValue = str | bool | int | float | EntityValue


class PropertyFilter(msgspec.Struct, frozen=True):
    """A property that an entity should have.

    Attributes:
        pid: identifier of the property.
        v: value, or several of which it has one; None: unknown.
    """

    pid: str
    v: str | bool | int | float | EntityValue | list[str | bool | int | float | EntityValue | None] | None

    @property
    def values(self) -> list[PropertyValue]:
        """The values that are known, always as a list."""
        values = self.v if isinstance(self.v, list) else [self.v]
        return [value for value in values if value is not None]


class ReconciliationQuery(msgspec.Struct, frozen=True):
    """Query for an entity.

    Attributes:
        query: name, or identifier; a number is its text.
        type: type, or several.
        limit: largest number of candidates; None or 0: the service's own.
        properties: properties that it should have, and None for what is none.
        type_strict: `any`: candidates have one of the types; `all`: all of them; `should`: types are ignored
            if no candidate has one.
    """

    query: str | int | float | None = None
    type: str | list[str] | None = None
    limit: int | float | None = None
    properties: list[PropertyFilter | None] | None = None
    type_strict: Literal["any", "all", "should"] | None = None

    @property
    def name(self) -> str:
        """The name, without blanks around it; empty if there is none."""
        return "" if self.query is None else str(self.query).strip()

    @property
    def filters(self) -> list[PropertyFilter]:
        """The properties whose values are known."""
        return [each for each in self.properties or () if each is not None and each.values]

    @property
    def value_count(self) -> int:
        """The number of values of all properties."""
        return sum(len(each.values) for each in self.filters)

    @property
    def cost(self) -> int:
        """The number of names that are looked up: for each type the query, and the values."""
        return max(1, len(self.types)) + self.value_count

    @property
    def types(self) -> tuple[str, ...]:
        """The types, each once."""
        types = [self.type] if isinstance(self.type, str) else self.type or []
        return tuple(dict.fromkeys(filter(None, types)))


class ExtensionProperty(msgspec.Struct, frozen=True):
    """A property whose values are wanted.

    Attributes:
        id: its identifier.
        settings: settings; `limit` is the largest number of values of an entity.
    """

    id: str
    settings: dict[str, Any] = {}

    def limit(self, most: int) -> int:
        """Return the largest number of values of an entity; 0 in the settings stands for *most*.

        Args:
            most: largest number that there may be.

        Raises:
            Problem: if the setting is no whole number.
        """
        value = self.settings.get("limit")
        text = str(value if value is not None else 0).removesuffix(".0")
        if not (text.isascii() and text.isdecimal() and len(text) < 18):
            raise Problem(422, f"the limit of {self.id[:40]!r} is no whole number", field="extend")
        return min(int(text) or most, most)


class ExtensionQuery(msgspec.Struct, frozen=True):
    """Entities, and the properties whose values are wanted.

    Attributes:
        ids: identifiers of the entities.
        properties: the properties.
    """

    ids: list[str]
    properties: list[ExtensionProperty]


def read_queries(text: str, limits: Limits) -> dict[str, ReconciliationQuery]:
    """Return the queries of a batch, by their identifiers.

    Args:
        text: the field `queries`.
        limits: limits of requests.

    Raises:
        Problem: if the text is no batch of queries, or larger than the limits.
    """
    batch = _decode(text, "queries", dict[str, msgspec.Raw])
    check_limit("names", len(batch), limits.names)
    queries = {name: _read_query(raw) for name, raw in batch.items()}
    check_limit("characters", sum(len(query.name) for query in queries.values()), limits.characters)
    check_limit("values", sum(each.value_count for each in queries.values()), MAX_VALUES)
    for name, query in queries.items():
        if len(query.types) > MAX_PROPERTIES or len(query.properties or ()) > MAX_PROPERTIES:
            problem = f"query {name[:40]!r}: it has more than {MAX_PROPERTIES} types or properties"
            raise Problem(422, problem, field="queries")
    return queries


def _read_query(raw: msgspec.Raw) -> ReconciliationQuery:
    """Return a query of a batch; the empty one for what is none."""
    try:
        query = msgspec.json.decode(raw, type=ReconciliationQuery)
    except (msgspec.MsgspecError, RecursionError):
        return ReconciliationQuery()
    limit = query.limit or 0
    return query if limit >= 0 and limit == limit // 1 else ReconciliationQuery()


def read_extension(text: str, limits: Limits) -> ExtensionQuery:
    """Return a data extension query; the errors are those of `read_queries`."""
    query = _decode(text, "extend", ExtensionQuery)
    check_limit("names", len(query.ids), limits.names)
    check_limit("properties", len(query.properties), MAX_PROPERTIES)
    check_limit("names", len(query.ids) * len(query.properties), MAX_CELLS)
    return query


def _decode(text: str, field: str, record: type[Record]) -> Record:
    try:
        return msgspec.json.decode(without_half_pairs(text.encode()), type=record)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Problem(
            422, f"{field}: {str(error)[:200]}", field=field,
            remedy="see the specification of the Reconciliation Service API 0.2",
        ) from None  # fmt: skip


THRESHOLD: Final = 0.5
"""Least score of a match."""

_LIMIT: Final = 5
"""Candidates of a query that names no limit."""
_LIST_SIZES: Final = 10, 50
"""Candidates that the reconciler is asked for: two numbers only, as it remembers answers by their length."""


class _ReconciliationCandidate(NamedTuple):
    """An entity that a query may mean.

    Attributes:
        entity: the entity.
        score: probability that the query means it, in [0, 1].
        agreement: share of the properties that agree; None if none were asked for.
    """

    entity: Entity
    score: float
    agreement: float | None = None


def answer_queries(
    service: Service, name: str, schema: KBSchema, queries: Mapping[str, ReconciliationQuery]
) -> dict[str, Any]:
    """Return the results of a batch, as the specification has them.

    Args:
        service: service.
        name: name of the knowledge base.
        schema: its schema.
        queries: queries by their identifiers.
    """
    kb = service.kb(name)
    scores = _scores(service, name, schema, queries)
    results: dict[str, Any] = {}
    for identifier, query in queries.items():
        pause()
        candidates = _candidates(kb, query, scores[identifier])
        shown = candidates[: min(int(query.limit or _LIMIT), service.limits.rows)]
        results[identifier] = {"result": [_record(query, each, rank) for rank, each in enumerate(shown)]}
    return results


def _scores(
    service: Service, name: str, schema: KBSchema, queries: Mapping[str, ReconciliationQuery]
) -> dict[str, dict[str, float]]:
    """Return the scores of entities by their keys, for each query."""
    scores: dict[str, dict[str, float]] = {identifier: {} for identifier in queries}
    groups: dict[tuple[str | None, int], list[str]] = {}
    for identifier, query in queries.items():
        if query.name:
            count = min(_list_size(query), service.limits.rows)
            for kind in query.types or (None,):
                if kind is None or (schema.may_have(kind) and "=" not in kind):
                    groups.setdefault((kind, count), []).append(identifier)
    _look_up(service, name, queries, groups, scores)
    unmatched: dict[tuple[str | None, int], list[str]] = {}
    for identifier, query in queries.items():
        if query.type_strict == "should" and query.types and not scores[identifier]:
            count = min(_list_size(query), service.limits.rows)
            unmatched.setdefault((None, count), []).append(identifier)
    _look_up(service, name, queries, unmatched, scores)
    return scores


def _list_size(query: ReconciliationQuery) -> int:
    short, long = _LIST_SIZES
    return short if (query.limit or _LIMIT) <= short and not query.filters else long


def _look_up(
    service: Service,
    name: str,
    queries: Mapping[str, ReconciliationQuery],
    groups: Mapping[tuple[str | None, int], Sequence[str]],
    scores: Mapping[str, dict[str, float]],
) -> None:
    for (kind, count), identifiers in groups.items():
        names = [queries[identifier].name for identifier in identifiers]
        try:
            matches = service.reconcile(names, name, kind=kind, k=count, threshold=THRESHOLD)
        except UnknownName:
            continue  # no entity has this type
        for identifier, match in zip(identifiers, matches, strict=True):
            best = scores[identifier]
            for candidate in match.candidates:
                best[candidate.key] = max(candidate.score, best.get(candidate.key, 0.0))


def _candidates(
    kb: KnowledgeBase, query: ReconciliationQuery, scores: Mapping[str, float]
) -> list[_ReconciliationCandidate]:
    """Return the candidates of a query, best first."""
    rows = [
        _ReconciliationCandidate(entity, score)
        for key, score in scores.items()
        if (entity := kb.get(key)) is not None and _has_types(entity, query)
    ]
    if not query.name:
        rows = _subjects(kb, query)
    if query.filters:
        rows = _weigh_properties(kb, query, rows)
    return sorted(rows, key=lambda row: (-row.score, row.entity.id))


def _has_types(entity: Entity, query: ReconciliationQuery) -> bool:
    if query.type_strict != "all":
        return True
    return set(query.types) <= set(types_of(entity))


# -- properties -------------------------------------------------------------


_ODDS: Final = 9.0
"""Odds of a property: how much more likely a candidate is that has the value."""


def _weigh_properties(
    kb: KnowledgeBase, query: ReconciliationQuery, rows: Sequence[_ReconciliationCandidate]
) -> list[_ReconciliationCandidate]:
    """Return the candidates with scores that take the properties into account."""
    remainder = max(0.0, 1 - sum(row.score for row in rows))
    tests = [_PropertyTest(kb, each) for each in query.filters]
    weights, agreements = [], []
    for row in rows:
        pause()
        answers = [test(row.entity) for test in tests]
        exponent = answers.count(True) - answers.count(False)
        weights.append(row.score * _ODDS**exponent)
        agreements.append(answers.count(True) / len(answers))
    total = sum(weights) + remainder
    return [
        _ReconciliationCandidate(row.entity, weight / total if total else 0.0, agreement)
        for row, weight, agreement in zip(rows, weights, agreements, strict=True)
    ]


_MAX_VALUES: Final = 1_000
"""Values of a property that are compared."""
_MAX_MEANINGS: Final = 10
"""Entities that a value may mean, whose subjects are candidates."""
_MAX_SUBJECTS: Final = 50
"""Candidates of a query that has properties and no name."""


class _PropertyTest:
    """Says whether entities have one of the values of a property."""

    def __init__(self, kb: KnowledgeBase, condition: PropertyFilter) -> None:
        self._kb, self._condition = kb, condition
        self._is_relation = condition.pid in kb.relations
        values = condition.values if self._is_relation else []
        self._expected = frozenset(number for value in values for number in _meanings(kb, value))

    def __call__(self, entity: Entity) -> bool | None:
        """Say whether an entity has one of the values; None if it has no value."""
        if self._is_relation:
            numbers = self._kb.neighbors(entity.id, self._condition.pid)
            if len(numbers):
                return not self._expected.isdisjoint(numbers.tolist())
        values = property_values(self._kb, entity, self._condition.pid, _MAX_VALUES)
        if not values:
            return None
        return any(_is_equal(value, expected) for value in values for expected in self._condition.values)


def _meanings(kb: KnowledgeBase, value: PropertyValue) -> list[int]:
    """Return the ids of the entities that a value may mean: by its key, else by its name."""
    key = value.id if isinstance(value, EntityValue) else str(value)
    entity = kb.get(key) if key else None
    numbers = [] if entity is None else [entity.id]
    if isinstance(value, EntityValue):
        return numbers
    return [*numbers, *kb.candidates(str(value)).ids.tolist()] if str(value).strip() else numbers


def _is_equal(value: Any, expected: PropertyValue) -> bool:
    if isinstance(expected, EntityValue):
        return any(_is_equal(value, each) for each in (expected.id, expected.name) if each)
    if isinstance(expected, bool) or isinstance(value, bool):
        return str(value).lower() == str(expected).lower()
    if isinstance(expected, str):
        return fold(str(value)) == fold(expected)
    try:
        return float(value) == float(expected)
    except (TypeError, ValueError, OverflowError):
        return False


def _subjects(kb: KnowledgeBase, query: ReconciliationQuery) -> list[_ReconciliationCandidate]:
    """Return entities by their relations alone, each as likely as the others."""
    numbers: dict[int, None] = {}  # a set that keeps the order
    for condition in query.filters:
        if condition.pid in kb.relations:
            for value in condition.values:
                for number in _meanings(kb, value)[:_MAX_MEANINGS]:
                    subjects = kb.neighbors(number, condition.pid, direction="in")[:_MAX_SUBJECTS]
                    numbers.update(dict.fromkeys(subjects.tolist()))
            break
    entities = [kb[number] for number in list(numbers)[:_MAX_SUBJECTS]]
    matches = [each for each in entities if not query.types or set(query.types) & set(types_of(each))]
    return [_ReconciliationCandidate(each, 1 / (len(matches) + 1)) for each in matches]


# -- records ----------------------------------------------------------------


_DESCRIPTION: Final = 300
"""Characters of a description."""


def _record(query: ReconciliationQuery, candidate: _ReconciliationCandidate, rank: int) -> dict[str, Any]:
    """Return a candidate as the specification has it."""
    entity = candidate.entity
    fields: dict[str, Any] = {
        "id": entity.key,
        "name": entity.label or entity.key,
        "score": candidate.score,
        "match": rank == 0 and candidate.score >= THRESHOLD,
        "type": type_records(types_of(entity)),
        "features": _features(query, candidate),
    }
    return fields | describe(entity)


def _features(query: ReconciliationQuery, candidate: _ReconciliationCandidate) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = []
    if query.name:
        similarity = _similarity(fold(query.name), fold(candidate.entity.label or candidate.entity.key))
        features.append({"id": "name_similarity", "value": similarity})
    if query.types:
        features.append(
            {"id": "type_match", "value": not {*query.types}.isdisjoint(types_of(candidate.entity))}
        )
    if candidate.agreement is not None:
        features.append({"id": "property_agreement", "value": candidate.agreement})
    return features


def _similarity(text: str, label: str) -> float:
    from rapidfuzz import fuzz  # here: it is needed by the first query only

    return float(fuzz.ratio(text, label)) / 100


def describe(entity: Entity) -> dict[str, str]:
    """Return the field `description` of an entity, abbreviated; none if it has no description."""
    text = entity.description
    if not text:
        return {}
    return {"description": truncate(text, _DESCRIPTION)}


def type_records(names: Sequence[str]) -> list[dict[str, str]]:
    """Return types, or properties, as the specification has them: an id and a name."""
    return [{"id": name, "name": name} for name in names]


def _value_record(value: Any) -> dict[str, Any]:
    """Return a property value as data extension has it.

    Args:
        value: entity, string, number, or anything JSON-like.
    """
    if isinstance(value, Entity):
        return {"id": value.key, "name": value.label or value.key} | describe(value)
    if isinstance(value, str):
        return {"str": value}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"int": value}
    if isinstance(value, float):
        return {"float": value}
    return {"str": msgspec.json.encode(value).decode()}


# -- data extension ---------------------------------------------------------


def _proposed_properties(kb: KnowledgeBase, schema: KBSchema, name: str, limit: int) -> dict[str, Any]:
    """Return the properties that entities of a type have.

    Args:
        kb: knowledge base.
        schema: its schema.
        name: type; empty: any.
        limit: largest number of properties.
    """
    properties = properties_of_type(kb, schema, name)[:limit]
    return {"properties": type_records(properties), "type": name, "limit": limit}


def extension(kb: KnowledgeBase, query: ExtensionQuery, most: int) -> dict[str, Any]:
    """Return the values of properties of entities; an unknown entity has none.

    Args:
        kb: knowledge base.
        query: entities and properties.
        most: largest number of values of a cell.
    """
    limits = {each.id: each.limit(most) for each in query.properties}
    return {
        "meta": type_records(list(limits)),
        "rows": {identifier: _cells(kb, identifier, limits) for identifier in dict.fromkeys(query.ids)},
    }


def _cells(kb: KnowledgeBase, identifier: str, limits: Mapping[str, int]) -> dict[str, Any]:
    pause()
    entity = kb.get(identifier)
    return {name: _cell(kb, entity, name, limit) for name, limit in limits.items()}


def _cell(kb: KnowledgeBase, entity: Entity | None, name: str, limit: int) -> Sequence[dict[str, Any]]:
    if entity is None:
        return []
    return [_value_record(value) for value in property_values(kb, entity, name, limit)]


# -- endpoints --------------------------------------------------------------


_MAX_CURSOR = 10_000


def router(service: Service) -> APIRouter:
    """Return the router of `/reconcile`."""
    routes = APIRouter(prefix="/reconcile", include_in_schema=False)
    endpoint = _ReconciliationEndpoint(service)
    for path in ("", "/{kb}"):
        routes.add_api_route(path, endpoint.answer, methods=["GET", "POST"], response_class=Response)
    for path, function in (
        ("/{kb}/suggest/{suggested}", endpoint.suggest),
        ("/{kb}/flyout/{suggested}", endpoint.flyout),
        ("/{kb}/preview", endpoint.preview),
        ("/{kb}/properties", endpoint.properties),
    ):
        routes.add_api_route(path, function, methods=["GET"], response_class=Response)
    return routes


class _ReconciliationEndpoint:
    """Answers the requests of reconciliation clients.

    Args:
        service: service.
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    async def answer(self, request: Request) -> Response:
        """Answer a batch of queries or a data extension; a request with neither gets the manifest."""
        fields, name = await read_fields(request), self._name(request)
        service = self.service
        if "queries" in fields:
            queries = read_queries(fields["queries"], service.limits)
            schema = await self._schema(name)
            cost = sum(each.cost for each in queries.values())
            return json_response(
                await service.call_weighed(cost, answer_queries, service, name, schema, queries)
            )
        if "extend" in fields:
            query = read_extension(fields["extend"], service.limits)
            cost = len(query.ids) * len(query.properties) // CELLS
            rows = await service.call_weighed(cost, extension, service.kb(name), query, service.limits.rows)
            return json_response(rows)
        if request.method == "POST":
            raise Problem(
                422, "the form has neither queries nor extend", field="queries",
                remedy="send a batch of queries as JSON in the field `queries`",
            )  # fmt: skip
        kb, has_token = service.kb(name), service.settings.token is not None
        address = f"{str(request.base_url).rstrip('/')}/reconcile/{quote(kb.name, safe='')}"
        schema = await self._schema(name)
        return json_response(manifest(kb, schema, address, service.limits, has_token))

    async def suggest(self, request: Request) -> Response:
        """Suggest entities, types or properties that begin with the field `prefix`."""
        fields, name = await read_fields(request), self._name(request)
        cursor = parse_integer("cursor", fields.get("cursor", ""), 0, least=0, most=_MAX_CURSOR)
        schema, suggested = await self._schema(name), _suggested(request)
        prefix = fields.get("prefix", "")
        service = self.service
        cost = service.search_cost(name) if suggested == "entity" else 1
        result = await service.call_weighed(
            cost, suggestions, service, name, schema, suggested, prefix, cursor
        )
        return json_response(result)

    async def flyout(self, request: Request) -> Response:
        """Describe a suggestion, which the field `id` names."""
        identifier = await _identifier(request)
        name, suggested = self._name(request), _suggested(request)
        schema, kb = await self._schema(name), self.service.kb(name)
        return json_response(await self.service.call(flyout, kb, schema, suggested, identifier))

    async def preview(self, request: Request) -> Response:
        """Show the entity of the field `id` as a page."""
        identifier = await _identifier(request)
        body = await self.service.call(preview, self.service.kb(self._name(request)), identifier)
        ancestors = " ".join(("'self'", *self.service.settings.allowed_origins))
        policy = f"default-src 'self'; base-uri 'none'; frame-ancestors {ancestors}"
        return Response(body, media_type="text/html", headers={"Content-Security-Policy": policy})

    async def properties(self, request: Request) -> Response:
        """Propose properties of the type of the field `type`."""
        fields, name = await read_fields(request), self._name(request)
        most = self.service.limits.rows
        limit = min(parse_integer("limit", fields.get("limit", ""), most, least=0, most=10**9), most)
        kb, schema = self.service.kb(name), await self._schema(name)
        result = await self.service.call(
            _proposed_properties, kb, schema, fields.get("type", ""), min(limit, most)
        )
        return json_response(result)

    def _name(self, request: Request) -> str:
        """Return the name of the knowledge base that a request is about."""
        return self.service.kb(request.path_params.get("kb")).name

    async def _schema(self, name: str) -> KBSchema:
        return await self.service.schema(self.service.kb(name))


async def _identifier(request: Request) -> str:
    identifier = (await read_fields(request)).get("id", "")
    if not identifier:
        raise Problem(422, "id is missing", field="id", remedy="send the identifier as the field `id`")
    return identifier


def _suggested(request: Request) -> Suggested:
    name: str = request.path_params["suggested"]
    for each in SUGGESTED:
        if each == name:
            return each
    raise Problem(404, f"nothing is suggested at {name[:40]!r}; there are entity, type and property")
