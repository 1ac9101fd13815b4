"""Corrections of links: words are that entity, or no name; in one place, a document, or wherever they are.

A file of them is CSV, TSV or JSON lines, a correction a row. A cell that is empty, and a column that is not
there, restrict nothing:

    text      the words, as they are written: by case, while white space of any kind and length is one
    entity    the key of the entity; empty (in JSON null): they are no name
    document  id of the document; the end of its path is enough: `17.txt` for `letters/17.txt`
    start     first code point in it
    before    the text before, up to 32 characters are written
    after     the text behind
    kb        name of the knowledge base

A row with `start`, `before` or `after` is about a place, one with `document` alone about all of it, any other
one about every text. A place goes before a document, and that before everywhere.

A place is found again in a changed text by its context, as a TextQuoteSelector of the Web Annotation Data
Model (W3C 2017) is: of the same words in the document those whose surroundings agree best, and the nearest of
equals. If they agree by less than half and the words have moved, the place is gone, which is logged.
"""

import logging
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kgkit.errors import SourceError, UsageError
from kgkit.files import JSON_LINES, checked_file, lines, opened, plain_name
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.kb.search import SEARCH_HINT, key_hint
from kgkit.tables import table_rows
from kgkit.types import Link, LinkedDocument

if TYPE_CHECKING:
    from typing import Self

CONTEXT: Final = 32
"""Characters of the context that is written on either side of a place."""

_AGREEING: Final = 0.5  # of the context of a place, at least; other places of a text have 0.52 at most
_AGREEING_ANYWHERE: Final = 0.75  # where the document is not known
_NO_ROWS: Final = (".json", ".xlsx", ".xls", ".ods", ".parquet")
_NEAREST: Final = 4  # characters beside a place
_MAX_DIGITS: Final = 18  # of a start

log = logging.getLogger(__name__)


