"""Wikipedia2Vec's vectors in a knowledge base: whose row is whose, what is kept, and training."""

import bz2
import random
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import kgkit
from kgkit.building import Alias, Entity, Redirect
from kgkit.embedding.wikipedia2vec import reading as module
from kgkit.embedding.wikipedia2vec import training
from kgkit.embedding.wikipedia2vec.reading import (
    Wikipedia2VecConfig,
    all_candidates,
    read_wikipedia2vec,
    read_words,
    train_wikipedia2vec,
)
from kgkit.embedding.wikipedia2vec.training import SkipGramConfig, select_entities
from kgkit.errors import DamagedVectors, MissingExtra, NotThere, SourceError, UsageError
from kgkit.vectors import vectors_names
from tests.cli_helpers import run
from tests.embedding.test_wikipedia2vec_files import FakeDictionary
from tests.small_kb import build

RECORDS = [
    Entity("Dog"),
    Entity("New York City"),
    Entity("St._Louis"),
    Entity("Unknown"),
    Redirect("Big Apple", "New York City"),
    Redirect("Hound", "Dog"),
    Alias("dog", "Dog", 3),
    Alias("nyc", "New York City", 2),
    Alias("nyc", "St._Louis", 1),
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


def test_words_need_not_be_kept(kb, tmp_path):
    vectors = read_wikipedia2vec(kb, config(tmp_path, words=False))
    with pytest.raises(NotThere, match="keep no words"):
        read_words(vectors)
    assert sorted(vectors.manifest.files) == ["keys.npy", "matrix.npy"]


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


@pytest.mark.parametrize("settings", [{"form": "xml"}, {"entity": "ENTITY/"}, {"entity": "{}{}"}])
def test_settings_that_cannot_be_are_refused(tmp_path, settings):
    with pytest.raises(UsageError, match=next(iter(settings))):
        config(tmp_path, **settings)


def test_a_file_without_an_entity_of_the_kb_publishes_nothing(kb, tmp_path):
    with pytest.raises(SourceError, match="none of its entities is in knowledge base 'small': Cat"):
        read_wikipedia2vec(kb, config(tmp_path, "ENTITY/Cat 1 2\ndog 3 4\n"))
    with pytest.raises(SourceError, match="it has none"):
        read_wikipedia2vec(kb, config(tmp_path, "dog 3 4\n"))
    assert vectors_names(kb.home) == []


def test_an_empty_binary_file_is_told(kb, tmp_path):
    path = tmp_path / "v.bin"
    path.write_bytes(b"0 2\n")
    with pytest.raises(SourceError, match="holds none"):
        read_wikipedia2vec(kb, Wikipedia2VecConfig(source=path, form="binary"))


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


def test_a_file_that_is_not_there_is_told(kb, tmp_path):
    with pytest.raises(NotThere, match="no file of vectors"):
        read_wikipedia2vec(kb, Wikipedia2VecConfig(source=tmp_path / "none"))


# -- training ---------------------------------------------------------------


def test_entities_are_kept_by_their_links_or_by_name():
    counted = [("Often", 9, 3), ("Seldom", 2, 1), ("Seldom and listed", 1, 1)]
    keep = {"Seldom and listed", "A page that nobody links to", "No page"}
    pages = ["Often", "A page that nobody links to", "Another"]
    assert select_entities(counted, 5, keep, pages) == {
        "Often": (9, 3),
        "Seldom and listed": (1, 1),
        "A page that nobody links to": (0, 0),
    }
    assert select_entities(counted, 5, (), pages) == {"Often": (9, 3)}


def test_the_candidates_of_surfaces_can_be_kept(kb):
    assert all_candidates(kb, ["nyc", "dog", "what?"]) == ("Dog", "New York City", "St._Louis")


@pytest.mark.parametrize(
    "wrong",
    [{"width": 0}, {"min_entity_count": -1}, {"iterations": 0}, {"learning_rate": 0.0}, {"workers": -1}],
)
def test_settings_of_training_are_checked(tmp_path, wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        SkipGramConfig(dump=tmp_path, **wrong)


def test_without_the_package_training_is_refused(kb, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wikipedia2vec", None)
    with pytest.raises(MissingExtra, match=r"kgkit\[wikipedia2vec\]"):
        train_wikipedia2vec(kb, SkipGramConfig(dump=tmp_path / "x"))


DUMP = '<mediawiki xml:lang="en">\n<page/>\n</mediawiki>\n'


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "dump.xml.bz2"
    path.write_bytes(bz2.compress(DUMP.encode()))
    return path


class Fake:
    """As much of the package as is called; writes down what was."""

    def __init__(self):
        self.calls = []
        self.breaks = ""
        dictionary = SimpleNamespace(language="en", entity_size=3, uuid="u", save=self.save("dictionary"))
        links = SimpleNamespace(serialize=lambda: {"indptr": np.array([0, 2], np.int32)})
        made = {
            "utils.wiki_dump_reader": {"WikiDumpReader": lambda path: path},
            "utils.tokenizer": {"get_default_tokenizer": lambda language: f"tokenizer {language}"},
            "dump_db": {"DumpDB": self.kind("dump", SimpleNamespace(language="en"), self.build_dump)},
            "dictionary": {"Dictionary": self.kind("dictionary", dictionary)},
            "link_graph": {"LinkGraph": self.kind("links", links)},
            "mention_db": {"MentionDB": self.kind("mentions", SimpleNamespace(save=self.save("mentions")))},
            "wikipedia2vec": {"Wikipedia2Vec": self.model},
        }
        self.modules = {"wikipedia2vec": ModuleType("wikipedia2vec")}
        for name, content in made.items():
            self.modules[f"wikipedia2vec.{name}"] = ModuleType(name)
            vars(self.modules[f"wikipedia2vec.{name}"]).update(content)
        # What the reader of models loads.
        entity = SimpleNamespace(title="Dog", index=1, count=5)
        word = SimpleNamespace(text="dog", index=0, count=9)
        self.modules["wikipedia2vec"].Wikipedia2Vec = SimpleNamespace(
            load=lambda path, mode: SimpleNamespace(
                dictionary=FakeDictionary([word], [entity]),
                syn0=np.array([[1, 2], [3, 4]], np.float32),
            )
        )
        self.modules["joblib"] = ModuleType("joblib")
        self.modules["joblib"].dump = self.dump_links

    def kind(self, name, value, build=None):
        def built(*args, **settings):
            self.note(name, settings)
            return value

        opened = type(name, (), {"__new__": lambda *args: value})
        opened.build, opened.load = staticmethod(build or built), staticmethod(lambda *args: value)
        return opened

    def note(self, name, settings):
        if self.breaks == name:
            raise KeyboardInterrupt
        self.calls.append((name, settings))

    def read_dump(self, reader):
        pass

    def build_dump(self, reader, out, **settings):
        self.read_dump(reader)
        self.note("dump", settings)
        self.save("dump")(out)

    def save(self, name):
        def saved(out):
            Path(out).write_text(name)

        return saved

    def dump_links(self, content, out):
        assert content["indptr"].tolist() == [0, 2, 2, 2]  # a row for each entity
        self.save("links")(out)

    def model(self, dictionary):
        def trained(dump, links, mentions, tokenizer, detector, **settings):
            self.note("model", {**settings, "links": links, "mentions": mentions, "tokenizer": tokenizer})

        return SimpleNamespace(train=trained, save=self.save("\x02"))


@pytest.fixture
def package(monkeypatch):
    fake = Fake()
    for name, content in fake.modules.items():
        monkeypatch.setitem(sys.modules, name, content)
    return fake


STEPS = ["dump", "dictionary", "links", "mentions", "model"]


def test_training_makes_every_step_and_publishes_the_model(kb, dump, package):
    told = []
    vectors = train_wikipedia2vec(
        kb, SkipGramConfig(dump=dump, width=2, workers=3), progress=lambda stage, *step: told.append(step)
    )
    assert [name for name, _ in package.calls] == STEPS
    settings = dict(package.calls)
    assert settings["dictionary"]["lowercase"] is False
    assert settings["dictionary"]["min_entity_count"] == 5
    assert settings["model"]["dim_size"] == 2
    assert settings["model"]["pool_size"] == 3
    assert told == [(step, 5) for step in range(6)]
    assert vectors.matrix.tolist() == [[3, 4], [0, 0], [0, 0], [0, 0]]
    assert read_words(vectors)[0] == ["dog"]
    assert "workers" not in vectors.manifest.config


def test_the_manifest_has_a_digest_of_what_was_to_be_kept(kb, dump, package, monkeypatch):
    monkeypatch.setattr(training, "_filter", lambda kind, made, dump, config: made)
    kept = [
        train_wikipedia2vec(kb, SkipGramConfig(dump=dump, width=2, keep=keep)).manifest.config["keep"]
        for keep in (("Dog",), ("Cat",))
    ]
    assert [one["titles"] for one in kept] == [1, 1]
    assert kept[0] != kept[1]


@pytest.mark.parametrize("step", STEPS)
def test_training_that_was_stopped_goes_on_with_the_step_it_was_in(kb, dump, package, step):
    package.breaks = step
    config = SkipGramConfig(dump=dump, width=2)
    with pytest.raises(KeyboardInterrupt):
        train_wikipedia2vec(kb, config)
    package.breaks = ""
    train_wikipedia2vec(kb, config)
    assert [name for name, _ in package.calls] == STEPS  # each once


def test_links_and_mentions_can_be_left_out(kb, dump, package):
    train_wikipedia2vec(kb, SkipGramConfig(dump=dump, width=2, link_graph=False, link_mentions=False))
    assert [name for name, _ in package.calls] == ["dump", "dictionary", "model"]
    assert package.calls[-1][1]["links"] is package.calls[-1][1]["mentions"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (DUMP.encode(), "not a bzip2 file"),
        (bz2.compress(b"<mediawiki>\n"), "does not name a language"),
    ],
)
def test_a_dump_that_is_none_is_told_before_anything_is_made(kb, tmp_path, package, content, message):
    path = tmp_path / "bad.xml.bz2"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=message):
        train_wikipedia2vec(kb, SkipGramConfig(dump=path))
    assert package.calls == []
    with pytest.raises(NotThere, match="no dump"):
        train_wikipedia2vec(kb, SkipGramConfig(dump=tmp_path / "none"))


TEXT = random.Random(0).randbytes(400_000).hex()
LONG = bz2.compress(f"{DUMP}{TEXT}\n".encode(), 1)  # of several blocks: its first lines can be read
SHORT = bz2.compress(DUMP.encode())


@pytest.mark.parametrize(
    "content", [SHORT[:-20], SHORT[:20] + bytes(9) + SHORT[29:]], ids=["cut off", "damaged"]
)
def test_a_dump_that_is_damaged_is_told_before_anything_is_made(kb, tmp_path, package, content):
    path = tmp_path / "bad.xml.bz2"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"bad\.xml\.bz2: the compressed file cannot be read"):
        train_wikipedia2vec(kb, SkipGramConfig(dump=path))
    assert package.calls == []


