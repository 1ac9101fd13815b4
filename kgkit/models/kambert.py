"""KAM-BERTs among the trained models: what one says of itself, and how it is trained and opened."""

from typing import Final

import msgspec

from kgkit.inputs.maps import MapName
from kgkit.models.kinds import LinkedTextManifest, task_kind


class KamBertManifest(LinkedTextManifest, frozen=True, kw_only=True):
    """What a trained KAM-BERT says of itself.

    Attributes:
        maps: names of its maps; none in a control.
        tagger: model, or spaCy pipeline, that finds names; `links`: the links of the linker are names; empty:
            there is no map of names.
        chunker: model, or spaCy pipeline, that finds phrases; empty: there is no map of phrases.
        pmi: PMI table; empty: there are neither correlations nor auxiliary words.
        terms: number of auxiliary words of a text.
        sources: what identifies the sources of maps when it was trained, by their names: SHA-256 of their
            manifests, or the version of a spaCy pipeline.
        other_maps: whether it reads maps of other texts, which lie in the folder, as a control.
        specials: pieces that were added for the task.
    """

    maps: tuple[MapName, ...] = ()
    tagger: str = ""
    chunker: str = ""
    pmi: str = ""
    terms: int = 0
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    other_maps: bool = False
    specials: tuple[str, ...] = ()


KAMBERT: Final = task_kind(
    "kambert",
    "a KAM-BERT",
    KamBertManifest,
    "an encoder whose attention is mixed with maps of what is known of a text (Bai et al. 2022)",
)