class Correction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A correction: which entity words mean, or that they are no name.

    Attributes:
        text: words as they are written.
        entity: key of the entity; None or empty: they are no name.
        document: id of the only document, or the end of its path.
        start: first code point in that document.
        before, after: text around the only place.
        kb: name of the only knowledge base.
    """

    text: str
    entity: str | None
    document: str = ""
    start: int | None = None
    before: str = ""
    after: str = ""
    kb: str = ""

    @property
    def is_place(self) -> bool:
        """Whether it is about one place."""
        return self.start is not None or bool(self.before or self.after)


COLUMNS: Final = Correction.__struct_fields__
_OTHER_COLUMNS: Final = frozenset(("note", *Link.__struct_fields__))  # of the output of `kgkit link`

Span = tuple[int, int]


class _Meaning(NamedTuple):
    """The fields that a link to an entity has."""

    key: str
    label: str
    ids: dict[str, Any]
    url: str


class _Rule(NamedTuple):
    """A correction that is ready to be applied; `meaning` is None for what is no name.

    White space of `before` and `after` is single.
    """

    correction: Correction
    meaning: _Meaning | None
    pattern: re.Pattern[str]
    name: str
    before: str
    after: str


class Corrections:
    """Gives linked documents the links that somebody has corrected.

    A link that a correction gives has the score 1, and stands in the place of those that overlap it; one that
    is about no single place leaves longer names alone: with *May* for a person, *Cape May* stays a place.

    Args:
        kb: knowledge base whose links are corrected.
        corrections: corrections, perhaps by the lines of their file; those of other knowledge bases are left
            out.
        nil: whether links that are said to be no name are kept, marked as NIL.
        path: file that the corrections are of.

    Attributes:
        missing_documents: names of documents that corrections are about, and that have not come.

    Raises:
        UsageError: if *kb* does not have an entity, a correction has no text or a start without a document,
            or two contradict each other.
        SourceError: the same, of a file.

    Examples:
        >>> [linked] = linker(["bill met May"])
        >>> corrections = Corrections(kb, [Correction(text="bill", entity=None)])
        >>> [link.text for link in corrections(linked).links]
        ['May']
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        corrections: Iterable[Correction] | Mapping[int, Correction],
        *,
        nil: bool = False,
        path: Path | None = None,
    ) -> None:
        self.kb, self._nil = kb, nil
        rows = corrections if isinstance(corrections, Mapping) else dict(enumerate(corrections, 1))
        if found := _problem(kb, rows):
            number, problem = found
            if path is None:
                raise UsageError(f"correction {number}: {problem}")
            raise SourceError(problem, path=path, line=number)
        self._places: dict[str, dict[str, list[_Rule]]] = {}  # by document and words
        self._words: dict[str, dict[str, list[_Rule]]] = {}  # by document and first token
        self._logged = set[tuple[str, str]]()
        self.missing_documents = {
            row.document for row in rows.values() if row.document and row.kb in ("", kb.name)
        }
        for number, row in rows.items():
            if row.kb not in ("", kb.name):
                continue
            words = row.text.split()
            pattern = re.compile(r"\s+".join(map(re.escape, words)))
            name = f"correction {number}" if path is None else f"{path.name}:{number}"
            before, after = (" ".join(each.split()) for each in (row.before, row.after))
            rule = _Rule(row, self._meaning(row.entity), pattern, name, before, after)
            if row.is_place:
                self._places.setdefault(row.document, {}).setdefault(" ".join(words), []).append(rule)
            else:
                start, end = next(self._tokens(words[0]), (0, None))
                first = words[0][start:end]
                self._words.setdefault(row.document, {}).setdefault(first, []).append(rule)

    @classmethod
    def open(cls, kb: KnowledgeBase, path: Path, *, nil: bool = False) -> "Self":
        """Read the corrections of a file.

        Raises:
            NotThere: if there is no such file.
            SourceError: if it is no file of corrections, or has one that `Corrections` refuses; says where.

        A file without corrections, and rows of a knowledge base that there is not, are logged.
        """
        rows = dict(_read(path))
        corrections = cls(kb, rows, nil=nil, path=path)
        _warn_of_idle_rows(kb, rows, path)
        return corrections

    def __call__(self, document: LinkedDocument) -> LinkedDocument:
        """Return the document with corrected links, in order of their start.

        Those of a place or a document that are found no more are logged, once.
        """
        own = {(link.start, link.end): link for link in document.links if link.kb == self.kb.name}
        rules = self._rules(document.id, document.text, own)
        if not rules:
            return document
        taken = _Spans(span for span, rule in rules.items() if rule.meaning is not None)
        links = [
            link
            for link in document.links
            if link.kb != self.kb.name
            or ((link.start, link.end) not in rules and not taken.overlapping((link.start, link.end)))
        ]
        for span, rule in rules.items():
            link = own.get(span)
            if rule.meaning is not None:
                links.append(self._link(document.text, span, rule.meaning, link))
            elif self._nil and link is not None:
                links.append(
                    msgspec.structs.replace(
                        link, entity=None, sense=None, label="", score=1.0, nil=True, ids={}, url=""
                    )
                )
        links.sort(key=lambda link: link.start)
        return msgspec.structs.replace(document, links=links)

    def spans(self, name: str, text: str, links: Iterable[Span] = ()) -> dict[Span, Correction]:
        """Return the spans of a document that are corrected; those with an entity do not overlap one another.

        Args:
            name: id of the document.
            text: its text.
            links: spans of its links.
        """
        return {span: rule.correction for span, rule in self._rules(name, text, links).items()}

    def _rules(self, name: str, text: str, links: Iterable[Span]) -> dict[Span, _Rule]:
        names = [*_names(name)]
        self.missing_documents.difference_update(names)
        rules = dict[Span, _Rule]()
        lost: list[_Rule] = []
        for name_of_rules in (*names, ""):
            for words, group in self._places.get(name_of_rules, {}).items():
                found = [*_occurrences(words, group[0].pattern, text)]
                for rule in group:
                    places = _chosen_places(rule, found, text) if found else []
                    for span in places:
                        rules.setdefault(span, rule)
                    if not places and name_of_rules:
                        lost.append(rule)
        self._find_words(names, text, rules, lost)
        if lost := [rule for rule in lost if (name, rule.name) not in self._logged]:
            self._logged.update((name, rule.name) for rule in lost)
            listed = ", ".join(f"{rule.correction.text!r} ({rule.name})" for rule in lost)
            log.warning(
                "%s: %s found no more, and left out: %s; correct the text as it is now, or delete these rows",
                name, "a correction is" if len(lost) == 1 else f"{len(lost)} corrections are", listed,
            )  # fmt: skip
        return _without_overlaps(rules, links)

    def _find_words(
        self, names: Sequence[str], text: str, rules: dict[Span, _Rule], lost: list[_Rule]
    ) -> None:
        """Add what is corrected wherever it is written so; of a document, what is nowhere is lost."""
        of_document = [words for name in names if (words := self._words.get(name))]
        by_first = [*of_document, *([everywhere] if (everywhere := self._words.get("")) else [])]
        if not by_first:
            return
        tokens = [*self._tokens(text)]
        ends = [end for _, end in tokens]
        found = set[int]()
        for start, end in tokens:
            for rule in (rule for words in by_first for rule in words.get(text[start:end], ())):
                match = rule.pattern.match(text, start)
                if match is not None and not _cuts(tokens, ends, match.end()):
                    rules.setdefault(match.span(), rule)
                    found.add(id(rule))
        every = (rule for words in of_document for group in words.values() for rule in group)
        lost.extend(rule for rule in every if id(rule) not in found)

    def _tokens(self, text: str) -> Iterator[Span]:
        folding = self.kb.store.folding
        return folding.spans(folding.comparable(text))

    def _meaning(self, key: str | None) -> _Meaning | None:
        if not key:
            return None
        entity = self.kb[key]
        return _Meaning(entity.key, entity.label, self.kb.identifiers(entity), self.kb.url(entity) or "")

    def _link(self, text: str, span: Span, meaning: _Meaning, link: Link | None) -> Link:
        """Return a link to an entity, with the candidates of the one that was there."""
        start, end = span
        candidates = [] if link is None else link.candidates
        sense = next((each.sense for each in candidates if each.entity == meaning.key), None)
        ids = meaning.ids if sense is None else {**meaning.ids, "sense_key": sense}
        return Link(
            start, end, text[start:end], self.kb.name, meaning.key, sense, meaning.label, 1.0, False,
            candidates, "" if link is None else link.id, ids, meaning.url,
        )  # fmt: skip


