"""Files of word vectors: every form reads alike, and what is wrong is said with its place."""

import bz2
import gzip
import io
import lzma
import pickle
import struct
import sys
import tracemalloc
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.embedding.wikipedia2vec import files as word2vec_files
from kgkit.embedding.wikipedia2vec.files import form_of, read_vectors
from kgkit.errors import MissingExtra, NotThere, SourceError, UsageError

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


def read(path, form="auto"):
    batches = [*read_vectors(path, form)]
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


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("batch", [1, 30, 1 << 22])
def test_every_form_gives_the_same_rows(tmp_path, monkeypatch, content, batch):
    monkeypatch.setattr(word2vec_files, "_BATCH", batch)
    names, rows = read(put(tmp_path, content))
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
    for form, written in (("text", content), ("binary", binary(names, rows))):
        found_names, found_rows = read(put(folder, written), form)
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
        read(path, "text")
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
    "only a header": (b"3 2\n", "it ends in row 1"),
    "more than its header says": (binary(NAMES, ROWS) + b"x", "more bytes follow"),
    "nan": (binary(["a", "b"], [[1, 2], [float("nan"), 1]]), r"row 2 \('b'\) holds a number"),
    "no header": (b"\x00\x01\x02\x03" * 40, "begins with"),
    "a name that is not UTF-8": (b"1 1\n\xff\xfe " + struct.pack("<f", 1), "name of row 1 is not UTF-8"),
    "no blank": (b"1 1\n" + b"x" * 20_000, "row 1 has no name"),
}


