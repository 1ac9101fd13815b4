"""Iterative refinement, step by step on documents made by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest

from kgkit.inputs.ebert_linking import CandidateSpan
from kgkit.methods.ebert_linking import Refinement


def span(mention, first, end, *ids):
    return CandidateSpan(first, end, mention, np.arange(len(ids)), ids, np.zeros(len(ids), np.float32))


def update(refinement, number, rounds, rows):
    """Link what a round has read: the probabilities of spans, by the index of their mention."""
    refinement.probabilities |= {mention: np.array(row, np.float32) for mention, row in rows.items()}
    return refinement.update(number, rounds)


def linked(refinement):
    return [(span.mention, entity) for span, entity in refinement.links]


def test_a_third_of_the_links_is_fixed_in_each_of_three_rounds_the_surest_first():
    spans = [span(number, 2 * number, 2 * number + 1, 10 + number, 20 + number) for number in range(4)]
    refinement = Refinement(spans, null=True)
    first = {0: [0.5, 0.1, 0.4], 1: [0.1, 0.8, 0.1], 2: [0.4, 0.4, 0.2], 3: [0.1, 0.2, 0.7]}
    # m = 0, n = 3 (the fourth means nothing): k = ceil(3 / 3) - 0
    assert update(refinement, 1, 3, first)
    assert linked(refinement) == [(1, 21)]
    assert [span.mention for span in refinement.unlinked] == [0, 2, 3]
    # now the fourth means something and the first nothing: m = 1, n = 2, k = ceil(2 * 3 / 3) - 1 = 1
    assert update(refinement, 2, 3, {0: [0.4, 0.1, 0.5], 2: [0.3, 0.5, 0.2], 3: [0.2, 0.6, 0.2]})
    assert linked(refinement) == [(1, 21), (2, 22)]
    assert update(refinement, 3, 3, {0: [0.6, 0.1, 0.3], 3: [0.1, 0.7, 0.2]})
    assert linked(refinement) == [(1, 21), (2, 22), (3, 23), (0, 10)]
    assert refinement.probabilities[1] == pytest.approx([0.1, 0.8, 0.1])  # of the round that linked it
    assert refinement.probabilities[0] == pytest.approx([0.6, 0.1, 0.3])


def test_of_spans_that_are_as_sure_the_first_and_then_the_longest_is_linked():
    refinement = Refinement([span(0, 1, 2, 5), span(1, 0, 1, 6), span(2, 0, 3, 7)], null=True)
    update(refinement, 1, 1, {mention: [0.5, 0.5] for mention in range(3)})
    assert linked(refinement) == [(2, 7)] and not refinement.unlinked


def test_without_a_null_entity_the_likeliest_candidate_says_how_sure_a_span_is():
    refinement = Refinement([span(0, 0, 1, 5, 6), span(1, 1, 2, 7, 8)], null=False)
    assert update(refinement, 1, 2, {0: [0.6, 0.4], 1: [0.1, 0.9]})
    assert linked(refinement) == [(1, 8)]
    update(refinement, 2, 2, {0: [0.3, 0.7]})
    assert linked(refinement) == [(1, 8), (0, 6)]


def linked_as_published(spans, distributions, rounds):
    """Return the links of all rounds, by section 5.2 of the paper and its footnote 11, step by step.

    Args:
        spans: spans of a text.
        distributions: for each round the distribution of each span, ε last.
        rounds: J.
    """
    links = []  # of them there are m
    for j, distribution in enumerate(distributions, 1):
        read = [each for each in spans if not any(each.overlaps(other) for other, _ in links)]
        meant = [each for each in read if distribution[each.mention].argmax() < len(each.ids)]  # n of them
        meant.sort(key=lambda each: (distribution[each.mention][-1], each.first, -each.end))
        kept = []
        for each in meant:
            if not any(each.overlaps(other) for other in kept):
                kept.append(each)
        count = math.ceil(Fraction(j * (len(links) + len(meant)), rounds)) - len(links)
        links += [(each, each.ids[distribution[each.mention].argmax()]) for each in kept[: max(0, count)]]
    return links


@pytest.mark.parametrize("seed", range(40))
def test_links_of_spans_that_overlap_are_those_of_the_paper(seed):
    """All spans that mean something are counted, also those that a surer one leaves out."""
    drawn = np.random.default_rng(seed)
    spans = []
    for mention in range(int(drawn.integers(1, 12))):
        first = int(drawn.integers(0, 12))
        spans.append(span(mention, first, first + int(drawn.integers(1, 5)), *range(drawn.integers(1, 4))))
    rounds = int(drawn.integers(1, 5))
    distributions = [
        {each.mention: drawn.dirichlet(np.ones(len(each.ids) + 1)) for each in spans} for _ in range(rounds)
    ]
    refinement = Refinement(spans, null=True)
    for number, distribution in enumerate(distributions, 1):
        unlinked = [each.mention for each in refinement.unlinked]
        update(refinement, number, rounds, {mention: distribution[mention] for mention in unlinked})
    published = linked_as_published(spans, distributions, rounds)
    assert linked(refinement) == [(each.mention, entity) for each, entity in published]
