"""Iterative refinement, step by step on documents made by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest

from kgkit.inputs.ebert_linking import CandidateSpan
from kgkit.methods.ebert_linking import Refinement


def span(mention, first, end, *ids):
    return CandidateSpan(first, end, mention, np.arange(len(ids)), ids, np.zeros(len(ids), np.float32))


def rows(**probabilities):
    return {int(name[1:]): np.array(row, np.float32) for name, row in probabilities.items()}


def linked(refinement):
    return [(span.mention, entity) for span, entity in refinement.links]


def test_a_third_of_the_links_is_fixed_in_each_of_three_rounds_the_surest_first():
    spans = [span(number, 2 * number, 2 * number + 1, 10 + number, 20 + number) for number in range(4)]
    refinement = Refinement(spans, null=True)
    first = rows(m0=[0.5, 0.1, 0.4], m1=[0.1, 0.8, 0.1], m2=[0.4, 0.4, 0.2], m3=[0.1, 0.2, 0.7])
    # m = 0, n = 3 (the fourth means nothing): k = ceil(3 / 3) - 0
    assert refinement.update(first, 1, 3) == 1
    assert linked(refinement) == [(1, 21)]
    assert [span.mention for span in refinement.unlinked] == [0, 2, 3]
    # what stands beside it as an entity lets the fourth mean something: m = 1, n = 3, k = ceil(8 / 3) - 1 = 2
    assert refinement.update(rows(m0=[0.4, 0.1, 0.5], m2=[0.3, 0.5, 0.2], m3=[0.2, 0.6, 0.2]), 2, 3) == 1
    assert linked(refinement) == [(1, 21), (2, 22)]
    assert refinement.update(rows(m0=[0.6, 0.1, 0.3], m3=[0.1, 0.7, 0.2]), 3, 3) == 2
    assert linked(refinement) == [(1, 21), (2, 22), (3, 23), (0, 10)]
    assert refinement.probabilities[1] == pytest.approx([0.1, 0.8, 0.1])  # of the round that linked it
    assert refinement.probabilities[0] == pytest.approx([0.6, 0.1, 0.3])


def test_the_number_of_links_of_a_round_is_rounded_up():
    spans = [span(number, number, number + 1, number) for number in range(4)]
    refinement = Refinement(spans, null=True)
    sure = rows(m0=[0.9, 0.1], m1=[0.8, 0.2], m2=[0.7, 0.3], m3=[0.6, 0.4])
    assert refinement.update(sure, 1, 3) == 2  # ceil(4 / 3)
    assert linked(refinement) == [(0, 0), (1, 1)]


def test_a_span_that_overlaps_a_surer_one_is_never_linked_and_never_read_again():
    whole, part, other = span(0, 0, 3, 7), span(1, 2, 3, 8), span(2, 4, 5, 9)
    refinement = Refinement([whole, part, other], null=True)
    refinement.update(rows(m0=[0.6, 0.4], m1=[0.9, 0.1], m2=[0.2, 0.8]), 1, 1)
    assert linked(refinement) == [(1, 8)]
    assert [each.mention for each in refinement.unlinked] == [2]
    assert [refinement.is_excluded(each) for each in (whole, part, other)] == [True, False, False]


def test_a_span_that_means_nothing_stands_in_the_way_of_none():
    nothing, something = span(0, 0, 3, 7, 8), span(1, 1, 2, 9)
    refinement = Refinement([nothing, something], null=True)
    refinement.update(rows(m0=[0.35, 0.25, 0.4], m1=[0.55, 0.45]), 1, 1)  # 1 - p(null) is .6 and .55
    assert linked(refinement) == [(1, 9)]


def test_of_spans_that_are_as_sure_the_first_and_then_the_longest_is_linked():
    spans = [span(0, 1, 2, 5), span(1, 0, 1, 6), span(2, 0, 3, 7)]
    refinement = Refinement(spans, null=True)
    refinement.update(rows(m0=[0.5, 0.5], m1=[0.5, 0.5], m2=[0.5, 0.5]), 1, 1)
    assert linked(refinement) == [(2, 7)]


def test_a_round_that_links_nothing_leaves_everything_as_it_was():
    refinement = Refinement([span(0, 0, 1, 5)], null=True)
    assert [refinement.update(rows(m0=[0.2, 0.8]), number, 3) for number in (1, 2, 3)] == [0, 0, 0]
    assert not refinement.links
    assert not refinement.is_excluded(refinement.spans[0])


def test_without_a_null_entity_the_likeliest_candidate_says_how_sure_a_span_is():
    spans = [span(0, 0, 1, 5, 6), span(1, 1, 2, 7, 8)]
    refinement = Refinement(spans, null=False)
    assert refinement.update(rows(m0=[0.6, 0.4], m1=[0.1, 0.9]), 1, 2) == 1
    assert linked(refinement) == [(1, 8)]
    refinement.update(rows(m0=[0.3, 0.7]), 2, 2)
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
        refinement.update({mention: distribution[mention] for mention in unlinked}, number, rounds)
    published = linked_as_published(spans, distributions, rounds)
    assert linked(refinement) == [(each.mention, entity) for each, entity in published]
