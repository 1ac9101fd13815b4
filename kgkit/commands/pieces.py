"""Results that are written a piece at a time, so that those of a long text are never in memory whole."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from kgkit.files import written

Item = TypeVar("Item")

_TEXT: Final = 1 << 18
"""Code points of a text that are encoded together."""
_ITEMS: Final = 1_000
"""Items of a list that are encoded together."""

_encode = msgspec.json.Encoder().encode


def json_line(record: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield a record as a line of JSON, its long texts and lists in pieces.

    Args:
        record: fields by name; its JSON is what msgspec makes of it.
    """
    pieces: list[bytes] = []
    for name, value in record.items():
        pieces += [b"," if pieces else b"{", _encode(name), b":"]
        if isinstance(value, str) and len(value) > _TEXT:
            yield b"".join(pieces) + b'"'
            yield from (_encode(value[at : at + _TEXT])[1:-1] for at in range(0, len(value), _TEXT))
            pieces = [b'"']
        elif isinstance(value, list) and len(value) > _ITEMS:
            yield b"".join(pieces) + b"["
            yield from _items(value)
            pieces = [b"]"]
        else:
            pieces.append(_encode(value))
    yield b"".join(pieces or [b"{"]) + b"}\n"


@contextmanager
def writing_page(
    path: Path, title: str, section: Callable[[Item], Iterable[str]]
) -> Iterator[Callable[[Item], None]]:
    """Give what draws a document into the page at *path*, which is whole in the end or not there.

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


def _items(values: Sequence[Any]) -> Iterator[bytes]:
    for at in range(0, len(values), _ITEMS):
        inside = _encode(values[at : at + _ITEMS])[1:-1]
        yield b"," + inside if at else inside
