"""Entity linking by other matchings than that of `el`: strong and weak, InKB and with NIL.

Cornolti et al. (2013), "A Framework for Benchmarking Entity-Annotation Systems", and GERBIL (Usbeck et al.
2015):

    strong    an annotation matches one of the same span and entity
    weak      it matches one that overlaps it and has the same entity
    InKB      annotations of NIL are left out, of gold and of links
    with NIL  NIL is an entity of its own

Precision is the share of links that match a gold annotation, recall the share of gold annotations that match
a link: by weak matching, several links may match one annotation. Where spans are those of the data, this is
GERBIL's experiment D2KB; where they were searched for, A2KB.
"""

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgkit.evaluation.el import SpanRanges
from kgkit.evaluation.el_files import Labelled, PageOf
from kgkit.evaluation.significance import Comparison, bootstrap_intervals, compare

Matching = Literal["strong", "weak"]
Scope = Literal["inkb", "nil"]

MEASURES: Final[tuple[tuple[Matching, Scope], ...]] = (
    ("strong", "inkb"), ("strong", "nil"), ("weak", "inkb"), ("weak", "nil"),
)  # fmt: skip
"""Every matching, with every scope."""

RATIOS: Final = ("precision", "recall", "f1", "macro_precision", "macro_recall", "macro_f1")
"""Columns of what `ratios` returns."""


class MatchCounts(NamedTuple):
    """Annotations of a document that match, and how many there are.

    Attributes:
        link_matches: links that match a gold annotation.
        links: links.
        gold_matches: gold annotations that match a link.
        gold: gold annotations.
    """

    link_matches: int
    links: int
    gold_matches: int
    gold: int


def count_matches(
    gold: Sequence[Labelled],
    links: Sequence[Labelled],
    page: PageOf,
    *,
    matching: Matching = "strong",
    scope: Scope = "inkb",
) -> MatchCounts:
    """Return how many annotations of a document match.

    Args:
        gold: its mentions; those without an entity are NIL.
        links: links of a system; those without an entity are NIL.
        page: function that gives equal titles one name.
        matching: which spans match.
        scope: whether NIL counts.
    """
    sides = [
        [
            (label.start, label.end, tuple(sorted(label.pages(page))) or (None,))
            for label in side
            if scope == "nil" or label.entity is not None
        ]
        for side in (gold, links)
    ]
    matches = [
        _matches(own, opposite, matching) for own, opposite in zip(sides, reversed(sides), strict=True)
    ]
    return MatchCounts(matches[1], len(sides[1]), matches[0], len(sides[0]))


_Annotation = tuple[int, int, tuple[str | None, ...]]
"""A span and its entities, which match those of another annotation if one is in both."""


def _matches(own: Sequence[_Annotation], opposite: Sequence[_Annotation], matching: Matching) -> int:
    """Return how many of *own* match an annotation of the opposite side."""
    if matching == "strong":
        known = {(start, end, entity) for start, end, entities in opposite for entity in entities}
        return sum(
            any((start, end, entity) in known for entity in entities) for start, end, entities in {*own}
        )
    spans: dict[str | None, list[tuple[int, int]]] = {}
    for start, end, entities in opposite:
        for entity in entities:
            spans.setdefault(entity, []).append((start, end))
    ranges = {entity: SpanRanges(of_entity) for entity, of_entity in spans.items()}
    return sum(
        any(entity in ranges and ranges[entity].overlap((start, end)) for entity in entities)
        for start, end, entities in own
    )


