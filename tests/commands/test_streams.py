"""Streams and pipes as a shell gives them: closed, read once, without room."""

import io
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import kgkit
from kgkit.commands.evaluate import wsd
from kgkit.commands.messages import Messages
from tests.cli_helpers import COMMAND, run
from tests.tiny_encoder import tiny_encoder
from tests.toys import child_env


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    (folder / "train.tsv").write_text("the dog\t1\na cat\t0\n" * 4)
    kgkit.train(
        "kbert", name="small", home=folder, task="classification", data=folder / "train.tsv", epochs=1,
        encoder=str(tiny_encoder(folder / "encoder")), size=16, batch=8, control=True, device="cpu",
    )  # fmt: skip
    return folder


def shell(script, *args):
    """Run a line of a shell, in which "$@" is `kgkit ARGS`."""
    return subprocess.run(
        ["bash", "-c", script, "-", *COMMAND, *map(str, args)],
        env=child_env(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_standard_input_that_is_closed_is_empty(home):
    done = shell('"$@" <&-', "predict", "--model", "small", "--home", home, "--device", "cpu")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_standard_output_that_is_closed_is_one_error(home):
    done = shell('"$@" >&-', "models", "list", "--home", home)
    assert done.returncode == 1
    assert done.stderr == "error: standard output: Bad file descriptor\n"


def test_standard_error_that_is_closed_changes_no_exit_code(home):
    assert shell('"$@" 2>&-', "models", "info", "nope", "--home", home).returncode == 3


def test_records_of_a_pipe_are_read_once(home, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["bash", "-c", 'printf "the dog\\na cat\\n" > "$1"', "-", pipe]):
        done = run("predict", "--model", "small", "--home", home, "--device", "cpu", pipe)
    assert done.code == 0, done.err
    assert done.out.count("\n") == 2


def test_data_of_a_training_are_no_pipe(home, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: whoever read it would wait for ever
    done = run(
        "train", "kbert", "--task", "classification", "--data", tmp_path / "pipe", "--name", "x", "--control",
        "--encoder", home / "encoder", "--size", 16, "--device", "cpu", "--home", home,
    )  # fmt: skip
    assert done.code == 2
    assert f"error: {tmp_path / 'pipe'} is a pipe, and a training reads its data twice" in done.err


def test_a_label_reaches_no_terminal_as_it_is_and_no_line_of_tabs(home, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text('{"text": "a", "label": "\\u001b[31mx\\ny"}\n{"text": "b", "label": "z"}\n' * 4)
    done = run(
        "train", "kbert", "--task", "classification", "--data", data, "--name", "odd", "--control", "--home",
        home, "--encoder", home / "encoder", "--size", 16, "--device", "cpu", "--epochs", 1,
    )  # fmt: skip
    assert done.code == 0 and "\x1b" not in done.out and "labels: �[31mx y, z\n" in done.out
    arguments = ("--model", "odd", "--home", home, "--device", "cpu", "--predictions", tmp_path / "answers")
    done = run("evaluate", "task", "--data", data, *arguments)
    assert done.code == 2 and "'\\x1b[31mx\\ny'" in done.err
    data.write_text('{"id": "a\\tb", "text": "a", "label": "z"}\n')
    done = run("evaluate", "task", "--data", data, *arguments)
    assert done.code == 2 and "'a\\tb'" in done.err
    assert not (tmp_path / "answers").exists()


def test_dev_labels_that_are_long_are_shortened_in_the_warning(home, tmp_path):
    dev = tmp_path / "dev.tsv"
    dev.write_text(f"a\t{'y' * 100_000}\n")
    done = run(
        "train", "kbert", "--task", "classification", "--data", home / "train.tsv", "--dev", dev, "--name",
        "long", "--control", "--home", home, "--encoder", home / "encoder", "--size", 16, "--device", "cpu",
        "--epochs", 1,
    )  # fmt: skip
    assert done.code == 0 and len(done.err) < 1000 and "teach nothing of yyy" in done.err


def test_what_a_terminal_would_obey_is_left_out_of_errors(home, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.json").write_text(
        '{"format": 1, "kind": "kbert", "name": "x", "command": "\\u001b[31mrm"}'
    )
    for command in ("info", "verify"):
        done = run("models", command, model, "--home", home)
        assert done.code == 1 and "[31mrm" in done.out + done.err and "\x1b" not in done.out + done.err


def test_a_line_with_the_name_of_a_model_does_nothing_to_a_terminal(capfdbinary):
    wsd._write([], "x\x1b[2J\x9b31m\ty\n")
    out, _ = capfdbinary.readouterr()
    first = out.decode().split("\n")[0]
    assert first.startswith("model x�[2J�31m\ty") and not {"\x1b", "\x9b"} & {*out.decode()}


class Terminal(io.StringIO):
    """A terminal that remembers what it is to show."""

    def isatty(self):
        return True


def test_progress_with_the_name_of_a_model_does_nothing_to_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Messages().progress("scoring x\x1b[2Jy") as tell:
        tell("set z\x1b[2J")
    shown = sys.stderr.getvalue()
    assert "scoring x�[2Jy: set z�[2J" in shown and "\x1b[2J" not in shown
