"""Queries of the Reconciliation Service API 0.2, and their answers, over `kgkit.reconcile`.

    queries   {ID: {"query": …, "type": …, "type_strict": …, "limit": …, "properties": [{"pid": …, "v": …}]}}
    extend    {"ids": […], "properties": [{"id": …, "settings": {…}}]}

Fields that the specification does not have are ignored (W3C Entity Reconciliation Community Group).

Candidates and scores are those of a `Reconciler`. A query that is the key of an entity, but none of its
names, means that entity. Properties are evidence for or against each candidate, with odds of nine to one:

    weight(entity) = score(entity) · 9^agreeing · 9^-contradicting      without a value, neither
    score'(entity) = weight(entity) / (Σ weights + 1 - Σ scores)
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from kgkit.errors import UnknownName
from kgkit.kb import KnowledgeBase
from kgkit.pauses import pause
from kgkit.serving.kb_schema import KBSchema, property_values, types_of
from kgkit.serving.problems import Problem
from kgkit.serving.service import Service, check_limit
from kgkit.serving.settings import Limits
from kgkit.text import fold, truncate
from kgkit.types import Entity

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
        v: value, or several of which it has one.
    """

    pid: str
    v: str | bool | int | float | EntityValue | list[str | bool | int | float | EntityValue]

    @property
    def values(self) -> list[PropertyValue]:
        """The values, always as a list."""
        return self.v if isinstance(self.v, list) else [self.v]


class ReconciliationQuery(msgspec.Struct, frozen=True):
    """Query for an entity.

    Attributes:
        query: name, or identifier.
        type: type, or several.
        limit: largest number of candidates; None: the service's own.
        properties: properties that it should have.
        type_strict: `any`: candidates have one of the types; `all`: all of them; `should`: types are ignored
            if no candidate has one.
    """

    query: str | None = None
    type: str | list[str] | None = None
    limit: int | float | None = None
    properties: list[PropertyFilter] = []
    type_strict: Literal["any", "all", "should"] | None = None

    @property
    def value_count(self) -> int:
        """The number of values of all properties."""
        return sum(len(each.values) for each in self.properties)

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
    queries = _decode(text, "queries", dict[str, ReconciliationQuery])
    check_limit("names", len(queries), limits.names)
    check_limit("characters", sum(len(query.query or "") for query in queries.values()), limits.characters)
    check_limit("values", sum(each.value_count for each in queries.values()), MAX_VALUES)
    for name, query in queries.items():
        problem = _query_problem(query)
        if problem:
            raise Problem(422, f"query {name[:40]!r}: {problem}", field="queries")
    return queries


def read_extension(text: str, limits: Limits) -> ExtensionQuery:
    """Return a data extension query; the errors are those of `read_queries`."""
    query = _decode(text, "extend", ExtensionQuery)
    check_limit("names", len(query.ids), limits.names)
    check_limit("properties", len(query.properties), MAX_PROPERTIES)
    check_limit("names", len(query.ids) * len(query.properties), MAX_CELLS)
    return query


def _decode(text: str, field: str, record: type[Record]) -> Record:
    try:
        return msgspec.json.decode(text, type=record)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Problem(
            422, f"{field}: {str(error)[:200]}", field=field,
            remedy="see the specification of the Reconciliation Service API 0.2",
        ) from None  # fmt: skip


