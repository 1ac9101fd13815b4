"""Answers to questions, ranked: the files of nlpcc_dbqa, and the mean reciprocal rank.

Duan (2016), "Overview of the NLPCC-ICCPOL 2016 Shared Task: Open Domain Chinese Question Answering", in files
like those of K-BERT (Liu et al. 2020): a row is a question with one of its possible answers, and 1 if it is
right, else 0. The first line names the columns, in any order:

    qid <TAB> text_a <TAB> text_b <TAB> label
    1 <TAB> 谁画了蒙娜丽莎？ <TAB> 蒙娜丽莎是达芬奇的画。 <TAB> 1
    1 <TAB> 谁画了蒙娜丽莎？ <TAB> 它在巴黎。 <TAB> 0

All rows with one qid are of one question, next to each other or not. A file without gold has no label.
The task `ranking` of `kgkit.evaluation.tasks` reads them.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kgkit.errors import UsageError
from kgkit.evaluation.files import missing_gold


class Answer(NamedTuple):
    """A possible answer to a question.

    Attributes:
        id: unique among those that are scored together.
        qid: key of the question.
        right: whether it is an answer; None where that is unknown.
    """

    id: str
    qid: str
    right: bool | None


class RankingScore(NamedTuple):
    """How far up right answers were ranked, in [0, 1]; 0 if there are no questions.

    Attributes:
        mrr: mean reciprocal rank, over questions, of the right answer that is ranked highest.
        map: mean average precision: of each question the mean, over its right answers, of the part that is
            right of those down to it.
        questions: that have a right answer; only these count.
        unanswerable: questions of which no answer is right.
    """

    mrr: float
    map: float
    questions: int
    unanswerable: int


def score_ranking(answers: Iterable[Answer], scores: Mapping[str, float]) -> RankingScore:
    """Score a ranking of the answers of each question: the higher its score, the higher an answer is ranked.

    Of answers with one score the wrong ones are ranked higher, so nothing is gained by scores that do not
    tell answers apart: if all are alike, the right ones come last.

    Args:
        answers: with gold.
        scores: of each, by its id: any numbers, infinite ones too.

    Raises:
        UsageError: if an answer has no label, the id of another, or no score, or its score is not a number.

    Departures:
        The released code of K-BERT resolves ties in favour of the right answer if a question has several, and
        counts a question once for each place of a tie if it has one. Every question there must have a right
        answer, and its rows must be next to each other.
    """
    reciprocal, average = list[float](), list[float]()
    by_question = _right_ranks(answers, scores)
    for right_ranks in by_question.values():
        if right_ranks:
            reciprocal.append(1 / right_ranks[0])
            average.append(
                sum(count / rank for count, rank in enumerate(right_ranks, start=1)) / len(right_ranks)
            )
    count = len(reciprocal)
    return RankingScore(
        sum(reciprocal) / max(1, count), sum(average) / max(1, count), count, len(by_question) - count
    )


def first_right_ranks(answers: Iterable[Answer], scores: Mapping[str, float]) -> dict[str, int]:
    """Return the rank, from 1, of the highest right answer to each question that has one, by its key.

    Args:
        answers: as for `score_ranking`.
        scores: likewise.

    Raises:
        UsageError: as `score_ranking` does.
    """
    return {qid: right[0] for qid, right in _right_ranks(answers, scores).items() if right}


def _right_ranks(answers: Iterable[Answer], scores: Mapping[str, float]) -> dict[str, list[int]]:
    """Return the ranks of the right answers to each question, from 1, the highest first."""
    ranked = dict[str, list[tuple[float, bool]]]()
    ids = set[str]()
    for answer in answers:
        if answer.right is None:
            raise missing_gold(f"answer {answer.id}")
        if answer.id in ids:
            raise UsageError(f"two answers have the id {answer.id!r}: score those of one file")
        ids.add(answer.id)
        score = scores.get(answer.id)
        if score is None or math.isnan(score):
            problem = "no score" if score is None else "a score that is not a number"
            raise UsageError(
                f"answer {answer.id} (question {answer.qid}) has {problem}: each needs one to be ranked"
            )
        ranked.setdefault(answer.qid, []).append((-score, answer.right))
    return {
        qid: [rank for rank, (_, right) in enumerate(sorted(pairs), start=1) if right]
        for qid, pairs in ranked.items()
    }
