"""Addresses of the views: a path and a query, so that every key has one.

Keys stand in the query and not in the path: there a `/`, a `..` or a quote is a character as any other, while
servers and browsers take `..` in a path for a folder, however it is encoded.
"""

from typing import Final
from urllib.parse import quote, urlencode

__all__ = ["MAX_ADDRESS", "address", "fits_address"]

MAX_ADDRESS: Final = 6_000
"""Bytes of an address; servers and proxies refuse those of more than 8,000."""

Value = str | int | float | None


def address(path: str, /, **parameters: Value) -> str:
    """Return the address of a view; parameters that are None or empty are left out.

    Args:
        path: path of the view, as `/entity`.
        parameters: its query, in this order.

    Examples:
        >>> address("/entity", kb="wordnet", key="and/or.n.01", relation=None)
        '/entity?kb=wordnet&key=and%2For.n.01'
    """
    values = {name: str(value) for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(values, quote_via=quote, safe='', errors='replace')}" if values else path


def fits_address(target: str) -> bool:
    """Return whether an address is short enough for servers and proxies."""
    return len(target) <= MAX_ADDRESS
