"""Columns of scores: the statistic of their sums is the score of the task, of any of its examples."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example, Prediction
from kgkit.evaluation.score_columns import sum_units, unit_numbers
from kgkit.evaluation.significance import Interval, paired_test
from kgkit.evaluation.tasks import TASKS, find_task

LABELS = {
    "classification": ("0", "1"),
    "acceptability": ("0", "1", "2"),
    "pair": ("no", "yes", "maybe"),
    "ranking": ("0", "1"),
    "tagging": ("O", "B-DRUG", "I-DRUG", "B-SIGN", "I-SIGN"),
    "wic": ("F", "T"),
    "relation": ("Owner-Thing(e1,e2)", "Owner-Thing(e2,e1)", "Part-Whole(e1,e2)", "Other"),
    "typing": ("person", "place", "event"),
    "regression": (),
    "choice": (),
}
TACRED_LABELS = ("no_relation", "per:title", "org:member", "per:age")
CASES = [*LABELS.items(), ("relation", TACRED_LABELS)]
IDS = [*LABELS, "tacred"]
NUMBERS = st.one_of(st.integers(0, 5).map(float), st.floats(-5, 5, allow_subnormal=False))


def answers(task, labels, width):
    """Answers of a task's kind, to an example with *width* tokens."""
    kinds = {
        "label": st.sampled_from(labels or ("",)),
        "labels": st.frozensets(st.sampled_from(labels or ("",))),
        "tags": st.tuples(*[st.sampled_from(labels or ("",))] * width),
        "number": NUMBERS,
        "choice": st.integers(0, 3),
    }
    return kinds[task.answer]


@st.composite
def answered(draw, name, labels, systems=1):
    """A task, examples with gold, predictions of systems; some examples lack answers, where they may."""
    task = find_task(name)
    needed = name in ("tagging", "ranking", "regression")
    examples, predictions = [], [[] for _ in range(systems)]
    for number in range(draw(st.integers(1, 8))):
        texts = tuple(draw(st.sampled_from("abcdefgh")) for _ in range(2))
        group = draw(st.sampled_from("xyz")) if name in ("ranking", "choice") else ""
        kind = answers(task, labels, draw(st.integers(1, 4)) if name == "tagging" else 1)
        gold = draw(kind)
        width = len(gold) if name == "tagging" else 1
        examples.append(Example(str(number), texts, group=group, gold=gold))
        for own in predictions:
            if needed or draw(st.integers(0, 5)):
                answer = draw(answers(task, labels, width))
                share = draw(st.sampled_from((0.0, 0.25, 0.5, 1.0)))
                own.append(Prediction(str(number), answer, {"1": share} if name == "ranking" else None))
    return task, examples, predictions


def first_score(task, examples, predictions, labels):
    name, value = next(iter(task.score(examples, predictions, labels).items()))
    return name, value


def test_every_task_has_a_case():
    assert {*LABELS} == {*TASKS}


@pytest.mark.parametrize(("name", "labels"), CASES, ids=IDS)
@given(data=st.data())
def test_the_statistic_of_the_sums_is_the_first_score(name, labels, data):
    try:
        task, examples, systems = data.draw(answered(name, labels, systems=2))
        scores = [first_score(task, examples, own, labels) for own in systems]
    except UsageError as error:  # none of the gold is positive: there is no F1 of the label 1
        assert "no instance has the label" in str(error)
        return
    columns = task.score_columns(examples, systems, labels)
    assert [columns.metric] * 2 == [metric for metric, _ in scores]
    sums = columns.columns.sum(1)  # (S, C)
    wanted = [value for _, value in scores]
    assert columns.statistic(sums).tolist() == pytest.approx(wanted, abs=1e-9)
    assert [float(columns.statistic(own)) for own in sums] == pytest.approx(wanted, abs=1e-9)
    assert all(columns.bounds.low <= value <= columns.bounds.high for value in wanted)


@pytest.mark.parametrize(("name", "labels"), CASES, ids=IDS)
@given(data=st.data())
def test_the_statistic_of_some_units_is_the_score_of_their_examples(name, labels, data):
    if name == "regression":
        return  # ranks are those among all examples
    task, examples, [own] = data.draw(answered(name, labels))
    units = unit_numbers(examples, task.unit)
    chosen = data.draw(st.sets(st.integers(0, int(units.max())), min_size=1))
    some = [example for example, unit in zip(examples, units, strict=True) if unit in chosen]
    ids = {example.id for example in some}
    columns = task.score_columns(examples, [own], labels)
    try:
        wanted = first_score(task, some, [each for each in own if each.id in ids], labels)
    except UsageError as error:
        assert "no instance has the label" in str(error)
        return
    if wanted[0] == columns.metric:  # of `relation`, the other examples may say that there are no directions
        sums = columns.columns[0, sorted(chosen)].sum(0)
        assert float(columns.statistic(sums)) == pytest.approx(wanted[1], abs=1e-9)


