"""Files of word vectors: every form reads alike, and what is wrong is said with its place."""

import bz2
import gzip
import io
import lzma
import pickle
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kgkit.embedding.wikipedia2vec import files as word2vec_files
from kgkit.embedding.wikipedia2vec.files import _is_binary, read_vectors
from kgkit.errors import NotThere, SourceError, UsageError

NAMES = ["dog", "ENTITY/Dog", "ENTITY/New_York_City", "naïve", "苹果", "'s"]
ROWS = np.array([[1, 2], [-0.5, 0.25], [0, 0], [1e-3, 4], [5, -6], [7, 8]], np.float32)


def text(names, rows, *, header=True, tab=False, end="\n"):
    lines = [f"{len(names)} {len(rows[0])}"] if header else []
    lines += [
        f"{name}{chr(9) if tab else ' '}{' '.join(map(str, row))}"
        for name, row in zip(names, np.asarray(rows).tolist(), strict=True)
    ]
    return "".join(line + end for line in lines).encode()


def binary(names, rows, *, ends=True):
    content = io.BytesIO()
    content.write(f"{len(names)} {len(rows[0])}\n".encode())
    for name, row in zip(names, rows, strict=True):
        content.write(name.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + (b"\n" if ends else b""))
    return content.getvalue()


def read(path):
    batches = [*read_vectors(path)]
    return [name for batch in batches for name in batch.names], np.concatenate([b.rows for b in batches])


def put(folder, content, name="vectors"):
    path = folder / name
    path.write_bytes(content)
    return path


FORMS = {
    "word2vec": text(NAMES, ROWS),
    "glove": text(NAMES, ROWS, header=False),
    "wikipedia2vec": text(NAMES, ROWS, header=False, tab=True),
    "tabs and a header": text(NAMES, ROWS, tab=True),
    "blanks at the ends": text(NAMES, ROWS, end=" \n"),
    "lines as on Windows": text(NAMES, ROWS, end="\r\n"),
    "no line end at the end": text(NAMES, ROWS)[:-1],
    "binary": binary(NAMES, ROWS),
    "binary without line ends": binary(NAMES, ROWS, ends=False),
    "gzip": gzip.compress(text(NAMES, ROWS)),
    "bzip2": bz2.compress(text(NAMES, ROWS)),
    "xz": lzma.compress(text(NAMES, ROWS)),
    "gzip, binary": gzip.compress(binary(NAMES, ROWS)),
}


SUFFIXES = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "gzip, binary": ".bin.gz"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 30, 1 << 22])
def test_every_form_gives_the_same_rows(tmp_path, monkeypatch, form, batch):
    monkeypatch.setattr(word2vec_files, "_BATCH", batch)
    names, rows = read(put(tmp_path, FORMS[form], f"vectors{SUFFIXES.get(form, '')}"))
    assert names == NAMES
    np.testing.assert_array_equal(rows, ROWS)
    assert rows.dtype == np.float32


def test_a_name_may_have_blanks_where_a_tab_or_the_count_of_numbers_tells(tmp_path):
    names, _ = read(put(tmp_path, text(["ENTITY/New York City", "x"], ROWS[:2], header=False, tab=True)))
    assert names == ["ENTITY/New York City", "x"]
    names, rows = read(put(tmp_path, text(["dog", "New York"], ROWS[:2])))
    assert names == ["dog", "New York"]
    np.testing.assert_array_equal(rows, ROWS[:2])


numbers = st.floats(-1e6, 1e6, width=32)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1)


def one_by_one(content):
    """Read word2vec's text the slow way."""
    lines = content.decode().split("\n")[1:-1]
    pairs = [line.split(" ", 1) for line in lines]
    return [name for name, _ in pairs], [[float(field) for field in rest.split(" ")] for _, rest in pairs]


@given(data=st.data(), width=st.integers(2, 5))
def test_text_and_binary_agree_with_a_slow_reader(tmp_path_factory, data, width):
    table = data.draw(
        st.lists(st.tuples(words, st.lists(numbers, min_size=width, max_size=width)), min_size=1, max_size=8)
    )
    folder = tmp_path_factory.mktemp("files")
    names, rows = [name for name, _ in table], np.array([row for _, row in table], np.float32)
    content = text(names, rows)
    slow_names, slow_rows = one_by_one(content)
    numbers_in_bytes = binary(names, rows)
    assume(any(byte < 9 for byte in rows.tobytes()))  # such as text does not have
    for written in (content, numbers_in_bytes):
        found_names, found_rows = read(put(folder, written))
        assert found_names == slow_names == names
        np.testing.assert_array_equal(found_rows, np.array(slow_rows, np.float32))


