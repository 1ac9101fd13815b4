"""Text files, line by line: what is read, and what is said of a file that is no text."""

import bz2
import gzip
import lzma
import os
import tracemalloc
from pathlib import Path

import pytest

from kgkit.building import text_lines
from kgkit.errors import NotThere, SourceError

COMPRESSED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def file(folder: Path, content: bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def complaint(path: Path) -> SourceError:
    with pytest.raises(SourceError) as caught:
        [*text_lines(path)]
    assert caught.value.path == path
    assert "\n" not in caught.value.message
    return caught.value


# -- what is read ---------------------------------------------------------------------


ODD = "a\u2028b\x0bc\x85d\x1ee\tf"
ANY = "e\u0301 苹果 🜁 \U0010ffff ﬁ"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"a\nb c\n d \n", [(1, "a"), (2, "b c"), (3, " d ")]),
        (b"\n\na\n\r\nb\n\n", [(3, "a"), (5, "b")]),  # empty lines are counted
        (b"a\nb", [(1, "a"), (2, "b")]),
        (b"a\r\nb\r\n", [(1, "a"), (2, "b")]),
        (ODD.encode(), [(1, ODD)]),  # nothing but a line feed ends a line
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [(1, "a"), (2, "\ufeffb")]),
        (f"{ANY}\n".encode(), [(1, ANY)]),
    ],
)
def test_lines_are_numbered_from_one_and_have_no_end(tmp_path, content, found):
    assert [*text_lines(file(tmp_path, content))] == found


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_compressed_files_are_read_through_the_compression(tmp_path, suffix):
    path = file(tmp_path, COMPRESSED[suffix]("à\nb\n".encode()), f"file.txt{suffix}")
    assert [*text_lines(path)] == [(1, "à"), (2, "b")]


def test_a_compressed_file_of_several_pieces_is_read_to_its_end(tmp_path):
    path = file(tmp_path, gzip.compress(b"a\n") + gzip.compress(b"b\n"), "file.gz")
    assert [*text_lines(path)] == [(1, "a"), (2, "b")]


def test_a_line_may_be_as_long_as_the_limit_says(tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.files.MAX_RECORD", 1 << 20)
    path = file(tmp_path, b"x" * ((1 << 20) - 1) + b"\nb\n")
    assert [(number, len(line)) for number, line in text_lines(path)] == [(1, (1 << 20) - 1), (2, 1)]


def test_lines_come_one_by_one(tmp_path):
    found = text_lines(file(tmp_path, b"a\n\xff\n"))
    assert next(found) == (1, "a")
    with pytest.raises(SourceError):
        next(found)


# -- what is no text ------------------------------------------------------------------


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotThere, match=str(tmp_path / "nothing")):
        [*text_lines(tmp_path / "nothing")]


def test_a_folder_is_no_file(tmp_path):
    assert "is a folder" in str(complaint(tmp_path))


def test_a_pipe_is_refused_before_anything_is_taken_out_of_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe or a device" in str(complaint(tmp_path / "pipe"))
    assert "write it to a file first" in str(complaint(Path(os.devnull)))


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\r\n \n"])
@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_file_without_a_line_is_an_error(tmp_path, content, suffix):
    assert "is empty" in str(complaint(file(tmp_path, COMPRESSED[suffix](content), f"file{suffix}")))


@pytest.mark.parametrize(
    ("bad", "at"),
    [
        (b"\xff", 1),
        (b"ab\x80", 3),
        (b"\xc3", 1),  # cut short
        (b"a\xc0\xaf", 2),  # a longer form than need be
        (b"\xed\xa0\x80", 1),  # half a pair
        ("é".encode("latin-1"), 1),
    ],
)
def test_bytes_that_are_no_utf8_are_told_with_line_and_place(tmp_path, bad, at):
    error = complaint(file(tmp_path, b"good\n\n" + bad + b"\nmore\n"))
    assert (error.line, f"at byte {at} " in str(error)) == (3, True)


def test_a_nul_is_told_with_its_line(tmp_path):
    error = complaint(file(tmp_path, b"good\nb\0d\n"))
    assert (error.line, "a NUL byte" in str(error)) == (2, True)


def test_a_file_of_16_bit_characters_is_no_text(tmp_path):
    error = complaint(file(tmp_path, "ab\ncd\n".encode("utf-16")))
    assert (error.line, "this is UTF-16: save the file as UTF-8" in str(error)) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_long_line_is_not_read_to_its_end(tmp_path, suffix):
    path = file(tmp_path, COMPRESSED[suffix](b"good\n" + b"x" * 50_000_000), f"file{suffix}")
    tracemalloc.start()
    try:
        error = complaint(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (error.line, "more than 16 MiB" in str(error)) == (2, True)
    assert peak < 45_000_000


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_compressed_file_that_is_cut_short_is_told(tmp_path, suffix):
    whole = COMPRESSED[suffix](os.urandom(200_000).hex().encode() + b"\nb\n")
    error = complaint(file(tmp_path, whole[: len(whole) // 2], f"file{suffix}"))
    assert (error.line, "cannot be read on" in str(error)) == (1, True)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_file_that_is_not_compressed_as_its_name_says_is_told(tmp_path, suffix):
    error = complaint(file(tmp_path, b"plain text\n", f"file{suffix}"))
    assert (error.line, "cannot be read on" in str(error)) == (1, True)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_compressed_file_with_a_changed_byte_is_told(tmp_path, suffix):
    whole = bytearray(COMPRESSED[suffix](os.urandom(5_000).hex().encode()))
    whole[len(whole) // 2] ^= 0xFF
    assert complaint(file(tmp_path, bytes(whole), f"file{suffix}")).line == 1
