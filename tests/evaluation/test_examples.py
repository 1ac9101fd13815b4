"""Examples: choices as pairs, files together, a tenth held out, and the names that tags mean."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.evaluation.examples import (
    HELD_OUT,
    Example,
    alternatives,
    duplicate_id,
    gold_labels,
    hold_out,
    merge_files,
    warn_of_labels,
)


def examples(count, groups=0):
    return [Example(f"x{n}", ("text",), group=f"g{n % groups}" if groups else "") for n in range(count)]


# -- choices ----------------------------------------------------------------


def test_a_choice_without_a_context_is_a_text_by_itself():
    example = Example("q", (), gold=1, choices=("a", "b"))
    assert [(each.id, each.texts, each.group) for each in alternatives(example)] == [
        ("q.0", ("a",), "q"),
        ("q.1", ("b",), "q"),
    ]


def test_a_choice_stands_behind_its_context_and_a_question_before_it():
    context = Example("q", ("context",), choices=("a", "b"))
    assert [each.texts for each in alternatives(context)] == [("context", "a"), ("context", "b")]
    question = Example("q", ("context", "why?"), choices=("a", "b"))
    assert [each.texts for each in alternatives(question)] == [("context", "why? a"), ("context", "why? b")]


def test_a_choice_does_not_know_which_one_is_right():
    for each in alternatives(Example("q", ("c",), gold=1, choices=("a", "b"), tail=("[X]",))):
        assert each.gold is None and each.choices == () and each.tail == ("[X]",)
    assert alternatives(Example("q", ("c",))) == []


# -- ids and files ----------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "twice"), [("", None), ("abc", None), ("abca", "a"), ("abba", "b"), ("aa", "a")]
)
def test_the_first_id_that_comes_again_is_found(ids, twice):
    assert duplicate_id(ids) == twice


def test_one_file_keeps_its_ids_and_several_have_their_number_before_them():
    one, other = examples(2, groups=1), examples(2)
    assert merge_files([one]) == one and merge_files([one]) is not one
    merged = merge_files([one, other])
    assert [each.id for each in merged] == ["1.x0", "1.x1", "2.x0", "2.x1"]
    assert [each.group for each in merged] == ["1.g0", "1.g0", "", ""]
    assert merge_files([]) == []


# -- what is held out -------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, HELD_OUT - 1])
def test_of_few_examples_none_is_held_out(count):
    assert hold_out(examples(count)) == (examples(count), [])


@given(st.integers(0, 80), st.integers(0, 40), st.sampled_from(["id", "position"]))
def test_both_parts_are_all_examples_in_order_and_groups_stay_together(count, groups, by):
    every = examples(count, groups)
    learn, held_out = hold_out(every, by)
    position = {each.id: number for number, each in enumerate(every)}
    for part in (learn, held_out):
        numbers = [position[each.id] for each in part]
        assert numbers == sorted(numbers)
    assert Counter(learn) + Counter(held_out) == Counter(every)
    assert not ({each.group for each in learn} & {each.group for each in held_out}) - {""}
    if count >= HELD_OUT:
        keys = {each.group or each.id for each in every}
        assert len({each.group or each.id for each in held_out}) == len(keys) // HELD_OUT


def test_the_draw_is_the_same_each_time_and_no_stretch_of_the_file():
    [first, second] = [hold_out(examples(200))[1] for _ in range(2)]
    numbers = [int(each.id[1:]) for each in first]
    assert first == second and numbers[-1] - numbers[0] > 100


@given(st.permutations(range(30)))
def test_by_ids_the_draw_does_not_depend_on_the_order(order):
    every = [examples(30)[number] for number in order]
    assert {*hold_out(every, "id")[1]} == {*hold_out(examples(30), "id")[1]}


# -- markers, tags and labels -----------------------------------------------


@pytest.mark.parametrize(
    ("gold", "labels"),
    [("a", {"a"}), (("O", "B-X", "O"), {"O", "B-X"}), (frozenset("ab"), {"a", "b"}), (1.5, set()),
     (None, set()), (frozenset(), set())],
)  # fmt: skip
def test_the_labels_of_an_example_are_those_of_its_gold(gold, labels):
    assert {*gold_labels(Example("x", ("t",), gold=gold))} == labels


@pytest.mark.parametrize(
    ("labels", "count", "warned"), [(2, 4, False), (3, 5, True), (1, 1, True), (10, 100, False)]
)
def test_labels_that_hardly_two_examples_share_are_warned_of(labels, count, warned, caplog):
    warn_of_labels([f"label {number}" for number in range(labels)], count)
    assert bool(caplog.records) is warned
    assert not warned or f"{labels} labels in {count} examples, as 'label 0'" in caplog.text
