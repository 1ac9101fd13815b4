"""Settings of a training, manifest and kind of KALM.

Two presets say how large the model is, and how it learns:

paper   the sizes and the averaged SGD of AWD-LSTM, as Liu et al. (2019) took them: for a GPU
cpu     a smaller one, by Adam: about a minute an epoch of CoNLL-2003 on two cores
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from kgkit.errors import UsageError
from kgkit.inputs.kalm import WordStyle
from kgkit.models.kinds import Kind, Role
from kgkit.models.manifest import ModelManifest
from kgkit.ranges import check_range


@dataclass(frozen=True, kw_only=True)
class KALMPreset:
    """How large a KALM is, and how it learns.

    Attributes:
        sizes: settings of `KALMConfig`.
        schedule: how the optimizer is set, fields of `TrainingConfig`.
        optimizer: averaged SGD, or Adam.
        lr, decay: learning rate and weight decay.
        batch: rows that are read at once.
        length: words of each that are read at once.
        epochs: epochs, at most; after `patience` of them without a gain the training stops.
    """

    sizes: Mapping[str, float]
    schedule: Mapping[str, Any]
    optimizer: Literal["sgd", "adam"]
    lr: float
    decay: float
    batch: int
    length: int
    epochs: int
    patience: int


PRESETS: Final[Mapping[str, KALMPreset]] = {
    "paper": KALMPreset(
        sizes={},
        schedule={"schedule": "constant", "warmup": 0.0, "clip": 0.25, "average_after": 5},
        optimizer="sgd", lr=10.0, decay=1.2e-6, batch=80, length=70, epochs=500, patience=10,
    ),
    "cpu": KALMPreset(
        sizes={
            "embedding": 100, "hidden": 200, "type_width": 32, "layers": 2, "dropout_words": 0.05,
            "dropout_input": 0.3, "dropout_hidden": 0.2, "dropout_output": 0.3, "activation": 1.0,
        },
        schedule={"schedule": "cosine", "warmup": 0.05, "clip": 0.5},
        optimizer="adam", lr=4e-3, decay=0.0, batch=20, length=35, epochs=10, patience=3,
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class KALMTraining:
    """What a KALM is trained on, and how.

    Attributes:
        data: files of plain text to learn from, a blank line between documents; they may be compressed.
        dev: files of plain text that choose the epoch; by default the last tenth of the data, which is not
            learnt from then.
        kb: knowledge base of types, as `kgkit build-kb type_vocabulary` makes it; a control alone has none.
        words: files of plain text whose words the vocabulary has beside those of *data*.
        style: how texts are cut into words: by white space (`cased`), or into letters and digits in lower
            case (`recipe`); words of *kb* are read in lower case then too.
        min_count: occurrences of a word without a type, below which it is unknown, so that unknown words are
            learnt too.
        open_names: whether words with a capital that *kb* lacks may be of any type, which contexts tell.
        bidirectional: whether words are predicted from both sides; such a model is a tagger.
        control: whether types are left out: an AWD-LSTM of the same words.
        preset: sizes and schedule: `cpu`, or `paper`, those of the paper, for a GPU.
        epochs: greatest number of epochs; by default the preset's.
        seed: seed of weights, order and dropout.
    """

    LEAST: ClassVar[Mapping[str, float]] = {"min_count": 1, "epochs": 1, "seed": 0}
    """The least value of each number."""

    data: tuple[Path, ...]
    dev: tuple[Path, ...] = ()
    kb: str | None = field(default=None, metadata={"metavar": "KB"})
    words: tuple[Path, ...] = ()
    style: WordStyle = "cased"
    min_count: int = 1
    open_names: bool = field(default=False, metadata={"option": "--open"})
    bidirectional: bool = False
    control: bool = False
    preset: Literal["cpu", "paper"] = "cpu"
    epochs: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.data:
            raise UsageError("there is nothing to learn from: name files of plain text")
        if self.kb is None and not self.control:
            raise UsageError(
                "a KALM needs a knowledge base of types: name one with --kb, or train the AWD-LSTM below it "
                "with --control"
            )
        if self.open_names and self.style == "recipe":
            raise UsageError(
                "open names are words with a capital, and recipes are read in small letters: leave out "
                "--open, or --style recipe"
            )
        for name, least in self.LEAST.items():
            check_range(self, name, least=least)

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        return [*self.data, *self.dev, *self.words]


class KALMManifest(ModelManifest, frozen=True, kw_only=True):
    """Manifest of a trained KALM; it has no encoder, and needs no knowledge base any more.

    Attributes:
        types: of words, as its knowledge base has them; none in a control.
        kb: the build of that knowledge base, as KB@BUILD; empty in a control.
        bidirectional: whether words are predicted from both sides.
        style: how texts are cut into words, as `kgkit.inputs.kalm` has it.
        length: words that are read at once.
    """

    types: tuple[str, ...]
    kb: str
    bidirectional: bool
    style: WordStyle
    length: Annotated[int, msgspec.Meta(ge=3, le=100_000)]


def _roles_of_kalm(manifest: KALMManifest) -> tuple[Role, ...]:
    names = manifest.bidirectional and bool(manifest.types)
    return ("language_model", "tagger") if names else ("language_model",)


KALM: Final = Kind(
    name="kalm", title="a KALM", manifest=KALMManifest, roles_of=_roles_of_kalm,
    about="a language model of words with latent types (Liu et al. 2019)",
    roles={
        "language_model": "kgkit.methods.kalm:open_language_model",
        "tagger": "kgkit.methods.kalm:open_tagger",
    },
    use="`kgkit evaluate ppl --model {name}` scores it; one of both directions with types finds mentions, "
    "as a tagger",
)  # fmt: skip
