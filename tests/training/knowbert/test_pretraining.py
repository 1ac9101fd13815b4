"""An encoder from nothing: its training, and what begins as it."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")


from kgkit.home import Home
from kgkit.methods.knowbert_settings import KNOWBERT
from kgkit.models.folder import find_trained
from tests.cli_helpers import run
from tests.encoder.test_fresh import vocabulary
from tests.knowbert_toys import plain
from tests.tiny_encoder import WORDS

__all__ = ["vocabulary"]


def test_the_command_trains_what_others_begin_as(vocabulary, tmp_path):
    home, text = tmp_path / "home", plain(tmp_path / "plain.txt")
    common = ("--home", home, "--device", "cpu")
    small = ("--layers", 2, "--width", 16, "--size", 20, "--batch", 8, "--steps", 2)
    done = run(
        "train", "encoder", "--vocabulary", vocabulary, "--data", text, "--name", "small", *small, *common
    )
    assert done.code == 0, done.err
    assert done.out.startswith("small: 2 layers of 16\n") and "perplexity" in done.out
    made = KNOWBERT.read(find_trained(Home(home), "small"))
    assert made.language_model and made.kbs == {} and made.task == "mlm"
    examples = tmp_path / "texts.tsv"
    examples.write_text("".join(f"the {word} eats\t{n % 2}\n" for n, word in enumerate(WORDS[:20])))
    begun = run("train", "kbert", "--task", "classification", "--control", "--encoder", "small", "--data",
                examples, "--name", "told", "--size", 20, "--epochs", 1, "--json", *common)  # fmt: skip
    assert begun.code == 0, begun.err
    assert json.loads(begun.out)["encoder"] == "small"
    more = run("train", "knowbert", "--task", "mlm", "--control", "--from", "small", "--data", text, "--name",
               "more", "--size", 20, "--batch", 8, "--steps", 2, *common)  # fmt: skip
    assert more.code == 0, more.err
