"""Pages of documents, written a piece at a time, so that those of a long text are never in memory whole."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from kgkit.files import written

Item = TypeVar("Item")


@contextmanager
def writing_page(
    path: Path, title: str, section: Callable[[Item], Iterable[str]]
) -> Iterator[Callable[[Item], None]]:
    """Give a function that draws a document into the page at *path*, whole in the end or not there.

    Args:
        path: file of the page.
        title: title of the page.
        section: function that draws a document as a part of the page, in pieces.
    """
    from kgkit.drawing.links import FOOT, page_head
    from kgkit.exchange.contract import chunks

    def take(document: Item) -> None:
        """Write a document as a section of the page."""
        for piece in chunks(section(document)):
            stream.write(piece)

    with written(path) as stream:
        stream.write(page_head(title).encode())
        yield take
        stream.write(FOOT.encode())
