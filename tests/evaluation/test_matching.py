"""Strong and weak matching, InKB and with NIL, and the counts that intervals are computed of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.evaluation import Labelled, LinkScore, score_document
from kgkit.evaluation.el_files import plain_title
from kgkit.evaluation.matching import MEASURES, RATIOS, DocumentCounts, MatchCounts, count_matches, ratios

#        0    5    10   15   20
GOLD = [Labelled(0, 5, "A"), Labelled(6, 9, None), Labelled(10, 15, "B_b"), Labelled(16, 20, "C")]
LINKS = [Labelled(0, 5, "A"), Labelled(6, 9, None), Labelled(10, 13, "B b"), Labelled(14, 15, "B b"),
         Labelled(16, 20, "D"), Labelled(21, 22, None)]  # fmt: skip


def counted(matching, scope, gold=GOLD, links=LINKS):
    return count_matches(gold, links, plain_title, matching=matching, scope=scope)


@pytest.mark.parametrize(
    ("matching", "scope", "expected"),
    [
        ("strong", "inkb", MatchCounts(1, 4, 1, 3)),
        ("strong", "nil", MatchCounts(2, 6, 2, 4)),
        ("weak", "inkb", MatchCounts(3, 4, 2, 3)),  # two links match one mention
        ("weak", "nil", MatchCounts(4, 6, 3, 4)),
    ],
)
def test_annotations_match_by_span_and_entity(matching, scope, expected):
    assert counted(matching, scope) == expected


def test_a_link_on_a_nil_mention_is_wrong_in_both_scopes():
    gold, links = [Labelled(0, 5, None)], [Labelled(0, 5, "A")]
    assert counted("strong", "inkb", gold, links) == (0, 1, 0, 0)
    assert counted("strong", "nil", gold, links) == (0, 1, 0, 1)


labels = st.lists(
    st.builds(
        lambda start, size, entity: Labelled(start, start + size, entity),
        st.integers(0, 12), st.integers(1, 4), st.sampled_from(["A", "B", None]),
    ),
    max_size=8, unique_by=lambda label: (label.start, label.end),
)  # fmt: skip


def by_hand(gold, links, weak, with_nil):
    """Every pair of annotations, one after the other."""

    def match(mention, link):
        if not with_nil and None in (mention.entity, link.entity):
            return False
        same_span = (mention.start, mention.end) == (link.start, link.end)
        overlap = mention.start < link.end and link.start < mention.end
        return mention.entity == link.entity and (overlap if weak else same_span)

    gold, links = ([label for label in side if with_nil or label.entity] for side in (gold, links))
    return (
        sum(any(match(mention, link) for mention in gold) for link in links), len(links),
        sum(any(match(mention, link) for link in links) for mention in gold), len(gold),
    )  # fmt: skip


@given(labels, labels)
def test_counts_are_those_of_every_pair(gold, links):
    for matching, scope in MEASURES:
        assert counted(matching, scope, gold, links) == by_hand(
            gold, links, matching == "weak", scope == "nil"
        )


@given(labels, labels)
def test_weak_matching_never_finds_less_than_strong(gold, links):
    for scope in ("inkb", "nil"):
        strong, weak = (counted(matching, scope, gold, links) for matching in ("strong", "weak"))
        assert strong.link_matches == strong.gold_matches <= min(weak.link_matches, weak.gold_matches)
        assert (strong.links, strong.gold) == (weak.links, weak.gold)


@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=5))
def test_strong_inkb_is_the_score_of_links(documents):
    total, counts = LinkScore(), DocumentCounts()
    for gold, links in documents:
        total += score_document(gold, links)
        counts.add(gold, links, plain_title)
    scores = dict(zip(RATIOS, ratios(counts.columns().sum(0)).tolist(), strict=True))
    # Micro scores agree to the last digit, macro ones but for the order of sums.
    assert (scores["precision"], scores["recall"], scores["f1"]) == (total.precision, total.recall, total.f1)
    assert scores["macro_precision"] == pytest.approx(total.macro_precision, abs=1e-12)
    assert scores["macro_recall"] == pytest.approx(total.macro_recall, abs=1e-12)
    assert scores["macro_f1"] == pytest.approx(total.macro_f1, abs=1e-12)


def test_columns_are_a_row_for_each_document():
    counts = DocumentCounts()
    counts.add(GOLD, LINKS, plain_title)
    counts.add([], [], plain_title)
    counts.add([], [Labelled(0, 1, "A")], plain_title)
    assert counts.documents == 3
    assert counts.columns("weak", "inkb").tolist() == [
        [3, 4, 2, 3, 3 / 4, 2 / 3, pytest.approx(12 / 17), 1],
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 1, 0, 0, 0, 0, 0, 1],
    ]


def test_counts_of_two_sets_are_those_of_their_documents():
    first, second = DocumentCounts(), DocumentCounts()
    first.add(GOLD, LINKS, plain_title)
    second.add([], LINKS, plain_title)
    both = DocumentCounts()
    for each in (first, second):
        both.extend(each)
    assert both.documents == 2
    assert both.columns().tolist() == [*first.columns().tolist(), *second.columns().tolist()]


@pytest.mark.parametrize(("matching", "scope"), MEASURES)
def test_a_mention_of_several_entities_matches_by_any_of_them(matching, scope):
    gold = [Labelled(0, 4, "A", others=("B",)), Labelled(6, 9, "C", others=("D",))]
    for first, second, right in (("A", "C", 2), ("B", "D", 2), ("B", "E", 1), ("E", "A", 0)):
        links = [Labelled(0, 4, first), Labelled(6, 9, second)]
        counts = count_matches(gold, links, plain_title, matching=matching, scope=scope)
        assert counts == (right, 2, right, 2)