@pytest.mark.parametrize(("content", "message"), BAD_BINARY.values(), ids=BAD_BINARY)
def test_bad_binary_is_told(tmp_path, content, message):
    path = put(tmp_path, content)
    with pytest.raises(SourceError, match=message) as caught:
        read(path, "binary")
    assert caught.value.path == path


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_that_is_cut_off_or_damaged_is_told(tmp_path, pack):
    content = pack(text(NAMES * 500, np.tile(ROWS, (500, 1))))
    with pytest.raises(SourceError, match="compressed file cannot be read"):
        read(put(tmp_path, content[: len(content) // 2]), "text")
    middle = len(content) // 2
    with pytest.raises(SourceError, match="compressed file cannot be read"):
        read(put(tmp_path, content[:middle] + b"\x00" * 20 + content[middle + 20 :]), "text")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(NotThere, match="no file of vectors"):
        read_vectors(tmp_path / "none")


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (FORMS["word2vec"], "text"),
        (FORMS["gzip"], "text"),
        (FORMS["binary"], "binary"),
        (FORMS["gzip, binary"], "binary"),
        (b"\x80\x04\x95", "model"),
        (b"1 2\n" + "苹".encode() * 3000, "text"),  # the look ends within a character
        ("1 2\ncafé 1 2\n".encode("latin-1"), "text"),
        (b"1 1\na " + struct.pack("<f", 3.14), "binary"),  # no byte of it is a control character
    ],
)
def test_the_form_is_known_by_the_beginning(tmp_path, content, form):
    assert form_of(put(tmp_path, content)) == form


def test_progress_counts_bytes_of_the_file(tmp_path):
    path, told = put(tmp_path, text(NAMES, ROWS)), []
    for _ in read_vectors(path, progress=lambda stage, done, of: told.append((done, of))):
        pass
    assert told[-1] == (path.stat().st_size,) * 2


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


class FakeDictionary:
    """As much of a model's dictionary as is read; entities are numbered behind the words."""

    def __init__(self, words, entities):
        self.items, self.word_size = [*words, *entities], len(words)

    def __len__(self):
        return len(self.items)

    def words(self):
        return iter(self.items[: self.word_size])

    def entities(self):
        return iter(self.items[self.word_size :])

    def get_word_by_index(self, index):
        return self.items[index]

    get_entity_by_index = get_word_by_index


class FakeModel:
    """As much of `wikipedia2vec.Wikipedia2Vec` as is read."""

    syn0 = np.array([[1, 1], [2, 2], [3, 3], [4, 4]], np.float32)
    dictionary = FakeDictionary(
        [SimpleNamespace(text="rare", index=0, count=1), SimpleNamespace(text="dog", index=1, count=9)],
        [
            SimpleNamespace(title="Dog", index=2, count=5),
            SimpleNamespace(title="New York City", index=3, count=2),
        ],
    )

    @staticmethod
    def load(path, numpy_mmap_mode):
        assert numpy_mmap_mode == "r"
        return FakeModel


def test_a_model_is_read_through_its_package_most_frequent_first(tmp_path, monkeypatch):
    package = ModuleType("wikipedia2vec")
    package.Wikipedia2Vec = FakeModel
    monkeypatch.setitem(sys.modules, "wikipedia2vec", package)
    monkeypatch.setattr(word2vec_files, "_MODEL_BATCH", 3)
    told = []
    batches = [
        *read_vectors(
            put(tmp_path, b"\x80\x04"), progress=lambda stage, *step: told.append(step), allow_pickle=True
        )
    ]
    assert [name for batch in batches for name in batch.names] == [
        "dog", "ENTITY/Dog", "ENTITY/New York City", "rare",
    ]  # fmt: skip
    assert np.concatenate([batch.rows for batch in batches])[:, 0].tolist() == [2, 3, 4, 1]
    assert told == [(3, 4), (4, 4)]


def counted(name, counts, first=0):
    return [
        SimpleNamespace(**{name: f"{name}{-row % 7}{row}", "index": row, "count": count})
        for row, count in enumerate(counts, first)
    ]


@given(one=st.lists(st.integers(0, 4)), other=st.lists(st.integers(0, 4)))
def test_a_model_is_read_in_the_order_of_a_sorted_list(one, other):
    found = FakeDictionary(counted("text", one), counted("title", other, len(one)))
    named = [(item.text, item) for item in found.words()]
    named += [(f"ENTITY/{item.title}", item) for item in found.entities()]
    in_order = sorted((-item.count, name, item.index) for name, item in named)
    assert [*word2vec_files._by_count(found)] == [(name, row) for _, name, row in in_order]


def test_the_names_of_a_large_model_are_not_in_memory_at_once():
    class Large(FakeDictionary):
        def words(self):
            return map(self.get_word_by_index, range(len(self)))

        def __len__(self):
            return self.word_size

        def get_word_by_index(self, index):
            return SimpleNamespace(text=f"word {index}", index=index, count=index // 10)

    large = Large([], [])
    large.word_size = 30_000
    tracemalloc.start()
    count = sum(1 for _ in word2vec_files._by_count(large))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 30_000
    assert peak < 2_000_000  # a list of all of them takes 6 MB


def test_without_the_package_a_model_is_refused_with_the_way_round(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wikipedia2vec", None)
    with pytest.raises(MissingExtra, match=r"kgkit\[wikipedia2vec\].*save-text") as caught:
        [*read_vectors(put(tmp_path, b"\x80\x04"), allow_pickle=True)]
    assert caught.value.package == "wikipedia2vec"


@pytest.mark.parametrize("form", ["auto", "model"])
def test_a_pickle_is_not_opened_unless_that_is_allowed(tmp_path, monkeypatch, form):
    class Touches:
        def __reduce__(self):
            return Path.touch, (tmp_path / "RAN",)

    package = ModuleType("wikipedia2vec")
    package.Wikipedia2Vec = SimpleNamespace(load=lambda path, mode: pickle.loads(Path(path).read_bytes()))
    monkeypatch.setitem(sys.modules, "wikipedia2vec", package)
    path = put(tmp_path, pickle.dumps(Touches()))
    with pytest.raises(UsageError, match=r"runs whatever program.*--allow-pickle.*text or word2vec's binary"):
        [*read_vectors(path, form)]
    assert not (tmp_path / "RAN").exists()
    with pytest.raises(AttributeError):  # it is no model; but it has been read
        [*read_vectors(path, form, allow_pickle=True)]
    assert (tmp_path / "RAN").exists()
