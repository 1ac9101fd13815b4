"""What the KB says of a candidate, beside the text that a mention stands in.

    names         how the surface stands to the candidate's label and names
    words         words of its label, its qualifiers and its description that the text has elsewhere
    prior         p(entity | surface) beside that of the others, where there are counts
    neighbours    facts: to what the mention next to it can mean, to that of a sentence, to others

A candidate has to do with another one if a fact says so, or if the description or the qualifiers of one name
the other: the label `Paris, Texas` has the qualifier `Texas`.
"""

import re
from collections.abc import Sequence
from math import log, log1p
from typing import Final, NamedTuple

import numpy as np

from kgkit.bounded_cache import BoundedCache
from kgkit.kb import KnowledgeBase
from kgkit.linking.joint.text import Text
from kgkit.linking.joint.types import kind_of
from kgkit.linking.joint.words import FUNCTION
from kgkit.text import fold
from kgkit.types import NO_CANDIDATES, Matrix, Mention, Numbers

ABSOLUTE: Final = (
    "spelled", "is label", "is plain label", "is short label", "begins label", "ends label", "acronym",
    "other words", "all other words", "has other words", "description words", "has description",
    "qualifier next", "description next", "name next unknown", "fact next", "fact before",
    "fact in sentence", "facts in document", "has facts", "longer name elsewhere", "other name elsewhere", "log prior", "is only", "capital label",
)  # fmt: skip
RELATIVE: Final = (
    "other words", "description words", "qualifier next", "description next", "fact next", "fact before",
    "fact in sentence", "facts in document", "log prior",
)  # fmt: skip
OF_MENTION: Final = ("candidates", "has counts", "entities", "any fact next", "any fact in sentence")
FEATURES: Final = (*ABSOLUTE, *(f"{name}, relative" for name in RELATIVE), *OF_MENTION)

_WORD: Final = re.compile(r"\w+")
_BRACKETS: Final = re.compile(r"\s*\([^()]*\)$")
_NEXT: Final = re.compile(r"(?:,| in| \(| near|, in)? ?(?:the )?$")
_NAME_NEXT: Final = re.compile(r",? ?\(?((?:[^\W\d_][\w.'’-]*)(?: [^\W\d_a-z][\w.'’-]*)*)")
_SHORT: Final = 3
_BYTES: Final = 64_000_000
_MOST: Final = 8  # candidates of other mentions that are compared
_FAR: Final = 30  # other mentions on each side that are compared


