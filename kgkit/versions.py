"""A folder whose content is replaced at once and as a whole: versions of it, and a link to the current one.

    FOLDER/lock          held while a version is put here, where the caller has no lock of its own
    FOLDER/.new-…/       a version that is being written
    FOLDER/VERSION/      a complete version
    FOLDER/current       symbolic link to the version that FOLDER stands for
    FOLDER/.current/     what a copy that follows links made of `current`, while a link takes its place
    FOLDER/.old-…        going away

A version is written, brought to the disk and renamed into place; then the link is replaced, and what it no
longer leads to is swept. Readers take no lock: they follow the link once, read one version, and read again
if it was swept meanwhile (`read_current`). What they have open or mapped stays theirs.

Trained models and vectors are kept so. Builds of knowledge bases have a folder of their own for versions, and
are kept with the same lock and link. This module knows nothing of any of them.
"""

import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from kgkit.errors import KgkitError, UnsupportedPlatform, WriteFailed

if TYPE_CHECKING:
    from filelock import FileLock

CURRENT: Final = "current"
LOCK: Final = "lock"
NEW: Final = ".new-"
"""What the name of a version begins with while it is written."""

COPIED: Final = ".current"
"""Where a folder goes that stands where the link should, while that takes its place."""
_PRIVATE: Final = 0o600
_OF_RUST: Final = re.compile(r"\(os error \d+\)")
_OF_TORCH: Final = re.compile(r"inline_container|PytorchStreamWriter|iostream error")
_PLATFORM: Final = sys.platform
_PATIENCE: Final = 5.0  # seconds that one waits for a lock before saying so
_LOCK_ATTEMPTS: Final = 20  # on a folder that is removed and made again each time
_LINK_READS: Final = 100  # of a link that has changed each time; nobody publishes as quickly as that

Content = TypeVar("Content")
log = logging.getLogger(__name__)


# -- reading ----------------------------------------------------------------


def current_version(folder: Path) -> Path | None:
    """Return the version that *folder* stands for; None if it has none.

    Between reading the link and looking for its version, that may be swept; then the link names another, and
    is read again.
    """
    link = folder / CURRENT
    for _ in range(_LINK_READS):
        before = _stamp(link)
        with suppress(OSError):
            if (target := folder / link.readlink()).is_dir():
                return target
        for copied in (link, folder / COPIED):
            if copied.is_dir() and not copied.is_symlink():
                return copied
        if _stamp(link) == before:  # else the link has just been replaced, and the old version swept
            break
    return None


def find_content(folder: Path, file: str) -> Path | None:
    """Return where the content of *folder* lies: in its current version, or in itself if it has no versions.

    Args:
        folder: folder that may not exist.
        file: name of a file that the content must have; without it there is none, and the answer is None.
    """
    while True:
        version = current_version(folder)
        content = folder if version is None else version
        if (content / file).is_file():
            return content
        if current_version(folder) == version:  # else it has just been replaced
            return None


def read_current(find: Callable[[], Path], read: Callable[[Path], Content]) -> Content:
    """Return what *read* makes of the folder that *find* returns, again if it is replaced meanwhile.

    Args:
        find: function that returns the version to be read, as `find_content` does; raises if there is none.
        read: raises `KgkitError` or `OSError` if files are missing. What it returned of a version that was
            swept meanwhile, perhaps before all was read, is closed if it has a method `close`, and dropped.
    """
    while True:
        folder = find()
        before = _stamp(folder)
        try:
            content = read(folder)
        except (KgkitError, OSError):
            if find() == folder and _stamp(folder) == before and not _is_replaced(folder):
                raise
            continue
        if _stamp(folder) is not None and not _is_replaced(folder):
            return content
        if callable(close := getattr(content, "close", None)):
            close()


