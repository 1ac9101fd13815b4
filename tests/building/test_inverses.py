"""Which of two relations is stored, and which one is answered from the other's facts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building.facts import pair_inverses
from kgkit.errors import UsageError


def agreeing(*_):
    return True


def differing(*_):
    return False


def test_relations_without_inverses_stand_alone_in_their_order():
    assert pair_inverses(["b", "a"], {}, agreeing) == [("b", None), ("a", None)]
    assert pair_inverses([], {"a": "b"}, agreeing) == []


def test_of_two_that_agree_the_declared_one_is_stored():
    assert pair_inverses(["part_of", "has_part"], {"part_of": "has_part"}, agreeing) == [
        ("part_of", "has_part")
    ]
    assert pair_inverses(["has_part", "part_of"], {"part_of": "has_part"}, agreeing) == [
        ("part_of", "has_part")
    ]


def test_an_inverse_that_the_source_never_has_is_answered_all_the_same():
    assert pair_inverses(["part_of"], {"part_of": "has_part"}, differing) == [("part_of", "has_part")]


def test_a_declared_relation_that_the_source_never_has_leaves_its_inverse_alone():
    assert pair_inverses(["has_part"], {"part_of": "has_part"}, agreeing) == [("has_part", None)]


def test_two_that_differ_are_both_stored():
    pairs = pair_inverses(["before", "after"], {"before": "after"}, differing)
    assert pairs == [("before", None), ("after", None)]


@pytest.mark.parametrize(("agree", "inverse"), [(agreeing, "near"), (differing, None)])
def test_a_symmetric_relation_is_its_own_inverse_if_its_facts_say_so(agree, inverse):
    assert pair_inverses(["near"], {"near": "near"}, agree) == [("near", inverse)]


def test_two_that_declare_each_other_are_one_pair():
    declared = {"before": "after", "after": "before"}
    assert pair_inverses(["after", "before"], declared, agreeing) == [("after", "before")]
    assert pair_inverses(["before", "after"], declared, agreeing) == [("before", "after")]


def test_whether_two_agree_is_asked_once_and_only_of_those_that_are_present():
    calls = []

    def agree(*pair):
        calls.append(pair)
        return True

    pair_inverses(["a", "b", "c", "d"], {"a": "b", "c": "e"}, agree)
    assert calls == [("a", "b")]


@pytest.mark.parametrize("inverses", [{"a": "b", "c": "b"}, {"a": "b", "b": "c"}, {"a": "b", "b": "b"}])
def test_an_inverse_of_several_relations_is_refused(inverses):
    with pytest.raises(UsageError, match="'b' is declared the inverse of 'a' and of another relation too"):
        pair_inverses(["a", "b", "c"], inverses, agreeing)


@given(st.permutations("abcdef"), st.integers(0, 6), st.permutations("abcdef"), st.randoms())
def test_each_relation_is_in_one_pair_whatever_agrees(order, count, partners, random):
    inverses = {partners[at]: partners[at + 1] for at in range(0, count // 2 * 2, 2)}
    names = order[: random.randint(0, 6)]
    pairs = pair_inverses(names, inverses, lambda *_: random.random() < 0.5)
    flat = [name for pair in pairs for name in pair if name is not None]
    assert len(flat) == len({*flat}) and {*names} <= {*flat}
    assert {*flat} - {*names} <= {*inverses.values()}
