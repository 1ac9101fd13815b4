"""Files that may be compressed (`.xz`, `.bz2`, `.gz`, `.zst`), and files that appear whole or not at all.

And checks of which files are named.
"""

import codecs
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Literal

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.files import (
    COMPRESSIONS,
    check_compression,
    compressing,
    compression_of,
    decompression_errors,
    open_bytes,
)

MAX_LINE: Final = 256 << 20
"""Bytes of a line: what is longer, as a few compressed megabytes may be, is not read to its end."""

MAX_CONTENT: Final = 2 << 30
"""Bytes of a file that is read into memory as a whole, decompressed."""

_CHUNK: Final = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open *path* for reading, decompressed; what the disk or the decompressor says becomes our error."""
    try:
        with open_bytes(path) as stream:
            yield stream
    except FileNotFoundError:
        raise NotThere(f"no file {path}") from None
    except decompression_errors() as error:
        raise SourceError(f"cannot be read: {error}", path=path) from error


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open *path* for writing; its suffix may ask for compression.

    The file appears when the block ends without an error: it is written beside
    its target, then renamed; it has the mode and the owner of the file that it replaces. Only a pipe or a
    device is written to as it is.

    Raises:
        NotThere: if there is no folder to put it in.
        OSError: if the disk refuses; an earlier file of that name is untouched.
    """
    if not path.parent.is_dir():
        raise NotThere(f"no folder {path.parent} to write {path.name} to")
    replaces = path.is_file() or not path.exists()
    target = path.resolve() if replaces else path  # a symbolic link stays one
    temporary = target.with_name(f".{secrets.token_hex(4)}.{target.name}") if replaces else target
    if replaces:
        create_temporary(temporary, target)
    try:
        with COMPRESSIONS.get(compression_of(path), open)(temporary, "wb") as stream:
            yield stream
        if replaces:
            replace_file(temporary, target)
    except OSError as error:
        if error.filename is None:  # it was opened, and could not be written
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        if replaces:
            temporary.unlink(missing_ok=True)


@contextmanager
def open_output(path: Path, *, packed: bool = False) -> Iterator[Callable[[bytes], None]]:
    """Give what writes to *path*, so that the file appears whole or not at all.

    Its suffix may ask for compression. It is written to a temporary file in the same folder, then renamed;
    an earlier file of that name stays until then, and its mode and owner for good. Only a pipe or a device
    is written to as it is.

    Args:
        path: file to write.
        packed: whether the bytes are compressed already, as the name says.

    Raises:
        NotThere: if there is no folder to put it in.
        UsageError: if it is a folder, or its compression cannot be written.
        OSError: if the disk refuses; says which file.
    """
    check_output_path(path)
    replaces = path.is_file() or not path.exists()
    target = path.resolve() if replaces else path  # a symbolic link stays one
    temporary = target.with_name(f".{secrets.token_hex(8)}.part") if replaces else target
    with name_path(path):
        if replaces:
            create_temporary(temporary, target)
        stream = temporary.open("wb")

    def write(content: bytes) -> None:
        with name_path(path):
            stream.write(content)

    try:
        try:
            with compressing("" if packed else compression_of(path), write) as compress:
                yield compress
            with name_path(path):
                stream.flush()
                if replaces:
                    os.fsync(stream.fileno())
        finally:
            with name_path(path):
                stream.close()
        if replaces:
            with name_path(path):
                replace_file(temporary, target)
    finally:
        if replaces:
            temporary.unlink(missing_ok=True)


@contextmanager
def name_path(path: object) -> Iterator[None]:
    """Add the path that could not be written, in words, to an error of the disk."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_output_path(path: Path, read: Iterable[Path] = ()) -> None:
    """Say so at once if a file cannot be put at *path*, before the work is done.

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
    if not path.parent.is_dir():
        raise NotThere(f"no folder {path.parent} to write {path.name} to: `mkdir -p {path.parent}` makes it")
    check_compression(path)
    if path.resolve() in {other.resolve() for other in read}:
        raise UsageError(f"{path} is one of the files to read; write to another file")


def check_folder(path: Path) -> None:
    """Say so at once if no new folder can be put at *path*.

    Raises:
        NotThere: if there is no folder to put it in.
        UsageError: if something is there already.
    """
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} is there already: remove it, or name another folder")
    if not path.absolute().parent.is_dir():
        raise NotThere(f"no folder {path.parent} to write {path.name} to: `mkdir -p {path.parent}` makes it")


def create_temporary(temporary: Path, target: Path) -> None:
    """Make the empty file *temporary*, which `replace_file` is to put in the place of *target*.

    Until then it is its owner's alone where there is an earlier file, whose readers may be few; else its mode
    is that of any new file.

    Raises:
        OSError: if it is there already, or cannot be made.
    """
    mode = 0o600 if target.exists() else 0o666  # less the umask
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


