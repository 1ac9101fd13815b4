r"""Texts that XML can hold: control characters are written `\u0001`."""

import re
from typing import Final

__all__ = ["escape_text", "unescape_text"]

_ODD: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\\(?=u[0-9a-f]{4})")
_WRITTEN: Final = re.compile(r"\\u([0-9a-f]{4})")


def escape_text(text: str) -> str:
    """Return *text* as XML can hold it."""
    return _ODD.sub(lambda match: f"\\u{ord(match[0]):04x}", text) if _ODD.search(text) else text


def unescape_text(text: str) -> str:
    """Return the text that `escape_text` was given.

    Raises:
        ValueError: if it holds half of a surrogate pair, which `escape_text` does not write.
    """
    return _WRITTEN.sub(_letter, text) if "\\u" in text else text


def _letter(match: re.Match[str]) -> str:
    letter = chr(int(match[1], 16))
    if "\ud800" <= letter <= "\udfff":
        raise ValueError(f"holds text that is not Unicode: {match[0]} is half of a surrogate pair")
    return letter
