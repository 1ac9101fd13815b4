"""The settings that the trainings of all methods have in common, and what their manifests have.

A method `x` has its own in `kgkit.methods.x_settings`: the settings of its training, its manifest, its kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple, get_type_hints

from kgkit.errors import NotThere, UnknownName, UsageError
from kgkit.evaluation.files import check_data
from kgkit.evaluation.tasks import TASKS
from kgkit.files import COMPRESSIONS, plain_name
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


_SHOWN: Final = 5  # files, in an error

_GOLD: Final = {".data.xml": ".gold.key.txt", ".data.txt": ".gold.txt"}
"""Endings of files of data whose gold lies beside them, of senses and of WiC, and those of the gold."""


def gold_beside(data: Path) -> Path | None:
    """Return the file of gold that lies beside a file of data; None if there is none.

    Examples:
        >>> gold_beside(Path("semcor.data.xml.xz"))
        PosixPath('semcor.gold.key.txt.xz')
    """
    plain = plain_name(data.name)
    names = (plain.removesuffix(end) + gold for end, gold in _GOLD.items() if plain.endswith(end))
    paths = (data.with_name(name + suffix) for name in names for suffix in ("", *COMPRESSIONS))
    return next((path for path in paths if path.exists()), None)


def data_files(data: Sequence[Path], dev: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files to learn from, and those that choose the epoch; of a folder its train.* and dev.*.

    Raises:
        NotThere: if a folder has no train.*.
        UsageError: if it has several, or several dev.*.
    """
    learn, held_out = [], [*dev]
    own_dev = bool(held_out)
    for path in data:
        if not path.is_dir():
            learn.append(path)
            continue
        parts = {"data": sorted(path.glob("train.*")), "dev": [] if own_dev else sorted(path.glob("dev.*"))}
        for option, paths in parts.items():
            if len(paths) > 1:
                names = ", ".join(file.name for file in paths[:_SHOWN])
                raise UsageError(f"{path} has {names}: name the file with --{option}")
        if not parts["data"]:
            files = sorted(file.name for file in path.iterdir())
            listed = ", ".join([*files[:_SHOWN], *(["…"] if len(files) > _SHOWN else [])]) or "is empty"
            raise NotThere(f"no train.* in {path} ({listed}): name the file to learn from with --data")
        learn += parts["data"]
        held_out += parts["dev"]
    return tuple(learn), tuple(held_out)


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of a training that all kinds have.

    Attributes:
        data: files to learn from, or folders, of which the files called train and dev are taken.
        dev: files that choose the epoch; none: a part of the data, not learnt from.
        control: whether knowledge is left out, all else being the same.
        seed: seed of weights, order and dropout.

    Each field, those of derived classes included, has a value of the type that it is annotated with; see
    `convert_setting` for what is converted.

    Raises:
        UsageError: for a value of another type, a number out of range, or settings that do not fit each
            other.
    """

    VECTORS: ClassVar[bool] = False
    """Whether the method reads vectors of entities."""
    SEVERAL_KBS: ClassVar[bool] = True
    """Whether several knowledge bases, and several kinds of vectors, may be named."""
    ONLY_KB: ClassVar[bool] = True
    """Whether the default or only knowledge base is taken where none is named; else there is none."""
    CONTROL_READS_KBS: ClassVar[bool] = False
    """Whether a control is given the knowledge bases too, as one whose vocabulary has their words."""
    KNOWLEDGE: ClassVar[tuple[str, ...]] = ()
    """Settings of what a control leaves out: they have no effect on it."""
    LEAST: ClassVar[Mapping[str, int]] = {"epochs": 1, "seed": 0}
    """The least value of each number."""
    task: ClassVar[str]
    """Name of the task."""

    data: tuple[Path, ...]
    dev: tuple[Path, ...] = ()
    control: bool = False
    seed: int = 0

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read."""
        return (*self.data, *self.dev)

    @property
    def without_effect(self) -> list[str]:
        """Names of the settings that are given, and that a control leaves out; of no control none."""
        return [name for name in self.KNOWLEDGE if self.control and self._is_set(name)]

    def _is_set(self, name: str) -> bool:
        """Say whether a setting is another than its default."""
        return bool(getattr(self, name) != getattr(type(self), name))

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for name in (own.name for own in fields(self)):
            object.__setattr__(self, name, convert_setting(name, getattr(self, name), hints[name]))
        for name, files in zip(("data", "dev"), data_files(self.data, self.dev), strict=True):
            object.__setattr__(self, name, files)
        check_data(self.data)
        for name, least in self.LEAST.items():
            check_range(self, name, least=least)


@dataclass(frozen=True, kw_only=True)
class TaskTraining(Training):
    """Settings of a method's training for a task, beside those of all trainings, see `Training`.

    Attributes:
        task: name of the task.
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

    Raises:
        UnknownName: if there is no such task.
        UsageError: as `Training` does.
    """

    TASKS: ClassVar[tuple[str, ...]]
    """The tasks that the method can be trained for."""
    BY_LENGTH: ClassVar[bool] = True
    """Whether the texts of a step are of like lengths, so that little is padded."""
    REFUSED: ClassVar[tuple[str, ...]] = ()
    """Tasks among `TASKS` that the settings refuse, with an error that says what to train for them."""
    LEAST: ClassVar[Mapping[str, int]] = {**Training.LEAST, "steps": 1, "batch": 1, "size": 8, "decay": 0}

    task: str = field(metadata={"metavar": "TASK"})  # type: ignore[misc]  # a field here
    encoder: str
    size: int = 128
    batch: int = 32
    epochs: int = 3
    steps: int | None = field(default=None, metadata={"option": None})
    lr: float = 2e-5
    lr_new: float = 1e-4
    decay: float = field(default=0.01, metadata={"option": None})
    bf16: bool | Literal["auto"] = field(default="auto", metadata={"option": None})

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read, those of gold beside data among them."""
        return (*super().files, *filter(None, self.gold_of(super().files)))

    def gold_of(self, files: Sequence[Path]) -> list[Path | None]:
        """Return the files of gold beside files of data, for tasks whose data have gold there."""
        apart = self.task == "wsd" or (self.task in TASKS and TASKS[self.task].gold_files)
        found = [gold_beside(path) if apart else None for path in files]
        if lacking := [path for path, gold in zip(files, found, strict=True) if gold is None and any(found)]:
            raise UsageError(f"{lacking[0]} has no file of gold beside it: X.gold.txt of X.data.txt")
        return found

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task not in self.TASKS:
            raise UnknownName("task", self.task, self.TASKS)
        check_range(self, "lr", "lr_new", above=0)
