"""Compressed files: one table of suffixes, for everything that reads or writes text.

Python reads and writes `.bz2`, `.gz` and `.xz`; `.zst` from 3.14 on, or with the package `backports.zstd`.
"""

import bz2
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, BinaryIO, Final, cast

from kgkit.errors import UsageError

__all__ = [
    "COMPRESSIONS", "check_compression", "compressing", "compression_of", "decompression_errors",
    "open_bytes", "open_zstd", "plain_name",
]  # fmt: skip

_ZSTD: Final = ("compression.zstd", "backports.zstd")
_GZIP_LEVEL: Final = 6

_UNSUPPORTED: Final = (".7z", ".br", ".lz", ".lz4", ".lzma", ".lzo", ".rar", ".sz", ".z", ".zip", ".zstd")
"""Suffixes of compressions and archives that kgkit does not write."""


def _zstd() -> ModuleType | None:
    for name in _ZSTD:
        with suppress(ModuleNotFoundError):
            return import_module(name)
    return None


def open_zstd(file: Any, mode: str = "rb") -> Any:
    """Open a file that is compressed by Zstandard, by the library of Python 3.14, or its backport.

    Args:
        file: path, or a binary stream.
        mode: mode, as `gzip.open` takes it.

    Raises:
        UsageError: if neither library is there.
    """
    if (module := _zstd()) is None:
        raise UsageError(
            f"{getattr(file, 'name', file)}: Python reads and writes .zst from 3.14 on; before, "
            "`pip install backports.zstd` lets it"
        )
    return module.open(file, mode)


COMPRESSIONS: Final[dict[str, Callable[..., Any]]] = {
    ".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open, ".zst": open_zstd,
}  # fmt: skip
"""Function that opens a compressed file, by its suffix."""


def compression_of(path: PurePath) -> str:
    """Return the suffix that says how a file is compressed, in small letters; "" if it is not."""
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def plain_name(name: str) -> str:
    """Return the name of a file without the suffix of its compression."""
    return name[: len(name) - len(compression_of(PurePath(name)))]


def open_bytes(path: Path) -> BinaryIO:
    """Open a file to read its bytes, decompressed.

    Raises:
        UsageError: for `.zst` without its library.
        OSError: if it cannot be opened.
    """
    return cast(BinaryIO, COMPRESSIONS.get(compression_of(path), open)(path, "rb"))


def decompression_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a file that cannot be read on: those of the disk and of the decompressors."""
    modules = [module for name in _ZSTD if (module := sys.modules.get(name)) is not None]
    return (OSError, EOFError, lzma.LZMAError, zlib.error, *(module.ZstdError for module in modules))


def check_compression(path: PurePath) -> None:
    """Refuse a file to write whose name asks for a compression that kgkit cannot write.

    Raises:
        UsageError: for another compression, and for `.zst` without its library.
    """
    suffix = path.suffix.lower()
    if suffix in _UNSUPPORTED:
        raise UsageError(f"{path}: kgkit does not write {suffix}; it compresses as {', '.join(COMPRESSIONS)}")
    if suffix == ".zst" and _zstd() is None:
        open_zstd(path)


@contextmanager
def compressing(suffix: str, write: Callable[[bytes], Any]) -> Iterator[Callable[[bytes], Any]]:
    """Give a function that compresses bytes and hands them to *write*; equal content gives equal bytes.

    Args:
        suffix: one of `COMPRESSIONS`, or "", with which bytes are handed on as they are.
        write: function that takes the next bytes of the file.
    """
    if not suffix:
        yield write
        return
    sink: Any = _Sink(write)
    # gzip would write the time, too.
    opened = (
        gzip.GzipFile("", "wb", _GZIP_LEVEL, sink, mtime=0)
        if suffix == ".gz"
        else COMPRESSIONS[suffix](sink, "wb")
    )
    with opened as stream:
        yield stream.write


class _Sink:
    """A file that hands on what is written."""

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self._write = write

    def write(self, content: bytes) -> int:
        self._write(bytes(content))
        return len(content)

    def flush(self) -> None:
        """Do nothing: everything is handed on at once."""
