"""Queries of the Reconciliation Service API 0.2, as clients send them: decoded, and checked against limits.

    queries   {ID: {"query": …, "type": …, "type_strict": …, "limit": …, "properties": [{"pid": …, "v": …}]}}
    extend    {"ids": […], "properties": [{"id": …, "settings": {…}}]}

W3C Entity Reconciliation Community Group, "Reconciliation Service API v0.2". Fields that it does not have are
ignored.
"""

from typing import Any, Final, Literal, TypeVar

import msgspec

from kgkit.serving.problems import Problem
from kgkit.serving.service import check_limit
from kgkit.serving.settings import Limits

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
    """What an entity is searched by.

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
