"""SIGTERM in every `kgkit train` command: a checkpoint is written, and the same command goes on from it."""

import signal
import sys
from collections import Counter

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.training import kalm as training_kalm
from kgkit.training import loop
from tests.cli_helpers import run
from tests.encoder.test_fresh import SPECIAL
from tests.tiny_encoder import WORDS, tiny_encoder

LABELS = ("--task", "classification", "--data", "{folder}/labels.tsv", "--size", 16)
OF_ENCODER = ("--encoder", "{folder}/encoder", "--batch", 8, "--epochs", 2)
TRAININGS = {
    "kbert": (*LABELS, *OF_ENCODER, "--control"),
    "knowbert": (*LABELS, *OF_ENCODER, "--control"),
    "ebert": (*LABELS, *OF_ENCODER, "--control"),
    "kambert": (*LABELS, *OF_ENCODER, "--control"),
    "kalm": ("--data", "{folder}/plain.txt", "--dev", "{folder}/plain.txt", "--min-count", 1, "--epochs", 2,
             "--control"),
    "encoder": ("--vocabulary", "{folder}/vocab.txt", "--data", "{folder}/plain.txt", "--layers", 1,
                "--width", 16, "--size", 16, "--batch", 4, "--epochs", 2),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder with an encoder, labelled texts and plain text."""
    tiny_encoder(tmp_path / "encoder", mask=True)
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]) + "\n")
    lines = [f"the {word} eats {other}" for word, other in zip(WORDS, reversed(WORDS), strict=True)]
    (tmp_path / "labels.tsv").write_text("".join(f"{line}\t{n % 2}\n" for n, line in enumerate(lines)))
    (tmp_path / "plain.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("head", TRAININGS)
def test_a_terminated_training_leaves_a_checkpoint_that_the_same_command_goes_on_from(
    head, folder, monkeypatch
):
    monkeypatch.setattr(training_kalm, "ROWS", 2)
    monkeypatch.setattr(training_kalm, "LENGTH", 5)
    arguments = [str(argument).format(folder=folder) for argument in TRAININGS[head]]
    command = ["train", head, *arguments, "--name", "small", "--home", folder, "--device", "cpu"]
    steps, move = Counter(), loop._Training._move

    def terminate(training, share):
        """Send the signal while the first step is taken: a training ends with a step."""
        steps["taken"] += 1
        if steps["taken"] == 1:
            signal.raise_signal(signal.SIGTERM)
        return move(training, share)

    monkeypatch.setattr(loop._Training, "_move", terminate)
    monkeypatch.setattr(sys, "argv", ["kgkit", *map(str, command)])
    stopped = run(*command)
    assert stopped.code == 143, stopped.err
    assert "with a checkpoint" in stopped.err and stopped.err.endswith("terminated\n")
    assert f"kgkit train {head} " in stopped.err and "--resume" not in stopped.err
    assert list(folder.glob("runs/*/checkpoint.pt")) and not (folder / "models" / "small").exists()

    finished = run(*command)
    assert "\t\n" not in finished.out  # headings that say nothing
    assert finished.code == 0 and "goes on after 1 of " in finished.err
    assert not list((folder / "runs").iterdir())
