"""Files: the table of compressions, readers of lines, and writers whose files appear whole or not at all.

Python reads and writes `.bz2`, `.gz` and `.xz`; `.zst` from 3.14 on, or with the package `backports.zstd`.
"""

import bz2
import codecs
import gzip
import lzma
import os
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, BinaryIO, Final, TypeVar, cast

from kgkit.errors import LONGEST, NotThere, SourceError, UsageError

__all__ = [
    "COMPRESSIONS", "JSON_LINES", "check_compression", "check_file", "check_folder", "check_output_path",
    "check_regular_file", "checked_file", "compressing", "compression_of", "decoded_line",
    "decoded_lines",
    "decompression_errors", "json_lines", "lines", "new_folder", "not_utf8", "open_zstd", "opened",
    "plain_name", "raw_lines", "raw_or_bad_lines", "read_content", "replace_file", "replacing", "text_lines",
    "text_or_bad_lines", "without_mark", "written",
]  # fmt: skip

RecordT = TypeVar("RecordT")

MAX_LINE: Final = 256 << 20
"""Bytes of a line: what is longer, as a few compressed megabytes may be, is not read to its end."""

MAX_RECORD: Final = 16 << 20
"""Bytes of a line of a source or a table."""

MAX_CONTENT: Final = 2 << 30
"""Bytes of a file that is read into memory as a whole, decompressed."""

_CHUNK: Final = 1 << 20
_GZIP_LEVEL: Final = 6
_ZSTD: Final = ("compression.zstd", "backports.zstd")
_UNSUPPORTED: Final = (".7z", ".br", ".lz", ".lz4", ".lzma", ".lzo", ".rar", ".sz", ".z", ".zip", ".zstd")
"""Suffixes of compressions and archives that kgkit does not write."""

# -- compression ------------------------------------------------------------


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


JSON_LINES: Final = (".jsonl", ".ndjson")
"""Suffixes of files of JSON lines."""


def compression_of(path: PurePath) -> str:
    """Return the suffix that says how a file is compressed, in small letters; "" if it is not."""
    suffix = path.suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def plain_name(name: str) -> str:
    """Return the name of a file without the suffix of its compression."""
    return name[: len(name) - len(compression_of(PurePath(name)))]


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
def compressing(suffix: str, file: BinaryIO) -> Iterator[BinaryIO]:
    """Give a stream that compresses into *file*, which stays open; equal content gives equal bytes.

    Args:
        suffix: one of `COMPRESSIONS`, or "", with which the stream is *file*.
        file: binary stream.
    """
    if not suffix:
        yield file
        return
    # gzip would write the time, too.
    opened: Any = (
        gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
        if suffix == ".gz"
        else COMPRESSIONS[suffix](file, "wb")
    )
    with opened as stream:
        yield stream


# -- reading ----------------------------------------------------------------


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


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open *path* for reading, decompressed.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be opened or decompressed, or the block meets such an error as it reads.
        UsageError: for `.zst` without its library.
    """
    try:
        with cast("BinaryIO", COMPRESSIONS.get(compression_of(path), open)(path, "rb")) as stream:
            yield stream
    except FileNotFoundError:
        raise NotThere(f"no file {path}") from None
    except decompression_errors() as error:
        raise SourceError(f"cannot be read: {error}", path=path) from error


def without_mark(content: bytes, path: Path | None = None) -> bytes:
    """Return the beginning of a text in UTF-8, without a byte order mark.

    Args:
        content: first bytes of a file or of the body of a request, three at least, or all.
        path: the file, for errors.

    Raises:
        SourceError: if the mark is one of UTF-16.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError("this is UTF-16: save the file as UTF-8", path=path, line=1)
    return content.removeprefix(codecs.BOM_UTF8)


LineT = TypeVar("LineT", bytes, str)


def raw_lines(stream: BinaryIO, path: Path | None, most: int | None = None) -> Iterator[tuple[int, bytes]]:
    r"""Yield the number of each line, from 1, and the line with its end; only `\n` ends a line.

    A byte order mark at the very start is left out.

    Args:
        stream: open file, decompressed.
        path: the file, for errors.
        most: bytes of a line, at most; None: `MAX_LINE`.

    Raises:
        SourceError: if it cannot be read on, is UTF-16, or has a longer line.
    """
    return _without_bad(raw_or_bad_lines(stream, path, most or MAX_LINE))


