"""The fields of a record: each is taken once, by any of its names, and what it is not is one error."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import SourceError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.records import (
    Fields,
    Layout,
    Record,
    names_columns,
    records_of_lines,
)

LAYOUT = Layout(
    lambda fields: Example(fields.id(), fields.texts()),
    lambda fields: ("label", "text_a", "text_b")[: len(fields)],
    "a row",
)


def fields(number=7, **values):
    return Fields(Record(values, number, 3))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_of_a_surrogate_pair_is_no_text(text):
    with pytest.raises(SourceError, match="text has a code point that is half of a pair"):
        fields(text=text).text("text")
    with pytest.raises(SourceError, match="choices has a code point that is half of a pair"):
        fields(choices=["a", text]).strings("choices")


@pytest.mark.parametrize(
    ("value", "name"), [("x", "x"), (7, "7"), (-1, "-1"), (True, "true"), (False, "false"), ("", "")]
)
def test_an_id_or_a_label_is_a_string_a_whole_number_true_or_false(value, name):
    assert fields(id=value).name("id") == name


@pytest.mark.parametrize("value", ["", "  ", "\t"])
def test_an_empty_label_is_an_error(value):
    with pytest.raises(SourceError, match="the label is empty"):
        fields(label=value).label()


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1.0), (-2.5, -2.5), ("3.25", 3.25), (" 4 ", 4.0), ("1e3", 1000.0), (0, 0.0)]
)
def test_a_number_may_be_a_string(value, number):
    assert fields(score=value).number("score") == number


@pytest.mark.parametrize(
    "value", [True, False, "", "x", "nan", "inf", math.nan, math.inf, -math.inf, 10**400, 4e38, [1], "1,5"]
)
def test_what_is_no_finite_number_is_an_error(value):
    with pytest.raises(SourceError, match=r"the score is .*: expected a finite number"):
        fields(score=value).number("score", "label")


@pytest.mark.parametrize("value", ["ab", 1, {"a": "b"}, ["a", 1], ["a", None]])
def test_a_list_of_strings_is_nothing_else(value):
    with pytest.raises(SourceError, match="expected a list of strings"):
        fields(tokens=value).strings("tokens")


@pytest.mark.parametrize(
    "value",
    [
        None, [], [[0, 3]], [[0, 3], [4, 7], [0, 3]], [[0, 3], [7, 4]], [[0, 3], [4, 4]], [[0, 3], [4, 8]],
        [[-1, 3], [4, 7]], [[0, 3], [3, 4]], [[0, 3], [4.0, 7]], [[0, 3], [True, 7]], [[0, 3], [4, 7, 9]],
        [[0, 3], "47"], "0347", 3,
    ],
)  # fmt: skip
def test_spans_are_pairs_of_offsets_with_some_text_between_them(value):
    with pytest.raises(SourceError, match="expected 2 spans of the text as"):
        fields(marks=value).spans("marks", "the sun", 2)


@pytest.mark.parametrize(
    ("names", "further", "expected"),
    [
        (["label", "text_a"], (), True),
        (["question1", "question2"], (), True),
        (["question1", "label"], (), False),
        (["tokens", "tags"], (), False),
        (["tokens", "tags"], ("tokens",), True),
        (["text_b"], (), False),
        ([], (), False),
    ],
)
def test_a_first_line_names_columns_if_a_text_is_among_them(names, further, expected):
    assert names_columns(names, *further) is expected


def read(*lines, **settings):
    numbered = [(number, line) for number, line in enumerate(lines, 1)]
    return [dict(record.fields) for record in records_of_lines(numbered, Path("f"), LAYOUT, **settings)]


@given(st.lists(st.text('a\t{"}:', min_size=1), min_size=1))
def test_plain_lines_are_taken_whole_whatever_is_in_them(lines):
    assert read(*lines, line_format="lines") == [{"text": line} for line in lines]


@pytest.mark.parametrize(
    ("lines", "settings", "said"),
    [
        ((), {}, "no text in it: there are no lines"),
        (("text_a\tlabel",), {}, "no text in it: it names columns, and ends"),
        (('{"text": "a"}', "x\ty"), {}, "expected .*text"),
        (('{"text": "a"}', "[1]"), {}, "expected .*text"),
        (("1\tx", "1\tx\ty"), {}, r"expected 2 tab-separated fields \(label, text_a\), found 3"),
        (("1\tx", "1"), {}, "expected 2 tab-separated fields .* found 1"),
        (("text_a\ttext_a\tlabel",), {}, "the column text_a comes more than once"),
        (("label\tgold",), {}, r"it names columns \(label, gold\), and no text among them"),
        (("x\ty",), {"line_format": "jsonl"}, "expected .*text"),
        (("[" * 2000,), {"line_format": "jsonl"}, "expected .*text"),
    ],
)
def test_lines_that_do_not_fit_the_first_are_one_error(lines, settings, said):
    with pytest.raises(SourceError, match=said):
        read(*lines, **settings)
