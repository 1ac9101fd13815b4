"""The files that a folder of data stands for, and ids of a file that have to differ."""

import gzip
from pathlib import Path

import pytest

from kgkit import files
from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.files import UniqueIds
from kgkit.files import lines, read_content
from kgkit.methods.settings import data_files


@pytest.fixture
def folder(tmp_path):
    """A function that makes a folder with these files, empty ones."""

    def of(*names):
        for name in names:
            (tmp_path / name).touch()
        return tmp_path

    return of


def test_files_are_taken_as_they_are_whether_they_exist_or_not():
    assert data_files([Path("a"), Path("b")], []) == ((Path("a"), Path("b")), ())
    assert data_files([], [Path("c")]) == ((), (Path("c"),))


def test_of_a_folder_train_and_dev_are_taken_and_nothing_else(folder):
    path = folder("train.tsv", "dev.tsv", "test.tsv", "trained.tsv", "README")
    assert data_files([path], []) == ((path / "train.tsv",), (path / "dev.tsv",))


def test_files_of_dev_that_are_named_take_the_place_of_those_of_a_folder(folder):
    path = folder("train.tsv", "dev.tsv", "dev.jsonl")
    assert data_files([path, Path("x")], [Path("d")]) == ((path / "train.tsv", Path("x")), (Path("d"),))


def test_a_folder_without_dev_leaves_the_choice_of_the_epoch_to_a_part_of_the_data(folder):
    path = folder("train.jsonl.xz")
    assert data_files([path], []) == ((path / "train.jsonl.xz",), ())


@pytest.mark.parametrize(
    ("names", "option", "listed"),
    [
        (("train.a", "train.b", "dev.a"), "data", "train.a, train.b"),
        (("train.a", "dev.a", "dev.b"), "dev", "dev.a, dev.b"),
    ],
)
def test_a_folder_with_several_files_of_a_kind_is_refused_with_the_option(folder, names, option, listed):
    with pytest.raises(UsageError, match=f"has {listed}: name the file with --{option}"):
        data_files([folder(*names)], [])


@pytest.mark.parametrize(
    ("names", "listed"), [((), "is empty"), (("b.tsv", "a.tsv"), "a.tsv, b.tsv"), (("dev.tsv",), "dev.tsv")]
)
def test_a_folder_without_train_says_what_is_in_it(folder, names, listed):
    with pytest.raises(NotThere, match=rf"no train\.\* in .* \({listed}\): name the file to learn from"):
        data_files([folder(*names)], [])


def test_of_many_files_some_are_named(folder):
    with pytest.raises(NotThere, match="…"):
        data_files([folder(*(f"{number}.tsv" for number in range(50)))], [])


def test_ids_of_a_file_differ():
    ids = UniqueIds(Path("f.tsv"))
    ids.check("a", 1)
    ids.check("b", 2)
    ids.check("a", 1)  # the same line again
    with pytest.raises(SourceError, match="two examples have the id 'a', those of line 1 and 3") as refused:
        ids.check("a", 3, "the line")
    assert (refused.value.path, refused.value.line, refused.value.text) == (Path("f.tsv"), 3, "the line")


@pytest.mark.parametrize("unit", ["instance", "record"])
def test_ids_that_are_not_of_lines_have_no_line(unit):
    ids = UniqueIds(None, unit)
    ids.check("a", 4)
    with pytest.raises(SourceError, match=f"those of {unit} 4 and 5: each needs its own") as refused:
        ids.check("a", 5)
    assert refused.value.line is None


def test_lines_keep_their_numbers_where_blank_ones_are_passed_over(tmp_path):
    path = tmp_path / "f"
    path.write_bytes("\ufeffa\r\n\n \t\n b \r\x0bc\u2028d".encode())
    assert [*lines(path)] == [(1, "a"), (4, " b \r\x0bc\u2028d")]


def test_a_line_that_is_not_utf_8_is_named_by_its_number(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"a\n\n\xff\n")
    with pytest.raises(SourceError, match="not UTF-8") as refused:
        [*lines(path)]
    assert refused.value.line == 3


def test_a_line_or_a_file_that_a_few_bytes_inflate_to_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE", 1 << 20)
    monkeypatch.setattr(files, "MAX_CONTENT", 2 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"b" * ((1 << 20) - 1) + b"\n" + b"c" * (3 << 20)))
    read = lines(path)
    assert next(read) == (1, "a") and next(read) == (2, "b" * ((1 << 20) - 1))
    with pytest.raises(SourceError, match=r"bomb\.gz:3: a line of more than 1 MiB"):
        next(read)
    with pytest.raises(SourceError, match="more than 2 MiB of a file that is read into memory"):
        read_content(path)
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf[]"))
    assert read_content(path) == b"[]"
