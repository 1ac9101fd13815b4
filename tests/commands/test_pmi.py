"""`kgkit train pmi`, `kgkit nearest --pmi`, and `kgkit models` of PMI tables."""

import json
import signal
import sys

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from kgkit.pmi import text_words
from kgkit.training.pmi import counting
from tests.cli_helpers import run
from tests.toys import run_python

TEXT = """Olive oil and salt.

The olive oil is hot. Salt the hot oil!

Dogs bark, and dogs run.

The dogs bark."""
FREE = ("--min-count", 1, "--min-pairs", 1, "--window", 2)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "text.txt").write_text(TEXT)
    done = run("train", "pmi", "--data", home / "text.txt", "--name", "mine", *FREE, "--home", home)
    assert done.code == 0
    assert "mine: PMI of words at most 2 apart, within a document" in done.out and "words" in done.out
    return home


def nearest(home, *args):
    done = run("nearest", *args, "--pmi", "mine", "--home", home)
    assert done.code == 0, done.err
    return done


def test_the_words_of_the_highest_pmi_are_listed(home):
    rows = [row.split("\t") for row in nearest(home, "dogs", "-k", 2).out.splitlines()]
    assert rows[0] == ["PMI", "word"] and {row[1] for row in rows[1:]} == {"bark", "run"}
    assert all(set(row) == {"word", "pmi"} for row in json.loads(nearest(home, "Dogs", "--json").out))


def test_several_words_have_the_words_that_go_best_with_all_of_them(home):
    words = [row["word"] for row in json.loads(nearest(home, "hot, salt?", "--json").out)]
    assert words and not {"hot", "salt"} & set(words)
    assert "mine does not have: cat\n" in nearest(home, "dogs cat").err


def test_a_word_that_goes_with_nothing_has_an_empty_list(home):
    done = nearest(home, "cat")
    assert done.out == "" and "no word goes with 'cat' in mine, which does not have: cat" in done.err
    assert nearest(home, "cat", "--json").out == "[]\n"


def test_options_of_vectors_and_models_of_other_kinds_are_refused(home):
    for option in (["--kb", "x"], ["--vectors", "x"], ["--kind", "x"], ["--text"]):
        done = run("nearest", "dogs", "--pmi", "mine", *option, "--home", home)
        assert (done.code, done.out) == (2, "") and "--pmi lists words: leave out --kb" in done.err
    done = run("nearest", "dogs", "--pmi", "yours", "--home", home)
    assert done.code == 3 and "no association table named 'yours'; there are: mine" in done.err
    done = run("nearest", "dogs", "--pmi", "wsd-minilm", "--home", home)
    assert done.code == 2 and "scores no pairs of words" in done.err and "`kgkit train pmi`" in done.err
    done = run("tag", "--model", "mine", "--home", home)
    assert done.code == 2 and "mine is a PMI table, and finds no mentions in plain text" in done.err


def test_a_table_is_listed_shown_verified_and_removed(home, tmp_path):
    run("train", "pmi", "--data", home / "text.txt", "--name", "other", *FREE, "--home", tmp_path)
    [row] = [
        row
        for row in json.loads(run("models", "list", "--json", "--home", tmp_path).out)
        if row["name"] == "other"
    ]
    assert (row["kind"], row["roles"], row["window"]) == ("pmi", ["association_table"], 2)
    shown = run("models", "info", "other", "--home", tmp_path).out
    assert "other is a PMI table." in shown and "window: 2" in shown and "min_pairs: 1" in shown
    assert run("models", "verify", "other", "--home", tmp_path).out == "other: sound\n"
    values = tmp_path / "models" / "other" / "current" / "values.npy"
    values.write_bytes(values.read_bytes()[:-1] + b"\xff")
    assert run("models", "verify", "other", "--home", tmp_path).code == 1
    assert run("models", "rm", "other", "--home", tmp_path).code == 0
    assert run("nearest", "dogs", "--pmi", "other", "--home", tmp_path).code == 3


def test_a_bad_command_line_is_one_line(home, tmp_path):
    base = ("train", "pmi", "--name", "x", "--home", tmp_path)
    for args, code, what in [
        ((), 2, "--data"),
        (("--data", home / "nothing.txt"), 3, "no file"),
        (("--data", home / "text.txt"), 2, "no word occurs 10 times in the texts: lower --min-count"),
        (("--data", home / "text.txt", "--memory", "1MB"), 2, "memory is 1,000,000 bytes"),
        (("--data", home / "text.txt", "--window", 2000), 2, "1000"),
    ]:
        done = run(*base, *args)
        assert (done.code, done.out) == (code, "") and what in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "models" / "x").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "signal_number", "code", "kept", "what"),
    [
        (1, signal.SIGTERM, 143, "nothing was kept so far", "begin"),
        (2, signal.SIGTERM, 143, "kept are the counts of words of all sentences", "go on there"),
        (2, signal.SIGINT, 130, "kept are the counts of words of all sentences", "go on there"),
    ],
)
def test_a_stopped_training_says_how_to_go_on(tmp_path, monkeypatch, stage, signal_number, code, kept, what):
    (tmp_path / "text.txt").write_text(TEXT)
    sentences = TEXT.count(".") + TEXT.count("!")
    command = ["train", "pmi", "--data", tmp_path / "text.txt", "--name", "mine", *FREE, "--home", tmp_path]
    monkeypatch.setattr(sys, "argv", ["kgkit", *map(str, command)])
    read = []

    def stop(text):
        """Send the signal while the sentences are read for the first time, or for the second."""
        read.append(text)
        if len(read) == 2 + (stage - 1) * sentences:
            signal.raise_signal(signal_number)
        return text_words(text)

    with monkeypatch.context() as patched:
        patched.setattr(counting, "text_words", stop)
        stopped = run(*command)
    assert stopped.code == code and f"stopped; {kept}" in stopped.err
    assert f"to {what}, give the same command again: kgkit train pmi --data " in stopped.err
    assert not (tmp_path / "models" / "mine").exists()
    assert run(*command).code == 0 and not list((tmp_path / "runs").iterdir())


@pytest.mark.slow
def test_reading_and_counting_load_no_torch(home, tmp_path):
    training = ["train", "pmi", "--data", home / "text.txt", "--name", "x", *FREE, "--home", tmp_path]
    reading = ["nearest", "dogs", "--pmi", "x", "--home", tmp_path]
    loaded = run_python(
        "import sys, contextlib\nfrom kgkit.commands.app import app\n"
        f"for args in {[[*map(str, args)] for args in (training, reading)]}:\n"
        "    with contextlib.suppress(SystemExit): app(args)\n"
        "print([name for name in ('torch', 'transformers', 'faiss') if name in sys.modules])"
    )
    assert "bark" in loaded.stdout and loaded.stdout.splitlines()[-1] == "[]"
