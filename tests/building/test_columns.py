"""The columns of a build beside their slow and obvious twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.building import facts
from kgkit.building.numbers import in_key_order, numbering
from kgkit.store import codec

LARGEST = 2**32 - 2  # ids are 32 bits wide, and one value means none

names = st.lists(
    st.text() | st.text(alphabet="añ苹\ud800", min_size=100, max_size=600), unique=True, max_size=20
)
ids = st.sampled_from([0, 1, 2, LARGEST - 1, LARGEST])
triples = st.lists(st.tuples(ids, st.integers(0, 2), ids), max_size=30)


def columns(triples):
    return facts.FactColumns(*(np.array(column, np.int64) for column in zip(*triples, strict=True)))


@given(names)
def test_keys_are_in_the_order_of_their_bytes_with_digests_last(names):
    keys, order = in_key_order(names)
    assert keys == sorted(codec.bounded_key(name) for name in names)
    assert keys == [codec.bounded_key(names[place]) for place in order]


@given(st.lists(st.sampled_from("abc")))
def test_names_are_numbered_in_the_order_in_which_they_are_asked_for(asked):
    number = numbering()
    found = [number[name] for name in asked]
    distinct = list(dict.fromkeys(asked))
    assert found == [distinct.index(name) for name in asked]


@given(triples.filter(bool))
def test_facts_between_the_largest_ids_are_told_apart(triples):
    """No KB of a test has four milliard entities: the columns are tried by themselves."""
    found = facts.arrange(columns(triples), ["one_way", "there", "back"], {"there": "back"})
    distinct = list(dict.fromkeys(triples))
    assert found.repeated == len(triples) - len(distinct)

    there = {(subject, other) for subject, relation, other in distinct if relation == 1}
    back = {(other, subject) for subject, relation, other in distinct if relation == 2}
    agree = there == back
    assert dict(found.relations) == (
        {"one_way": None, "there": "back"} if agree else {"one_way": None, "there": None, "back": None}
    )
    assert found.stored.get("there") == len(there)
    assert found.stored.get("back") == (None if agree else len(back))
    outward = list(zip(*(column.tolist() for column in found.outward), strict=True))
    assert [(subject, other) for subject, _, other in outward] == [(s, o) for s, _, o in distinct]


@given(triples.filter(bool))
def test_rows_of_facts_hold_an_entitys_facts_in_the_order_of_the_source(triples):
    rows = {key: codec.decode_facts(row) for key, row in facts.rows(*columns(triples))}
    assert list(rows) == sorted(codec.pack_id(subject) for subject in {subject for subject, _, _ in triples})
    for key, (others, relations) in rows.items():
        mine = [(other, relation) for subject, relation, other in triples if codec.pack_id(subject) == key]
        assert list(zip(others.tolist(), relations.tolist(), strict=True)) == mine


@pytest.mark.parametrize("relation", ["near", "there", "one_way"])
def test_no_facts_make_no_rows(relation):
    none = np.empty(0, np.int64)
    found = facts.arrange(facts.FactColumns(none, none, none), [relation], {"near": "near", "there": "back"})
    assert found.stored == {relation: 0}
    assert [*facts.rows(*found.outward), *facts.rows(*found.incoming)] == []
