"""Making vectors: a job that can be stopped and gone on with, and the moment its result appears.

    cache/vectors/KB/NAME.lock           held by the process that makes KB/NAME
    cache/vectors/KB/NAME-SETTINGS/      the job's folder; SETTINGS is a digest of BUILD and settings
    kbs/KB/vectors/NAME/.new-…/          being put together from what the job keeps
    kbs/KB/vectors/NAME/VERSION/         complete
    kbs/KB/vectors/NAME/current          -> VERSION

A job that is run again with the settings of one that was stopped finds its folder. When it publishes, its
files are linked into their place and brought to the disk, and the link is replaced (`kgkit.versions`); then
older versions and other jobs' folders of this name go away; whoever has them open reads on.
"""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import numpy as np

from kgkit.errors import BuildFailed, KBBusy, NotThere, UsageError, WriteFailed
from kgkit.home import KBHome, is_name
from kgkit.types import Matrix
from kgkit.vectors.layout import (
    FORMAT,
    INDEX,
    KEYS,
    MANIFEST,
    MATRIX,
    Owner,
    VectorsManifest,
    checked_name,
    key_digests,
    version_name,
)
from kgkit.vectors.matrix import Vectors
from kgkit.versions import NEW, check_platform, file_sha256, free_space, link_file, publish_version, sweep

_BLOCK: Final = 65_536
_PACKAGES: Final = ("numpy", "openvino", "tokenizers", "torch", "transformers", "pykeen", "faiss-cpu")


