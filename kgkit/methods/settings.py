"""The settings that the trainings of all methods have in common."""

import operator
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from reprlib import repr as short_repr
from types import NoneType, UnionType
from typing import Any, ClassVar, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from kgkit.errors import UnknownName, UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.kb import KnowledgeBase


class ChosenKB(NamedTuple):
    """A knowledge base, and the names of the vectors that are taken of its entities, joined."""

    kb: KnowledgeBase
    vectors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TaskTraining:
    """What a method is trained on, and how.

    Attributes:
        task: name of the task.
        data: files to learn from.
        gold: files of gold, one for each file of data, where these have none.
        dev: files that choose the epoch; none: a part of the data, not learnt from.
        dev_gold: files of gold, one for each of *dev*.
        encoder: folder, package or hub id of the encoder that it begins as.
        control: whether knowledge bases are left out, all else being the same.
        size: word pieces of a text, special ones included.
        batch: texts of a step.
        epochs: number of times that all data are read.
        steps: number of steps, instead of epochs.
        lr: learning rate of the encoder, and of what it had on top.
        lr_new: learning rate of what is new.
        decay: weight decay of AdamW; biases and norms have none.
        bf16: whether products are in bfloat16; auto: where the device is made for it.
        seed: seed of weights, order and dropout.

    Each field, those of derived classes included, has a value of the type that it is annotated with; see
    `convert_setting` for what is converted.

    Raises:
        UnknownName: if there is no such task.
        UsageError: for a value of another type, a number out of range, or settings that do not fit each
            other.
    """

    TASKS: ClassVar[tuple[str, ...]]
    """The tasks that the method can be trained for."""
    BY_LENGTH: ClassVar[bool] = False
    """Whether the texts of a step are of like lengths."""
    VECTORS: ClassVar[bool] = False
    """Whether the method reads vectors of entities."""
    ONLY_KB: ClassVar[bool] = True
    """Whether the only knowledge base there is is taken where none is named; else the method goes without."""
    LEAST: ClassVar[dict[str, int]] = {"epochs": 1, "steps": 1, "batch": 1, "size": 8, "seed": 0, "decay": 0}
    """The least value of each number."""

    task: str
    data: tuple[Path, ...]
    gold: tuple[Path, ...] = ()
    dev: tuple[Path, ...] = ()
    dev_gold: tuple[Path, ...] = ()
    encoder: str
    control: bool = False
    size: int = 128
    batch: int = 32
    epochs: int = 3
    steps: int | None = None
    lr: float = 2e-5
    lr_new: float = 1e-4
    decay: float = 0.01
    bf16: bool | Literal["auto"] = "auto"
    seed: int = 0

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read."""
        return (*self.data, *self.gold, *self.dev, *self.dev_gold)

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            value = convert_setting(field.name, getattr(self, field.name), hints[field.name])
            object.__setattr__(self, field.name, value)
        if self.task not in self.TASKS:
            raise UnknownName("task", self.task, self.TASKS)
        if not self.data:
            raise UsageError("there is nothing to learn from: name files of data")
        if self.task in TASKS and not TASKS[self.task].gold_files and (self.gold or self.dev_gold):
            raise UsageError(f"data of {self.task} hold their gold: leave out the files of gold")
        for data, gold in ((self.data, self.gold), (self.dev, self.dev_gold)):
            if self.task in TASKS and gold and len(data) != len(gold):
                raise UsageError(f"{len(data)} files of data and {len(gold)} of gold: each needs the other")
        for name, least in self.LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{name} is {value}; it is {least} or more")
        for name in ("lr", "lr_new"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it is above 0")


_MISFIT: Final = object()
_TYPES_IN_WORDS: Final[dict[object, tuple[str, ...]]] = {
    str: ("a string",), int: ("a whole number",), float: ("a number",), bool: ("True", "False"),
    Path: ("a path",), NoneType: ("None",),
}  # fmt: skip


def convert_setting(name: str, value: Any, hint: Any) -> Any:
    """Return the value of a setting as the type that it is annotated with.

    A path and a string stand for each other, a list for a tuple, a whole number for a float, and numbers of
    NumPy for those of Python. A value of a type that is not known here is returned as it is.

    Args:
        name: name of the setting, for the error.
        value: value that was given.
        hint: annotation, as `typing.get_type_hints` returns it.

    Raises:
        UsageError: if the value is of another type, or is none of those that a `Literal` has.

    Example:
        >>> convert_setting("pooling", "max", Literal["cls", "mean"])
        Traceback (most recent call last):
        kgkit.errors.UsageError: pooling is 'max'; it is 'cls' or 'mean'
    """
    converted = _convert(value, hint)
    if converted is _MISFIT:
        raise UsageError(f"{name} is {short_repr(value)}; it is {_in_words(hint)}")
    return converted


def _convert(value: Any, hint: Any) -> Any:
    """Return a value as one of a type; `_MISFIT` if it is none."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return next((part for part in parts if type(part) is type(value) and part == value), _MISFIT)
    if kind in (Union, UnionType):
        values = (_convert(value, part) for part in parts)
        return next((one for one in values if one is not _MISFIT), _MISFIT)
    if kind is tuple and parts[1:] == (...,):
        items = [_convert(item, parts[0]) for item in value] if isinstance(value, list | tuple) else [_MISFIT]
        return _MISFIT if any(item is _MISFIT for item in items) else tuple(items)
    if kind in (str, Path):
        return kind(value) if isinstance(value, str | Path) else _MISFIT
    if kind in (int, float):
        number = Integral if kind is int else Real
        fits = isinstance(value, number) and not isinstance(value, bool)
        return (operator.index if kind is int else float)(value) if fits else _MISFIT
    try:
        return value if isinstance(value, kind) else _MISFIT
    except TypeError:  # nothing that values are instances of
        return value


def _in_words(hint: Any) -> str:
    """Return what a value of a type is, in words."""
    *others, last = _alternatives(hint)
    return f"{', '.join(others)} or {last}" if others else last


def _alternatives(hint: Any) -> list[str]:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return [repr(part) for part in parts]
    if kind in (Union, UnionType):
        return [words for part in parts for words in _alternatives(part)]
    if kind is tuple and parts[1:] == (...,):
        return [f"a list, each item {_in_words(parts[0])}"]
    return [*_TYPES_IN_WORDS.get(kind, (f"a {getattr(kind, '__name__', kind)}",))]
