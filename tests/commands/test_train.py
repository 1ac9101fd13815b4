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
    common = ("--name", "m", "--data", data, "--gold", gold, "--device", "cpu")
    return run("train", "linker", *common, "--home", home, "--json", *options)


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
