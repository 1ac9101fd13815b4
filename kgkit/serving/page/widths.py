"""How wide texts are, in letters: those of Chinese are as wide as two."""

from itertools import accumulate
from unicodedata import east_asian_width

__all__ = ["shorten", "text_width"]


def text_width(text: str) -> int:
    """Return the width of a text in letters."""
    return sum(_letter_width(letter) for letter in text)


def shorten(text: str, letters: int) -> str:
    """Return a text that is at most so many letters wide, of a longer one its beginning."""
    if text_width(text) <= letters:
        return text
    widths = accumulate(map(_letter_width, text))
    return text[: sum(width < letters for width in widths)].rstrip() + "…"


def _letter_width(letter: str) -> int:
    return 2 if east_asian_width(letter) in "WF" else 1
