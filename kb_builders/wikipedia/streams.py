"""The bytes of a dump from any place on: where a part begins, and where the pages stop being its own.

A part is a range of the bytes of a file as they lie on the disk. A page belongs to the part in whose range
its `<page>` begins, so the cuts may fall anywhere, and a page may end in the range of the next part:

    .xml   cut every 64 MiB
    .bz2   cut between its streams, where one begins behind every 64 MiB. Dumps called multistream have a
           stream for every hundred pages, parallel compressors write some for every megabyte. A stream
           begins with ten bytes that are found by looking for them, so no index is needed.
    .gz    one part
"""

import bz2
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from kgkit.errors import SourceError

__all__ = ["PART", "Blocks", "blocks", "ranges"]

PART: Final = 64 << 20
"""Bytes of a part, about."""

_BLOCK: Final = 1 << 20
# Some blocks of bz2 at once: they and their tables fill the caches, and so does the reading of pages.
_UNPACKED: Final = 4 << 20
_STREAM: Final = b"1AY&SY"  # the digits of pi that open the first block; `BZh` and a digit stand before them


class Blocks(ABC):
    """The content of a range of a file, some at a time, and what follows for whoever goes on.

    Attributes:
        path: path of the file.
        end: number of bytes that belong to the range, None as long as that is not known: it is, by the time
            the first byte behind them is given out.
    """

    def __init__(self, path: Path, begin: int, stop: int) -> None:
        self.path, self._begin, self._stop = path, begin, stop
        self.end: int | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes from the beginning of the range to the end of the file."""

    @abstractmethod
    def location(self, offset: int) -> str:
        """Say in words where the byte *offset* of the content lies."""


def blocks(path: Path, begin: int = 0, stop: int | None = None) -> Blocks:
    """Return the content of *path* between two of its bytes, through its compression."""
    stop = path.stat().st_size if stop is None else stop
    match path.suffix.lower():
        case ".bz2":
            return _Bz2(path, begin, stop)
        case ".gz":
            return _Gz(path, begin, stop)
    return _Plain(path, begin, stop)


class _Plain(Blocks):
    def __iter__(self) -> Iterator[bytes]:
        self.end = self._stop - self._begin
        with self.path.open("rb") as file:
            file.seek(self._begin)
            while block := file.read(_BLOCK):
                yield block

    def location(self, offset: int) -> str:
        """Return where *offset* of the stream is in the file, for messages."""
        return f"byte {self._begin + offset:,}"


class _Packed(Blocks):
    """A file of one compressed stream behind the other."""

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        with self.path.open("rb") as file:
            file.seek(self._begin)
            data = file.read(_BLOCK)
            while data:
                unpacker = self._unpacker()
                while not unpacker.eof:
                    ended = False
                    if not data and self._hungry(unpacker):
                        data = file.read(_BLOCK)
                        ended = not data
                    try:
                        # A few bytes may unpack to gigabytes: never all at once.
                        block, data = self._unpack(unpacker, data)
                    except (OSError, zlib.error):
                        raise self._broken_stream(
                            "is damaged: what is compressed cannot be read", file
                        ) from None
                    if block:
                        size += len(block)
                        yield block
                    elif ended and not unpacker.eof:
                        raise self._broken_stream("is cut off: the file ends within compressed data", file)
                data = unpacker.unused_data or file.read(_BLOCK)
                if self.end is None and file.tell() - len(data) >= self._stop:
                    self.end = size

    @abstractmethod
    def _unpacker(self) -> Any:
        """Return what unpacks one stream."""

    @abstractmethod
    def _hungry(self, unpacker: Any) -> bool:
        """Return whether it needs more data to go on."""

    @abstractmethod
    def _unpack(self, unpacker: Any, data: bytes) -> tuple[bytes, bytes]:
        """Return some of what *data* unpacks to, and what of it has to be given again."""

    def location(self, offset: int) -> str:
        """Return where *offset* of the stream is in the unpacked text, for messages."""
        since = f" counted from byte {self._begin:,} of the file" if self._begin else ""
        return f"byte {offset:,} of its unpacked text{since}"

    def _broken_stream(self, what: str, file: BinaryIO) -> SourceError:
        return SourceError(
            f"{what} (before byte {file.tell():,}): load it again; its checksum is published beside the dump",
            path=self.path,
        )


class _Bz2(_Packed):
    def _unpacker(self) -> Any:
        return bz2.BZ2Decompressor()

    def _hungry(self, unpacker: Any) -> bool:
        return bool(unpacker.needs_input)

    def _unpack(self, unpacker: Any, data: bytes) -> tuple[bytes, bytes]:
        return unpacker.decompress(data, _UNPACKED), b""


class _Gz(_Packed):
    def _unpacker(self) -> Any:
        return zlib.decompressobj(wbits=31)

    def _hungry(self, unpacker: Any) -> bool:
        return True

    def _unpack(self, unpacker: Any, data: bytes) -> tuple[bytes, bytes]:
        return unpacker.decompress(data, _UNPACKED), unpacker.unconsumed_tail


def ranges(path: Path, part: int = PART) -> Iterator[tuple[int, int]]:
    """Yield the ranges of *path* that can be read apart, in order; together they are the whole file."""
    size = path.stat().st_size
    match path.suffix.lower():
        case ".bz2":
            cuts = list(_stream_cuts(path, size, part))
        case ".gz":
            cuts = []
        case _:
            cuts = list(range(part, size, part))
    yield from zip([0, *cuts], [*cuts, size], strict=True)


def _stream_cuts(path: Path, size: int, part: int) -> Iterator[int]:
    """Yield where a stream of bz2 begins behind every *part* bytes."""
    with path.open("rb") as file:
        if _next_stream(file, 1, min(max(part, _BLOCK), size)) is None:
            return  # one stream, most likely: it is not read to its end to know
        for begin in range(part, size, part):
            cut = _next_stream(file, begin, min(begin + part, size))
            if cut is not None:
                yield cut


def _next_stream(file: BinaryIO, begin: int, stop: int) -> int | None:
    """Return the first byte from *begin* on, before *stop*, at which a stream begins."""
    file.seek(begin)
    before, at = b"", begin
    while at < stop:
        data = before + file.read(_BLOCK)
        if len(data) == len(before):
            return None
        first = at - len(before)
        position = data.find(_STREAM, 4)
        while position >= 0:
            if data[position - 4 : position - 1] == b"BZh" and b"1" <= data[position - 1 : position] <= b"9":
                start = first + position - 4
                return start if begin <= start < stop else None
            position = data.find(_STREAM, position + 1)
        at, before = first + len(data), data[-9:]
    return None
