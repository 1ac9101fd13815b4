"""Writing a knowledge base in a format and reading it back, and knowledge bases made to be hard to write."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import kgkit
from kgkit.building import Alias, Entity, Form, Record, Redirect, Triple
from kgkit.building.build import build_kb
from kgkit.building.records import StoredRecords
from kgkit.exchange import Format
from kgkit.kb import KnowledgeBase

ODD_KEYS: Final = (
    "plain", "two words", "  blanks  ", "苹果", "100%", "%41", "a:b", "urn:kgkit:entity:a",
    "http://a.b/c#d", "http://not an iri", "https://ä.example/苹果", '"quoted"', "'single'@en",
    "back\\slash", "\\t", "\\u0041", "tab\there", "line\nend", "carriage\rreturn", "bar|bar",
    "semi;colon", "comma,comma", "&lt;", "<b>", "]]>", "42", "-1", "+x", ".5", "^2020", "@1/2",
    "!x", "#no comment", "True", "label", "alias", "kgkit:kind", "kgkit:e1", "_:b1", "a/b?c=d&e",
    "\x01control", "\x7f\x85\u2028", "👩‍🔬", "e\u0301", "é", "trailing\\", "entry-1", "None", "{}",
    "*", "\ufffe",
)  # fmt: skip
"""Each has broken a file format of somebody's."""


def odd_records() -> list[Record]:
    """Return entities, relations, types and surfaces of odd names, each of them used in every place."""
    records: list[Record] = []
    for number, key in enumerate(ODD_KEYS):
        following = ODD_KEYS[(number + 1) % len(ODD_KEYS)]
        attributes: dict[str, Any] = {key: [key, number, 0.5, True, None, {"in": key}]} if number % 2 else {}
        records += [
            Entity(key, key, f"{key} {following}", following, "n", (key, following, ""), attributes),
            Alias(key, key, number),
            Alias(key, following, 1, key),
            Alias(f"x {key} y", key, 0.5),
            Triple(key, following, following),
            Triple(key, "is_a", ODD_KEYS[0]),
            Redirect(f"{key}#other", key),
            Form(f"{key}s", key, "n"),
        ]
    return [*records, Entity("bare"), Entity("no label", "", "Only a description.")]


HOWNET_LIKE: Final[Sequence[tuple[str, str, str]]] = (
    ("苹果", "义原", "水果"),
    ("苹果", "义原", "电脑"),
    ("...底", "义原", "功能词"),
    ("何如", "义原", "词语"),
    ("水果", "上位", "食品"),
)


def written(kb: KnowledgeBase, format: Format, folder: Path) -> Path:
    """Write *kb* into *folder* and return the file, or the folder that the format is."""
    path = folder / f"{kb.name}-{format.name}{format.suffixes[0] if format.suffixes else ''}"
    if format.folder:
        path.mkdir()
    for name, content in format.files(StoredRecords(kb)).items():
        with (path / name if format.folder else path).open("wb") as file:
            file.writelines(content)
    return path


def returned(kb: KnowledgeBase, format: Format, folder: Path) -> KnowledgeBase:
    """Write *kb*, build another KB of the file, and open that."""
    build_kb(format.builder, written(kb, format, folder), name="again", home=folder)
    return kgkit.open_kb("again", home=folder)


def told(kb: KnowledgeBase) -> dict[str, Any]:
    """Return all that an export should keep, as values that compare."""
    records = StoredRecords(kb)
    source = kb.manifest.source
    return {
        "entities": list(records.entities()),
        "aliases": list(records.aliases()),
        "triples": sorted((triple.subject, triple.relation, triple.object) for triple in records.triples()),
        "redirects": list(records.redirects()),
        "forms": list(records.forms()),
        "properties": records.properties._replace(inverses=dict(records.properties.inverses)),
        "source": (source.name, source.version, source.licence, source.url, source.date),
    }


def imported(content: str | bytes, builder: str, folder: Path, name: str = "source") -> KnowledgeBase:
    """Build a KB of *content* with *builder* and open it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    build_kb(builder, path, name="imported", home=folder)
    return kgkit.open_kb("imported", home=folder)
