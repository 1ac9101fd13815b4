r"""KGTK's edge files: `id node1 label node2`, a line an edge, edges of edges by their `id`.

    id         node1      label        node2
               Apple      label        "apple"
    kgkit:e7   Apple      alias        "Apple"
               kgkit:e7   kgkit:count  10

By KGTK's specification (version 2) the first character of a value says what
it is: a digit or one of `+-.` a number, `"` a string, `'` a string with its
language (`'Apfel'@de`), `^ @ !` something structured, else a symbol. Names of
entities and relations are symbols: where one begins or ends otherwise than it
may, or could be taken for one of the words that this file uses, a backslash
stands before that character; tab and line ends are `\t`, `\n`, `\r`, a bar is
`\|`, a backslash `\\`.

Of a stranger's file, the columns may have KGTK's other names (`subject`,
`predicate`, `object`, …) and stand in any order; `node1;label`, `label;label`
and `node2;label` are read as labels; a node file (`id` without `node1`) tells
of entities only. Other columns are left out; an edge of an edge makes that edge
an entity.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit.building.attributes import alias_count, decoded_object
from kgkit.building.contract import Builder, Files, KBRecords
from kgkit.errors import SourceError
from kgkit.exchange.contract import LineFormat, files_of, head_of
from kgkit.exchange.gathering import EntityField, FieldOrRecord, gather_parts
from kgkit.files import checked_file, text_lines, text_or_bad_lines
from kgkit.types import Alias, BadRecord, Form, Record, Redirect, Triple

__all__ = ["KGTK", "KGTKBuilder"]

_OURS: Final = "kgkit:"
_HEADER: Final = ("id", "node1", "label", "node2")
_HEAD_ROW: Final = ("", "kgkit:kb", "kgkit:head")
_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "node1": ("node1", "from", "subject"),
    "label": ("label", "predicate", "relation", "relationship"),
    "node2": ("node2", "to", "object"),
    "id": ("id", "ID"),
}
_OF_EDGES: Final = ("kgkit:count", "kgkit:sense", "kgkit:pos")
_WORDS: Final = {"label", "alias", "description", "True", "False"}
_TYPES: Final = {"rdf:type", "type", "isa", "instance_of"}
_NOT_FIRST: Final = frozenset("0123456789+-.\"'^@!# \\“")
_TO_ESCAPE: Final = re.compile(r"[\0\t\n\r|\\]")
_IN_STRING: Final = re.compile(r'[\0\t\n\r|\\"]')
_ESCAPED: Final = re.compile(r"\\(x00|.)", re.DOTALL)
_ESCAPES: Final = {"\0": r"\x00", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_MEANING: Final = {"x00": "\0", "t": "\t", "n": "\n", "r": "\r"}
_QUALIFIED: Final = re.compile(r"'(.*)'@([A-Za-z][A-Za-z0-9-]*)", re.DOTALL)


class KGTK(LineFormat):
    """Everything as edges."""

    name = "kgtk"
    title = "KGTK edges"
    suffixes = (".kgtk.tsv", ".kgtk")
    builder = "kgtk"

    def lines(self, records: KBRecords) -> Iterator[str]:
        """Yield tab-separated edges: node1, label, node2 and their qualifiers."""
        return _lines(records)


def _lines(records: KBRecords) -> Iterator[str]:
    yield "\t".join(_HEADER)
    yield "\t".join((*_HEAD_ROW, _string(_json(head_of(records)))))
    for entity in records.entities():
        key = _symbol(entity.key)
        yield f"\t{key}\tkgkit:kind\t{_string(entity.kind)}"
        if entity.label:
            yield f"\t{key}\tlabel\t{_string(entity.label)}"
        if entity.description:
            yield f"\t{key}\tdescription\t{_string(entity.description)}"
        if entity.pos:
            yield f"\t{key}\tkgkit:pos\t{_string(entity.pos)}"
        for name in entity.types:
            yield f"\t{key}\tkgkit:type\t{_string(name)}"
        if entity.attributes:
            yield f"\t{key}\tkgkit:attributes\t{_string(_json(entity.attributes))}"
    for number, alias in enumerate(records.aliases()):
        edge = f"kgkit:a{number}" if alias.count or alias.sense is not None else ""
        yield f"{edge}\t{_symbol(alias.key)}\talias\t{_string(alias.surface)}"
        if alias.count:
            yield f"\t{edge}\tkgkit:count\t{_number(alias.count)}"
        if alias.sense is not None:
            yield f"\t{edge}\tkgkit:sense\t{_symbol(alias.sense)}"
    for triple in records.triples():
        yield f"\t{_symbol(triple.subject)}\t{_symbol(triple.relation)}\t{_symbol(triple.object)}"
    for redirect in records.redirects():
        yield f"\t{_symbol(redirect.source)}\tkgkit:redirect\t{_symbol(redirect.target)}"
    for number, form in enumerate(records.forms()):
        edge = f"kgkit:f{number}"
        yield f"{edge}\t{_string(form.surface)}\tkgkit:form_of\t{_string(form.lemma)}"
        yield f"\t{edge}\tkgkit:pos\t{_string(form.pos)}"


class KGTKBuilder(Builder):
    """Edges of KGTK; nodes that are named only are entities too."""

    name = "kgtk"
    smoothing = 1.0
    reads_lines = True

    def look(self, source: Path) -> Files:
        """Return the file, with the properties that an export of kgkit's states in its head."""
        return files_of(source, _head(checked_file(source)))

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of the edges; edges of one node are gathered into one entity."""
        ours = _head(source) is not None
        read = partial(_parts, source, ours, self.bad_record)
        return gather_parts(read, grouped=ours, named=None if ours else _as_words)


def _head(source: Path) -> dict[str, Any] | None:
    """Return what kgkit wrote of the whole in the first row; None in a stranger's file."""
    for number, line in text_or_bad_lines(source):
        if isinstance(line, SourceError):
            return None  # which is told when the rows are read
        fields = line.split("\t")
        if number == 1 and tuple(fields) != _HEADER:
            return None
        if number > 1:
            if tuple(fields[:3]) != _HEAD_ROW or len(fields) != 4:
                return None
            try:
                return decoded_object(_text(fields[3]))
            except ValueError as error:
                raise SourceError(str(error), path=source, line=number, text=line) from None
    return None


