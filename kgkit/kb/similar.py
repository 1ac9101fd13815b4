"""Surfaces that are like a text, through typing errors and changed word order, by the index of a build.

The grams of the text whose lists in the index are shortest propose surfaces; those that share most of
them are compared with the text, by RapidFuzz. Of n bytes in a row that were typed wrongly, at most n + 2
trigrams are lost, so a surface is proposals as long as one of the candidates was read.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.store.trigrams import SHORT, TrigramIndex, grams_of

__all__ = ["SimilarSurface", "proposed_surfaces", "similar_surfaces"]

_MAX_POSTINGS: Final = 200_000
_MAX_PROPOSED: Final = 768
_INDEL: Final = 0.01  # share of the similarity without transpositions and replacements: it breaks ties
_REORDERED: Final = 0.95  # of the similarity of texts whose words were put in order


class SimilarSurface(NamedTuple):
    """A surface that is like a text.

    Attributes:
        surface: folded surface.
        similarity: similarity to the folded text, in [0, 1]; 1 if it is the same.
    """

    surface: str
    similarity: float


def proposed_surfaces(index: TrigramIndex, folded: str) -> list[str]:
    """Return the surfaces that share most grams with a folded text, at most 768, in no order."""
    text = folded.encode(errors="replace")
    bigrams = len(text) <= SHORT + 2
    grams = grams_of(text, bigrams=bigrams)
    rows = np.searchsorted(index.grams, grams)
    rows = rows[rows < len(index.grams)]
    rows = rows[np.isin(index.grams[rows], grams, assume_unique=True)] if len(rows) else rows
    begins, ends = index.starts[rows].astype(np.int64), index.starts[rows + 1].astype(np.int64)
    order = np.argsort(ends - begins, kind="stable")
    read = max(1, int(np.searchsorted(np.cumsum((ends - begins)[order]), _MAX_POSTINGS, "right")))
    lists = [index.postings[begins[row] : ends[row]] for row in order[:read].tolist()]
    if not lists:
        return []
    numbers, shared = _counts(np.concatenate(lists))
    begins, ends = index.ends[numbers].astype(np.int64), index.ends[numbers + 1].astype(np.int64)
    if len(numbers) > _MAX_PROPOSED:
        sizes = ends - begins
        if bigrams:
            sizes += np.where(sizes <= SHORT, sizes + 1, 0)
        best = np.argpartition(-shared / (len(grams) + sizes), _MAX_PROPOSED)[:_MAX_PROPOSED]
        begins, ends = begins[best], ends[best]
    content = memoryview(index.text.data)
    return [
        str(content[begin:end], errors="replace")
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]


def _counts(postings: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the distinct numbers among postings, ascending, and how often each occurs."""
    ordered = np.sort(postings)
    firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[firsts], np.diff(np.append(firsts, len(ordered)))


def similar_surfaces(index: TrigramIndex, folded: str, k: int) -> list[SimilarSurface]:
    """Return the surfaces that are most similar to a folded text, the most similar first.

    The similarity is 1 - d / n, with d the insertions, deletions, replacements and transpositions of
    neighbours that are between two texts, and n the length of the longer one; or, for texts of phrases words,
    0.95 of that of the texts with their words in alphabetical order, where it is greater. One hundredth of it
    counts insertions and deletions only.

    Args:
        index: index of the build.
        folded: text, folded.
        k: largest number of surfaces.
    """
    from rapidfuzz.distance import OSA, Indel  # here: 20 ms, which few calls need
    from rapidfuzz.process import cdist

    proposals = proposed_surfaces(index, folded)
    if not proposals:
        return []

    def compare(scorer: Any, text: str, candidates: list[str]) -> NDArray[np.float32]:
        similarities: NDArray[np.float32] = cdist([text], candidates, scorer=scorer, dtype=np.float32)[0]
        return similarities

    similarities = (1 - _INDEL) * compare(OSA.normalized_similarity, folded, proposals)
    similarities += _INDEL * compare(Indel.normalized_similarity, folded, proposals)
    phrases = [number for number, surface in enumerate(proposals) if " " in surface]
    if phrases and " " in folded:
        candidates = [_in_order(proposals[number]) for number in phrases]
        of_sorted_words = compare(Indel.normalized_similarity, _in_order(folded), candidates)
        similarities[phrases] = np.maximum(similarities[phrases], _REORDERED * of_sorted_words)
    best = np.argsort(-similarities, kind="stable")[: 4 * k].tolist()
    ranked = sorted(best, key=lambda number: (-similarities[number], proposals[number]))
    return [SimilarSurface(proposals[number], float(similarities[number])) for number in ranked[:k]]


def _in_order(text: str) -> str:
    return " ".join(sorted(text.split(" ")))
