"""`kgkit train linker`: what the command line makes of its options."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

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
        (["--epochs", 2], "--control and --epochs are settings of the types head and full, not of ridge"),
        (["--control"], "--control and --epochs are settings of the types head and full, not of ridge"),
        (["--portable", "kb"], "add --type head"),
        (["--type", "head", "--seed", -1], "--seed"),
        (["--rung", "head"], "it is called --type now"),
    ],
)
def test_options_that_do_not_go_together_are_refused(kb, corpus, options, said):
    done = train(kb, corpus, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
