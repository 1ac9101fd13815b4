r"""GraphML: entities as nodes, triples as edges, the rest as data of the graph.

    <data key="record">{"kgkit": …}</data>         what the whole is, first of all
    <node id="Apple"><data key="label">apple</data> …</node>
    <edge source="Apple" target="Fruit"><data key="relation">in_category</data></edge>
    <data key="record">{"alias": "apple", …}</data>    a line of the `jsonl` format each

Gephi and networkx open it as a directed graph of entities. `types` and
`attributes` are JSON. What XML cannot hold (control characters) is written
`\u0001`, and a backslash before what would read so is `\u005c`.

Of a stranger's file, the data of nodes called `label` or `name` is the label,
`description`, `kind`, `pos` and `types` are themselves, everything else is an attribute;
an edge's relation is its data called `relation`, `label`, `type`, `predicate` or
`interaction`, else `linked_to`.
"""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import msgspec

from kgkit.building.attributes import (
    alias_count,
    check_attributes,
    check_occurrences,
    decoded_json,
    decoded_object,
)
from kgkit.building.contract import Builder, Files, KBRecords
from kgkit.errors import SourceError
from kgkit.exchange.contract import LineFormat, entity_of, files_of, head_of
from kgkit.exchange.json_lines import closing_lines
from kgkit.exchange.xml_text import escape_text, unescape_text
from kgkit.files import checked_file, opened
from kgkit.types import Alias, Entity, Form, Occurrences, Record, Redirect, Triple

__all__ = ["GraphML", "GraphMLBuilder"]

_SPACE: Final = "http://graphml.graphdrawing.org/xmlns"
_FIELDS: Final = ("label", "description", "kind", "pos", "types", "attributes")
_RELATIONS: Final = ("relation", "label", "type", "predicate", "interaction")
_NO_RELATION: Final = "linked_to"
_CARRIAGE: Final = {"\r": "&#13;"}
_LEAST_INTEGER, _GREATEST_INTEGER, _MAX_DIGITS = -(1 << 63), (1 << 64) - 1, 4000
_ELEMENTS: Final = ("key", "node", "edge")
_DECLARED: Final = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)")
_ENCODING_ERRORS: Final = (expat.errors.XML_ERROR_UNKNOWN_ENCODING, expat.errors.XML_ERROR_INCORRECT_ENCODING)


class _Malformed(Exception):
    """What is wrong with an element, and the text of it that is."""

    def __init__(self, message: str, text: str | None = None) -> None:
        super().__init__(message)
        self.text = text


class GraphML(LineFormat):
    """One XML file for programs that draw and measure graphs."""

    name = "graphml"
    title = "GraphML"
    suffixes = (".graphml",)
    builder = "graphml"
    has_occurrences = True

    def lines(self, records: KBRecords) -> Iterator[str]:
        """Yield the file: a node for each entity with its fields as data, an edge for each triple."""
        yield '<?xml version="1.0" encoding="UTF-8"?>'
        yield f'<graphml xmlns="{_SPACE}">'
        yield '<key id="record" for="graph" attr.name="record" attr.type="string"/>'
        for name in _FIELDS:
            yield f'<key id="{name}" for="node" attr.name="{name}" attr.type="string"/>'
        yield '<key id="relation" for="edge" attr.name="relation" attr.type="string"/>'
        yield f'<graph id={quoteattr(records.name)} edgedefault="directed">'
        yield _data("record", escape_text(_json({"kgkit": head_of(records)})))
        for entity in records.entities():
            yield f"<node id={_attribute(entity.key)}>{''.join(_node(entity))}</node>"
        for triple in records.triples():
            yield (
                f"<edge source={_attribute(triple.subject)} target={_attribute(triple.object)}>"
                f"{_data('relation', escape_text(triple.relation))}</edge>"
            )
        for line in closing_lines(records):
            yield _data("record", escape_text(line))
        yield "</graph>"
        yield "</graphml>"


def _node(entity: Entity) -> Iterator[str]:
    for name in _FIELDS:
        value = getattr(entity, name)
        if value:
            yield _data(name, escape_text(value if isinstance(value, str) else _json(value)))


def _data(key: str, text: str) -> str:
    return f'<data key="{key}">{escape(text, _CARRIAGE)}</data>'


