"""Scores of passages in files: what is written is read again, and what is none is refused."""

import json
import math

import numpy as np
import pytest

from kgkit.errors import SourceError, UsageError
from kgkit.evaluation.passage_scores import (
    ScoredPassages,
    accuracy_of_sums,
    check_same_pieces,
    perplexity_of_sums,
    read_passage_scores,
    write_passage_scores,
)

COLUMNS = np.array([[math.log(4), 1, 2], [2 * math.log(2), 0, 1]])  # nats, correct, pieces
SCORED = ScoredPassages(COLUMNS, ["01", "02"])


def test_perplexity_and_accuracy_are_of_all_pieces_together():
    sums = COLUMNS.sum(0)
    assert perplexity_of_sums(sums) == pytest.approx(16 ** (1 / 3))
    assert accuracy_of_sums(sums) == pytest.approx(1 / 3)
    assert perplexity_of_sums(np.zeros(3)) == 1 and accuracy_of_sums(np.zeros(3)) == 0


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "scores.jsonl.gz"
    write_passage_scores(path, [("a", SCORED), ("b", ScoredPassages(COLUMNS[:1], ["03"]))])
    read = read_passage_scores(path, ["b", "a"])
    assert np.array_equal(read["a"].columns, COLUMNS) and np.array_equal(read["b"].columns, COLUMNS[:1])
    assert (read["a"].masks, read["b"].masks) == (["01", "02"], ["03"])


LINE = {"set": "a", "passage": 1, "pieces": 2, "correct": 1, "nats": 1.5, "masks": "01"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "no score of a passage"),
        (json.dumps({"set": "a"}), "no score of a passage"),
        ("[" * 100_000, "no score of a passage"),
        (json.dumps(LINE | {"set": "b"}), "no set is called 'b', they are a"),
        (json.dumps(LINE | {"passage": 2}), "expected passage 1 of a, found 2"),
        (json.dumps(LINE | {"correct": 3}), "cannot be the scores of a passage"),
        (json.dumps(LINE | {"nats": -1}), "cannot be the scores of a passage"),
    ],
)
def test_what_is_no_score_is_refused_with_its_line(tmp_path, line, problem):
    path = tmp_path / "scores.jsonl"
    path.write_text("\n" + line + "\n")
    with pytest.raises(SourceError, match=problem) as caught:
        read_passage_scores(path, ["a"])
    assert caught.value.line == 2


def test_scores_of_other_masked_pieces_are_refused(tmp_path):
    for masks in (["01", "02"], ["", ""]):
        check_same_pieces(tmp_path, "a", SCORED, masks)
    for masks in (["01"], ["02", "01"], ["", "", ""], []):
        with pytest.raises(UsageError, match="compare models with one tokenizer"):
            check_same_pieces(tmp_path, "a", SCORED, masks)
