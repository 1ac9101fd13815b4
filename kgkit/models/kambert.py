"""KAM-BERTs among the trained models: what one says of itself, and how it is trained and opened."""

from typing import Annotated, Final

import msgspec

from kgkit.inputs.maps import MapName
from kgkit.models.kinds import LinkedTextManifest, task_kind


class KamBertManifest(LinkedTextManifest, frozen=True, kw_only=True):
    """What a trained KAM-BERT says of itself.

    Attributes:
        maps: names of its maps; none in a control.
        tagger: model, or spaCy pipeline, that finds names; `links`: the links of the linker are names; empty:
            there is no map of names.
        chunker: model, or spaCy pipeline, that finds phrases, or file of trees that has them; empty: there is
            no map of phrases.
        pmi: PMI table; empty: there are neither correlations nor auxiliary words.
        terms: number of auxiliary words of a text.
        sources: what identifies the sources of maps when it was trained, by their names: SHA-256 of their
            manifests, the version of a spaCy pipeline, or size and SHA-256 of a file of trees as it was.
        specials: pieces that were added for the task.
        spaced: whether auxiliary words are cut as between words; not so in version 0.2.0.
    """

    maps: tuple[MapName, ...] = ()
    tagger: str = ""
    chunker: str = ""
    pmi: str = ""
    terms: Annotated[int, msgspec.Meta(ge=0)] = 0
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    specials: tuple[str, ...] = ()
    spaced: bool = False


KAMBERT: Final = task_kind(
    "kambert",
    "a KAM-BERT",
    KamBertManifest,
    "an encoder whose attention is mixed with maps of what is known of a text (Bai et al. 2022)",
)
