"""Wikipedia2Vec's vectors in a knowledge base: whose row is whose, and what is kept."""

import numpy as np
import pytest

import kgkit
from kgkit.building import Entity, Redirect
from kgkit.embedding.wikipedia2vec import reading as module
from kgkit.embedding.wikipedia2vec.reading import Wikipedia2VecConfig, read_wikipedia2vec, read_words
from kgkit.errors import DamagedVectors, SourceError, UsageError
from kgkit.vectors import vectors_names
from tests.small_kb import build

RECORDS = [
    Entity("Dog"),
    Entity("New York City"),
    Entity("St._Louis"),
    Entity("Unknown"),
    Redirect("Big Apple", "New York City"),
    Redirect("Hound", "Dog"),
]
LINES = """7 2
the 1 0
ENTITY/Hound 9 9
ENTITY/Dog 1 2
ENTITY/New_York_City 3 4
dog 0 1
ENTITY/Cat 5 5
ENTITY/Big_Apple 7 7
"""


@pytest.fixture
def kb(tmp_path):
    with build(tmp_path / "home", RECORDS) as opened:
        yield opened


def config(tmp_path, content=LINES, **settings):
    path = tmp_path / "vectors.txt"
    path.write_text(content, encoding="utf-8")
    return Wikipedia2VecConfig(source=path, **settings)


def test_a_row_goes_to_the_entity_of_its_title(kb, tmp_path):
    vectors = read_wikipedia2vec(kb, config(tmp_path))
    assert vectors.matrix.tolist() == [[1, 2], [3, 4], [0, 0], [0, 0]]
    assert vectors.manifest.method == "wikipedia2vec"
    assert vectors.name == "small/wikipedia2vec"
    assert kb.vectors("wikipedia2vec").gather(kb.id("Big Apple")).tolist() == [3, 4]


def test_what_became_of_the_rows_is_kept(kb, tmp_path, caplog):
    results = read_wikipedia2vec(kb, config(tmp_path)).manifest.results
    assert results == {"matched": 2, "unmatched": 1, "again": 2, "zero": 0, "without": 2, "words": 2}
    assert "1 titles are not in small: Cat" in caplog.text


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("New_York_City", "New York City"),
        ("New York City", "New York City"),
        ("Big_Apple", "New York City"),
        ("St._Louis", "St._Louis"),
        ("St. Louis", "St._Louis"),
    ],
)
def test_blanks_and_underscores_are_one_in_a_title(kb, tmp_path, title, key):
    vectors = read_wikipedia2vec(kb, config(tmp_path, f"ENTITY/{title}\t5 6\n"))
    assert vectors.gather(kb.id(key)).tolist() == [5, 6]


@pytest.mark.parametrize("order", [("Hound", "Dog"), ("Dog", "Hound")])
def test_the_row_of_a_key_wins_over_that_of_a_redirect(kb, tmp_path, order):
    rows = {"Hound": "9 9", "Dog": "1 2"}
    content = "".join(f"ENTITY/{title} {rows[title]}\n" for title in order)
    assert read_wikipedia2vec(kb, config(tmp_path, content)).matrix[0].tolist() == [1, 2]


def test_of_two_rows_of_one_kind_the_first_wins(kb, tmp_path):
    vectors = read_wikipedia2vec(kb, config(tmp_path, "ENTITY/Dog 1 2\nENTITY/Dog 3 4\n"))
    assert vectors.matrix[0].tolist() == [1, 2]
    assert vectors.manifest.results["again"] == 1


def test_a_row_of_zeros_is_no_vector(kb, tmp_path):
    vectors = read_wikipedia2vec(kb, config(tmp_path, "ENTITY/Dog 0 0\nENTITY/St._Louis 1 1\n"))
    assert vectors.manifest.covered == 1
    assert vectors.manifest.results["zero"] == 1
    assert vectors.manifest.results["without"] == 3


def test_words_are_kept_in_their_order(kb, tmp_path):
    vectors = read_wikipedia2vec(kb, config(tmp_path))
    words, rows = read_words(vectors)
    assert words == ["the", "dog"]
    assert rows.tolist() == [[1, 0], [0, 1]]
    assert isinstance(rows, np.memmap)
    assert {module.WORDS, module.WORD_LIST} <= set(vectors.manifest.files)


