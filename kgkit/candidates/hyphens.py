"""Words that are joined by hyphens; a KB may write them with a space, or as one: ice-cream, co-operative."""

import re
from collections.abc import Sequence
from typing import Final

from kgkit.text import DASHES

HYPHENS: Final = ("-", "\u2010", "\u2011")
"""The hyphen of keyboards, Unicode's own, and the one where no line breaks."""
JOINING_DASHES: Final = ("-", *(dash for dash in DASHES if not "\ufe00" < dash < "\uff00"))
"""Hyphens, and the dashes that folding of version 2 takes for one, but no vertical and small forms."""

_LEAST: Final = 5  # letters of two parts that may be one word: tv is not T-V
_JOINING: Final = re.compile(rf"(?<=[^\W_])[{''.join(JOINING_DASHES)}](?=[^\W_])")


def joining_hyphens(text: str, hyphens: Sequence[str] = HYPHENS) -> list[int]:
    """Return where in *text* there is one of *hyphens* between two letters or digits, ascending."""
    positions: list[int] = []
    find = text.find
    for hyphen in "-" if text.isascii() else hyphens:
        at = find(hyphen, 1)
        while at > 0:
            if text[at - 1].isalnum() and text[at + 1 : at + 2].isalnum():
                positions.append(at)
            at = find(hyphen, at + 1)
    return sorted(positions) if positions else positions


def with_plain_hyphens(text: str) -> str:
    """Return *text* with the hyphen of keyboards for those of Unicode; its length stays."""
    for hyphen in () if text.isascii() else HYPHENS[1:]:
        text = text.replace(hyphen, "-")
    return text


def with_spaces(text: str) -> str:
    """Return *text* with a space for each hyphen that joins two words."""
    return _JOINING.sub(" ", text)


def closed_spelling(text: str) -> str | None:
    """Return *text*, words joined by hyphens, without them; None if it cannot well be one word."""
    joined = _JOINING.sub("", text)
    return joined if len(joined) >= _LEAST and joined.isalpha() and joined != text else None
