"""Settings of a training, manifest and kind of KALM."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Final

import msgspec

from kgkit.errors import UsageError
from kgkit.inputs.kalm import WordStyle
from kgkit.methods.settings import Training
from kgkit.models.kinds import Kind, Role
from kgkit.models.manifest import ModelManifest


@dataclass(frozen=True, kw_only=True)
class KALMTraining(Training):
    """Settings of a KALM's training, beside those of all trainings, see `Training`.

    Attributes:
        data: files of plain text to learn from, a blank line between documents; they may be compressed.
        dev: files of plain text that choose the epoch; by default the last tenth of the data, which is not
            learnt from then.
        control: whether types are left out: an AWD-LSTM of the same words.
        words: files of plain text whose words the vocabulary has beside those of the data.
        style: how texts are cut into words: by white space (`cased`), or into letters and digits in lower
            case (`recipe`); words of the knowledge base are read in lower case then too.
        min_count: occurrences of a word without a type, below which it is unknown, so that unknown words are
            learnt too.
        open_names: whether words with a capital that the knowledge base lacks may be of any type, which
            contexts tell.
        bidirectional: whether words are predicted from both sides; such a model is a tagger.
        epochs: greatest number of epochs; after three without a gain the training stops.
    """

    SEVERAL_KBS = False
    ONLY_KB = False
    CONTROL_READS_KBS = True
    LEAST: ClassVar[Mapping[str, int]] = {**Training.LEAST, "min_count": 1}
    task: ClassVar[str] = "lm"

    words: tuple[Path, ...] = ()
    style: WordStyle = "cased"
    min_count: int = 1
    open_names: bool = field(default=False, metadata={"option": "--open"})
    bidirectional: bool = False
    epochs: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.open_names and self.style == "recipe":
            raise UsageError(
                "open names are words with a capital, and recipes are read in small letters: leave out "
                "--open, or --style recipe"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that are read."""
        return (*super().files, *self.words)


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

    @property
    def kb_titles(self) -> list[str]:
        """The knowledge base that it was trained with."""
        return [self.kb] if self.kb else []


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
    settings="kgkit.methods.kalm_settings:KALMTraining", plan="kgkit.training.kalm:plan_kalm",
)  # fmt: skip
