"""Links of short names: words that stand for a longer name of the same text.

    "Kamala Harris won. Harris thanked all."                          Harris: Kamala Harris
    "The World Food Programme (WFP) has flour; WFP has lorries."      WFP: World Food Programme

The first or last word of a person's name, and the initials of any name, mean what the longer name means,
unless somebody else in the text bears them: beside *Hillary Clinton*, linked or not, *Clinton* is not Bill
Clinton. A short name that a knowledge base has itself is left to the linker. Pronouns are not linked:
`docs/linking.md` has the figures.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec

from kgkit.bounded_cache import BoundedCache
from kgkit.candidates.inflection import base_forms
from kgkit.candidates.spelling import FUNCTION_WORDS, is_doubtful, ordinary_words
from kgkit.kb import KnowledgeBase
from kgkit.name_words import ADDRESSES, KIN, RANKS, WOMEN
from kgkit.text import BEFORE_NAMES, folding
from kgkit.types import Entity, Link, LinkedDocument

_CACHE_BYTES: Final = 4_000_000
_RIGHT: Final = 0.95
"""Share of short names that are linked rightly where the longer name is (`docs/linking.md`)."""

_PERSON: Final = frozenset(
    "person persons per people human humans person.n.01 personne persona pessoa persoon 人 人物".split()
)
"""Kinds and types of persons, and entities that persons are a kind of, in lower case."""
_WOMEN: Final = frozenset(map(str.capitalize, WOMEN))
_NAMES_TOO: Final = frozenset("baron count don duke graf".split())
"""Titles that are given names or surnames as well: *Graf* stands for Steffi Graf."""
_SURNAMES: Final = frozenset("Bishop Cousin Judge King Major Pope Prince".split())
"""Titles that are surnames as well: *Major* stands for John Major, and is a title in *Major Smith*."""
_TITLES: Final = frozenset(map(str.capitalize, (ADDRESSES | RANKS | KIN) - _NAMES_TOO)) | BEFORE_NAMES
_NO_NAMES: Final = _TITLES - _SURNAMES
_PARTICLES: Final = frozenset("al bin da de del den der des di dos du el la le ten ter van von zu".split())
_LEAST: Final = 3  # letters of initials that do not stand beside their name in brackets
_INSTANCE: Final = "instance_hypernym"
_KIND: Final = "hypernym"
_DEPTH: Final = 12  # of a hierarchy that is climbed

_FOLDING: Final = folding()
_SPACE: Final = re.compile(r"\.?[ \t]*")  # a full stop that ends no sentence is no token

_WORD: Final = r"[^\W\d_]{2,}"
_FIRST_AND_LAST: Final = re.compile(rf"({_WORD}) (?:.* )??((?:(?:{'|'.join(_PARTICLES)}) )*{_WORD})")
_BEFORE: Final = re.compile(r"(?:[-@#/_]|\w+\s+)$")
_BEHIND: Final = re.compile(r"\n\s*\w")
_FAR: Final = 30  # characters before a name that are looked at
_WITHIN: Final = frozenset("-'’")
_JOINTS: Final = frozenset("-@#/_")
_NOT_BEFORE: Final = _JOINTS | _PARTICLES | {"a", "an", "the", "A", "An", "The"}

_Span = tuple[int, int]
_Bearer = tuple[str, str | None]
"""A knowledge base and the key of an entity."""


class References:
    """Adds links of short names to linked documents.

    Args:
        kbs: knowledge bases that the documents are linked to.

    Examples:
        >>> [linked] = Linker.open(kb)(["Kamala Harris won. Harris thanked all."])
        >>> [link.text for link in References([kb])(linked).links]
        ['Kamala Harris', 'Harris']
    """

    def __init__(self, kbs: "list[KnowledgeBase]") -> None:
        self._kbs = {kb.name: kb for kb in kbs}
        self._languages = {kb.manifest.language for kb in kbs}
        self._persons = BoundedCache[_Bearer, bool](_CACHE_BYTES)

    def __call__(self, document: LinkedDocument) -> LinkedDocument:
        """Return the document with more links, in order of their start.

        A new link has the entity and the label of the longer name, no candidates, and the score of the
        longer name times the share of such links that are right.
        """
        text = document.text
        longer = [link for link in document.links if link.entity is not None and " " in link.text]
        if not longer:
            return document
        names, own = _Names(text, self._languages), defaultdict[_Bearer, set[str]](set)
        for link in longer:
            own[_bearer(link)].update(_words(link.text))
        covered = {at for link in document.links for at in range(link.start, link.end)}
        added = list[Link]()
        for (short, _), bearers in self._short_names(text, longer).items():
            if len(bearers) > 1 or any(len(kb.candidates(short)) for kb in self._kbs.values()):
                continue
            [link] = bearers.values()
            is_first = link.text.startswith(f"{short} ")
            if short.isupper():
                spans = names.initials(short)
            else:
                spans = names.of_person(short, own[_bearer(link)], is_first=is_first)
            added += [
                msgspec.structs.replace(
                    link, start=start, end=end, text=text[start:end], score=round(link.score * _RIGHT, 4),
                    candidates=[], id="",
                )
                for start, end in spans
                if covered.isdisjoint(range(start, end))
            ]  # fmt: skip
        links = sorted((*document.links, *added), key=lambda link: link.start)
        return msgspec.structs.replace(document, links=links)

    def _short_names(
        self, text: str, longer: Sequence[Link]
    ) -> dict[tuple[str, str], dict[str | None, Link]]:
        """Return the entities that a short name may stand for in a KB, each with its likeliest link."""
        found = defaultdict[tuple[str, str], dict[str | None, Link]](dict)
        for link in sorted(longer, key=lambda link: link.score):
            shorts = _initials(link, text)
            if self._is_person(link) and (match := _FIRST_AND_LAST.fullmatch(link.text)):
                shorts |= {name for name in match.groups() if not name.isupper() and name not in _NO_NAMES}
            for short in shorts:
                found[short, link.kb][link.entity] = link
        return found

    def _is_person(self, link: Link) -> bool:
        is_person = self._persons.get(_bearer(link))
        if is_person is None:
            kb = self._kbs.get(link.kb)
            entity = None if kb is None or link.entity is None else kb.get(link.entity)
            is_person = (
                kb is not None
                and entity is not None
                and any(name.lower() in _PERSON for name in _kinds_of(kb, entity))
            )
            self._persons.keep(_bearer(link), is_person)
        return is_person


def _bearer(link: Link) -> _Bearer:
    return link.kb, link.entity


def _kinds_of(kb: KnowledgeBase, entity: Entity) -> Iterator[str]:
    """Yield the names of the kinds of an entity: its own, of what stands beside it, and of what is above."""
    yield from (entity.kind, *entity.types)
    for other in kb.neighbors(entity):
        yield from (other.label, other.key)
    above = [entity, *(kb.neighbors(entity, _INSTANCE) if _INSTANCE in kb.relations else ())]
    for node in above if _KIND in kb.relations else ():
        yield from (higher.key for higher in kb.walk(node, _KIND, max_depth=_DEPTH))


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in _FOLDING.spans(_FOLDING.comparable(text))]


def _initials(link: Link, text: str) -> set[str]:
    """Return the initials of a name, with and without those of its words in lower case."""
    words = [word for word in _words(link.text) if word[0].isalpha()]
    found = {
        "".join(word[0] for word in words if word[0].isupper()),
        "".join(word[0].upper() for word in words),
    }
    return {
        initials
        for initials in found
        if len(initials) >= _LEAST
        or (len(initials) > 1 and text.startswith(f" ({initials})", link.end))
        or (len(initials) > 1 and text.endswith(f"{initials} (", 0, link.start))
    }


class _Word(NamedTuple):
    """A word with a capital: its span, its text, and what it may be a form of, itself included."""

    start: int
    end: int
    text: str
    forms: Set[str]


class _Names:
    """The names in a text, linked or not: runs of words with capitals, with particles and hyphens within.

    Args:
        text: text.
        languages: BCP 47 tags of the knowledge bases.
    """

    def __init__(self, text: str, languages: Set[str]) -> None:
        self._text, self._languages = text, languages
        self._having = defaultdict[str, list[list[_Word]]](list)  # names by the forms of their words
        inflecting = [language for language in languages if language[:2] not in ("", "en")]
        name, at, within = list[_Word](), 0, False
        for start, end in _FOLDING.spans(_FOLDING.comparable(text)):
            word = text[start:end]
            within = within and _SPACE.fullmatch(text, at, start) is not None
            if word[0].isupper():
                if not within:
                    self._add(name)
                    name = []
                bases = (base for language in inflecting for base in base_forms(word, language))
                name.append(_Word(start, end, word, {word, *bases}))
                within = True
            else:
                within = within and (word in _PARTICLES or (word in _WITHIN and at == start))
            at = end
        self._add(name)

    def _add(self, name: list[_Word]) -> None:
        for form in {form for word in name for form in word.forms}:
            self._having[form].append(name)

    def initials(self, short: str) -> list[_Span]:
        """Return the spans of initials, but those among words in capitals."""
        spans = (word[:2] for name in self._having[short] for word in name if word.text == short)
        return [span for span in spans if not is_doubtful(self._text, *span, cased=True, language="en")]

    def of_person(self, short: str, own: Set[str], *, is_first: bool) -> list[_Span]:
        """Return the spans of a first or last name; none if somebody else in the text may have it too.

        Args:
            short: first or last name, with the particles before it.
            own: words of all longer names of the person.
            is_first: whether it is the first name.
        """
        particles, gap, last = short.rpartition(" ")
        spans, relative, woman = list[_Span](), False, False
        for words in self._having[last]:
            place = next(place for place, word in enumerate(words) if last in word.forms)
            name = words if words[place].text == last else words[: place + 1]  # *Merkels Rede*
            titles = [*takewhile(_precedes_names, (word.text for word in name[:-1]))]
            if any(own.isdisjoint(word.forms) for word in name[len(titles) :]):
                return []
            for_woman = not _WOMEN.isdisjoint(titles)
            if len(titles) < len(name) - 1:
                woman |= for_woman
                continue
            if is_first and not _TITLES.isdisjoint(titles):  # *Pope Francis*
                return []
            relative |= for_woman
            start, end = name[-1][:2]
            if self._text.endswith(particles + gap, 0, start):
                start -= len(particles + gap)
                if self._is_name(last, start, end, is_first=is_first):
                    spans.append((start, end))
        return [] if relative and not woman else spans

    def _is_name(self, last: str, start: int, end: int, *, is_first: bool) -> bool:
        """Say whether a span is a name by itself: no ordinary word, none with *the*, no part of one."""
        text = self._text
        before, behind = _BEFORE.search(text, max(0, start - _FAR), start), _BEHIND.match(text, end)
        lead = before[0] if before else ""
        word = lead.rstrip()
        if text[end : end + 1] in _JOINTS or word in _NOT_BEFORE:
            return False
        if is_first and (
            text.startswith(" of ", end) or word.lower() == "in"
        ):  # *Lawrence of Arabia*, a place
            return False
        if (behind and behind[0][-1].isupper()) or (
            "\n" in lead and word[0].isupper() and not word.isupper()
        ):
            return False
        return not (
            any(last.lower() in ordinary_words(language) for language in self._languages)
            and is_doubtful(text, start, end, cased=True, language="en")
        )


def _precedes_names(word: str) -> bool:
    return word in _TITLES or word in FUNCTION_WORDS