def _rows(source: Path, columns: int) -> Iterator[tuple[int, list[str] | SourceError]]:
    """Yield the rows under the header with their numbers, comments left out; of a bad row its error."""
    for number, line in text_or_bad_lines(source):
        if isinstance(line, SourceError):
            yield number, line
            continue
        if number == 1 or line.startswith("#") or not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != columns:
            problem = f"expected {columns} fields, as the header has them, found {len(fields)}"
            yield number, SourceError(problem, path=source, line=number, text=line)
            continue
        yield number, fields


def _parts(
    source: Path, ours: bool, bad_record: Callable[[SourceError], BadRecord]
) -> Iterator[FieldOrRecord]:
    """Yield what each row says, and what *bad_record* makes of the error of a bad one."""
    header = next(line for _, line in text_lines(source)).split("\t")
    at = {name: index for name, names in _NAMES.items() if (index := _index_of(header, names)) is not None}
    if "node1" not in at:
        if "id" not in at:
            raise SourceError(
                f"no KGTK file: its first line names neither node1 nor id, but {', '.join(header)}",
                path=source, line=1,
            )  # fmt: skip
        yield from _nodes(source, header, at["id"], bad_record)
        return
    if missing := [name for name in ("label", "node2") if name not in at]:
        raise SourceError(f"an edge file without the column {missing[0]}", path=source, line=1)
    labels = [
        (at[name], index)
        for name in ("node1", "node2")
        if (index := _index_of(header, [f"{name};label"])) is not None
    ]
    named: set[tuple[str, str]] = set()
    pending: tuple[str, Alias | Form] | None = None  # an edge of which the next ones may say more
    for number, fields in _rows(source, len(header)):
        if isinstance(fields, SourceError):
            yield bad_record(fields)
            continue
        node1, label, node2 = fields[at["node1"]], fields[at["label"]], fields[at["node2"]]
        if not node1 or not node2 or label == "kgkit:head":
            continue  # without a value: one that is missing, by the specification
        records: list[FieldOrRecord] = []
        try:
            if pending is not None and node1 == pending[0] and label in _OF_EDGES:
                pending = node1, _more(pending[1], label, node2)
                continue
            if pending is not None:
                yield pending[1]
            pending = None
            if node1.startswith(_OURS) and label in _OF_EDGES:
                raise ValueError(f"{label} of {node1}, and no such edge stands before it")
            for node, index in labels:
                if fields[index] and _is_symbol(fields[node]) and (fields[node], fields[index]) not in named:
                    named.add((fields[node], fields[index]))
                    records += _edge(_plain(fields[node]), "label", fields[index], ours)
            edge = fields[at["id"]] if "id" in at else ""
            if label == "kgkit:form_of":
                pending = edge, Form(_text(node1), _text(node2), "")
            elif label == "alias" and edge.startswith("kgkit:"):
                pending = edge, Alias(_text(node2), _plain(node1))
            elif _is_symbol(node1):
                records += _edge(_plain(node1), label, node2, ours)
        except ValueError as error:
            records = [bad_record(SourceError(str(error), path=source, line=number, text=node2))]
        yield from records
    if pending is not None:
        yield pending[1]


