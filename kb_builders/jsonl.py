"""A knowledge base of one's own, as JSON lines: `docs/your-own-kb.md` has the format with examples.

An object a line; which field it has says what it is:

    key       an entity: label, description, kind, pos, types, attributes, aliases
    alias     a surface, and the `key` it can mean: count, sense
    subject   a triple: relation, object
    surface   how often an alias occurs in texts: occurrences, linked
    redirect  another key: `to` says of which entity
    form      an irregular form: lemma, pos
    kgkit     what the whole is: name, version, licence, …; the first line only

All in one file, or in a folder `entities.jsonl` and, as far as they are there,
`aliases.jsonl`, `triples.jsonl`, `redirects.jsonl` and `forms.jsonl`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from kgkit.building import (
    COMPRESSIONS,
    LINE_ERRORS,
    MAX_COUNT,
    Alias,
    Builder,
    Entity,
    EntityFields,
    Files,
    Form,
    KBProperties,
    Occurrences,
    Record,
    Redirect,
    SourceInfo,
    Triple,
    check_attributes,
    check_occurrences,
    check_url_pattern,
    json_problem,
    text_or_bad_lines,
)
from kgkit.errors import NotThere, SourceError

FILES: Final = ("entities", "aliases", "triples", "redirects", "forms")
SUFFIXES: Final = tuple(f".jsonl{packed}" for packed in ("", *COMPRESSIONS))


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the first line may say of the whole; `Builder` explains the properties.

    Attributes:
        label_aliases: whether the label of an entity is an alias of it, unless it is given as one.
    """

    name: str = ""
    version: str = ""
    licence: str = ""
    url: str = ""
    date: str = ""
    language: str = ""
    generator: Literal["alias", "lemma"] = "alias"
    smoothing: Annotated[float, msgspec.Meta(ge=0, le=MAX_COUNT)] = 1.0
    inverses: dict[str, str] = {}
    url_pattern: str = ""
    identifiers: tuple[str, ...] = ()
    label_aliases: bool = True

    def __post_init__(self) -> None:
        for relation, other in self.inverses.items():
            if any(other in pair and relation not in pair for pair in self.inverses.items()):
                raise ValueError(f"{other!r} is the inverse of {relation!r} and of another relation too")
        if self.url_pattern:
            check_url_pattern(self.url_pattern)