@pytest.mark.parametrize(
    "content", [LONG[:-200_000], LONG[:-200_000] + bytes(200_000)], ids=["cut off", "damaged"]
)
def test_a_dump_whose_damage_shows_later_is_told_too(kb, tmp_path, package, content):
    path = tmp_path / "bad.xml.bz2"
    path.write_bytes(content)
    package.read_dump = lambda reader: [*bz2.BZ2File(reader)]
    with pytest.raises(SourceError, match=r"bad\.xml\.bz2: the compressed file cannot be read"):
        train_wikipedia2vec(kb, SkipGramConfig(dump=path))

    def full(reader):
        raise OSError(28, "No space left on device")

    package.read_dump = full
    with pytest.raises(OSError, match="No space left"):
        train_wikipedia2vec(kb, SkipGramConfig(dump=path))


# -- the package itself -----------------------------------------------------

PAGES = {
    "Dog": "The '''dog''' is an [[animal]] that barks at the [[cat]] and at the [[Big Apple]] all day long.",
    "Cat": "The '''cat''' is an [[animal]] that sleeps all day while the [[dog]] barks at the moon again.",
    "Animal": "An '''animal''' such as the [[dog]] or the [[cat]] breathes, eats and moves all day long.",
    "Seldom": "A page about the [[dog]] that nobody links to at all, although it is a page like others.",
}


