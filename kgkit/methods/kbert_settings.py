"""What a K-BERT is trained on, and how: the settings."""

from dataclasses import dataclass
from typing import Literal

from kgkit.errors import UnknownName, UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.settings import TaskTraining
from kgkit.trees.building import QUERIES


@dataclass(frozen=True, kw_only=True)
class KBertTraining(TaskTraining):
    """What a K-BERT is trained on, and how; what is common to all methods, see `TaskTraining`.

    The default numbers are those of the released code.

    Attributes:
        encoder: a folder, a package or a hub id; or a model of `kgkit train encoder`.
        query: which words of a text a knowledge base is asked for. `longest`: its longest surfaces; `jieba`:
            words as jieba cuts them; `link`: what the linker *linker* says is meant.
        linker: of the query `link`.
        coherence: whether its links are to agree within a text, see `Linker`.
        max_facts: number of facts of a mention.
        relations: whether the name of a relation is injected too; None: but in tagging.
        attributes: whether what a knowledge base says in words and numbers is injected too, behind its facts.
        soft_positions, visible_matrix: see `KBertConfig`.
    """

    TASKS = tuple(TASKS)
    BY_LENGTH = True

    encoder: str = "bert-base-chinese"
    epochs: int = 5
    query: str = "longest"
    linker: str = ""
    coherence: Literal["graph"] | None = None
    max_facts: int = 2
    relations: bool | None = None
    attributes: bool = False
    soft_positions: bool = True
    visible_matrix: bool = True

    @property
    def injects_relations(self) -> bool:
        """Whether the name of a relation is injected."""
        return self.task != "tagging" if self.relations is None else self.relations

    def __post_init__(self) -> None:
        super().__post_init__()
        if TASKS[self.task].names:
            raise UsageError(
                f"the task {self.task} marks names, and the sentence trees of a K-BERT carry no marks: train "
                "a KnowBert for it"
            )
        if self.query not in QUERIES:
            raise UnknownName("query", self.query, QUERIES)
        if self.max_facts < 1:
            raise UsageError(f"max_facts is {self.max_facts}; it is 1 or more")
        if self.query == "link" and not self.linker:
            raise UsageError("the query link asks a linker: name one, as prior (--linker)")
        if self.linker and self.query != "link":
            raise UsageError(
                f"the query {self.query} asks no linker: leave {self.linker} out, or ask by link"
            )
        if self.coherence and self.query != "link":
            raise UsageError("coherence lets links agree, and only the query link makes some")
