"""Surfaces that are like a name: proposed by the index of a build, then compared with it.

The words of the name, and its trigrams, propose surfaces: each counts what it tells, which is more where few
surfaces have it, and long lists are left out. So do surfaces that are the name but for a qualifier. The
surfaces that share most are compared as `kgkit.kb.names` says.
"""

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.bounded_cache import BoundedCache
from kgkit.kb.names import (
    FEW_SURFACES,
    Comparison,
    Name,
    compare,
    log_odds,
    number_words,
    odds_of_marks,
    parse_name,
)
from kgkit.store.trigrams import (
    SHORT,
    TrigramIndex,
    core_code,
    core_of,
    first_letters,
    grams_of,
    plain_form,
    word_code,
)

__all__ = ["RankedSurface", "SimilarNames", "SimilarSurface", "with_fewest_edits"]

_MAX_POSTINGS: Final = 200_000
_SPARSE: Final = 4  # times as many surfaces as postings: of so many, each has no count of its own
_PROPOSED: Final = 128
_COMPARED: Final = 16  # of those that share most, and as many of those with the fewest edits
_LEAST_LOG_ODDS: Final = -6.0  # of what a name may stand for: one in 400
_LEAST_BUT_MARKS: Final = -3.0
_MAX_CORES: Final = 50
_WORD: Final = 3.0  # times what a trigram counts
_SIZE: Final = 0.4  # times what a gram of the surface that the name lacks counts
_CACHE_BYTES: Final = 4_000_000


class SimilarSurface(NamedTuple):
    """A surface that is like a name.

    Attributes:
        surface: folded surface.
        similarity: probability that the name stands for it, where no other surface is as like it, in [0, 1];
            1 if it is the same.
    """

    surface: str
    similarity: float


class RankedSurface(NamedTuple):
    """A surface beside a name.

    Attributes:
        surface: folded surface.
        log_odds: logarithm of the odds that the name stands for it.
        comparison: how the two differ; None if they are the same.
    """

    surface: str
    log_odds: float
    comparison: Comparison | None

    @property
    def similarity(self) -> float:
        """The probability of these odds."""
        return 1 / (1 + math.exp(-max(self.log_odds, -50.0)))


