"""Types of entities: both kinds of file of Open Entity, made by hand, and the score counted by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.entity_typing import TYPES, Typed, TypeScore, read_typed, score_typed

CHOI = {
    "annot_id": "A:1",
    "left_context_token": ["In", "May", ","],
    "mention_span": "the old town",
    "right_context_token": ["burned", "."],
    "y_str": ["place", "location", "city"],
}
ZHANG = {
    "sent": "In May she sang .",
    "start": 7,
    "end": 10,
    "labels": ["person"],
    "ents": [["Q1", 3, 6, 0.5]],
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x"


def lines_of(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_lines_are_read_with_the_general_types_only(path):
    path.write_text(lines_of(CHOI, CHOI | {"annot_id": "A:2", "y_str": ["city"], "left_context_token": []}))
    first, second = read_typed(path)
    assert first == Typed("A:1", "In May , the old town burned .", (9, 21), frozenset({"place", "location"}))
    assert second == Typed("A:2", "the old town burned .", (0, 12), frozenset())
    assert first.text[slice(*first.span)] == second.text[slice(*second.span)] == "the old town"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_is_read_over_however_many_lines_it_goes(path, indent):
    path.write_text("\n" + json.dumps([ZHANG, ZHANG | {"labels": ["person", "singer"]}], indent=indent))
    first, second = read_typed(path)
    assert first == Typed("1", "In May she sang .", (7, 10), frozenset({"person"}))
    assert second == first._replace(id="2")


def test_a_span_is_without_white_space_at_its_ends(path):
    path.write_text(json.dumps([ZHANG | {"start": 6, "end": 11}]))
    assert [one.span for one in read_typed(path)] == [(7, 10)]
    path.write_text(lines_of(CHOI | {"mention_span": " town "}))
    (one,) = read_typed(path)
    assert one.text == "In May ,  town  burned ." and one.text[slice(*one.span)] == "town"


def test_ids_are_those_of_the_data_and_each_is_there_once(path):
    without = {key: value for key, value in CHOI.items() if key != "annot_id"}
    path.write_text(lines_of(CHOI, without, without, CHOI | {"annot_id": 7}))
    assert [one.id for one in read_typed(path)] == ["A:1", "2", "3", "7"]
    path.write_text(lines_of(CHOI, without, CHOI))
    with pytest.raises(SourceError, match=r":3: two examples have the id 'A:1', those of line 1 and 3: each"):
        [*read_typed(path)]


def test_a_file_without_gold_is_read(path):
    for content in (
        lines_of({key: value for key, value in CHOI.items() if key != "y_str"}),
        json.dumps([{key: value for key, value in ZHANG.items() if key != "labels"}]),
    ):
        path.write_text(content)
        (one,) = read_typed(path)
        assert one.types is None
        with pytest.raises(UsageError, match=rf"instance {one.id} has no types: score on a file with gold"):
            score_typed([one], {})


words = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1)


@given(st.lists(words), st.lists(words, min_size=1), st.lists(words))
def test_both_kinds_of_file_say_the_same(tmp_path_factory, left, span, right):
    text, begin = " ".join([*left, *span, *right]), sum(len(word) + 1 for word in left)
    mention = " ".join(span)
    path = tmp_path_factory.getbasetemp() / "typed"
    contexts = {"left_context_token": left, "right_context_token": right}
    path.write_text(lines_of(CHOI | contexts | {"mention_span": mention}))
    (by_line,) = read_typed(path)
    path.write_text(
        json.dumps([{"sent": text, "start": begin, "end": begin + len(mention), "labels": CHOI["y_str"]}])
    )
    (by_list,) = read_typed(path)
    assert by_line._replace(id="1") == by_list
    assert by_list.text[slice(*by_list.span)] == mention


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "x: no instance in it: this is not a file of Open Entity"),
        ("[]", "x: no instance in it: the list is empty"),
        (lines_of(CHOI, ZHANG), "x:2: expected an instance as Choi et al. have them, or one JSON list"),
        (json.dumps([ZHANG, CHOI]), r"x: expected a JSON list of instances as Zhang .*\$\[1\]"),
        (lines_of(CHOI | {"mention_span": " "}), "x:1: mention_span has nothing in it"),
        (json.dumps([ZHANG | {"end": 18}]), "x: instance 1: the span is 7 to 18, expected 0 to 17"),
        (json.dumps([ZHANG | {"end": 7}]), "x: instance 1: the span is 7 to 7, expected 0 to 17"),
        (json.dumps([ZHANG | {"start": -1}]), "x: instance 1: the span is -1 to 10, expected 0 to 17"),
        (json.dumps([ZHANG | {"start": 6, "end": 7}]), "x: instance 1: the span is nothing but white space"),
    ],
)
def test_what_is_no_such_file_is_told_with_its_place(path, content, told):
    path.write_text(content)
    with pytest.raises(SourceError, match=told):
        list(read_typed(path))
    path.unlink()
    with pytest.raises(NotThere):
        list(read_typed(path))


def instances(*types):
    return [Typed(str(n), "a", (0, 1), frozenset(one.split())) for n, one in enumerate(types)]


def test_the_score_is_over_the_types_of_all_instances_together():
    gold = instances("person", "place location", "", "event time")
    answers = {
        "0": frozenset({"person", "entity"}),
        "1": frozenset({"place"}),
        "2": frozenset({"object"}),
        "3": frozenset(),
    }
    # Right: person, place; told: 4; to be told: 5.
    assert score_typed(gold, answers) == TypeScore(
        pytest.approx(2 / 4), pytest.approx(2 / 5), pytest.approx(4 / 9), 4
    )
    without = {name: answers[name] for name in "012"}
    assert score_typed(gold, without) == score_typed(gold, answers)


def test_where_nothing_was_told_or_is_there_the_score_is_0():
    assert score_typed(instances("person"), {}) == TypeScore(0, 0, 0, 1)
    assert score_typed(instances(""), {"0": frozenset({"person"})}) == TypeScore(0, 0, 0, 1)
    assert score_typed([], {}) == TypeScore(0, 0, 0, 0)


def test_an_answer_is_of_the_nine_types():
    assert len(TYPES) == len(set(TYPES)) == 9
    with pytest.raises(UsageError, match=r"'city' is no general type; these are: person, group, .*event"):
        score_typed(instances("place"), {"0": frozenset({"place", "city"})})