def _without_bad(numbered: Iterator[tuple[int, LineT | SourceError]]) -> Iterator[tuple[int, LineT]]:
    """Yield lines; the first one that is bad is raised."""
    for number, line in numbered:
        if isinstance(line, SourceError):
            raise line
        yield number, line


def raw_or_bad_lines(
    stream: BinaryIO, path: Path | None, most: int
) -> Iterator[tuple[int, bytes | SourceError]]:
    """Yield lines as `raw_lines` does, and an error in the place of one that is longer.

    Raises:
        SourceError: if it cannot be read on, or is UTF-16.
    """
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(most + 1)
        except decompression_errors() as error:
            raise SourceError(f"cannot be read on: {error}", path=path, line=number) from error
        if not line:
            return
        if len(line) > most:
            message = f"a line of more than {most >> 20} MiB: this is no file of lines"
            begin = line[:LONGEST].decode(errors="replace")
            yield number, SourceError(message, path=path, line=number, text=f"{begin}…")
            try:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(most)
            except decompression_errors() as error:
                raise SourceError(f"cannot be read on: {error}", path=path, line=number) from error
            continue
        yield number, without_mark(line, path) if number == 1 else line


def decoded_lines(stream: BinaryIO, path: Path | None, most: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield the lines of a stream of bytes that is open, as `lines` does those of a file.

    Args:
        stream: open file, decompressed.
        path: the file, for errors.
        most: bytes of a line, at most; None: `MAX_LINE`.

    Raises:
        SourceError: as `lines`.
    """
    return _without_bad(_decoded_or_bad_lines(stream, path, most or MAX_LINE))


def _decoded_or_bad_lines(
    stream: BinaryIO, path: Path | None, most: int
) -> Iterator[tuple[int, str | SourceError]]:
    for number, raw in raw_or_bad_lines(stream, path, most):
        if isinstance(raw, SourceError):
            yield number, raw
        elif not isinstance(line := decoded_line(raw, path, number), str) or line.strip():
            yield number, line


def decoded_line(raw: bytes, path: Path | None, number: int) -> str | SourceError:
    """Return a line without its end, or the error of one that is no text in UTF-8."""
    if b"\0" in raw:
        text = raw.decode(errors="replace").rstrip("\r\n")
        return SourceError("a NUL byte: this is no text file", path=path, line=number, text=text)
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        return not_utf8(error, path, number)


def not_utf8(error: UnicodeDecodeError, path: Path | None, line: int | None) -> SourceError:
    """Return the error for bytes that are no UTF-8; they are a line, or a file if *line* is None."""
    unit = "file" if line is None else "line"
    byte = f"byte 0x{error.object[error.start]:02x}"
    message = f"not UTF-8: {error.reason}, {byte} at byte {error.start + 1} of the {unit}; "
    return SourceError(
        f"{message}`iconv -f LATIN1 -t UTF-8` converts a file that is Latin-1",
        path=path,
        line=line,
        text=None if line is None else error.object.decode(errors="replace").rstrip("\r\n"),
    )


def lines(path: Path, most: int | None = None) -> Iterator[tuple[int, str]]:
    r"""Yield the number of each line that is not blank, from 1, and the line without its end.

    A byte order mark at the very start is left out; only `\n` ends a line, after a `\r` or not.

    Args:
        path: the file; it may be compressed.
        most: bytes of a line, at most; None: `MAX_LINE`.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or a line is not UTF-8, has a NUL, or is longer.
    """
    with opened(path) as stream:
        yield from decoded_lines(stream, path, most)


def json_lines(path: Path, record_type: type[RecordT], expected: str) -> Iterator[tuple[int, str, RecordT]]:
    """Yield the number of each line of a file of JSON lines that is not blank, the line, and its record.

    Args:
        path: the file; it may be compressed.
        record_type: type that a line is decoded as.
        expected: beginning of the error for a line that is no such record.

    Raises:
        NotThere: if there is no such file.
        SourceError: as `lines`, and for a line that is no such record.
    """
    import msgspec  # here: a help does without it

    decode = msgspec.json.Decoder(record_type).decode
    for number, line in lines(path):
        try:
            record = decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise SourceError(f"{expected}: {error}", path=path, line=number, text=line) from None
        yield number, line, record


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a source, as `lines`: of a file that can be read twice, and has a line.

    Raises:
        NotThere: if there is no such file.
        SourceError: as `lines`; for a line of more than `MAX_RECORD` bytes, a folder, a pipe, and a file
            without a line.
    """
    return _without_bad(text_or_bad_lines(path))


def text_or_bad_lines(path: Path) -> Iterator[tuple[int, str | SourceError]]:
    """Yield the lines of a source, as `text_lines`, and an error in the place of one that is no text.

    Raises:
        NotThere: if there is no such file.
        SourceError: for a file that cannot be read on, is UTF-16, a folder or a pipe, and one without a line.
    """
    check_regular_file(path)
    with opened(path) as stream:
        numbered = _decoded_or_bad_lines(stream, path, MAX_RECORD)
        first = next(numbered, None)
        if first is None:
            raise SourceError("is empty: there is nothing to read", path=path, line=1)
        yield first
        yield from numbered


def read_content(path: Path) -> bytes:
    """Return the content of a file, decompressed, without a byte order mark.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, is UTF-16, or has more than `MAX_CONTENT` bytes.
    """
    content = bytearray()
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):  # room is made for as much as is asked for
            content += chunk
            if len(content) > MAX_CONTENT:
                message = f"more than {MAX_CONTENT >> 20} MiB of a file that is read into memory as a whole"
                raise SourceError(f"{message}: split it", path=path)
    return without_mark(bytes(content), path)


