"""`kgkit train linker`: what the command line makes of its options."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.errors import UsageError
from tests.cli_helpers import run
from tests.training.linkers.test_linkers import corpus, encoder, folder, kb

__all__ = ["corpus", "encoder", "folder", "kb"]


def train(kb, corpus, *options):
    home, (data, gold) = kb.home.path.parents[1], corpus
    common = ("--task", "wsd", "--name", "m", "--data", data, "--gold", gold, "--device", "cpu")
    return run("train", "linker", *common, "--home", home, "--json", *options)


def test_examples_are_kept_out_by_their_letters(kb, corpus, tmp_path):
    (tmp_path / "without.txt").write_text("it is not a dog\nThe DOG, eats: the fruit!\n")
    learnt = []
    for options in ((), ("--examples",), ("--examples", "--without", tmp_path / "without.txt")):
        done = train(kb, corpus, *options)
        assert done.code == 0, done.err
        learnt.append(json.loads(done.out)["results"]["mentions"])
    assert [count - learnt[0] for count in learnt] == [0, 2, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", 1], "ridge draws nothing at random: leave out --seed"),
        (
            ["--epochs", 2],
            "--epochs and --bf16 are settings of the type head, not of ridge",
        ),
        (
            ["--control"],
            "--control, --epochs and --bf16 are settings of the type head, not of",
        ),
        (
            ["--no-bf16"],
            "--control, --epochs and --bf16 are settings of the type head, not of",
        ),
        (["--portable", "kb"], "add --type head"),
        (["--type", "head", "--seed", -1], "--seed"),
        (["--type", "head", "--seed", 2**32 - 1, "--heads", 2], "it is from 0 to 4294967294, as there are 2"),
        (["--type", "head", "--heads", 10**11], "heads is 100000000000; it is from 1 to 10000"),
    ],
)
def test_options_that_do_not_go_together_are_refused(kb, corpus, options, said):
    done = train(kb, corpus, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_linker_reads_as_many_word_pieces_at_once_as_the_command_says(kb, corpus):
    sizes = {}
    for options in ((), ("--size", 12)):
        done = train(kb, corpus, *options)
        assert done.code == 0, done.err
        reader = json.loads(done.out)["reader"]
        sizes[options] = reader["size"], reader["context"]
    assert sizes[()][0] > 12 and sizes["--size", 12] == (12, 3)
    done = train(kb, corpus, "--size", 5_000)
    assert (done.code, "windows of 5000 pieces and 2 special ones do not fit" in done.err) == (2, True), (
        done.err
    )
    assert train(kb, corpus, "--size", 7).code == 2  # fewer than a command takes


@pytest.mark.parametrize(("options", "weight"), [((), None), (("--text-weight", 2.5), 2.5)])
def test_the_weight_of_texts_reaches_the_settings_of_the_head(kb, corpus, monkeypatch, options, weight):
    chosen = []

    def record(opened, name, training, **others):
        chosen.append(training.head)
        raise UsageError("this is enough")

    monkeypatch.setattr("kgkit.training.linkers.train.train_linker", record)
    assert train(kb, corpus, "--type", "head", "--portable", "kb", *options).code == 2
    assert [settings.text_weight for settings in chosen] == [weight]


@pytest.mark.parametrize(("options", "bf16"), [((), None), (("--bf16",), True), (("--no-bf16",), False)])
def test_products_are_computed_as_the_command_says(kb, corpus, monkeypatch, options, bf16):
    chosen = []

    def record(opened, name, training, **others):
        chosen.append(training.head)
        raise UsageError("this is enough")

    monkeypatch.setattr("kgkit.training.linkers.train.train_linker", record)
    assert train(kb, corpus, "--type", "head", *options).code == 2
    assert [settings.bf16 for settings in chosen] == [bool(bf16)]


def test_a_head_is_trained_in_bfloat16(kb, corpus):
    short = ("--type", "head", "--epochs", 1)
    trained = {option: train(kb, corpus, *short, option) for option in ("--bf16", "--no-bf16")}
    assert {option: done.code for option, done in trained.items()} == {"--bf16": 0, "--no-bf16": 0}
    config = {option: json.loads(done.out)["config"]["head"] for option, done in trained.items()}
    assert config["--bf16"].pop("bf16") and not config["--no-bf16"].pop("bf16")
    assert config["--bf16"] == config["--no-bf16"]
