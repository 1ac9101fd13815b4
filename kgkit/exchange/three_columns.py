r"""Three columns: a subject, a relation and an object a line, by tabs, as K-BERT and PyKEEN read them.

A tab or a line end within a name is written `\t`, `\n`, `\r`, and a backslash
that would read as one of them is doubled. A first line that names the columns
is left out.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kgkit.building.contract import Builder, Files, KBRecords
from kgkit.errors import SourceError
from kgkit.exchange.contract import LineFormat, files_of
from kgkit.files import checked_file, text_or_bad_lines
from kgkit.types import Alias, Entity, Record, Triple

__all__ = ["ThreeColumns", "ThreeColumnsBuilder"]

_HEADINGS: Final = (
    ("subject", "relation", "object"),
    ("subject", "predicate", "object"),
    ("head", "relation", "tail"),
)
_TO_ESCAPE: Final = re.compile(r"[\t\n\r]|\\(?=[tnr\\\t\n\r])")
_ESCAPED: Final = re.compile(r"\\([tnr\\])")
_ESCAPES: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\\": r"\\"}
_MEANING: Final = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


class ThreeColumns(LineFormat):
    """Nothing but the triples."""

    name = "tsv"
    title = "three-column TSV"
    suffixes = (".tsv", ".spo")
    builder = "tsv"
    losses = (
        "entities that stand in no triple",
        "labels, descriptions, kinds, parts of speech, types and attributes: a key is its own label",
        "aliases with their counts and senses: a key is its own only alias",
        "redirects and irregular forms",
        "the names of inverse relations: the stored direction comes back",
        "the order of entities: they are numbered as they come in the triples",
        "name, version, licence, address and language of the source, its smoothing and generator",
    )

    def lines(self, records: KBRecords) -> Iterator[str]:
        """Yield subject, relation and object of each triple, tabs between them."""
        for triple in records.triples():
            yield f"{_escape(triple.subject)}\t{_escape(triple.relation)}\t{_escape(triple.object)}"


class ThreeColumnsBuilder(Builder):
    """Triples of a three-column file; every subject and object is an entity, its name its alias."""

    name = "tsv"
    smoothing = 1.0
    reads_lines = True

    def look(self, source: Path) -> Files:
        """Return the file; it states no properties of a KB."""
        return files_of(checked_file(source), None)

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the triple of each line, and an entity and an alias for each key when it first occurs."""
        subjects: set[str] = set()
        for number, line in text_or_bad_lines(source):
            if isinstance(line, SourceError):
                yield self.bad_record(line)
                continue
            fields = line.split("\t")
            if len(fields) != 3 or "" in fields:
                error = SourceError(_wrong(fields), path=source, line=number, text=line)
                yield self.bad_record(error)
                continue
            if number == 1 and tuple(field.lower() for field in fields) in _HEADINGS:
                continue
            subject, relation, other = map(_unescape, fields)
            for key in (subject, other):
                if key not in subjects:
                    subjects.add(key)
                    yield Entity(key, key)
                    yield Alias(key, key)
            yield Triple(subject, relation, other)


def _wrong(fields: Sequence[str]) -> str:
    if "node1" in fields:
        return "a file of KGTK, as it seems: --format kgtk reads it"
    if len(fields) != 3:
        return f"expected subject, relation and object, apart by tabs, found {len(fields)} field(s)"
    return "an empty field: subject, relation and object are needed"


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: _MEANING[match[1]], text) if "\\" in text else text
