"""Addresses of the views: a path and a query, so that every key has one.

Keys stand in the query and not in the path: there a `/`, a `..` or a quote is a character as any other, while
servers and browsers take `..` in a path for a folder, however it is encoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from kgkit.serving.service import Service

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


@dataclass(frozen=True, kw_only=True)
class Paging:
    """A page of a list of rows.

    Attributes:
        total: number of all rows.
        size: number of rows of a page.
        start: position of the first row of this page, from 0.
        previous: address of the page before; None for the first.
        next: address of the page after; None for the last.
    """

    total: int
    size: int
    start: int
    previous: str | None
    next: str | None

    @property
    def first(self) -> int:
        """Number of the first row of this page, from 1."""
        return min(self.start + 1, self.total)

    @property
    def last(self) -> int:
        """Number of its last row."""
        return min(self.start + self.size, self.total)


def paging_of(path: str, total: int, page: int, size: int, /, **parameters: Any) -> Paging:
    """Return a page of a list.

    Args:
        path: path of the view.
        total: number of all rows.
        page: number of the page, from 1.
        size: number of rows of a page.
        parameters: further parameters of the view's address.
    """
    start = (page - 1) * size

    def page_address(number: int) -> str:
        return address(path, **parameters, page=number if number > 1 else None)

    return Paging(
        total=total,
        size=size,
        start=start,
        previous=page_address(page - 1) if page > 1 else None,
        next=page_address(page + 1) if start + size < total else None,
    )


def kb_name(service: Service, name: str) -> str:
    """Return the name of the knowledge base of a view: the first of those that are served, if none is named.

    Raises:
        UnknownName: if it is not served.
    """
    names: Sequence[str] = service.kb_names()
    return service.kb(name or names[0]).name
