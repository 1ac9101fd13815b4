"""Text files, line by line, for builders: whatever is wrong with one is said with its line."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from kgkit.errors import NotThere, SourceError
from kgkit.files import decompression_errors, open_bytes

__all__ = ["check_file", "check_regular_file", "checked_file", "text_lines"]

MAX_LINE: Final = 16 << 20
"""Bytes of a line: what is longer is no text file, and is not read to its end."""

_BOM: Final = "\ufeff".encode()
_OTHER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def check_file(path: Path) -> None:
    """Refuse what cannot be opened as a file.

    Raises:
        NotThere: if nothing is there.
        SourceError: if it is a folder.
    """
    if path.is_dir():
        raise SourceError("is a folder; name a file in it", path=path)
    if not path.exists():
        raise NotThere(f"no file {path}")


def check_regular_file(path: Path) -> None:
    """Refuse what cannot be read twice: what one reading takes out of a pipe, the next one misses.

    Raises:
        NotThere: if nothing is there.
        SourceError: if it is a folder, a pipe or a device.
    """
    check_file(path)
    if not path.is_file():
        raise SourceError(
            "is a pipe or a device, and a source is read more than once: write it to a file first", path=path
        )


def checked_file(path: Path) -> Path:
    """Return *path*, which has to be a file.

    Raises:
        NotThere: if nothing is there.
        SourceError: if it is a folder, or holds nothing.
    """
    check_file(path)
    if path.is_file() and not path.stat().st_size:
        raise SourceError("is empty: there is nothing to read", path=path, line=1)
    return path


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield `(number, line)` of a UTF-8 file, numbers from 1, without line ends; empty lines are left out.

    Compressed files are read by their suffix (`kgkit.files`).

    Raises:
        NotThere: if there is no such file.
        SourceError: for a folder, a pipe, a file without a line, bytes that are no UTF-8, a NUL, a line
            of more than `MAX_LINE` bytes, a compressed file that is cut short; with the line's number.
    """
    check_regular_file(path)
    number = lines_with_text = 0
    with open_bytes(path) as file:
        while raw := _next(file, path, number + 1):
            number += 1
            if number == 1:
                raw = raw.removeprefix(_BOM)
                if raw.startswith(_OTHER_MARKS):
                    raise SourceError("this is UTF-16: save the file as UTF-8", path=path, line=1)
            line = raw.rstrip(b"\r\n")
            if not line:
                continue
            if b"\0" in line:
                raise SourceError("a NUL byte: this is no text file", path=path, line=number)
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise SourceError(
                    f"not UTF-8: {error.reason} at byte {error.start + 1} of the line: save it as UTF-8",
                    path=path,
                    line=number,
                ) from None
            lines_with_text += 1
            yield number, text
    if not lines_with_text:
        raise SourceError("is empty: there is nothing to read", path=path, line=max(number, 1))


def _next(file: BinaryIO, path: Path, number: int) -> bytes:
    try:
        raw = file.readline(MAX_LINE + 1)
    except decompression_errors() as error:
        raise SourceError(f"cannot be read on: {error}", path=path, line=number) from error
    if len(raw) > MAX_LINE:
        raise SourceError(
            f"a line of more than {MAX_LINE >> 20} MiB: this is not one record a line", path=path, line=number
        )
    return raw
