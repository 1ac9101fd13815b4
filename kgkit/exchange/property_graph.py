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
labels of a node are its types, the first one its kind.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from kgkit.building.attributes import alias_count, decoded_object
from kgkit.building.contract import Builder, Files, KBRecords
from kgkit.errors import NotThere, SourceError
from kgkit.exchange.contract import Format, chunks, entity_of, files_of, head_of
from kgkit.files import COMPRESSIONS, read_content
from kgkit.tables import csv_line, csv_rows
from kgkit.text import fold
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
    r"(?P<own>.*):(?:(?P<role>ID|LABEL|START_ID|TYPE|END_ID)(?:\([^()]*\))?"
    r"|(?:int|long|float|double|boolean|byte|short|char|string|point|date|localtime|time|localdatetime"
    r"|datetime|duration)(?:\[\])?)"
)
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
    folded, written = "", set[str]()
    for alias in records.aliases():
        if fold(alias.surface) != folded:
            folded, written = fold(alias.surface), set()
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
    smoothing = 1.0

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
        yield from _of_nodes(nodes, bare=not (source / _KB).is_file())
        for table in edges:
            yield from _of_edges(table)
        for name, read in (("means", _alias), ("redirects", _redirect), ("forms", _form)):
            if name in tables:
                yield from _of_rows(tables[name], read)


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


def _of_nodes(path: Path, *, bare: bool) -> Iterator[Record]:
    """Yield the entities of a table of nodes; of a *bare* one, without tables of aliases, also names."""
    rows = csv_rows(path)
    columns = [_column(name) for name in _header(rows, path)]
    for name in ("ID", "id"):
        if name in columns:
            key_at = columns.index(name)
            break
    else:
        raise SourceError("a table of nodes without a column `:ID` or `id`", path=path, line=1)
    for number, fields in rows:
        draft: dict[str, Any] = {"attributes": {}, "types": (), "synonym": ()}
        for name, value in zip(columns, fields, strict=True):
            _take(draft, name, value, path, number, separator="|" if columns[key_at] == "id" else ";")
        key = fields[key_at]
        label = draft.get("label", "")
        if bare:
            label = label or key
            for surface in dict.fromkeys((label, *draft["synonym"])):
                yield Alias(surface, key)
        yield entity_of(key, label, draft, draft["types"], draft["attributes"])


def _take(draft: dict[str, Any], name: str, value: str, path: Path, number: int, *, separator: str) -> None:
    """Put a field of a row of nodes where it belongs."""
    match name:
        case "ID" | "id" | "LABEL":
            if name == "LABEL":
                draft["types"] = tuple(filter(None, value.split(separator)))
                draft["kind"] = next(iter(draft["types"]), "")
        case "label" | "name":
            draft["label"] = value
        case "description" | "kind" | "pos":
            draft[name] = value
        case "types" | "category":
            parts = value.split(separator) if value else []
            draft["types"] = (
                tuple(unquote(part) if part != "%" else "" for part in parts)
                if separator == ";"
                else tuple(parts)
            )
        case "synonym":
            draft["synonym"] = tuple(filter(None, value.split(separator)))
        case "attributes" if value.startswith("{"):
            try:
                draft["attributes"] |= decoded_object(value)
            except ValueError as error:
                raise SourceError(
                    f"attributes that are no JSON object: {error}", path=path, line=number, text=value
                ) from None
        case _:
            if value:
                draft["attributes"][name] = value


def _of_edges(path: Path) -> Iterator[Record]:
    rows = csv_rows(path)
    columns = [_column(name) for name in _header(rows, path)]
    indexes = []
    for names in (("START_ID", "subject"), ("TYPE", "predicate"), ("END_ID", "object")):
        index = next((columns.index(name) for name in names if name in columns), None)
        if index is None:
            raise SourceError(
                f"a table of relationships without a column `:{names[0]}` or `{names[1]}`", path=path, line=1
            )
        indexes.append(index)
    subject, relation, other = indexes
    for number, fields in rows:
        if not (fields[subject] and fields[relation] and fields[other]):
            raise SourceError(
                "a relationship without a subject, a type or an object",
                path=path,
                line=number,
                text=",".join(fields),
            )
        yield Triple(fields[subject], fields[relation], fields[other])


def _of_rows(path: Path, read: Callable[[list[str]], Record]) -> Iterator[Record]:
    rows = csv_rows(path)
    header, expected = _header(rows, path), _TABLES[path.name.partition(".")[0].rpartition("_")[2]]
    if len(header) != len(expected):
        raise SourceError(
            f"expected the columns {', '.join(expected)}", path=path, line=1, text=",".join(header)
        )
    for number, fields in rows:
        try:
            yield read(fields)
        except ValueError as error:
            raise SourceError(str(error), path=path, line=number, text=",".join(fields)) from None


def _alias(fields: list[str]) -> Alias:
    surface, _, key, count, sense = fields
    return Alias(surface, key, alias_count(count or 0), sense or None)


def _redirect(fields: list[str]) -> Redirect:
    source, target = fields
    return Redirect(source, target)


def _form(fields: list[str]) -> Form:
    surface, lemma, pos = fields
    return Form(surface, lemma, pos)


def _header(rows: Iterator[tuple[int, list[str]]], path: Path) -> list[str]:
    for _, header in rows:
        return header
    raise SourceError("is empty: there is not even a header", path=path, line=1)


def _column(name: str) -> str:
    """Return what a column holds: `text:ID(Entity)` holds an `ID`, `types:string[]` the `types`."""
    match = _TYPED.fullmatch(name)
    if match is None:
        return name
    return match["role"] or match["own"]
