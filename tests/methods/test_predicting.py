"""Blocks of records: in order, each once, growing, and never more in memory than is needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.evaluation.examples import Example
from kgkit.evaluation.records import ParsedRecord
from kgkit.methods import predicting
from kgkit.methods.predicting import blocks


def parsed(number, length=1):
    return ParsedRecord(Example(str(number), ("x" * length,)), {})


def sizes(count, batch):
    return [len(block) for block in blocks(map(parsed, range(count)), batch)]


def test_blocks_are_of_one_batch_then_of_four_sixteen_and_from_there_on_of_32():
    assert sizes(2 * (1 + 4 + 16 + 32 + 32) + 3, 2) == [2, 8, 32, 64, 64, 3]
    assert sizes(1 + 4 + 16 + 32 + 32, 1) == [1, 4, 16, 32, 32]


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_without_records_there_is_no_block(batch):
    assert sizes(0, batch) == []


@given(st.integers(0, 400), st.integers(1, 9))
def test_every_record_is_in_one_block_in_its_order(count, batch):
    ids = [record.example.id for block in blocks(map(parsed, range(count)), batch) for record in block]
    assert ids == [str(number) for number in range(count)]
    assert all(size <= 32 * batch for size in sizes(count, batch))


@pytest.mark.parametrize(("count", "before"), [(1, 0), (2, 1), (5, 1), (6, 5), (21, 5), (22, 21)])
def test_no_more_records_are_taken_than_a_block_has(count, before):
    taken = []

    def source():
        for number in range(100):
            taken.append(number)
            yield parsed(number)

    stream = blocks(source(), 1)
    done = 0
    while done < count:
        done += len(next(stream))
    assert len(taken) == done and done - before >= count - before


def test_long_texts_make_smaller_blocks(monkeypatch):
    monkeypatch.setattr(predicting, "_MOST_CHARACTERS", 100)
    found = [[len(record.example.texts[0]) for record in block]
             for block in blocks((parsed(n, 60) for n in range(5)), 8)]  # fmt: skip
    assert found == [[60, 60], [60, 60], [60]]


def test_a_text_longer_than_a_block_may_be_is_a_block_by_itself(monkeypatch):
    monkeypatch.setattr(predicting, "_MOST_CHARACTERS", 100)
    lengths = [1000, 1, 1, 1000, 1]
    found = [[len(record.example.texts[0]) for record in block]
             for block in blocks((parsed(n, length) for n, length in enumerate(lengths)), 2)]  # fmt: skip
    assert found == [[1000], [1, 1, 1000], [1]]
