r"""Texts that XML can hold: control characters are written `\u0001`."""

import re
from typing import Final

__all__ = ["escape_text"]

_ODD: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\\(?=u[0-9a-f]{4})")


def escape_text(text: str) -> str:
    """Return *text* as XML can hold it; different texts stay different."""
    return _ODD.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
