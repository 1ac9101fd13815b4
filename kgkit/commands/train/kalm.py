"""`kgkit train kalm`: train a language model of words with latent types, on plain text."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kgkit.commands.options import DeviceOption
from kgkit.commands.train.generated import settings_command

if TYPE_CHECKING:
    from kgkit.methods.kalm_settings import KALMManifest


def kalm() -> Callable[..., None]:
    """Return the command that trains a KALM."""
    from kgkit.methods.kalm_settings import KALM, KALMTraining
    from kgkit.training.kalm import train_kalm

    about = "Train a KALM: a language model of words with latent types (Liu et al. 2019), on plain text."
    return settings_command(KALM, KALMTraining, train_kalm, _describe, about, {"device": DeviceOption})


def _describe(manifest: "KALMManifest") -> str:
    sides = "of both directions" if manifest.bidirectional else "from left to right"
    return f"{', '.join(manifest.types) or 'no types'}, {sides}"