def page(title, body):
    revision = f"<revision><text>{body}</text></revision>"
    return f"<page><title>{title}</title><ns>0</ns>{revision}</page>\n"


@pytest.mark.slow  # the package makes a table of 100 million numbers, for the smallest dump too
@pytest.mark.skipif(find_spec("wikipedia2vec") is None, reason="wikipedia2vec is not installed")
@pytest.mark.parametrize("keep", [(), ("Seldom",)])
@pytest.mark.filterwarnings("default")  # those of the package
def test_training_and_reading_work_with_the_package(tmp_path, keep):
    dump = tmp_path / "tiny.xml.bz2"
    pages = "".join(page(*item) for item in PAGES.items())
    dump.write_bytes(bz2.compress(f'<mediawiki xml:lang="en">\n{pages}</mediawiki>\n'.encode()))
    records = [*(Entity(title) for title in PAGES), Redirect("Hound", "Dog")]
    config = SkipGramConfig(
        dump=dump, width=4, min_entity_count=2, min_word_count=1, iterations=2, workers=1, keep=keep
    )
    with build(tmp_path / "home", records) as kb:
        vectors = train_wikipedia2vec(kb, config)
        has = vectors.matrix.any(axis=1)
        assert has[[kb.id(title) for title in ("Dog", "Cat", "Animal")]].all()
        assert has[kb.id("Seldom")] == bool(keep)
        words, rows = read_words(vectors)
    assert {"The", "dog", "barks"} <= set(words)  # cased
    assert rows.shape == (len(words), 4)
    assert words.index("the") < words.index("moon")  # by frequency


def test_a_pool_may_be_as_large_as_the_machine(tmp_path):
    assert SkipGramConfig(dump=tmp_path).processes >= 1
    assert SkipGramConfig(dump=tmp_path, workers=3).processes == 3
    assert training.MODEL == "model.pkl"


def test_the_command_opens_a_pickle_only_where_it_is_told_to(kb, tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(b"\x80\x04.")
    args = (
        "embed",
        kb.name,
        "--method",
        "wikipedia2vec",
        "--home",
        kb.home.path.parents[1],
        "--index",
        "none",
    )
    done = run(*args, "--source", path)
    assert done.code == 2 and "--allow-pickle" in done.err and "save-text" in done.err
    done = run(*args, "--dump", path, "--allow-pickle")
    assert done.code == 2 and "--allow-pickle goes with --source" in done.err
    if find_spec("wikipedia2vec") is None:
        assert "kgkit[wikipedia2vec]" in run(*args, "--source", path, "--allow-pickle").err
