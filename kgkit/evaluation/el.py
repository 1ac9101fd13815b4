"""Entity linking: the score of links.

Scores are those of strong matching, in the words of Cornolti et al. (2013), "A Framework for Benchmarking
Entity-Annotation Systems": a link is right if its span is that of a gold mention, to the character, and
its entity is of the same page. Of a mention with several entities any is right.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import msgspec

from kgkit.errors import UsageError
from kgkit.evaluation.el_files import GoldDocument, Labelled, PageOf, plain_title

log = logging.getLogger(__name__)


class LinkScore(msgspec.Struct, frozen=True, kw_only=True):
    """What was right and what went wrong, counted. Scores of documents add up to that of all.

    Gold mentions with an entity are counted once, under the first of these that holds:

        right           a link has their span and entity
        wrong_choice    a link or NIL has their span; their entity was a candidate
        no_candidate    a link or NIL has their span; their entity was none of its candidates
        wrong_entity    a link or NIL has their span; its candidates are unknown
        misplaced       a link or NIL overlaps them
        missed          nothing does

    Links are counted once too, NIL being none:

        right           as above
        link_wrong      on the span of a gold mention with another entity
        link_on_nil     on the span of a gold NIL
        link_misplaced  overlapping a gold mention, of an entity or NIL
        link_nowhere    where no gold mention is

    `nil` counts gold NILs, `documents` documents. The last three are sums of what
    each document has by itself; where it has neither gold entities nor links, that is 1.
    """

    documents: int = 0
    right: int = 0
    wrong_choice: int = 0
    no_candidate: int = 0
    wrong_entity: int = 0
    misplaced: int = 0
    missed: int = 0
    nil: int = 0
    link_wrong: int = 0
    link_on_nil: int = 0
    link_misplaced: int = 0
    link_nowhere: int = 0
    precisions: Fraction = Fraction(0)
    recalls: Fraction = Fraction(0)
    f1s: Fraction = Fraction(0)

    def __add__(self, other: "LinkScore") -> "LinkScore":
        return LinkScore(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        )

    @property
    def spans(self) -> int:
        """Gold mentions with an entity whose span was found."""
        return self.right + self.wrong_choice + self.no_candidate + self.wrong_entity

    @property
    def mentions(self) -> int:
        """Gold mentions with an entity."""
        return self.spans + self.misplaced + self.missed

    @property
    def links(self) -> int:
        """Links to an entity."""
        return self.right + self.link_wrong + self.link_on_nil + self.link_misplaced + self.link_nowhere

    @property
    def precision(self) -> float:
        """Right of all links; 0 if there are none."""
        return self.right / self.links if self.links else 0.0

    @property
    def recall(self) -> float:
        """Right of all gold mentions with an entity."""
        return self.right / self.mentions if self.mentions else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 2 right / (links + mentions)."""
        return 2 * self.right / (self.links + self.mentions) if self.links + self.mentions else 0.0

    @property
    def macro_precision(self) -> float:
        """The mean of the precision of each document."""
        return float(self.precisions / self.documents) if self.documents else 0.0

    @property
    def macro_recall(self) -> float:
        """The mean of the recall of each document."""
        return float(self.recalls / self.documents) if self.documents else 0.0

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 of each document; not the F1 of the two other means."""
        return float(self.f1s / self.documents) if self.documents else 0.0

    @property
    def accuracy(self) -> float:
        """Right of the gold mentions with an entity whose span was found: of all, if spans were given."""
        return self.right / self.spans if self.spans else 0.0

    def as_dict(self) -> dict[str, object]:
        """Return the counts and the ratios, ready for JSON."""
        return {
            "documents": self.documents,
            "mentions": self.mentions,
            "nil": self.nil,
            "links": self.links,
            "right": self.right,
            "micro": {"precision": self.precision, "recall": self.recall, "f1": self.f1},
            "macro": {
                "precision": self.macro_precision,
                "recall": self.macro_recall,
                "f1": self.macro_f1,
            },
            "accuracy": self.accuracy,
            "mention_errors": {
                name: getattr(self, name)
                for name in ("wrong_choice", "no_candidate", "wrong_entity", "misplaced", "missed")
            },
            "link_errors": {
                name.removeprefix("link_"): getattr(self, name)
                for name in ("link_wrong", "link_on_nil", "link_misplaced", "link_nowhere")
            },
        }


class LinkOutcome(NamedTuple):
    """What became of a gold mention, or of a link: a count of `LinkScore`, or `nil` for a gold NIL.

    Attributes:
        kind: name of the count.
        gold: the gold mention; None for a link that is on the span of none.
        link: the link or NIL on the same span; None if there is none.
    """

    kind: str
    gold: Labelled | None
    link: Labelled | None


def document_outcomes(
    gold: Sequence[Labelled], links: Sequence[Labelled], page: PageOf | None = None
) -> Iterator[LinkOutcome]:
    """Yield the outcome of each gold mention of a document, then that of each link that is not correct.

    Args:
        gold: its mentions; those without an entity are NIL.
        links: a system's; those without an entity are NIL, and count as spans that were found.
        page: says which titles are equal; by itself an underscore is a space, no more.

    Raises:
        UsageError: if a span comes twice in *gold*, or in *links*.
    """
    page = page or plain_title
    gold_by_span, answers = _by_span(gold, "gold mentions"), _by_span(links, "links")
    near_gold, near_links = SpanRanges(gold_by_span), SpanRanges(answers)
    for span, mention in gold_by_span.items():
        answer = answers.get(span)
        if mention.entity is None:
            kind = "nil"
        elif answer is None:
            kind = "misplaced" if near_links.overlap(span) else "missed"
        else:
            kind = _verdict(mention, answer, page)
        yield LinkOutcome(kind, mention, answer)
    for span, answer in answers.items():
        if answer.entity is None:
            continue
        gold_mention = gold_by_span.get(span)
        if gold_mention is None:
            kind = "link_misplaced" if near_gold.overlap(span) else "link_nowhere"
            yield LinkOutcome(kind, None, answer)
        elif gold_mention.entity is None:
            yield LinkOutcome("link_on_nil", gold_mention, answer)
        elif answer.pages(page).isdisjoint(gold_mention.pages(page)):
            yield LinkOutcome("link_wrong", gold_mention, answer)


def score_outcomes(outcomes: Iterable[LinkOutcome]) -> LinkScore:
    """Return the score of a document, by the outcomes of its mentions and links."""
    counts = dict.fromkeys(LinkScore.__struct_fields__, 0)
    for outcome in outcomes:
        counts[outcome.kind] += 1
    score = LinkScore(**counts)  # type: ignore[arg-type]  # its sums are still 0
    return msgspec.structs.replace(
        score,
        documents=1,
        precisions=_ratio(score.right, score.links, score.mentions),
        recalls=_ratio(score.right, score.mentions, score.links),
        f1s=_ratio(2 * score.right, score.links + score.mentions, 0),
    )


def score_document(
    gold: Sequence[Labelled], links: Sequence[Labelled], page: PageOf | None = None
) -> LinkScore:
    """Score the links of one document; arguments and errors are those of `document_outcomes`."""
    return score_outcomes(document_outcomes(gold, links, page))


def score_links(
    documents: Iterable[GoldDocument],
    links: Mapping[str, Sequence[Labelled]],
    page: PageOf | None = None,
) -> LinkScore:
    """Score a system's links, by document id, to the documents of a data set, of which one is read at a time.

    A document without links has none right. Links to a document that is not in
    the data set are not scored, with a warning.
    """
    total, names = LinkScore(), set[str]()
    for gold in documents:
        names.add(gold.document.id)
        total += score_document(gold.gold, links.get(gold.document.id, ()), page)
    skipped = [name for name in links if name not in names]
    if skipped:
        log.warning(
            "links to %d documents have no gold and are not scored, the first is %r", len(skipped), skipped[0]
        )
    return total


def _verdict(mention: Labelled, answer: Labelled, page: PageOf) -> str:
    """Say under what a gold mention is counted, whose span has an answer."""
    gold_pages = mention.pages(page)
    if not gold_pages.isdisjoint(answer.pages(page)):
        return "right"
    if answer.candidates is None:
        return "wrong_entity"
    return "wrong_choice" if any(page(each) in gold_pages for each in answer.candidates) else "no_candidate"


def _by_span(labelled: Sequence[Labelled], what: str) -> dict[tuple[int, int], Labelled]:
    by_span = {(each.start, each.end): each for each in labelled}
    if len(by_span) < len(labelled):
        raise UsageError(f"{len(labelled) - len(by_span)} of {len(labelled)} {what} have the span of another")
    return by_span


def _ratio(part: int, total: int, remainder: int) -> Fraction:
    """Return part of total; of nothing it is 0, or 1 if there is no remainder either."""
    return Fraction(part, total) if total else Fraction(0 if remainder else 1)


class SpanRanges:
    """Tells whether any of many ranges overlaps another.

    Args:
        spans: ranges, (start, end).
    """

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._reached = [*accumulate((end for _, end in ordered), max)]

    def overlap(self, span: tuple[int, int]) -> bool:
        """Say whether any range shares a code point with *span*, (start, end)."""
        start, end = span
        before = bisect_left(self._starts, end)  # as many begin before it ends
        return before > 0 and self._reached[before - 1] > start