# -- writing ----------------------------------------------------------------


def check_output_path(path: Path, read: Iterable[Path] = ()) -> None:
    """Refuse a file that cannot be put at *path*, before the work is done.

    Args:
        path: file that is going to be written.
        read: files that are going to be read.

    Raises:
        NotThere: if there is no folder to put it in.
        UsageError: if it is a folder, one of the files that are read, or `-`, which is standard output, or if
            its name asks for a compression that kgkit does not write.
    """
    if path == Path("-"):
        raise UsageError("- is standard output, and this goes to a file: name one")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file")
    _check_parent(path)
    check_compression(path)
    if path.resolve() in {other.resolve() for other in read}:
        raise UsageError(f"{path} is one of the files to read; write to another file")


def check_folder(path: Path) -> None:
    """Refuse a new folder that cannot be put at *path*, before the work is done.

    Raises:
        NotThere: if there is no folder to put it in.
        UsageError: if something is there already.
    """
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} is there already: remove it, or name another folder")
    _check_parent(path.absolute())


def _check_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise NotThere(f"no folder {path.parent} to write {path.name} to: `mkdir -p {path.parent}` makes it")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a temporary file, which becomes *path* when the block ends without an error.

    It is beside *path*, gets the mode, the owner and the group of the file that it replaces, and is on the
    disk before it does. A pipe or a device is given as it is.

    Raises:
        OSError: if the disk refuses; an earlier file is untouched.
    """
    replaces = path.is_file() or not path.exists()
    target = path.resolve()
    temporary = target.with_name(f".{secrets.token_hex(8)}.part") if replaces else path
    try:
        if replaces:
            mode = 0o600 if target.exists() else 0o666  # less the umask; readers of the old file may be few
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield temporary
        if replaces:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            replace_file(temporary, target)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        if replaces:
            temporary.unlink(missing_ok=True)


def replace_file(new: Path, path: Path) -> None:
    """Rename *new* to *path*, with the mode, the owner and the group of the file that was there.

    Where the group cannot be kept, the group has no rights: it would be another one.

    Raises:
        OSError: if the disk refuses.
    """
    target = path.resolve()  # a symbolic link stays one
    with suppress(FileNotFoundError):
        old, has = target.stat(), new.stat()
        mode = stat.S_IMODE(old.st_mode) & 0o777
        if old.st_gid != has.st_gid:
            try:
                os.chown(new, -1, old.st_gid)
            except PermissionError:
                mode &= ~0o070
        if old.st_uid != has.st_uid:
            with suppress(PermissionError):  # only root may give a file away
                os.chown(new, old.st_uid, -1)
        new.chmod(mode)
    new.replace(target)


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open *path* for writing as `replacing` does: whole or not at all; its suffix may ask for compression.

    Raises:
        NotThere: if there is no folder to put it in.
        UsageError: if it is a folder, or its compression cannot be written.
        OSError: if the disk refuses; an earlier file is untouched.
    """
    check_output_path(path)
    with (
        replacing(path) as temporary,
        temporary.open("wb") as file,
        compressing(compression_of(path), cast("BinaryIO", file)) as stream,
    ):
        yield stream


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside *path*, which becomes *path* when the block ends without an error.

    Raises:
        OSError: if the disk refuses.
    """
    temporary = path.absolute().with_name(f".{secrets.token_hex(8)}.part")
    temporary.mkdir()
    try:
        yield temporary
        temporary.rename(path.absolute())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