def _query_problem(query: ReconciliationQuery) -> str:
    if query.query is None and not query.properties:
        return "it has neither query nor properties"
    if query.limit is not None and not (query.limit >= 1 and query.limit == query.limit // 1):
        return f"limit is {query.limit}; it is a whole number from 1"
    if len(query.types) > MAX_PROPERTIES or len(query.properties) > MAX_PROPERTIES:
        return f"it has more than {MAX_PROPERTIES} types or properties"
    return ""


THRESHOLD: Final = 0.5
"""Least score of a match."""

_LIMIT: Final = 5
"""Candidates of a query that names no limit."""
_LIST_SIZES: Final = 10, 50
"""Candidates that the reconciler is asked for: two numbers only, as it remembers answers by their length."""


class ReconciliationCandidate(NamedTuple):
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
        if (query.query or "").strip():
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
    return short if (query.limit or _LIMIT) <= short and not query.properties else long


def _look_up(
    service: Service,
    name: str,
    queries: Mapping[str, ReconciliationQuery],
    groups: Mapping[tuple[str | None, int], Sequence[str]],
    scores: Mapping[str, dict[str, float]],
) -> None:
    for (kind, count), identifiers in groups.items():
        names = [(queries[identifier].query or "").strip() for identifier in identifiers]
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
) -> list[ReconciliationCandidate]:
    """Return the candidates of a query, best first."""
    rows = [
        ReconciliationCandidate(entity, score)
        for key, score in scores.items()
        if (entity := kb.get(key)) is not None and _has_types(entity, query)
    ]
    text = (query.query or "").strip()
    entity = kb.get(text) if text else None
    if entity is not None and _has_types(entity, query) and not _is_name(kb, entity, text):
        rows = [ReconciliationCandidate(entity, 1.0)]
    elif not text:
        rows = _subjects(kb, query)
    if query.properties:
        rows = _weigh_properties(kb, query, rows)
    return sorted(rows, key=lambda row: (-row.score, row.entity.id))


def _is_name(kb: KnowledgeBase, entity: Entity, text: str) -> bool:
    """Say whether a text is a surface of an entity, or its label."""
    return fold(entity.label) == fold(text) or entity.id in kb.candidates(text).ids.tolist()


def _has_types(entity: Entity, query: ReconciliationQuery) -> bool:
    if query.type_strict != "all":
        return True
    return set(query.types) <= set(types_of(entity))


# -- properties -------------------------------------------------------------


_ODDS: Final = 9.0
"""Odds of a property: how much more likely a candidate is that has the value."""


def _weigh_properties(
    kb: KnowledgeBase, query: ReconciliationQuery, rows: Sequence[ReconciliationCandidate]
) -> list[ReconciliationCandidate]:
    """Return the candidates with scores that take the properties into account."""
    remainder = max(0.0, 1 - sum(row.score for row in rows))
    tests = [_PropertyTest(kb, each) for each in query.properties]
    weights, agreements = [], []
    for row in rows:
        pause()
        answers = [test(row.entity) for test in tests]
        exponent = answers.count(True) - answers.count(False)
        weights.append(row.score * _ODDS**exponent)
        agreements.append(answers.count(True) / len(answers))
    total = sum(weights) + remainder
    return [
        ReconciliationCandidate(row.entity, weight / total if total else 0.0, agreement)
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


def _subjects(kb: KnowledgeBase, query: ReconciliationQuery) -> list[ReconciliationCandidate]:
    """Return entities by their relations alone, each as likely as the others."""
    numbers: dict[int, None] = {}  # a set that keeps the order
    for condition in query.properties:
        if condition.pid in kb.relations:
            for value in condition.values:
                for number in _meanings(kb, value)[:_MAX_MEANINGS]:
                    subjects = kb.neighbors(number, condition.pid, direction="in")[:_MAX_SUBJECTS]
                    numbers.update(dict.fromkeys(subjects.tolist()))
            break
    entities = [kb[number] for number in list(numbers)[:_MAX_SUBJECTS]]
    matches = [each for each in entities if not query.types or set(query.types) & set(types_of(each))]
    return [ReconciliationCandidate(each, 1 / (len(matches) + 1)) for each in matches]


# -- records ----------------------------------------------------------------


_DESCRIPTION: Final = 300
"""Characters of a description."""


def _record(query: ReconciliationQuery, candidate: ReconciliationCandidate, rank: int) -> dict[str, Any]:
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


def _features(query: ReconciliationQuery, candidate: ReconciliationCandidate) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = []
    if query.query:
        similarity = _similarity(fold(query.query), fold(candidate.entity.label or candidate.entity.key))
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


def value_record(value: Any) -> dict[str, Any]:
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
