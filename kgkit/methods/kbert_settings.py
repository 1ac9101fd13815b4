"""What a K-BERT is trained on, and how: the settings."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from kgkit.errors import UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.settings import TaskTraining

_MARKED = tuple(name for name, task in TASKS.items() if task.names)


@dataclass(frozen=True, kw_only=True)
class KBertTraining(TaskTraining):
    """What a K-BERT is trained on, and how; what is common to all methods, see `TaskTraining`.

    The default numbers are those of the released code.

    Attributes:
        encoder: folder, package or hub id of the encoder, or a model of `kgkit train encoder`.
        size: word pieces of a text, special ones and its facts included.
        query: words of a text that are looked up: `longest` surfaces, `jieba`'s words, or what a linker links
            (`link`).
        linker: linker that the query `link` asks: `prior`, `gloss`, or a trained one.
        coherence: rescoring of its links within a text: `graph`, by neighbours in the knowledge base.
        max_facts: number of facts of a mention, in the order of the data.
        relations: whether the names of relations are injected too; default: on, off for tagging.
        attributes: whether what a knowledge base says in words and numbers is injected too, behind its facts.
    """

    TASKS = tuple(TASKS)
    REFUSED = _MARKED
    KNOWLEDGE = ("query", "linker", "coherence", "max_facts", "relations", "attributes")
    LEAST: ClassVar = {**TaskTraining.LEAST, "max_facts": 1}

    encoder: str = "bert-base-chinese"
    epochs: int = 5
    query: Literal["longest", "jieba", "link"] = field(default="longest", metadata={"metavar": "BY"})
    linker: str = field(default="", metadata={"metavar": "MODEL"})
    coherence: Literal["graph"] | None = field(default=None, metadata={"metavar": "KIND"})
    max_facts: int = 2
    relations: bool | None = None
    attributes: bool = False

    @property
    def injects_relations(self) -> bool:
        """Whether the name of a relation is injected."""
        return self.task != "tagging" if self.relations is None else self.relations

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task in self.REFUSED:
            raise UsageError(
                f"the task {self.task} marks names, and the sentence trees of a K-BERT carry no marks: train "
                "a KnowBert for it"
            )
        if self.query == "link" and not self.linker:
            raise UsageError("the query link asks a linker: name one, as prior (--linker)")
        if self.linker and self.query != "link":
            raise UsageError(
                f"the query {self.query} asks no linker: leave {self.linker} out, or ask by link"
            )
        if self.coherence and self.query != "link":
            raise UsageError("coherence lets links agree, and only the query link makes some")
