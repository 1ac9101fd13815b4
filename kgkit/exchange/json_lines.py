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

__all__ = ["JSONLines"]

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
        for line in _lines(records):
            yield _encode(line).decode()


def _lines(records: KBRecords) -> Iterator[dict[str, Any]]:
    yield {"kgkit": head_of(records) | {"label_aliases": False}}
    yield from map(_entity, records.entities())
    for triple in records.triples():
        yield {"subject": triple.subject, "relation": triple.relation, "object": triple.object}
    yield from map(_alias, records.aliases())
    for redirect in records.redirects():
        yield {"redirect": redirect.source, "to": redirect.target}
    for surface in records.occurrences():
        yield {"surface": surface.surface, "occurrences": surface.count, "linked": surface.linked}
    for form in records.forms():
        yield {"form": form.surface, "lemma": form.lemma, "pos": form.pos}


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