class DocumentCounts:
    """The counts of documents, by every measure, that intervals and tests are computed of, 128 bytes each."""

    def __init__(self) -> None:
        self._counts = array("q")
        self.documents = 0

    def add(self, gold: Sequence[Labelled], links: Sequence[Labelled], page: PageOf) -> None:
        """Count the annotations of a document, as `count_matches` does."""
        self.documents += 1
        for matching, scope in MEASURES:
            self._counts.extend(count_matches(gold, links, page, matching=matching, scope=scope))

    def extend(self, further: "DocumentCounts") -> None:
        """Add the documents of further counts."""
        self.documents += further.documents
        self._counts.extend(further._counts)

    def columns(self, matching: Matching = "strong", scope: Scope = "inkb") -> NDArray[np.float64]:
        """Return (D, 8): the four counts of each document, its precision, recall and F1, and 1.

        A document with neither gold annotations nor links has 1 for all three, and one that has either but
        not both has 0, as in `kgkit.evaluation.el`.
        """
        table = np.array(self._counts, np.int64).reshape(-1, len(MEASURES), 4)
        counts = table[:, MEASURES.index((matching, scope))].astype(np.float64)
        empty = (counts[:, 1] + counts[:, 3] == 0)[:, None]
        ratios = np.where(empty, 1.0, _precision_recall_f1(counts))
        return np.concatenate([counts, ratios, np.ones((len(counts), 1))], 1)


def ratios(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (…, 6) of sums (…, 8) of columns: micro precision, recall and F1, then macro ones."""
    macro = sums[..., 4:7] / np.maximum(sums[..., 7:], 1)
    return np.concatenate([_precision_recall_f1(sums), macro], -1)


def _precision_recall_f1(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    precision = counts[..., 0] / np.maximum(counts[..., 1], 1)
    recall = counts[..., 2] / np.maximum(counts[..., 3], 1)
    # 2 P R / (P + R) with a single division: what `LinkScore.f1` gives, to the last digit.
    matches = counts[..., 0] * counts[..., 2]
    total = counts[..., 0] * counts[..., 3] + counts[..., 2] * counts[..., 1]
    f1 = 2 * matches / np.where(total > 0, total, 1)
    return np.stack([precision, recall, f1], -1)


# -- intervals and comparisons ----------------------------------------------


def measures(counts: DocumentCounts) -> dict[str, dict[str, dict[str, Any]]]:
    """Return by every matching and scope the ratios of `RATIOS`, and their `intervals`, by name.

    All measures are of the same samples of documents.
    """
    columns = np.concatenate([counts.columns(*measure) for measure in MEASURES], 1)
    intervals = bootstrap_intervals(columns, _all_ratios)
    scores: dict[str, dict[str, dict[str, Any]]] = {}
    for number, (matching, scope) in enumerate(MEASURES):
        values = ratios(counts.columns(matching, scope).sum(0)).tolist()
        own = intervals[number * len(RATIOS) : (number + 1) * len(RATIOS)]
        scores.setdefault(matching, {})[scope] = {
            **dict(zip(RATIOS, values, strict=True)), "intervals": dict(zip(RATIOS, own, strict=True)),
        }  # fmt: skip
    return scores


def _all_ratios(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    by_measure = ratios(sums.reshape(*sums.shape[:-1], len(MEASURES), -1))
    return by_measure.reshape(*sums.shape[:-1], -1)


def compare_counts(
    first: DocumentCounts, second: DocumentCounts
) -> dict[str, dict[str, dict[str, Comparison]]]:
    """Return by every matching and scope how F1 and macro F1 of the second system differ from the first's.

    Args:
        first: counts of the system that is compared with.
        second: counts of the other, of the same documents.
    """
    scores: dict[str, dict[str, dict[str, Comparison]]] = {}
    for matching, scope in MEASURES:
        versus, own = (counts.columns(matching, scope) for counts in (first, second))
        scores.setdefault(matching, {})[scope] = {
            name: compare(versus, own, partial(_ratio, index=RATIOS.index(name)))
            for name in ("f1", "macro_f1")
        }
    return scores


def _ratio(sums: NDArray[np.float64], index: int) -> NDArray[np.float64]:
    ratio: NDArray[np.float64] = ratios(sums)[..., index]
    return ratio