class SimilarNames:
    """Finds the surfaces of a build that are like names.

    Args:
        index: index of the build; None where surfaces are only ranked.
        language: language of its names, as `de`; empty if it is not known.
    """

    def __init__(self, index: TrigramIndex | None, language: str = "") -> None:
        self._index, self._language = index, language.partition("-")[0]
        self._rarities = BoundedCache[str, float](_CACHE_BYTES)
        self._count = 0 if index is None else len(index)
        self._scale = math.log(max(self._count, FEW_SURFACES))

    def compare(
        self, folded: str, surface: str, explained: frozenset[str] = frozenset()
    ) -> Comparison | None:
        """Compare a folded name with a surface; see `kgkit.kb.names.compare`."""
        name, other = parse_name(folded, self._language), parse_name(surface, self._language)
        return compare(name, other, self.rarity, explained, surfaces=self._count)

    def rarity(self, word: str) -> float:
        """Return how telling a word is, in (0, 1]: 1 if no surface has it."""
        rarity = self._rarities.get(word)
        if rarity is None:
            count = self._surfaces_with(word)
            rarity = max(1 - math.log(count + 1) / self._scale, 0.05)
            self._rarities.keep(word, rarity)
        return rarity

    def _surfaces_with(self, word: str) -> int:
        """Return the number of surfaces with a word; without words in the index, with its trigrams."""
        index = self._index
        if index is None or not len(index.grams):
            return 0
        if not index.is_first:
            return int(sum(map(len, self._lists(index, np.array([word_code(word)], np.uint32)))))
        lists = sorted(self._lists(index, grams_of(word.encode(errors="replace"), bigrams=False)), key=len)
        common = lists[0]
        for each in lists[1:]:
            if not len(common):
                break
            common = np.intersect1d(common, each, assume_unique=True)
        return len(common)

    def _lists(self, index: TrigramIndex, codes: NDArray[np.uint32]) -> list[NDArray[np.uint32]]:
        """Return the numbers of the surfaces that have each of some grams."""
        rows = np.minimum(np.searchsorted(index.grams, codes), len(index.grams) - 1)
        is_there = index.grams[rows] == codes
        begins, ends = index.starts[rows], np.where(is_there, index.starts[rows + 1], index.starts[rows])
        return [index.postings[int(begin) : int(end)] for begin, end in zip(begins, ends, strict=True)]

    def rank(self, folded: str, surfaces: Iterable[str]) -> list[RankedSurface]:
        """Return those of some surfaces that a name may stand for, the likeliest first."""
        ranked = []
        for surface in surfaces:
            if surface == folded:
                ranked.append(RankedSurface(surface, math.inf, None))
            elif (comparison := self.compare(folded, surface)) is not None:
                odds = log_odds(comparison.features)
                marks = odds_of_marks(
                    comparison.features
                )  # what differs in these alone is shown, though no match
                if odds - marks > (_LEAST_BUT_MARKS if marks else _LEAST_LOG_ODDS):
                    ranked.append(RankedSurface(surface, odds, comparison))
        return sorted(ranked, key=lambda each: (-each.log_odds, each.surface))

    def proposed(self, folded: str) -> list[str]:
        """Return the surfaces that share most with a name, at most some 100, each once."""
        index, plain = self._index, plain_form(folded)
        if index is None:
            return []
        text = (folded if index.is_first else plain).encode(errors="replace")
        bigrams = len(text) <= SHORT + 2
        grams = grams_of(text, bigrams=bigrams)
        weights = np.ones(len(grams))
        size = float(len(grams))
        if not index.is_first:
            words = _written_otherwise(plain, parse_name(folded, self._language), self._language)
            codes = np.array([word_code(word) for word in words], np.uint32)
            grams = np.concatenate([grams, codes])
            weights = np.concatenate([weights, np.full(len(codes), _WORD)])
            size += _WORD * len(plain.split(" "))
        numbers, shared = self._shared(index, grams, weights)
        chosen = dict.fromkeys(self._with_core(index, folded, plain))
        if len(numbers):
            begins = index.ends[numbers].astype(np.int64)
            sizes = index.ends[numbers + 1].astype(np.int64) - begins
            scores = shared / (size + _SIZE * sizes)
            if len(numbers) > _PROPOSED:
                best = np.argpartition(-scores, _PROPOSED)[:_PROPOSED]
                numbers, scores = numbers[best], scores[best]
            order = np.argsort(-scores, kind="stable").tolist()
            surfaces = [index.surface(int(numbers[row])) for row in order]
            chosen.update(dict.fromkeys(surfaces[:_COMPARED]))
            if len(surfaces) > _COMPARED:
                chosen.update(dict.fromkeys(with_fewest_edits(folded, surfaces[_COMPARED:])))
        return list(chosen)

    def _with_core(self, index: TrigramIndex, folded: str, plain: str) -> list[str]:
        """Return the surfaces that are the name, or its core, but for a qualifier."""
        if index.is_first:
            return []
        cores = {plain, core_of(folded) or plain}
        for letters, number in parse_name(folded, self._language).as_acronym():
            if number:
                cores.update(letters + word[0] for word in number_words(number, self._language))
        codes = np.unique(np.array([core_code(core) for core in cores], np.uint32))
        numbers, _ = self._shared(index, codes, np.ones(len(codes)))
        return [index.surface(number) for number in numbers[:_MAX_CORES].tolist()]

    def _shared(
        self, index: TrigramIndex, grams: NDArray[np.uint32], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers of surfaces that have some of the grams, and the weights that each has of them.

        Lists are read by their length, the shortest first, for as long as they are not too many.
        """
        none = np.empty(0, np.int64), np.empty(0)
        if not len(index.grams):
            return none
        rows = np.minimum(np.searchsorted(index.grams, grams), len(index.grams) - 1)
        is_there = index.grams[rows] == grams
        rows, weights = rows[is_there], weights[is_there]
        begins, ends = index.starts[rows].astype(np.int64), index.starts[rows + 1].astype(np.int64)
        sizes = ends - begins
        order = np.argsort(sizes, kind="stable")
        read = order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), _MAX_POSTINGS, "right")))].tolist()
        if not read:
            return none
        weights = weights * (1 - np.log(sizes + 1) / (self._scale + 1))
        postings = np.concatenate([index.postings[begins[row] : ends[row]] for row in read])
        if int(postings.max(initial=0)) >= len(index):
            raise IndexError(f"{index.path} has numbers of surfaces that are not there")
        counted = np.repeat(weights[read], sizes[read])
        if len(index) > _SPARSE * len(postings):
            order = np.argsort(postings, kind="stable")
            postings = postings[order]
            is_first = np.append(True, postings[1:] != postings[:-1])
            numbers = postings[is_first].astype(np.int64)
            shared = np.bincount(np.cumsum(is_first) - 1, counted[order])
        else:
            shared = np.bincount(postings, counted, len(index))
            numbers = np.flatnonzero(shared)
            shared = shared[numbers]
        if len(numbers) > 4 * _PROPOSED:  # of most, a small part of the best
            is_best = shared >= np.partition(shared, -4 * _PROPOSED)[-4 * _PROPOSED]
            numbers, shared = numbers[is_best], shared[is_best]
        return numbers, shared.astype(np.float64, copy=False)


def _written_otherwise(plain: str, name: Name, language: str) -> list[str]:
    """Return the words of a name, and other forms that they may have in a surface."""
    words = dict.fromkeys(plain.split(" "))
    for word, number in zip(name.words, name.numbers, strict=True):
        words[word] = None
        if number:
            words.update(dict.fromkeys(number_words(number, language)))
    for digraph, letter in (("ae", "a"), ("oe", "o"), ("ue", "u")):
        words.update(dict.fromkeys(word.replace(digraph, letter) for word in [*words] if digraph in word))
    words[plain.replace(" ", "")] = None
    words.update(dict.fromkeys(first_letters(plain)))
    for letters, number in name.acronyms():
        if number:
            words.update(dict.fromkeys(letters + each for each in ("", *number_words(number, language))))
    return [*words]


def with_fewest_edits(folded: str, surfaces: list[str]) -> list[str]:
    """Return those of some surfaces between which and a name there are fewest typing errors."""
    from rapidfuzz.distance import OSA  # here: 20 ms, which few calls need
    from rapidfuzz.process import cdist

    plain = [plain_form(each) for each in surfaces]
    similarities: Any = cdist([plain_form(folded)], plain, scorer=OSA.normalized_similarity, dtype=np.float32)
    best = np.argsort(-similarities[0], kind="stable")[:_COMPARED].tolist()
    return [surfaces[row] for row in best]
