"""Colors as classes, since a page without inline styles cannot name them where they are used."""

from collections.abc import Iterable
from typing import Final

__all__ = ["HUES", "hue_class", "hue_classes", "shade_class"]

HUES: Final = 24
"""Number of hues that the style sheet has, `h0` to `h23`, evenly apart."""

_SHADES: Final = 10


def hue_class(hue: int) -> str:
    """Return the class of the hue that is nearest to one in degrees."""
    return f"h{round(hue * HUES / 360) % HUES}"


def shade_class(score: float) -> str:
    """Return the class of a score in [0, 1], in tenths; of what is no number that of 0."""
    tenths = round(_SHADES * score) if score == score else 0
    return f"s{min(max(tenths, 0), _SHADES)}"


def hue_classes(names: Iterable[str]) -> dict[str, str]:
    """Return a class of a hue for each name, evenly apart; beyond as many as there are hues, they repeat."""
    ordered = list(dict.fromkeys(names))
    return {name: hue_class(360 * number // max(1, len(ordered))) for number, name in enumerate(ordered)}