class EntityWords(NamedTuple):
    """What is remembered of an entity.

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
        kind: the KB's word for what it is.
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
    kind: str
    capital: bool
    description: bool


class CandidateFeatures:
    """Gives the candidates of a document's mentions their features.

    Args:
        kb: knowledge base of the entities.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._size = log1p(len(kb))
        self._entities = BoundedCache[int, EntityWords](_BYTES)
        self._related = BoundedCache[tuple[int, int], bool](_BYTES)

    def __call__(self, text: Text, mentions: Sequence[Mention]) -> tuple[list[Matrix], Numbers]:
        """Return (C, F) for each mention, in the order of `FEATURES`, and pairs (N, 2) of related candidates.

        Candidates are numbered through all mentions.
        """
        related, pairs = self._relations(text, mentions)
        names: dict[int, set[str]] = {}  # of entities: the surfaces that may mean them
        for mention in mentions:
            for number in (mention.candidates or NO_CANDIDATES).ids.tolist():
                names.setdefault(number, set()).add(fold(mention.text))
        words = [
            set(map(str.lower, (w.text for w in text.words[slice(*text.range(m.start, m.end))])))
            for m in mentions
        ]
        rows = [
            self._rows(text, mention, own, near, names)
            for mention, own, near in zip(mentions, words, related, strict=True)
        ]
        return rows, pairs

    def spellings(self, mention: Mention) -> frozenset[str]:
        """Return the KB's spellings of a mention's surface; the surface itself if it is a variant."""
        folded = self.kb.store.folding.fold(mention.text)
        found = [
            self.of(number).spellings.get(folded, ())
            for number in (mention.candidates or NO_CANDIDATES).ids.tolist()
        ]
        return frozenset().union(*found) or frozenset([mention.text])

    def of(self, number: int) -> EntityWords:
        """Return what is remembered of an entity."""
        entity = self._entities.get(number)
        if entity is None:
            entity = self._entities.keep(number, self._read(number))
        return entity

    def _rows(
        self, text: Text, mention: Mention, own: set[str], related: Matrix, names: dict[int, set[str]]
    ) -> Matrix:
        candidates = mention.candidates or NO_CANDIDATES
        surface = fold(mention.text)
        following = (
            _NAME_NEXT.match(text.text, mention.end)
            if text.text[mention.end : mention.end + 1] in ", ("
            else None
        )
        comma = text.text[mention.end : mention.end + 2] in (", ", " (")
        name = following[1] if following and comma and (following[1][0].isupper() or text.uncased) else ""
        name_words = frozenset(_WORD.findall(name.lower())) - FUNCTION
        letters = "".join(filter(str.isalnum, surface))
        priors = candidates.priors

        def elsewhere(number: int, surface: str) -> tuple[bool, bool]:
            """Say whether an entity has a name elsewhere in the text that has this one in it, and any other."""
            others = names[number] - {surface}
            return any(f" {surface} " in f" {other} " for other in others), bool(others)

        counted = len(priors) > 1 and float(priors.max() - priors.min()) > 1e-4
        absolute = np.zeros((len(candidates), len(ABSOLUTE)), np.float32)
        for row, number in enumerate(candidates.ids.tolist()):
            entity = self.of(number)
            other = entity.words - own
            found = sum(word in text.folded for word in other)
            described = entity.described - own - other
            said = sum(word in text.folded for word in described)
            absolute[row] = (
                mention.text in entity.spellings.get(surface, ()), surface == entity.label,
                surface == entity.plain, surface == entity.short,
                entity.short.startswith(surface) and surface != entity.short,
                entity.short.endswith(surface) and surface != entity.short,
                1 < len(letters) < 7 and letters == entity.initials, found / max(1, len(other)),
                bool(other) and found == len(other), bool(other), log1p(said), entity.description,
                bool(name_words) and bool(name_words & entity.qualifiers),
                bool(name_words) and name_words <= entity.described | entity.words and bool(name_words - own),
                bool(name_words) and not name_words & (entity.described | entity.words), *related[row],
                bool(entity.neighbours),
                *elsewhere(number, surface), log(max(float(priors[row]), 1e-4)) if counted else 0.0,
                len(candidates) == 1, entity.capital,
            )  # fmt: skip
        columns = [ABSOLUTE.index(name) for name in RELATIVE]
        relative = absolute[:, columns] - absolute[:, columns].max(0)
        shared = (
            log(len(candidates)), counted, self._size, related[:, 0].max() > 0, related[:, 2].max() > 0,
        )  # fmt: skip
        return np.concatenate(
            [absolute, relative, np.tile(np.array(shared, np.float32), (len(candidates), 1))], axis=1
        )

    def _relations(self, text: Text, mentions: Sequence[Mention]) -> tuple[list[Matrix], Numbers]:
        """Return (C, 4) for each mention: whether candidates have to do with those of others.

        With those of the next mention, if little is between them, of the one before, of one in the sentence;
        and log(1 + names of others in the document).
        """
        result = [np.zeros((len(m.candidates or NO_CANDIDATES), 4), np.float32) for m in mentions]
        ids = [(m.candidates or NO_CANDIDATES).ids.tolist() for m in mentions]
        folded = [fold(m.text) for m in mentions]
        links: dict[tuple[int, str], set[str]] = {}
        begins = np.cumsum([0, *map(len, ids)]).tolist()
        pairs: list[tuple[int, int]] = []
        for a in range(len(mentions)):
            for b in range(a + 1, min(len(mentions), a + 1 + _FAR)):
                if folded[a] == folded[b] or mentions[b].start < mentions[a].end:
                    continue
                gap = text.text[mentions[a].end : mentions[b].start]
                beside = len(gap) < 9 and bool(_NEXT.fullmatch(gap))
                close = len(gap) < 150 and not re.search(r"[.!?]\s|\n", gap)
                for i, first in enumerate(ids[a]):
                    for j, second in enumerate(ids[b][:_MOST] if i >= _MOST else ids[b]):
                        if first == second or not self._are_related(first, second):
                            continue
                        pairs.append((begins[a] + i, begins[b] + j))
                        left, right = result[a][i], result[b][j]
                        left[0] = max(left[0], beside)
                        right[1] = max(right[1], beside)
                        if close:
                            left[2] = right[2] = 1
                        links.setdefault((a, first), set()).add(folded[b])
                        links.setdefault((b, second), set()).add(folded[a])
        for (at, number), names in links.items():
            result[at][ids[at].index(number), 3] = log1p(len(names))
        return result, np.array(pairs, np.int64).reshape(-1, 2)

    def _are_related(self, first: int, second: int) -> bool:
        pair = (first, second) if first < second else (second, first)
        known = self._related.get(pair)
        if known is None:
            one, other = self.of(pair[0]), self.of(pair[1])
            known = self._related.keep(
                pair,
                pair[1] in one.neighbours or pair[0] in other.neighbours
                or any(name in one.text for name in other.names)
                or any(name in other.text for name in one.names),
            )  # fmt: skip
        return known

    def _read(self, number: int) -> EntityWords:
        entity, store = self.kb[number], self.kb.store
        label = (entity.label or entity.key).replace("_", " ")
        bare = _BRACKETS.sub("", label) or label
        short = bare.partition(", ")[0] or bare
        spellings: dict[str, set[str]] = {}
        for surface, *_ in store.surfaces_of(number):
            spellings.setdefault(store.folding.fold(surface), set()).add(surface)
        outgoing, incoming = store.neighbours(number), store.incoming(number)
        neighbours = frozenset([] if outgoing is None else outgoing.tolist()) | frozenset(
            [] if incoming is None else incoming[0][:1000].tolist()
        )
        attributes = " ".join(
            value for value in entity.attributes.values() if isinstance(value, str) and len(value) < 60
        )
        words = frozenset(_WORD.findall(fold(label))) - FUNCTION
        rest = label[len(short) :]
        description = f"{entity.description} {attributes}"
        described = frozenset(
            word for word in _WORD.findall(fold(description)) if len(word) >= 2 and word not in FUNCTION
        )
        text = f" {' '.join(_WORD.findall(fold(f'{description} {rest}')))} "
        names = tuple(
            f" {' '.join(_WORD.findall(fold(name)))} "
            for folded, spelled in spellings.items()
            for name in sorted(spelled)[:1]
            if len(folded) > _SHORT and any(map(str.isupper, name))
        )
        return EntityWords(
            fold(label), fold(bare), fold(short), {key: frozenset(value) for key, value in spellings.items()}, words,
            frozenset(_WORD.findall(fold(rest))) - FUNCTION, described, text, names, neighbours,
            "".join(word[0] for word in _WORD.findall(fold(bare))), kind_of(entity), label != label.lower(), bool(entity.description),
        )  # fmt: skip
