"""What all views read from their addresses: the knowledge base, and the page of a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgkit.serving.page.addresses import address
from kgkit.serving.service import Service

__all__ = ["Paging", "kb_name", "paging_of"]


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
