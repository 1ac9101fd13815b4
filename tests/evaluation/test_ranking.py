"""Answers to questions: files like those of nlpcc_dbqa, and ranks beside every order that scores allow."""

import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.ranking import Answer, RankingScore, score_ranking
from kgkit.evaluation.tasks import find_task

FILE = """\
qid\ttext_a\ttext_b\tlabel
1\t谁画了蒙娜丽莎？\t它在巴黎。\t0
1\t谁画了蒙娜丽莎？\t蒙娜丽莎是达芬奇的画。\t1

2\t番茄是水果吗？\t番茄是一种蔬菜。\t1
"""


@pytest.fixture
def put(tmp_path):
    def write(content):
        path = tmp_path / "qa.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# -- files ------------------------------------------------------------------


def read(path):
    return find_task("ranking").read(path)


def test_each_row_is_a_question_with_an_answer(put):
    assert read(put(FILE)) == [
        Example("2", ("谁画了蒙娜丽莎？", "它在巴黎。"), group="1", gold="0"),
        Example("3", ("谁画了蒙娜丽莎？", "蒙娜丽莎是达芬奇的画。"), group="1", gold="1"),
        Example("5", ("番茄是水果吗？", "番茄是一种蔬菜。"), group="2", gold="1"),
    ]


def test_columns_in_another_order_further_ones_and_line_ends_change_nothing(put):
    plain = read(put(FILE))
    turned = "".join(
        "\t".join([*reversed(line.split("\t")), "x"] if line else []) + "\n" for line in FILE.splitlines()
    )
    for content in (turned, FILE.replace("\n", "\r\n"), "\ufeff" + FILE, FILE.rstrip("\n")):
        assert read(put(content)) == plain


def test_a_file_may_have_no_gold(put):
    assert read(put("text_b\tqid\ttext_a\nb\t7\ta\n")) == [Example("2", ("a", "b"), group="7")]


def test_examples_of_classification_have_the_ids_and_texts_of_the_answers(put):
    path = put(FILE)
    assert find_task("classification").read(path) == [example._replace(group="") for example in read(path)]


HEADER = "qid\ttext_a\ttext_b\tlabel\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "qa.tsv: no text in it: there are no lines"),
        (HEADER, "qa.tsv: no text in it: it names columns, and ends"),
        ("1\ta\tb\t1\n", "qa.tsv:1: expected .* or a first line that names the columns; found 4 fields"),
        ("a\tb\t1\n", "qa.tsv:1: there is no qid: .* names the columns qid, text_a, text_b, label"),
        ("label\ttext_a\ttext_b\n1\ta\tb\n", "qa.tsv:2: there is no qid"),
        ("qid\tqid\ttext_a\ttext_b\n", "qa.tsv:1: the column qid comes more than once"),
        (
            HEADER.replace("\n", "\tlabel\n") + "1\ta\tb\t1\t0\n",
            "qa.tsv:1: the column label comes more than once",
        ),
        (HEADER + "1\ta\tb\t1\n1\ta\t1\n", "qa.tsv:3: expected 4 tab-separated fields .*, found 3"),
        (HEADER + " \ta\tb\t1\n", "qa.tsv:2: there is no qid"),
        (HEADER + "1\ta\tb\t2\n", "qa.tsv:2: the label is '2'; it is 1 of a right answer, else 0"),
        (HEADER + "1\ta\tb\t\n", "qa.tsv:2: the label is empty"),
        (HEADER.encode() + "1\t谁\t他\t1\n".encode("gb18030"), "qa.tsv:2: not UTF-8"),
    ],
)
def test_what_is_no_such_file_is_told_with_its_line(put, content, told):
    with pytest.raises(SourceError, match=told):
        read(put(content))


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(NotThere, match="no file"):
        read(tmp_path / "none")


# -- scores -----------------------------------------------------------------


def answers_of(*rows):
    """Return answers with their scores, from the question, whether they are right, and the score of each."""
    answers = [Answer(str(place), qid, right) for place, (qid, right, _) in enumerate(rows)]
    return answers, {str(place): score for place, (*_, score) in enumerate(rows)}


def test_the_rank_is_that_of_the_highest_right_answer_of_each_question():
    found = score_ranking(*answers_of(
        ("a", False, 0.9), ("b", True, 0.1), ("a", True, 0.5), ("a", True, 0.4), ("b", False, -1),
        ("c", False, 0.3),
    ))  # fmt: skip
    assert found.mrr == pytest.approx((1 / 2 + 1) / 2)
    assert found.map == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2)
    assert (found.questions, found.unanswerable) == (2, 1)


def test_scores_that_do_not_tell_answers_apart_rank_right_ones_last():
    found = score_ranking(*answers_of(*[("a", place == 0, 0.5) for place in range(4)]))
    assert (found.mrr, found.map) == (1 / 4, 1 / 4)


def test_infinite_scores_and_those_of_an_array_are_ranked():
    answers, _ = answers_of(("a", True, 0), ("a", False, 0), ("a", False, 0))
    assert score_ranking(answers, {"0": -math.inf, "1": 0, "2": math.inf}).mrr == pytest.approx(1 / 3)
    values = np.array([0.5, 0.2, 0.1], np.float32)
    assert score_ranking(answers, dict(zip("012", values, strict=True))).mrr == 1


def precision_of(order):
    """Return the average precision of answers in this order."""
    parts = [Fraction(sum(order[:end]), end) for end, right in enumerate(order, start=1) if right]
    return sum(parts) / len(parts)


def worst(rows):
    """The slow twin: the least that any order allows in which no score is behind a lower one."""
    reciprocal, average = [], []
    for qid in {qid for qid, _, _ in rows}:
        own = [(right, score) for name, right, score in rows if name == qid]
        if not any(right for right, _ in own):
            continue
        orders = [
            [right for right, _ in order]
            for order in permutations(own)
            if all(one[1] >= other[1] for one, other in pairwise(order))
        ]
        reciprocal.append(min(Fraction(1, order.index(True) + 1) for order in orders))
        average.append(min(precision_of(order) for order in orders))
    count = len(reciprocal)
    return [float(sum(parts) / count) if count else 0.0 for parts in (reciprocal, average)], count


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 2)), max_size=9).filter(
        lambda rows: all([one[0] for one in rows].count(qid) <= 5 for qid in "abc")
    )
)
def test_no_order_that_the_scores_allow_is_worse(rows):
    found = score_ranking(*answers_of(*rows))
    expected, count = worst(rows)
    assert [found.mrr, found.map] == pytest.approx(expected)
    assert (found.questions, found.questions + found.unanswerable) == (count, len({row[0] for row in rows}))


def test_without_questions_that_have_an_answer_the_score_is_zero():
    assert score_ranking([], {}) == RankingScore(0, 0, 0, 0)
    assert score_ranking(*answers_of(("a", False, 1))) == RankingScore(0, 0, 0, 1)


def test_what_cannot_be_ranked_is_told():
    answers, scores = answers_of(("a", True, 1), ("a", False, 0))
    with pytest.raises(
        UsageError, match=r"answer 1 \(question a\) has no score: each needs one to be ranked"
    ):
        score_ranking(answers, {"0": 1})
    with pytest.raises(UsageError, match=r"answer 1 .* has a score that is not a number"):
        score_ranking(answers, scores | {"1": math.nan})
    with pytest.raises(UsageError, match="answer 1 has no label: score on a file with gold"):
        score_ranking([answers[0], answers[1]._replace(right=None)], scores)
    with pytest.raises(UsageError, match="two answers have the id '0': score those of one file"):
        score_ranking([answers[0], answers[0]], scores)
