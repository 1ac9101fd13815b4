"""Settings of a training, manifest and kind of K-BERT."""

from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from kgkit.errors import UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.settings import USE, LinkedTextManifest, TaskTraining
from kgkit.models.kinds import Kind

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
        max_facts: number of facts of a mention, in the order of the data.
        attributes: whether what a knowledge base says in words and numbers is injected too, behind its facts.
    """

    TASKS = tuple(TASKS)
    REFUSED = _MARKED
    KNOWLEDGE = ("query", "linker", "max_facts", "attributes")
    LEAST: ClassVar = {**TaskTraining.LEAST, "max_facts": 1}

    encoder: str = "bert-base-chinese"
    epochs: int = 5
    query: Literal["longest", "jieba", "link"] = field(default="longest", metadata={"metavar": "BY"})
    linker: str = field(default="", metadata={"metavar": "MODEL"})
    max_facts: int = 2
    attributes: bool = False

    @property
    def relations(self) -> bool:
        """Whether the name of a relation is injected before the object."""
        return self.task != "tagging"

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


class KBertManifest(LinkedTextManifest, frozen=True, kw_only=True):
    """Manifest of a trained K-BERT.

    Attributes:
        query: which words of a text the knowledge bases are asked for: with `link`, those of the links.
        max_facts, relations, attributes: what is injected, see `TreeConfig`.
    """

    query: str
    max_facts: int
    relations: bool
    attributes: bool = False

    @property
    def kbs(self) -> dict[str, str]:
        """Its knowledge bases and their builds, those whose facts come first first; none in a control."""
        return self.needs.kbs


KBERT: Final = Kind(
    name="kbert", title="a K-BERT", manifest=KBertManifest, encoder="kbert/encoder",
    about="an encoder that reads texts with facts in them (Liu et al. 2020)",
    roles={"predictor": "kgkit.methods.kbert:open_predictor"}, use=USE,
    settings="kgkit.methods.kbert_settings:KBertTraining", begin="kgkit.methods.kbert:begin_kbert",
)  # fmt: skip
