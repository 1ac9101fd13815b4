"""JSON lines, as the builder `jsonl` reads them: a line for each record, nothing lost.

{"kgkit": {"name": "Toy", …, "label_aliases": false}}
{"key": "Apple", "label": "apple", "description": "A fruit.", …}
{"alias": "apple", "key": "Apple", "count": 60}
{"surface": "apple", "occurrences": 300, "linked": 75}
{"subject": "Apple", "relation": "in_category", "object": "Fruit"}
{"redirect": "Apples", "to": "Apple"}
{"form": "geese", "lemma": "goose", "pos": "n"}
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kgkit.building.contract import KBRecords
from kgkit.exchange.contract import LineFormat, head_of
from kgkit.types import Alias, Entity

__all__ = ["JSONLines", "closing_lines"]

_encode = msgspec.json.Encoder().encode


class JSONLines(LineFormat):
    """One object a line, each says itself what it is."""

    name = "jsonl"
    title = "JSON lines"
    suffixes = (".jsonl",)
    builder = "jsonl"
    has_occurrences = True

    def lines(self, records: KBRecords) -> Iterator[str]:
        """Yield a line about the KB, then the lines that the builder `jsonl` reads."""
        yield _encode({"kgkit": head_of(records) | {"label_aliases": False}}).decode()
        for entity in records.entities():
            yield _encode(_entity(entity)).decode()
        for triple in records.triples():
            yield _encode(
                {"subject": triple.subject, "relation": triple.relation, "object": triple.object}
            ).decode()
        yield from closing_lines(records)


def closing_lines(records: KBRecords) -> Iterator[str]:
    """Yield the aliases, redirects, occurrences and forms of *records*: few other formats have a place."""
    for alias in records.aliases():
        yield _encode(_alias(alias)).decode()
    for redirect in records.redirects():
        yield _encode({"redirect": redirect.source, "to": redirect.target}).decode()
    for occurrences in records.occurrences():
        yield _encode(
            {"surface": occurrences.surface, "occurrences": occurrences.count, "linked": occurrences.linked}
        ).decode()
    for form in records.forms():
        yield _encode({"form": form.surface, "lemma": form.lemma, "pos": form.pos}).decode()


def _entity(entity: Entity) -> dict[str, Any]:
    line: dict[str, Any] = {"key": entity.key, "label": entity.label}
    for name in ("description", "kind", "pos", "types", "attributes"):
        if value := getattr(entity, name):
            line[name] = value
    return line


def _alias(alias: Alias) -> dict[str, Any]:
    line: dict[str, Any] = {"alias": alias.surface, "key": alias.key}
    if alias.count:
        line["count"] = alias.count
    if alias.sense is not None:
        line["sense"] = alias.sense
    return line