def test_words_with_strange_line_ends_stay_apart(kb, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes("ENTITY/Dog 1 2\na\x85b 1 1\nc\u2028d 2 2\ne\x0bf 3 3\ng\rh 4 4\n".encode())
    words, rows = read_words(read_wikipedia2vec(kb, Wikipedia2VecConfig(source=path)))
    assert words == ["a\x85b", "c\u2028d", "e\x0bf", "g\rh"]
    assert rows[:, 0].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (module.WORD_LIST, b"the\n"),
        (module.WORD_LIST, b"the\n\xff\n"),
        (module.WORDS, b""),
        (module.WORDS, b"\x93NUMPY"),
    ],
)
def test_words_that_are_damaged_are_told_with_what_mends_them(kb, tmp_path, name, content):
    vectors = read_wikipedia2vec(kb, config(tmp_path))
    (vectors.folder / name).write_bytes(content)
    with pytest.raises(DamagedVectors, match="again with `kgkit embed`"):
        read_words(vectors)


@pytest.mark.parametrize("written", ["##{}##", "[{}]", "{}@e"])
def test_entities_may_be_marked_otherwise(kb, tmp_path, written):
    content = f"{written.format('Dog')} 1 2\ndog 3 4\n## 5 5\n"
    vectors = read_wikipedia2vec(kb, config(tmp_path, content, entity=written))
    assert vectors.matrix[0].tolist() == [1, 2]
    assert read_words(vectors)[0] == ["dog", "##"]


@pytest.mark.parametrize("settings", [{"entity": "ENTITY/"}, {"entity": "{}{}"}])
def test_settings_that_cannot_be_are_refused(tmp_path, settings):
    with pytest.raises(UsageError, match=next(iter(settings))):
        config(tmp_path, **settings)


def test_a_file_without_an_entity_of_the_kb_publishes_nothing(kb, tmp_path):
    with pytest.raises(SourceError, match="none of its entities is in knowledge base 'small': Cat"):
        read_wikipedia2vec(kb, config(tmp_path, "ENTITY/Cat 1 2\ndog 3 4\n"))
    with pytest.raises(SourceError, match="it has none"):
        read_wikipedia2vec(kb, config(tmp_path, "dog 3 4\n"))
    assert vectors_names(kb.home) == []


def test_a_file_that_is_bad_at_its_end_leaves_what_was_published(kb, tmp_path):
    before = read_wikipedia2vec(kb, config(tmp_path))
    with pytest.raises(SourceError, match=r"vectors.txt:9: 'x' is not"):
        read_wikipedia2vec(kb, config(tmp_path, LINES.replace("7 2", "8 2") + "cat x 1\n"))
    with kgkit.open_kb("small", home=tmp_path / "home") as again:
        assert again.vectors("wikipedia2vec").manifest == before.manifest


def test_a_reading_that_was_killed_and_is_run_again_gives_the_same(kb, tmp_path, monkeypatch):
    real = module.read_vectors

    def breaks(*args, **settings):
        yield next(real(*args, **settings))
        raise KeyboardInterrupt

    monkeypatch.setattr("kgkit.embedding.wikipedia2vec.files._BATCH", 20)
    monkeypatch.setattr(module, "read_vectors", breaks)
    with pytest.raises(KeyboardInterrupt):
        read_wikipedia2vec(kb, config(tmp_path))
    monkeypatch.setattr(module, "read_vectors", real)
    again = read_wikipedia2vec(kb, config(tmp_path))
    other = read_wikipedia2vec(kb, config(tmp_path, name="undisturbed"))
    np.testing.assert_array_equal(again.matrix, other.matrix)
    assert again.manifest.sha256 == other.manifest.sha256


def test_a_job_that_is_run_again_after_it_had_published_leaves_what_readers_have(kb, tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.vectors.work.sweep_work", lambda *args: None)  # killed before it came to that
    vectors = read_wikipedia2vec(kb, config(tmp_path))
    real = module.read_vectors

    def breaks(*args, **settings):
        yield next(real(*args, **settings))
        raise KeyboardInterrupt

    monkeypatch.setattr("kgkit.embedding.wikipedia2vec.files._BATCH", 20)
    monkeypatch.setattr(module, "read_vectors", breaks)
    with pytest.raises(KeyboardInterrupt):
        read_wikipedia2vec(kb, config(tmp_path))
    words, rows = read_words(vectors)
    assert (words, rows.tolist()) == (["the", "dog"], [[1, 0], [0, 1]])
