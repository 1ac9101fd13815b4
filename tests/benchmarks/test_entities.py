"""The intervals and comparisons of linkers of entities, of which the benchmark makes its tables."""

import numpy as np
import pytest

from benchmarks.entities import (
    KINDS,
    Answered,
    LinkedGold,
    accuracy_and_f1,
    best_threshold,
    columns_at,
    columns_of,
    mean_f1,
    paired_rows,
    row,
    scores_at,
    seeds_of,
    with_interval,
)
from kgkit.evaluation.el_files import Labelled
from kgkit.evaluation.significance import Interval
from kgkit.types import Link, LinkCandidate

CORRECT, WRONG = Answered(0.9, True, True, True), Answered(0.8, False, True, False)
NIL_LINKED, NO_CANDIDATE = Answered(0.3, False, False, False), Answered(0.0, False, True, False)
UNSURE = Answered(0.2, True, True, False)


def test_columns_count_links_of_a_threshold_and_the_best_candidates_of_any():
    documents = [[CORRECT, WRONG, NIL_LINKED], [NO_CANDIDATE, UNSURE], []]
    assert columns_at(documents, 0.0).tolist() == [[1, 3, 2, 1], [1, 1, 2, 1], [0, 0, 0, 0]]
    assert columns_at(documents, 0.25).tolist() == [[1, 3, 2, 1], [0, 0, 2, 1], [0, 0, 0, 0]]
    assert columns_at(documents, 0.85).tolist() == [[1, 1, 2, 1], [0, 0, 2, 1], [0, 0, 0, 0]]


def test_accuracy_is_over_entities_and_f1_over_links_and_entities():
    accuracy, f1 = accuracy_and_f1(np.array([2.0, 4.0, 5.0, 3.0]))
    assert (accuracy, f1) == (pytest.approx(3 / 5), pytest.approx(4 / 9))
    assert accuracy_and_f1(np.zeros((7, 4))).tolist() == [[0, 0]] * 7


def test_the_threshold_is_that_of_the_best_f1():
    assert best_threshold([[CORRECT, NIL_LINKED], [NIL_LINKED]]) == pytest.approx(0.31)
    assert best_threshold([[CORRECT, UNSURE]]) == 0.0


def test_a_row_has_scores_with_intervals_of_each_set():
    sets = {"testa": [[CORRECT], [CORRECT, WRONG], [UNSURE]], "testb": [[CORRECT, UNSURE]]}
    model, *cells = row("m", sets, 2.4)
    assert model == "m" and cells[-2:] == ["0.00", "2"]
    assert cells[0].startswith("75.00 [") and cells[2].startswith("75.00 [")
    assert cells[4] == "100.00 [0.0, 100.0]"


def test_an_interval_stands_beside_its_score_in_hundredths():
    assert with_interval(0.71234, Interval(0.6, 0.8)) == "71.23 [60.0, 80.0]"
    assert with_interval(-0.011, Interval(-0.02, 0.001)) == "-1.10 [-2.0, 0.1]"


def test_seeds_are_models_whose_names_differ_in_a_number_at_the_end():
    assert seeds_of(["prior", "a-0", "a-1", "b-2-x", "c-10"]) == {
        "prior": ["prior"], "a": ["a-0", "a-1"], "b-2-x": ["b-2-x"], "c": ["c-10"],
    }  # fmt: skip


def test_the_mean_f1_of_seeds_is_of_columns_side_by_side():
    assert mean_f1(np.array([1.0, 1, 1, 0, 1, 1])).tolist() == [0.5]
    assert mean_f1(np.zeros((4, 6))).shape == (4, 1)


def test_seeds_are_compared_with_those_of_another_model_and_with_a_model_without():
    good, bad = columns_at([[CORRECT]] * 30, 0.0), columns_at([[WRONG]] * 30, 0.0)
    columns = {
        "bad": {"testa": bad, "testb": bad},
        "good-0": {"testa": good, "testb": good},
        "good-1": {"testa": good, "testb": bad},
        "same-0": {"testa": good, "testb": good},
        "same-1": {"testa": good, "testb": bad},
    }
    rows = {(split, group): cells for split, group, _, *cells in paired_rows(columns, "good")}
    assert list(rows) == [("testa", "bad"), ("testb", "bad"), ("testa", "same"), ("testb", "same")]
    assert rows["testa", "bad"][:3] == ["0.00", "100.00", "-100.00 [-100.0, -81.0]"]
    assert rows["testb", "bad"][:2] == ["0.00", "50.00"]
    assert float(rows["testa", "bad"][3]) < 0.001 and rows["testa", "bad"][4] == ""
    assert rows["testb", "bad"][4] == "0.5000 (n = 2)"  # 100 and 0 points above
    assert rows["testb", "same"] == ["50.00", "50.00", "0.00 [0.0, 0.0]", "1.0000", ""]


def _link(start, end, entity, score, *others):
    candidates = [LinkCandidate(name, 0.5, score) for name in (entity, *others) if name]
    return Link(start, end, "", "kb", entity, None, "", score, entity is None, candidates)


def test_links_below_the_threshold_are_nil_and_their_candidates_count():
    gold = [Labelled(0, 2, "A"), Labelled(3, 5, "B"), Labelled(6, 8, "C"), Labelled(9, 11, "D")]
    links = [
        _link(0, 2, "A-redirect", 0.9), _link(3, 5, "X", 0.9, "B"), _link(6, 8, "X", 0.9),
        _link(9, 11, "D", 0.1), _link(30, 32, "Y", 0.9),
    ]  # fmt: skip
    [score] = scores_at([LinkedGold(gold, links)], 0.5, lambda name: name.removesuffix("-redirect"))
    kinds = {kind: getattr(score, kind) for kind in KINDS if getattr(score, kind)}
    assert kinds == {"right": 1, "wrong_choice": 2, "no_candidate": 1, "link_wrong": 2, "link_nowhere": 1}
    assert columns_of([score]).tolist() == [[1, 4, 4]]
