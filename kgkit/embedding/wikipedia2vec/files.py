"""Files of word and entity vectors, as word2vec and its kin write them.

    text      N D                            the first line; GloVe, and wikipedia2vec by default, leave it out
              NAME 0.1 -0.2 …                D numbers; a space or, in wikipedia2vec's default, a tab between
    binary    N D                            the same first line
              NAME and a space, D float32      little-endian, then perhaps a line end

Both may be compressed. Files are read once, from front to end, a batch at a time.

    n   rows of a batch
    D   numbers of a row
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import numpy as np

from kgkit.errors import SourceError, UsageError
from kgkit.files import opened
from kgkit.types import Matrix, Progress

_BATCH = 1 << 22  # bytes that are read at once
_LARGEST = float(np.finfo(np.float32).max)
_HEADER = re.compile(rb"(\d+)[ \t](\d+)\s*")
_NUMBER = re.compile(rb"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_PICKLES: Final = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"\x78\x9c")


class RowBatch(NamedTuple):
    """Some rows of a file.

    Attributes:
        names: n of them.
        rows: (n, D) float32, all finite.
    """

    names: list[str]
    rows: Matrix


def read_vectors(path: Path, progress: Progress | None = None) -> Iterator[RowBatch]:
    """Yield the rows of a file in its order.

    Args:
        path: the file; its beginning tells whether it is text or binary.
        progress: callback that is told (rows read, of how many; of as many where the file does not say).

    Raises:
        NotThere: if there is no such file.
        UsageError: if it is a pickle, as models of wikipedia2vec are.
        SourceError: if a row is short, long or no row at all, a number is none or not finite, or rows are
            missing; with file and, in text, line.
    """
    with opened(path) as file:
        start = file.read(4096)
    if start[:2] in _PICKLES:
        raise UsageError(
            f"{path} is a pickle, as models of wikipedia2vec are, and reading one runs whatever program is "
            "in it: `wikipedia2vec save-text` writes its vectors as text"
        )
    reading = _binary if _is_binary(start) else _text
    with opened(path) as file:
        for batch, read, expected in reading(path, file):
            if progress is not None:
                progress("reading", read, expected or read)
            yield batch


def _is_binary(start: bytes) -> bool:
    """Judge a file by its first bytes. Text that is not UTF-8 is text too: its reader says in which line."""
    # Floats have bytes that no text has; a title may be cut at the end of what was read.
    if re.search(rb"[\x00-\x08]", start):
        return True
    try:
        re.sub(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z", b"", start).decode("utf-8")
    except UnicodeDecodeError:
        header, _, body = start.partition(b"\n")
        fields = body.partition(b"\n")[0].split()
        return bool(_HEADER.fullmatch(header)) and not any(map(_NUMBER.fullmatch, fields[1:]))
    return False


# -- text -------------------------------------------------------------------


def _text(path: Path, file: BinaryIO) -> Iterator[tuple[RowBatch, int, int | None]]:
    """Yield batches of text, how many rows have been read, and how many there should be."""
    read, expected = 0, None
    first, before = file.readline(), 0
    if header := _HEADER.fullmatch(first):
        expected, width = int(header[1]), int(header[2])
        first, before = file.readline(), 1
        if not width:
            raise SourceError("the header says that rows have no numbers", path=path, line=1)
    else:
        width = _width(first)
    if not first:
        raise SourceError("a file of vectors holds none", path=path)
    if width < 1:
        expectation = "neither a header `ROWS WIDTH` nor a name with numbers behind it"
        raise SourceError(expectation, path=path, line=1, text=_shown(first))
    reader = _Lines(path, width, b"\t" in first)
    lines = [first]
    while lines:
        batch = reader.batch(lines, before + read + 1)
        read += len(lines)
        yield batch, read, expected
        lines = file.readlines(_BATCH)
    if expected is not None and read != expected:
        raise SourceError(f"the header says {expected:,} rows, there are {read:,}", path=path, line=1)


def _width(line: bytes) -> int:
    """Return how many numbers are behind the name in *line*."""
    name, tab, numbers = line.rstrip(b" \t\r\n").partition(b"\t")
    return numbers.count(b" ") + 1 if tab else name.count(b" ")


class _Lines:
    """Reads lines of one file, all of one width."""

    def __init__(self, path: Path, width: int, tabs: bool) -> None:
        self.path, self.width, self.tabs = path, width, tabs

    def batch(self, lines: list[bytes], first: int) -> RowBatch:
        """Return what *lines* hold, of which the first is line number *first* of the file."""
        pairs = [self.cut(line, number) for number, line in enumerate(lines, first)]
        names = [name for name, _ in pairs]
        numbers = [texts for _, texts in pairs]
        try:
            rows = np.loadtxt(numbers, np.float32, comments=None, delimiter=" ", ndmin=2, encoding="latin-1")
        except ValueError:
            rows = np.empty((0, 0), np.float32)
        if rows.shape != (len(lines), self.width) or not np.isfinite(rows).all():
            self.blame(lines, numbers, first)
        return RowBatch(names, rows)

    def cut(self, line: bytes, number: int) -> tuple[str, str]:
        """Return the name in a line, and what is behind it."""
        line = line.rstrip(b" \t\r\n")
        name, separator, text = line.partition(b"\t" if self.tabs else b" ")
        if not self.tabs and text.count(b" ") >= self.width:
            # The name has blanks in it: the numbers are the last fields. Only where those are numbers,
            # else the row is too long.
            name, *numbers = line.rsplit(b" ", self.width)
            text = b" ".join(numbers)
            longer = all(map(_NUMBER.fullmatch, name.split(b" ")[1:]))
            separator = b"" if longer else separator
        if not separator or text.count(b" ") != self.width - 1:
            count = _width(line)
            raise SourceError(
                f"a row of {self.width} numbers was expected, found {count} behind the name",
                path=self.path,
                line=number,
                text=_shown(line),
            )
        try:
            return name.decode("utf-8"), text.decode("latin-1")
        except UnicodeDecodeError:
            raise SourceError(
                "a name that is not UTF-8", path=self.path, line=number, text=_shown(name)
            ) from None

    def blame(self, lines: list[bytes], numbers: list[str], first: int) -> None:
        """Raise the error of the first line with a number that is none, or not finite."""
        for number, (line, text) in enumerate(zip(lines, numbers, strict=True), first):
            for field in text.encode("latin-1").split(b" "):
                if not _NUMBER.fullmatch(field) or abs(float(field)) > _LARGEST:
                    raise SourceError(
                        f"{field.decode('latin-1')!r} is not a finite number",
                        path=self.path,
                        line=number,
                        text=_shown(line),
                    )
        raise SourceError("the numbers of these lines cannot be read", path=self.path, line=first)


def _shown(line: bytes) -> str:
    return line[:400].decode("utf-8", "replace").rstrip()


# -- binary -----------------------------------------------------------------


def _binary(path: Path, file: BinaryIO) -> Iterator[tuple[RowBatch, int, int]]:
    """Yield batches of a binary file, how many rows have been read, and how many there should be."""
    header = _HEADER.fullmatch(file.readline(100))
    if header is None or not int(header[2]):
        raise SourceError("a binary file of vectors begins with `ROWS WIDTH`", path=path)
    total, width = int(header[1]), int(header[2])
    remaining, read = b"", 0
    while read < total:
        more = file.read(max(_BATCH, 8 * width))
        if not more:
            raise SourceError(
                f"the file is cut off: its header says {total:,} rows, it ends in row {read + 1:,}", path=path
            )
        batch, remaining = _cut_binary(path, remaining + more, width, read, total)
        if batch.names:
            read += len(batch.names)
            yield batch, read, total
    if remaining.strip() or file.read(1).strip():
        raise SourceError(f"the header says {total:,} rows, more bytes follow them", path=path)


def _cut_binary(path: Path, content: bytes, width: int, first: int, total: int) -> tuple[RowBatch, bytes]:
    """Return the whole rows at the start of *content*, and what is left of it."""
    names: list[str] = []
    starts: list[int] = []
    offset = 0
    while first + len(names) < total:
        if content[offset : offset + 1] == b"\n":
            offset += 1
        blank = content.find(b" ", offset, offset + 10_000)
        if blank < 0 and len(content) - offset >= 10_000:
            raise SourceError(f"row {first + len(names) + 1:,} has no name", path=path)
        end = blank + 1 + 4 * width
        if blank < 0 or end > len(content):
            break
        try:
            names.append(content[offset:blank].decode("utf-8"))
        except UnicodeDecodeError:
            row = first + len(names) + 1
            raise SourceError(f"the name of row {row:,} is not UTF-8", path=path) from None
        starts.append(blank + 1)
        offset = end
    rows = np.empty((len(names), width), np.float32)
    for row, start in enumerate(starts):
        rows[row] = np.frombuffer(content, "<f4", width, start)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        row = first + int(bad[0]) + 1
        name = names[int(bad[0])]
        raise SourceError(f"row {row:,} ({name!r}) holds a number that is not finite", path=path)
    return RowBatch(names, rows), content[offset:]
