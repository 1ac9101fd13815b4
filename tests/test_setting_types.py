"""Settings of trainings: each has a value of the type that it is annotated with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

from kgkit.errors import UsageError
from kgkit.methods.settings import TaskTraining
from kgkit.setting_types import convert_setting, convert_settings


class Pair(NamedTuple):
    name: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Settings(TaskTraining):
    TASKS = ("pair",)

    encoder: str = "x"
    pooling: Literal["cls", "mean"] = "cls"
    pairs: tuple[Pair, ...] = ()
    names: tuple[str, ...] = ()
    width: float | None = None


def made(**settings):
    return Settings(task="pair", data=(Path("x.tsv"),), **settings)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("pooling", "max", "'max'; it is 'cls' or 'mean'"),
        ("lr", "fast", "'fast'; it is a number"),
        ("lr", True, "True; it is a number"),
        ("epochs", 2.5, "2.5; it is a whole number"),
        ("steps", "many", "'many'; it is a whole number or None"),
        ("bf16", "yes", "'yes'; it is True, False or 'auto'"),
        ("bf16", 1, "1; it is True, False or 'auto'"),
        ("control", "no", "'no'; it is True or False"),
        ("encoder", None, "None; it is a string"),
        ("names", 7, "7; it is a list, each item a string"),
        ("names", ["a", 1], r"\['a', 1\]; it is a list, each item a string"),
        ("pairs", [("a", 1)], r"\[\('a', 1\)\]; it is a list, each item a Pair"),
        ("dev", [None], r"\[None\]; it is a list, each item a path"),
        ("encoder", [*range(100)], r"\[0, 1, 2, 3, 4, 5, \.\.\.\]; it is a string"),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_values_that_there_are(name, value, words):
    with pytest.raises(UsageError, match=f"^{name} is {words}$"):
        made(**{name: value})


def test_values_that_say_the_same_make_the_same_settings():
    given = made(
        encoder=Path("a/b"), lr=1, width=np.float32(0.5), epochs=np.int64(2), names=["a"], dev=["d.tsv"],
        pairs=[Pair("a", 1)],
    )  # fmt: skip
    plain = made(
        encoder="a/b", lr=1.0, width=0.5, epochs=2, names=("a",), dev=(Path("d.tsv"),), pairs=(Pair("a", 1),)
    )
    assert given == plain and repr(given) == repr(plain)  # a digest is made of it


def test_a_type_that_has_no_instances_takes_what_it_is_given():
    assert convert_setting("x", {"a": 1}, dict[str, int]) == {"a": 1}
    assert convert_setting("x", 3, Any) == 3
    with pytest.raises(UsageError, match="x is 3; it is a dict"):
        convert_setting("x", 3, dict[str, int])


def test_settings_whose_annotation_is_a_string_are_left_as_they_are():
    @dataclass(frozen=True)
    class Some:
        path: Path
        other: "Missing"  # noqa: F821

        def __post_init__(self):
            convert_settings(self)

    assert Some("a", 3) == Some(Path("a"), 3)
    with pytest.raises(UsageError, match="path is 3; it is a path"):
        Some(3, 3)
