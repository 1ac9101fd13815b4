"""Features of a candidate: the KB's texts, counts and facts beside the text of the mention.

    names         how the surface stands to the candidate's label and names
    words         words of its label, its qualifiers and its description that the text has elsewhere
    prior         p(entity | surface) beside that of the others, where there are counts; the population
    neighbours    facts: to what the mention next to it can mean, to that of a sentence, to others

A candidate has to do with another one if a fact says so, or if the description or the qualifiers of one name
the other: the label `Paris, Texas` has the qualifier `Texas`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import log, log1p
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.bounded_cache import BoundedCache
from kgkit.kb import KnowledgeBase
from kgkit.linking.joint.text import Text, sentence_begins, spaced, words_of
from kgkit.linking.joint.types import kind_of, named_sort
from kgkit.linking.joint.unspaced import is_unspaced
from kgkit.linking.joint.words import FUNCTION
from kgkit.linking.scoring import Scores
from kgkit.store import codec
from kgkit.store.damage import DAMAGE
from kgkit.text import POPULATION, fold
from kgkit.types import NO_CANDIDATES, Entity, Matrix, Mention, Numbers

ABSOLUTE: Final = (
    "spelled", "is label", "is plain label", "is short label", "begins label", "ends label", "acronym",
    "other words", "all other words", "has other words", "description words",
    "description words in sentence", "has description", "qualifier next", "description next",
    "name next unknown", "fact next", "fact before", "fact in sentence", "facts in document",
    "unrelated beside", "fact nearest", "has facts", "others alike", "longer name elsewhere",
    "other name elsewhere", "log prior", "log population", "is only", "capital label",
)  # fmt: skip
RELATIVE: Final = (
    "other words", "description words", "description words in sentence", "qualifier next",
    "description next", "fact next", "fact before", "fact in sentence", "facts in document", "fact nearest",
    "others alike", "log prior",
)  # fmt: skip
OF_MENTION: Final = ("candidates", "has counts", "entities", "any fact next", "any fact in sentence")
FEATURES: Final = (*ABSOLUTE, *(f"{name}, relative" for name in RELATIVE), *OF_MENTION)
_RELATIVE: Final = [ABSOLUTE.index(name) for name in RELATIVE]

Pairs = NDArray[np.int32]

_WORD: Final = re.compile(r"\w+")
_BRACKETS: Final = re.compile(r"\s*[(（][^()（）]*[)）]$")
_NEXT: Final = re.compile(
    r"(?:,|,? (?:(?:is|was|lies) )?(?:in|near)| \(|, (?:an?|eine?))? *(?:the )?$|[的，、（·]$"
)
_COMMA: Final = re.compile(r", *| *\(")
_ENDS: Final = re.compile(r"[.!?]\s|[\n。！？]")
_NAME_BEHIND: Final = re.compile(r",? *\(?((?:[^\W\d_][\w.'’-]*)(?: [^\W\d_a-z][\w.'’-]*)*)")
_ALIKE: Final = 0.01  # of a population
_MOST_PEOPLE: Final = 1e11
_FACTS: Final = 200  # entities whose population is looked up for one that they are in
_SHORT, _SHORT_UNSPACED = 3, 2
_BYTES: Final = 64_000_000
_BESIDE, _NEAR = 10, 150  # characters between mentions that stand beside each other; in one sentence
_MOST: Final = 8  # candidates of other mentions that are compared
_FAR: Final = 30  # other mentions on each side that are compared


class EntityWords(NamedTuple):
    """Names, words and facts of an entity, as features compare them.

    Attributes:
        label, plain, short: label, folded; without brackets; and up to its first comma.
        spellings: names by their folded form.
        words: words of the label.
        qualifiers: words that the label has behind the name.
        described: words of the description and of short attributes.
        text: description, qualifiers and attributes, folded, between spaces.
        names: folded names by which other texts name it.
        neighbours: ids of entities that facts link it with.
        initials: first letters of the label's words.
        sort: (T,) of `named_sort`: 1 for what the KB's word for its kind says that it is.
        population: how many live there, or in the largest place that a fact has there; 0 if neither is told.
        is_counted_by_population: whether a name's count is that number, and no count of links.
        capital: whether the label has a capital.
        description: whether there is one.
    """

    label: str
    plain: str
    short: str
    spellings: dict[str, frozenset[str]]
    words: frozenset[str]
    qualifiers: frozenset[str]
    described: frozenset[str]
    text: str
    names: tuple[str, ...]
    neighbours: frozenset[int]
    initials: str
    sort: Matrix
    population: float
    is_counted_by_population: bool
    capital: bool
    description: bool


class CandidateFeatures:
    """Gives the candidates of a document's mentions their features.

    Args:
        kb: knowledge base of the entities.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.fold = kb, kb.store.folding.fold
        self._size = log1p(len(kb))
        self._entities = BoundedCache[int, EntityWords](_BYTES)

    def __call__(self, text: Text, mentions: Sequence[Mention]) -> tuple[list[Matrix], Pairs]:
        """Return (C, F) for each mention, in the order of `FEATURES`, and pairs (N, 2) of related candidates.

        Candidates are numbered through all mentions.
        """
        ids = [(mention.candidates or NO_CANDIDATES).ids.tolist() for mention in mentions]
        folded = [self.fold(mention.text) for mention in mentions]
        related, pairs = self._relations(text, mentions, ids, folded)
        names: dict[int, set[str]] = {}  # of entities: the surfaces that may mean them
        alike: dict[frozenset[str], set[str]] = {}  # of what labels have beside a surface: such surfaces
        for mention, numbers, surface in zip(mentions, ids, folded, strict=True):
            own = words_of(mention.text)
            for number in numbers:
                names.setdefault(number, set()).add(surface)
                if rest := self.of(number).words - own:
                    alike.setdefault(rest, set()).add(surface)
        begins = [*sentence_begins(text.text, mentions), len(text.text)]
        sentences = [bisect_right(begins, mention.start) - 1 for mention in mentions]
        words = {at: words_of(text.text[begins[at] : begins[at + 1]]) for at in set(sentences)}
        rows = [
            self._rows(text, words[sentence], mention, surface, near, names, alike)
            for sentence, mention, surface, near in zip(sentences, mentions, folded, related, strict=True)
        ]
        return rows, pairs

    def spellings(self, mention: Mention) -> frozenset[str]:
        """Return the KB's spellings of a mention's surface; the surface itself if it is a variant."""
        folded = self.fold(mention.text)
        found = [
            self.of(number).spellings.get(folded, ())
            for number in (mention.candidates or NO_CANDIDATES).ids.tolist()
        ]
        return frozenset().union(*found) or frozenset([mention.text])

    def of(self, number: int) -> EntityWords:
        """Return the words of an entity, remembered: texts return to the same ones."""
        entity = self._entities.get(number)
        if entity is None:
            entity = self._entities.keep(number, self._read(number))
        return entity

    def _rows(
        self,
        text: Text,
        sentence: frozenset[str],
        mention: Mention,
        surface: str,
        related: Matrix,
        names: dict[int, set[str]],
        alike: dict[frozenset[str], set[str]],
    ) -> Matrix:
        """Return (C, F) of a mention.

        Args:
            text: its text.
            sentence: words of its sentence.
            mention: mention with its candidates.
            surface: its text, folded.
            related: (C, 6) of `_relations`.
            names: surfaces in the text that may mean an entity, by its id.
            alike: surfaces in the text of which a candidate's label has the same further words.
        """
        candidates = mention.candidates or NO_CANDIDATES
        if not len(candidates):
            return np.empty((0, len(FEATURES)), np.float32)
        own = words_of(mention.text)
        name_words = words_of(_name_behind(text, mention.end)) - FUNCTION
        letters = "".join(filter(str.isalnum, surface))
        priors = candidates.priors
        entities = [self.of(number) for number in candidates.ids.tolist()]
        counted = (
            len(priors) > 1
            and float(priors.max() - priors.min()) > 1e-4
            and self._is_counted(surface)
            and not any(entity.is_counted_by_population for entity in entities)
        )
        known = np.array([entity.population for entity in entities], np.float32)
        if known.any():  # of whom the KB does not say how many there are, as many as of the others on average
            known[known == 0] = np.exp(np.log(known[known > 0]).mean())
        people = np.log((known + 1) / (known.sum() + len(known))) if known.any() else np.zeros_like(known)
        rows = []
        for number, entity, prior, near, living in zip(
            candidates.ids.tolist(), entities, priors.tolist(), related.tolist(), people.tolist(), strict=True
        ):
            other = entity.words - own
            found = len(other & text.folded)
            said = (entity.described & text.folded) - own - other
            elsewhere = names[number] - {surface}
            rows.append((
                mention.text in entity.spellings.get(surface, ()), surface == entity.label,
                surface == entity.plain, surface == entity.short,
                entity.short.startswith(surface) and surface != entity.short,
                entity.short.endswith(surface) and surface != entity.short,
                1 < len(letters) < 7 and letters == entity.initials, found / max(1, len(other)),
                bool(other) and found == len(other), bool(other), log1p(len(said)),
                log1p(len(said & sentence)), entity.description,
                bool(name_words) and bool(name_words & entity.qualifiers),
                bool(name_words) and name_words <= entity.described | entity.words and bool(name_words - own),
                bool(name_words) and not name_words & (entity.described | entity.words), *near,
                bool(entity.neighbours), log1p(len(alike.get(other, set()) - {surface})),
                any(_has_name(each, surface) for each in elsewhere), bool(elsewhere),
                log(max(prior, 1e-4)) if counted else 0.0, living, len(candidates) == 1, entity.capital,
            ))  # fmt: skip
        absolute = np.array(rows, np.float32)
        relative = absolute[:, _RELATIVE] - absolute[:, _RELATIVE].max(0)
        shared = (
            log(len(candidates)), counted, self._size, related[:, 0].max() > 0, related[:, 2].max() > 0,
        )  # fmt: skip
        return np.concatenate(
            [absolute, relative, np.tile(np.array(shared, np.float32), (len(candidates), 1))], axis=1
        )

    def _is_counted(self, surface: str) -> bool:
        """Say whether links were counted for a surface, or a form that is not in the KB is one of such."""
        store = self.kb.store
        row = store.alias_row(surface)
        try:
            return row is None or codec.is_counted(row, self.kb.manifest.smoothing)
        except DAMAGE as error:
            raise store.damage(error) from error

    def _relations(
        self, text: Text, mentions: Sequence[Mention], ids: list[list[int]], folded: list[str]
    ) -> tuple[list[Matrix], Pairs]:
        """Return (C, 6) for each mention: whether candidates are related to those of others; and the pairs.

        To those of the next mention, if little is between them, of the one before, of one in the sentence;
        log(1 + names of others in the document); whether they are related to none of one that stands beside
        it behind a comma or a bracket; whether no other candidate of the mention is related to a nearer one
        in the sentence.
        """
        sizes = np.array([len(numbers) for numbers in ids], np.int64)
        begins = (np.cumsum(sizes) - sizes).tolist()
        result = np.zeros((int(sizes.sum()), 6), np.float32)
        nearest = np.full(len(result), np.inf)  # characters to a related one
        groups: list[Pairs] = [np.empty((0, 2), np.int32)]
        related = self._related(ids)
        lists = {numbers: at for at, numbers in enumerate(dict.fromkeys(map(tuple, ids)))}
        list_of = [lists[tuple(numbers)] for numbers in ids]
        known: dict[tuple[int, int], Pairs] = {}  # related candidates of two lists
        for a, b in _beside(text, mentions):
            for one, other in ((a, b), (b, a)):
                others = set[int]().union(*(related.get(number, ()) for number in ids[other]))
                rows = slice(begins[one], begins[one] + len(ids[one]))
                result[rows, 4] = [number not in others for number in ids[one]]
        for a, numbers in enumerate(ids):
            linked = [(i, related[first]) for i, first in enumerate(numbers) if first in related]
            if not linked:
                continue
            for b in range(a + 1, min(len(mentions), a + 1 + _FAR)):
                if folded[a] == folded[b] or mentions[b].start < mentions[a].end:
                    continue
                key = list_of[a], list_of[b]
                if key not in known:
                    known[key] = np.array(
                        [
                            (i, j)
                            for i, others in linked
                            for j, second in enumerate(ids[b][:_MOST] if i >= _MOST else ids[b])
                            if second in others
                        ],
                        np.int32,
                    ).reshape(-1, 2)
                if not len(known[key]):
                    continue
                found = known[key] + np.array([begins[a], begins[b]], np.int32)
                groups.append(found)
                beside, close = _nearness(text, mentions[a], mentions[b])
                if close:
                    result[found.ravel(), 2] = 1
                    gap = mentions[b].start - mentions[a].end
                    nearest[found.ravel()] = np.minimum(nearest[found.ravel()], gap)
                if close and beside:
                    result[found[:, 0], 0] = result[found[:, 1], 1] = 1
        table = np.concatenate(groups)
        result[:, 3] = _names_of_others(table, folded, sizes)
        own = sizes > 0
        least = (
            np.repeat(np.minimum.reduceat(nearest, np.array(begins)[own]), sizes[own])
            if own.any()
            else nearest
        )
        result[:, 5] = (nearest == least) & np.isfinite(nearest)
        return [result[begin : begin + len(own)] for begin, own in zip(begins, ids, strict=True)], table

    def _related(self, ids: list[list[int]]) -> dict[int, set[int]]:
        """Return the candidates of a document that each one of them has to do with, if there is any."""
        numbers = dict.fromkeys(number for of_mention in ids for number in of_mention)
        named: dict[str, list[tuple[str, int]]] = {}  # by the first word: names, and whose they are
        for number in numbers:
            for name in self.of(number).names:
                named.setdefault(name.split(maxsplit=1)[0], []).append((name, number))
        related: dict[int, set[int]] = {}
        for number in numbers:
            entity = self.of(number)
            found = {
                (name, other)
                for word in set(entity.text.split())
                for name, other in named.get(word, ())
                if name in entity.text
            }
            facts = numbers.keys() & entity.neighbours
            told = {name for name, other in found if other in facts}  # a fact says which one is meant
            for other in (facts | {other for name, other in found if name not in told}) - {number}:
                related.setdefault(number, set()).add(other)
                related.setdefault(other, set()).add(number)
        return related

    def _read(self, number: int) -> EntityWords:
        entity, store = self.kb[number], self.kb.store
        label = (entity.label or entity.key).replace("_", " ")
        bare = _BRACKETS.sub("", label) or label
        short = bare.partition(", ")[0] or bare
        spellings: dict[str, set[str]] = {}
        outgoing, incoming = store.neighbours(number), store.incoming(number)
        population, by_population = _population(entity), False
        if not population and incoming is not None:  # a state has as many as its largest city, at least
            within = (_population(self.kb[other]) for other in incoming[0][:_FACTS].tolist())
            population = max(within, default=0.0)
        for surface, _, count, _ in store.surfaces_of(number):
            by_population |= population > 0 and abs(count - population) < _ALIKE * population
            spellings.setdefault(self.fold(surface), set()).add(surface)
        neighbours = frozenset([] if outgoing is None else outgoing.tolist()) | frozenset(
            [] if incoming is None else incoming[0][:1000].tolist()
        )
        attributes = " ".join(
            value for value in entity.attributes.values() if isinstance(value, str) and len(value) < 60
        )
        words = words_of(label) - FUNCTION
        rest = label[len(short) :]
        description = f"{entity.description} {attributes}"
        described = frozenset(word for word in words_of(description) - FUNCTION if len(word) >= 2)
        names = tuple(
            spaced(name)
            for folded, spelled in spellings.items()
            for name in sorted(spelled)[:1]
            if _is_telling(name, folded) and _WORD.search(fold(name))
        )
        return EntityWords(
            label=self.fold(label),
            plain=self.fold(bare),
            short=self.fold(short),
            spellings={key: frozenset(value) for key, value in spellings.items()},
            words=words,
            qualifiers=words_of(rest) - FUNCTION,
            described=described,
            text=spaced(f"{description} {rest}"),
            names=names,
            neighbours=neighbours,
            initials="".join(word[0] for word in _WORD.findall(fold(bare))),
            sort=named_sort(kind_of(entity)),
            population=population,
            is_counted_by_population=by_population,
            capital=label != label.lower(),
            description=bool(entity.description),
        )


