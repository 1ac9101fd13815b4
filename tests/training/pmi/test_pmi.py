"""PMI tables: counts against brute force, windows, bounded memory, stopped trainings, what is refused."""

import json
import lzma
import math
import sys
import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import parquet

import kgkit
from kgkit.errors import DamagedModel, MissingExtra, NotThere, SourceError, UsageError
from kgkit.evaluation.plain_text import PlainSentence
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.pmi import PMI
from kgkit.models.verifying import verify_model
from kgkit.pmi import text_words
from kgkit.pmi.table import ARRAYS
from kgkit.training.pmi import train, values
from kgkit.training.pmi.counting import CountRuns, count_pairs, count_words
from kgkit.training.pmi.settings import PMITraining
from kgkit.training.pmi.train import train_pmi

WORDS = ["dog", "Cat", "the", "naïve", "x1", "苹", "--"]
SAME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
FREE = {"min_count": 1, "min_pairs": 1}


@st.composite
def corpora(draw):
    """Documents of sentences of words."""
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
    return draw(st.lists(st.lists(sentence, min_size=1, max_size=4), min_size=1, max_size=4))


def as_sentences(documents):
    return [
        PlainSentence(text, begins=not number)
        for document in documents
        for number, text in enumerate(document)
    ]


def write(path, documents):
    """Write documents; each sentence has a line of its own, and begins with a capital behind a full stop."""
    path.write_text("\n\n".join("\n".join(document) for document in documents), encoding="utf-8")
    return path


def brute_force(documents, window, vocabulary):
    """Return how often each two words are a pair, as (a, b) with a <= b in the order of their bytes."""
    counts = Counter()
    for unit in ([word for text in document for word in text_words(text)] for document in documents):
        for i, j in combinations(range(len(unit)), 2):
            if j - i <= window and unit[i] in vocabulary and unit[j] in vocabulary:
                counts[tuple(sorted((unit[i], unit[j]), key=str.encode))] += 1
    return counts


def values_of(counts, least):
    """Return the values of all pairs, in both directions, of how often two words are a pair."""
    ordered = Counter()
    for (a, b), count in counts.items():
        ordered[a, b] += count
        ordered[b, a] += count
    total = sum(ordered.values())
    of_word = Counter()
    for (a, _), count in ordered.items():
        of_word[a] += count
    values = {}
    for (a, b), count in ordered.items():
        pmi = math.log(count * total / (of_word[a] * of_word[b]))
        frequent = counts[tuple(sorted((a, b), key=str.encode))] >= least
        if frequent and pmi > 1e-9:
            values[a, b] = pmi
    largest = max(values.values(), default=1)
    return {pair: value / largest for pair, value in values.items()}


def table_of(home, documents, name="mine", **changed):
    home.path.mkdir(exist_ok=True, parents=True)
    path = write(home.path / "text.txt", documents)
    train_pmi(home, name, PMITraining(data=(path,), **{**FREE, **changed}), memory="256MiB")
    return kgkit.open_model(name, home=home)


DOCUMENTS = [
    ["olive oil and salt", "The olive oil is hot"],
    ["dogs bark and dogs run", "salt the oil"],
    ["the dogs bark"],
]  # fmt: skip


