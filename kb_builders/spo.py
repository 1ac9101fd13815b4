"""Triples in K-BERT's format: subject, predicate and object, separated by tabs, one triple a line.

HowNet and the medical graph of Liu et al. (2020), "K-BERT: Enabling Language Representation with
Knowledge Graph", come in such files, as CN-DBpedia does there. A subject or an object is an entity whose
key is its string, of the kind `subject` if it is the subject of any line, else `object`. Subjects
come first, then objects, each in the order in which the file first names them; triples
keep the order of the file.

A subject is its own one alias. Objects have none: K-BERT looks for subjects in a text and injects
what is said of them. White space around a field is not part of it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from kgkit.building import (
    Alias,
    Builder,
    Entity,
    Files,
    Record,
    SourceInfo,
    Triple,
    plain_name,
    text_or_bad_lines,
)
from kgkit.errors import SourceError

SUBJECT: Final = "subject"
OBJECT: Final = "object"

_FIELDS: Final = ("subject", "predicate", "object")


class _Line(NamedTuple):
    subject: str
    predicate: str
    object: str


class SpoBuilder(Builder):
    """A file of triples; what they are about is linkable."""

    version: ClassVar[str] = "1"
    reads_lines: ClassVar[bool] = True

    def look(self, source: Path) -> Files:
        """Return the file, which has to be one of text; its name less its suffixes is the KB's."""
        next(text_or_bad_lines(source))  # there, a file, and text
        return Files(SourceInfo(name=plain_name(source.name).removesuffix(".spo")), [source])

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield subjects with their aliases, then, in a second pass, objects and triples."""
        # Read twice: that a string is an object only is not known before the end, and a line kept
        # would cost more than a line read again.
        keys: set[str] = set()
        for line in _lines(source):
            if isinstance(line, SourceError):
                yield self.bad_record(line)
            elif line.subject not in keys:
                keys.add(line.subject)
                yield Entity(line.subject, line.subject, kind=SUBJECT)
                yield Alias(line.subject, line.subject)
        for line in _lines(source):
            if isinstance(line, SourceError):
                continue
            if line.object not in keys:
                keys.add(line.object)
                yield Entity(line.object, line.object, kind=OBJECT)
            yield Triple(*line)


def _lines(source: Path) -> Iterator[_Line | SourceError]:
    """Yield the triples of *source*, and an error in the place of a line that is none."""
    for number, text in text_or_bad_lines(source):
        if isinstance(text, SourceError):
            yield text
            continue
        fields = [field.strip() for field in text.split("\t")]
        if len(fields) != len(_FIELDS):
            problem = f"expected 3 tab-separated fields, found {len(fields)}"
            yield SourceError(problem, path=source, line=number, text=text)
        elif not all(fields):
            empty = _FIELDS[fields.index("")]
            yield SourceError(f"the {empty} is empty", path=source, line=number, text=text)
        else:
            yield _Line(*fields)