def _has_name(longer: str, name: str) -> bool:
    """Say whether a name has another one in it."""
    return name in longer if is_unspaced(name) else f" {name} " in f" {longer} "


def _is_telling(name: str, folded: str) -> bool:
    """Say whether texts that have a name mean its bearer."""
    if is_unspaced(name):
        return len(folded) >= _SHORT_UNSPACED
    return len(folded) > _SHORT and any(map(str.isupper, name))


def _names_of_others(pairs: Pairs, folded: list[str], sizes: Numbers) -> Scores:
    """Return log(1 + n) for each candidate (R,): n other names of which one candidate is related to it."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(folded))}
    name_of = np.repeat(np.array([numbers[name] for name in folded], np.int64), sizes)
    keys = np.unique(pairs.astype(np.int64) * len(numbers) + name_of[pairs[:, ::-1]])
    return np.log1p(np.bincount(keys // max(1, len(numbers)), minlength=len(name_of))).astype(np.float32)


def _nearness(text: Text, first: Mention, second: Mention) -> tuple[bool, bool]:
    """Say whether a mention stands beside the one before it, and whether it is in one sentence with it."""
    if second.start - first.end >= _NEAR:
        return False, False
    gap = text.text[first.end : second.start]
    return len(gap) < _BESIDE and bool(_NEXT.fullmatch(gap)), not _ENDS.search(gap)


def _beside(text: Text, mentions: Sequence[Mention]) -> Iterator[tuple[int, int]]:
    """Yield pairs of mentions between which there is but a comma or a bracket: *Paris, Texas*."""
    begins = {mention.start: number for number, mention in enumerate(mentions)}
    for number, mention in enumerate(mentions):
        gap = _COMMA.match(text.text, mention.end)
        if gap is not None and gap.end() in begins:
            yield number, begins[gap.end()]


def _population(entity: Entity) -> float:
    """Return the largest number that an attribute says to be a population."""
    found = [0.0]
    for name, value in entity.attributes.items():
        if name.lower() in POPULATION and isinstance(value, int | float | str):
            with suppress(ValueError):
                found.append(float(value))
    return max(number for number in found if number < _MOST_PEOPLE)


def _name_behind(text: Text, end: int) -> str:
    """Return the name behind a comma or a bracket that a mention ends before; it may be empty."""
    if text.text[end : end + 2] not in (", ", " ("):
        return ""
    found = _NAME_BEHIND.match(text.text, end)
    return found[1] if found and (found[1][0].isupper() or text.uncased) else ""