def _is_replaced(folder: Path) -> bool:
    """Say whether a folder that had its content in itself has versions by now."""
    return current_version(folder) is not None


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file, link or folder from another of its name; None if there is none."""
    try:
        about = path.lstat()
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_ctime_ns


# -- writing ----------------------------------------------------------------


def check_platform() -> None:
    """Make sure that the operating system has what publishing needs.

    Raises:
        UnsupportedPlatform: on Windows, which removes and renames no file that somebody reads, and brings no
            folder to the disk.
    """
    if _PLATFORM == "win32":
        raise UnsupportedPlatform(
            "kgkit publishes nothing on Windows: it needs symbolic links, folders that are synced to "
            "the disk, and files that can be replaced while they are read. Use it in WSL 2, on Linux or macOS"
        )


@contextmanager
def lock_folder(folder: Path, patience: float | None = None) -> Iterator[None]:
    """Hold the lock of *folder*, as `acquire_lock` takes it."""
    lock = acquire_lock(folder, patience)
    try:
        yield
    finally:
        lock.release()


def acquire_lock(folder: Path, patience: float | None = None) -> "FileLock":
    """Take the lock of *folder*, which is made; wait for whoever has it.

    Raises:
        TimeoutError: if somebody has it for longer than *patience*, in seconds; None: wait until it is free.
        OSError: if the disk refuses.
        UnsupportedPlatform: as `check_platform` does.
    """
    check_platform()
    from filelock import FileLock, Timeout  # here: readers do without it, and it takes 20 ms

    path, waits, attempts = folder / LOCK, False, 0
    while True:
        lock = FileLock(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.touch()
            file = path.stat()
            lock.acquire(timeout=_PATIENCE if patience is None else patience)
            # The lock of a folder that was removed meanwhile is no lock of the folder of that name now.
            if os.path.samestat(file, path.stat()):
                return lock
        except Timeout:
            if patience is not None:
                raise
            if not waits:
                log.warning("waiting for another process that is writing to %s", folder)
            waits = True
        except FileNotFoundError:  # the folder was removed a moment ago
            pass
        lock.release()
        attempts += 1
        if patience is not None and attempts == _LOCK_ATTEMPTS:
            raise TimeoutError(f"{folder} is removed again and again")


def publish_version(folder: Path, staged: Path, version: str) -> Path:
    """Make a folder that has been written the current version of *folder*; the caller holds a lock.

    Older versions stay, for `sweep`.

    Args:
        folder: folder whose content is replaced.
        staged: folder with what was written, a folder in *folder* that begins with a dot.
        version: name of the version; if there is a version of that name, this one takes its place.

    Returns:
        The version.

    Raises:
        OSError: if the disk refuses; what was current is current.
    """
    final = folder / version
    set_usual_modes(staged)
    sync_tree(staged)
    if final.exists() and current_version(folder) == final:
        # The link never leads nowhere: to a second copy while the folders change places.
        second = shutil.copytree(staged, path_aside(folder), copy_function=link_file)
        sync_tree(second)
        sync_folder(folder)
        link_current(folder, second.name)
    if final.exists():
        final.rename(path_aside(folder))
    staged.rename(final)
    try:
        sync_folder(folder)
        link_current(folder, version)
    except OSError:
        if current_version(folder) != final:
            set_aside(final)
        raise
    return final


def sweep(folder: Path) -> None:
    """Remove everything from *folder* but its current version; the caller holds a lock.

    Each version goes at once, so that no reader meets a part of it; who has one open reads on. A folder that
    has its content in itself keeps it: only what a killed process has left goes.
    """
    current = current_version(folder)
    for path in sorted(folder.iterdir()):
        names = (CURRENT, LOCK) if current is None else (CURRENT, LOCK, current.name)
        if path.name not in names and (current is not None or path.name.startswith(".")):
            set_aside(path)


def remove(folder: Path) -> None:
    """Remove *folder* with all its content; the caller holds a lock."""
    set_aside(folder / CURRENT)  # first: from here on nobody finds it
    for path in sorted(folder.iterdir()):
        if path.name != LOCK:
            set_aside(path)
    shutil.rmtree(folder, ignore_errors=True)  # the lock goes last: who waits for it sees that it is gone


@contextmanager
def write_once(folder: Path) -> Iterator[Path]:
    """Give a folder to write to, which is *folder* at the end, unless another process was faster.

    For content that follows from the name: it does not matter whose it is.
    """
    staged = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        staged.mkdir(parents=True)
        yield staged
        sync_tree(staged)
        try:
            staged.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def set_aside(path: Path) -> None:
    """Remove *path*, a folder, a file or a link, if it is there: under another name first."""
    with suppress(OSError):
        path = path.rename(path_aside(path.parent))
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def copy_file(path: Path, target: Path) -> None:
    """Copy a file; where the file system can, the copy shares its blocks until one of them is changed.

    Raises:
        OSError: if it cannot be read, or the disk refuses.
    """
    with path.open("rb") as source, target.open("wb") as copy:
        remaining = os.fstat(source.fileno()).st_size
        try:
            while remaining and (copied := os.copy_file_range(source.fileno(), copy.fileno(), remaining)):
                remaining -= copied
        except (AttributeError, OSError):  # not on this system, or not between these two files
            pass
    if remaining:
        shutil.copyfile(path, target)


def link_file(path: Path | str, target: Path | str) -> None:
    """Make *target* another name of the file *path*; a copy, on the disk, where there are no links."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
        sync_folder(Path(target))