BAD = {
    "short row": (b"2 2\na 1 2\nb 1\n", 3, "2 numbers was expected, found 1"),
    "long row": (b"2 2\na 1 2\nb 1 2 3\n", 3, "2 numbers was expected, found 3"),
    "a row of a name": (b"1 2\nabc\n", 2, "found 0"),
    "no number": (b"1 2\na 1 x\n", 2, "'x' is not a finite number"),
    "two blanks": (b"1 2\na 1  2\n", 2, "found 3"),
    "nan": (b"2 2\na 1 2\nb nan 2\n", 3, "'nan' is not a finite number"),
    "infinity": (b"1 2\na inf 2\n", 2, "'inf' is not"),
    "beyond float32": (b"1 2\na 1e39 2\n", 2, "'1e39' is not"),
    "underscore in a number": (b"1 2\na 1_0 2\n", 2, "'1_0' is not"),
    "an empty line": (b"2 2\na 1 2\n\nb 1 2\n", 3, "found 0"),
    "fewer rows": (b"3 2\na 1 2\nb 1 2\n", 1, "says 3 rows, there are 2"),
    "more rows": (b"1 2\na 1 2\nb 1 2\n", 1, "says 1 rows, there are 2"),
    "only a header": (b"3 2\n", None, "holds none"),
    "nothing": (b"", None, "holds none"),
    "no width": (b"3 0\na\n", 1, "rows have no numbers"),
    "words only": (b"dog\ncat\n", 1, "neither a header"),
    "a name that is not UTF-8": (b"1 2\n\xff\xfe 1 2\n", 2, "not UTF-8"),
}


@pytest.mark.parametrize(("content", "line", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("batch", [1, 1 << 22])
def test_bad_text_is_told_with_its_line(tmp_path, monkeypatch, content, line, message, batch):
    monkeypatch.setattr(word2vec_files, "_BATCH", batch)
    path = put(tmp_path, content)
    with pytest.raises(SourceError, match=message) as caught:
        read(path)
    assert (caught.value.path, caught.value.line) == (path, line)


@pytest.mark.parametrize("header", ["", "3 2\n"])
@pytest.mark.parametrize("tab", [" ", "\t"])
def test_text_in_another_encoding_is_told_with_the_line_that_is_not_utf_8(tmp_path, header, tab):
    content = f"{header}dog{tab}1 2\nNew York{tab}3 4\ncafé{tab}5 6\n"
    with pytest.raises(SourceError, match="a name that is not UTF-8") as caught:
        read(put(tmp_path, content.encode("latin-1")))
    assert caught.value.line == 3 + bool(header)


BAD_BINARY = {
    "cut in a row": (binary(NAMES, ROWS)[:-6], "it ends in row 6"),
    "cut in a name": (binary(NAMES, ROWS)[:30], "it ends in row 2"),
    "more than its header says": (binary(NAMES, ROWS) + b"x", "more bytes follow"),
    "nan": (binary(["a", "b"], [[1, 2], [float("nan"), 1]]), r"row 2 \('b'\) holds a number"),
    "no header": (b"\x00\x01\x02\x03" * 40, "begins with"),
    "a name that is not UTF-8": (b"1 1\n\xff\xfe " + struct.pack("<f", 1), "name of row 1 is not UTF-8"),
    "no blank": (b"1 1\n" + b"\x01" * 20_000, "row 1 has no name"),
}


@pytest.mark.parametrize(("content", "message"), BAD_BINARY.values(), ids=BAD_BINARY)
def test_bad_binary_is_told(tmp_path, content, message):
    path = put(tmp_path, content)
    with pytest.raises(SourceError, match=message) as caught:
        read(path)
    assert caught.value.path == path


def test_a_compressed_file_that_is_cut_off_is_told(tmp_path):
    content = gzip.compress(text(NAMES * 500, np.tile(ROWS, (500, 1))))
    with pytest.raises(SourceError, match=r"vectors\.gz"):
        read(put(tmp_path, content[: len(content) // 2], "vectors.gz"))


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(NotThere, match="none"):
        read(tmp_path / "none")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (FORMS["word2vec"], False),
        (FORMS["binary"], True),
        (b"1 2\n" + "苹".encode() * 3000, False),  # the look ends within a character
        ("1 2\ncafé 1 2\n".encode("latin-1"), False),
        (b"1 1\na " + struct.pack("<f", 3.14), True),  # no byte of it is a control character
    ],
)
def test_the_form_is_known_by_the_beginning(content, expected):
    assert _is_binary(content[:4096]) == expected


def test_progress_counts_rows(tmp_path):
    path, told = put(tmp_path, text(NAMES, ROWS)), []
    for _ in read_vectors(path, progress=lambda stage, done, of: told.append((done, of))):
        pass
    assert told[-1] == (6, 6)


@pytest.mark.parametrize("make", [text, binary])
def test_a_large_file_takes_the_memory_of_a_batch(tmp_path, monkeypatch, make):
    monkeypatch.setattr(word2vec_files, "_BATCH", 1 << 14)
    rows = np.ones((20_000, 20), np.float32)  # 1.6 MB
    path = put(tmp_path, make([f"w{number}" for number in range(len(rows))], rows))
    tracemalloc.start()
    count = sum(len(batch.names) for batch in read_vectors(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == len(rows)
    assert peak < 600_000


def test_a_pickle_is_not_opened(tmp_path):
    class Touches:
        def __reduce__(self):
            return Path.touch, (tmp_path / "RAN",)

    path = put(tmp_path, pickle.dumps(Touches()))
    with pytest.raises(UsageError, match=r"vectors.*save-text"):
        read(path)
    assert not (tmp_path / "RAN").exists()