class Work:
    """A job that makes the vectors KB/*name*.

    Use as a context manager: entering takes the lock, leaving gives it back and
    keeps the folder for the next run unless the vectors were published.

    Args:
        kb: the open knowledge base whose entities the rows belong to.
        name: name of the vectors.
        settings: everything that decides the numbers, JSON-like; becomes the manifest's `config`.
        resume: whether to go on in the folder of a job that was stopped; False begins again.

    Raises:
        UsageError: if *name* cannot name vectors.
        KBBusy: on entering, if another process is making these vectors.
    """

    def __init__(self, kb: Owner, name: str, settings: Mapping[str, Any], *, resume: bool = True) -> None:
        self.kb, self.name, self.settings = kb, checked_name(name), dict(settings)
        described = msgspec.json.encode([FORMAT, kb.build, self.settings], order="sorted")
        digest = hashlib.blake2b(described, digest_size=6).hexdigest()
        self.folder = kb.home.unfinished_vectors / f"{name}-{digest}"
        self._resume, self._published = resume, False

    def __enter__(self) -> Self:
        self._lock = making(self.kb.home, self.name)
        self._lock.__enter__()
        try:
            if not self._resume:
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._published:
                sweep_work(self.kb.home, self.name)
            else:
                with suppress(OSError):  # the cache may have been emptied meanwhile
                    if not any(self.folder.iterdir()):
                        self.folder.rmdir()
        finally:
            self._lock.__exit__(None, None, None)

    def matrix(self, rows: int, width: int) -> Matrix:
        """Return the matrix (rows, width) to be filled, float32, mapped into memory.

        It is zeros, or what the stopped job left in it.

        Raises:
            WriteFailed: if there is not room for it.
        """
        path, shape = self.folder / MATRIX, (rows, width)
        new = self.folder / f".{MATRIX}"  # a job killed in between would leave a file without its shape
        try:
            _unlink(path, new)
            open_inner: Matrix = np.lib.format.open_memmap(path, mode="r+")
            if open_inner.shape == shape and open_inner.dtype == np.float32:
                return open_inner
        except (FileNotFoundError, ValueError):
            pass
        try:
            if 4 * rows * width > free_space(self.folder):
                raise OSError("the matrix has no room")
            created = np.lib.format.open_memmap(new, mode="w+", dtype=np.float32, shape=shape)
            created.flush()
            _take_room(new)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise WriteFailed(
                str(error), written=0, free=free_space(self.folder), where=self.folder
            ) from error
        new.replace(path)
        return created

    def publish(
        self,
        method: str,
        *,
        files: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
        results: Mapping[str, Any] | None = None,
        extends: Vectors | None = None,
    ) -> Vectors:
        """Put the matrix and *files* of the folder in their place, and make them what KB/NAME stands for.

        Args:
            method: name of the method that made them.
            files: further files in the folder that are kept beside the matrix.
            config: settings for the manifest, if it says more than `settings`.
            results: figures that were measured.
            extends: vectors in the same space. Their maps into others are kept, and their index if their
                rows are the first of these: what has been added is then found by comparing with it.

        Raises:
            WriteFailed: if the disk refuses; the vectors that were published are as they were.
            UsageError: if the matrix has more rows than there are entities.
            BuildFailed: if a number is not finite.
            NotThere: if the KB has been removed meanwhile.
        """
        if self.kb.home.published() is None:
            raise NotThere(
                f"knowledge base {self.kb.name!r} was removed while its vectors were made: they go with it"
            )
        target = self.kb.home.vectors / self.name
        staged = target / f"{NEW}{secrets.token_hex(6)}"
        try:
            matrix: Matrix = np.load(self.folder / MATRIX, mmap_mode="r")
            if len(matrix) > self.kb.id_count:
                raise UsageError(
                    f"the matrix has {len(matrix):,} rows, {self.kb.name!r} has {self.kb.id_count:,} "
                    "entities: row i is entity i"
                )
            (self.folder / KEYS).unlink(missing_ok=True)  # it may be linked to what has been published
            np.save(self.folder / KEYS, key_digests(self.kb.id_keys(), len(matrix)))
            names = (MATRIX, KEYS, *files)
            manifest = VectorsManifest(
                format=FORMAT,
                kb=self.kb.name,
                build=self.kb.build,
                name=self.name,
                version="",
                method=method,
                rows=len(matrix),
                covered=_count_covered(matrix),
                width=matrix.shape[1],
                config=dict(config if config is not None else self.settings),
                results=dict(results or {}),
                versions=_versions(),
                kgkit_version=_version_of("kgkit") or "unknown",
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                files={name: (self.folder / name).stat().st_size for name in names},
                sha256={name: file_sha256(self.folder / name) for name in names},
            )
            prefix = extends is not None and _begins_with(matrix, extends.matrix)
            del matrix
            manifest = msgspec.structs.replace(manifest, version=version_name(manifest))
            final = target / manifest.version
            target.mkdir(parents=True, exist_ok=True)
            sweep(target)  # what a killed job left: its room may be needed
            staged.mkdir()
            (staged / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
            for name in names:
                # Linked, not moved: a job killed here finds its folder as it was.
                link_file(self.folder / name, staged / name)
            if extends is not None:
                _keep_maps(extends.folder, staged)
                if prefix:
                    _keep_index(extends.folder, staged)
            if final.exists():  # the same content again: its index fits
                _keep_maps(final, staged)
                _keep_index(final, staged)
            publish_version(target, staged, manifest.version)
        except OSError as error:
            raise WriteFailed(str(error), written=0, free=free_space(self.folder), where=target) from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        self._published = True
        sweep(target)
        return Vectors.open(final)


@contextmanager
def making(kb: KBHome, name: str) -> Iterator[None]:
    """Hold the lock of the vectors KB/*name*.

    Raises:
        KBBusy: if another process has it.
    """
    from filelock import FileLock, Timeout  # here: readers do without it

    check_platform()
    folder = kb.unfinished_vectors
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{checked_name(name)}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise KBBusy(f"another process is making the vectors {kb.name}/{name}; wait for it to end") from None
    try:
        yield
    finally:
        lock.release()


def sweep_work(kb: KBHome, name: str) -> None:
    """Remove what stopped jobs have done for KB/*name*, under whatever settings."""
    for path in kb.unfinished_vectors.glob(f"{name}-*"):
        if path.is_dir() and len(path.name) == len(name) + 13:
            shutil.rmtree(path, ignore_errors=True)


def sweep_unfinished(kb: KBHome) -> None:
    """Remove what stopped jobs have done for any vectors of *kb*; those that are at work are left alone."""
    for lock in kb.unfinished_vectors.glob("*.lock"):
        if is_name(lock.stem):
            with suppress(KBBusy), making(kb, lock.stem):
                sweep_work(kb, lock.stem)


def _count_covered(matrix: Matrix) -> int:
    """Count the rows that are not zero.

    Raises:
        BuildFailed: if a number is not finite: such vectors are near nothing.
    """
    count = 0
    for begin in range(0, len(matrix), _BLOCK):
        block = np.asarray(matrix[begin : begin + _BLOCK])
        if not np.isfinite(block).all():
            row = begin + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise BuildFailed(
                f"row {row} of the vectors holds a number that is not finite, so nothing was published: "
                "a learning rate that is too high does this"
            )
        count += int(block.any(axis=1).sum())
    return count


def _begins_with(matrix: Matrix, first: Matrix) -> bool:
    return len(first) <= len(matrix) and all(
        np.array_equal(first[begin : begin + _BLOCK], matrix[begin : min(begin + _BLOCK, len(first))])
        for begin in range(0, len(first), _BLOCK)
    )


def _keep_maps(old: Path, new: Path) -> None:
    """Copy the maps into other spaces that lie beside vectors: they are of the space, not of its rows."""
    for path in old.glob("align-*"):
        shutil.copytree(path, new / path.name, dirs_exist_ok=True)


def _keep_index(old: Path, new: Path) -> None:
    for path in old.glob("index*"):
        link_file(path, new / path.name)
    if not (old / INDEX).exists():
        for path in new.glob("index*"):
            path.unlink()


def _unlink(path: Path, copy: Path) -> None:
    """Give *path* a file of its own, if a job killed while it published left it the readers'."""
    if path.stat().st_nlink > 1:
        shutil.copyfile(path, copy)
        copy.replace(path)


def _take_room(path: Path) -> None:
    """Let the disk set aside what the file will hold: mapped and full, it would end the process."""
    if hasattr(os, "posix_fallocate"):
        try:
            with path.open("rb+") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise  # else the file system cannot do that


def _versions() -> dict[str, str]:
    return {name: version for name in _PACKAGES if (version := _version_of(name))}


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