def _more(record: Any, label: str, value: str) -> Any:
    """Return an alias or a form with what an edge of its edge says."""
    if label == "kgkit:count":
        return msgspec.structs.replace(record, count=alias_count(value))
    if label == "kgkit:sense":
        return msgspec.structs.replace(record, sense=_plain(value))
    return msgspec.structs.replace(record, pos=_text(value))


def _nodes(
    source: Path, header: Sequence[str], key_at: int, bad_record: Callable[[SourceError], BadRecord]
) -> Iterator[FieldOrRecord]:
    for number, fields in _rows(source, len(header)):
        if isinstance(fields, SourceError):
            yield bad_record(fields)
            continue
        if not fields[key_at]:
            continue
        key = _plain(fields[key_at])
        records: list[FieldOrRecord] = [EntityField(key, "attributes", {})]
        try:
            for name, values in zip(header, fields, strict=True):
                if values and name not in ("id", "ID"):
                    for value in re.split(r"(?<!\\)\|", values):
                        records += _edge(key, name, value, ours=False)
        except ValueError as error:
            records = [bad_record(SourceError(str(error), path=source, line=number, text=value))]
        yield from records


def _edge(key: str, label: str, value: str, ours: bool) -> Iterator[FieldOrRecord]:
    if label == "label":
        yield EntityField(key, "label", (_text(value), _language(value)))
        if not ours:
            yield Alias(_text(value), key)
    elif label == "alias":
        yield Alias(_text(value), key)
    elif label == "description":
        yield EntityField(key, "description", (_text(value), _language(value)))
    elif label in ("kgkit:kind", "kgkit:pos"):
        yield EntityField(key, label.removeprefix(_OURS), _text(value))
    elif label == "kgkit:type" or (label in _TYPES and not ours):
        yield EntityField(key, "types", _text(value) if value[:1] in "\"'" else _plain(value))
    elif label == "kgkit:attributes":
        yield EntityField(key, "attributes", decoded_object(_text(value)))
    elif label == "kgkit:redirect":
        yield Redirect(key, _plain(value))
    elif _is_symbol(value):
        yield Triple(key, _plain(label), _plain(value))
    else:
        yield EntityField(key, "literal", (_plain(label), _value(value)))


def _index_of(header: Sequence[str], names: Iterable[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


# -- values -----------------------------------------------------------------


def _symbol(name: str) -> str:
    """Return a name as a symbol."""
    text = _TO_ESCAPE.sub(_escape_of, name)
    if name in _WORDS or name.startswith(_OURS) or (name[:1] in _NOT_FIRST and text[:1] == name[:1] != "\\"):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if text.endswith(" ") and text != "\\ " else text


def _string(text: str) -> str:
    return f'"{_IN_STRING.sub(_escape_of, text)}"'


def _number(count: float) -> str:
    return str(int(count)) if count == int(count) else repr(count)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _escape_of(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0], f"\\{match[0]}")


def _plain(value: str) -> str:
    """Return a value without its escapes."""
    return _ESCAPED.sub(_meaning_of, value) if "\\" in value else value


def _meaning_of(match: re.Match[str]) -> str:
    return _MEANING.get(match[1], match[1])


def _text(value: str) -> str:
    """Return what a value says: a string without its quotes and language."""
    if value[:1] == '"' and len(value) > 1 and value[-1] == '"':
        return _plain(value[1:-1])
    match = _QUALIFIED.fullmatch(value)
    return _plain(match[1]) if match else _plain(value)


def _language(value: str) -> str:
    match = _QUALIFIED.fullmatch(value)
    return match[2] if match else ""


def _is_symbol(value: str) -> bool:
    return value[:1] not in "0123456789+-.\"'^@!" and value not in ("True", "False")


def _value(value: str) -> Any:
    """Return what a literal says: a number or a truth where it is one, else its text."""
    if value in ("True", "False"):
        return value == "True"
    kinds: tuple[Callable[[str], Any], ...] = (int, float)
    for kind in kinds:
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if abs(number) < 1 << 63 else value
    return _text(value)


def _as_words(key: str) -> str:
    return key.replace("_", " ")
