"""Ranges of the numbers in settings."""

from types import SimpleNamespace

import pytest

from kgkit.errors import UsageError
from kgkit.ranges import check_range

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("bounds", "inside", "outside", "expected"),
    [
        ({"least": 1}, [1, 2.5], [0, -1, NAN], "1 or more"),
        ({"above": 0}, [1e-9, 3], [0, -1, NAN], "above 0"),
        ({"least": 0, "below": 1}, [0, 0.99], [1, -0.1, NAN], "from 0 to below 1"),
        ({"least": 0, "most": 1}, [0, 1], [1.1, -0.1, NAN], "from 0 to 1"),
        ({"above": 0, "most": 1}, [0.1, 1], [0, 1.1], "above 0, up to 1"),
        ({"most": 5}, [-1, 5], [6], "up to 5"),
    ],
)
def test_numbers_outside_of_their_range_are_refused(bounds, inside, outside, expected):
    for value in inside:
        check_range(SimpleNamespace(rate=value), "rate", **bounds)
    for value in outside:
        with pytest.raises(UsageError) as error:
            check_range(SimpleNamespace(size=inside[0], rate=value), "size", "rate", **bounds)
        assert str(error.value) == f"rate is {value}; it is {expected}"


@pytest.mark.parametrize(
    ("bounds", "value", "expected"),
    [
        ({"least": 0}, INFINITY, "expected a finite number, 0 or more"),
        ({"above": 0}, INFINITY, "expected a finite number, above 0"),
        ({"most": 5}, -INFINITY, "expected a finite number, up to 5"),
        ({"above": 0, "most": 1}, INFINITY, "it is above 0, up to 1"),
    ],
)
def test_infinity_is_out_of_every_range(bounds, value, expected):
    with pytest.raises(UsageError) as error:
        check_range(SimpleNamespace(rate=value), "rate", **bounds)
    assert str(error.value) == f"rate is {value}; {expected}"
    check_range(SimpleNamespace(rate=10**400), "rate", least=0)


def test_what_is_no_number_is_refused_and_none_is_not_looked_at():
    check_range(SimpleNamespace(rate=None), "rate", least=1)
    with pytest.raises(UsageError, match="rate is 3; it is 1 or more"):
        check_range(SimpleNamespace(rate="3"), "rate", least=1)
