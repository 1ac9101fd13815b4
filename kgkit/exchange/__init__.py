"""Import and export: a knowledge base in the formats of other programs. `docs/exchange.md` compares them.

A format is one module with a `Format`, which writes, and a builder, which
reads and is found by its entry point like any other.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kgkit.errors import UnknownName, UsageError
from kgkit.exchange.contract import Format
from kgkit.exchange.graphml import GraphML
from kgkit.exchange.json_lines import JSONLines
from kgkit.exchange.kgtk import KGTK
from kgkit.exchange.property_graph import PropertyGraph
from kgkit.exchange.rdf_write import NTriples, Turtle
from kgkit.exchange.three_columns import ThreeColumns
from kgkit.exchange.wn_lmf_write import WNLMF
from kgkit.files import plain_name

__all__ = ["FORMATS", "Format", "builder_by_name", "find_format", "guess_format"]

FORMATS: Final[Mapping[str, Format]] = {
    each.name: each
    for each in (
        GraphML(),
        JSONLines(),
        KGTK(),
        PropertyGraph(),
        NTriples(),
        ThreeColumns(),
        Turtle(),
        WNLMF(),
    )
}
"""Every format by its name."""

TABLES: Final = (".csv", ".parquet")
"""Suffixes of tables, which the builder `table` reads; no format writes them."""


def find_format(name: str) -> Format:
    """Return the format of that name.

    Raises:
        UnknownName: if there is none.
    """
    if name not in FORMATS:
        raise UnknownName("format", name, list(FORMATS))
    return FORMATS[name]


def builder_by_name(source: str) -> str | None:
    """Return the builder of the format that the name of a source says, None if it says none."""
    path = Path(source)
    if plain_name(path.name.lower()).endswith(TABLES):
        return "table"
    if path.is_dir() and not any(path.glob("nodes.*")):
        return None
    try:
        return guess_format(path).builder
    except UsageError:
        return None


def guess_format(path: Path) -> Format:
    """Return the format that the name of *path* says; for a folder, what lies in it.

    Raises:
        UsageError: if it says none.
    """
    if path.is_dir():
        return FORMATS["jsonl" if any(path.glob("entities.jsonl*")) else "neo4j"]
    name = plain_name(path.name.lower())
    matches = [
        (len(suffix), candidate.name)
        for candidate in FORMATS.values()
        for suffix in candidate.suffixes
        if name.endswith(suffix)
    ]
    if not matches:
        raise UsageError(
            f"the name {path.name!r} does not say its format: --format FORMAT, one of {', '.join(FORMATS)}"
        )
    return FORMATS[max(matches)[1]]
