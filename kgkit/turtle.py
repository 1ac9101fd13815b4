"""Graphs in Turtle and N-Triples, parsed by pyoxigraph triple by triple.

The parser frees triples that are nested in triples recursively: some 20,000 levels overflow the stack and end
the process. So `<<`, which begins a nested triple, is counted in what is read between two triples. Texts may
have it too, which is why some are let through.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from kgkit.errors import SourceError
from kgkit.files import without_mark
from kgkit.lazy import import_extra

Syntax = Literal["TURTLE", "N_TRIPLES"]
"""Names of formats, as pyoxigraph has them."""

_NAMES: Final = {"TURTLE": "Turtle", "N_TRIPLES": "N-Triples"}

MAX_NESTED: Final = 1_000
"""Number of `<<` between two triples."""

_CHUNK: Final = 1 << 14  # bytes: the parser is not far ahead of the triples that it yields
_MARK: Final = 3  # bytes of a byte order mark
_POSITION: Final = re.compile(r"^Parser error at .*?: (?=\D)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class GraphStream(Protocol):
    """A stream of bytes that can be read."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, as many at most; none at the end."""
        ...


def parse_graph(
    stream: GraphStream, syntax: Syntax, path: Path | None = None, *, rename_blank_nodes: bool = True
) -> Iterator[Any]:
    """Yield the triples of a graph, as pyoxigraph's quads.

    Args:
        stream: bytes of the graph; a byte order mark at their beginning is left out.
        syntax: format of the graph.
        path: file that they are from, for messages; None if from none.
        rename_blank_nodes: whether the labels of blank nodes are made unique.

    Raises:
        MissingExtra: if pyoxigraph is not installed.
        SourceError: if the graph is not of this format, is UTF-16, or triples are nested too deeply.
    """
    ox = import_extra("pyoxigraph", "formats")
    counted = _CountedStream(stream, path)
    try:
        for quad in ox.parse(
            counted, format=getattr(ox.RdfFormat, syntax), rename_blank_nodes=rename_blank_nodes
        ):
            counted.nested = 0
            yield quad
    except SyntaxError as error:
        message = _CONTROL.sub("�", _POSITION.sub("", str(error.msg)))
        raise SourceError(f"no {_NAMES[syntax]}: {message}", path=path, line=error.lineno) from None


class _CountedStream:
    """A stream that ends with an error where `<<` comes too often.

    Attributes:
        nested: number of `<<` since the last triple.
    """

    def __init__(self, stream: GraphStream, path: Path | None) -> None:
        self._stream, self._path, self._last = stream, path, b""
        self._is_read = False
        self.nested = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            SourceError: if they have too many `<<`, or the mark of UTF-16.
        """
        content = b""
        if not self._is_read:
            self._is_read = True
            while len(content) < _MARK and (more := self._stream.read(_MARK - len(content))):
                content += more
            content = without_mark(content, self._path)
        content = content or self._stream.read(min(size, _CHUNK) if size >= 0 else _CHUNK)
        joined = self._last + content
        self.nested += joined.count(b"<<")
        self._last = b"<" * ((len(joined) - len(joined.rstrip(b"<"))) % 2)  # half of the next `<<`
        if self.nested > MAX_NESTED:
            raise SourceError(
                f"more than {MAX_NESTED:,} `<<` before a triple ends, which begin triples in triples: "
                r"leave these out, and write `<` in texts as \u003C",
                path=self._path,
            )
        return content
