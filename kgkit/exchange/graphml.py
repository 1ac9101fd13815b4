r"""GraphML: entities as nodes, triples as edges, for programs that draw and measure graphs.

    <node id="Apple"><data key="label">apple</data> …</node>
    <edge source="Apple" target="Fruit"><data key="relation">in_category</data></edge>

`types` and `attributes` are JSON. What XML cannot hold (control characters) is written `\u0001`.

When a file is read, the data of nodes called `label` or `name` is the label, `description`, `kind`, `pos`,
`types` and `attributes` are themselves, everything else is an attribute; an edge's relation is its data
called `relation`, `label`, `type`, `predicate` or `interaction`, else `linked_to`.
"""

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import msgspec

from kgkit.building.attributes import check_attributes, decoded_json, decoded_object
from kgkit.building.contract import Builder, Files, KBRecords
from kgkit.errors import SourceError
from kgkit.exchange.contract import LineFormat, entity_of, files_of
from kgkit.exchange.xml_text import escape_text
from kgkit.files import checked_file, opened
from kgkit.types import Alias, Entity, Record, Triple

__all__ = ["GraphML", "GraphMLBuilder"]

_SPACE: Final = "http://graphml.graphdrawing.org/xmlns"
_FIELDS: Final = ("label", "description", "kind", "pos", "types", "attributes")
_RELATIONS: Final = ("relation", "label", "type", "predicate", "interaction")
_NO_RELATION: Final = "linked_to"
_CARRIAGE: Final = {"\r": "&#13;"}


class GraphML(LineFormat):
    """One XML file for programs that draw and measure graphs."""

    name = "graphml"
    title = "GraphML"
    suffixes = (".graphml",)
    builder = "graphml"
    losses = (
        "aliases with their counts and senses: the label of an entity, or else its key, is its only alias",
        "redirects and irregular forms",
        "the names of inverse relations: the stored direction comes back",
        "control characters, which are written `\\u0001`",
        "name, version, licence, address and language of the source, its smoothing and generator",
    )

    def lines(self, records: KBRecords) -> Iterator[str]:
        """Yield the file: a node for each entity with its fields as data, an edge for each triple."""
        yield '<?xml version="1.0" encoding="UTF-8"?>'
        yield f'<graphml xmlns="{_SPACE}">'
        for name in _FIELDS:
            yield f'<key id="{name}" for="node" attr.name="{name}" attr.type="string"/>'
        yield '<key id="relation" for="edge" attr.name="relation" attr.type="string"/>'
        yield f'<graph id={quoteattr(records.name)} edgedefault="directed">'
        for entity in records.entities():
            yield f"<node id={_attribute(entity.key)}>{''.join(_node(entity))}</node>"
        for triple in records.triples():
            yield (
                f"<edge source={_attribute(triple.subject)} target={_attribute(triple.object)}>"
                f"{_data('relation', triple.relation)}</edge>"
            )
        yield "</graph>"
        yield "</graphml>"


def _node(entity: Entity) -> Iterator[str]:
    for name in _FIELDS:
        value = getattr(entity, name)
        if value:
            yield _data(name, value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _data(key: str, text: str) -> str:
    return f'<data key="{key}">{escape(escape_text(text), _CARRIAGE)}</data>'


def _attribute(text: str) -> str:
    # A line end or a tab in an attribute would be read as a space.
    return quoteattr(escape_text(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


class GraphMLBuilder(Builder):
    """Nodes as entities, edges as triples."""

    name = "graphml"
    smoothing = 1.0

    def look(self, source: Path) -> Files:
        """Return the file; it states no properties of a KB."""
        return files_of(checked_file(source), None)

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of each node and edge in the order of the file, which has one part."""
        names: dict[str, tuple[str, str]] = {}
        for element in _elements(source):
            try:
                records = [*_records(element, names)]
            except ValueError as error:
                text = " ".join([_tag(element), *(f"{name}={value!r}" for name, value in element.items())])
                raise SourceError(str(error), path=source, text=f"<{text}>") from None
            yield from records


def _records(element: ET.Element, names: dict[str, tuple[str, str]]) -> Iterator[Record]:
    """Yield what an element says; of a key, remember the name and the type in *names*."""
    match _tag(element):
        case "key":
            name = element.get("attr.name", element.get("id", ""))
            names[element.get("id", "")] = name, element.get("attr.type", "string")
        case "node":
            yield from _entity(element, names)
        case "edge":
            yield _triple(element, names)


def _elements(source: Path) -> Iterator[ET.Element]:
    """Yield the keys, nodes and edges of graphs, each when it is complete; none is kept."""
    depth: list[ET.Element] = []
    try:
        with opened(source) as file:
            for event, element in ET.iterparse(file, events=("start", "end")):
                if event == "start":
                    if not depth and _tag(element) != "graphml":
                        raise SourceError(f"no GraphML: its root is <{_tag(element)}>", path=source, line=1)
                    depth.append(element)
                    continue
                depth.pop()
                if not depth:
                    return
                if _tag(element) in ("key", "node", "edge"):
                    yield element
                if _tag(depth[-1]) in ("graph", "graphml"):
                    depth[-1].remove(element)
    except ET.ParseError as error:
        raise SourceError(f"not well-formed XML: {error}", path=source, line=error.position[0]) from None
    except (LookupError, ValueError) as error:  # of Python's codecs, which expat asks
        raise SourceError(
            f"its encoding cannot be read ({error}): save it as UTF-8", path=source, line=1
        ) from None


def _typed_fields(
    element: ET.Element, names: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield `(name, type, text)` of the data of a node or an edge."""
    for data in element:
        if _tag(data) == "data":
            key = data.get("key", "")
            if key not in names:
                raise ValueError(f"data of a key that is not declared: {key!r}")
            yield *names[key], data.text or ""


def _entity(element: ET.Element, names: Mapping[str, tuple[str, str]]) -> Iterator[Record]:
    if (key := element.get("id")) is None:
        raise ValueError("a node without an id")
    plain: dict[str, str] = {}
    types: tuple[str, ...] = ()
    attributes: dict[str, Any] = {}
    for name, kind, text in _typed_fields(element, names):
        if name == "types" and text.startswith("["):
            types = tuple(map(str, decoded_json(text, list[str | int | float | bool | None])))
        elif name == "attributes" and text.startswith("{"):
            attributes |= decoded_object(text)
        elif name in ("label", "name", "description", "kind", "pos"):
            plain["label" if name == "name" else name] = text
        else:
            attributes[name] = _value(text, kind)
    check_attributes(attributes)
    label = plain.get("label") or key
    yield Alias(label, key)
    yield entity_of(key, label, plain, types, attributes)


def _triple(element: ET.Element, names: Mapping[str, tuple[str, str]]) -> Triple:
    subject, other = element.get("source"), element.get("target")
    if subject is None or other is None:
        raise ValueError("an edge without a source or a target")
    data = {name: text for name, _, text in _typed_fields(element, names)}
    return Triple(subject, next((data[name] for name in _RELATIONS if data.get(name)), _NO_RELATION), other)


def _value(text: str, kind: str) -> Any:
    """Return the value that data stand for, by the type of their key; text that is no number stays text."""
    if kind == "boolean":
        return text.lower() in ("true", "1")
    try:
        if kind in ("int", "long"):
            return int(text)
        if kind in ("float", "double") and math.isfinite(number := float(text)):
            return number
    except ValueError:
        pass
    return text


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
