"""The settings that the trainings of all methods have in common, and what their manifests have.

A method `x` has its own in `kgkit.methods.x_settings`: the settings of its training, its manifest, its kind.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple, get_type_hints

from kgkit.errors import UnknownName, UsageError
from kgkit.evaluation.files import check_data, check_gold_files, refuse_gold_files
from kgkit.evaluation.tasks import TASKS
from kgkit.kb import KnowledgeBase
from kgkit.models.manifest import ModelManifest
from kgkit.ranges import check_range
from kgkit.setting_types import convert_setting


class ChosenKB(NamedTuple):
    """A knowledge base, and the names of the vectors that are taken of its entities, joined."""

    kb: KnowledgeBase
    vectors: tuple[str, ...]


def check_knowledge(*alternatives: object) -> None:
    """Make sure that a model has knowledge, or is told to have none.

    Args:
        alternatives: knowledge bases, a model that has some, `control`; one of them is to be there.

    Raises:
        UsageError: if none is.
    """
    if not any(alternatives):
        raise UsageError("there is no knowledge base: name one with --kb, or say --control")


USE: Final = "`kgkit predict --model {name}` answers its task, `kgkit evaluate` scores it"
"""Commands for a model that answers a task."""


class LinkedTextManifest(ModelManifest, frozen=True, kw_only=True):
    """Manifest of a trained model that reads links; its encoder lies in the folder as it is now.

    Attributes:
        size: word pieces of a text, what is injected and special ones included.
        linker: model whose links are read; "": only links that are given.
        linker_sha256: of the manifest of that linker; empty where it is none that is trained.
    """

    size: int
    linker: str = ""
    linker_sha256: str = ""


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
    BY_LENGTH: ClassVar[bool] = True
    """Whether the texts of a step are of like lengths, so that little is padded."""
    VECTORS: ClassVar[bool] = False
    """Whether the method reads vectors of entities."""
    SEVERAL_KBS: ClassVar[bool] = True
    """Whether several knowledge bases, and several kinds of vectors, may be named."""
    ONLY_KB: ClassVar[bool] = True
    """Whether the default or only knowledge base is taken where none is named; else there is none."""
    REFUSED: ClassVar[tuple[str, ...]] = ()
    """Tasks among `TASKS` that the settings refuse, with an error that says what to train for them."""
    KNOWLEDGE: ClassVar[tuple[str, ...]] = ()
    """Settings of what a control leaves out: they have no effect on it."""
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
        """All files that the settings name as files."""
        return (*self.data, *self.gold, *self.dev, *self.dev_gold)

    @property
    def without_effect(self) -> list[str]:
        """Names of the settings that are given, and that a control leaves out; of no control none."""
        return [name for name in self.KNOWLEDGE if self.control and self._is_set(name)]

    def _is_set(self, name: str) -> bool:
        """Say whether a setting is another than its default."""
        return bool(getattr(self, name) != getattr(type(self), name))

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            value = convert_setting(field.name, getattr(self, field.name), hints[field.name])
            object.__setattr__(self, field.name, value)
        if self.task not in self.TASKS:
            raise UnknownName("task", self.task, self.TASKS)
        if self.epochs:
            check_data(self.data)
        for data, gold in ((self.data, self.gold), (self.dev, self.dev_gold)):
            if self.task in TASKS and gold:
                if not TASKS[self.task].gold_files:
                    refuse_gold_files(self.task, gold)
                check_gold_files(data, gold)
        for name, least in self.LEAST.items():
            check_range(self, name, least=least)
        check_range(self, "lr", "lr_new", above=0)