class Surface(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An alias, where it stands with its entity."""

    text: str
    count: float = 0.0
    sense: str | None = None


class _Line(EntityFields, frozen=True, forbid_unknown_fields=True):
    """Any line: the fields of all kinds, as each kind is known by the ones it has."""

    aliases: list[str | Surface] | None = None
    alias: str | None = None
    surface: str | None = None
    occurrences: float | None = None
    linked: float | None = None
    count: float | None = None
    sense: str | None = None
    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    redirect: str | None = None
    to: str | None = None
    form: str | None = None
    lemma: str | None = None
    kgkit: Head | None = None


_decode: Final = msgspec.json.Decoder(_Line).decode
_BEGINS_HEAD: Final = re.compile(r'\s*\{\s*"kgkit"')
_FIELDS: Final = sorted({name for line in (_Line, Head, Surface) for name in line.__struct_fields__})


class JSONLBuilder(Builder):
    """Entities, aliases, triples and redirects as a user writes them down."""

    smoothing = 1.0
    reads_records = True
    reads_lines = True

    def look(self, source: Path) -> Files:
        """Return the file, or the files of a folder, with the properties that their first line states."""
        files = _files(source)
        if source.suffix.lower() == ".csv":
            raise SourceError("is a table: the builder 'table' reads it", path=source)
        head = _head(files[0])
        folder = source.is_dir()
        # `.` has no name of its own.
        name = head.name or (source.name or source.resolve().name if folder else source.name.split(".")[0])
        info = SourceInfo(name=name, version=head.version, licence=head.licence, url=head.url, date=head.date)
        properties = KBProperties(
            head.inverses, head.smoothing, head.generator, head.language, head.url_pattern, head.identifiers
        )
        return Files(info, files, properties)

    def parts(self, source: Path) -> Sequence[str]:
        """Return the name of each file."""
        return [file.name for file in _files(source)]

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of each line of a file; blank lines are passed over."""
        files = _files(source)
        label_aliases = _head(files[0]).label_aliases
        path = source if source.is_file() else source / part
        keys: set[str] = set()
        for number, text in text_or_bad_lines(path):
            if isinstance(text, SourceError):
                yield self.bad_record(text)
                continue
            try:
                records = [*_records(_decode(text), label_aliases, first=number == 1 and path == files[0])]
            except LINE_ERRORS as error:
                yield self.bad_record(SourceError(_sentence(error), path=path, line=number, text=text))
                continue
            if records and isinstance(entity := records[0], Entity):
                if entity.key in keys:
                    problem = f"a second entity has the key {entity.key!r}: keys must be unique"
                    raise SourceError(problem, path=path, line=number, text=text)
                keys.add(entity.key)
            yield from records


def _files(source: Path) -> list[Path]:
    """Return the files of *source*, entities first."""
    if not source.is_dir():
        if not source.exists():
            raise NotThere(
                f"no file {source}: a knowledge base as JSON lines is one file, or a folder of them"
            )
        return [source]
    paths = [
        next((path for suffix in SUFFIXES if (path := source / f"{name}{suffix}").is_file()), None)
        for name in FILES
    ]
    if paths[0] is None:
        raise SourceError(
            "is a folder without entities.jsonl: name a file of JSON lines, or put the entities there",
            path=source,
        )
    listed = [path for path in paths if path is not None]
    for path in sorted(source.iterdir()):
        if path.name.endswith(SUFFIXES) and path not in listed:
            names = ", ".join(f"{name}.jsonl" for name in FILES)
            raise SourceError(f"is none of the files that a folder may hold: {names}", path=path)
    return listed


def _head(path: Path) -> Head:
    """Return what the first line of *path* says of the whole; the defaults, if it is an ordinary line."""
    number, text = next(text_or_bad_lines(path))
    if isinstance(text, str) and _BEGINS_HEAD.match(text):
        try:
            return _decode(text).kgkit or Head()
        except (msgspec.DecodeError, RecursionError) as error:
            raise SourceError(_sentence(error), path=path, line=number, text=text) from None
    return Head()


def _records(line: _Line, label_aliases: bool, *, first: bool) -> Iterator[Record]:
    kinds = [
        name
        for name in _KINDS
        if getattr(line, name) is not None and not (name == "key" and line.alias is not None)
    ]
    if len(kinds) != 1:
        what = " and ".join(map(repr, kinds)) if kinds else "none of " + ", ".join(map(repr, _KINDS))
        raise ValueError(f"has {what}: one of them says what a line is")
    make, allowed = _KINDS[kinds[0]]
    for name in line.__struct_fields__:
        if name not in allowed and getattr(line, name) is not None:
            raise ValueError(
                f"{name!r} does not belong on a line with {kinds[0]!r}, which takes {', '.join(allowed)}"
            )
    if kinds[0] == "kgkit" and not first:
        raise ValueError("'kgkit' belongs on the first line only")
    yield from make(line, label_aliases)


def _entity(line: _Line, label_aliases: bool) -> Iterator[Record]:
    key = _missing_field(line, "key")
    label = line.label if line.label is not None else key
    if line.attributes:
        check_attributes(line.attributes)  # what the store cannot hold is found here, where it has a line
    yield Entity(
        key,
        label,
        line.description or "",
        line.kind or "",
        line.pos or "",
        line.types or (),
        line.attributes or {},
    )
    surfaces = [Surface(alias) if isinstance(alias, str) else alias for alias in line.aliases or ()]
    for surface in surfaces:
        if not surface.text:
            raise ValueError("one of the 'aliases' is empty")
        yield Alias(surface.text, key, _count(surface.count), surface.sense)
    # A key that has aliases may be no more than a number: only a label that is given is one of them.
    shown = label_aliases and (line.label is not None or not surfaces)
    if shown and label not in [surface.text for surface in surfaces]:
        yield Alias(label, key)


def _alias(line: _Line, _: bool) -> Iterator[Record]:
    yield Alias(
        _missing_field(line, "alias"), _missing_field(line, "key"), _count(line.count or 0.0), line.sense
    )


def _occurrences(line: _Line, _: bool) -> Iterator[Record]:
    surface = _missing_field(line, "surface")
    if line.occurrences is None or line.linked is None:
        raise ValueError(f"'{'linked' if line.linked is None else 'occurrences'}' is missing")
    check_occurrences(line.occurrences, line.linked)
    yield Occurrences(surface, line.occurrences, line.linked)


def _triple(line: _Line, _: bool) -> Iterator[Record]:
    yield Triple(
        _missing_field(line, "subject"), _missing_field(line, "relation"), _missing_field(line, "object")
    )


def _redirect(line: _Line, _: bool) -> Iterator[Record]:
    yield Redirect(_missing_field(line, "redirect"), _missing_field(line, "to"))


def _form(line: _Line, _: bool) -> Iterator[Record]:
    yield Form(_missing_field(line, "form"), _missing_field(line, "lemma"), line.pos or "")


def _nothing(line: _Line, _: bool) -> Iterator[Record]:
    return iter(())


_Make = Callable[[_Line, bool], Iterator[Record]]
_KINDS: Final[Mapping[str, tuple[_Make, Sequence[str]]]] = {
    "key": (_entity, ("key", "label", "description", "kind", "pos", "types", "attributes", "aliases")),
    "alias": (_alias, ("alias", "key", "count", "sense")),
    "surface": (_occurrences, ("surface", "occurrences", "linked")),
    "subject": (_triple, ("subject", "relation", "object")),
    "redirect": (_redirect, ("redirect", "to")),
    "form": (_form, ("form", "lemma", "pos")),
    "kgkit": (_nothing, ("kgkit",)),
}


def _missing_field(line: _Line, name: str) -> str:
    value: str | None = getattr(line, name)
    if not value:
        raise ValueError(f"{name!r} is {'empty' if value == '' else 'missing'}")
    return value


def _count(count: float) -> float:
    if not 0 <= count <= MAX_COUNT:
        raise ValueError(f"the count is {count:g}: counts lie between 0 and {MAX_COUNT:g}")
    return count


def _sentence(error: Exception) -> str:
    """Return what is wrong in a line, as a user would say it."""
    text = json_problem(error, _FIELDS)
    return f"{text}; there are: alias, lemma" if "enum value" in text else text
