"""Fields of queries and forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.serving.forms import parse_fields, parse_integer, parse_number
from kgkit.serving.problems import Problem


def test_fields_are_decoded_as_utf_8():
    content = b"text=%F0%9F%98%80+a%26b&kb=%E5%8C%97"
    assert parse_fields(content, "the query") == {"text": "😀 a&b", "kb": "北"}


def test_bytes_of_utf_8_need_not_be_percent_encoded():
    assert parse_fields("text=北京".encode(), "the form") == {"text": "北京"}


def test_an_empty_field_is_a_field():
    assert parse_fields(b"queries=&a", "the form") == {"queries": "", "a": ""}


def test_the_last_of_several_fields_counts():
    assert parse_fields(b"a=1&a=2", "the query") == {"a": "2"}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"text=\xff", id="no UTF-8"),
        pytest.param(b"text=%FF", id="no UTF-8, percent-encoded"),
        pytest.param(b"text=%ED%A0%80", id="half of a surrogate pair"),
    ],
)
def test_bytes_that_are_no_utf_8_are_refused(content):
    with pytest.raises(Problem, match="the form is not UTF-8") as caught:
        parse_fields(content, "the form")
    assert caught.value.status == 400


def test_too_many_fields_are_refused_before_they_are_decoded():
    with pytest.raises(Problem, match="the query has more than 64 fields"):
        parse_fields(b"&".join(b"a=%d" % number for number in range(65)), "the query")


@pytest.mark.parametrize(("text", "value"), [("", 0.5), (" ", 0.5), ("0", 0), ("1.0", 1), (" 0.25 ", 0.25)])
def test_a_number_is_read(text, value):
    assert parse_number("confidence", text, 0.5) == value


@pytest.mark.parametrize("text", ["-0.1", "1.01", "nan", "inf", "x", "0x1", "1e400", "٣,"])
def test_what_is_no_number_in_range_is_refused(text):
    with pytest.raises(Problem, match="it is a number from 0 to 1") as caught:
        parse_number("confidence", text, 0.5)
    assert (caught.value.status, caught.value.field) == (422, "confidence")


@pytest.mark.parametrize(("text", "value"), [("", 7), ("0", 0), ("12", 12)])
def test_a_count_is_read(text, value):
    assert parse_integer("support", text, 7, least=0, most=100) == value


@pytest.mark.parametrize("text", ["-1", "1.5", "101", "٣", "9" * 5_000, "²"])
def test_what_is_no_count_in_range_is_refused(text):
    with pytest.raises(Problem, match="it is a whole number from 0 to 100"):
        parse_integer("support", text, 0, least=0, most=100)


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_a_problem(content):
    try:
        fields = parse_fields(content, "the form")
    except Problem as problem:
        assert problem.status in (400, 422)
    else:
        "".join((*fields, *fields.values())).encode()  # no half of a surrogate pair is in them
