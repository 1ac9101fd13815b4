"""Iterative refinement: the links of a text, the surest first (Poerner et al. 2020).

    J  rounds    j  this one, from 1    m  links so far    n  spans whose likeliest candidate is not ε

A round reads the spans that overlap no link, and gives each a distribution over its candidates and ε. The n
spans are sorted by 1 − p(ε), and one that overlaps a surer one is left out. The first k of those that are
left, or all, become links, and stand in the text as entities when the next round reads it:

    k = ⌈j (m + n) / J⌉ − m                                                              their footnote 11

Departures:
    Without ε, as for senses, the probability of the likeliest candidate takes the place of 1 − p(ε). The
    released code rounds down, sorts by the index of the likeliest candidate in its list, and lets spans whose
    likeliest candidate is ε stand in the way of others.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kgkit.inputs.ebert_linking import CandidateSpan, EntityLink
from kgkit.linking.scoring import Scores

ROUNDS: Final = 3
"""J, as published."""


class Refinement:
    """The spans of one part of a document, linked in rounds.

    Args:
        spans: spans that may be linked; they may overlap.
        null: whether distributions have ε, as their last number.

    Attributes:
        links: spans that are linked, the surest of the first round first.
        probabilities: the latest distribution of each span, by the index of its mention.
    """

    def __init__(self, spans: Sequence[CandidateSpan], *, null: bool) -> None:
        self.spans, self.null = tuple(spans), null
        self.links: list[EntityLink] = []
        self.probabilities: dict[int, Scores] = {}

    @property
    def unlinked(self) -> list[CandidateSpan]:
        """The spans that overlap no link: a round reads them."""
        linked = [span for span, _ in self.links]
        return [span for span in self.spans if not any(span.overlaps(other) for other in linked)]

    def update(self, probabilities: Mapping[int, Scores], number: int, rounds: int = ROUNDS) -> int:
        """Take the distributions of a round, link the surest spans, and return how many these are.

        Args:
            probabilities: (C,) of each span that was read, and of ε behind them, by its mention's index.
            number: j, from 1.
            rounds: J.
        """
        self.probabilities |= probabilities
        linkable = [span for span in self.unlinked if self._best(span) < len(span.ids)]
        before = len(self.links)
        count = max(0, -(-number * (before + len(linkable)) // rounds) - before)
        self.links += self._without_overlaps(linkable)[:count]
        return len(self.links) - before

    def is_excluded(self, span: CandidateSpan) -> bool:
        """Say whether a span overlaps one that was linked, and is not linked itself."""
        linked = {other.mention for other, _ in self.links}
        return span.mention not in linked and any(span.overlaps(other) for other, _ in self.links)

    def _without_overlaps(self, linkable: Sequence[CandidateSpan]) -> list[EntityLink]:
        """Return the links of spans, the surest first, without those that overlap a surer one."""
        chosen: list[EntityLink] = []
        for span in sorted(linkable, key=lambda span: (-self._confidence(span), span.first, -span.end)):
            if not any(span.overlaps(other) for other, _ in chosen):
                chosen.append((span, span.ids[self._best(span)]))
        return chosen

    def _best(self, span: CandidateSpan) -> int:
        return int(np.argmax(self.probabilities[span.mention]))

    def _confidence(self, span: CandidateSpan) -> float:
        probabilities = self.probabilities[span.mention]
        return 1 - float(probabilities[-1]) if self.null else float(probabilities.max())
