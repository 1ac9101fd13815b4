"""Rows by key in one file: whoever appends, whoever is killed, no reader sees half a row."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

from kgkit.vectors.row_file import ROWS, RowFile, row_count

WIDTH = 6


def row_of(key):
    return np.random.default_rng(key).standard_normal(WIDTH).astype(np.float32)


def filled(folder, keys):
    rows = RowFile(folder, WIDTH)
    numbers = np.array(keys, np.uint64)
    rows.append(numbers, np.stack([row_of(key) for key in keys]))
    return rows


def assert_sound(rows):
    for key in rows.keys.tolist():
        np.testing.assert_array_equal(rows.gather(np.array([key], np.uint64))[0], row_of(key))


def test_what_one_handle_appends_another_reads(tmp_path):
    reader = RowFile(tmp_path, WIDTH)
    writer = filled(tmp_path, [3, 1, 2**64 - 1])
    assert 3 not in reader
    reader.refresh()
    assert len(reader) == len(writer) == row_count(tmp_path, WIDTH) == 3
    assert_sound(reader)
    with pytest.raises(KeyError):
        reader.gather(np.array([4], np.uint64))


def test_a_key_keeps_its_first_row_and_has_one_record(tmp_path):
    rows = filled(tmp_path, [1, 2])
    other = RowFile(tmp_path, WIDTH)
    other.append(np.array([2, 5], np.uint64), np.stack([row_of(5), row_of(5)]))
    rows.refresh()
    assert row_count(tmp_path, WIDTH) == 3
    assert_sound(rows)


@pytest.mark.parametrize("lost", range(1, 40, 3))
def test_half_a_record_is_never_read_and_is_written_over(tmp_path, lost):
    filled(tmp_path, [1, 2, 3])
    os.truncate(tmp_path / ROWS, (tmp_path / ROWS).stat().st_size - lost)
    rows = RowFile(tmp_path, WIDTH)
    assert sorted(rows.keys.tolist()) == [1, 2]
    again = filled(tmp_path, [3, 4])
    assert sorted(again.keys.tolist()) == [1, 2, 3, 4]
    assert_sound(again)


def test_a_record_that_the_disk_lost_is_passed_over_and_made_again(tmp_path):
    filled(tmp_path, [1, 2, 3])
    size = (tmp_path / ROWS).stat().st_size // 3
    with (tmp_path / ROWS).open("rb+") as file:
        file.seek(size + 20)
        file.write(b"\1")
    rows = RowFile(tmp_path, WIDTH)
    assert rows.keys.tolist() == [1]  # what follows is read once nobody writes
    rows.append(np.array([2], np.uint64), row_of(2)[None])
    assert sorted(rows.keys.tolist()) == [1, 2, 3]
    assert_sound(rows)


def test_zeros_are_no_record(tmp_path):
    (tmp_path / ROWS).write_bytes(bytes(10 * (16 + 4 * WIDTH)))
    assert len(RowFile(tmp_path, WIDTH)) == 0


def _append_and_check(folder, seed, count):
    generator = np.random.default_rng(seed)
    rows = RowFile(folder, WIDTH)
    for _ in range(count):
        keys = np.unique(generator.integers(1, 400, generator.integers(1, 30)))
        rows.append(keys.astype(np.uint64), np.stack([row_of(key) for key in keys.tolist()]))
        assert_sound(rows)


def test_eight_processes_append_at_once(tmp_path):
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_append_and_check, args=(tmp_path, seed, 12)) for seed in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0] * 8
    rows = RowFile(tmp_path, WIDTH)
    assert len(rows) == row_count(tmp_path, WIDTH) > 300  # each key once
    assert_sound(rows)


def test_processes_that_are_killed_leave_rows_that_can_be_read(tmp_path):
    context = multiprocessing.get_context("fork")
    for seed in range(10):
        child = context.Process(target=_append_and_check, args=(tmp_path, seed, 10_000))
        child.start()
        time.sleep(0.01 + 0.007 * seed)
        os.kill(child.pid, signal.SIGKILL)
        child.join(300)
        assert_sound(RowFile(tmp_path, WIDTH))
    _append_and_check(tmp_path, 99, 1)


def test_a_folder_that_was_removed_is_not_made_again(tmp_path):
    rows = filled(tmp_path / "rows", [1])
    (tmp_path / "rows" / ROWS).unlink()
    (tmp_path / "rows" / "lock").unlink()
    (tmp_path / "rows").rmdir()
    with pytest.raises(FileNotFoundError, match="was removed"):
        rows.append(np.array([2], np.uint64), row_of(2)[None])
    assert not (tmp_path / "rows").exists()
    assert_sound(rows)
