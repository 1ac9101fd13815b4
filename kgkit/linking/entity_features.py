"""What the KB alone tells of a candidate in its document, without an encoder and without vectors.

The title of an entity is its label, else its key; its name is the title without what is in brackets at the
end, and up to the first comma: `Athens, Georgia (city)` is called `Athens`. All are folded. Words are tokens
of letters and digits; those of a title that the surface does not have are its other words.

    popularity    log prior       log p(entity | surface)
                  prior           p(entity | surface)
                  place           1 / its place in the list of candidates
                  degree          log(1 + facts that are told of it, and that end in it)
                  NAME            log(1 + x), for each attribute that the settings name
    names         is title        the surface is the title
                  is plain        it is the title without what is in brackets
                  is name         it is the name
                  begins          the name begins with the surface
                  begun           the surface begins with the name
                  ends            the name ends with the surface
                  trigrams        what they share of both their trigrams of characters (Dice)
                  trigrams in     what they share of the surface's trigrams
                  acronym         the surface is made of the first letters of the title's words
                  begins acronym  such letters, of a longer title, begin with it
                  words           share of the surface's words that are in the title
                  title words     share of the title's words that are in the surface
                  more words      log(1 + other words)
                  brackets        the title has some
                  comma           the title has one
    document      other words     share of the title's other words that stand in the document
                  all others      all of them do, and there are some
                  others          how many do
                  in sentence     share of the other words that stand in the sentence
                  described       share of the description's words that stand in the document
    types         TYPE            it is one, for each type that the settings name
    relative      …               those of popularity but place, and both of trigrams, less the mention's best

R  candidates of all mentions of a document    F  features
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from math import isfinite
from typing import Final, NamedTuple

import numpy as np

from kgkit.bounded_cache import BoundedCache
from kgkit.kb import KnowledgeBase
from kgkit.text import fold, tokens
from kgkit.types import LEAST_PRIOR, NO_CANDIDATES, Document, Matrix, Mention, Numbers

NAMES: Final = (
    "is title", "is plain", "is name", "begins", "begun", "ends", "trigrams", "trigrams in", "acronym",
    "begins acronym", "words", "title words", "more words", "brackets", "comma",
)  # fmt: skip
DOCUMENT: Final = ("other words", "all others", "others", "in sentence", "described")

_BRACKETS: Final = re.compile(r"\([^()]*\)$")
_SHORT: Final = 3  # letters of a word of a description that says nothing: in, the, und
_LONGEST_ACRONYM: Final = 6
_ENTITY_BYTES: Final = 128_000_000
_COMPARED_BYTES: Final = 64_000_000
_SHOWN: Final = 12  # attributes that an error names


@dataclass(frozen=True, kw_only=True)
class EntityFeaturesConfig:
    """Settings of `EntityFeatures`.

    Attributes:
        popularity: attributes of entities that are numbers: the more, the better known.
        types: of entities that are told apart.
    """

    popularity: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class _EntityText(NamedTuple):
    """What is remembered of an entity."""

    title: str
    plain: str
    name: str
    words: tuple[str, ...]
    trigrams: frozenset[str]
    acronyms: tuple[str, str]
    described: frozenset[str]
    popularity: tuple[float, ...]
    types: tuple[bool, ...]


class EntityFeatures:
    """Gives the candidates of a document their features.

    Args:
        kb: that knows the entities.
        config: settings.
    """

    def __init__(self, kb: KnowledgeBase, config: EntityFeaturesConfig | None = None) -> None:
        self.kb, self.config = kb, config or EntityFeaturesConfig()
        self._entities = BoundedCache[int, _EntityText](_ENTITY_BYTES)
        self._compared = BoundedCache[tuple[str, int], tuple[float, ...]](_COMPARED_BYTES)
        popularity = ("log prior", "prior", "place", "degree", *self.config.popularity)
        absolute = (*popularity, *NAMES, *DOCUMENT, *self.config.types)
        relative = ("log prior", "prior", *popularity[3:], "trigrams", "trigrams in")
        self.names = (*absolute, *(f"{name}, relative" for name in relative))
        """What each column is called."""
        self._relative = [absolute.index(name) for name in relative]

    def __call__(self, document: Document) -> Matrix:
        """Return (R, F), the features of the candidates of all mentions, in their order."""
        mentions = document.mentions or []
        sizes = np.array([len(mention.candidates or ()) for mention in mentions], np.int64)
        if not sizes.sum():
            return np.empty((0, len(self.names)), np.float32)
        words = frozenset(tokens(fold(document.text)))
        sentences = document.sentences or [(0, len(document.text))]
        begins = [start for start, _ in sentences]
        spoken = [frozenset(tokens(fold(document.text[start:end]))) for start, end in sentences]
        rows: list[tuple[float, ...]] = []
        for mention in mentions:
            index = bisect_right(begins, mention.start) - 1
            within = spoken[index] if index >= 0 else words
            rows.extend(self._rows(mention, words, within))
        features = np.array(rows, np.float32)
        return np.concatenate([features, relative(features[:, self._relative], sizes)], axis=1)

    def _rows(
        self, mention: Mention, words: frozenset[str], within: frozenset[str]
    ) -> list[tuple[float, ...]]:
        surface = fold(mention.text)
        own = frozenset(tokens(surface))
        rows = []
        candidates = mention.candidates or NO_CANDIDATES
        remainder = 1 - candidates.null  # that a generator gives NULL a part says nothing of the others
        for rank, (number, _, share) in enumerate(candidates):
            prior = share / remainder
            entity = self._of(number)
            other_words = [word for word in entity.words if word not in own]
            in_document = sum(word in words for word in other_words)
            in_sentence = sum(word in within for word in other_words)
            count = max(1, len(other_words))
            rows.append(
                (
                    float(np.log(max(prior, LEAST_PRIOR))),
                    prior,
                    1 / (1 + rank),
                    *entity.popularity,
                    *self._comparison(surface, number, entity),
                    in_document / count,
                    float(0 < len(other_words) == in_document),
                    in_document,
                    in_sentence / count,
                    len(entity.described & words) / max(1, len(entity.described)),
                    *entity.types,
                )
            )
        return rows

    def _comparison(self, surface: str, number: int, entity: _EntityText) -> tuple[float, ...]:
        """Return what is told of names; remembered, since a document returns to its surfaces."""
        comparison = self._compared.get((surface, number))
        if comparison is None:
            comparison = self._compared.keep((surface, number), _compared(surface, entity))
        return comparison

    def _of(self, number: int) -> _EntityText:
        entity = self._entities.get(number)
        if entity is None:
            entity = self._entities.keep(number, self._read(number))
        return entity

    def _read(self, number: int) -> _EntityText:
        entity = self.kb[number]
        title = (entity.label or entity.key).replace("_", " ")
        brackets = _BRACKETS.search(title)
        plain = (title[: brackets.start()].rstrip() if brackets else title) or title
        name = fold(plain.partition(", ")[0]) or fold(plain)
        words = tuple(word for word in tokens(fold(title)) if word.isalnum())
        capitals = "".join(word[0] for word in tokens(plain) if word[0].isupper())
        initials = "".join(word[0] for word in tokens(fold(plain)) if word.isalnum())
        described = frozenset(
            word for word in tokens(fold(entity.description)) if word.isalnum() and len(word) > _SHORT
        )
        outgoing, incoming = self.kb.store.neighbours(number), self.kb.store.incoming(number)
        degree = (0 if outgoing is None else len(outgoing)) + (0 if incoming is None else len(incoming[0]))
        counts = (degree, *(_number(entity.attributes.get(name)) for name in self.config.popularity))
        return _EntityText(
            fold(title),
            fold(plain),
            name,
            words,
            _trigrams(name),
            (capitals.lower(), initials),
            described,
            tuple(np.log1p(counts).tolist()),
            tuple(name in entity.types for name in self.config.types),
        )


def relative(values: Matrix, sizes: Numbers) -> Matrix:
    """Return (R, F) less the best of each mention; *sizes* (M,) are the candidates of each."""
    if not len(values):
        return values
    nonempty = sizes > 0
    begins = (np.cumsum(sizes) - sizes)[nonempty]
    best = np.maximum.reduceat(values, begins, axis=0)
    result: Matrix = values - np.repeat(best, sizes[nonempty], axis=0)
    return result


def _compared(surface: str, entity: _EntityText) -> tuple[float, ...]:
    words = frozenset(word for word in tokens(surface) if word.isalnum())
    trigrams = _trigrams(surface)
    shared = len(trigrams & entity.trigrams)
    letters = "".join(filter(str.isalnum, surface))
    both = len(words.intersection(entity.words))
    short = 1 < len(letters) <= _LONGEST_ACRONYM
    return (
        surface == entity.title,
        surface == entity.plain,
        surface == entity.name,
        entity.name.startswith(surface),
        surface.startswith(entity.name),
        entity.name.endswith(surface),
        2 * shared / (len(trigrams) + len(entity.trigrams)),
        shared / len(trigrams),
        short and letters in entity.acronyms,
        short and entity.acronyms[1].startswith(letters),
        both / max(1, len(words)),
        both / max(1, len(entity.words)),
        float(np.log1p(sum(word not in words for word in entity.words))),
        entity.title != entity.plain,
        entity.plain != entity.name,
    )


def _trigrams(text: str) -> frozenset[str]:
    framed = f"  {text} "
    return frozenset(framed[at : at + 3] for at in range(len(framed) - 2))


def _number(value: object) -> float:
    """Return what an attribute counts; 0, if it is no number that counts."""
    counts = isinstance(value, int | float) and isfinite(value) and value > 0
    return float(value) if counts else 0.0  # type: ignore[arg-type]  # it is a number
