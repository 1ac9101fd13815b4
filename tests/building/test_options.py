"""How a build is told sizes and paths; and how pieces of one entity are put together."""

from pathlib import Path

import pytest

from kgkit.building.engines.tables import with_attributes
from kgkit.building.options import bytes_of, path_list
from kgkit.errors import UsageError

EMPTY: tuple = ("k", "", "", "", "", (), {})


@pytest.mark.parametrize(
    ("size", "count"),
    [
        (4096, 4096),
        ("4GB", 4_000_000_000),
        ("500MB", 500_000_000),
        ("2GiB", 2 << 30),
        (" 1.5GB ", 1_500_000_000),
    ],
)
def test_a_size_is_a_number_of_bytes_or_one_with_a_unit(size, count):
    assert bytes_of(size) == count


@pytest.mark.parametrize("size", ["", "GB", "-1GB", "4 apples", "1e3GB", "4GBB", "infGB", "4,5GB"])
def test_what_is_no_size_is_refused_with_examples(size):
    with pytest.raises(UsageError, match="4GB"):
        bytes_of(size)


@pytest.mark.parametrize(
    ("values", "paths"),
    [("abc", ["abc"]), (Path("a/b"), ["a/b"]), (["a", Path("b")], ["a", "b"]), ((), []), ("", [""])],
)
def test_one_path_and_several_are_a_list(values, paths):
    assert path_list(values) == paths


@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        ({}, [("a", "x")], {"a": "x"}),
        ({}, [("a", "x"), ("a", "y")], {"a": ["x", "y"]}),
        ({}, [("a", "x"), ("a", "x")], {"a": "x"}),
        ({"a": "x"}, [("a", "x")], {"a": "x"}),
        ({"a": "x"}, [("a", "y")], {"a": ["x", "y"]}),
        ({"a": ["x"]}, [], {"a": ["x"]}),
        ({"a": ["x"]}, [("a", "x")], {"a": ["x"]}),
        ({"a": ["x"]}, [("a", "y")], {"a": ["x", "y"]}),
        ({"a": 1, "b": [2, 3]}, [("a", "1")], {"a": [1, "1"], "b": [2, 3]}),
        ({"a": []}, [("b", "x")], {"a": [], "b": "x"}),
    ],
)
def test_further_values_of_an_attribute_become_a_list(before, rows, after):
    entity = (*EMPTY[:6], before)
    assert with_attributes(entity, iter([("k", name, value) for name, value in rows]))[6] == after
