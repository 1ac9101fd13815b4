"""What a K-BERT is trained on, and how: the settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kgkit.errors import UnknownName, UsageError
from kgkit.trees.building import QUERIES

TASKS: Final = ("classification", "pair", "ranking", "tagging")


@dataclass(frozen=True, kw_only=True)
class KBertTraining:
    """What a K-BERT is trained on, and how. The usual numbers are those of the released code.

    Attributes:
        task: see `kgkit.training.kbert_tasks`.
        data: files.
        dev: files that choose the epoch; none: a part of the data, not learnt from.
        encoder: a folder, a package or a hub id; or a model of `kgkit train encoder`.
        control: the same without knowledge bases.
        query: which words of a text a knowledge base is asked for. `longest`: its longest surfaces; `jieba`:
            words as jieba cuts them; `link`: what the linker *linker* says is meant.
        linker: of the query `link`.
        coherence: whether its links are to agree within a text, see `Linker`.
        max_facts: of a mention.
        relations: whether the name of a relation is injected too; None: but in tagging.
        attributes: whether what a knowledge base says in words and numbers is injected too, behind its facts.
        soft_positions, visible_matrix: see `KBertConfig`.
        size: word pieces of a tree, facts and special ones included.
        batch: texts of a step.
        epochs: how often all is read.
        steps: instead of it.
        lr: of the encoder.
        lr_new: of what stands on it.
        decay: of weights, by AdamW; biases and norms have none.
        bf16: products in bfloat16; auto: where the device is made for it.
        seed: of weights, order and dropout.

    Raises:
        UnknownName: for a task, or a query, that there is not.
        UsageError: for a number out of range, or settings that do not fit each other.
    """

    task: str
    data: tuple[Path, ...]
    dev: tuple[Path, ...] = ()
    encoder: str = "bert-base-chinese"
    control: bool = False
    query: str = "longest"
    linker: str = ""
    coherence: Literal["graph"] | None = None
    max_facts: int = 2
    relations: bool | None = None
    attributes: bool = False
    soft_positions: bool = True
    visible_matrix: bool = True
    size: int = 128
    batch: int = 32
    epochs: int = 5
    steps: int | None = None
    lr: float = 2e-5
    lr_new: float = 1e-4
    decay: float = 0.01
    bf16: bool | Literal["auto"] = "auto"
    seed: int = 0

    @property
    def files(self) -> tuple[Path, ...]:
        """All that is read."""
        return (*self.data, *self.dev)

    @property
    def says_relations(self) -> bool:
        """Whether the name of a relation is injected."""
        return self.task != "tagging" if self.relations is None else self.relations

    def __post_init__(self) -> None:
        for what, value, known in (("task", self.task, TASKS), ("query", self.query, QUERIES)):
            if value not in known:
                raise UnknownName(what, value, known)
        if not self.data:
            raise UsageError("there is nothing to learn from: name files of data")
        if self.query == "link" and not self.linker:
            raise UsageError("the query link asks a linker: name one, as prior (--linker)")
        if self.linker and self.query != "link":
            raise UsageError(
                f"the query {self.query} asks no linker: leave {self.linker} out, or ask by link"
            )
        if self.coherence and self.query != "link":
            raise UsageError("coherence lets links agree, and only the query link makes some")
        least = {"epochs": 1, "steps": 1, "batch": 1, "size": 4, "seed": 0, "decay": 0, "max_facts": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise UsageError(f"{name} is {value}; it is {low} or more")
        for name in ("lr", "lr_new"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it is above 0")