def set_usual_modes(folder: Path) -> None:
    """Give files that only their owner may read the mode that new files have here.

    Some libraries write by way of temporary files, which have the mode 0600: what is published could not be
    read by a service, or a group, that may read all else. The umask decides, as for all else.

    Raises:
        OSError: if the disk refuses.
    """
    probe = folder / f".mode-{secrets.token_hex(4)}"
    probe.touch(exist_ok=False)
    try:
        usual = stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.unlink()
    for parent, _, files in os.walk(folder):
        for path in (Path(parent, name) for name in files):
            about = path.lstat()
            if stat.S_ISREG(about.st_mode) and stat.S_IMODE(about.st_mode) == _PRIVATE != usual:
                path.chmod(usual)


def sync_tree(folder: Path) -> None:
    """Bring a folder and all that is in it to the disk."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync_folder(Path(parent, name))
        sync_folder(Path(parent))


def sync_folder(path: Path) -> None:
    """Bring a folder to the disk, that is the names in it, or a file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def link_current(folder: Path, version: str | Path) -> None:
    """Let *folder* stand for *version*, a path within it, and bring that to the disk.

    Raises:
        OSError: if the disk refuses; what was current is current.
    """
    link, current = folder / f".current-{secrets.token_hex(4)}", folder / CURRENT
    try:
        link.symlink_to(version)
        if current.is_dir() and not current.is_symlink():  # what a copy that follows links makes of it
            if (folder / COPIED).exists():
                set_aside(folder / COPIED)
            current.rename(folder / COPIED)
        link.replace(current)
    except OSError:
        if (folder / COPIED).is_dir() and not os.path.lexists(current):
            (folder / COPIED).rename(current)
        raise
    finally:
        link.unlink(missing_ok=True)
    sync_folder(folder)


def path_aside(folder: Path) -> Path:
    """Return a path in *folder* for what goes away; nothing is there."""
    return folder / f".old-{secrets.token_hex(4)}"


def free_space(path: Path) -> int:
    """Return how many bytes are free where *path* lies, or would lie."""
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(existing).free


@contextmanager
def write_failures(folder: Path) -> Iterator[None]:
    """Raise `WriteFailed` where the disk refuses what is written to *folder*, whichever library says so.

    What is in the block writes files, and raises `OSError` for nothing else.

    Raises:
        WriteFailed: if the disk refuses.
    """
    try:
        yield
    except Exception as error:
        if (reason := _refusal(error)) is None:
            raise
        raise WriteFailed(reason, written=0, free=free_space(folder), where=folder) from error


def _refusal(error: Exception) -> str | None:
    """Return why the system refused to write; None if an error is none of the disk.

    Safetensors and tokenizers tell of it as Rust does, torch by an error that does not name the cause.
    """
    if isinstance(error, OSError):
        return str(error)
    if isinstance(error, KgkitError):
        return None
    if _OF_RUST.search(str(error)):
        return str(error)
    is_torch = isinstance(error, RuntimeError) and _OF_TORCH.search(str(error))
    return "torch could not write a file to its end" if is_torch else None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
