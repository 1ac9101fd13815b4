"""The kind of model that a KALM is: one without an encoder."""

from typing import Annotated, Final, Literal

import msgspec

from kgkit.models.kinds import Kind, Role
from kgkit.models.manifest import ModelManifest


class KALMManifest(ModelManifest, frozen=True, kw_only=True):
    """What a trained KALM says of itself; it has no encoder, and needs no knowledge base any more.

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
    style: Literal["cased", "recipe"]
    length: Annotated[int, msgspec.Meta(ge=3, le=100_000)]


def _roles_of_kalm(manifest: KALMManifest) -> tuple[Role, ...]:
    names = manifest.bidirectional and bool(manifest.types)
    return ("language_model", "tagger") if names else ("language_model",)


KALM: Final = Kind(
    name="kalm", title="a KALM", manifest=KALMManifest, roles_of=_roles_of_kalm,
    about="a language model of words with latent types (Liu et al. 2019)",
    roles={
        "language_model": "kgkit.linking.kalm:open_language_model",
        "tagger": "kgkit.linking.kalm:open_tagger",
    },
    use="`kgkit evaluate ppl --model {name}` scores it; one of both directions with types finds mentions, "
    "as a tagger",
)  # fmt: skip
