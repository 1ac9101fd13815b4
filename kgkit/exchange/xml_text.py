r"""Texts that XML can hold: control characters are written `\u0001`."""

import re
from typing import Final

__all__ = ["held", "meant"]

_ODD: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\\(?=u[0-9a-f]{4})")
_WRITTEN: Final = re.compile(r"\\u([0-9a-f]{4})")


def held(text: str) -> str:
    """Return *text* as XML can hold it."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if _ODD.search(text) else text


def meant(text: str) -> str:
    """Return the text that `held` was given.

    Raises:
        ValueError: if it holds half of a surrogate pair, which `held` does not write.
    """
    return _WRITTEN.sub(_letter, text) if "\\u" in text else text


def _letter(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    if "\ud800" <= letter <= "\udfff":
        raise ValueError(f"holds text that is not Unicode: {found[0]} is half of a surrogate pair")
    return letter