def replace_file(temporary: Path, target: Path) -> None:
    """Rename *temporary* to *target*, with the mode, the owner and the group of the file that was there.

    Where the group cannot be kept, the group has no rights: it would be another one.

    Raises:
        OSError: if the disk refuses.
    """
    with suppress(FileNotFoundError):
        old, new = target.stat(), temporary.stat()
        mode = stat.S_IMODE(old.st_mode) & 0o777
        if old.st_gid != new.st_gid:
            try:
                os.chown(temporary, -1, old.st_gid)
            except PermissionError:
                mode &= ~0o070
        if old.st_uid != new.st_uid:
            with suppress(PermissionError):  # only root may give a file away
                os.chown(temporary, old.st_uid, -1)
        temporary.chmod(mode)
    temporary.replace(target)


class UniqueIds:
    """Makes sure that no two examples of a file have one id: answers go by it.

    Args:
        path: the file.
        unit: what the positions that `check` takes count: lines, instances of one line, or records.
    """

    def __init__(self, path: Path | None, unit: Literal["line", "instance", "record"] = "line") -> None:
        self._path, self._unit = path, unit
        self._positions: dict[str, int] = {}

    def check(self, name: str, position: int, text: str | None = None) -> None:
        """Take note of the id *name*.

        Raises:
            SourceError: if an example before it has the same.
        """
        earlier = self._positions.setdefault(name, position)
        if earlier != position:
            raise SourceError(
                f"two examples have the id {name!r}, those of {self._unit} {earlier} and {position}: each "
                "needs its own, as answers go by it",
                path=self._path, line=position if self._unit == "line" else None, text=text,
            )  # fmt: skip


def lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the number of each line that is not blank, from 1, and the line without its end.

    A byte order mark at the very start is left out; only `\n` ends a line, after a `\r` or not.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or a line is not UTF-8, or longer than `MAX_LINE`.
    """
    with opened(path) as stream:
        yield from decoded_lines(stream, path)


def decoded_lines(stream: BinaryIO, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a stream of bytes that is open, as `lines` does those of a file.

    Args:
        stream: the stream.
        path: the file, for errors.

    Raises:
        SourceError: if a line is not UTF-8, or longer than `MAX_LINE`.
    """
    for number, raw in enumerate(iter(partial(stream.readline, MAX_LINE + 1), b""), start=1):
        if len(raw) > MAX_LINE:
            raise SourceError(
                f"a line of more than {MAX_LINE >> 20} MiB: this is no file of lines", path=path, line=number
            )
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise SourceError("not UTF-8", path=path, line=number, text=repr(raw)) from error
        if line.strip():
            yield number, line.removesuffix("\n").removesuffix("\r")


def read_content(path: Path) -> bytes:
    """Return what is in a file, decompressed, without a byte order mark.

    Raises:
        NotThere: if there is no such file.
        SourceError: if it cannot be read, or has more than `MAX_CONTENT` bytes.
    """
    content = bytearray()
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):  # room is made for as much as is asked for
            content += chunk
            if len(content) > MAX_CONTENT:
                message = f"more than {MAX_CONTENT >> 20} MiB of a file that is read into memory as a whole"
                raise SourceError(f"{message}: split it", path=path)
    return bytes(content.removeprefix(codecs.BOM_UTF8))


def missing_gold(example: str, gold: str = "label") -> UsageError:
    """Return the error for an example that is to be scored and has no gold.

    Args:
        example: what it is called, with its id: `pair 3`.
        gold: what it lacks.
    """
    return UsageError(f"{example} has no {gold}: score on a file with gold")


def check_data(data: Sequence[Path]) -> None:
    """Refuse a training without data.

    Raises:
        UsageError: if there is no file.
    """
    if not data:
        raise UsageError("there are no training data: name one or more files of data")


def check_gold_files(data: Sequence[Path], gold: Sequence[Path]) -> None:
    """Refuse files of gold that are not as many as the files of data.

    Raises:
        UsageError: if there are more or fewer.
    """
    if len(data) != len(gold):
        raise UsageError(
            f"files of data: {len(data)}, files of gold: {len(gold)}; name a file of gold for each file of "
            "data, in the same order"
        )


def refuse_gold_files(task: str, gold: Sequence[Path]) -> None:
    """Refuse files of gold for a task whose data contain it.

    Raises:
        UsageError: if there is one.
    """
    if gold:
        raise UsageError(f"the data of the task {task} contain the gold: do not name files of gold")