def _attribute(text: str) -> str:
    # A line end or a tab in an attribute would be read as a space.
    return quoteattr(escape_text(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class GraphMLBuilder(Builder):
    """Nodes as entities, edges as triples."""

    name = "graphml"
    smoothing = 1.0

    def look(self, source: Path) -> Files:
        """Return the file, with the properties that an export of kgkit's states in its head."""
        return files_of(source, _head(checked_file(source)))

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of each node and edge in the order of the file, which has one part."""
        ours = _head(source) is not None
        names: dict[str, tuple[str, str]] = {}
        for number, element in enumerate(_elements(source)):
            try:
                records = [*_records(element, names, ours)]
            except (_Malformed, ValueError) as error:
                raise _at_line(error, source, number) from None
            yield from records


def _records(element: ET.Element, names: dict[str, tuple[str, str]], ours: bool) -> Iterator[Record]:
    """Yield what an element says; of a key, remember the name and the type in *names*."""
    match _tag(element):
        case "key":
            name = element.get("attr.name", element.get("id", ""))
            names[element.get("id", "")] = name, element.get("attr.type", "string")
        case "node":
            yield from _entity(element, _typed_fields(element, names), ours)
        case "edge":
            yield _triple(element, _typed_fields(element, names), ours)
        case "data" if ours and element.get("key") == "record":
            yield from _record(_text(element, ours))


def _elements(source: Path) -> Iterator[ET.Element]:
    """Yield the keys, nodes, edges and data of graphs, each when it is complete; none is kept."""
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
                tag, within = _tag(element), _tag(depth[-1])
                if tag in _ELEMENTS or (tag == "data" and within == "graph"):
                    yield element
                if within in ("graph", "graphml"):
                    depth[-1].remove(element)
    except ET.ParseError as error:
        line = error.position[0]
        message = re.sub(r": line \d+, column \d+$", "", str(error))
        if message in _ENCODING_ERRORS:
            raise _undecodable(source) from None
        raise SourceError(f"not well-formed XML: {message}", path=source, line=line) from None
    except (LookupError, ValueError):  # of Python's codecs, which expat asks
        raise _undecodable(source) from None


def _undecodable(source: Path) -> SourceError:
    with opened(source) as file:
        declared = _DECLARED.search(file.read(1000).replace(b"\0", b""))
    encoding = declared[1].decode(errors="replace") if declared else ""
    return SourceError(
        f"the encoding {encoding!r} of its XML declaration cannot be read, or is not that of the file: "
        "save it as UTF-8",
        path=source, line=1,
    )  # fmt: skip


def _at_line(error: Exception, source: Path, number: int) -> SourceError:
    """Return the error of the element of this *number*, from 0, among those of `_elements`, with its line."""
    text = error.text if isinstance(error, _Malformed) else None
    return SourceError(str(error), path=source, line=_line(source, number), text=text)


def _line(source: Path, number: int) -> int | None:
    """Return the line in which an element begins; the parser that makes elements does not say."""
    parser = expat.ParserCreate(namespace_separator="}")
    starts: list[tuple[str, int]] = []
    line_break, line = number, None

    def start(name: str, _: Mapping[str, str]) -> None:
        starts.append((name.rpartition("}")[2], parser.CurrentLineNumber))

    def end(_: str) -> None:
        """Note the line of an element that ends, if it is the one sought."""
        nonlocal line_break, line
        tag, begin = starts.pop()
        if tag in _ELEMENTS or (tag == "data" and starts and starts[-1][0] == "graph"):
            if not line_break:
                line = begin
            line_break -= 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    with opened(source) as file:
        while line is None and (content := file.read(1 << 16)):
            parser.Parse(content)
    return line


def _head(source: Path) -> dict[str, Any] | None:
    """Return what kgkit wrote of the whole before the first node; None in a stranger's file."""
    for number, element in enumerate(_elements(source)):
        match _tag(element):
            case "data" if element.get("key") == "record":
                try:
                    head = _json_object(unescape_text(element.text or "")).get("kgkit")
                except (_Malformed, ValueError) as error:
                    raise _at_line(error, source, number) from None
                return head if isinstance(head, dict) else None
            case "node" | "edge":
                return None
    return None


def _typed_fields(
    element: ET.Element, names: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield `(name, type, text)` of the data of a node or an edge."""
    for data in element:
        if _tag(data) == "data":
            key = data.get("key", "")
            if key not in names:
                raise _Malformed(f"data of a key that is not declared: {key!r}", data.text)
            yield *names[key], data.text or ""


def _entity(element: ET.Element, fields: Iterator[tuple[str, str, str]], ours: bool) -> Iterator[Record]:
    if (key := element.get("id")) is None:
        raise _Malformed("a node without an id")
    plain: dict[str, str] = {}
    types: tuple[str, ...] = ()
    attributes: dict[str, Any] = {}
    for name, kind, text in fields:
        if ours:
            text = unescape_text(text)
        if name == "types" and text.startswith("["):
            types = _types(text)
        elif name == "attributes" and text.startswith("{"):
            attributes |= _json_object(text)
        elif name in ("label", "name", "description", "kind", "pos"):
            plain["label" if name == "name" else name] = text
        else:
            attributes[name] = _value(name, text, kind)
    key = unescape_text(key) if ours else key
    label = plain.get("label", "")
    check_attributes(attributes)
    if not ours:
        label = label or key
        yield Alias(label, key)
    yield entity_of(key, label, plain, types, attributes)


def _triple(element: ET.Element, fields: Iterator[tuple[str, str, str]], ours: bool) -> Triple:
    ends = element.get("source"), element.get("target")
    if ends[0] is None or ends[1] is None:
        raise _Malformed("an edge without a source or a target")
    data = {name: text for name, _, text in fields}
    relation = next((data[name] for name in _RELATIONS if data.get(name)), "" if ours else _NO_RELATION)
    if ours:
        return Triple(unescape_text(ends[0]), unescape_text(relation), unescape_text(ends[1]))
    return Triple(ends[0], relation, ends[1])


def _record(text: str) -> Iterator[Record]:
    """Yield what a line of the `jsonl` format says that stands as data of the graph."""
    try:
        record = decoded_json(text, dict[str, Any])
    except ValueError as error:
        raise _Malformed(f"no JSON object: {error}", text) from None
    sense = record.get("sense")
    match record:
        case {"alias": str(surface), "key": str(key)} if sense is None or isinstance(sense, str):
            try:
                yield Alias(surface, key, alias_count(record.get("count", 0)), sense)
            except ValueError as error:
                raise _Malformed(str(error), text) from None
        case {"redirect": str(name), "to": str(target)}:
            yield Redirect(name, target)
        case {"form": str(surface), "lemma": str(lemma), "pos": str(pos)}:
            yield Form(surface, lemma, pos)
        case {
            "surface": str(surface),
            "occurrences": int() | float() as count,
            "linked": int() | float() as linked,
        }:
            try:
                check_occurrences(count, linked)
                yield Occurrences(surface, float(count), float(linked))
            except (ValueError, OverflowError) as error:
                raise _Malformed(str(error), text) from None
        case {"kgkit": _}:
            pass
        case _:
            raise _Malformed("a record that is no alias, occurrences, redirect or form", text)


def _text(element: ET.Element, ours: bool) -> str:
    return unescape_text(element.text or "") if ours else element.text or ""


def _value(name: str, text: str, kind: str) -> Any:
    """Return the value that data stand for, by the type of their key; text that is no number stays text."""
    try:
        if kind in ("int", "long"):
            number: int | float = int(text) if len(text) <= _MAX_DIGITS else math.inf
            problem = "" if _LEAST_INTEGER <= number <= _GREATEST_INTEGER else "does not fit into 64 bits"
        elif kind in ("float", "double"):
            number = float(text)
            problem = "" if math.isfinite(number) else "is no finite number"
        else:
            return text.lower() in ("true", "1") if kind == "boolean" else text
    except ValueError:
        return text
    if problem:
        raise _Malformed(
            f'the {kind} {name!r} {problem}: correct it, or declare its key with attr.type="string"', text
        )
    return number


def _types(text: str) -> tuple[str, ...]:
    try:
        return tuple(map(str, decoded_json(text, list[str | int | float | bool | None])))
    except ValueError as error:
        raise _Malformed(f"no JSON list of types: {error}", text) from None


def _json_object(text: str) -> dict[str, Any]:
    try:
        return decoded_object(text)
    except ValueError as error:
        raise _Malformed(f"no JSON object: {error}", text) from None


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