# -- units


def examples_with(groups=(), texts=()):
    if groups:
        return [Example(str(number), ("a",), group=group) for number, group in enumerate(groups)]
    return [Example(str(number), pair) for number, pair in enumerate(texts)]


def test_examples_of_a_group_are_one_unit_and_those_without_are_their_own():
    groups = examples_with(groups=("q", "", "p", "q", ""))
    assert unit_numbers(groups).tolist() == [0, 1, 2, 0, 3]
    assert unit_numbers([]).tolist() == []


def test_a_group_is_not_taken_for_an_example_of_that_id():
    assert unit_numbers([Example("1", ("a",)), Example("2", ("a",), group="1")]).tolist() == [0, 1]


def test_pairs_that_share_a_text_or_are_linked_by_others_are_one_unit():
    pairs = examples_with(texts=[("a", "b"), ("c", "d"), ("e", "f"), ("d", "e"), ("b", "g"), ("h", "h")])
    assert unit_numbers(pairs, "text").tolist() == [0, 1, 1, 1, 0, 2]


def test_columns_of_a_unit_are_added():
    columns = np.arange(12, dtype=float).reshape(2, 3, 2)
    assert sum_units(columns, np.array([1, 0, 1])).tolist() == [[[2, 3], [4, 6]], [[8, 9], [16, 18]]]


def test_pairs_of_wic_that_share_a_sentence_change_sides_together():
    task = find_task("wic")
    examples = [Example(str(n), ("a", f"b{n}"), gold="T") for n in range(4)]
    right, wrong = ([Prediction(str(n), answer) for n in range(4)] for answer in "TF")
    columns = task.score_columns(examples, [wrong, right])
    assert columns.columns.tolist() == [[[0, 4]], [[4, 4]]]
    assert paired_test(*columns.columns, columns.statistic) == 1.0


def test_answers_to_a_question_are_one_unit_with_its_reciprocal_rank():
    task = find_task("ranking")
    rows = [("q", "0", 0.9), ("p", "1", 0.3), ("q", "1", 0.5), ("q", "1", 0.1), ("n", "0", 0.5)]
    examples = [
        Example(str(n), ("a", "b"), group=group, gold=gold) for n, (group, gold, _) in enumerate(rows)
    ]
    predictions = [Prediction(str(n), "1", {"1": share}) for n, (_, _, share) in enumerate(rows)]
    columns = task.score_columns(examples, [predictions], ("0", "1"))
    assert columns.metric == "mrr"
    assert columns.columns.tolist() == [[[0.5, 1], [1, 1], [0, 0]]]


# -- correlations


def numbers(values):
    return [Prediction(str(n), float(value)) for n, value in enumerate(values)]


def test_correlations_of_answers_on_another_scale_compare_as_on_the_same():
    generator = np.random.default_rng(3)
    gold = generator.normal(size=60)
    examples = [Example(str(n), ("a",), gold=float(value)) for n, value in enumerate(gold)]
    near, far = (gold + spread * generator.normal(size=60) for spread in (0.4, 1.2))
    task = find_task("regression")
    same = task.score_columns(examples, [numbers(far), numbers(near)])
    scaled = task.score_columns(examples, [numbers(far), numbers(1e6 + 1e4 * near)])
    values = [paired_test(*each.columns, each.statistic) for each in (same, scaled)]
    assert values[0] == pytest.approx(values[1]) and values[0] < 0.01
    assert same.bounds == Interval(-1.0, 1.0)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300, 1e-300])
def test_answers_that_are_all_alike_have_no_correlation(value):
    task = find_task("regression")
    examples = [Example(str(n), ("a",), gold=float(n)) for n in range(7)]
    columns = task.score_columns(examples, [numbers([value] * 7)])
    assert float(columns.statistic(columns.columns[0].sum(0))) == 0.0


# -- what is refused


def test_a_task_without_columns_says_so():
    task = replace(find_task("choice"), columns=None)
    with pytest.raises(UsageError, match="the task choice has no columns of its score to compare"):
        task.score_columns([], [])


def test_predictions_are_checked_as_for_a_score():
    task = find_task("tagging")
    examples = [Example("1", ("a",), gold=("O",))]
    with pytest.raises(UsageError, match="example 1 has no prediction"):
        task.score_columns(examples, [[Prediction("1", ("O",))], []])