def context_of(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the text before and behind a span as corrections have it, white space being single."""
    before = " ".join(text[max(0, start - 2 * CONTEXT) : start].split())
    return before[-CONTEXT:].lstrip(), " ".join(text[end : end + 2 * CONTEXT].split())[:CONTEXT].rstrip()


# -- places ---------------------------------------------------------------------


def _names(document: str) -> Iterator[str]:
    """Yield the id of a document, and the ends of its path, the longest first."""
    yield document
    for match in re.finditer("/", document):
        if match.end() < len(document):
            yield document[match.end() :]


class _Occurrence(NamedTuple):
    """A place where words stand, with the nearest characters on both sides; white space is single."""

    span: Span
    before: str
    after: str


def _occurrences(words: str, pattern: re.Pattern[str], text: str) -> Iterator[_Occurrence]:
    """Yield where words stand in a text, overlapping ones too; the pattern is theirs."""
    if words.partition(" ")[0] not in text:
        return
    match = pattern.search(text)
    while match is not None:
        before, after = context_of(text, *match.span())
        yield _Occurrence(match.span(), before[-_NEAREST:], after[:_NEAREST])
        match = pattern.search(text, match.start() + 1)


def _chosen_places(rule: _Rule, found: Sequence[_Occurrence], text: str) -> list[Span]:
    """Return where a place is now: one of a known document, else all that have the context.

    Args:
        rule: correction of a place.
        found: where its words stand, at least once.
        text: text of the document.
    """
    start = rule.correction.start
    here = [each.span for each in found if each.span[0] == start]
    if not (rule.before or rule.after):
        return here or ([found[0].span] if len(found) == 1 else [])
    agreeing = {each.span: _agreement(text, each, rule.before, rule.after) for each in found}
    if not rule.correction.document:
        return [span for span, share in agreeing.items() if share >= _AGREEING_ANYWHERE]
    best = max(agreeing, key=lambda span: (agreeing[span], -abs(span[0] - (start or 0))))
    return [best] if agreeing[best] >= _AGREEING else here


def _agreement(text: str, place: _Occurrence, before: str, after: str) -> float:
    """Return how like the context of a place what stands around an occurrence is, in [0, 1].

    It is 0 unless the nearest characters are the same on one side: an occurrence a few words further has most
    of the context too.
    """
    is_near = place.before.endswith(before[-_NEAREST:]) if before else not place.before
    if not (is_near or (place.after.startswith(after[:_NEAREST]) if after else not place.after)):
        return 0.0
    start, end = place.span
    there = " ".join(text[max(0, start - 2 * len(before) - CONTEXT) : start].split())[-len(before) or None :]
    behind = " ".join(text[end : end + 2 * len(after) + CONTEXT].split())[: len(after) or None]
    alike = len(before) * _likeness(before, there) + len(after) * _likeness(after, behind)
    return alike / (len(before) + len(after))


def _likeness(text: str, other: str) -> float:
    return 1.0 if text == other else SequenceMatcher(None, text, other, autojunk=False).ratio()


def _cuts(tokens: Sequence[Span], ends: Sequence[int], at: int) -> bool:
    """Return whether a token goes on at *at*; *ends* are those of the tokens."""
    index = bisect_right(ends, at)
    return index < len(tokens) and tokens[index][0] < at


class _Spans:
    """Spans, for the question which of them overlap another one."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(spans)
        self._longest = max((end - start for start, end in self._spans), default=0)

    def overlapping(self, span: Span) -> list[Span]:
        """Return those that overlap *span*."""
        start, end = span
        first = bisect_right(self._spans, (start - self._longest, start))
        last = bisect_left(self._spans, (end, end))
        return [each for each in self._spans[first:last] if each[1] > start]


def _without_overlaps(rules: Mapping[Span, _Rule], links: Iterable[Span]) -> dict[Span, _Rule]:
    """Return the corrections that hold: the longest where two overlap, none within a longer link."""
    others = _Spans(span for span in links if span not in rules)
    kept = {span: rule for span, rule in rules.items() if rule.meaning is None}
    taken = set[int]()
    for (start, end), rule in sorted(
        rules.items(), key=lambda item: (not item[1].correction.is_place, item[0][0] - item[0][1], item[0])
    ):
        if rule.meaning is None or not taken.isdisjoint(range(start, end)):
            continue
        around = others.overlapping((start, end))
        if rule.correction.is_place or not any(first <= start and end <= last for first, last in around):
            kept[start, end] = rule
            taken.update(range(start, end))
    return kept


# -- files ----------------------------------------------------------------------


def _read(path: Path) -> Iterator[tuple[int, Correction]]:
    """Yield the corrections of a file with the numbers of their lines.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it is no file of corrections; says where.
    """
    checked_file(path)
    suffix = Path(plain_name(path.name)).suffix.lower()
    if suffix in _NO_ROWS:
        listed = ", ".join((".csv", ".tsv", *JSON_LINES))
        raise SourceError(
            f"corrections are CSV, TSV or JSON lines ({listed}): save it as CSV UTF-8", path=path
        )
    for number, fields in _json_rows(path) if suffix in JSON_LINES else _table_rows(path):
        try:
            yield number, correction_of(fields)
        except (msgspec.MsgspecError, ValueError) as error:
            raise SourceError(f"no correction: {error}", path=path, line=number) from None


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in lines(path):
        try:
            yield number, msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            problem = f'expected {{"text": …, "entity": …}}: {error}'
            raise SourceError(problem, path=path, line=number, text=line) from None


def _table_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    header: list[str] | None = None
    with opened(path) as stream:
        for row in table_rows(stream, path=path):
            if isinstance(row.fields, SourceError):
                raise row.fields
            cells = [cell.strip() for cell in row.fields]
            if header is None:
                header = [name.casefold() for name in cells]
                missing = [name for name in ("text", "entity") if name not in header]
                if missing:
                    problem = f"the table has no column {missing[0]!r}; its columns are: {', '.join(cells)}"
                    raise SourceError(problem, path=path, line=row.begin)
                if repeated := [name for name, count in Counter(header).items() if name and count > 1]:
                    problem = f"the table has the column {repeated[0]!r} twice: delete one of them"
                    raise SourceError(problem, path=path, line=row.begin)
            elif any(cells):
                fields: dict[str, Any] = dict(zip(header, cells, strict=True))
                fields["start"] = _number(fields.get("start", ""), path, row.begin)
                yield row.begin, fields


def _number(cell: str, path: Path, line: int) -> int | None:
    if cell and not (cell.isascii() and cell.isdigit() and len(cell) <= _MAX_DIGITS):
        shown = cell if len(cell) <= _MAX_DIGITS else f"{cell[:_MAX_DIGITS]}…"
        raise SourceError(f"start is {shown!r}; it is a whole number, or empty", path=path, line=line)
    return int(cell) if cell else None


def correction_of(fields: Mapping[str, Any]) -> Correction:
    """Return a record as a correction.

    Args:
        fields: fields of a `Correction`, and perhaps those of a link, as `kgkit link` writes it, and a note.

    Raises:
        ValueError: if there are others, or one is of another type; says which.
    """
    others = [name for name in fields if name not in COLUMNS and name not in _OTHER_COLUMNS]
    if others:
        raise ValueError(
            f"there is no column {others[0]!r}: a correction has {', '.join(COLUMNS)}, and perhaps a note"
        )
    return msgspec.convert({name: fields[name] for name in COLUMNS if name in fields}, Correction)


def _problem(kb: KnowledgeBase, rows: Mapping[int, Correction]) -> tuple[int, str] | None:
    """Return the number of the first correction that cannot be applied, and what is wrong with it."""
    first: dict[tuple[object, ...], int] = {}
    for number, row in rows.items():
        if not row.text.strip():
            return number, "text is empty: which words are corrected?"
        if row.start is not None and (row.start < 0 or not (row.document or row.before or row.after)):
            return number, f"start is {row.start}, which needs a document, and is counted from 0"
        if row.kb not in ("", kb.name):
            continue
        if row.entity and row.entity not in kb:
            return number, _unknown_key(kb, row.entity, row.text)
        place = (" ".join(each.split()) for each in (row.text, row.before, row.after))
        earlier = first.setdefault((row.document, row.start, *place), number)
        if (rows[earlier].entity or None) != (row.entity or None):
            one, other = (each.entity or "no name" for each in (row, rows[earlier]))
            return number, f"{row.text!r} is {one!r}, and {other!r} in row {earlier}: delete one of the two"
    return None


def _unknown_key(kb: KnowledgeBase, key: str, text: str) -> str:
    hint = key_hint(kb, key)
    meant = "." if hint == SEARCH_HINT else f"; {hint}"
    return (
        f"no entity {key!r} in knowledge base {kb.name!r}{meant} `kgkit candidates {text!r} --kb {kb.name}` "
        "lists keys; a column kb says which knowledge base is meant"
    )


def _warn_of_idle_rows(kb: KnowledgeBase, rows: Mapping[int, Correction], path: Path) -> None:
    """Log that a file has no corrections, or that some name a knowledge base that there is not."""
    if not rows:
        log.warning("%s has no corrections", path.name)
        return
    there = {kb.name, *(each.name for each in Home(kb.home.path.parents[1]).kbs())}
    idle = {number: row.kb for number, row in rows.items() if row.kb and row.kb not in there}
    if idle:
        number, name = next(iter(idle.items()))
        log.warning(
            "%s:%d: no knowledge base %r; there are: %s; %s left out",
            path.name, number, name, ", ".join(sorted(there)),
            "this correction is" if len(idle) == 1 else f"{len(idle):,} corrections are",
        )  # fmt: skip
