"""What the store cannot hold is refused with a sentence, where the line is still known."""

import math

import pytest

from kgkit.building.attributes import (
    MAX_DEPTH,
    alias_count,
    check_attributes,
    check_occurrences,
    decoded_json,
    decoded_object,
)
from kgkit.building.contract import MAX_COUNT


def nested(depth, kind=list):
    """Return a value of containers within each other, *depth* in all."""
    value = kind()
    for _ in range(depth - 1):
        value = [value] if kind is list else {"a": value}
    return value


@pytest.mark.parametrize("number", [0, -1, 2**63, 2**64 - 1, -(2**63), 1.5, 1e308])
def test_numbers_of_64_bits_can_be_stored(number):
    check_attributes({"n": number})


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400])
def test_larger_integers_are_refused_with_what_to_write_instead(number):
    with pytest.raises(ValueError, match=r"2\*\*64 - 1"):
        check_attributes({"deep": [{"n": number}]})


@pytest.mark.parametrize("attributes", [{"a": "\ud800"}, {"\udfff": "a"}, {"a": ["b", {"c": "x\ud800y"}]}])
def test_half_of_a_surrogate_pair_is_refused_wherever_it_stands(attributes):
    with pytest.raises(ValueError, match="not Unicode"):
        check_attributes(attributes)


@pytest.mark.parametrize("kind", [list, dict])
def test_values_may_be_nested_as_deep_as_is_said_and_no_deeper(kind):
    check_attributes({"a": nested(MAX_DEPTH - 1, kind)})
    for depth in (MAX_DEPTH, MAX_DEPTH + 1, 5000):
        with pytest.raises(ValueError, match="200 deep"):
            check_attributes({"a": nested(depth, kind)})


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "1", "null", '{"a": }', '{"a": 1} x', "{'a': 1}", b"\xff{}"]
)
def test_what_is_no_json_object_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        decoded_object(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 18446744073709551616}', "a number is too large"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "nested too deeply"),
        ("[" * 100_000, "nested too deeply|malformed|truncated|expected"),
    ],
)
def test_an_object_is_checked_as_attributes_are(text, said):
    with pytest.raises(ValueError, match=f"(?i){said}"):
        decoded_object(text)


def test_json_of_another_type_is_refused_with_the_place():
    assert decoded_json("[1, 2]", list[int]) == [1, 2]
    with pytest.raises(ValueError, match=r"\$\[1\]"):
        decoded_json('[1, "2"]', list[int])


@pytest.mark.parametrize(
    ("value", "count"),
    [(0, 0), (3, 3), (2.5, 2.5), ("7", 7), (" 1e3 ", 1000), (True, 1), (MAX_COUNT, MAX_COUNT)],
)
def test_a_count_is_a_number_or_text_of_one(value, count):
    assert alias_count(value) == count


@pytest.mark.parametrize("value", ["", "many", None, [], {}, 10**400, "1,5"])
def test_a_count_that_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="a count that is no number"):
        alias_count(value)


@pytest.mark.parametrize("value", [-1, -1e-9, 1.1e30, math.inf, -math.inf, math.nan, "nan", "inf"])
def test_a_count_out_of_range_is_refused(value):
    with pytest.raises(ValueError, match=r"1e\+30"):
        alias_count(value)


@pytest.mark.parametrize(
    "counts",
    [(0, 0), (1, 0), (1, 1), (5, 2.5), (0.5, 0.25), (1e-44, 0), (MAX_COUNT, MAX_COUNT), (1e-3, 1e-3)],
)
def test_occurrences_of_which_some_are_links_can_be_stored(counts):
    check_occurrences(*counts)


@pytest.mark.parametrize(
    ("count", "linked", "said"),
    [
        (-1, 0, "'occurrences' is -1: counts lie between"),
        (math.nan, 0, "'occurrences' is nan"),
        (math.inf, 1, "'occurrences' is inf"),
        (3, -1, "'linked' is -1: counts lie between"),
        (3, math.nan, "'linked' is nan"),
        (3, 4, "'linked' is 4, more than the 3 'occurrences': links are occurrences too"),
        (0, 1, "'linked' is 1, more than the 0 'occurrences'"),
        (1e-60, 0, "'occurrences' is 1e-60, which is stored as 0: give 0, or at least 1e-44"),
    ],
)
def test_other_occurrences_are_refused_with_the_field(count, linked, said):
    with pytest.raises(ValueError) as refused:
        check_occurrences(count, linked)
    assert said in str(refused.value)
