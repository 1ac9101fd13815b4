"""Tables of nodes and relationships: Neo4j's, written and read, and KGX's, read.

    nodes.csv          :ID(Entity),:LABEL,label,description,kind,pos,types:string[],attributes
    relationships.csv  :START_ID(Entity),:TYPE,:END_ID(Entity)
    surfaces.csv       text:ID(Surface),:LABEL
    means.csv          :START_ID(Surface),:TYPE,:END_ID(Entity),count:double,sense
    redirects.csv      redirect,to
    forms.csv          form,lemma,pos
    kb.json            what the whole is

The first four are what `neo4j-admin database import` takes; a surface is a
node that MEANS entities. A `;` within a type is written `%3B`, and `%` as `%25`.

A folder that has `nodes` and `edges` (or `*_nodes`, `*_edges`) as `.tsv` or
`.csv` is read as KGX has it: `id`, `category`, `name`, `description`,
`synonym`, then `subject`, `predicate`, `object`; values are apart by `|`.
Other columns of nodes are attributes, other columns of edges are left out.
Neo4j tables of others need no more than the columns that begin with `:`; the
labels of a node are its types, the first one its kind. A type in a heading
says what the values are: `age:int`, `height:double`, `alive:boolean`,
`tags:string[]`, whose values are apart by `;`. Dates, times and points are
texts. Columns of further names, as `alias:string[]`, are surfaces.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from kgkit.building.attributes import alias_count, decoded_object
from kgkit.building.contract import Builder, Files, KBRecords
from kgkit.errors import NotThere, SourceError, abbreviate
from kgkit.exchange.contract import Format, chunks, entity_of, files_of, head_of
from kgkit.files import COMPRESSIONS, read_content
from kgkit.tables import csv_line, csv_or_bad_rows
from kgkit.types import Alias, Entity, Form, Record, Redirect, Triple

__all__ = ["PropertyGraph", "PropertyGraphBuilder"]

_KB: Final = "kb.json"
_NODES: Final = (
    ":ID(Entity)",
    ":LABEL",
    "label",
    "description",
    "kind",
    "pos",
    "types:string[]",
    "attributes",
)
_RELATIONSHIPS: Final = (":START_ID(Entity)", ":TYPE", ":END_ID(Entity)")
_SURFACES: Final = ("text:ID(Surface)", ":LABEL")
_MEANS: Final = (":START_ID(Surface)", ":TYPE", ":END_ID(Entity)", "count:double", "sense")
_REDIRECTS: Final = ("redirect", "to")
_FORMS: Final = ("form", "lemma", "pos")
_TYPED: Final = re.compile(
    r"(?P<own>.*):(?:(?P<role>ID|LABEL|START_ID|TYPE|END_ID|IGNORE)(?:\([^()]*\))?"
    r"|(?P<type>(?i:int|long|float|double|boolean|byte|short|char|string|point|date|localtime|time"
    r"|localdatetime|datetime|duration))(?P<list>\[\])?)(?:\{[^{}]*\})?"
)
_BITS: Final = {"byte": 8, "short": 16, "int": 32, "long": 64}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NO_NUMBERS: Final = ("NaN", "Infinity", "+Infinity", "-Infinity")
_BOOLEANS: Final = {"true": True, "false": False}
_NAMES: Final = frozenset(
    ("alias", "aliases", "synonym", "synonyms", "altlabel", "altlabels", "alsoknownas", "othernames")
)
"""Headings of columns of further names, without what stands between words."""
_TABLES: Final = {"means": _MEANS, "redirects": _REDIRECTS, "forms": _FORMS}
_SUFFIXES: Final = tuple(f"{plain}{packed}" for packed in ("", *COMPRESSIONS) for plain in (".csv", ".tsv"))
_EDGES: Final = ("relationships", "edges", "rels")


class PropertyGraph(Format):
    """A folder of tables, as neo4j-admin imports them."""

    name = "neo4j"
    title = "Neo4j CSV (KGX is read too)"
    suffixes = ()
    builder = "neo4j"
    folder = True

    def files(self, records: KBRecords) -> Mapping[str, Iterator[bytes]]:
        """Return the tables of nodes, relationships, surfaces and their meanings, redirects and forms.

        A JSON file beside them has the properties of the KB.
        """
        tables: Mapping[str, tuple[Sequence[str], Iterator[Sequence[str]]]] = {
            "nodes.csv": (_NODES, map(_node, records.entities())),
            "relationships.csv": (
                _RELATIONSHIPS,
                ((triple.subject, triple.relation, triple.object) for triple in records.triples()),
            ),
            "surfaces.csv": (_SURFACES, _surfaces(records)),
            "means.csv": (
                _MEANS,
                (
                    (alias.surface, "MEANS", alias.key, repr(alias.count), _sense(alias.sense))
                    for alias in records.aliases()
                ),
            ),
            "redirects.csv": (
                _REDIRECTS,
                ((redirect.source, redirect.target) for redirect in records.redirects()),
            ),
            "forms.csv": (_FORMS, ((form.surface, form.lemma, form.pos) for form in records.forms())),
        }
        head = msgspec.json.format(msgspec.json.encode(head_of(records))) + b"\n"
        return {
            **{name: chunks(map(csv_line, chain([header], rows))) for name, (header, rows) in tables.items()},
            _KB: iter([head]),
        }


def _node(entity: Entity) -> Sequence[str]:
    return (
        entity.key,
        f"Entity;{_element(entity.kind)}" if entity.kind else "Entity",
        entity.label,
        entity.description,
        entity.kind,
        entity.pos,
        # A list of one empty text would read as no list.
        ";".join(_element(name) or "%" for name in entity.types),
        msgspec.json.encode(entity.attributes).decode() if entity.attributes else "",
    )


def _surfaces(records: KBRecords) -> Iterator[Sequence[str]]:
    """Yield each surface once; those that are folded alike come together."""
    fold, last, written = records.folding.fold, "", set[str]()
    for alias in records.aliases():
        if (folded := fold(alias.surface)) != last:
            last, written = folded, set()
        if alias.surface not in written:
            written.add(alias.surface)
            yield alias.surface, "Surface"


def _element(text: str) -> str:
    return text.replace("%", "%25").replace(";", "%3B")


def _sense(sense: str | None) -> str:
    return "" if sense is None else sense


class PropertyGraphBuilder(Builder):
    """Entities and triples from a folder of tables, in Neo4j's shape or KGX's."""

    name = "neo4j"
    version = "2"
    smoothing = 1.0
    reads_lines = True

    def look(self, source: Path) -> Files:
        """Return the tables of the folder, with the properties that an export of kgkit's states."""
        nodes, edges, tables = _tables(source)
        head = source / _KB
        if not head.is_file():
            return files_of(source, None, [nodes, *edges, *tables.values()])
        try:
            about = decoded_object(read_content(head))
        except ValueError as error:
            raise SourceError(f"no JSON object: {error}", path=head) from None
        properties = files_of(head, about)
        return properties._replace(read=[nodes, *edges, *tables.values(), head])

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of the nodes, then of the relationships, then of the other tables."""
        nodes, edges, tables = _tables(source)
        bare = not (source / _KB).is_file()
        readers: list[tuple[Path, Callable[[Sequence[str], Path], _Read]]] = [
            (nodes, partial(_of_nodes, bare=bare)),
            *((table, _of_edges) for table in edges),
            *(
                (tables[name], partial(_of_rows, read))
                for name, read in (("means", _alias), ("redirects", _redirect), ("forms", _form))
                if name in tables
            ),
        ]
        for path, reader in readers:
            rows = csv_or_bad_rows(path)
            read = reader(_header(rows, path), path)
            for number, fields in rows:
                if isinstance(fields, SourceError):
                    yield self.bad_record(fields)
                    continue
                try:
                    records = read(fields)
                except ValueError as error:
                    text = ",".join(fields)
                    yield self.bad_record(SourceError(str(error), path=path, line=number, text=text))
                else:
                    yield from records


def _tables(source: Path) -> tuple[Path, list[Path], Mapping[str, Path]]:
    """Return the table of nodes, those of relationships, and our own others by name."""
    if not source.exists():
        raise NotThere(f"no folder {source}")
    if not source.is_dir():
        raise SourceError(
            "is no folder: name the one that holds the table of nodes (nodes.csv, nodes.tsv)", path=source
        )
    nodes = _paths_of(source, "nodes")
    if not nodes:
        raise SourceError("is a folder without a table of nodes (nodes.csv, or nodes.tsv)", path=source)
    edges = [table for name in _EDGES for table in _paths_of(source, name)]
    tables = {name: paths[0] for name in _TABLES if (paths := _paths_of(source, name))}
    return nodes[0], edges, tables


def _paths_of(source: Path, name: str) -> list[Path]:
    exact = [path for suffix in _SUFFIXES if (path := source / f"{name}{suffix}").is_file()]
    return exact or sorted(path for suffix in _SUFFIXES for path in source.glob(f"*_{name}{suffix}"))


class _Column(NamedTuple):
    """A column of a table.

    Attributes:
        heading: its heading.
        name: what it holds: `text:ID(Entity)` holds an `ID`, `types:string[]` the `types`.
        type: type of its values, in small letters; "" if the heading names none.
        is_list: whether a field holds several.
    """

    heading: str
    name: str
    type: str = ""
    is_list: bool = False


_Read = Callable[[Sequence[str]], Iterable[Record]]
"""Gives the records of the fields of a row, or a `ValueError` that says what is wrong with it."""


def _of_nodes(header: Sequence[str], path: Path, *, bare: bool) -> _Read:
    """Return a reader of the entities of nodes; of a *bare* table, without one of aliases, of names too."""
    columns = [_column(heading) for heading in header]
    key_at = _index_of(columns, ("ID", "id"))
    if key_at is None:
        raise SourceError("a table of nodes without a column `:ID` or `id`", path=path, line=1)
    separator = "|" if columns[key_at].name == "id" else ";"

    def read(fields: Sequence[str]) -> list[Record]:
        draft: dict[str, Any] = {"attributes": {}, "types": (), "names": []}
        for column, value in zip(columns, fields, strict=True):
            _take(draft, column, value, separator, bare=bare)
        key, label = fields[key_at], draft.get("label", "")
        aliases: list[Record] = []
        if bare:
            label = label or key
            aliases = [Alias(surface, key) for surface in dict.fromkeys((label, *draft["names"]))]
        return [*aliases, entity_of(key, label, draft, draft["types"], draft["attributes"])]

    return read


def _take(draft: dict[str, Any], column: _Column, value: str, separator: str, *, bare: bool) -> None:
    """Put a field of a row of nodes where it belongs.

    Raises:
        ValueError: if it is not what the heading says.
    """
    match column.name:
        case "ID" | "id":
            pass
        case "IGNORE" if ":" in column.heading:
            pass
        case "LABEL":
            draft["types"] = tuple(filter(None, value.split(separator)))
            draft["kind"] = next(iter(draft["types"]), "")
        case "label" | "name":
            names = [*filter(None, value.split(separator))] if column.is_list else [value]
            draft["label"] = next(iter(names), "")
            draft["names"] += names[1:]
        case "description" | "kind" | "pos":
            draft[column.name] = value
        case "types" | "category":
            parts = value.split(separator) if value else []
            draft["types"] = (
                tuple(unquote(part) if part != "%" else "" for part in parts)
                if separator == ";"
                else tuple(parts)
            )
        case "attributes" if value.startswith("{"):
            try:
                draft["attributes"] |= decoded_object(value)
            except ValueError as error:
                raise ValueError(f"attributes that are no JSON object: {error}") from None
        case name if bare and re.sub(r"[\s_-]", "", name).lower() in _NAMES:
            is_list = column.is_list or not column.type
            draft["names"] += filter(None, value.split(separator) if is_list else [value])
        case name:
            if value:
                draft["attributes"][name] = _property(column, value, separator)


def _property(column: _Column, value: str, separator: str) -> Any:
    """Return the value of a field, as the heading says it is.

    Raises:
        ValueError: if it is not; says in which column.
    """
    try:
        if column.is_list:
            return [_converted(column.type, part) for part in value.split(separator)]
        return _converted(column.type, value)
    except ValueError as error:
        raise ValueError(f"{abbreviate(repr(value))}, in column {column.heading!r}, is {error}") from None


def _converted(kind: str, text: str) -> Any:
    """Return a text as a value of a type of Neo4j.

    Raises:
        ValueError: if it is none.
    """
    plain = text.strip()
    if (bits := _BITS.get(kind)) is not None:
        most = 1 << (bits - 1)
        if not (_INTEGER.fullmatch(plain) and -most <= int(plain) < most):
            raise ValueError(f"no whole number of {bits} bits")
        return int(plain)
    if kind in ("float", "double"):
        if plain in _NO_NUMBERS:
            return plain
        if not _FLOAT.fullmatch(plain) or abs(number := float(plain)) == float("inf"):
            raise ValueError("no number, as 1.5")
        return number
    if kind == "boolean":
        if plain.lower() not in _BOOLEANS:
            raise ValueError("neither true nor false")
        return _BOOLEANS[plain.lower()]
    if kind == "char" and len(text) != 1:
        raise ValueError("not one character")
    return text


def _of_edges(header: Sequence[str], path: Path) -> _Read:
    columns = [_column(heading) for heading in header]
    indexes = []
    for names in (("START_ID", "subject"), ("TYPE", "predicate"), ("END_ID", "object")):
        index = _index_of(columns, names)
        if index is None:
            raise SourceError(
                f"a table of relationships without a column `:{names[0]}` or `{names[1]}`", path=path, line=1
            )
        indexes.append(index)
    subject, relation, other = indexes

    def read(fields: Sequence[str]) -> list[Record]:
        if not (fields[subject] and fields[relation] and fields[other]):
            raise ValueError("a relationship without a subject, a type or an object")
        return [Triple(fields[subject], fields[relation], fields[other])]

    return read


def _of_rows(read: Callable[[Sequence[str]], Record], header: Sequence[str], path: Path) -> _Read:
    expected = _TABLES[path.name.partition(".")[0].rpartition("_")[2]]
    if len(header) != len(expected):
        raise SourceError(
            f"expected the columns {', '.join(expected)}", path=path, line=1, text=",".join(header)
        )
    return lambda fields: [read(fields)]


def _alias(fields: Sequence[str]) -> Alias:
    surface, _, key, count, sense = fields
    return Alias(surface, key, alias_count(count or 0), sense or None)


def _redirect(fields: Sequence[str]) -> Redirect:
    source, target = fields
    return Redirect(source, target)


def _form(fields: Sequence[str]) -> Form:
    surface, lemma, pos = fields
    return Form(surface, lemma, pos)


def _header(rows: Iterator[tuple[int, list[str] | SourceError]], path: Path) -> list[str]:
    for _, header in rows:
        if isinstance(header, SourceError):
            raise header
        return header
    raise SourceError("is empty: there is not even a header", path=path, line=1)


def _column(heading: str) -> _Column:
    match = _TYPED.fullmatch(heading)
    if match is None:
        return _Column(heading, heading)
    if match["role"]:
        return _Column(heading, match["role"])
    return _Column(heading, match["own"], match["type"].lower(), match["list"] is not None)


def _index_of(columns: Sequence[_Column], names: Sequence[str]) -> int | None:
    """Return the index of the first of *names* that a column has; None if none has one."""
    held = [column.name for column in columns]
    return next((held.index(name) for name in names if name in held), None)