@given(corpora(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
@settings(SAME, max_examples=10)
def test_the_values_of_a_table_are_those_of_brute_force(tmp_path, documents, window, min_count, min_pairs):
    words = Counter(word for document in documents for text in document for word in text_words(text))
    vocabulary = {word for word, count in words.items() if count >= min_count}
    expected = values_of(brute_force(documents, window, vocabulary), min_pairs)
    options = {"window": window, "min_count": min_count, "min_pairs": min_pairs}
    if not expected:
        with pytest.raises(UsageError, match=r"no word occurs|no two words are a pair"):
            table_of(Home(tmp_path), documents, **options)
        return
    table = table_of(Home(tmp_path), documents, **options)
    assert set(table.words) == vocabulary
    assert {word: table.count(word) for word in vocabulary} == {word: words[word] for word in vocabulary}
    values = table.values(table.words)
    pairs = zip(*np.nonzero(values), strict=True)
    assert {(table.words[a], table.words[b]): values[a, b] for a, b in pairs} == pytest.approx(
        expected, rel=1e-5
    )
    assert (values == values.T).all()


def test_a_window_ends_with_the_document():
    sentences = as_sentences([["a b", "c"], ["d e"]])
    numbers = {word: number for number, word in enumerate("abcde")}

    def pairs(tmp, **how):
        [file] = count_pairs(
            sentences, numbers, CountRuns(tmp, "pairs", pa.int64()), positions=100, report=print, **how
        )
        return {"abcde"[key // 5] + "abcde"[key % 5] for key in parquet.read_table(file)["key"].to_pylist()}

    for how, expected in [
        ({"window": 1}, {"ab", "bc", "de"}),
        ({"window": 2}, {"ab", "ac", "bc", "de"}),
        ({"window": 9}, {"ab", "ac", "bc", "de"}),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            assert pairs(Path(folder), **how) == expected


def added_up(files):
    counts = Counter()
    for file in files:
        rows = parquet.read_table(file)
        counts.update(dict(zip(*(column.to_pylist() for column in rows.columns), strict=True)))
    return counts


@given(corpora(), st.integers(1, 5), st.integers(1, 7), st.integers(0, 12))
@SAME
def test_counts_are_the_same_however_often_runs_are_written_and_trainings_stopped(
    tmp_path_factory, documents, window, room, stop
):
    tmp_path = tmp_path_factory.mktemp("runs")
    sentences = as_sentences(documents)
    numbers = {"dog": 0, "the": 1, "naïve": 2, "x1": 3}

    def count(folder, room):
        words = CountRuns(tmp_path / folder, "words", pa.string())
        pairs = CountRuns(tmp_path / folder, "pairs", pa.int64())
        return (
            lambda texts: count_words(texts, words, distinct=room, report=len),
            lambda texts: count_pairs(texts, numbers, pairs, window=window, positions=room, report=len),
        )

    def stopped():
        yield from sentences[:stop]
        raise KeyboardInterrupt

    for complete, spilled in zip(count("complete", 10**6), count("spilled", room), strict=True):
        expected = complete(sentences)
        assert len(expected) == 1
        if stop < len(sentences):
            with pytest.raises(KeyboardInterrupt):
                spilled(stopped())
        assert added_up(spilled(sentences)) == added_up(expected)
        assert added_up(spilled(stopped())) == added_up(expected)  # complete: nothing is read again


def test_a_table_of_many_runs_is_the_table_of_one_to_the_byte(tmp_path, monkeypatch):
    home = Home(tmp_path)
    documents = DOCUMENTS * 20
    table_of(home, documents, "one")
    monkeypatch.setattr(train, "_WORD_BYTES", 1 << 26)
    monkeypatch.setattr(train, "_KEY_BYTES", 1 << 22)
    table_of(home, documents, "many")
    single, in_runs = (find_trained(home, name) for name in ("one", "many"))
    for array in ARRAYS:
        assert (single / f"{array}.npy").read_bytes() == (in_runs / f"{array}.npy").read_bytes()


def test_a_training_that_was_stopped_goes_on_and_leaves_nothing(tmp_path, monkeypatch):
    home = Home(tmp_path)
    undisturbed = table_of(home, DOCUMENTS * 20, "undisturbed").values(["olive", "the"]).tolist()
    monkeypatch.setattr(train, "_KEY_BYTES", 1 << 22)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(values, "write_pair_values", stop)
        with pytest.raises(KeyboardInterrupt):
            table_of(home, DOCUMENTS * 20)
    [work] = (tmp_path / "runs").glob("pmi-mine-*")
    runs = sorted(path.name for path in work.glob("*.parquet"))
    assert len(runs) > 2 and (work / runs[0]).stat().st_size
    (work / runs[-1]).unlink()  # as if it had been stopped before
    assert table_of(home, DOCUMENTS * 20).values(["olive", "the"]).tolist() == undisturbed
    assert not list((tmp_path / "runs").iterdir())


def test_a_vocabulary_has_the_most_frequent_words(tmp_path):
    table = table_of(Home(tmp_path), DOCUMENTS, words=3, window=3)
    assert table.words == [
        "dogs",
        "oil",
        "the",
    ]  # of three each: oil, the, dogs; and, bark, olive, salt have two


def test_files_are_read_apart_compressed_or_not(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt.xz"]
    paths[0].write_text("olive oil")
    paths[1].write_bytes(lzma.compress(b"dogs bark"))
    train_pmi(Home(tmp_path), "mine", PMITraining(data=tuple(paths), **FREE))
    table = kgkit.open_model("mine", home=tmp_path)
    assert table.value("olive", "oil") == 1 == table.value("dogs", "bark")
    assert table.value("oil", "dogs") == 0


def test_what_a_table_says_of_itself(tmp_path):
    home = Home(tmp_path)
    table = table_of(home, DOCUMENTS, window=3)
    manifest = PMI.read(find_trained(home, "mine"))
    values = table.values(table.words)
    assert manifest.window == 3
    assert manifest.words == len(table) == 10
    assert manifest.pairs == np.count_nonzero(np.triu(values)) == manifest.results["pairs"]
    assert manifest.results["occurrences"] == 20
    assert manifest.data.keys() == {str(tmp_path / "text.txt")}
    assert verify_model(find_trained(home, "mine")) == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"window": 0}, "window is 0"), ({"window": 1001}, "window is 1001"),
        ({"min_count": 0}, "min_count is 0"), ({"min_pairs": 0}, "min_pairs is 0"),
        ({"words": 2**31}, "words is 2147483648"), ({"data": ()}, "no training data"),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(tmp_path, changed, what):
    with pytest.raises(UsageError, match=what):
        PMITraining(**{"data": (tmp_path / "x",), **changed})


def test_texts_that_cannot_be_counted_are_refused(tmp_path, monkeypatch):
    home, path = Home(tmp_path), tmp_path / "x.txt"
    training = PMITraining(data=(path,), **FREE)
    with pytest.raises(NotThere, match=r"x\.txt"):
        train_pmi(home, "mine", training)
    path.write_text(" \n\n")
    with pytest.raises(SourceError, match="no text in it"):
        train_pmi(home, "mine", training)
    path.write_text("-- !")
    with pytest.raises(UsageError, match="no word occurs 1 times in the texts: lower --min-count"):
        train_pmi(home, "mine", training)
    path.write_text("dog")
    with pytest.raises(UsageError, match="no two words are a pair 1 times, and more often than by chance"):
        train_pmi(home, "mine", training)
    with pytest.raises(UsageError, match="memory is 1,000 bytes"):
        train_pmi(home, "mine", training, memory=1000)
    with pytest.raises(UsageError, match="workers is 0"):
        train_pmi(home, "mine", training, workers=0)
    monkeypatch.setitem(sys.modules, "kgkit.building.engines.local", None)
    with pytest.raises(MissingExtra, match=r"scale"):
        train_pmi(home, "mine", training)


def test_damaged_and_hostile_files_are_refused(tmp_path):
    home = Home(tmp_path)
    table_of(home, DOCUMENTS)
    folder = find_trained(home, "mine")
    manifest = json.loads((folder / "model.json").read_text())

    def opened(name, content):
        """Open the table with a file that has another content, of whatever size."""
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        sizes = manifest["sizes"] | {name: len(content)}
        (folder / "model.json").write_text(json.dumps(manifest | {"sizes": sizes}))
        try:
            return kgkit.open_model("mine", home=home)
        finally:
            (folder / name).write_bytes(before)
            (folder / "model.json").write_text(json.dumps(manifest))

    for array in ARRAYS:
        name, content = f"{array}.npy", (folder / f"{array}.npy").read_bytes()
        huge = content.replace(b"'shape': (", b"'shape': (9", 1).replace(b"   ", b"  ", 1)
        for other in (content[:-1], content[:64], b"", b"no array", huge):
            with pytest.raises(DamagedModel):
                opened(name, other)
        flipped = content.replace(b"<i", b"<u", 1) if b"<i" in content else content.replace(b"<f4", b"<i4", 1)
        if flipped != content:
            with pytest.raises(DamagedModel, match="expected a row of"):
                opened(name, flipped)
    (folder / "values.npy").write_bytes((folder / "values.npy").read_bytes()[:-4])
    with pytest.raises(DamagedModel, match=r"values\.npy is not the file of"):
        kgkit.open_model("mine", home=home)


@pytest.mark.parametrize("field", [{"window": 0}, {"words": -1}])
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path, field):
    home = Home(tmp_path)
    table_of(home, DOCUMENTS)
    path = find_trained(home, "mine") / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | field))
    with pytest.raises(DamagedModel, match=r"model\.json cannot be read"):
        kgkit.open_model("mine", home=home)
