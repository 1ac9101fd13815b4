"""Numbers that are looked up in a sorted array."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kgkit.sorted_ids import match_sorted

NUMBERS = st.lists(st.integers(0, 20), max_size=12)


@given(NUMBERS, NUMBERS)
def test_matches_are_where_the_numbers_are(values, wanted):
    ascending = np.array(sorted(values), np.uint32)
    index, exists = match_sorted(ascending, np.array(wanted, np.uint32))
    assert exists.tolist() == [number in values for number in wanted]
    assert ascending[index[exists]].tolist() == [number for number in wanted if number in values]


@given(NUMBERS, NUMBERS)
def test_an_order_serves_for_values_that_are_not_sorted(values, wanted):
    array = np.array(values, np.int64)
    index, exists = match_sorted(array, np.array(wanted, np.int64), order=np.argsort(array, kind="stable"))
    assert exists.tolist() == [number in values for number in wanted]
    assert index[exists].tolist() == [values.index(number) for number in wanted if number in values]
